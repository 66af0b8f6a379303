//===- ObjectCache.cpp - Objects that were compiled before ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/program/ObjectCache.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace llvm;

namespace distc {

constexpr size_t kNameBytes = 16;

std::string nameContent(StringRef bytes) {
  const BLAKE3Result<kNameBytes> hash = BLAKE3::hash<kNameBytes>(arrayRefFromStringRef(bytes));
  return toHex(hash, /*LowerCase=*/true);
}

// Another build of the compiler may make other code of the same functions: its file's time and size tell.
static std::string nameThisCompiler() {
  static const int ofThisProgram = 0;
  const std::string path = sys::fs::getMainExecutable(nullptr, const_cast<int *>(&ofThisProgram));
  sys::fs::file_status status;
  if (path.empty() || sys::fs::status(path, status))
    return "";
  const auto time = status.getLastModificationTime().time_since_epoch().count();
  return path + '\0' + std::to_string(time) + '\0' + std::to_string(status.getSize());
}

ObjectCache ObjectCache::ofUser() {
  SmallString<128> path;
  std::string compiler = nameThisCompiler();
  if (compiler.empty() || !sys::path::cache_directory(path))
    return {};
  sys::path::append(path, "distc");
  ObjectCache cache(path.str().str());
  cache.compiler = std::move(compiler);
  return cache;
}

std::string ObjectCache::getPath(StringRef name) const {
  SmallString<128> path(folder);
  // As pruneCache looks for them.
  sys::path::append(path, "llvmcache-" + nameContent(compiler + name.str()));
  return path.str().str();
}

// A file is the object and a name of its content.
std::optional<ObjectCode> ObjectCache::find(StringRef name) const {
  if (folder.empty())
    return std::nullopt;
  // The time of the last use decides what is pruned.
  auto opened = expectedToOptional(sys::fs::openNativeFileForRead(getPath(name), sys::fs::OF_UpdateAtime));
  if (!opened)
    return std::nullopt;
  auto file = MemoryBuffer::getOpenFile(*opened, "", /*FileSize=*/-1, /*RequiresNullTerminator=*/false);
  sys::fs::closeFile(*opened);
  constexpr size_t digits = 2 * kNameBytes;
  if (!file || (*file)->getBufferSize() < digits)
    return std::nullopt;
  const StringRef bytes = (*file)->getBuffer().drop_back(digits);
  if (nameContent(bytes) != (*file)->getBuffer().take_back(digits))
    return std::nullopt;
  return ObjectCode(bytes.begin(), bytes.end());
}

void ObjectCache::keep(StringRef name, ArrayRef<char> object) const {
  if (folder.empty() || sys::fs::create_directories(folder, /*IgnoreExisting=*/true, sys::fs::owner_all))
    return;
  const std::string path = getPath(name);
  SmallString<128> written;
  int descriptor = -1;
  if (sys::fs::createUniqueFile(path + ".%%%%%%%%", descriptor, written))
    return;
  raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  const StringRef bytes(object.data(), object.size());
  os << bytes << nameContent(bytes);
  os.close();
  const bool complete = !os.has_error();
  os.clear_error(); // a full disk is no error of the compilation
  if (!complete || sys::fs::rename(written, path))
    sys::fs::remove(written);
}

void ObjectCache::prune() const {
  if (folder.empty())
    return;
  CachePruningPolicy policy;
  policy.Expiration = std::chrono::hours(24 * 30);
  policy.MaxSizeBytes = uint64_t(1) << 30;
  pruneCache(folder, policy);
}

} // namespace distc
