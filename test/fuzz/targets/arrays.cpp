//===- arrays.cpp - NumPy's .npy and .npz ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "fuzz_target.h"
#include "input_file.h"

#include "data/npz.h"
#include "data/npz_header.h"
#include "drt/drt.h"

#include <fstream>
#include <iterator>

using namespace drt;

namespace {

uint64_t sum = 0; // so that every byte of an array is read

void use(const NpyArray &array) {
  for (int64_t i = 0; i < array.bytes; ++i)
    sum += static_cast<const uint8_t *>(array.data)[i];
}

} // namespace

std::vector<std::string> seeds() {
  const int32_t numbers[6] = {1, 2, 3, 4, 5, 6};
  const std::string data(reinterpret_cast<const char *>(numbers), sizeof numbers);
  char path[] = "/tmp/distc-fuzz-XXXXXX";
  const int descriptor = mkstemp(path);
  {
    NpzWriter writer(path);
    writer.add("x", DRT_I32, {2, 3}, numbers);
    writer.add("scalar", DRT_I32, {}, numbers);
    writer.finish();
  }
  std::ifstream stream(path, std::ios::binary);
  const std::string archive((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  close(descriptor);
  unlink(path);
  return {std::string("\0", 1) + formatNpyHeader(DRT_I32, {2, 3}, 0, "a seed") + data, "\x01" + archive};
}

/// The first byte says which of both it is. Checksums are left out: few mutants would come behind them.
void readBytes(std::string_view bytes) {
  if (bytes.empty())
    return;
  const bool isArchive = bytes[0] & 1;
  const InputFile file(bytes.substr(1));
  if (!isArchive)
    return use(readNpy(file.path()));
  const NpzReader reader(file.path(), /*verify=*/false);
  for (const std::string &name : reader.names())
    use(reader.read(name));
}
