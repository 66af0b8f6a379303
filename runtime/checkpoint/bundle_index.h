//===- bundle_index.h - The index file of a checkpoint --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A LevelDB table: the empty key holds the header, the others an entry each.
// Index files are small beside their data (a hundred bytes a tensor), so they
// are held in memory whole.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CHECKPOINT_BUNDLE_INDEX_H
#define DRT_CHECKPOINT_BUNDLE_INDEX_H

#include "checkpoint/bundle.pb.h"

#include <functional>
#include <map>
#include <string>

namespace drt {

namespace bundle = distc::checkpoint;

struct BundleIndex {
  bundle::BundleHeaderProto header;
  // Tensors by name, slices by encodeSliceKey, which begins with a zero byte.
  std::map<std::string, bundle::BundleEntryProto, std::less<>> entries;
};

// Throws drt::Error that names `path` where the file is missing, damaged, or of
// a kind that this reader does not know.
BundleIndex readBundleIndex(const std::string &path);

// The bytes of the index file.
std::string encodeBundleIndex(const BundleIndex &index);

// PREFIX.index, PREFIX.data-00000-of-00001
std::string indexPath(const std::string &prefix);
std::string dataPath(const std::string &prefix, int shard, int shards);

// Removes the data files of a prefix, whatever their number, but `except`.
void removeDataFiles(const std::string &prefix, const std::string &except = "");

} // namespace drt
#endif // DRT_CHECKPOINT_BUNDLE_INDEX_H
