//===- tensor_file.cpp - Named tensors, whatever file they are in ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/distc/tensor_file.h"

#include "checkpoint/checkpoint.h"
#include "checkpoint/tensor_type.h"
#include "core/error.h"
#include "data/npz.h"

#include <cstring>

namespace distc {
namespace {

class CheckpointSource : public TensorSource {
public:
  explicit CheckpointSource(const std::string &prefix) : reader(prefix) {
    for (const drt::CheckpointTensor &tensor : reader.tensors())
      heads.push_back({tensor.name, tensor.dtype, tensor.shape, drt::elementSize(tensor.dtype) ? tensor.bytes : 0});
  }
  const std::vector<TensorHead> &tensors() const override { return heads; }
  void read(size_t i, void *destination) const override {
    reader.read(heads[i].name, heads[i].dtype, heads[i].shape, destination);
  }

private:
  drt::CheckpointReader reader;
  std::vector<TensorHead> heads;
};

class NpzSource : public TensorSource {
public:
  explicit NpzSource(const std::string &path) : reader(path) {
    for (const std::string &name : reader.names()) {
      // Only the head is kept: unpacked members would not all fit into memory.
      drt::NpyArray array = reader.read(name);
      heads.push_back({name, array.dtype, array.shape, array.bytes});
    }
  }
  const std::vector<TensorHead> &tensors() const override { return heads; }
  void read(size_t i, void *destination) const override {
    drt::NpyArray array = reader.read(heads[i].name);
    if (array.bytes)
      memcpy(destination, array.data, size_t(array.bytes));
  }

private:
  drt::NpzReader reader;
  std::vector<TensorHead> heads;
};

class CheckpointSink : public TensorSink {
public:
  explicit CheckpointSink(const std::string &prefix) : writer(prefix) {}
  void add(const TensorHead &head, const void *data) override { writer.add(head.name, head.dtype, head.shape, data); }
  void finish() override { writer.finish(); }

private:
  drt::CheckpointWriter writer;
};

class NpzSink : public TensorSink {
public:
  explicit NpzSink(const std::string &path) : writer(path) {}
  void add(const TensorHead &head, const void *data) override { writer.add(head.name, head.dtype, head.shape, data); }
  void finish() override { writer.finish(); }

private:
  drt::NpzWriter writer;
};

} // namespace

std::unique_ptr<TensorSource> openSource(const std::string &path) {
  if (path.ends_with(".npz"))
    return std::make_unique<NpzSource>(path);
  if (path.ends_with(".safetensors"))
    return openSafetensors(path);
  return std::make_unique<CheckpointSource>(path);
}

std::unique_ptr<TensorSink> openSink(const std::string &path, const std::vector<TensorHead> &tensors) {
  if (path.ends_with(".npz"))
    return std::make_unique<NpzSink>(path);
  if (path.ends_with(".safetensors"))
    return createSafetensors(path, tensors);
  return std::make_unique<CheckpointSink>(path);
}

std::string readTensors(const std::string &path,
                        const std::function<void(const TensorHead &, const std::vector<char> &)> &take) try {
  std::unique_ptr<TensorSource> source = openSource(path);
  std::vector<char> bytes;
  for (size_t i = 0; i < source->tensors().size(); ++i) {
    const TensorHead &head = source->tensors()[i];
    bytes.resize(static_cast<size_t>(head.bytes));
    source->read(i, bytes.data());
    take(head, bytes);
  }
  return "";
} catch (const std::exception &error) {
  return error.what();
}

} // namespace distc
