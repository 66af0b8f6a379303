//===- PlanText.cpp - The schedule as --plan prints it ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/PlanText.h"

#include "passes/lower/Addresses.h"
#include "passes/lower/ScopeNames.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

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

std::string getPlanText(func::FuncOp entry) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "  " << entry->getAttrOfType<StringAttr>(drt::kEntryAttr).getValue() << "\n";
  for (Operation &op : entry.getBody().front()) {
    StringRef category = getScopeCategory(&op);
    if (category.empty())
      continue;
    os << "    " << llvm::left_justify(category, 11) << getScopeName(&op);
    if (auto launch = dyn_cast<drt::LaunchOp>(op))
      os << " [" << launch.getKernel() << "]";
    auto [bytes, place] = getWritten(&op);
    if (place >= 0)
      os << "  " << bytes << " bytes at " << place;
    os << "\n";
  }
  return text;
}

} // namespace distc
