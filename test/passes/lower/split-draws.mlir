// RUN: distc-opt %s --dfg-infer-shapes --dfg-fold --convert-dfg-to-drt --split-input-file | FileCheck %s

// The parts of an initial value are drawn each by itself: of one run of the generator, whose element they begin at.
drt.program "g.meta" strategy "PS" target "cpu" batch 8 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>]
dfg.variable @a : tensor<6x2xf32>
dfg.variable @b : tensor<4x2xf32>
// CHECK-LABEL: drt.entry "init"
// CHECK-DAG: %[[A:.*]] = drt.random {distribution = 0 : i32, drawn_first = 0 : i64, drawn_whole = 20 : i64, generator = "random#parts", seed = 3 : i64, seed2 = 4 : i64} : () -> tensor<6x2xf32>
// CHECK-DAG: %[[B:.*]] = drt.random {distribution = 0 : i32, drawn_first = 12 : i64, drawn_whole = 20 : i64, generator = "random#parts", seed = 3 : i64, seed2 = 4 : i64} : () -> tensor<4x2xf32>
// CHECK-NOT: drt.random
dfg.func @init() attributes {dfg.fetches = [], dfg.entry = "init"} {
  %ha = dfg.var_handle @a : !dfg.ref<tensor<6x2xf32>> loc("a")
  %hb = dfg.var_handle @b : !dfg.ref<tensor<4x2xf32>> loc("b")
  %shape = dfg.const dense<[10, 2]> : tensor<2xi32> : tensor<2xi32> loc("shape")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %sizes = dfg.const dense<[6, 4]> : tensor<2xi32> : tensor<2xi32> loc("sizes")
  %scale = dfg.placeholder : () -> tensor<f32> loc("scale")
  %random = dfg.random_uniform %shape {seed = 3 : i64, seed2 = 4 : i64} : (tensor<2xi32>) -> tensor<10x2xf32> loc("random")
  %scaled = dfg.mul %random, %scale : (tensor<10x2xf32>, tensor<f32>) -> tensor<10x2xf32> loc("scaled")
  %parts:2 = dfg.split_v %scaled, %sizes, %zero : (tensor<10x2xf32>, tensor<2xi32>, tensor<i32>) -> (tensor<6x2xf32>, tensor<4x2xf32>) loc("parts")
  dfg.assign %ha, %parts#0 : (!dfg.ref<tensor<6x2xf32>>, tensor<6x2xf32>) -> () loc("assign_a")
  dfg.assign %hb, %parts#1 : (!dfg.ref<tensor<4x2xf32>>, tensor<4x2xf32>) -> () loc("assign_b")
  dfg.return
}
// -----

// What another node reads as well is drawn once.
drt.program "g.meta" strategy "PS" target "cpu" batch 8 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>]
dfg.variable @a : tensor<5x2xf32>
dfg.variable @b : tensor<5x2xf32>
dfg.variable @c : tensor<10x2xf32>
// CHECK-LABEL: drt.entry "init"
// CHECK: drt.random {distribution = 1 : i32, seed = 3 : i64, seed2 = 4 : i64} : () -> tensor<10x2xf32>
// CHECK-NOT: drt.random
dfg.func @init() attributes {dfg.fetches = [], dfg.entry = "init"} {
  %ha = dfg.var_handle @a : !dfg.ref<tensor<5x2xf32>> loc("a")
  %hb = dfg.var_handle @b : !dfg.ref<tensor<5x2xf32>> loc("b")
  %hc = dfg.var_handle @c : !dfg.ref<tensor<10x2xf32>> loc("c")
  %shape = dfg.const dense<[10, 2]> : tensor<2xi32> : tensor<2xi32> loc("shape")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %random = dfg.random_standard_normal %shape {seed = 3 : i64, seed2 = 4 : i64} : (tensor<2xi32>) -> tensor<10x2xf32> loc("random")
  %parts:2 = dfg.split %zero, %random : (tensor<i32>, tensor<10x2xf32>) -> (tensor<5x2xf32>, tensor<5x2xf32>) loc("parts")
  dfg.assign %ha, %parts#0 : (!dfg.ref<tensor<5x2xf32>>, tensor<5x2xf32>) -> () loc("assign_a")
  dfg.assign %hb, %parts#1 : (!dfg.ref<tensor<5x2xf32>>, tensor<5x2xf32>) -> () loc("assign_b")
  dfg.assign %hc, %random : (!dfg.ref<tensor<10x2xf32>>, tensor<10x2xf32>) -> () loc("assign_c")
  dfg.return
}
