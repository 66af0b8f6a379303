//===- checkpoint_writer.cpp - Writing TensorFlow's V2 checkpoints --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/bundle_index.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/crc32c.h"
#include "checkpoint/output_file.h"
#include "checkpoint/slice_key.h"
#include "checkpoint/slice_region.h"
#include "checkpoint/tensor_type.h"
#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <unistd.h>

namespace drt {
namespace {

std::string createFolder(const std::string &prefix) {
  std::error_code error;
  std::filesystem::create_directories(folderOf(prefix), error);
  if (error)
    throw Error("cannot make the folder of checkpoint " + prefix + ": " + error.message());
  return prefix;
}

void setShape(bundle::TensorShapeProto *proto, const Shape &shape) {
  for (int64_t extent : shape)
    proto->add_dim()->set_size(extent);
}

Shape shapeOf(const bundle::BundleEntryProto &entry) {
  Shape shape;
  for (const auto &dim : entry.shape().dim())
    shape.push_back(dim.size());
  return shape;
}

// What is summed up is written while it is in the cache.
using NextChunk = std::function<const char *(int64_t at, int64_t bytes)>;

NextChunk chunksOf(const void *bytes) {
  return [bytes](int64_t at, int64_t) { return static_cast<const char *>(bytes) + at; };
}

NextChunk chunksOf(const CheckpointWriter::Source &source) {
  return [&source, buffer = std::vector<char>()](int64_t at, int64_t bytes) mutable {
    buffer.resize(std::max(buffer.size(), size_t(bytes)));
    source(buffer.data(), at, bytes);
    return static_cast<const char *>(buffer.data());
  };
}

// Where files are until they are published.
std::string temporaryOf(const std::string &prefix, const CheckpointPart &part) {
  return prefix + ".tempstate" + std::to_string(part.parts > 1 ? part.run : static_cast<uint64_t>(getpid()));
}

std::string partDataPath(const std::string &temporary, int number) {
  return temporary + ".data" + (number ? "-" + std::to_string(number) : "");
}

std::string partIndexPath(const std::string &temporary, int number) {
  return temporary + ".index-" + std::to_string(number);
}

void removePartFiles(const std::string &temporary, int number) {
  unlink(partIndexPath(temporary, number).c_str()); // first: it says that both are there
  unlink(partDataPath(temporary, number).c_str());
}

} // namespace

struct CheckpointWriter::Impl {
  std::string prefix;
  std::string temporary;
  OutputFile data;
  BundleIndex index;
  std::map<std::string, std::vector<Region>, std::less<>> slices; // of the tensors that are added in slices

  const CheckpointPart part;

  Impl(const std::string &prefix, const CheckpointPart &part)
      : prefix(createFolder(prefix)), temporary(temporaryOf(prefix, part)),
        data(dataPath(prefix, part.part, part.parts), dataOf(part.part)), part(part) {
    index.header.set_num_shards(part.parts);
    index.header.mutable_version()->set_producer(1);
  }

  std::string dataOf(int number) const { return partDataPath(temporary, number); }
  std::string indexOf(int number) const { return partIndexPath(temporary, number); }

  void store(const std::string &key, const std::string &name, int32_t dtype, const Shape &shape, const NextChunk &next);
  void storeString(const std::string &name, std::string_view text);
  void addSlice(const std::string &name, int32_t dtype, const Shape &fullShape, const Region &region,
                const NextChunk &next);
  bundle::BundleEntryProto &wholeOf(const std::string &name, int32_t dtype, const Shape &fullShape);
  void addRegion(const std::string &name, const Region &region);
  void checkCovered() const;
  void takePart(int number);
  void takeSlices(const std::string &name, const bundle::BundleEntryProto &entry);
  // What the others have left for this one.
  void removeParts() const;
};

void CheckpointWriter::Impl::store(const std::string &key, const std::string &name, int32_t dtype, const Shape &shape,
                                   const NextChunk &next) {
  int64_t size = shapeElements(shape) * elementSize(dtype);
  if (name.empty() || name[0] == '\0' || size < 0 || !elementSize(dtype))
    throw Error("cannot write variable '" + name + "' as " + typeName(dtype) + shapeText(shape) + " to checkpoint " +
                prefix);
  bundle::BundleEntryProto entry;
  entry.set_dtype(dtype);
  setShape(entry.mutable_shape(), shape);
  entry.set_offset(data.position());
  entry.set_size(size);
  uint32_t crc = 0;
  for (int64_t at = 0; at < size; at += kChunk) {
    auto count = size_t(std::min(kChunk, size - at));
    const char *chunk = next(at, int64_t(count));
    crc = crc32c(crc, chunk, count);
    data.write(chunk, count);
  }
  entry.set_crc32c(maskCrc32c(crc));
  if (!index.entries.emplace(key, std::move(entry)).second)
    throw Error("variable '" + name + "' is written twice to checkpoint " + prefix);
}

// As tensor_bundle.cc's WriteStringTensor: the length as a varint, a masked checksum of the length, the bytes.
// Checksums take the length as four bytes, eight where it needs them.
void CheckpointWriter::Impl::storeString(const std::string &name, std::string_view text) {
  std::string stored;
  uint64_t length = text.size();
  for (uint64_t left = length; stored.empty() || left; left >>= 7)
    stored.push_back(char((left & 0x7f) | (left >= 0x80 ? 0x80 : 0)));
  uint32_t crc = crc32c(0, &length, length <= UINT32_MAX ? 4 : 8);
  const uint32_t ofLength = maskCrc32c(crc);
  stored.append(reinterpret_cast<const char *>(&ofLength), sizeof ofLength);
  crc = crc32c(crc, &ofLength, sizeof ofLength);
  crc = crc32c(crc, text.data(), text.size());
  stored.append(text);
  bundle::BundleEntryProto entry;
  entry.set_dtype(kStringDtype);
  entry.mutable_shape();
  entry.set_offset(data.position());
  entry.set_size(int64_t(stored.size()));
  entry.set_crc32c(maskCrc32c(crc));
  data.write(stored.data(), stored.size());
  if (!index.entries.emplace(name, std::move(entry)).second)
    throw Error("'" + name + "' is written twice to checkpoint " + prefix);
}

void CheckpointWriter::Impl::addSlice(const std::string &name, int32_t dtype, const Shape &fullShape,
                                      const Region &region, const NextChunk &next) {
  bundle::BundleEntryProto &whole = wholeOf(name, dtype, fullShape);
  addRegion(name, region);
  std::vector<SliceExtent> extents;
  bundle::TensorSliceProto *slice = whole.add_slices();
  for (size_t axis = 0; axis < fullShape.size(); ++axis) {
    bundle::TensorSliceProto::Extent *extent = slice->add_extent();
    if (region.extent[axis] == fullShape[axis]) {
      extents.push_back({});
      continue;
    }
    extent->set_start(region.begin[axis]);
    extent->set_length(region.extent[axis]);
    extents.push_back({region.begin[axis], region.extent[axis]});
  }
  store(encodeSliceKey(name, extents), name, dtype, region.extent, next);
}

// The entry of a tensor that is written in slices.
bundle::BundleEntryProto &CheckpointWriter::Impl::wholeOf(const std::string &name, int32_t dtype,
                                                          const Shape &fullShape) {
  bundle::BundleEntryProto &whole = index.entries[name];
  if (slices[name].empty()) {
    if (whole.dtype()) // zero in a new entry alone
      throw Error("variable '" + name + "' is written twice to checkpoint " + prefix);
    whole.set_dtype(dtype);
    setShape(whole.mutable_shape(), fullShape);
  }
  if (const Shape before = shapeOf(whole); whole.dtype() != dtype || before != fullShape)
    throw Error("slices of variable '" + name + "' disagree: " + typeName(whole.dtype()) + shapeText(before) + " and " +
                typeName(dtype) + shapeText(fullShape));
  return whole;
}

void CheckpointWriter::Impl::addRegion(const std::string &name, const Region &region) {
  std::vector<Region> &stored = slices[name];
  for (const Region &other : stored)
    if (commonElements(other, region))
      throw Error("variable '" + name + "': slices " + regionText(other) + " and " + regionText(region) +
                  " of checkpoint " + prefix + " overlap");
  stored.push_back(region);
}

// Another part's tensors and slices are the checkpoint's.
void CheckpointWriter::Impl::takePart(int number) {
  const BundleIndex other = readBundleIndex(indexOf(number));
  for (const auto &[name, entry] : other.entries)
    if (entry.slices_size())
      takeSlices(name, entry);
  std::error_code error;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(dataOf(number), error));
  for (const auto &[key, entry] : other.entries) {
    if (entry.slices_size())
      continue;
    if (error || entry.offset() + entry.size() > bytes)
      throw Error("part " + std::to_string(number) + " of checkpoint " + prefix + " is not whole: " + dataOf(number));
    auto [own, isNew] = index.entries.emplace(key, entry);
    if (!isNew)
      throw Error("variable '" + key + "' is written twice to checkpoint " + prefix);
    own->second.set_shard_id(number);
  }
}

// Which slices another part has of a tensor.
void CheckpointWriter::Impl::takeSlices(const std::string &name, const bundle::BundleEntryProto &entry) {
  const Shape fullShape = shapeOf(entry);
  bundle::BundleEntryProto &whole = wholeOf(name, entry.dtype(), fullShape);
  for (const auto &slice : entry.slices()) {
    Region region{Shape(fullShape.size(), 0), fullShape};
    for (int axis = 0; axis < slice.extent_size(); ++axis)
      if (slice.extent(axis).has_length_case() == bundle::TensorSliceProto::Extent::kLength) {
        region.begin[size_t(axis)] = slice.extent(axis).start();
        region.extent[size_t(axis)] = slice.extent(axis).length();
      }
    addRegion(name, region);
    *whole.add_slices() = slice;
  }
}

void CheckpointWriter::Impl::removeParts() const {
  for (int number = 1; number < part.parts; ++number)
    removePartFiles(temporary, number);
}

void CheckpointWriter::Impl::checkCovered() const {
  for (const auto &[name, regions] : slices) {
    const bundle::BundleEntryProto &whole = index.entries.find(name)->second;
    int64_t missing = 1;
    for (const auto &dim : whole.shape().dim())
      missing *= dim.size();
    for (const Region &region : regions)
      missing -= shapeElements(region.extent);
    if (missing)
      throw Error("variable '" + name + "': " + std::to_string(missing) + " elements are in no slice of checkpoint " +
                  prefix);
  }
}

CheckpointWriter::CheckpointWriter(const std::string &prefix, const CheckpointPart &part)
    : impl(new Impl(prefix, part)) {}

CheckpointWriter::~CheckpointWriter() {
  if (impl->part.part == 0)
    impl->removeParts();
}

void CheckpointWriter::add(const std::string &name, int32_t dtype, const Shape &shape, const void *data) {
  impl->store(name, name, dtype, shape, chunksOf(data));
}

void CheckpointWriter::add(const std::string &name, int32_t dtype, const Shape &shape, const Source &source) {
  impl->store(name, name, dtype, shape, chunksOf(source));
}

void CheckpointWriter::addString(const std::string &name, std::string_view text) { impl->storeString(name, text); }

static Region checkedRegion(const std::string &name, const Shape &fullShape, const Shape &begin, const Shape &extent) {
  Region region{begin, extent};
  if (std::string error = regionError(fullShape, region); !error.empty())
    throw Error("variable '" + name + "': " + error);
  return region;
}

void CheckpointWriter::addSlice(const std::string &name, int32_t dtype, const Shape &fullShape, const Shape &begin,
                                const Shape &extent, const void *data) {
  const Region region = checkedRegion(name, fullShape, begin, extent);
  if (extent == fullShape)
    return add(name, dtype, fullShape, data);
  impl->addSlice(name, dtype, fullShape, region, chunksOf(data));
}

void CheckpointWriter::addSlice(const std::string &name, int32_t dtype, const Shape &fullShape, const Shape &begin,
                                const Shape &extent, const Source &source) {
  const Region region = checkedRegion(name, fullShape, begin, extent);
  if (extent == fullShape)
    return add(name, dtype, fullShape, source);
  impl->addSlice(name, dtype, fullShape, region, chunksOf(source));
}

void CheckpointWriter::finish(const std::function<void()> &wait) {
  const CheckpointPart &part = impl->part;
  // Whatever needs room on the disk comes before the first visible change.
  impl->data.sync();
  for (int number = 1; number < part.parts; ++number) {
    while (access(impl->indexOf(number).c_str(), F_OK) != 0)
      wait();
    impl->takePart(number);
  }
  impl->checkCovered();
  std::string indexTarget = indexPath(impl->prefix);
  std::vector<std::string> targets;
  for (int number = 0; number < part.parts; ++number)
    targets.push_back(dataPath(impl->prefix, number, part.parts));
  OutputFile index(indexTarget, impl->temporary + ".index");
  std::string bytes = encodeBundleIndex(impl->index);
  index.write(bytes.data(), bytes.size());
  index.sync();

  // The old index must not point into the new data, nor the new into the old.
  if (unlink(indexTarget.c_str()) == 0)
    syncFolder(indexTarget);
  removeDataFiles(impl->prefix, targets[0]);
  try {
    impl->data.publish();
    for (int number = 1; number < part.parts; ++number)
      if (rename(impl->dataOf(number).c_str(), targets[size_t(number)].c_str()) != 0)
        throw Error(writeErrorText(targets[size_t(number)], errno));
    syncFolder(targets[0]);
    index.publish();
  } catch (const Error &) {
    for (const std::string &target : targets)
      unlink(target.c_str());
    throw;
  }
  syncFolder(indexTarget);
}

void CheckpointWriter::finishPart() {
  const int number = impl->part.part;
  OutputFile index(impl->indexOf(number), impl->indexOf(number) + ".new");
  const std::string bytes = encodeBundleIndex(impl->index);
  index.write(bytes.data(), bytes.size());
  impl->data.leave();
  index.publish(); // says that both are there
}

void CheckpointWriter::removePart(const std::string &prefix, const CheckpointPart &part) {
  removePartFiles(temporaryOf(prefix, part), part.part);
}

} // namespace drt
