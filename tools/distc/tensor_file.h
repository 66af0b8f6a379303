//===- tensor_file.h - Named tensors, whatever file they are in -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Checkpoints, .npz and .safetensors files, told by their name: the last two by
// their suffix, anything else is a checkpoint's prefix. Errors are drt::Error.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_TENSOR_FILE_H
#define DISTC_TOOLS_TENSOR_FILE_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace distc {

struct TensorHead {
  std::string name;
  int32_t dtype = 0; // TensorFlow's number
  std::vector<int64_t> shape;
  int64_t bytes = 0; // 0 with a type whose elements have no fixed size (strings)
};

class TensorSource {
public:
  virtual ~TensorSource() = default;
  virtual const std::vector<TensorHead> &tensors() const = 0;
  // tensors()[i].bytes bytes.
  virtual void read(size_t i, void *destination) const = 0;
};

class TensorSink {
public:
  virtual ~TensorSink() = default;
  // The tensors must come in the order of those that openSink was given.
  virtual void add(const TensorHead &head, const void *data) = 0;
  // Without it nothing is left.
  virtual void finish() = 0;
};

std::unique_ptr<TensorSource> openSource(const std::string &path);
std::unique_ptr<TensorSink> openSink(const std::string &path, const std::vector<TensorHead> &tensors);

// Hands over every tensor that has elements of a fixed size. Without exceptions, for callers that have none: what is
// wrong, or nothing.
std::string readTensors(const std::string &path,
                        const std::function<void(const TensorHead &, const std::vector<char> &)> &take);

// safetensors.cpp
std::unique_ptr<TensorSource> openSafetensors(const std::string &path);
std::unique_ptr<TensorSink> createSafetensors(const std::string &path, const std::vector<TensorHead> &tensors);

} // namespace distc
#endif // DISTC_TOOLS_TENSOR_FILE_H
