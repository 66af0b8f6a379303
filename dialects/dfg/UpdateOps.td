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
  let hasVerifier = 1;
}

def DFG_VarHandleOp : DFG_Node<"var_handle", "\"VariableV2\", \"VarHandleOp\", \"Variable\"",
                               [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let created = 1;
  let summary = "The handle of a variable";
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs DFG_Handle:$handle);
  let assemblyFormat = "$variable attr-dict `:` type($handle)";
}

def DFG_ReadVariableOp : DFG_Node<"read_variable", "\"\", \"ReadVariableOp\"", [DFG_ReadsVariable]> {
  let created = 1;
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
  let created = 1;
  let arguments = (ins Arg<DFG_Handle, "", [MemWrite]>:$handle, DFG_Tensor:$value);
}
def DFG_AssignAddOp : DFG_Assignment<"assign_add", "\"AssignAdd\", \"AssignAddVariableOp\"", "return {s.add(args[0], args[1])};">;
def DFG_AssignSubOp : DFG_Assignment<"assign_sub", "\"AssignSub\", \"AssignSubVariableOp\"", "return {s.sub(args[0], args[1])};"> { let created = 1; }

// ---- Optimizers -------------------------------------------------------------------------------------
def DFG_ApplyGradientDescentOp : DFG_Update<"apply_gradient_descent", "\"ApplyGradientDescent\", \"ResourceApplyGradientDescent\"", "0", 2, [{
  return {s.sub(args[0], s.mul(args[1], args[2]))};
}]> {
  let arguments = (ins DFG_Written:$var, DFG_Tensor:$alpha, DFG_Tensor:$delta);
  let types = "T:2";
}

// An optimizer with a dense and a sparse form: ApplyNAME and SparseApplyNAME, which has the rows' indices behind the gradient, with
// one rule. `before`, `after`: operands before and behind the gradient; `references`: 0 where it knows resource variables only.
multiclass DFG_Optimizer<string mnemonic, string written, int gradient, dag before, dag after, dag attributes, code rule, bit references = 1> {
  def "DFG_Apply" # NAME # "Op" : DFG_Update<"apply_" # mnemonic,
      "\"" # !if(references, "Apply" # NAME, "") # "\", \"ResourceApply" # NAME # "\"", written, gradient, rule> {
    let arguments = !con(before, (ins DFG_Tensor:$grad), after, attributes);
    let types = "T:" # gradient;
  }
  def "DFG_SparseApply" # NAME # "Op" : DFG_SparseUpdate<"sparse_apply_" # mnemonic,
      "\"" # !if(references, "SparseApply" # NAME, "") # "\", \"ResourceSparseApply" # NAME # "\"", written, gradient, !add(gradient, 1), rule> {
    let arguments = !con(before, (ins DFG_Tensor:$grad, DFG_Tensor:$indices), after, attributes);
    let types = "T:" # gradient # " Tindices:" # !add(gradient, 1);
  }
}

defvar nesterov = (ins DefaultValuedAttr<BoolAttr, "false">:$use_nesterov);
defvar updateSlots = (ins DefaultValuedAttr<BoolAttr, "true">:$update_slots);

defm Momentum : DFG_Optimizer<"momentum", "0, 1", 3, (ins DFG_Written:$var, DFG_Written:$accum, DFG_Tensor:$lr),
                              (ins DFG_Tensor:$momentum), nesterov, [{
  Value var = args[0], accum = args[1], lr = args[2], grad = args[3], momentum = args[4];
  accum = s.add(s.mul(accum, momentum), grad);
  Value step = getUseNesterov() ? s.add(s.mul(grad, lr), s.mul(s.mul(accum, momentum), lr)) : s.mul(accum, lr);
  return {s.sub(var, step), accum};
}]>;

defm KerasMomentum : DFG_Optimizer<"keras_momentum", "0, 1", 3, (ins DFG_Written:$var, DFG_Written:$accum, DFG_Tensor:$lr),
                                   (ins DFG_Tensor:$momentum), nesterov, [{
  Value var = args[0], accum = args[1], lr = args[2], grad = args[3], momentum = args[4];
  accum = s.sub(s.mul(accum, momentum), s.mul(lr, grad));
  Value step = getUseNesterov() ? s.sub(s.mul(accum, momentum), s.mul(lr, grad)) : accum;
  return {s.add(var, step), accum};
}], 0>;

defm Adagrad : DFG_Optimizer<"adagrad", "0, 1", 3, (ins DFG_Written:$var, DFG_Written:$accum, DFG_Tensor:$lr), (ins), updateSlots, [{
  Value var = args[0], accum = args[1], lr = args[2], grad = args[3];
  if (getUpdateSlots()) accum = s.add(accum, s.mul(grad, grad));
  return {s.sub(var, s.div(s.mul(grad, lr), s.math<::mlir::math::SqrtOp>(accum))), accum};
}]>;

defm AdagradV2 : DFG_Optimizer<"adagrad_v2", "0, 1", 4, (ins DFG_Written:$var, DFG_Written:$accum, DFG_Tensor:$lr, DFG_Tensor:$epsilon),
                               (ins), updateSlots, [{
  Value var = args[0], accum = args[1], lr = args[2], epsilon = args[3], grad = args[4];
  if (getUpdateSlots()) accum = s.add(accum, s.mul(grad, grad));
  return {s.sub(var, s.div(s.mul(grad, lr), s.add(s.math<::mlir::math::SqrtOp>(accum), epsilon))), accum};
}]>;

defm RMSProp : DFG_Optimizer<"rms_prop", "0, 1, 2", 7, (ins DFG_Written:$var, DFG_Written:$ms, DFG_Written:$mom, DFG_Tensor:$lr,
                             DFG_Tensor:$rho, DFG_Tensor:$momentum, DFG_Tensor:$epsilon), (ins), (ins), [{
  Value var = args[0], ms = args[1], mom = args[2], lr = args[3], rho = args[4], momentum = args[5], epsilon = args[6], grad = args[7];
  Value one = s.constant(grad.getType(), 1.0);
  ms = s.add(ms, s.mul(s.sub(s.mul(grad, grad), ms), s.sub(one, rho)));
  mom = s.add(s.mul(mom, momentum), s.div(s.mul(grad, lr), s.math<::mlir::math::SqrtOp>(s.add(ms, epsilon))));
  return {s.sub(var, mom), ms, mom};
}]>;

defm CenteredRMSProp : DFG_Optimizer<"centered_rms_prop", "0, 1, 2, 3", 8, (ins DFG_Written:$var, DFG_Written:$mg, DFG_Written:$ms,
                                     DFG_Written:$mom, DFG_Tensor:$lr, DFG_Tensor:$rho, DFG_Tensor:$momentum, DFG_Tensor:$epsilon),
                                     (ins), (ins), [{
  Value var = args[0], mg = args[1], ms = args[2], mom = args[3], lr = args[4], rho = args[5], momentum = args[6], epsilon = args[7], grad = args[8];
  Value rate = s.sub(s.constant(grad.getType(), 1.0), rho);
  ms = s.add(ms, s.mul(s.sub(s.mul(grad, grad), ms), rate));
  mg = s.add(mg, s.mul(s.sub(grad, mg), rate));
  Value denominator = s.add(s.sub(ms, s.mul(mg, mg)), epsilon);
  mom = s.add(s.mul(mom, momentum), s.div(s.mul(grad, lr), s.math<::mlir::math::SqrtOp>(denominator)));
  return {s.sub(var, mom), mg, ms, mom};
}]>;

defm Adadelta : DFG_Optimizer<"adadelta", "0, 1, 2", 6, (ins DFG_Written:$var, DFG_Written:$accum, DFG_Written:$accum_update, DFG_Tensor:$lr,
                              DFG_Tensor:$rho, DFG_Tensor:$epsilon), (ins), (ins), [{
  Value var = args[0], accum = args[1], accumUpdate = args[2], lr = args[3], rho = args[4], epsilon = args[5], grad = args[6];
  Value rate = s.sub(s.constant(grad.getType(), 1.0), rho);
  accum = s.add(s.mul(accum, rho), s.mul(s.mul(grad, grad), rate));
  Value update = s.mul(s.math<::mlir::math::SqrtOp>(s.add(accumUpdate, epsilon)),
                       s.div(grad, s.math<::mlir::math::SqrtOp>(s.add(accum, epsilon))));
  accumUpdate = s.add(s.mul(accumUpdate, rho), s.mul(s.mul(update, update), rate));
  return {s.sub(var, s.mul(update, lr)), accum, accumUpdate};
}]>;

// The value of FTRL-proximal (McMahan et al., Ad click prediction, 2013): names `var`, `accum`, `linear`, `grad`, `lr`, `l1`, `l2`, `lrPower`
// are there, `pulled` is the gradient that moves the linear term.
defvar ftrl = [{
  Value newAccum = s.add(accum, s.mul(grad, grad));
  Value two = s.constant(grad.getType(), 2.0), power = s.neg(lrPower);
  Value newPower = s.pow(newAccum, power), difference = s.sub(newPower, s.pow(accum, power));
  Value quadratic, bound = l1;
  if (getMultiplyLinearByLr()) {
    linear = s.add(linear, s.sub(s.mul(pulled, lr), s.mul(difference, var)));
    quadratic = s.add(newPower, s.mul(s.mul(two, l2), lr));
    bound = s.mul(l1, lr);
  } else {
    linear = s.add(linear, s.sub(pulled, s.mul(s.div(difference, lr), var)));
    quadratic = s.add(s.div(newPower, lr), s.mul(two, l2));
  }
  Value clipped = s.maximum(s.minimum(linear, bound), s.neg(bound));
  return {s.div(s.sub(clipped, linear), quadratic), newAccum, linear};
}];
defvar multiplyLinear = (ins DefaultValuedAttr<BoolAttr, "false">:$multiply_linear_by_lr);

defm Ftrl : DFG_Optimizer<"ftrl", "0, 1, 2", 3, (ins DFG_Written:$var, DFG_Written:$accum, DFG_Written:$linear),
                          (ins DFG_Tensor:$lr, DFG_Tensor:$l1, DFG_Tensor:$l2, DFG_Tensor:$lr_power), multiplyLinear, !strconcat([{
  Value var = args[0], accum = args[1], linear = args[2], grad = args[3], lr = args[4], l1 = args[5], l2 = args[6], lrPower = args[7];
  Value pulled = grad;
}], ftrl)>;

defm FtrlV2 : DFG_Optimizer<"ftrl_v2", "0, 1, 2", 3, (ins DFG_Written:$var, DFG_Written:$accum, DFG_Written:$linear),
                            (ins DFG_Tensor:$lr, DFG_Tensor:$l1, DFG_Tensor:$l2, DFG_Tensor:$l2_shrinkage, DFG_Tensor:$lr_power), multiplyLinear, !strconcat([{
  Value var = args[0], accum = args[1], linear = args[2], grad = args[3], lr = args[4], l1 = args[5], l2 = args[6], lrPower = args[8];
  Value pulled = s.add(grad, s.mul(s.mul(s.constant(grad.getType(), 2.0), args[7]), var));
}], ftrl)>;

// A step of size `step` from `var` along `grad`, then the proximal operator of l1 and l2: names are there.
defvar proximal = [{
  Value moved = s.sub(var, s.mul(grad, step));
  Value zero = s.constant(grad.getType(), 0.0), one = s.constant(grad.getType(), 1.0);
  Value shrunk = s.mul(s.sign(moved), s.maximum(s.sub(s.abs(moved), s.mul(step, l1)), zero));
  var = s.div(shrunk, s.add(one, s.mul(l2, step)));
}];

defm ProximalAdagrad : DFG_Optimizer<"proximal_adagrad", "0, 1", 5, (ins DFG_Written:$var, DFG_Written:$accum, DFG_Tensor:$lr, DFG_Tensor:$l1,
                                     DFG_Tensor:$l2), (ins), (ins), !strconcat([{
  Value var = args[0], accum = args[1], lr = args[2], l1 = args[3], l2 = args[4], grad = args[5];
  accum = s.add(accum, s.mul(grad, grad));
  Value step = s.div(lr, s.math<::mlir::math::SqrtOp>(accum));
}], proximal, "return {var, accum};")>;

// Dual averaging: the variable follows from the sums of gradients and of their squares since the first step, not from what it was.
// `global_step`, an integer, is the number of steps so far, this one included.
defm AdagradDA : DFG_Optimizer<"adagrad_da", "0, 1, 2", 3, (ins DFG_Written:$var, DFG_Written:$gradient_accumulator,
                               DFG_Written:$gradient_squared_accumulator), (ins DFG_Tensor:$lr, DFG_Tensor:$l1, DFG_Tensor:$l2, DFG_Tensor:$global_step),
                               (ins), [{
  Value sum = args[1], squares = args[2], grad = args[3], lr = args[4], l1 = args[5], l2 = args[6], step = s.cast(args[7], grad.getType());
  sum = s.add(sum, grad);
  squares = s.add(squares, s.mul(grad, grad));
  Value zero = s.constant(grad.getType(), 0.0);
  Value shrunk = s.mul(s.sign(sum), s.maximum(s.sub(s.abs(sum), s.mul(l1, step)), zero));
  Value scale = s.add(s.mul(s.mul(l2, step), lr), s.math<::mlir::math::SqrtOp>(squares));
  return {s.div(s.mul(s.neg(lr), shrunk), scale), sum, squares};
}]>;

defm ProximalGradientDescent : DFG_Optimizer<"proximal_gradient_descent", "0", 4, (ins DFG_Written:$var, DFG_Tensor:$alpha, DFG_Tensor:$l1,
                                             DFG_Tensor:$l2), (ins), (ins), !strconcat([{
  Value var = args[0], step = args[1], l1 = args[2], l2 = args[3], grad = args[4];
}], proximal, "return {var};")>;

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

def DFG_ApplyAdamWithAmsgradOp : DFG_Update<"apply_adam_with_amsgrad", "\"\", \"ResourceApplyAdamWithAmsgrad\"", "0, 1, 2, 3", 10, [{
  Value var = args[0], m = args[1], v = args[2], vhat = args[3], beta1Power = args[4], beta2Power = args[5], lr = args[6];
  Value beta1 = args[7], beta2 = args[8], epsilon = args[9], grad = args[10];
  Value one = s.constant(grad.getType(), 1.0);
  Value alpha = s.div(s.mul(lr, s.math<::mlir::math::SqrtOp>(s.sub(one, beta2Power))), s.sub(one, beta1Power));
  m = s.add(m, s.mul(s.sub(grad, m), s.sub(one, beta1)));
  v = s.add(v, s.mul(s.sub(s.mul(grad, grad), v), s.sub(one, beta2)));
  vhat = s.maximum(vhat, v);
  return {s.sub(var, s.div(s.mul(m, alpha), s.add(s.math<::mlir::math::SqrtOp>(vhat), epsilon))), m, v, vhat};
}]> {
  let arguments = (ins DFG_Written:$var, DFG_Written:$m, DFG_Written:$v, DFG_Written:$vhat, DFG_Tensor:$beta1_power, DFG_Tensor:$beta2_power,
                       DFG_Tensor:$lr, DFG_Tensor:$beta1, DFG_Tensor:$beta2, DFG_Tensor:$epsilon, DFG_Tensor:$grad);
  let types = "T:10";
}

def DFG_ApplyAdaMaxOp : DFG_Update<"apply_ada_max", "\"ApplyAdaMax\", \"ResourceApplyAdaMax\"", "0, 1, 2", 8, [{
  Value var = args[0], m = args[1], v = args[2], beta1Power = args[3], lr = args[4], beta1 = args[5], beta2 = args[6], epsilon = args[7], grad = args[8];
  Value one = s.constant(grad.getType(), 1.0);
  m = s.add(m, s.mul(s.sub(grad, m), s.sub(one, beta1)));
  v = s.maximum(s.mul(beta2, v), s.abs(grad));
  return {s.sub(var, s.mul(s.div(lr, s.sub(one, beta1Power)), s.div(m, s.add(v, epsilon)))), m, v};
}]> {
  let arguments = (ins DFG_Written:$var, DFG_Written:$m, DFG_Written:$v, DFG_Tensor:$beta1_power, DFG_Tensor:$lr, DFG_Tensor:$beta1,
                       DFG_Tensor:$beta2, DFG_Tensor:$epsilon, DFG_Tensor:$grad);
  let types = "T:8";
}

// Both scale the step by whether the gradient has the sign of its moving average (Bello et al., Neural optimizer search, 2017).
class DFG_SignOptimizer<string mnemonic, string tensorflow, string rate, code scale> : DFG_Update<mnemonic, tensorflow, "0, 1", 6, [{
  Value var = args[0], m = args[1], lr = args[2], }] # rate # [{ = args[3], signDecay = args[4], beta = args[5], grad = args[6];
  m = s.add(s.mul(m, beta), s.mul(grad, s.sub(s.constant(grad.getType(), 1.0), beta)));
  Value agreement = s.mul(signDecay, s.mul(s.sign(grad), s.sign(m)));
  Value scale = }] # scale # [{;
  return {s.sub(var, s.mul(lr, s.mul(scale, grad))), m};
}]> {
  let arguments = (ins DFG_Written:$var, DFG_Written:$m, DFG_Tensor:$lr, DFG_Tensor:$rate, DFG_Tensor:$sign_decay, DFG_Tensor:$beta, DFG_Tensor:$grad);
  let types = "T:6";
}
def DFG_ApplyAddSignOp : DFG_SignOptimizer<"apply_add_sign", "\"ApplyAddSign\", \"ResourceApplyAddSign\"", "alpha", "s.add(alpha, agreement)">;
def DFG_ApplyPowerSignOp : DFG_SignOptimizer<"apply_power_sign", "\"ApplyPowerSign\", \"ResourceApplyPowerSign\"", "logBase",
  "s.math<::mlir::math::ExpOp>(s.mul(logBase, agreement))">;
#endif // DFG_UPDATE_OPS
