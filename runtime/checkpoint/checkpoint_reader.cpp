//===- checkpoint_reader.cpp - Reading TensorFlow's V2 checkpoints --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/bundle_index.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/crc32c.h"
#include "checkpoint/slice_key.h"
#include "checkpoint/slice_region.h"
#include "checkpoint/tensor_type.h"
#include "core/error.h"
#include "core/near_names.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace drt {
namespace {

// Read and summed up while it is in the cache.
constexpr int64_t kChunk = int64_t(1) << 20;
constexpr int32_t kVariantDtype = 21;

struct DataFile {
  std::string path;
  int fd = -1;
  int64_t bytes = 0;

  DataFile() = default;
  DataFile(DataFile &&other) noexcept : path(std::move(other.path)), fd(other.fd), bytes(other.bytes) { other.fd = -1; }
  ~DataFile() {
    if (fd >= 0)
      close(fd);
  }
};

DataFile openData(const std::string &path) {
  DataFile file;
  file.path = path;
  file.fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (file.fd < 0 || fstat(file.fd, &status) != 0)
    throw Error("cannot read checkpoint data " + path + ": " + strerror(errno) +
                "; the index is there, its data file is not: copy both");
  file.bytes = status.st_size;
  return file;
}

void readAt(const DataFile &file, int64_t offset, char *destination, int64_t bytes) {
  while (bytes > 0) {
    ssize_t n = pread(file.fd, destination, size_t(bytes), off_t(offset));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      throw Error("cannot read checkpoint data " + file.path + ": " + strerror(errno));
    if (n == 0)
      throw Error("checkpoint data " + file.path + " became shorter while it was read");
    destination += n;
    offset += n;
    bytes -= n;
  }
}

Shape shapeOf(const bundle::BundleEntryProto &entry) {
  Shape shape;
  for (const auto &dim : entry.shape().dim())
    shape.push_back(dim.size());
  return shape;
}

bool parseVarint(const char *&at, const char *end, uint64_t &value) {
  value = 0;
  for (int shift = 0; at < end && shift < 64; shift += 7) {
    auto byte = uint8_t(*at++);
    value |= uint64_t(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return false;
}

// Strings are stored as varint lengths, a checksum of the lengths, and the
// bytes. The entry's checksum takes each length as four bytes (eight where it
// needs them), not as the varint.
uint32_t stringsCrc(const std::vector<char> &stored, int64_t count) {
  const char *at = stored.data(), *end = at + stored.size();
  uint32_t crc = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t length;
    if (!parseVarint(at, end, length))
      return ~0u;
    crc = crc32c(crc, &length, length <= UINT32_MAX ? 4 : 8);
  }
  return crc32c(crc, at, size_t(end - at));
}

} // namespace

struct CheckpointReader::Impl {
  std::string prefix;
  BundleIndex index;
  std::vector<DataFile> files;
  std::vector<CheckpointTensor> tensors;

  void open();
  void checkEntry(const std::string &what, const bundle::BundleEntryProto &entry) const;
  const bundle::BundleEntryProto &entryOf(std::string_view name) const;
  const bundle::BundleEntryProto &checkedEntry(std::string_view name, int32_t dtype, const Shape &shape) const;

  // One stored piece, whole or slice: what it is called in messages, where it
  // lies in the tensor, and its bytes.
  struct Piece {
    std::string what;
    Region region;
    const bundle::BundleEntryProto *entry;
  };
  std::vector<Piece> piecesOf(std::string_view name, const bundle::BundleEntryProto &entry) const;

  void readWhole(const Piece &piece, char *destination) const;
  // What of the piece is wanted: take(bytes, offset in what is wanted, count).
  template <typename Visit> void readPart(const Piece &piece, const Region &wanted, Visit take) const;
  void verifyStrings(const Piece &piece) const;
  void verifySum(const Piece &piece, uint32_t crc) const;
  // Calls read(piece) for each piece that has elements of `wanted`; throws where some are in none.
  template <typename Read>
  void forEachPiece(std::string_view name, int32_t dtype, const Shape &fullShape, const Region &wanted,
                    Read read) const;
  // Calls visit(bytes, offset in the piece, count) for all of the piece's bytes.
  template <typename Visit> void stream(const Piece &piece, Visit visit) const;
};

void CheckpointReader::Impl::open() {
  index = readBundleIndex(indexPath(prefix));
  for (int shard = 0; shard < index.header.num_shards(); ++shard)
    files.push_back(openData(dataPath(prefix, shard, index.header.num_shards())));
  for (const auto &[key, entry] : index.entries) {
    bool isSlice = key.starts_with('\0');
    checkEntry(isSlice ? "a slice" : "tensor '" + key + "'", entry);
    if (isSlice)
      continue;
    CheckpointTensor tensor{key, entry.dtype(), shapeOf(entry), entry.size(), entry.slices_size()};
    if (elementSize(tensor.dtype))
      tensor.bytes = shapeElements(tensor.shape) * elementSize(tensor.dtype);
    tensors.push_back(std::move(tensor));
  }
}

// Everything that later code relies on, so that a damaged index cannot make it
// read outside of a file or of a buffer.
void CheckpointReader::Impl::checkEntry(const std::string &what, const bundle::BundleEntryProto &entry) const {
  auto damaged = [&](const std::string &why) {
    throw Error("checkpoint " + indexPath(prefix) + " is damaged: " + what + " " + why + "; take an older checkpoint");
  };
  int64_t count = shapeElements(shapeOf(entry));
  if (count < 0)
    damaged("has the shape " + shapeText(shapeOf(entry)));
  for (const auto &slice : entry.slices())
    if (slice.extent_size() != entry.shape().dim_size())
      damaged("has a slice of another rank");
  if (entry.slices_size())
    return;
  if (entry.shard_id() < 0 || size_t(entry.shard_id()) >= files.size())
    damaged("lies in data file " + std::to_string(entry.shard_id()) + " of " + std::to_string(files.size()));
  if (int64_t size = elementSize(entry.dtype()); size && count * size != entry.size())
    damaged("has " + std::to_string(entry.size()) + " bytes where " + typeName(entry.dtype()) +
            shapeText(shapeOf(entry)) + " needs " + std::to_string(count * size));
  const DataFile &file = files[size_t(entry.shard_id())];
  if (entry.offset() < 0 || entry.size() < 0 || entry.size() > INT64_MAX - entry.offset())
    damaged("has no valid place in its file");
  if (entry.offset() + entry.size() > file.bytes)
    throw Error("checkpoint data " + file.path + " is truncated: it has " + std::to_string(file.bytes) + " bytes, " +
                what + " ends at " + std::to_string(entry.offset() + entry.size()) +
                "; copy it again, or take an older checkpoint");
}

const bundle::BundleEntryProto &CheckpointReader::Impl::entryOf(std::string_view name) const {
  auto it = index.entries.find(name);
  if (it != index.entries.end() && !name.starts_with('\0'))
    return it->second;
  std::vector<std::string> names;
  for (const CheckpointTensor &tensor : tensors)
    names.push_back(tensor.name);
  throw Error("checkpoint " + prefix + " has no variable '" + std::string(name) + "'" + nearNamesHint(name, names));
}

const bundle::BundleEntryProto &CheckpointReader::Impl::checkedEntry(std::string_view name, int32_t dtype,
                                                                     const Shape &shape) const {
  const bundle::BundleEntryProto &entry = entryOf(name);
  if (entry.dtype() != dtype || shapeOf(entry) != shape)
    throw Error("variable '" + std::string(name) + "' is " + typeName(entry.dtype()) + shapeText(shapeOf(entry)) +
                " in checkpoint " + prefix + ", but " + typeName(dtype) + shapeText(shape) +
                " in the program; take a checkpoint of the same graph");
  if (!elementSize(dtype))
    throw Error("variable '" + std::string(name) + "' is of " + typeName(dtype) + ", which cannot be read");
  return entry;
}

std::vector<CheckpointReader::Impl::Piece>
CheckpointReader::Impl::piecesOf(std::string_view name, const bundle::BundleEntryProto &entry) const {
  Shape shape = shapeOf(entry);
  std::string what = "variable '" + std::string(name) + "'";
  if (!entry.slices_size())
    return {{what, {Shape(shape.size(), 0), shape}, &entry}};
  std::vector<Piece> pieces;
  for (const auto &slice : entry.slices()) {
    std::vector<SliceExtent> extents;
    Region region;
    for (int axis = 0; axis < slice.extent_size(); ++axis) {
      const auto &extent = slice.extent(axis);
      bool all = extent.has_length_case() != bundle::TensorSliceProto::Extent::kLength;
      extents.push_back({extent.start(), all ? -1 : extent.length()});
      region.begin.push_back(extent.start());
      region.extent.push_back(all ? shape[size_t(axis)] : extent.length());
    }
    std::string piece = what + " slice " + regionText(region);
    auto it = index.entries.find(encodeSliceKey(name, extents));
    if (std::string error = regionError(shape, region); !error.empty())
      throw Error("checkpoint " + prefix + " is damaged: " + what + ": " + error);
    if (it == index.entries.end() || it->second.slices_size())
      throw Error("checkpoint " + prefix + " is damaged: " + piece + " is announced but not stored");
    if (it->second.dtype() != entry.dtype() || shapeOf(it->second) != region.extent)
      throw Error("checkpoint " + prefix + " is damaged: " + piece + " is stored as " + typeName(it->second.dtype()) +
                  shapeText(shapeOf(it->second)));
    pieces.push_back({piece, region, &it->second});
  }
  return pieces;
}

void CheckpointReader::Impl::verifySum(const Piece &piece, uint32_t crc) const {
  if (maskCrc32c(crc) != piece.entry->crc32c())
    throw Error("checkpoint data " + files[size_t(piece.entry->shard_id())].path + ": wrong checksum of " + piece.what +
                "; the file is damaged, take an older checkpoint or copy it again");
}

template <typename Visit> void CheckpointReader::Impl::stream(const Piece &piece, Visit visit) const {
  const DataFile &file = files[size_t(piece.entry->shard_id())];
  std::vector<char> buffer(size_t(std::min(kChunk, piece.entry->size())));
  uint32_t crc = 0;
  for (int64_t at = 0; at < piece.entry->size(); at += kChunk) {
    int64_t bytes = std::min(kChunk, piece.entry->size() - at);
    readAt(file, piece.entry->offset() + at, buffer.data(), bytes);
    crc = crc32c(crc, buffer.data(), size_t(bytes));
    visit(buffer.data(), at, bytes);
  }
  if (piece.entry->dtype() != kVariantDtype) // whose checksum only its own decoder knows
    verifySum(piece, crc);
}

void CheckpointReader::Impl::readWhole(const Piece &piece, char *destination) const {
  const DataFile &file = files[size_t(piece.entry->shard_id())];
  uint32_t crc = 0;
  for (int64_t at = 0; at < piece.entry->size(); at += kChunk) {
    int64_t bytes = std::min(kChunk, piece.entry->size() - at);
    readAt(file, piece.entry->offset() + at, destination + at, bytes);
    crc = crc32c(crc, destination + at, size_t(bytes));
  }
  verifySum(piece, crc);
}

template <typename Visit>
void CheckpointReader::Impl::readPart(const Piece &piece, const Region &wanted, Visit take) const {
  int64_t size = elementSize(piece.entry->dtype());
  RegionRuns runs(piece.region, wanted);
  int64_t from = 0, to = 0, left = 0; // the current run, in bytes
  auto advance = [&] {
    bool more = runs.next(from, to, left);
    from *= size, to *= size, left *= size;
    return more;
  };
  bool more = advance();
  stream(piece, [&](const char *bytes, int64_t start, int64_t count) {
    while (more && from < start + count) {
      int64_t now = std::min(left, start + count - from);
      take(bytes + (from - start), to, now);
      from += now, to += now, left -= now;
      if (left == 0)
        more = advance();
    }
  });
}

void CheckpointReader::Impl::verifyStrings(const Piece &piece) const {
  std::vector<char> stored(size_t(piece.entry->size()));
  readAt(files[size_t(piece.entry->shard_id())], piece.entry->offset(), stored.data(), piece.entry->size());
  verifySum(piece, stringsCrc(stored, shapeElements(shapeOf(*piece.entry))));
}

CheckpointReader::CheckpointReader(const std::string &prefix) : impl(new Impl) {
  impl->prefix = prefix;
  impl->open();
}
CheckpointReader::~CheckpointReader() = default;
CheckpointReader::CheckpointReader(CheckpointReader &&) noexcept = default;
CheckpointReader &CheckpointReader::operator=(CheckpointReader &&) noexcept = default;

const std::string &CheckpointReader::prefix() const { return impl->prefix; }
const std::vector<CheckpointTensor> &CheckpointReader::tensors() const { return impl->tensors; }

const CheckpointTensor *CheckpointReader::find(std::string_view name) const {
  auto it =
      std::lower_bound(impl->tensors.begin(), impl->tensors.end(), name,
                       [](const CheckpointTensor &tensor, std::string_view wanted) { return tensor.name < wanted; });
  return it != impl->tensors.end() && it->name == name ? &*it : nullptr;
}

const CheckpointTensor &CheckpointReader::at(std::string_view name) const {
  impl->entryOf(name); // throws
  return *find(name);
}

void CheckpointReader::read(std::string_view name, int32_t dtype, const Shape &shape, void *destination) const {
  readSlice(name, dtype, shape, Shape(shape.size(), 0), shape, destination);
}

template <typename Read>
void CheckpointReader::Impl::forEachPiece(std::string_view name, int32_t dtype, const Shape &fullShape,
                                          const Region &wanted, Read read) const {
  const bundle::BundleEntryProto &entry = checkedEntry(name, dtype, fullShape);
  if (std::string error = regionError(fullShape, wanted); !error.empty())
    throw Error("variable '" + std::string(name) + "': " + error);
  int64_t missing = shapeElements(wanted.extent);
  for (const Piece &piece : piecesOf(name, entry)) {
    const int64_t common = commonElements(piece.region, wanted);
    missing -= common;
    if (common || piece.region == wanted)
      read(piece);
  }
  // TensorFlow stores no element twice, so what is counted is what is covered.
  if (missing)
    throw Error("checkpoint " + prefix + " lacks " + std::to_string(missing) + " elements of variable '" +
                std::string(name) + "' " + regionText(wanted) + ": not all of its slices were saved");
}

void CheckpointReader::readSlice(std::string_view name, int32_t dtype, const Shape &fullShape, const Shape &begin,
                                 const Shape &extent, void *destination) const {
  const Region wanted{begin, extent};
  char *const to = static_cast<char *>(destination);
  impl->forEachPiece(name, dtype, fullShape, wanted, [&](const Impl::Piece &piece) {
    if (piece.region == wanted)
      impl->readWhole(piece, to);
    else
      impl->readPart(piece, wanted,
                     [to](const char *bytes, int64_t at, int64_t count) { memcpy(to + at, bytes, size_t(count)); });
  });
}

void CheckpointReader::readSliceInParts(std::string_view name, int32_t dtype, const Shape &fullShape,
                                        const Shape &begin, const Shape &extent, const Take &take) const {
  const Region wanted{begin, extent};
  impl->forEachPiece(name, dtype, fullShape, wanted,
                     [&](const Impl::Piece &piece) { impl->readPart(piece, wanted, take); });
}

std::string CheckpointReader::readString(std::string_view name) const {
  const bundle::BundleEntryProto &entry = impl->entryOf(name);
  if (entry.dtype() != kStringDtype || !shapeOf(entry).empty() || entry.slices_size())
    throw Error("'" + std::string(name) + "' of checkpoint " + impl->prefix + " is " + typeName(entry.dtype()) +
                shapeText(shapeOf(entry)) + ", and no string");
  impl->verifyStrings(impl->piecesOf(name, entry).front());
  std::vector<char> stored(size_t(entry.size()));
  readAt(impl->files[size_t(entry.shard_id())], entry.offset(), stored.data(), entry.size());
  const char *at = stored.data(), *end = at + stored.size();
  uint64_t length;
  // Behind the length is its checksum.
  if (!parseVarint(at, end, length) || uint64_t(end - at) != length + sizeof(uint32_t))
    throw Error("checkpoint " + impl->prefix + " is damaged: '" + std::string(name) +
                "' has another length than it says");
  return std::string(at + sizeof(uint32_t), end);
}

void CheckpointReader::verify(std::string_view name) const {
  for (const Impl::Piece &piece : impl->piecesOf(name, impl->entryOf(name)))
    if (piece.entry->dtype() == kStringDtype)
      impl->verifyStrings(piece);
    else
      impl->stream(piece, [](const char *, int64_t, int64_t) {});
}

} // namespace drt
