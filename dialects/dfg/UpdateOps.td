//===- UpdateOps.td - Variables, assignments and optimizers' updates ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The rules are those of TensorFlow's training_ops.cc; `updated` is there for
// reference variables only.
//
//===----------------------------------------------------------------------===//
#ifndef DFG_UPDATE_OPS
#define DFG_UPDATE_OPS

include "dialects/dfg/DfgOpBase.td"
include "mlir/IR/SymbolInterfaces.td"

def DFG_VariableOp : Op<DFG_Dialect, "variable", [Symbol]> {
  let summary = "A variable of the model, or a slot of one";
  let description = [{
    Lives at the module's level; `dfg.var_handle` in a graph names it. `kind` is "resource" or "ref", as its author made it.
    ```mlir
    dfg.variable @"hidden1/kernel" : tensor<64x128xf32> {trainable}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type, DefaultValuedAttr<StrAttr, "\"resource\"">:$kind, UnitAttr:$trainable);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
}

def DFG_VarHandleOp : DFG_Node<"var_handle", "\"VariableV2\", \"VarHandleOp\", \"Variable\"", [Pure]> {
  let summary = "The handle of a variable";
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs DFG_Handle:$handle);
  let assemblyFormat = "$variable attr-dict `:` type($handle)";
}

def DFG_ReadVariableOp : DFG_Node<"read_variable", "\"\", \"ReadVariableOp\""> {
  let summary = "The value of a variable";
  let description = [{
    Reads in block order. A reference variable is read where an operation takes its reference as a value; such a read has no
    node of its own and export leaves it out (`implicit`).
  }];
  let arguments = (ins Arg<DFG_Handle, "", [MemRead]>:$handle, UnitAttr:$implicit);
  let results = (outs DFG_Tensor:$value);
  let types = "dtype:r0";
  let shape = "read";
}

def DFG_IsInitializedOp : DFG_Node<"is_initialized", "\"IsVariableInitialized\", \"VarIsInitializedOp\""> {
  let arguments = (ins Arg<DFG_Handle, "", [MemRead]>:$handle);
  let results = (outs DFG_Tensor:$result);
  let types = "=bool:r0";
  let shape = "scalar";
}

// ---- Plain assignment ------------------------------------------------------------------------------
class DFG_Assignment<string mnemonic, string tensorflow, code body> : DFG_Update<mnemonic, tensorflow, "0", 1, body> {
  let arguments = (ins DFG_Written:$handle, DFG_Tensor:$value);
  let optimizer = 0;
  // References call the type T, resources dtype: each form writes the attribute it has.
  let types = "T|dtype:1";
}
def DFG_AssignOp : DFG_Assignment<"assign", "\"Assign\", \"AssignVariableOp\"", "return {args[1]};"> {
  let arguments = (ins Arg<DFG_Handle, "", [MemWrite]>:$handle, DFG_Tensor:$value);
}
def DFG_AssignAddOp : DFG_Assignment<"assign_add", "\"AssignAdd\", \"AssignAddVariableOp\"", "return {s.add(args[0], args[1])};">;
def DFG_AssignSubOp : DFG_Assignment<"assign_sub", "\"AssignSub\", \"AssignSubVariableOp\"", "return {s.sub(args[0], args[1])};">;

// ---- Optimizers -------------------------------------------------------------------------------------
def DFG_ApplyGradientDescentOp : DFG_Update<"apply_gradient_descent", "\"ApplyGradientDescent\", \"ResourceApplyGradientDescent\"", "0", 2, [{
  return {s.sub(args[0], s.mul(args[1], args[2]))};
}]> {
  let arguments = (ins DFG_Written:$var, DFG_Tensor:$alpha, DFG_Tensor:$delta);
  let types = "T:2";
}

def DFG_ApplyMomentumOp : DFG_Update<"apply_momentum", "\"ApplyMomentum\", \"ResourceApplyMomentum\"", "0, 1", 3, [{
  Value var = args[0], accum = args[1], lr = args[2], grad = args[3], momentum = args[4];
  accum = s.add(s.mul(accum, momentum), grad);
  Value step = getUseNesterov() ? s.add(s.mul(grad, lr), s.mul(s.mul(accum, momentum), lr)) : s.mul(accum, lr);
  return {s.sub(var, step), accum};
}]> {
  let arguments = (ins DFG_Written:$var, DFG_Written:$accum, DFG_Tensor:$lr, DFG_Tensor:$grad, DFG_Tensor:$momentum,
                       DefaultValuedAttr<BoolAttr, "false">:$use_nesterov);
  let types = "T:3";
}

def DFG_ApplyKerasMomentumOp : DFG_Update<"apply_keras_momentum", "\"\", \"ResourceApplyKerasMomentum\"", "0, 1", 3, [{
  Value var = args[0], accum = args[1], lr = args[2], grad = args[3], momentum = args[4];
  accum = s.sub(s.mul(accum, momentum), s.mul(lr, grad));
  Value step = getUseNesterov() ? s.sub(s.mul(accum, momentum), s.mul(lr, grad)) : accum;
  return {s.add(var, step), accum};
}]> {
  let arguments = (ins DFG_Written:$var, DFG_Written:$accum, DFG_Tensor:$lr, DFG_Tensor:$grad, DFG_Tensor:$momentum,
                       DefaultValuedAttr<BoolAttr, "false">:$use_nesterov);
  let types = "T:3";
}

def DFG_ApplyAdamOp : DFG_Update<"apply_adam", "\"ApplyAdam\", \"ResourceApplyAdam\"", "0, 1, 2", 9, [{
  Value var = args[0], m = args[1], v = args[2], beta1Power = args[3], beta2Power = args[4], lr = args[5];
  Value beta1 = args[6], beta2 = args[7], epsilon = args[8], grad = args[9];
  Value one = s.constant(grad.getType(), 1.0);
  Value alpha = s.div(s.mul(lr, s.math<::mlir::math::SqrtOp>(s.sub(one, beta2Power))), s.sub(one, beta1Power));
  m = s.add(m, s.mul(s.sub(grad, m), s.sub(one, beta1)));
  v = s.add(v, s.mul(s.sub(s.mul(grad, grad), v), s.sub(one, beta2)));
  Value numerator = getUseNesterov() ? s.add(s.mul(grad, s.sub(one, beta1)), s.mul(beta1, m)) : m;
  return {s.sub(var, s.div(s.mul(numerator, alpha), s.add(s.math<::mlir::math::SqrtOp>(v), epsilon))), m, v};
}]> {
  let summary = "Adam (Kingma and Ba 2015, the form before section 2.1), as TensorFlow's ApplyAdam";
  let arguments = (ins DFG_Written:$var, DFG_Written:$m, DFG_Written:$v, DFG_Tensor:$beta1_power, DFG_Tensor:$beta2_power, DFG_Tensor:$lr,
                       DFG_Tensor:$beta1, DFG_Tensor:$beta2, DFG_Tensor:$epsilon, DFG_Tensor:$grad,
                       DefaultValuedAttr<BoolAttr, "false">:$use_nesterov);
  let types = "T:9";
}

def DFG_ApplyAdagradOp : DFG_Update<"apply_adagrad", "\"ApplyAdagrad\", \"ResourceApplyAdagrad\"", "0, 1", 3, [{
  Value var = args[0], accum = args[1], lr = args[2], grad = args[3];
  if (getUpdateSlots()) accum = s.add(accum, s.mul(grad, grad));
  return {s.sub(var, s.div(s.mul(grad, lr), s.math<::mlir::math::SqrtOp>(accum))), accum};
}]> {
  let arguments = (ins DFG_Written:$var, DFG_Written:$accum, DFG_Tensor:$lr, DFG_Tensor:$grad, DefaultValuedAttr<BoolAttr, "true">:$update_slots);
  let types = "T:3";
}

def DFG_ApplyAdagradV2Op : DFG_Update<"apply_adagrad_v2", "\"ApplyAdagradV2\", \"ResourceApplyAdagradV2\"", "0, 1", 4, [{
  Value var = args[0], accum = args[1], lr = args[2], epsilon = args[3], grad = args[4];
  if (getUpdateSlots()) accum = s.add(accum, s.mul(grad, grad));
  return {s.sub(var, s.div(s.mul(grad, lr), s.add(s.math<::mlir::math::SqrtOp>(accum), epsilon))), accum};
}]> {
  let arguments = (ins DFG_Written:$var, DFG_Written:$accum, DFG_Tensor:$lr, DFG_Tensor:$epsilon, DFG_Tensor:$grad,
                       DefaultValuedAttr<BoolAttr, "true">:$update_slots);
  let types = "T:4";
}

def DFG_ApplyRMSPropOp : DFG_Update<"apply_rms_prop", "\"ApplyRMSProp\", \"ResourceApplyRMSProp\"", "0, 1, 2", 7, [{
  Value var = args[0], ms = args[1], mom = args[2], lr = args[3], rho = args[4], momentum = args[5], epsilon = args[6], grad = args[7];
  Value one = s.constant(grad.getType(), 1.0);
  ms = s.add(ms, s.mul(s.sub(s.mul(grad, grad), ms), s.sub(one, rho)));
  mom = s.add(s.mul(mom, momentum), s.div(s.mul(grad, lr), s.math<::mlir::math::SqrtOp>(s.add(ms, epsilon))));
  return {s.sub(var, mom), ms, mom};
}]> {
  let arguments = (ins DFG_Written:$var, DFG_Written:$ms, DFG_Written:$mom, DFG_Tensor:$lr, DFG_Tensor:$rho, DFG_Tensor:$momentum,
                       DFG_Tensor:$epsilon, DFG_Tensor:$grad);
  let types = "T:7";
}

def DFG_ApplyCenteredRMSPropOp : DFG_Update<"apply_centered_rms_prop", "\"ApplyCenteredRMSProp\", \"ResourceApplyCenteredRMSProp\"", "0, 1, 2, 3", 8, [{
  Value var = args[0], mg = args[1], ms = args[2], mom = args[3], lr = args[4], rho = args[5], momentum = args[6], epsilon = args[7], grad = args[8];
  Value rate = s.sub(s.constant(grad.getType(), 1.0), rho);
  ms = s.add(ms, s.mul(s.sub(s.mul(grad, grad), ms), rate));
  mg = s.add(mg, s.mul(s.sub(grad, mg), rate));
  Value denominator = s.add(s.sub(ms, s.mul(mg, mg)), epsilon);
  mom = s.add(s.mul(mom, momentum), s.div(s.mul(grad, lr), s.math<::mlir::math::SqrtOp>(denominator)));
  return {s.sub(var, mom), mg, ms, mom};
}]> {
  let arguments = (ins DFG_Written:$var, DFG_Written:$mg, DFG_Written:$ms, DFG_Written:$mom, DFG_Tensor:$lr, DFG_Tensor:$rho,
                       DFG_Tensor:$momentum, DFG_Tensor:$epsilon, DFG_Tensor:$grad);
  let types = "T:8";
}

def DFG_ApplyAdadeltaOp : DFG_Update<"apply_adadelta", "\"ApplyAdadelta\", \"ResourceApplyAdadelta\"", "0, 1, 2", 6, [{
  Value var = args[0], accum = args[1], accumUpdate = args[2], lr = args[3], rho = args[4], epsilon = args[5], grad = args[6];
  Value rate = s.sub(s.constant(grad.getType(), 1.0), rho);
  accum = s.add(s.mul(accum, rho), s.mul(s.mul(grad, grad), rate));
  Value update = s.mul(s.math<::mlir::math::SqrtOp>(s.add(accumUpdate, epsilon)),
                       s.div(grad, s.math<::mlir::math::SqrtOp>(s.add(accum, epsilon))));
  accumUpdate = s.add(s.mul(accumUpdate, rho), s.mul(s.mul(update, update), rate));
  return {s.sub(var, s.mul(update, lr)), accum, accumUpdate};
}]> {
  let arguments = (ins DFG_Written:$var, DFG_Written:$accum, DFG_Written:$accum_update, DFG_Tensor:$lr, DFG_Tensor:$rho, DFG_Tensor:$epsilon,
                       DFG_Tensor:$grad);
  let types = "T:6";
}
#endif // DFG_UPDATE_OPS
