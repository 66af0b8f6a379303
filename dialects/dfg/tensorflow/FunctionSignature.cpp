//===- FunctionSignature.cpp - A function's description in its library ----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/FunctionSignature.h"
#include "dialects/dfg/tensorflow/Attributes.h"
#include "dialects/dfg/tensorflow/Types.h"

using namespace mlir;

namespace distc::tf {

void setArgumentTypes(dfg::FuncOp function, ArrayRef<std::pair<unsigned, TensorType>> arguments, bool returned) {
  auto shell = function->getAttrOfType<dfg::RawAttr>("function_def");
  FunctionDef proto;
  if (!shell || !proto.ParseFromString(shell.getBytes().str()))
    return;
  OpDef &signature = *proto.mutable_signature();
  signature.set_name(function.getSymName().str());
  for (auto [argument, type] : arguments) {
    DataType dtype = getDataType(type.getElementType());
    if (static_cast<int>(argument) < signature.input_arg_size())
      signature.mutable_input_arg(argument)->set_type(dtype);
    if (returned && static_cast<int>(argument) < signature.output_arg_size())
      signature.mutable_output_arg(argument)->set_type(dtype);
    proto.mutable_arg_attr()->erase(argument);
    proto.mutable_resource_arg_unique_id()->erase(argument);
  }
  MLIRContext *context = function.getContext();
  function->setAttr("function_def", dfg::RawAttr::get(context, StringAttr::get(context, serialize(proto))));
}

} // namespace distc::tf
