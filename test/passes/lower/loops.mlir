// RUN: distc-opt %s --convert-dfg-to-drt=asserts=true --split-input-file | FileCheck %s

// A loop that data end is one kernel, which the plan launches: its variables are copied to where its results are, and
// every value inside has a place in memory that the launch gives as well.
// CHECK-LABEL: drt.entry "loop"
// CHECK: %[[X:.*]] = drt.feed {name = "x"}
// CHECK: %[[M:.*]] = drt.feed {name = "m"}
// CHECK: %[[LOOP:.*]]:3 = drt.launch @loop_loop_0(%[[X]], %[[M]]) : (tensor<f32>, tensor<2x2xf32>) -> (tensor<f32>, tensor<i1>, tensor<256xi8>)
// CHECK-NOT: drt.assert
// CHECK: drt.fetch %[[LOOP]]#0
// CHECK: drt.kernel @loop_loop_0(%[[FIRST:.*]]: memref<f32>{{.*}}, %[[MATRIX:.*]]: memref<2x2xf32>{{.*}}, %[[STATE:.*]]: memref<f32>{{.*}},
// CHECK: linalg.copy ins(%[[FIRST]] : memref<f32>{{.*}}) outs(%[[STATE]] : memref<f32>{{.*}})
// CHECK: scf.while
// CHECK: linalg.generic {{.*}} ins(%[[STATE]] : memref<f32>) outs(%[[GREATER:.*]] : memref<i1>)
// CHECK: %[[RUNS:.*]] = memref.load %[[GREATER]]
// CHECK: scf.condition(%[[RUNS]])
// A product is not the library's here.
// CHECK: linalg.generic {{.*}}"reduction"{{.*}} ins(%[[MATRIX]], %[[MATRIX]] :
// CHECK: linalg.copy ins(%{{.*}} : memref<f32>) outs(%[[STATE]] : memref<f32>)
// CHECK: scf.yield
dfg.func @loop() -> tensor<f32> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %m = dfg.placeholder : () -> tensor<2x2xf32> loc("m")
  %w:2 = dfg.while(%x, %m) {
  ^bb0(%v: tensor<f32>, %n: tensor<2x2xf32>):
    %limit = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    %greater = dfg.greater %v, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    dfg.yield %greater : tensor<i1>
  } do {
  ^bb0(%v: tensor<f32>, %n: tensor<2x2xf32>):
    %p = dfg.mat_mul %n, %n : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> loc("p")
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    %s = dfg.sum %p, %axes : (tensor<2x2xf32>, tensor<2xi32>) -> tensor<f32> loc("s")
    %next = dfg.mul %v, %s : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("next")
    dfg.yield %next, %n : tensor<f32>, tensor<2x2xf32>
  } : (tensor<f32>, tensor<2x2xf32>) -> (tensor<f32>, tensor<2x2xf32>) loc("loop")
  dfg.return %w#0 : tensor<f32>
}

// -----

// Variables that are exchanged are copied by way of another place. Indices are checked inside, and told behind it.
// CHECK-LABEL: drt.entry "exchange"
// CHECK: %[[LOOP:.*]]:4 = drt.launch @exchange_loop_0
// CHECK: drt.assert %[[LOOP]]#2 {message = "loop 'loop' takes a row by an index that is outside of what it takes it from"
// CHECK: drt.kernel @exchange_loop_0(%{{.*}}: memref<i32>{{.*}}, %{{.*}}: memref<i32>{{.*}}, %[[TABLE:.*]]: memref<4xi32>{{.*}}, %[[A:.*]]: memref<i32>{{.*}}, %[[B:.*]]: memref<i32>{{.*}}, %[[VALID:.*]]: memref<i1>{{.*}}
// CHECK: memref.store %{{.*}}, %[[VALID]][]
// CHECK: scf.while
// CHECK: %[[SO_FAR:.*]] = memref.load %[[VALID]][]
// CHECK: arith.andi %[[SO_FAR]]
// CHECK: linalg.copy ins(%[[A]] : memref<i32>) outs(%[[KEPT:.*]] : memref<i32>)
// CHECK-NEXT: linalg.copy ins(%{{.*}} : memref<i32>) outs(%[[A]] : memref<i32>)
// CHECK-NEXT: linalg.copy ins(%[[KEPT]] : memref<i32>) outs(%[[B]] : memref<i32>)
dfg.func @exchange() -> tensor<i32> attributes {dfg.fetches = ["y:0"]} {
  %a = dfg.placeholder : () -> tensor<i32> loc("a")
  %b = dfg.placeholder : () -> tensor<i32> loc("b")
  %table = dfg.placeholder : () -> tensor<4xi32> loc("table")
  %w:3 = dfg.while(%a, %b, %table) {
  ^bb0(%v: tensor<i32>, %n: tensor<i32>, %t: tensor<4xi32>):
    %limit = dfg.const dense<1> : tensor<i32> : tensor<i32>
    %greater = dfg.greater %v, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    dfg.yield %greater : tensor<i1>
  } do {
  ^bb0(%v: tensor<i32>, %n: tensor<i32>, %t: tensor<4xi32>):
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %next = dfg.gather_v2 %t, %n, %axis : (tensor<4xi32>, tensor<i32>, tensor<i32>) -> tensor<i32> loc("next")
    dfg.yield %next, %v, %t : tensor<i32>, tensor<i32>, tensor<4xi32>
  } : (tensor<i32>, tensor<i32>, tensor<4xi32>) -> (tensor<i32>, tensor<i32>, tensor<4xi32>) loc("loop")
  dfg.return %w#1 : tensor<i32>
}
