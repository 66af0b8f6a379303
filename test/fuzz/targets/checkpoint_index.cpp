//===- checkpoint_index.cpp - The index of a checkpoint -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "fuzz_target.h"
#include "input_file.h"

#include "checkpoint/bundle_index.h"
#include "checkpoint/slice_key.h"

using namespace drt;

std::vector<std::string> seeds() {
  BundleIndex index;
  index.header.set_num_shards(1);
  for (const char *name : {"dense/kernel", "dense/bias", "global_step"}) {
    bundle::BundleEntryProto &entry = index.entries[name];
    entry.set_size(24);
    entry.mutable_shape()->add_dim()->set_size(6);
    entry.add_slices();
    index.entries[encodeSliceKey(name, {{0, 6}})].set_size(24);
  }
  return {encodeBundleIndex(index)};
}

void readBytes(std::string_view bytes) {
  const InputFile file(bytes);
  const BundleIndex index = readBundleIndex(file.path());
  encodeBundleIndex(index);
}
