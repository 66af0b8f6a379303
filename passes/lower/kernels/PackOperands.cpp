//===- PackOperands.cpp - Right operands that are packed once for several products ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "passes/lower/Passes.h"
#include "passes/lower/TensorType.h"
#include "runtime/include/drt/drt.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_PACKOPERANDS
#include "passes/lower/Passes.h.inc"

namespace {

/// What is one when it is packed: the operand, and whether it is transposed and for joined products.
using Packed = std::pair<Value, std::pair<unsigned, unsigned>>;

struct PackOperands : impl::PackOperandsBase<PackOperands> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<drt::ProgramOp> program = drt::getProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    cores = program->getCores().value_or(1);
    if (program->sharesMemory())
      taskReplicas = program->getNumReplicas();
    for (auto entry : getOperation().getOps<drt::EntryOp>()) {
      llvm::MapVector<Packed, SmallVector<drt::MatmulOp>> products;
      for (auto product : entry.getOps<drt::MatmulOp>())
        if (gains(product))
          products[{product.getB(), {product.getTransposeB(), product.getJoined()}}].push_back(product);
      for (auto &[packed, of] : products)
        if (static_cast<int64_t>(of.size()) >= minUses)
          pack(of);
    }
  }

private:
  static int64_t getColumns(drt::MatmulOp product) { return typeOf(product.getResult()).getShape().back(); }
  static int64_t getSteps(drt::MatmulOp product) {
    return typeOf(product.getB()).getDimSize(product.getTransposeB() ? 1 : 0);
  }

  /// How many share the columns of a product; of others each computes some rows.
  int64_t getShares(drt::MatmulOp product) const { return product.getJoined() ? taskReplicas * cores : 1; }

  /// Whether what packing the right operand takes is much beside the arithmetic, on machines whose products pack it.
  bool gains(drt::MatmulOp product) const {
    RankedTensorType a = typeOf(product.getA()), b = typeOf(product.getB());
    if (b.getRank() != 2 || !b.getElementType().isF32() || (product.getTransposeA() && a.getRank() != 2))
      return false;
    const int64_t own = typeOf(product.getResult()).getNumElements() / getColumns(product);
    const int64_t rows = product.getJoined() ? own * taskReplicas : own / cores;
    return rows >= minRows && rows <= maxRows &&
           rows * getColumns(product) / getShares(product) * getSteps(product) >= minProduct;
  }

  void pack(ArrayRef<drt::MatmulOp> products) const {
    drt::MatmulOp first = products.front();
    OpBuilder builder(first);
    // A core's columns of joined products are whole vectors.
    constexpr int64_t vector = 16;
    const int64_t vectors = llvm::divideCeil(llvm::divideCeil(getColumns(first), vector), getShares(first));
    const int64_t bytes = first.getJoined() ? cores * drt_packed_bytes(getSteps(first), vectors * vector)
                                            : drt_packed_bytes(getSteps(first), getColumns(first));
    LDBG("drt-pack-operands") << "for " << products.size() << " matmuls: " << first.getB();
    auto packed =
        drt::PackOp::create(builder, first.getB().getLoc(), RankedTensorType::get({bytes}, builder.getI8Type()),
                            first.getB(), first.getTransposeBAttr(), first.getJoinedAttr(), DenseI64ArrayAttr());
    for (drt::MatmulOp product : products) {
      builder.setInsertionPoint(product);
      auto taking = drt::MatmulPackedOp::create(
          builder, product.getLoc(), product.getResult().getType(), product.getA(), product.getB(), packed.getPacked(),
          product.getBias(), product.getTransposeAAttr(), product.getTransposeBAttr(), product.getEpilogueAttr(),
          product.getJoinedAttr(), DenseI64ArrayAttr());
      product.getResult().replaceAllUsesWith(taking.getResult());
      product.erase();
    }
  }

  int64_t cores = 1, taskReplicas = 1;
};

} // namespace
} // namespace distc
