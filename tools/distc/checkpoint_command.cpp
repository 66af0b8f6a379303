//===- checkpoint_command.cpp - distc checkpoint --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/distc/checkpoint_command.h"
#include "core/flag_errors.h"

#include "checkpoint/checkpoint.h"
#include "checkpoint/tensor_type.h"
#include "core/error.h"
#include "tools/distc/tensor_difference.h"
#include "tools/distc/tensor_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

namespace distc {
namespace {

int listTensors(const std::string &prefix) {
  drt::CheckpointReader reader(prefix);
  size_t width = 4;
  for (const drt::CheckpointTensor &tensor : reader.tensors())
    width = std::max(width, tensor.name.size());
  printf("%-*s  %-10s  %-16s  %12s  %6s  %s\n", int(width), "name", "dtype", "shape", "bytes", "slices", "checksum");
  int64_t bytes = 0;
  int status = 0;
  for (const drt::CheckpointTensor &tensor : reader.tensors()) {
    std::string sum = "ok";
    try {
      reader.verify(tensor.name);
    } catch (const drt::Error &error) {
      sum = error.what();
      status = 1;
    }
    std::string slices = tensor.slices ? std::to_string(tensor.slices) : "-";
    printf("%-*s  %-10s  %-16s  %12lld  %6s  %s\n", int(width), tensor.name.c_str(),
           drt::typeName(tensor.dtype).c_str(), drt::shapeText(tensor.shape).c_str(),
           static_cast<long long>(tensor.bytes), slices.c_str(), sum.c_str());
    bytes += tensor.bytes;
  }
  printf("%zu tensors, %lld bytes\n", reader.tensors().size(), static_cast<long long>(bytes));
  return status;
}

int diffTensors(const std::string &pathA, const std::string &pathB) {
  std::unique_ptr<TensorSource> a = openSource(pathA), b = openSource(pathB);
  std::map<std::string, std::pair<int64_t, int64_t>> names; // positions in a and b, -1: not there
  for (size_t i = 0; i < a->tensors().size(); ++i)
    names[a->tensors()[i].name] = {int64_t(i), -1};
  for (size_t i = 0; i < b->tensors().size(); ++i)
    names.try_emplace(b->tensors()[i].name, -1, -1).first->second.second = int64_t(i);

  size_t differing = 0;
  std::vector<char> bytesA, bytesB;
  for (const auto &[name, at] : names) {
    std::string text;
    if (at.first < 0 || at.second < 0) {
      text = "only in " + (at.first < 0 ? pathB : pathA);
    } else {
      const TensorHead &headA = a->tensors()[size_t(at.first)], &headB = b->tensors()[size_t(at.second)];
      if (headA.dtype != headB.dtype || headA.shape != headB.shape) {
        text = drt::typeName(headA.dtype) + drt::shapeText(headA.shape) + " and " + drt::typeName(headB.dtype) +
               drt::shapeText(headB.shape);
      } else if (!drt::elementSize(headA.dtype)) {
        fprintf(stderr, "note: '%s' is not compared: its type is %s\n", name.c_str(),
                drt::typeName(headA.dtype).c_str());
      } else {
        bytesA.resize(size_t(headA.bytes));
        bytesB.resize(size_t(headB.bytes));
        a->read(size_t(at.first), bytesA.data());
        b->read(size_t(at.second), bytesB.data());
        text = differenceText(headA.dtype, bytesA, bytesB);
      }
    }
    if (text.empty())
      continue;
    ++differing;
    printf("%s: %s\n", name.c_str(), text.c_str());
  }
  if (differing)
    printf("%zu of %zu tensors differ\n", differing, names.size());
  else
    printf("%zu tensors are equal\n", names.size());
  return differing ? 1 : 0;
}

int convert(const std::string &from, const std::string &to) {
  std::unique_ptr<TensorSource> source = openSource(from);
  std::vector<TensorHead> heads;
  std::vector<size_t> positions;
  for (size_t i = 0; i < source->tensors().size(); ++i) {
    const TensorHead &head = source->tensors()[i];
    if (!drt::elementSize(head.dtype)) {
      fprintf(stderr, "note: '%s' is left out: its type is %s\n", head.name.c_str(), drt::typeName(head.dtype).c_str());
      continue;
    }
    heads.push_back(head);
    positions.push_back(i);
  }
  std::unique_ptr<TensorSink> sink = openSink(to, heads);
  std::vector<char> bytes;
  for (size_t i = 0; i < heads.size(); ++i) {
    bytes.resize(size_t(heads[i].bytes));
    source->read(positions[i], bytes.data());
    sink->add(heads[i], bytes.data());
  }
  sink->finish();
  printf("%zu tensors written to %s\n", heads.size(), to.c_str());
  return 0;
}

bool isTensorFile(const std::string &path) { return path.ends_with(".npz") || path.ends_with(".safetensors"); }

// For CLI11: "" where it is well.
std::string mustBeTensorFile(const std::string &path) {
  return isTensorFile(path) ? "" : path + " must end in .npz or .safetensors";
}
std::string mustBePrefix(const std::string &path) {
  return isTensorFile(path) ? path + " must be a checkpoint's prefix" : "";
}

// Of a folder of checkpoints the newest complete one, damaged or not: that is what is looked for here.
std::string takeNewest(const std::string &path) {
  if (!std::filesystem::is_directory(path))
    return path;
  const std::string newest = drt::CheckpointManager(path).latest();
  if (newest.empty())
    throw drt::Error("'" + path + "' holds no complete checkpoint");
  return newest;
}

} // namespace

void declareCheckpointCommand(CLI::App &app, CheckpointArguments &arguments) {
  app.require_subcommand(1);
  auto &[from, to, list, diff, write, read] = arguments;
  list = app.add_subcommand("list", "Print every tensor with its type, shape, bytes, slices and checksum");
  list->add_option("PREFIX", from, "The checkpoint, without .index, or a folder: its newest one")
      ->required()
      ->check(mustBePrefix);
  diff = app.add_subcommand("diff", "Print the largest differences of each tensor; exit status 1 where there are any");
  diff->add_option("A", from, "A checkpoint's prefix, a folder of checkpoints, or an .npz or .safetensors file")
      ->required();
  diff->add_option("B", to, "What it is compared with")->required();
  write = app.add_subcommand("export", "Write a checkpoint as .npz or .safetensors");
  write->add_option("PREFIX", from, "The checkpoint, without .index")->required()->check(mustBePrefix);
  write->add_option("OUT", to, "OUT.npz or OUT.safetensors")->required()->check(mustBeTensorFile);
  read = app.add_subcommand("import", "Write an .npz or .safetensors file as a checkpoint");
  read->add_option("IN", from, "IN.npz or IN.safetensors")->required()->check(mustBeTensorFile);
  read->add_option("PREFIX", to, "The checkpoint to write, without .index")->required()->check(mustBePrefix);
}

int checkpointCommand(int argc, const char *const *argv) {
  CLI::App app("List, compare and convert TensorFlow's checkpoints", "distc checkpoint");
  CheckpointArguments arguments;
  declareCheckpointCommand(app, arguments);
  auto &[from, to, list, diff, write, read] = arguments;
  try {
    app.parse(argc, argv);
    if (!read->parsed())
      from = takeNewest(from);
    if (diff->parsed())
      to = takeNewest(to);
    if (list->parsed())
      return listTensors(from);
    return diff->parsed() ? diffTensors(from, to) : convert(from, to);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error); // --help
    fprintf(stderr, "distc: error: %s (distc checkpoint --help lists what there is)\n",
            drt::describeFlagError(app, error).c_str());
    return 2;
  } catch (const drt::Error &error) {
    fprintf(stderr, "error: %s\n", error.what());
    return error.exitStatus();
  } catch (const std::bad_alloc &) {
    fprintf(stderr, "error: not enough memory for a tensor of %s\n", arguments.from.c_str());
    return 1;
  } catch (const std::exception &error) { // JSON's, of a name that is not UTF-8
    fprintf(stderr, "error: %s: %s\n", arguments.from.c_str(), error.what());
    return 1;
  }
}

} // namespace distc
