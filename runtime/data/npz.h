//===- npz.h - NumPy's .npz and .npy files, read and written --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// An .npz is a zip file of .npy members; a member `hidden1/kernel.npy` is the
// array `hidden1/kernel`. Read: stored and deflated members, zip64, .npy header
// versions 1 to 3, little-endian; Fortran order is converted to row-major.
// Types are drt_dtype's numbers. bfloat16, which NumPy does not have, is
// written as raw two-byte elements ("|V2"), and "|V2" is read as bfloat16.
// Everything throws drt::Error.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_NPZ_H
#define DRT_DATA_NPZ_H

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace drt {

// An array and what keeps its bytes alive: a mapping of the file or a buffer.
// Cheap to copy, safe to read from several threads.
struct NpyArray {
  int32_t dtype = 0; // drt_dtype
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  // Row-major. A mapped array may lie at any address: where `aligned` is false,
  // copy rows out with memcpy instead of reading through a typed pointer.
  const void *data = nullptr;
  bool aligned = true; // data is aligned for its type
  bool mapped = false; // data lie in a mapped file (mapped_file.h)
  std::shared_ptr<const void> storage;

  int64_t rows() const { return shape.empty() ? 1 : shape[0]; }
  int64_t rowBytes() const { return rows() ? bytes / rows() : 0; }
};

// One .npy file.
NpyArray readNpy(const std::string &path);

// Opens an .npz. Members are read when they are asked for. Stored members are
// mapped, others unpacked into memory. const members may be called from several
// threads.
class NpzReader {
public:
  // verify: check the zip file's checksums, too (about a second for each GB).
  explicit NpzReader(const std::string &path, bool verify = true);
  ~NpzReader();
  NpzReader(NpzReader &&) noexcept;
  NpzReader &operator=(NpzReader &&) noexcept;

  const std::string &path() const;
  // Arrays' names, in the order of the file.
  const std::vector<std::string> &names() const;
  bool has(std::string_view name) const;
  // Throws where there is none, and lists those that there are.
  NpyArray read(std::string_view name) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

// Writes an .npz, stored, one array after the other, aside, and renames it into
// place in finish(). The data of each array are 64-byte aligned in the file, so
// that a reader can map them.
class NpzWriter {
public:
  explicit NpzWriter(const std::string &path);
  // Without finish(): removes what was written.
  ~NpzWriter();
  NpzWriter(const NpzWriter &) = delete;
  NpzWriter &operator=(const NpzWriter &) = delete;

  void add(const std::string &name, int32_t dtype, const std::vector<int64_t> &shape, const void *data);
  void finish();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace drt
#endif // DRT_DATA_NPZ_H
