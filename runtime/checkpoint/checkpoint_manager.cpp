//===- checkpoint_manager.cpp - The checkpoints of a run ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/bundle_index.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/output_file.h"
#include "core/error.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace fs = std::filesystem;

namespace drt {
namespace {

// CheckpointState (tensorflow/python/training/checkpoint_state.proto) in
// protobuf's text form, which TensorFlow writes one field a line. Paths are
// relative to the folder, so that it can be moved.
struct CheckpointState {
  std::string newest;
  std::vector<std::string> all; // oldest first
};

constexpr std::string_view kNewest = "model_checkpoint_path:", kAll = "all_model_checkpoint_paths:";

std::string quote(const std::string &text) {
  std::string quoted = "\"";
  for (char c : text)
    if (c == '"' || c == '\\')
      quoted += std::string("\\") + c;
    else if (c == '\n')
      quoted += "\\n";
    else
      quoted += c;
  return quoted + "\"";
}

std::string unquote(std::string_view line) {
  size_t first = line.find('"'), last = line.rfind('"');
  std::string text;
  if (first == std::string_view::npos || first == last)
    return text;
  for (size_t i = first + 1; i < last; ++i) {
    if (line[i] != '\\' || i + 1 == last)
      text += line[i];
    else if (char escaped = line[++i]; escaped >= '0' && escaped <= '3' && i + 2 < last) {
      text += char((escaped - '0') * 64 + (line[i + 1] - '0') * 8 + (line[i + 2] - '0')); // a byte, in octal
      i += 2;
    } else
      text += escaped == 'n' ? '\n' : escaped;
  }
  return text;
}

CheckpointState readState(const std::string &directory) {
  CheckpointState state;
  std::ifstream file(directory + "/checkpoint");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kNewest))
      state.newest = unquote(line);
    else if (line.starts_with(kAll))
      state.all.push_back(unquote(line));
  return state;
}

void writeState(const std::string &directory, const CheckpointState &state) {
  std::string text = std::string(kNewest) + " " + quote(state.newest) + "\n";
  for (const std::string &path : state.all)
    text += std::string(kAll) + " " + quote(path) + "\n";
  OutputFile file(directory + "/checkpoint");
  file.write(text.data(), text.size());
  file.publish();
  syncFolder(directory + "/checkpoint");
}

std::string prefixOf(const std::string &directory, const std::string &path) {
  return path.starts_with('/') ? path : directory + "/" + path;
}

bool isComplete(const std::string &prefix) {
  try {
    CheckpointReader reader(prefix);
    return true;
  } catch (const Error &) {
    return false;
  }
}

void removeCheckpoint(const std::string &prefix) {
  unlink(indexPath(prefix).c_str()); // first: what has no index is no checkpoint
  unlink(inputPath(prefix).c_str());
  removeDataFiles(prefix);
}

// Takes what stands before it off a text.
bool takePrefix(std::string_view &text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool takeDigits(std::string_view &text) {
  size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(digits);
  return digits > 0;
}

constexpr std::string_view kName = "ckpt-";

// Whether a state file's path is that of a checkpoint which a run in this folder wrote: ckpt-STEP, nothing else. Only
// such are counted and removed: a state file may name whatever it likes, and in a folder that was copied absolute
// paths still lead to the old one.
bool isOwn(std::string_view path) {
  int64_t step = path.starts_with(kName) ? checkpointStep(path) : -1;
  return step >= 0 && path.substr(kName.size()) == std::to_string(step);
}

// ckpt-STEP.tempstatePID... or checkpoint.tempstatePID, of a run that was killed while it saved; of parts that several
// tasks write, with their run's number. Not those of `run`.
bool isTemporary(std::string_view name, uint64_t run) {
  bool checkpoint = takePrefix(name, kName) && takeDigits(name);
  if (!(checkpoint || takePrefix(name, "checkpoint")) || !takePrefix(name, ".tempstate"))
    return false;
  const std::string_view number = name.substr(0, name.find_first_not_of("0123456789"));
  return takeDigits(name) && (name.empty() || (checkpoint && name.starts_with('.'))) &&
         (run == 0 || number != std::to_string(run));
}

std::string prefixOfStep(const std::string &directory, int64_t step) {
  return directory + "/" + std::string(kName) + std::to_string(step);
}

std::string markOf(const std::string &directory, uint64_t run) {
  return directory + "/checkpoint.tempstate" + std::to_string(run);
}

} // namespace

int64_t checkpointStep(std::string_view prefix) {
  size_t dash = prefix.rfind('-');
  int64_t step = -1;
  if (dash == std::string_view::npos)
    return -1;
  std::string_view digits = prefix.substr(dash + 1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  bool whole = error == std::errc() && end == digits.data() + digits.size() && digits[0] != '-';
  return whole ? step : -1;
}

CheckpointManager::CheckpointManager(const std::string &directory, int keep) : directory(directory), keep(keep) {
  while (this->directory.size() > 1 && this->directory.ends_with('/'))
    this->directory.pop_back();
}

void CheckpointManager::removeTemporaries(uint64_t run) const {
  std::error_code ignored;
  for (const auto &file : fs::directory_iterator(directory, ignored))
    if (isTemporary(file.path().filename().string(), run))
      fs::remove(file.path(), ignored);
}

bool CheckpointManager::leaveMark(uint64_t run) const {
  std::error_code ignored;
  fs::create_directories(directory, ignored);
  std::ofstream mark(markOf(directory, run));
  return mark.good();
}

void CheckpointManager::removeMark(uint64_t run) const { unlink(markOf(directory, run).c_str()); }

bool CheckpointManager::seesMark(const std::string &directory, uint64_t run) {
  return access(markOf(directory, run).c_str(), R_OK | W_OK) == 0 && access(directory.c_str(), W_OK) == 0;
}

// More than a run keeps are there where it goes on with fewer, or in another's folder: on a disk that is full of them
// no checkpoint could be written before they go. As many stay as are kept, of those that can be read.
void CheckpointManager::removeSurplus() const {
  CheckpointState state = readState(directory);
  if (keep <= 0 || std::count_if(state.all.begin(), state.all.end(), isOwn) <= keep)
    return;
  std::vector<std::string> kept, old;
  int found = 0;
  for (auto it = state.all.rbegin(); it != state.all.rend(); ++it)
    if (isOwn(*it) && std::find(kept.begin(), kept.end(), *it) == kept.end()) {
      (found == keep ? old : kept).push_back(*it);
      found += found < keep && isComplete(directory + "/" + *it);
    }
  if (old.empty())
    return;
  // Before the state, for which there may be no room; who reads it looks for what it names.
  for (const std::string &path : old)
    removeCheckpoint(directory + "/" + path);
  std::erase_if(state.all,
                [&](const std::string &path) { return std::find(old.begin(), old.end(), path) != old.end(); });
  writeState(directory, state);
}

std::string CheckpointManager::save(int64_t step, const std::function<void(CheckpointWriter &)> &write,
                                    const std::string &input) {
  return savePart(step, {}, write, {}, input);
}

void CheckpointManager::saveOtherPart(const std::string &directory, int64_t step, const CheckpointPart &part,
                                      const std::function<void(CheckpointWriter &)> &write) {
  CheckpointWriter writer(prefixOfStep(directory, step), part);
  write(writer);
  writer.finishPart();
}

void CheckpointManager::removeOtherPart(const std::string &directory, int64_t step, const CheckpointPart &part) {
  CheckpointWriter::removePart(prefixOfStep(directory, step), part);
}

std::string CheckpointManager::savePart(int64_t step, const CheckpointPart &part,
                                        const std::function<void(CheckpointWriter &)> &write,
                                        const std::function<void()> &wait, const std::string &input) {
  removeTemporaries(part.run);
  removeSurplus();
  std::string name = std::string(kName) + std::to_string(step), prefix = prefixOfStep(directory, step);
  {
    CheckpointWriter writer(prefix, part);
    write(writer);
    const std::string beside = inputPath(prefix);
    const bool isNew = access(beside.c_str(), F_OK) != 0;
    // Before there is an index: a checkpoint is never without it.
    if (input.empty())
      unlink(beside.c_str());
    else
      writeInput(prefix, input);
    try {
      writer.finish(wait);
    } catch (...) {
      if (isNew)
        unlink(beside.c_str());
      throw;
    }
  }
  CheckpointState state = readState(directory);
  std::erase_if(state.all, [&](const std::string &path) { return prefixOf(directory, path) == prefix; });
  state.all.push_back(name);
  state.newest = name;
  std::vector<std::string> kept = state.all, old;
  auto surplus = keep > 0 ? std::count_if(kept.begin(), kept.end(), isOwn) - keep : 0;
  std::erase_if(kept, [&](const std::string &path) {
    bool goes = surplus > 0 && isOwn(path);
    if (goes) {
      --surplus;
      old.push_back(path);
    }
    return goes;
  });
  // Named until they are gone: what a run that is killed here leaves of them, the next one's saves remove.
  writeState(directory, state);
  for (const std::string &path : old)
    removeCheckpoint(directory + "/" + path);
  if (!old.empty()) {
    state.all = kept;
    writeState(directory, state);
  }
  return prefix;
}

void CheckpointManager::writeInput(const std::string &prefix, const std::string &input) {
  OutputFile file(inputPath(prefix), prefix + ".tempstate" + std::to_string(getpid()) + ".input");
  file.write(input.data(), input.size());
  file.publish();
}

std::string CheckpointManager::latest(const std::function<bool(const std::string &)> &isSound) const {
  CheckpointState state = readState(directory);
  std::vector<std::string> candidates;
  const auto add = [&](const std::string &prefix) {
    if (access(indexPath(prefix).c_str(), F_OK) == 0 &&
        std::find(candidates.begin(), candidates.end(), prefix) == candidates.end())
      candidates.push_back(prefix);
  };
  if (!state.newest.empty())
    add(prefixOf(directory, state.newest));
  for (auto it = state.all.rbegin(); it != state.all.rend(); ++it)
    add(prefixOf(directory, *it));

  // Those that no state file names, the largest step first.
  std::vector<std::pair<int64_t, std::string>> found;
  std::error_code ignored;
  for (const auto &file : fs::directory_iterator(directory, ignored))
    if (file.path().extension() == ".index")
      if (std::string stem = file.path().stem().string(); checkpointStep(stem) >= 0)
        found.emplace_back(checkpointStep(stem), directory + "/" + stem);
  std::sort(found.rbegin(), found.rend());
  for (const auto &[step, prefix] : found)
    add(prefix);

  auto complete = isSound ? std::find_if(candidates.begin(), candidates.end(), isSound)
                          : std::find_if(candidates.begin(), candidates.end(), isComplete);
  return complete == candidates.end() ? "" : *complete;
}

void CheckpointManager::clear() {
  removeTemporaries();
  // The state first: it never names what is gone.
  CheckpointState state = readState(directory);
  std::erase_if(state.all, isOwn);
  if (state.all.empty() && (state.newest.empty() || isOwn(state.newest))) {
    unlink((directory + "/checkpoint").c_str());
  } else {
    if (isOwn(state.newest))
      state.newest = state.all.back();
    writeState(directory, state);
  }
  std::vector<std::string> own;
  std::error_code ignored;
  for (const auto &file : fs::directory_iterator(directory, ignored))
    if (file.path().extension() == ".index" && isOwn(file.path().stem().string()))
      own.push_back(file.path().stem().string());
  for (const std::string &name : own)
    removeCheckpoint(directory + "/" + name);
}

} // namespace drt
