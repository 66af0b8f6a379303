// RUN: distc-opt %s --convert-dfg-to-drt --split-input-file | FileCheck %s

// What has no elements is computed by nothing; what is reduced over nothing is where the reduction starts from.
// CHECK-LABEL: drt.entry "reductions"
dfg.func @reductions() -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi1>)
    attributes {dfg.fetches = ["sum:0", "max:0", "mean:0", "all:0"]} {
  %x = dfg.placeholder : () -> tensor<0x3xf32> loc("x")
  %p = dfg.placeholder : () -> tensor<0x3xi1> loc("p")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
  // CHECK-NOT: ins(
  // CHECK-DAG: arith.constant dense<0.000000e+00> : tensor<3xf32>
  // CHECK-DAG: arith.constant dense<0xFF800000> : tensor<3xf32>
  // CHECK-DAG: arith.constant dense<true> : tensor<3xi1>
  %exp = dfg.exp %x : (tensor<0x3xf32>) -> tensor<0x3xf32>
  %sum = dfg.sum %exp, %axis : (tensor<0x3xf32>, tensor<i32>) -> tensor<3xf32>
  %max = dfg.max %x, %axis : (tensor<0x3xf32>, tensor<i32>) -> tensor<3xf32>
  %mean = dfg.mean %x, %axis : (tensor<0x3xf32>, tensor<i32>) -> tensor<3xf32>
  %all = dfg.all %p, %axis : (tensor<0x3xi1>, tensor<i32>) -> tensor<3xi1>
  dfg.return %sum, %max, %mean, %all : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi1>
}

// -----

// A fetch takes a place of no bytes. Other shapes of nothing are nothing.
// CHECK-LABEL: drt.entry "fetched"
dfg.func @fetched() -> tensor<2x0xf32> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<4xf32> loc("x")
  %none = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
  %shape = dfg.const dense<[2, 0]> : tensor<2xi32> : tensor<2xi32>
  %part = dfg.slice %x, %none, %none : (tensor<4xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<0xf32>
  %y = dfg.reshape %part, %shape : (tensor<0xf32>, tensor<2xi32>) -> tensor<2x0xf32>
  // CHECK: %[[EMPTY:.*]] = drt.empty : () -> tensor<2x0xf32>
  // CHECK: drt.fetch %[[EMPTY]]
  dfg.return %y : tensor<2x0xf32>
}

// -----

// Nothing is read of an input without elements.
// CHECK-LABEL: drt.entry "joined"
dfg.func @joined() -> tensor<2x3xf32> attributes {dfg.fetches = ["y:0"]} {
  // CHECK: %[[X:.*]] = drt.feed {name = "x"}
  %x = dfg.placeholder : () -> tensor<2x3xf32> loc("x")
  %none = dfg.placeholder : () -> tensor<2x0xf32> loc("none")
  %axis = dfg.const dense<1> : tensor<i32> : tensor<i32>
  // CHECK: linalg.generic
  // CHECK: tensor.extract %[[X]]
  // CHECK-NOT: tensor.extract
  %y = dfg.concat_v2 %none, %x, %axis : (tensor<2x0xf32>, tensor<2x3xf32>, tensor<i32>) -> tensor<2x3xf32>
  dfg.return %y : tensor<2x3xf32>
}

// -----

// A product over nothing is zero, and no library is called.
// CHECK-LABEL: drt.entry "products"
dfg.func @products() -> tensor<2x3xf32> attributes {dfg.fetches = ["y:0"]} {
  %a = dfg.placeholder : () -> tensor<2x0xf32> loc("a")
  %b = dfg.placeholder : () -> tensor<0x3xf32> loc("b")
  // CHECK: arith.constant dense<0.000000e+00> : tensor<2x3xf32>
  // CHECK-NOT: drt.matmul
  %y = dfg.mat_mul %a, %b : (tensor<2x0xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
  dfg.return %y : tensor<2x3xf32>
}

// -----

// A variable without elements is never updated.
// CHECK-LABEL: drt.entry "step"
dfg.variable @w : tensor<0xf32>
dfg.func @step() attributes {dfg.fetches = []} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<0xf32>>
  %one = dfg.placeholder : () -> tensor<0xf32> loc("x")
  // CHECK-NOT: drt.update
  dfg.assign_add %w, %one : (!dfg.ref<tensor<0xf32>>, tensor<0xf32>) -> ()
  dfg.return
}
