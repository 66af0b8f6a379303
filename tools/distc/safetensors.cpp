//===- safetensors.cpp - Hugging Face's tensor files ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Eight bytes of length, a JSON object {name: {dtype, shape, data_offsets}}, the
// tensors' bytes (huggingface/safetensors, README). There are no checksums.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/output_file.h"
#include "checkpoint/tensor_type.h"
#include "core/error.h"
#include "tools/distc/tensor_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace distc {
namespace {

using nlohmann::ordered_json;

constexpr std::pair<const char *, int32_t> kTypes[] = {
    {"F32", 1},   {"F64", 2},   {"I32", 3},  {"U8", 4},   {"I16", 5},  {"I8", 6},  {"I64", 9},
    {"BOOL", 10}, {"BF16", 14}, {"U16", 17}, {"F16", 19}, {"U32", 22}, {"U64", 23}};

class SafetensorsSource : public TensorSource {
public:
  explicit SafetensorsSource(const std::string &path) : path(path), file(path, std::ios::binary) {
    if (!file)
      throw drt::Error("cannot read " + path + ": " + strerror(errno));
    std::error_code error;
    auto size = std::filesystem::file_size(path, error);
    uint64_t headBytes = 0;
    file.read(reinterpret_cast<char *>(&headBytes), 8);
    if (error || size < 8 || headBytes > size - 8)
      damaged("it ends within its head");
    std::string head(headBytes, '\0');
    file.read(head.data(), std::streamsize(headBytes));
    start = 8 + headBytes;
    ordered_json json = ordered_json::parse(head, nullptr, false);
    if (!json.is_object())
      damaged("its head is no JSON object");
    for (const auto &[name, entry] : json.items())
      if (name != "__metadata__")
        addTensor(name, entry, size - start);
  }
  const std::vector<TensorHead> &tensors() const override { return heads; }
  void read(size_t i, void *destination) const override {
    file.seekg(std::streamoff(start + offsets[i]));
    if (!file.read(static_cast<char *>(destination), heads[i].bytes))
      damaged("tensor '" + heads[i].name + "' cannot be read");
  }

private:
  [[noreturn]] void damaged(const std::string &why) const {
    throw drt::Error(path + " is not a whole safetensors file: " + why);
  }

  void addTensor(const std::string &name, const ordered_json &entry, uint64_t available) {
    TensorHead head;
    head.name = name;
    uint64_t begin = 0, end = 0;
    std::string type;
    try {
      type = entry.at("dtype").get<std::string>();
      head.shape = entry.at("shape").get<std::vector<int64_t>>();
      begin = entry.at("data_offsets").at(0).get<uint64_t>();
      end = entry.at("data_offsets").at(1).get<uint64_t>();
    } catch (const ordered_json::exception &) {
      damaged("the head of tensor '" + name + "' lacks dtype, shape or data_offsets");
    }
    for (const auto &[text, number] : kTypes)
      if (type == text)
        head.dtype = number;
    if (!head.dtype)
      throw drt::Error(path + ": tensor '" + name + "' has the type " + type + ", which is not known");
    int64_t count = drt::shapeElements(head.shape);
    head.bytes = count * drt::elementSize(head.dtype);
    if (count < 0 || begin > end || end > available || end - begin != uint64_t(head.bytes))
      damaged("tensor '" + name + "' does not lie within it, or not with the size of its shape");
    heads.push_back(head);
    offsets.push_back(begin);
  }

  std::string path;
  mutable std::ifstream file;
  uint64_t start = 0;
  std::vector<TensorHead> heads;
  std::vector<uint64_t> offsets;
};

class SafetensorsSink : public TensorSink {
public:
  SafetensorsSink(const std::string &path, const std::vector<TensorHead> &tensors) : file(path), path(path) {
    ordered_json json = ordered_json::object();
    int64_t offset = 0;
    for (const TensorHead &head : tensors) {
      const char *type = nullptr;
      for (const auto &[text, number] : kTypes)
        if (head.dtype == number)
          type = text;
      if (!type)
        throw drt::Error("variable '" + head.name + "': safetensors has no type for " + drt::typeName(head.dtype));
      json[head.name] = {{"dtype", type}, {"shape", head.shape}, {"data_offsets", {offset, offset + head.bytes}}};
      offset += head.bytes;
    }
    std::string text = json.dump();
    text.append((8 - text.size() % 8) % 8, ' '); // the data begin aligned
    uint64_t bytes = text.size();
    file.write(&bytes, 8);
    file.write(text.data(), text.size());
  }
  void add(const TensorHead &head, const void *data) override { file.write(data, size_t(head.bytes)); }
  void finish() override {
    file.publish();
    drt::syncFolder(path);
  }

private:
  drt::OutputFile file;
  std::string path;
};

} // namespace

std::unique_ptr<TensorSource> openSafetensors(const std::string &path) {
  return std::make_unique<SafetensorsSource>(path);
}

std::unique_ptr<TensorSink> createSafetensors(const std::string &path, const std::vector<TensorHead> &tensors) {
  return std::make_unique<SafetensorsSink>(path, tensors);
}

} // namespace distc
