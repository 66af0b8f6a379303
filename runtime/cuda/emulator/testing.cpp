//===- testing.cpp - What tests make the emulated machine do --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/testing.h"

#include "cuda/emulator/machine.h"
#include "cuda/emulator/table.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

using namespace drt::cuda;
using namespace drt::cuda::emulated;

namespace {
struct Injections {
  struct Injection {
    int status, after;
  };
  std::mutex mutex;
  std::map<std::string, Injection> calls, kernels;
  std::map<CUresult, std::string> messages;
  std::map<std::string, long> counts; // of calls, where somebody wants to know
  const char *const countsFile = std::getenv("DRT_EMULATED_COUNTS");

  // The environment's, "function:status:after".
  Injections() {
    const char *wanted = std::getenv("DRT_EMULATED_FAIL");
    std::istringstream text(wanted ? wanted : "");
    std::string function;
    Injection injection = {0, 0};
    char colon;
    if (std::getline(text, function, ':') && text >> injection.status) {
      text >> colon >> injection.after;
      calls[function] = injection;
    }
    if (countsFile)
      std::atexit(writeCounts);
  }

  static void writeCounts();

  void count(const std::string &name) {
    if (!countsFile)
      return;
    std::lock_guard lock(mutex);
    ++counts[name];
  }

  std::optional<int> take(std::map<std::string, Injection> &from, const std::string &name) {
    std::lock_guard lock(mutex);
    auto found = from.find(name);
    if (found == from.end() || found->second.after-- > 0)
      return std::nullopt;
    int status = found->second.status;
    from.erase(found);
    return status;
  }
};

// Never destroyed: threads that outlive main may still ask.
Injections &injections() {
  static auto *all = new Injections();
  return *all;
}

// A process of several adds its own.
void Injections::writeCounts() {
  Injections &all = injections();
  std::lock_guard lock(all.mutex);
  std::ostringstream lines;
  for (const auto &[name, count] : all.counts)
    lines << name << ' ' << count << '\n';
  std::ofstream(all.countsFile, std::ios::app) << lines.str();
}

// cuMemAlloc_v2 is cuMemAlloc in the manual.
std::string manualName(std::string name) {
  size_t version = name.rfind("_v");
  if (version != std::string::npos && version + 3 == name.size() && !name.starts_with("cudnn"))
    name.resize(version);
  return name;
}
} // namespace

std::optional<int> emulated::injected(const char *function) {
  const std::string name = manualName(function);
  injections().count(name);
  return injections().take(injections().calls, name);
}
std::optional<int> emulated::injectedInKernel(const std::string &kernel) {
  return injections().take(injections().kernels, kernel);
}

void emulated::remember(const Failure &failure) {
  std::lock_guard lock(injections().mutex);
  injections().messages[failure.code] = failure.what();
}

std::string emulated::messageOf(CUresult code) {
  std::lock_guard lock(injections().mutex);
  auto found = injections().messages.find(code);
  return found == injections().messages.end() ? "" : found->second;
}

void emulated::failCall(const std::string &function, int status, int after) {
  std::lock_guard lock(injections().mutex);
  injections().calls[function] = {status, after};
}

void emulated::failKernel(const std::string &kernel, CUresult status) {
  std::lock_guard lock(injections().mutex);
  injections().kernels[kernel] = {status, 0};
}

void emulated::seed(uint64_t value) {
  Lock lock(Machine::get().mutex);
  Machine::get().engine.seed(value);
}

void emulated::setDevices(int count) {
  Lock lock(Machine::get().mutex);
  auto &devices = Machine::get().devices;
  devices.clear();
  for (int i = 0; i < count; ++i)
    devices.push_back(std::make_unique<Device>());
}

void emulated::forgiveFailures() {
  Lock lock(Machine::get().mutex);
  for (auto &device : Machine::get().devices)
    device->failure = CUDA_SUCCESS;
}
