//===- Elementwise.h - Operations that one node of the same meaning computes -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_STABLEHLO_ELEMENTWISE_H
#define DISTC_DIALECTS_DFG_STABLEHLO_ELEMENTWISE_H

#include "dialects/dfg/stablehlo/Converter.h"
#include "llvm/ADT/StringSwitch.h"

namespace distc::stablehlo {

template <typename Op> Converter::Result Converter::elementwise(mlir::Operation *, Values operands, Builder &g) {
  if (operands.size() > 1)
    narrow(g, operands);
  else if (auto it = narrowed.find(operands[0]); it != narrowed.end()) {
    // Of a broadcast scalar: for who takes it narrow as well.
    Value wide = g.make<Op>(operands[0]);
    narrowed[wide] = g.make<Op>(it->second);
    return one(g, wide);
  }
  return one(g, g.make<Op>(operands));
}

template <typename Op> Converter::Result Converter::predicate(mlir::Operation *, Values operands, Builder &g) {
  return one(g, g.make<Op>(operands, {}, g.builder.getI1Type()));
}

} // namespace distc::stablehlo

#endif // DISTC_DIALECTS_DFG_STABLEHLO_ELEMENTWISE_H
