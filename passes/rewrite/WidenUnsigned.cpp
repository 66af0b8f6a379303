//===- WidenUnsigned.cpp - Unsigned integers are computed as wider ones with a sign -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Kernels know integers with a sign. An unsigned number of 8, 16 or 32 bits is a value of the next larger type that is
// no less than 0 and fits; what an operation makes beyond that wraps around, which keeping its low bits does.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "passes/rewrite/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc::rewrite {
#define GEN_PASS_DEF_WIDENUNSIGNED
#include "passes/rewrite/Passes.h.inc"

namespace {

/// The element type's number of bits where it is unsigned, else 0.
unsigned getUnsignedWidth(Value value) {
  auto tensor = llvm::dyn_cast<TensorType>(value.getType());
  auto element = tensor ? llvm::dyn_cast<IntegerType>(tensor.getElementType()) : IntegerType();
  return element && element.isUnsigned() && element.getWidth() >= 8 && element.getWidth() <= 32 ? element.getWidth()
                                                                                                : 0;
}

/// What keeps elements as they are, or chooses among them, or computes others of the type's range from them.
bool keepsElements(Operation *op) {
  return dfg::movesElements(op) || op->hasTrait<dfg::FindsDistinct>() || llvm::isa<dfg::TopKOp, dfg::TopKV2Op>(op) ||
         llvm::isa<dfg::MaximumOp, dfg::MinimumOp, dfg::ClipByValueOp, dfg::MaxOp, dfg::MinOp, dfg::AbsOp, dfg::SignOp,
                   dfg::BitwiseAndOp, dfg::BitwiseOrOp, dfg::BitwiseXorOp, dfg::FloorDivOp, dfg::FloorModOp>(op);
}

/// What may go beyond the type, and is cut to its low bits.
bool wrapsAround(Operation *op) {
  return op->hasTrait<dfg::Adds>() || llvm::isa<dfg::CastOp, dfg::SubOp, dfg::MulOp, dfg::SquareOp, dfg::InvertOp,
                                                dfg::SumOp, dfg::ProdOp, dfg::CumsumOp, dfg::ScatterNdOp>(op);
}

/// What makes small numbers of the bits of others, which zeros in front do not change.
bool countsBits(Operation *op) { return llvm::isa<dfg::PopulationCountOp>(op); }

/// What only looks at numbers, whatever type they have.
bool reads(Operation *op) {
  return op->hasTrait<dfg::AsksShapes>() || op->hasTrait<dfg::Compares>() ||
         llvm::isa<dfg::CastOp, dfg::OneHotOp, dfg::ArgMaxOp, dfg::ArgMinOp, dfg::ResizeBilinearOp,
                   dfg::ResizeBicubicOp, dfg::ResizeAreaOp, dfg::CropAndResizeOp>(op);
}

/// A node that begins unsigned values. Of feeds there are bytes.
bool begins(Operation *op) {
  auto placeholder = llvm::dyn_cast<dfg::PlaceholderOp>(op);
  return llvm::isa<dfg::ConstOp>(op) || (placeholder && getUnsignedWidth(placeholder.getResult()) == 8);
}

class Widener {
public:
  explicit Widener(Block &block) : block(block), builder(block.getParentOp()->getContext()) {}

  /// Whether anything was widened.
  bool run() {
    for (Operation &op : block)
      for (Value result : op.getResults())
        if (getUnsignedWidth(result))
          values.insert(result);
    dropUnknown();
    if (values.empty())
      return false;
    for (Operation &op : llvm::make_early_inc_range(block))
      if (llvm::any_of(op.getResults(), [&](Value result) { return values.contains(result); }))
        widen(&op);
    return true;
  }

private:
  /// Leaves values that are made and used by nodes that are known, with others of the kind; the others have no code,
  /// and are refused where they are needed.
  void dropUnknown() {
    for (bool changed = true; changed;) {
      changed = false;
      for (Value value : llvm::to_vector(values))
        if (!isKnown(value.getDefiningOp(), value) ||
            llvm::any_of(value.getUsers(), [&](Operation *user) { return !isKnown(user, value); })) {
          values.remove(value);
          changed = true;
        }
    }
  }

  /// Whether `op`, which makes or takes `value`, can have it widened: all unsigned values of one node are, or none, but
  /// for conversions.
  bool isKnown(Operation *op, Value value) {
    if (llvm::isa<dfg::CastOp>(op) || begins(op))
      return true;
    const bool makes = llvm::any_of(op->getResults(), getUnsignedWidth);
    if (makes ? !keepsElements(op) && !wrapsAround(op) && !countsBits(op) : !reads(op))
      return false;
    auto isWidened = [&](Value other) { return !getUnsignedWidth(other) || values.contains(other); };
    return llvm::all_of(op->getOperands(), isWidened) && llvm::all_of(op->getResults(), isWidened);
  }

  Type getWide(unsigned width) { return builder.getIntegerType(width == 32 ? 64 : 32); }

  Location locate(Operation *op, const Twine &suffix) {
    return NameLoc::get(builder.getStringAttr(dfg::getNodeName(op) + suffix));
  }

  void widen(Operation *op) {
    builder.setInsertionPointAfter(op);
    for (Value result : op->getResults()) {
      const unsigned width = getUnsignedWidth(result);
      if (!values.contains(result))
        continue;
      auto type = llvm::cast<TensorType>(result.getType());
      Type wide = getWide(width);
      if (auto constant = llvm::dyn_cast<dfg::ConstOp>(op)) {
        auto elements = llvm::cast<DenseIntElementsAttr>(constant.getValue());
        constant.setValueAttr(
            elements.mapValues(wide, [&](const APInt &value) { return value.zext(wide.getIntOrFloatBitWidth()); }));
        result.setType(type.clone(wide));
        continue;
      }
      Value cut = result;
      if (llvm::isa<dfg::PlaceholderOp>(op)) {
        // The bytes are there as the machine has them.
        op->setAttr(dfg::kUnsignedFeedAttr, builder.getUnitAttr());
        result.setType(type.clone(builder.getIntegerType(width)));
        cut = dfg::CastOp::create(builder, locate(op, "/wide"), type.clone(wide), result);
      } else {
        result.setType(type.clone(wide));
      }
      if (!wrapsAround(op) && cut == result)
        continue;
      auto scalar = RankedTensorType::get({}, wide);
      auto mask =
          dfg::ConstOp::create(builder, locate(op, "/mask"), scalar,
                               DenseElementsAttr::get(scalar, builder.getIntegerAttr(wide, (int64_t(1) << width) - 1)));
      auto low = dfg::BitwiseAndOp::create(builder, locate(op, "/unsigned"), type.clone(wide), cut, mask.getResult());
      result.replaceUsesWithIf(low.getResult(), [&](OpOperand &use) {
        return use.getOwner() != low && use.getOwner() != cut.getDefiningOp();
      });
    }
  }

  Block &block;
  OpBuilder builder;
  llvm::SetVector<Value> values; // that are widened
};

struct WidenUnsigned : impl::WidenUnsignedBase<WidenUnsigned> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      widen(graph);
  }

  /// Loops take and give values that are wide already.
  static void widen(Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        Widener(block).run();
        for (auto loop : block.getOps<dfg::WhileOp>())
          widen(loop);
      }
  }
};

} // namespace
} // namespace distc::rewrite
