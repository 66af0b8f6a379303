//===- tuning.cpp - Algorithms that were timed, kept in a file ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/tuning.h"
#include "checkpoint/output_file.h"
#include "core/error.h"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

namespace drt::cuda {
namespace {

constexpr const char *title = "distc: matrix products that were timed, 1";

std::string asText(const cublasLtMatmulAlgo_t &algorithm) {
  std::string text;
  char word[17];
  for (uint64_t part : algorithm.data) {
    std::snprintf(word, sizeof word, "%016llx", static_cast<unsigned long long>(part));
    text += word;
  }
  return text;
}

bool readAlgorithm(const std::string &text, cublasLtMatmulAlgo_t &algorithm) {
  constexpr size_t digits = 16;
  if (text.size() != digits * std::size(algorithm.data) ||
      text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return false;
  for (size_t i = 0; i < std::size(algorithm.data); ++i)
    algorithm.data[i] = std::stoull(text.substr(i * digits, digits), nullptr, 16);
  return true;
}

} // namespace

Tuning::Tuning(std::string path) : path_(std::move(path)) { read(); }

void Tuning::read() {
  std::ifstream file(path_);
  if (!file)
    return;
  const auto wrong = [this](size_t number) {
    throw Error("--tune " + path_ + ": line " + std::to_string(number) +
                    " is not what a run writes there; name another file, or remove it",
                2);
  };
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (number == 1) {
      if (line != title)
        wrong(number);
      continue;
    }
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string field; std::getline(parts, field, '\t');)
      fields.push_back(field);
    TunedMatmul matmul;
    if (fields.size() != 5 || !readAlgorithm(fields[4], matmul.algorithm) ||
        std::sscanf(fields[1].c_str(), "%f", &matmul.us) != 1 ||
        std::sscanf(fields[2].c_str(), "%f", &matmul.heuristicUs) != 1)
      wrong(number);
    long long workspace = 0;
    if (std::sscanf(fields[3].c_str(), "%lld", &workspace) != 1 || workspace < 0)
      wrong(number);
    matmul.workspace = workspace;
    matmuls_.try_emplace(fields[0], matmul);
  }
}

std::optional<TunedMatmul> Tuning::find(const std::string &key) const {
  std::lock_guard lock(mutex_);
  const auto found = matmuls_.find(key);
  return found == matmuls_.end() ? std::nullopt : std::optional(found->second);
}

void Tuning::keep(const std::string &key, const TunedMatmul &matmul) {
  std::lock_guard lock(mutex_);
  matmuls_.insert_or_assign(key, matmul);
  changed_ = true;
}

void Tuning::save() {
  std::lock_guard lock(mutex_);
  if (!changed_)
    return;
  read();
  std::ostringstream text;
  text << title << '\n';
  for (const auto &[key, matmul] : matmuls_)
    text << key << '\t' << matmul.us << '\t' << matmul.heuristicUs << '\t' << matmul.workspace << '\t'
         << asText(matmul.algorithm) << '\n';
  OutputFile file(path_);
  const std::string lines = text.str();
  file.write(lines.data(), lines.size());
  file.publish();
  changed_ = false;
}

} // namespace drt::cuda
