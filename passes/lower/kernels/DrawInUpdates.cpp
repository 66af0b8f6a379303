//===- DrawInUpdates.cpp - Random numbers that an update draws as it goes -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/IR/Builders.h"
#include "passes/lower/Passes.h"
#include "passes/lower/plan/Addresses.h"
#include "runtime/include/drt/drt.h"
#include "runtime/include/drt/random_state.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DRAWINUPDATES
#include "passes/lower/Passes.h.inc"

namespace {

/// What draws the argument for nobody else, and can draw any part of it.
Operation *findRandom(drt::UpdateOp update, Value argument) {
  const int64_t elements = countElements(argument);
  if (elements != static_cast<int64_t>(update.getCount()) || elements == 1)
    return nullptr;
  Value drawn = argument;
  while (drawn.hasOneUse() && drawn != getStorage(drawn))
    drawn = drawn.getDefiningOp()->getOperand(0);
  Operation *random = drawn.getDefiningOp();
  if (!drawn.hasOneUse() || !isa_and_nonnull<drt::RandomOp, drt::RandomStatelessOp>(random))
    return nullptr;
  auto stateful = dyn_cast<drt::RandomOp>(random);
  return stateful && stateful.getDistribution() == DRT_RANDOM_STATE ? nullptr : random;
}

void replaceByDraw(Operation *random) {
  OpBuilder builder(random);
  auto stateful = dyn_cast<drt::RandomOp>(random);
  auto stateless = dyn_cast<drt::RandomStatelessOp>(random);
  Type type = random->getResult(0).getType();
  drt::DrawOp draw =
      stateful ? drt::DrawOp::create(builder, random->getLoc(), type, stateful.getDistribution(),
                                     stateful.getSeedAttr(), stateful.getSeed2Attr(), Value(), stateful.getBounds(),
                                     stateful.getPerReplica(), /*keyed=*/false, stateful.getReserved())
               : drt::DrawOp::create(builder, random->getLoc(), type, stateless.getDistribution(), IntegerAttr(),
                                     IntegerAttr(), stateless.getSeed(), stateless.getBounds(),
                                     stateless.getPerReplica(), stateless.getKeyed(), /*reserved=*/0);
  draw->setDiscardableAttrs(random->getDiscardableAttrDictionary());
  random->getResult(0).replaceAllUsesWith(draw.getResult());
  random->erase();
}

struct DrawInUpdates : impl::DrawInUpdatesBase<DrawInUpdates> {
  void runOnOperation() override {
    for (auto update : getOperation().getBody().front().getOps<drt::UpdateOp>()) {
      // The gradient of a bucket comes in parts of its own.
      if (update.getBucket())
        continue;
      int draws = 0;
      for (Value argument : update.getArguments())
        if (Operation *random = draws < DRT_MAX_DRAWS ? findRandom(update, argument) : nullptr) {
          replaceByDraw(random);
          ++draws;
        }
    }
  }
};

} // namespace
} // namespace distc
