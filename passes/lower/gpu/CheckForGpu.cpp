//===- CheckForGpu.cpp - What has no code on GPUs yet is refused ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/dfg/Dfg.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/graph/ListNames.h"
#include "passes/lower/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_CHECKFORGPU
#include "passes/lower/Passes.h.inc"

namespace {

// What the operation does that has no code; empty where it has.
StringRef getMissing(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](drt::SparseUpdateOp update) {
        return update.getSorted() || update.getDistinct() ? "" : "an update of rows of this type";
      })
      .Case<drt::UniqueOp>([](auto) { return "what finds distinct values of this type"; })
      .Case<drt::ScatterOp>([](auto) { return "a scatter of this type"; })
      .Case<drt::CheckIndicesOp>([](auto) { return "a check of indices"; })
      .Case<drt::CheckNumericsOp>([](auto) { return "a check for numbers that are not finite"; })
      .Case<drt::FeedOrOp>([](auto) { return "a feed that may be missing"; })
      .Case<drt::RandomOp, drt::RandomStatelessOp>([](auto) { return "this kind of random numbers"; })
      .Case([](drt::AllReduceStartOp start) {
        auto compression = dyn_cast_or_null<dist::CompressionAttr>(start.getCompressionAttr());
        if (compression && compression.getKind() != dist::Compressor::None)
          return "a compressor of gradients";
        if (start.getAggregatorAttr())
          return "an aggregator other than sum and mean";
        return "";
      })
      .Default(StringRef());
}

// Elements that the library has which does what the operation says.
bool hasCode(Operation *op, Type element) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<drt::MatmulOp, drt::Conv2DOp, drt::Conv2DGradInputOp, drt::Conv2DGradFilterOp, drt::PoolOp,
            drt::PoolGradOp>(
          [&](auto) { return element.isF32() || element.isF64() || element.isF16() || element.isBF16(); })
      .Case([&](drt::AllReduceStartOp start) { // rows are joined whatever they are
        return start.getGather() || element.isF32() || element.isF64() || element.isInteger(1) ||
               element.isInteger(32) || element.isInteger(64);
      })
      .Default(true);
}

// The first tensor's elements that the library does not have.
Type getUnknownElement(Operation *op) {
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && !hasCode(op, tensor.getElementType()))
      return tensor.getElementType();
  return Type();
}

// What has no code, with the nodes that do it and the entries that these stand in.
struct MissingCode {
  Operation *first;
  llvm::SetVector<StringRef> nodes, entries;
};

struct CheckForGpu : impl::CheckForGpuBase<CheckForGpu> {
  /// What waits for the host in each step, and the device for it.
  void remarkHost() {
    Operation *first = nullptr;
    llvm::SetVector<StringRef> nodes;
    getOperation().walk([&](Operation *op) {
      if (!isa<drt::RoutineOp, dfg::SpecialFunctionOp>(op))
        return;
      first = first ? first : op;
      if (StringRef node = dfg::getNodeName(op); !node.empty())
        nodes.insert(node);
    });
    if (!first || nodes.empty())
      return;
    InFlightDiagnostic remark = mlir::emitRemark(first->getLoc());
    remark << "runs on the host, with copies there and back, since there is no code for GPUs: node"
           << (nodes.size() == 1 ? "" : "s");
    listNames(*remark.getUnderlyingDiagnostic(), nodes);
  }

  void runOnOperation() override {
    llvm::MapVector<StringAttr, MissingCode> missing;
    getOperation().walk([&](Operation *op) {
      std::string what = getMissing(op).str();
      if (Type element = what.empty() ? getUnknownElement(op) : Type())
        llvm::raw_string_ostream(what) << "'" << op->getName().getStringRef() << "' of " << element;
      if (what.empty())
        return;
      MissingCode &code =
          missing.try_emplace(StringAttr::get(&getContext(), what), MissingCode{op, {}, {}}).first->second;
      if (StringRef node = dfg::getNodeName(op); !node.empty())
        code.nodes.insert(node);
      if (auto entry = op->getParentOfType<drt::EntryOp>())
        code.entries.insert(entry.getName());
    });
    if (missing.empty())
      return remarkHost();
    signalPassFailure();
    auto &[what, code] = missing.front();
    InFlightDiagnostic error = code.first->emitError();
    error << what.getValue() << " has no code for GPUs yet; compile the graph for --target=cpu";
    // One report of all: who meets one at a time compiles as often as there are.
    for (const auto &[what, code] : missing) {
      if (code.nodes.empty())
        continue;
      Diagnostic &note = error.attachNote(code.first->getLoc());
      note << what.getValue() << " has no code for GPUs yet: node" << (code.nodes.size() == 1 ? "" : "s");
      listNames(note, code.nodes);
      if (code.entries.empty())
        continue;
      note << "; needed by";
      listNames(note, code.entries);
    }
  }
};

} // namespace
} // namespace distc
