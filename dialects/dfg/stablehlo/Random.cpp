//===- Random.cpp - Bits of a generator whose state is a value -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The specification leaves to the implementation which bits a state gives. These are those of XLA on processors, which
// JAX's keys of the kind `rbg` have: Philox, which is the default there, with the first word of the state as the key,
// and the second and the first one as the counter. A node that draws of key and counter gives a replica the rows of
// what one would draw.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Converter.h"

using namespace mlir;

namespace distc::stablehlo {

/// The numbers of 32 bits that a step of Philox's counter gives.
static constexpr int64_t kWordsOfCount = 4;

Converter::Result Converter::drawBits(Operation *op, Values operands, Builder &g) {
  if (op->getNumResults() != 2)
    return fail(g, "gives " + llvm::Twine(op->getNumResults()) + " results where there are a state and bits");
  StringRef algorithm = getKeyword(op, "rng_algorithm");
  if (algorithm != "PHILOX" && algorithm != "DEFAULT")
    return fail(g, "draws by the algorithm " + algorithm + "; there is code for PHILOX, which is the default");
  FailureOr<SmallVector<int64_t>> state = g.getStaticShape(operands[0]);
  if (failed(state))
    return failure();
  if (*state != SmallVector<int64_t>{2} || !Builder::elementOf(operands[0]).isInteger(64))
    return fail(g, "has a state that is not two words of 64 bits, as Philox's is");

  // With a second operand the sizes depend on the batch's.
  const bool isDynamic = operands.size() == 2;
  auto type = llvm::dyn_cast<RankedTensorType>(op->getResult(1).getType());
  if (!isDynamic && (!type || !type.hasStaticShape()))
    return fail(g, "has a result of unknown size");
  if (isDynamic && !op->getResult(0).use_empty())
    return fail(g, "gives a state behind bits whose number is the batch's; split the key before instead");
  const unsigned bits = elementOfResult(op, 1).getIntOrFloatBitWidth();
  Type drawn = bits == 64 ? g.builder.getI64Type() : g.builder.getI32Type();
  Value key = g.slice(operands[0], 0, 0, 1);
  Value counter = g.reverse(operands[0], 0);
  Value sizes = isDynamic ? g.cast(operands[1], g.builder.getI32Type()) : g.integers(type.getShape());
  // Fewer bits are the lowest ones of 32.
  Value numbers = g.cast(g.make<dfg::StatelessRandomUniformFullIntV2Op>({sizes, key, counter, g.integer(1)}, {}, drawn),
                         elementOfResult(op, 1));
  if (!numbers)
    return failure();
  Value next = operands[0];
  if (!isDynamic) {
    const int64_t words = type.getNumElements() * (bits == 64 ? 2 : 1);
    Value steps = g.integers({0, llvm::divideCeilSigned(words, kWordsOfCount)}, /*wide=*/true);
    next = g.add(operands[0], steps);
  }
  return next ? Result(Values{next, numbers}) : Result(failure());
}

} // namespace distc::stablehlo
