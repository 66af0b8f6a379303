//===- FunctionSignature.h - A function's description in its library *- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_FUNCTIONSIGNATURE_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_FUNCTIONSIGNATURE_H

#include "dialects/dfg/Dfg.h"

namespace distc::tf {

/// Writes into what the library said of the function (`function_def`) its name, and these types of arguments that have
/// become values. `returned`: its results of the same numbers are of these types too. Nothing where it said nothing.
void setArgumentTypes(dfg::FuncOp function, llvm::ArrayRef<std::pair<unsigned, mlir::TensorType>> arguments,
                      bool returned);

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_FUNCTIONSIGNATURE_H
