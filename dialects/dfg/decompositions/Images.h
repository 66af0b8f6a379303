//===- Images.h - The sizes of a batch of images -------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_DECOMPOSITIONS_IMAGES_H
#define DISTC_DIALECTS_DFG_DECOMPOSITIONS_IMAGES_H

#include "dialects/dfg/Decompositions.h"

namespace distc::dfg::decompositions {

/// [batch, height, width, channels], of which all but the first have to be known. They may be 0.
struct Images {
  Dim batch;
  int64_t height, width, channels;

  /// Fails, for a reason that `g` keeps, where a size is not known.
  static llvm::FailureOr<Images> of(GraphBuilder &g, llvm::ArrayRef<Dim> shape) {
    if (shape.size() != 4 || llvm::any_of(shape.drop_front(), [](Dim size) { return !size.isConstant(); }))
      return g.fail("the size of the images is not known");
    return Images{shape[0], shape[1].getConstant(), shape[2].getConstant(), shape[3].getConstant()};
  }
  static llvm::FailureOr<Images> of(GraphBuilder &g, mlir::Value images) {
    llvm::FailureOr<Dims> shape = g.getShape(images);
    return llvm::failed(shape) ? llvm::FailureOr<Images>(g.fail("the size of the images is not known")) : of(g, *shape);
  }
};

} // namespace distc::dfg::decompositions

#endif // DISTC_DIALECTS_DFG_DECOMPOSITIONS_IMAGES_H
