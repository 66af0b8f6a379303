//===- ExportGraphs.cpp - distc compile --emit=graphdef ------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "tools/distc/ExportGraphs.h"
#include "dialects/dfg/tensorflow/Export.h"
#include "dialects/dist/Dist.h"
#include "passes/distribute/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace mlir;

namespace distc {
namespace {

/// TensorFlow's own examples begin with this port.
constexpr int kFirstPort = 2222;

/// {"worker": ["host:port", ...], "ps": [...]}; the tasks of a host have consecutive ports.
std::string makeCluster(dist::TopologyOp topology) {
  llvm::json::Array workers, servers;
  std::map<std::string, int> ports;
  for (auto task : topology.getTasks().getAsRange<dist::TaskAttr>()) {
    std::string host = task.getHost().str();
    int port = kFirstPort + ports[host]++;
    (task.getNumReplicas() > 0 ? workers : servers).push_back(host + ":" + std::to_string(port));
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv(
      "{0:2}\n", llvm::json::Value(llvm::json::Object{{"worker", std::move(workers)}, {"ps", std::move(servers)}}));
  return text;
}

/// Files that appear in a folder together, or not at all.
class Output {
public:
  Output(Session &session, llvm::StringRef folder) : session(session), folder(folder) {}
  ~Output() {
    if (!temporary.empty())
      llvm::sys::fs::remove_directories(temporary);
  }

  bool open() {
    if (llvm::sys::fs::exists(folder) && !llvm::sys::fs::is_directory(folder))
      return say("it is a file; name a folder with -o");
    llvm::StringRef parent = llvm::sys::path::parent_path(folder);
    if (!parent.empty() && !llvm::sys::fs::is_directory(parent))
      return say("there is no folder '" + parent + "'");
    if (std::error_code code = llvm::sys::fs::createUniqueDirectory("distc", unused))
      return say(code.message());
    llvm::sys::fs::remove(unused);
    // Beside the folder, so that files are moved and not copied.
    temporary = folder + ".distc-" + llvm::sys::path::filename(unused).str();
    if (std::error_code code = llvm::sys::fs::create_directory(temporary, /*IgnoreExisting=*/false))
      return say(code.message());
    return true;
  }

  bool add(llvm::StringRef name, llvm::function_ref<bool(llvm::raw_ostream &)> write) {
    std::error_code code;
    llvm::raw_fd_ostream os(temporary + "/" + name.str(), code);
    if (code)
      return say(code.message());
    if (!write(os))
      return false;
    os.close();
    if (os.has_error()) {
      code = os.error();
      os.clear_error();
      return say(code.message());
    }
    names.push_back(name.str());
    return true;
  }

  bool finish() {
    if (std::error_code code = llvm::sys::fs::create_directory(folder))
      return say(code.message());
    removeOldWorkers();
    for (const std::string &name : names)
      if (std::error_code code = llvm::sys::fs::rename(temporary + "/" + name, folder + "/" + name))
        return say(code.message());
    return true;
  }

private:
  bool say(const llvm::Twine &why) {
    session.fail("cannot write '" + folder + "': " + why);
    return false;
  }

  /// Of an export for more workers.
  void removeOldWorkers() {
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(folder, code), end; it != end && !code; it.increment(code)) {
      llvm::StringRef name = llvm::sys::path::filename(it->path());
      if (name.starts_with("worker-") && name.ends_with(".meta") && !llvm::is_contained(names, name))
        llvm::sys::fs::remove(it->path());
    }
  }

  Session &session;
  std::string folder, temporary;
  llvm::SmallString<64> unused;
  std::vector<std::string> names;
};

/// The graph of a task with so many replicas, once for all such tasks.
OwningOpRef<ModuleOp> unroll(Session &session, ModuleOp module, int64_t replicas) {
  OwningOpRef<ModuleOp> unrolled = module.clone();
  if (replicas > 1 && !session.run(*unrolled, [&](OpPassManager &manager) {
        DistUnrollOptions options;
        options.replicas = replicas;
        options.keepSynchronizers = true;
        manager.addPass(createDistUnroll(options));
        manager.addPass(createDistRenameScopes());
      }))
    return nullptr;
  return unrolled;
}

} // namespace

int exportGraphs(Session &session, ModuleOp module, llvm::StringRef folder, int64_t batch) {
  dist::TopologyOp topology = *module.getOps<dist::TopologyOp>().begin();
  if (batch != 0 &&
      !session.run(module, [&](OpPassManager &manager) { manager.addPass(createDistCheckShares({batch})); }))
    return session.status();
  Output output(session, folder);
  if (!output.open())
    return session.status();
  std::map<int64_t, OwningOpRef<ModuleOp>> unrolled;
  int64_t worker = 0;
  for (auto task : topology.getTasks().getAsRange<dist::TaskAttr>()) {
    int64_t replicas = task.getNumReplicas();
    if (replicas == 0)
      continue;
    OwningOpRef<ModuleOp> &shared = unrolled[replicas];
    if (!shared && !(shared = unroll(session, module, replicas)))
      return session.status();
    OwningOpRef<ModuleOp> graph = shared->clone();
    if (!session.run(*graph, [&](OpPassManager &manager) {
          DistLegalizeForTensorFlowOptions options;
          options.worker = worker;
          options.batch = batch;
          manager.addPass(createDistLegalizeForTensorFlow(options));
        }))
      return session.status();
    if (!output.add("worker-" + std::to_string(worker) + ".meta",
                    [&](llvm::raw_ostream &os) { return succeeded(tf::exportMetaGraph(*graph, os)); }))
      return session.status() ? session.status() : session.internalError("a worker's graph could not be written");
    ++worker;
  }
  auto writeCluster = [&](llvm::raw_ostream &os) { return os << makeCluster(topology), true; };
  if (!output.add("cluster.json", writeCluster) || !output.finish())
    return session.status();
  return kDone;
}

} // namespace distc
