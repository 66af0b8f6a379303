//===- CheckForGpu.cpp - What has no code on GPUs yet is refused ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/dfg/Dfg.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/lower/Passes.h"
#include "llvm/ADT/StringSet.h"
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
      .Case<drt::RoutineOp>([](drt::RoutineOp routine) {
        return llvm::StringSwitch<StringRef>(routine.getName())
            .Case("top_k", "what sorts")
            .Case("sample_candidates", "candidate sampling")
            .Case("accidental_hits", "candidate sampling")
            .Case("ctc_loss", "a CTC loss")
            .Default("linear algebra");
      })
      .Case<drt::FeedOrOp>([](auto) { return "a feed that may be missing"; })
      .Case<drt::AssertOp>([](drt::AssertOp check) { return check.getPrints() ? "a print" : "an assertion"; })
      .Case<dfg::SpecialFunctionOp>([](auto) { return "a special function"; })
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
      .Case<drt::MatmulOp>(
          [&](auto) { return element.isF32() || element.isF64() || element.isF16() || element.isBF16(); })
      .Case<drt::Conv2DOp, drt::Conv2DGradInputOp, drt::Conv2DGradFilterOp, drt::PoolOp, drt::PoolGradOp>(
          [&](auto) { return element.isF32() || element.isF16() || element.isBF16(); })
      .Case([&](drt::AllReduceStartOp start) { // rows are joined whatever they are
        return start.getGather() || element.isF32() || element.isF64() || element.isInteger(32) ||
               element.isInteger(64);
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

struct CheckForGpu : impl::CheckForGpuBase<CheckForGpu> {
  void runOnOperation() override {
    // One report of all: an error at the first, with a note for each other node.
    std::optional<InFlightDiagnostic> error;
    llvm::StringSet<> reported;
    auto refuse = [&](Operation *op, const Twine &what) {
      std::string node = getNodeText(op);
      if (!reported.insert((node + what).str()).second) // it is in several entries
        return;
      if (reported.size() == 1)
        error.emplace(op->emitError()) << what << " has no code for GPUs yet; compile the graph for --target=cpu";
      else
        error->attachNote(op->getLoc()) << node << what << " has no code for GPUs yet";
    };
    getOperation().walk([&](Operation *op) {
      if (StringRef missing = getMissing(op); !missing.empty())
        refuse(op, missing);
      else if (Type element = getUnknownElement(op)) {
        std::string name;
        llvm::raw_string_ostream(name) << element;
        refuse(op, "'" + op->getName().getStringRef() + "' of " + name);
      }
    });
    if (!reported.empty())
      signalPassFailure();
  }

  /// "node 'x': ", where it has a name.
  static std::string getNodeText(Operation *op) {
    auto name = op->getLoc()->findInstanceOf<NameLoc>();
    return name ? ("node '" + name.getName().getValue() + "': ").str() : std::string();
  }
};

} // namespace
} // namespace distc
