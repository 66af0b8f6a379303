// RUN: distc-opt %s --dfg-split-complex --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A transform of real numbers is two products with matrices, and one whose imaginary part nobody asks for is one in the end.
// Tables are exact where a number is a whole quarter of a turn.
// CHECK-LABEL: dfg.graph
// CHECK: %[[X:.*]] = dfg.placeholder
// CHECK-NOT: complex
// CHECK: %[[COSINES:.*]] = dfg.const dense<{{.*}}[1.000000e+00, 0.000000e+00, -1.000000e+00]]> : tensor<4x3xf32>
// CHECK: %[[RE:.*]] = dfg.mat_mul %{{.*}}, %[[COSINES]]
// CHECK: %[[SINES:.*]] = dfg.const dense<{{.*}}[0.000000e+00, 1.000000e+00, 0.000000e+00]]> : tensor<4x3xf32>
// CHECK: %[[IM:.*]] = dfg.mat_mul %{{.*}}, %[[SINES]]
// CHECK: dfg.maximum
// CHECK: dfg.sqrt
// CHECK: %[[SIZE:.*]] = dfg.identity %{{.*}} loc("size")
// CHECK: dfg.sum %[[SIZE]]
dfg.graph attributes {loss = "loss:0"} {
  %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
  %length = dfg.const dense<4> : tensor<1xi32> : tensor<1xi32> loc("length")
  %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("axes")
  %z = dfg.opaque "RFFT"(%x, %length) : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?x3xcomplex<f32>> loc("z")
  %size = dfg.opaque "ComplexAbs"(%z) : (tensor<?x3xcomplex<f32>>) -> tensor<?x3xf32> loc("size")
  %loss = dfg.sum %size, %axes : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
}

// -----

// A product has four parts, and two where one number is real; what moves elements moves both parts.
// CHECK-LABEL: dfg.graph
// CHECK: %[[A:.*]] = dfg.placeholder
// CHECK: %[[B:.*]] = dfg.placeholder
// CHECK-NOT: complex
// CHECK: %[[RR:.*]] = dfg.mul %[[P:.*]], %[[P]]
// CHECK: %[[II:.*]] = dfg.mul
// CHECK: dfg.sub %[[RR]], %[[II]]
// CHECK: dfg.transpose {{.*}} loc("turned/real_part")
// CHECK: dfg.transpose {{.*}} loc("turned/imaginary_part")
// CHECK: %[[SCALED:.*]] = dfg.mul
// CHECK-NOT: dfg.sub
// CHECK: loc("loss")
dfg.graph attributes {loss = "loss:0"} {
  %a = dfg.placeholder : () -> tensor<?x4xf32> loc("a")
  %b = dfg.placeholder : () -> tensor<?x4xf32> loc("b")
  %order = dfg.const dense<[1, 0]> : tensor<2xi32> : tensor<2xi32> loc("order")
  %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("axes")
  %two = dfg.const dense<2.0> : tensor<f32> : tensor<f32> loc("two")
  %scale = dfg.cast %two : (tensor<f32>) -> tensor<complex<f32>> loc("scale")
  %z = dfg.opaque "Complex"(%a, %b) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xcomplex<f32>> loc("z")
  %square = dfg.mul %z, %z : (tensor<?x4xcomplex<f32>>, tensor<?x4xcomplex<f32>>) -> tensor<?x4xcomplex<f32>> loc("square")
  %turned = dfg.transpose %square, %order : (tensor<?x4xcomplex<f32>>, tensor<2xi32>) -> tensor<4x?xcomplex<f32>> loc("turned")
  %scaled = dfg.mul %turned, %scale : (tensor<4x?xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4x?xcomplex<f32>> loc("scaled")
  %real = dfg.opaque "Real"(%scaled) : (tensor<4x?xcomplex<f32>>) -> tensor<4x?xf32> loc("real")
  %loss = dfg.sum %real, %axes : (tensor<4x?xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
}

// -----

// What no endpoint needs stays.
// CHECK-LABEL: dfg.graph
// CHECK: "RFFT"
dfg.graph attributes {loss = "loss:0"} {
  %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
  %length = dfg.const dense<4> : tensor<1xi32> : tensor<1xi32> loc("length")
  %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("axes")
  %z = dfg.opaque "RFFT"(%x, %length) : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?x3xcomplex<f32>> loc("z")
  %loss = dfg.sum %x, %axes : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
}

// -----

// In every form that an operation has.
// CHECK-LABEL: dfg.graph
// CHECK: %[[A:.*]] = dfg.placeholder
// CHECK: %[[C:.*]] = dfg.identity %[[A]]
// CHECK-NOT: complex
// CHECK: dfg.concat %{{.*}}, %[[C]], %[[C]] : (tensor<i32>, tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x6xf32>
// CHECK: dfg.batch_mat_mul_v2 %[[C]], %[[C]]
// CHECK: dfg.matrix_diag_part
dfg.graph attributes {fetches = ["y:0", "z:0"]} {
  %a = dfg.placeholder : () -> tensor<2x3x3xf32> loc("a")
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32> loc("two")
  %c = dfg.cast %a : (tensor<2x3x3xf32>) -> tensor<2x3x3xcomplex<f32>> loc("c")
  %joined = dfg.concat %two, %c, %c : (tensor<i32>, tensor<2x3x3xcomplex<f32>>, tensor<2x3x3xcomplex<f32>>) -> tensor<2x3x6xcomplex<f32>> loc("joined")
  %y = dfg.opaque "Real"(%joined) : (tensor<2x3x6xcomplex<f32>>) -> tensor<2x3x6xf32> loc("y")
  %product = dfg.batch_mat_mul_v3 %c, %c : (tensor<2x3x3xcomplex<f32>>, tensor<2x3x3xcomplex<f32>>) -> tensor<2x3x3xcomplex<f32>> loc("product")
  %diagonal = dfg.matrix_diag_part %product : (tensor<2x3x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>> loc("diagonal")
  %z = dfg.opaque "Real"(%diagonal) : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32> loc("z")
}

// -----

// What the gradient waits for, and only a node reads that nothing needs, as TensorFlow's gradients of two operands have it.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.group {control = ["c"]}
// CHECK: dfg.neg %{{.*}} {control = ["both"]}
dfg.graph attributes {loss = "loss:0"} {
  %a = dfg.placeholder : () -> tensor<2x3xf32> loc("a")
  %c = dfg.cast %a : (tensor<2x3xf32>) -> tensor<2x3xcomplex<f32>> loc("c")
  dfg.group {control = ["c"]} : () -> () loc("both")
  %unused = dfg.identity %c {control = ["both"]} : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>> loc("unused")
  %negated = dfg.neg %a {control = ["both"]} : (tensor<2x3xf32>) -> tensor<2x3xf32> loc("negated")
  %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("axes")
  %loss = dfg.sum %negated, %axes : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
}
