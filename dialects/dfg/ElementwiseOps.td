//===- ElementwiseOps.td - Element-wise operations and their gradients -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DFG_ELEMENTWISE_OPS
#define DFG_ELEMENTWISE_OPS

include "dialects/dfg/DfgOpBase.td"

// ---- The value as it is ---------------------------------------------------------------
let linearity = "Joint" in {
// A variable's handle as well.
def DFG_IdentityOp : DFG_Unary<"identity", "\"Identity\"", "return x;", [DFG_Forwards]> {
  let created = 1;
  let arguments = (ins AnyTypeOf<[DFG_Tensor, DFG_Handle]>:$x);
  let results = (outs AnyTypeOf<[DFG_Tensor, DFG_Handle]>:$result);
}
def DFG_StopGradientOp : DFG_Unary<"stop_gradient", "\"StopGradient\"", "return x;", [DFG_Forwards]>;
def DFG_PreventGradientOp : DFG_Unary<"prevent_gradient", "\"PreventGradient\"", "return x;", [DFG_Forwards]>;
def DFG_SnapshotOp : DFG_Unary<"snapshot", "\"Snapshot\"", "return x;", [DFG_Forwards]>;
def DFG_NegOp : DFG_Unary<"neg", "\"Neg\"", "return s.neg(x);">;
def DFG_ZerosLikeOp : DFG_Unary<"zeros_like", "\"ZerosLike\"", "return s.constant(x.getType(), 0.0);", [DFG_Fills]> { let created = 1; }
def DFG_AddOp : DFG_Binary<"add", "\"Add\"", "return s.add(x, y);", [DFG_Adds]>;
def DFG_AddV2Op : DFG_Binary<"add_v2", "\"AddV2\"", "return s.add(x, y);", [DFG_Adds]> { let created = 1; }
def DFG_SubOp : DFG_Binary<"sub", "\"Sub\"", "return s.sub(x, y);"> { let created = 1; }
}
def DFG_OnesLikeOp : DFG_Unary<"ones_like", "\"OnesLike\"", "return s.constant(x.getType(), 1.0);", [DFG_Fills]>;

def DFG_CastOp : DFG_Unary<"cast", "\"Cast\"", "return s.cast(x, getElementTypeOrSelf(getResult().getType()));"> {
  let created = 1;
  let types = "SrcT:0 DstT:r0";
  let shape = "cast";
  let linearity = "Joint";
}

def DFG_BitcastOp : DFG_Unary<"bitcast", "\"Bitcast\"", "return s.bitcast(x, getElementTypeOrSelf(getResult().getType()));"> {
  let types = "T:0 type:r0";
  let shape = "bitcast";
}

// ---- Unary ------------------------------------------------------------------------------
def DFG_AbsOp : DFG_Unary<"abs", "\"Abs\"", "return s.abs(x);"> { let degree = "1"; }
def DFG_SignOp : DFG_Unary<"sign", "\"Sign\"", "return s.sign(x);"> { let degree = "0"; }
def DFG_SquareOp : DFG_Unary<"square", "\"Square\"", "return s.mul(x, x);"> { let degree = "2"; }
def DFG_SqrtOp : DFG_Unary<"sqrt", "\"Sqrt\"", "return s.math<::mlir::math::SqrtOp>(x);"> { let degree = "0.5"; let created = 1; }
def DFG_RsqrtOp : DFG_Unary<"rsqrt", "\"Rsqrt\"", "return s.div(s.constant(x.getType(), 1.0), s.math<::mlir::math::SqrtOp>(x));"> { let degree = "-0.5"; }
def DFG_ReciprocalOp : DFG_Unary<"reciprocal", "\"Reciprocal\"", "return s.div(s.constant(x.getType(), 1.0), x);"> { let degree = "-1"; }
def DFG_InvOp : DFG_Unary<"inv", "\"Inv\"", "return s.div(s.constant(x.getType(), 1.0), x);"> { let degree = "-1"; }
def DFG_ExpOp : DFG_Unary<"exp", "\"Exp\"", "return s.math<::mlir::math::ExpOp>(x);">;
def DFG_Expm1Op : DFG_Unary<"expm1", "\"Expm1\"", "return s.math<::mlir::math::ExpM1Op>(x);">;
def DFG_LogOp : DFG_Unary<"log", "\"Log\"", "return s.math<::mlir::math::LogOp>(x);">;
def DFG_Log1pOp : DFG_Unary<"log1p", "\"Log1p\"", "return s.math<::mlir::math::Log1pOp>(x);">;
def DFG_SinOp : DFG_Unary<"sin", "\"Sin\"", "return s.math<::mlir::math::SinOp>(x);">;
def DFG_CosOp : DFG_Unary<"cos", "\"Cos\"", "return s.math<::mlir::math::CosOp>(x);">;
def DFG_TanOp : DFG_Unary<"tan", "\"Tan\"", "return s.math<::mlir::math::TanOp>(x);">;
def DFG_AsinOp : DFG_Unary<"asin", "\"Asin\"", "return s.math<::mlir::math::AsinOp>(x);">;
def DFG_AcosOp : DFG_Unary<"acos", "\"Acos\"", "return s.math<::mlir::math::AcosOp>(x);">;
def DFG_AtanOp : DFG_Unary<"atan", "\"Atan\"", "return s.math<::mlir::math::AtanOp>(x);">;
def DFG_SinhOp : DFG_Unary<"sinh", "\"Sinh\"", "return s.math<::mlir::math::SinhOp>(x);">;
def DFG_CoshOp : DFG_Unary<"cosh", "\"Cosh\"", "return s.math<::mlir::math::CoshOp>(x);">;
def DFG_TanhOp : DFG_Unary<"tanh", "\"Tanh\"", "return s.math<::mlir::math::TanhOp>(x);">;
def DFG_AsinhOp : DFG_Unary<"asinh", "\"Asinh\"", "return s.math<::mlir::math::AsinhOp>(x);">;
def DFG_AcoshOp : DFG_Unary<"acosh", "\"Acosh\"", "return s.math<::mlir::math::AcoshOp>(x);">;
def DFG_AtanhOp : DFG_Unary<"atanh", "\"Atanh\"", "return s.math<::mlir::math::AtanhOp>(x);">;
def DFG_ErfOp : DFG_Unary<"erf", "\"Erf\"", "return s.math<::mlir::math::ErfOp>(x);">;
def DFG_ErfcOp : DFG_Unary<"erfc", "\"Erfc\"", "return s.math<::mlir::math::ErfcOp>(x);">;
def DFG_ErfinvOp : DFG_Unary<"erfinv", "\"Erfinv\"", "return s.erfinv(x);">;
def DFG_NdtriOp : DFG_Unary<"ndtri", "\"Ndtri\"", "return s.ndtri(x);">;
def DFG_LgammaOp : DFG_Unary<"lgamma", "\"Lgamma\"", "return s.lgamma(x);">;
def DFG_DigammaOp : DFG_Unary<"digamma", "\"Digamma\"", "return s.digamma(x);">;
// Functions that the runtime's library computes (runtime/cpu/kernels/special.cpp), in float64.
class DFG_SpecialUnary<string mnemonic, string tensorflow, string function> : DFG_Unary<mnemonic, tensorflow, "return s.special(\"" # function # "\", x);">;
def DFG_BesselI0Op : DFG_SpecialUnary<"bessel_i0", "\"BesselI0\"", "bessel_i0">;
def DFG_BesselI0eOp : DFG_SpecialUnary<"bessel_i0e", "\"BesselI0e\"", "bessel_i0e">;
def DFG_BesselI1Op : DFG_SpecialUnary<"bessel_i1", "\"BesselI1\"", "bessel_i1">;
def DFG_BesselI1eOp : DFG_SpecialUnary<"bessel_i1e", "\"BesselI1e\"", "bessel_i1e">;
def DFG_BesselJ0Op : DFG_SpecialUnary<"bessel_j0", "\"BesselJ0\"", "bessel_j0">;
def DFG_BesselJ1Op : DFG_SpecialUnary<"bessel_j1", "\"BesselJ1\"", "bessel_j1">;
def DFG_BesselK0Op : DFG_SpecialUnary<"bessel_k0", "\"BesselK0\"", "bessel_k0">;
def DFG_BesselK0eOp : DFG_SpecialUnary<"bessel_k0e", "\"BesselK0e\"", "bessel_k0e">;
def DFG_BesselK1Op : DFG_SpecialUnary<"bessel_k1", "\"BesselK1\"", "bessel_k1">;
def DFG_BesselK1eOp : DFG_SpecialUnary<"bessel_k1e", "\"BesselK1e\"", "bessel_k1e">;
def DFG_BesselY0Op : DFG_SpecialUnary<"bessel_y0", "\"BesselY0\"", "bessel_y0">;
def DFG_BesselY1Op : DFG_SpecialUnary<"bessel_y1", "\"BesselY1\"", "bessel_y1">;
def DFG_DawsnOp : DFG_SpecialUnary<"dawsn", "\"Dawsn\"", "dawsn">;
def DFG_ExpintOp : DFG_SpecialUnary<"expint", "\"Expint\"", "expint">;
def DFG_FresnelCosOp : DFG_SpecialUnary<"fresnel_cos", "\"FresnelCos\"", "fresnel_cos">;
def DFG_FresnelSinOp : DFG_SpecialUnary<"fresnel_sin", "\"FresnelSin\"", "fresnel_sin">;
def DFG_SpenceOp : DFG_SpecialUnary<"spence", "\"Spence\"", "spence">;
def DFG_PopulationCountOp : DFG_Unary<"population_count", "\"PopulationCount\"",
  "return s.cast(s.math<::mlir::math::CtPopOp>(x), getElementTypeOrSelf(getResult().getType()));"> { let types = "T:0 =uint8:r0"; }
def DFG_CeilOp : DFG_Unary<"ceil", "\"Ceil\"", "return s.math<::mlir::math::CeilOp>(x);">;
def DFG_FloorOp : DFG_Unary<"floor", "\"Floor\"", "return s.math<::mlir::math::FloorOp>(x);">;
def DFG_RoundOp : DFG_Unary<"round", "\"Round\"", "return s.roundEven(x);">;
def DFG_RintOp : DFG_Unary<"rint", "\"Rint\"", "return s.roundEven(x);">;
def DFG_SigmoidOp : DFG_Unary<"sigmoid", "\"Sigmoid\"", "return s.sigmoid(x);">;
def DFG_ReluOp : DFG_Unary<"relu", "\"Relu\"", "return s.maximum(x, s.constant(x.getType(), 0.0));"> { let degree = "1"; }
def DFG_Relu6Op : DFG_Unary<"relu6", "\"Relu6\"",
  "return s.minimum(s.maximum(x, s.constant(x.getType(), 0.0)), s.constant(x.getType(), 6.0));">;
def DFG_EluOp : DFG_Unary<"elu", "\"Elu\"", "return s.select(s.less(x, s.constant(x.getType(), 0.0)), s.math<::mlir::math::ExpM1Op>(x), x);">;
def DFG_SeluOp : DFG_Unary<"selu", "\"Selu\"", [{
  Value scale = s.constant(x.getType(), 1.0507009873554804934193349852946);
  Value scaleAlpha = s.constant(x.getType(), 1.7580993408473768599402175208123);
  return s.select(s.less(x, s.constant(x.getType(), 0.0)), s.mul(scaleAlpha, s.math<::mlir::math::ExpM1Op>(x)), s.mul(scale, x));
}]>;
def DFG_LeakyReluOp : DFG_Unary<"leaky_relu", "\"LeakyRelu\"",
  "return s.select(s.greater(x, s.constant(x.getType(), 0.0)), x, s.mul(x, s.constant(x.getType(), getAlpha().convertToDouble())));"> {
  let degree = "1";
  let arguments = (ins DFG_Tensor:$x, DefaultValuedAttr<F32Attr, "0.2f">:$alpha);
}
def DFG_SoftplusOp : DFG_Unary<"softplus", "\"Softplus\"", "return s.softplus(x);">;
def DFG_SoftsignOp : DFG_Unary<"softsign", "\"Softsign\"", "return s.div(x, s.add(s.constant(x.getType(), 1.0), s.abs(x)));">;
def DFG_InvertOp : DFG_Unary<"invert", "\"Invert\"", "return s.bitNot(x);">;
let shape = "predicate", types = "T:0 =bool:r0" in {
def DFG_IsNanOp : DFG_Unary<"is_nan", "\"IsNan\"", "return s.notEqual(x, x);">;
def DFG_IsInfOp : DFG_Unary<"is_inf", "\"IsInf\"", "return s.isInf(x);">;
def DFG_IsFiniteOp : DFG_Unary<"is_finite", "\"IsFinite\"", "return s.isFinite(x);">;
def DFG_LogicalNotOp : DFG_Unary<"logical_not", "\"LogicalNot\"", "return s.bitNot(x);"> { let created = 1; let types = "=bool:r0"; }
}

// ---- Binary ------------------------------------------------------------------------------
let linearity = "Each" in {
def DFG_MulOp : DFG_Binary<"mul", "\"Mul\"", "return s.mul(x, y);"> { let created = 1; }
def DFG_MulNoNanOp : DFG_Binary<"mul_no_nan", "\"MulNoNan\"",
  "return s.select(s.equal(y, s.constant(y.getType(), 0.0)), s.constant(y.getType(), 0.0), s.mul(x, y));">;
}
let linearity = "First" in {
def DFG_DivOp : DFG_Binary<"div", "\"Div\"", "return s.truncateDiv(x, y);", [DFG_Divides, DFG_ChecksDivisor]>;
def DFG_RealDivOp : DFG_Binary<"real_div", "\"RealDiv\"", "return s.div(x, y);", [DFG_Divides]> { let created = 1; }
def DFG_DivNoNanOp : DFG_Binary<"div_no_nan", "\"DivNoNan\"",
  "return s.select(s.equal(y, s.constant(y.getType(), 0.0)), s.constant(y.getType(), 0.0), s.div(x, y));", [DFG_Divides]>;
}
def DFG_FloorDivOp : DFG_Binary<"floor_div", "\"FloorDiv\"", "return s.floorDiv(x, y);", [DFG_ChecksDivisor]>;
def DFG_TruncateDivOp : DFG_Binary<"truncate_div", "\"TruncateDiv\"", [{
  Value quotient = s.div(x, y);
  return llvm::isa<::mlir::FloatType>(quotient.getType()) ? s.math<::mlir::math::TruncOp>(quotient) : quotient;
}], [DFG_ChecksDivisor]>;
def DFG_ModOp : DFG_Binary<"mod", "\"Mod\"", "return s.truncateMod(x, y);", [DFG_ChecksDivisor]>;
def DFG_TruncateModOp : DFG_Binary<"truncate_mod", "\"TruncateMod\"", "return s.truncateMod(x, y);", [DFG_ChecksDivisor]>;
def DFG_FloorModOp : DFG_Binary<"floor_mod", "\"FloorMod\"", "return s.floorMod(x, y);", [DFG_ChecksDivisor]>;
def DFG_PowOp : DFG_Binary<"pow", "\"Pow\"", "return s.pow(x, y);">;
def DFG_MaximumOp : DFG_Binary<"maximum", "\"Maximum\"", "return s.maximum(x, y);"> { let degree = "1"; }
def DFG_MinimumOp : DFG_Binary<"minimum", "\"Minimum\"", "return s.minimum(x, y);"> { let degree = "1"; }
def DFG_SquaredDifferenceOp : DFG_Binary<"squared_difference", "\"SquaredDifference\"", "Value d = s.sub(x, y); return s.mul(d, d);"> { let degree = "2"; }
def DFG_Atan2Op : DFG_Binary<"atan2", "\"Atan2\"", "return s.math2<::mlir::math::Atan2Op>(x, y);">;
def DFG_NextAfterOp : DFG_Binary<"next_after", "\"NextAfter\"", "return s.nextAfter(x, y);">;
def DFG_XdivyOp : DFG_Binary<"xdivy", "\"Xdivy\"", "return s.unlessZero(x, s.div(x, y));">;
def DFG_XlogyOp : DFG_Binary<"xlogy", "\"Xlogy\"", "return s.unlessZero(x, s.mul(x, s.math<::mlir::math::LogOp>(y)));">;
def DFG_Xlog1pyOp : DFG_Binary<"xlog1py", "\"Xlog1py\"", "return s.unlessZero(x, s.mul(x, s.math<::mlir::math::Log1pOp>(y)));">;
class DFG_SpecialBinary<string mnemonic, string tensorflow, string function> : DFG_Binary<mnemonic, tensorflow, "return s.special(\"" # function # "\", {x, y});">;
def DFG_PolygammaOp : DFG_SpecialBinary<"polygamma", "\"Polygamma\"", "polygamma">;
def DFG_ZetaOp : DFG_SpecialBinary<"zeta", "\"Zeta\"", "zeta">;
def DFG_IgammaOp : DFG_SpecialBinary<"igamma", "\"Igamma\"", "igamma">;
def DFG_IgammacOp : DFG_SpecialBinary<"igammac", "\"Igammac\"", "igammac">;
def DFG_IgammaGradAOp : DFG_SpecialBinary<"igamma_grad_a", "\"IgammaGradA\"", "igamma_grad_a">;
def DFG_RandomGammaGradOp : DFG_SpecialBinary<"random_gamma_grad", "\"RandomGammaGrad\"", "random_gamma_grad">;
def DFG_BitwiseAndOp : DFG_Binary<"bitwise_and", "\"BitwiseAnd\"", "return s.bitAnd(x, y);"> { let created = 1; }
def DFG_BitwiseOrOp : DFG_Binary<"bitwise_or", "\"BitwiseOr\"", "return s.bitOr(x, y);">;
def DFG_BitwiseXorOp : DFG_Binary<"bitwise_xor", "\"BitwiseXor\"", "return s.bitXor(x, y);">;
def DFG_LeftShiftOp : DFG_Binary<"left_shift", "\"LeftShift\"", "return s.shiftLeft(x, y);">;
def DFG_RightShiftOp : DFG_Binary<"right_shift", "\"RightShift\"", "return s.shiftRight(x, y);">;

let shape = "predicate", types = "T:0 =bool:r0" in {
def DFG_EqualOp : DFG_Binary<"equal", "\"Equal\"", "return s.equal(x, y);", [DFG_Compares]> {
  let degree = "0";
  let created = 1;
  let arguments = (ins DFG_Tensor:$x, DFG_Tensor:$y, DefaultValuedAttr<BoolAttr, "true">:$incompatible_shape_error);
}
def DFG_NotEqualOp : DFG_Binary<"not_equal", "\"NotEqual\"", "return s.notEqual(x, y);", [DFG_Compares]> {
  let degree = "0";
  let created = 1;
  let arguments = (ins DFG_Tensor:$x, DFG_Tensor:$y, DefaultValuedAttr<BoolAttr, "true">:$incompatible_shape_error);
}
def DFG_ApproximateEqualOp : DFG_Binary<"approximate_equal", "\"ApproximateEqual\"",
  "return s.less(s.abs(s.sub(x, y)), s.constant(x.getType(), getTolerance().convertToDouble()));"> {
  let arguments = (ins DFG_Tensor:$x, DFG_Tensor:$y, DefaultValuedAttr<F32Attr, "1e-5f">:$tolerance);
}
def DFG_LessOp : DFG_Binary<"less", "\"Less\"", "return s.less(x, y);", [DFG_Compares]> { let degree = "0"; let created = 1; }
def DFG_LessEqualOp : DFG_Binary<"less_equal", "\"LessEqual\"", "return s.lessEqual(x, y);", [DFG_Compares]> { let degree = "0"; }
def DFG_GreaterOp : DFG_Binary<"greater", "\"Greater\"", "return s.greater(x, y);", [DFG_Compares]> { let degree = "0"; }
def DFG_GreaterEqualOp : DFG_Binary<"greater_equal", "\"GreaterEqual\"", "return s.lessEqual(y, x);", [DFG_Compares]> { let degree = "0"; let created = 1; }
def DFG_LogicalAndOp : DFG_Binary<"logical_and", "\"LogicalAnd\"", "return s.bitAnd(x, y);"> { let created = 1; let types = "=bool:r0"; }
def DFG_LogicalOrOp : DFG_Binary<"logical_or", "\"LogicalOr\"", "return s.bitOr(x, y);"> { let created = 1; let types = "=bool:r0"; }
}

// ---- Gradients of the above, as TensorFlow's own kernels: without broadcasting ------------------
// Where the feature is outside, the gradient is multiplied by zero, so that NaN and infinities are not lost.
let shape = "alike" in {
def DFG_ReluGradOp : DFG_Binary<"relu_grad", "\"ReluGrad\"",
  "return s.mul(x, s.cast(s.greater(y, s.constant(y.getType(), 0.0)), x.getType()));"> { let linearity = "First"; }
def DFG_Relu6GradOp : DFG_Binary<"relu6_grad", "\"Relu6Grad\"", [{
  Value zero = s.constant(y.getType(), 0.0);
  Value inside = s.bitAnd(s.greater(y, zero), s.less(y, s.constant(y.getType(), 6.0)));
  return s.mul(x, s.cast(inside, x.getType()));
}]> { let linearity = "First"; }
def DFG_LeakyReluGradOp : DFG_Binary<"leaky_relu_grad", "\"LeakyReluGrad\"",
  "return s.select(s.greater(y, s.constant(y.getType(), 0.0)), x, s.mul(x, s.constant(x.getType(), getAlpha().convertToDouble())));"> {
  let arguments = (ins DFG_Tensor:$x, DFG_Tensor:$y, DefaultValuedAttr<F32Attr, "0.2f">:$alpha);
  let linearity = "First";
}
def DFG_EluGradOp : DFG_Binary<"elu_grad", "\"EluGrad\"",
  "return s.select(s.less(y, s.constant(y.getType(), 0.0)), s.mul(s.add(y, s.constant(y.getType(), 1.0)), x), x);"> { let linearity = "First"; }
def DFG_SeluGradOp : DFG_Binary<"selu_grad", "\"SeluGrad\"", [{
  Value scale = s.constant(x.getType(), 1.0507009873554804934193349852946);
  Value scaleAlpha = s.constant(x.getType(), 1.7580993408473768599402175208123);
  return s.select(s.less(y, s.constant(y.getType(), 0.0)), s.mul(x, s.add(y, scaleAlpha)), s.mul(x, scale));
}]> { let linearity = "First"; }
def DFG_SoftplusGradOp : DFG_Binary<"softplus_grad", "\"SoftplusGrad\"", "return s.mul(x, s.sigmoid(y));"> { let linearity = "First"; }
def DFG_SoftsignGradOp : DFG_Binary<"softsign_grad", "\"SoftsignGrad\"", [{
  Value d = s.add(s.constant(y.getType(), 1.0), s.abs(y));
  return s.div(x, s.mul(d, d));
}]> { let linearity = "First"; }
let linearity = "Last" in {
def DFG_TanhGradOp : DFG_Binary<"tanh_grad", "\"TanhGrad\"", "return s.mul(y, s.sub(s.constant(x.getType(), 1.0), s.mul(x, x)));">;
def DFG_SigmoidGradOp : DFG_Binary<"sigmoid_grad", "\"SigmoidGrad\"",
  "return s.mul(s.mul(y, x), s.sub(s.constant(x.getType(), 1.0), x));">;
// What gets no gradient gives none, also where the slope is infinite.
def DFG_SqrtGradOp : DFG_Binary<"sqrt_grad", "\"SqrtGrad\"", "return s.unlessZero(y, s.div(s.mul(y, s.constant(x.getType(), 0.5)), x));">;
def DFG_RsqrtGradOp : DFG_Binary<"rsqrt_grad", "\"RsqrtGrad\"",
  "return s.unlessZero(y, s.mul(s.constant(x.getType(), -0.5), s.mul(s.mul(y, x), s.mul(x, x))));">;
def DFG_ReciprocalGradOp : DFG_Binary<"reciprocal_grad", "\"ReciprocalGrad\"", "return s.unlessZero(y, s.neg(s.mul(y, s.mul(x, x))));">;
def DFG_InvGradOp : DFG_Binary<"inv_grad", "\"InvGrad\"", "return s.unlessZero(y, s.neg(s.mul(y, s.mul(x, x))));">;
}
}

// ---- Three operands and more ----------------------------------------------------------------------
def DFG_SelectV2Op : DFG_Ternary<"select_v2", "\"SelectV2\"", "return s.select(x, y, z);", [DFG_Moves]> {
  let created = 1;
  let types = "T:1";
  let shape = "select";
  let linearity = "Joint";
}
def DFG_SelectOp : DFG_Ternary<"select", "\"Select\"", "return s.select(x, y, z);", [DFG_Moves]> {
  let summary = "Select, version 1: a condition of rank 1 chooses whole rows";
  let types = "T:1";
  let shape = "selectRows";
  let linearity = "Joint";
}
def DFG_BetaincOp : DFG_Ternary<"betainc", "\"Betainc\"", "return s.special(\"betainc\", {x, y, z});">;
def DFG_ClipByValueOp : DFG_Ternary<"clip_by_value", "\"ClipByValue\"", "return s.maximum(s.minimum(x, z), y);">;
def DFG_AddNOp : DFG_Elementwise<"add_n", "\"AddN\"", [{
  Value sum = args[0];
  for (Value next : args.drop_front()) sum = s.add(sum, next);
  return sum;
}]> {
  let created = 1;
  let arguments = (ins Variadic<DFG_Tensor>:$inputs);
  let types = "T:0 N:#0";
  let shape = "alike";
  let linearity = "Joint";
}
#endif // DFG_ELEMENTWISE_OPS
