// RUN: distc-opt %s --dfg-spell-out-operations --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: distc-opt %s --dfg-spell-out-operations=keeps-order --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=KEEP

// What the slice has is assigned, and elsewhere the old value, which is read where the node runs.
// CHECK-LABEL: dfg.graph
// CHECK: %[[OLD:.*]] = dfg.read_variable %{{.*}} {control = ["before"]} : (!dfg.ref<tensor<4x3xf32>>) -> tensor<4x3xf32> loc("put/old")
// CHECK: %[[SIZES:.*]] = dfg.const dense<[4, 3]> : tensor<2xi32>
// CHECK: %[[PLACES:.*]] = dfg.strided_slice_grad %[[SIZES]], {{.*}} {shrink_axis_mask = 1 : i64} {{.*}} -> tensor<4x3xi32>
// CHECK: %[[INSIDE:.*]] = dfg.equal %[[PLACES]], %{{.*}} -> tensor<4x3xi1>
// CHECK: %[[PADDED:.*]] = dfg.strided_slice_grad %[[SIZES]], {{.*}} {shrink_axis_mask = 1 : i64} {{.*}} -> tensor<4x3xf32>
// CHECK: %[[NEW:.*]] = dfg.select_v2 %[[INSIDE]], %[[PADDED]], %[[OLD]]
// CHECK: dfg.assign %{{.*}}, %[[NEW]] {control = ["before"]} : (!dfg.ref<tensor<4x3xf32>>, tensor<4x3xf32>) -> () loc("put")
dfg.variable @v : tensor<4x3xf32>
dfg.graph {
  %v = dfg.var_handle @v : !dfg.ref<tensor<4x3xf32>> loc("v")
  %x = dfg.placeholder : () -> tensor<3xf32> loc("x")
  %b = dfg.const dense<[1, 0]> : tensor<2xi32> : tensor<2xi32> loc("b")
  %e = dfg.const dense<[2, 3]> : tensor<2xi32> : tensor<2xi32> loc("e")
  %s = dfg.const dense<1> : tensor<2xi32> : tensor<2xi32> loc("s")
  dfg.group : () -> () loc("before")
  dfg.opaque "ResourceStridedSliceAssign"(%v, %b, %e, %s, %x) {control = ["before"], tf = {Index = i32, T = f32, shrink_axis_mask = 1 : i64}} : (!dfg.ref<tensor<4x3xf32>>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<3xf32>) -> () loc("put")
}

// -----

// A counter gives what it was; at its limit the run ends, before anything is counted.
// CHECK-LABEL: dfg.graph
// CHECK: %[[OLD:.*]] = dfg.read_variable
// CHECK: %[[LIMIT:.*]] = dfg.const dense<7> : tensor<i32>
// CHECK: %[[BELOW:.*]] = dfg.less %[[OLD]], %[[LIMIT]]
// CHECK: dfg.assert %[[BELOW]], %[[OLD]] {{.*}}loc("count/reached_limit")
// CHECK: dfg.assign_add %{{.*}}, %{{.*}} {control = ["count/reached_limit"]} {{.*}}loc("count/add")
// CHECK: %[[COUNT:.*]] = dfg.identity %[[OLD]] {control = ["count/add"]} {{.*}}loc("count")
// CHECK: dfg.neg %[[COUNT]]
dfg.variable @c : tensor<i32>
dfg.graph {
  %c = dfg.var_handle @c : !dfg.ref<tensor<i32>> loc("c")
  %n = dfg.opaque "ResourceCountUpTo"(%c) {tf = {T = i32, limit = 7 : i64}} : (!dfg.ref<tensor<i32>>) -> tensor<i32> loc("count")
  %m = dfg.neg %n : (tensor<i32>) -> tensor<i32> loc("m")
}

// -----

// A generator's state is read, and assigned what it is behind 256 positions a number; who draws takes its words as they are.
// CHECK-LABEL: dfg.graph
// CHECK: %[[OLD:.*]] = dfg.read_variable %g
// CHECK: %[[WORDS:.*]]:3 = dfg.unpack %[[OLD]]
// CHECK: %[[DELTA:.*]] = dfg.cast %delta
// CHECK: %[[POSITIONS:.*]] = dfg.mul %[[DELTA]]
// CHECK: %[[LOW:.*]] = dfg.add_v2 %[[WORDS]]#0, %[[POSITIONS]]
// CHECK: %[[HIGH:.*]] = dfg.add_v2 %[[WORDS]]#1, %{{.*}} loc("skip/high")
// CHECK: %[[NEW:.*]] = dfg.pack %[[LOW]], %[[HIGH]], %[[WORDS]]#2
// CHECK: dfg.assign %g, %[[NEW]] {{.*}}loc("skip/assign")
// CHECK: %[[STATE:.*]] = dfg.identity %[[OLD]] {control = ["skip/assign"]} {{.*}}loc("skip")
// CHECK: dfg.stateless_random_uniform_v2 %shape, %[[STATE]], %[[STATE]], %algorithm
dfg.variable @g : tensor<3xi64>
dfg.graph {
  %g = dfg.var_handle @g : !dfg.ref<tensor<3xi64>> loc("g")
  %algorithm = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("algorithm")
  %delta = dfg.const dense<8> : tensor<ui64> : tensor<ui64> loc("delta")
  %shape = dfg.const dense<8> : tensor<1xi32> : tensor<1xi32> loc("shape")
  %state = dfg.opaque "RngReadAndSkip"(%g, %algorithm, %delta) : (!dfg.ref<tensor<3xi64>>, tensor<i32>, tensor<ui64>) -> tensor<3xi64> loc("skip")
  %words = dfg.bitcast %state : (tensor<3xi64>) -> tensor<3xui64> loc("words")
  %drawn = dfg.stateless_random_uniform_v2 %shape, %words, %words, %algorithm
    : (tensor<1xi32>, tensor<3xui64>, tensor<3xui64>, tensor<i32>) -> tensor<8xf32> loc("drawn")
}

// -----

// Another algorithm than Philox stays.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.opaque "RngReadAndSkip"
dfg.variable @g : tensor<2xi64>
dfg.graph {
  %g = dfg.var_handle @g : !dfg.ref<tensor<2xi64>> loc("g")
  %algorithm = dfg.const dense<2> : tensor<i32> : tensor<i32> loc("algorithm")
  %delta = dfg.const dense<8> : tensor<ui64> : tensor<ui64> loc("delta")
  %state = dfg.opaque "RngReadAndSkip"(%g, %algorithm, %delta) : (!dfg.ref<tensor<2xi64>>, tensor<i32>, tensor<ui64>) -> tensor<2xi64> loc("skip")
}

// -----

// CHECK-LABEL: dfg.graph
// CHECK: %[[ZERO:.*]] = dfg.const dense<0.000000e+00> : tensor<f32>
// CHECK: dfg.fill %{{.*}}, %[[ZERO]] : (tensor<2xi32>, tensor<f32>) -> tensor<3x2xf32> loc("empty")
dfg.graph {
  %s = dfg.const dense<[3, 2]> : tensor<2xi32> : tensor<2xi32> loc("s")
  %e = dfg.opaque "Empty"(%s) {tf = {dtype = f32, init = true}} : (tensor<2xi32>) -> tensor<3x2xf32> loc("empty")
}

// -----

// Where order is by control edges, another update might run between the read and the assignment.
// KEEP-LABEL: dfg.graph
// KEEP: dfg.opaque "ResourceStridedSliceAssign"
// KEEP: dfg.assign {{.*}}loc("other")
dfg.variable @v : tensor<4xf32>
dfg.variable @w : tensor<4xf32>
dfg.graph {
  %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %x = dfg.placeholder : () -> tensor<4xf32> loc("x")
  %y = dfg.placeholder : () -> tensor<1xf32> loc("y")
  %b = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("b")
  %e = dfg.const dense<2> : tensor<1xi32> : tensor<1xi32> loc("e")
  dfg.assign_add %v, %x : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("add")
  dfg.opaque "ResourceStridedSliceAssign"(%v, %b, %e, %b, %y) {tf = {Index = i32, T = f32}} : (!dfg.ref<tensor<4xf32>>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xf32>) -> () loc("put")
  dfg.opaque "ResourceStridedSliceAssign"(%w, %b, %e, %b, %y) {tf = {Index = i32, T = f32}} : (!dfg.ref<tensor<4xf32>>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xf32>) -> () loc("other")
}

// -----

// A function that is given a generator's state, too: its three words are known by the algorithm.
// CHECK-LABEL: dfg.func @draw
// CHECK: %[[OLD:.*]] = dfg.read_variable %{{.*}} -> tensor<3xi64>
// CHECK: dfg.assign %{{.*}} loc("skip/assign")
// CHECK: dfg.identity %[[OLD]] {control = ["skip/assign"]} {{.*}}loc("skip")
// KEEP-LABEL: dfg.func @draw
// KEEP: dfg.opaque "RngReadAndSkip"
dfg.func @draw(%g: !dfg.ref<tensor<*xi64>>) -> tensor<3xi64> {
  %algorithm = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("algorithm")
  %delta = dfg.const dense<8> : tensor<ui64> : tensor<ui64> loc("delta")
  %state = dfg.opaque "RngReadAndSkip"(%g, %algorithm, %delta) : (!dfg.ref<tensor<*xi64>>, tensor<i32>, tensor<ui64>) -> tensor<3xi64> loc("skip")
  dfg.return %state : tensor<3xi64>
}
