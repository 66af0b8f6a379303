//===- ScopeNames.cpp - What a timeline calls a piece of generated code -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/program/ScopeNames.h"

#include "dialects/drt/Servers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc {

// A row of the timeline stays readable: a kernel of hundreds of nodes says how many more there are.
static constexpr size_t kNamesShown = 8;

static void collectNames(Location loc, llvm::SetVector<StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(loc)) {
    names.insert(name.getName().getValue());
  } else if (auto fused = dyn_cast<FusedLoc>(loc)) {
    for (Location part : fused.getLocations())
      collectNames(part, names);
  } else if (auto call = dyn_cast<CallSiteLoc>(loc)) {
    collectNames(call.getCallee(), names);
  }
}

SmallVector<StringRef> listNodes(Location loc) {
  llvm::SetVector<StringRef> names;
  collectNames(loc, names);
  return names.takeVector();
}

std::string getNodeNames(Location loc) {
  SmallVector<StringRef> names = listNodes(loc);
  if (names.empty())
    return "";
  std::string text = names.front().str();
  StringRef first = names.front();
  for (StringRef name : ArrayRef<StringRef>(names).drop_front().take_front(kNamesShown - 1)) {
    size_t shared = 0;
    for (size_t i = 0; i < std::min(name.size(), first.size()) && name[i] == first[i]; ++i)
      if (name[i] == '/')
        shared = i + 1;
    text += "+" + name.drop_front(shared).str();
  }
  if (names.size() > kNamesShown)
    text += "+" + std::to_string(names.size() - kNamesShown) + " more";
  return text;
}

std::string getScopeName(Operation *op) {
  auto bucket = [](StringRef what, int32_t number) { return (what + " bucket " + Twine(number)).str(); };
  if (auto start = dyn_cast<drt::AllReduceStartOp>(op))
    return bucket(start.getGather() ? "start gathering" : "start", start.getBucket());
  if (auto wait = dyn_cast<drt::AllReduceWaitOp>(op))
    return bucket("wait for", wait.getBucket());
  if (auto result = dyn_cast<drt::AllReduceResultOp>(op))
    return bucket("gather", result.getBucket());
  if (auto start = dyn_cast<drt::GatherStartOp>(op))
    return bucket("start", start.getBucket());
  if (isa<drt::BarrierOp>(op))
    return "barrier";
  if (isa<drt::PullOp>(op))
    return "pull variables";
  if (isa<drt::PushOp>(op))
    return "push gradients";
  if (isa<drt::TakeOp>(op))
    return "take gradients";
  if (isa<drt::TakeTokenOp>(op))
    return "wait for a token";
  std::string names = getNodeNames(op->getLoc());
  return names.empty() ? op->getName().stripDialect().str() : names;
}

StringRef getScopeCategory(Operation *op) {
  auto scope = dyn_cast<drt::ScopeInterface>(op);
  return scope ? scope.getScopeCategory() : StringRef();
}

} // namespace distc
