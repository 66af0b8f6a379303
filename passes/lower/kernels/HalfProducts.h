//===- HalfProducts.h - Products of float16 that keep float32's range -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// float16 has eight times bfloat16's precision, and no range: gradients are below its
// smallest number, and what overflows is infinite. The usual remedy scales the loss,
// watches for what overflows, skips the step and scales less (Micikevicius et al.,
// Mixed Precision Training, 2018). Here every operand is scaled by a power of two of
// its own, so that its largest element is from 2^14 on below 2^15, as training in eight
// bits does (Micikevicius et al., FP8 Formats for Deep Learning, 2022): nothing overflows,
// no step is skipped, and what a tensor loses is below 2^-38 of its largest element. The
// product, added up in float32, is scaled back. Powers of two round nothing.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_KERNELS_HALFPRODUCTS_H
#define DISTC_PASSES_LOWER_KERNELS_HALFPRODUCTS_H

#include "dialects/drt/Drt.h"

namespace distc {

/// Makes the products of float32 matrices of an entry products of float16.
void makeHalfProducts(drt::EntryOp entry);

} // namespace distc

#endif // DISTC_PASSES_LOWER_KERNELS_HALFPRODUCTS_H
