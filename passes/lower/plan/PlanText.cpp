//===- PlanText.cpp - The schedule as --plan prints it ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/PlanText.h"

#include "passes/lower/plan/Addresses.h"
#include "passes/lower/program/ScopeNames.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <optional>

using namespace mlir;

namespace distc {

// Bytes that an operation writes, and where in the arena; -1: not there.
static std::pair<int64_t, int64_t> getWritten(Operation *op) {
  int64_t bytes = 0;
  if (auto start = dyn_cast<drt::AllReduceStartOp>(op))
    bytes = getMemberOffsets(start).back();
  else if (isPlaced(op))
    for (Type type : op->getResultTypes())
      bytes += getTensorBytes(cast<RankedTensorType>(type));
  auto places = op->getAttrOfType<DenseI64ArrayAttr>("at");
  return {bytes, places && !places.empty() ? places[0] : -1};
}

static std::string getSizes(Operation *kernel, StringRef attribute) {
  std::string text;
  auto sizes = kernel->getAttrOfType<DenseI64ArrayAttr>(attribute);
  ArrayRef<int64_t> shown = sizes ? sizes.asArrayRef() : ArrayRef<int64_t>();
  while (shown.size() > 1 && shown.back() == 1)
    shown = shown.drop_back();
  for (int64_t size : shown)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

// The functions of a program's devices by their names; none where it has no code for devices.
static std::optional<SymbolTable> findDeviceFunctions(ModuleOp program) {
  if (Operation *code = program.lookupSymbol(drt::kKernelModule))
    return SymbolTable(code);
  return std::nullopt;
}

// " [kernel_3, 8 blocks of 256 threads]", the second half for devices only.
static std::string getKernelText(Operation *op, const std::optional<SymbolTable> &code) {
  auto kernel = op->getAttrOfType<FlatSymbolRefAttr>("kernel");
  if (!kernel)
    return "";
  std::string text = (" [" + kernel.getValue()).str();
  if (Operation *function = code ? code->lookup(kernel.getAttr()) : nullptr) {
    std::string grid = getSizes(function, drt::kGridAttr), block = getSizes(function, drt::kBlockAttr);
    text +=
        ", " + grid + (grid == "1" ? " block of " : " blocks of ") + block + (block == "1" ? " thread" : " threads");
  }
  return text + "]";
}

static std::string getGroupText(drt::UpdateGroupOp group) {
  size_t count = group.getVariables().size();
  std::string text = "  " + std::to_string(count) + (count == 1 ? " update" : " updates");
  if (group.getBucket())
    text += " from bucket " + std::to_string(*group.getBucket());
  if (double scale = group.getScale().convertToDouble(); scale != 1)
    text += ", the mean of " + std::to_string(std::lround(1 / scale)) + " replicas";
  return text;
}

std::string getPlanText(drt::EntryOp entry) {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::optional<SymbolTable> code = findDeviceFunctions(entry->getParentOfType<ModuleOp>());
  os << "  " << entry.getName() << "\n";
  for (Operation &op : entry.getBody().front()) {
    StringRef category = getScopeCategory(&op);
    if (category.empty())
      continue;
    os << "    " << llvm::left_justify(category, 11) << getScopeName(&op);
    if (!isa<drt::UpdateOp, drt::SparseUpdateOp, drt::MatmulUpdateOp>(op))
      os << getKernelText(&op, code);
    if (auto group = dyn_cast<drt::UpdateGroupOp>(op))
      os << getGroupText(group);
    auto [bytes, place] = getWritten(&op);
    if (place >= 0)
      os << "  " << bytes << " bytes at " << place;
    os << "\n";
  }
  return text;
}

} // namespace distc
