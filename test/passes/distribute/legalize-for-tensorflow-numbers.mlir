// RUN: distc-opt %s -split-input-file --dist-legalize-for-tensorflow="worker=1 batch=12" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

dist.topology @cluster replicas 3 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"worker" 2 on "c" devices ["c:CPU:0"] replicas 1 from 2>]
dfg.graph attributes {} {
  %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x7xf32> loc("x")
  // CHECK: %[[SHAPE:.*]] = dfg.shape
  %shape = dfg.shape %x : (tensor<?x7xf32>) -> tensor<2xi32> loc("shape")
  // The numbers of all three replicas' examples, of which the second replica's rows.
  // CHECK: %[[TIMES:.*]] = dfg.const dense<[3, 1]>
  // CHECK: %[[ALL:.*]] = dfg.opaque "Mul"(%[[SHAPE]], %[[TIMES]])
  // CHECK: %[[DRAWN:.*]] = dfg.random_uniform %[[ALL]] {{.*}}seed = 5 : i64, seed2 = 9 : i64{{.*}} loc("dropout/random_uniform/all")
  // CHECK: %[[REPLICA:.*]] = dfg.const dense<[1, 0]>
  // CHECK: %[[BEGIN:.*]] = dfg.opaque "Mul"(%[[SHAPE]], %[[REPLICA]])
  // CHECK: %[[OWN:.*]] = dfg.opaque "Slice"(%[[DRAWN]], %[[BEGIN]], %[[SHAPE]]) {{.*}} loc("dropout/random_uniform")
  // CHECK: dfg.neg %[[OWN]]
  %seeded = dfg.random_uniform %shape {dist.seed = "replica", seed = 5 : i64, seed2 = 9 : i64} : (tensor<2xi32>) -> tensor<?x7xf32> loc("dropout/random_uniform")
  %used = dfg.neg %seeded : (tensor<?x7xf32>) -> tensor<?x7xf32> loc("used")
  // A stateless node's seed is an operand.
  %key = dfg.const dense<[3, 4]> : tensor<2xi32> : tensor<2xi32> loc("key")
  // CHECK: dfg.stateless_random_normal {{.*}} loc("stateless/all")
  // CHECK: dfg.opaque "Slice"{{.*}} loc("stateless")
  %stateless = dfg.stateless_random_normal %shape, %key {dist.seed = "replica"} : (tensor<2xi32>, tensor<2xi32>) -> tensor<?x7xf32> loc("stateless")
  // What has no seed may draw anything,
  // CHECK: dfg.random_uniform %[[SHAPE]] {device = "/job:worker/task:1", dist.seed = "replica"} : {{.*}} loc("unseeded")
  %unseeded = dfg.random_uniform %shape {dist.seed = "replica"} : (tensor<2xi32>) -> tensor<?x7xf32> loc("unseeded")
  // but where it is not of an example, all workers the same.
  %four = dfg.const dense<[4]> : tensor<1xi32> : tensor<1xi32> loc("four")
  // CHECK: dfg.random_uniform {{.*}}seed = {{[1-9][0-9]*}} : i64, seed2 = 1 : i64{{.*}} loc("initial")
  %initial = dfg.random_uniform %four : (tensor<1xi32>) -> tensor<4xf32> loc("initial")
}

// -----

// What stays of loops and conditions every worker computes: iterations that draw run one after the other, the same for all workers,
dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>]
dfg.func @below_two(%i: tensor<i32>) -> tensor<i1> {
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
  %less = dfg.less %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("less")
  dfg.return %less : tensor<i1>
}
// with seeds where they have none,
// CHECK-LABEL: dfg.func @draw_without_a_seed
// CHECK: dfg.random_uniform {{.*}} {seed = {{[1-9][0-9]*}} : i64, seed2 = 1 : i64}
dfg.func @draw_without_a_seed(%i: tensor<i32>) -> tensor<f32> {
  %shape = dfg.const dense<> : tensor<0xi32> : tensor<0xi32>
  %drawn = dfg.random_uniform %shape : (tensor<0xi32>) -> tensor<f32> loc("drawn")
  dfg.return %drawn : tensor<f32>
}
dfg.func @keep(%i: tensor<i32>) -> tensor<f32> {
  %zero = dfg.const dense<0.0> : tensor<f32> : tensor<f32>
  dfg.return %zero : tensor<f32>
}
// of functions of functions, too.
dfg.func @add_drawn(%i: tensor<i32>) -> tensor<i32> {
  %chosen = dfg.opaque "If"(%i, %i) {tf = {then_branch = #dfg.func<@draw_without_a_seed, {}>, else_branch = #dfg.func<@keep, {}>}} : (tensor<i32>, tensor<i32>) -> tensor<f32> loc("chosen")
  %next = dfg.cast %chosen : (tensor<f32>) -> tensor<i32> loc("next")
  dfg.return %next : tensor<i32>
}
dfg.func @add_one(%i: tensor<i32>) -> tensor<i32> {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %next = dfg.add_v2 %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("next")
  dfg.return %next : tensor<i32>
}
// CHECK: dfg.graph
dfg.graph attributes {} {
  %i = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("i")
  // CHECK: dfg.opaque "While"{{.*}}parallel_iterations = 1 : i64{{.*}} loc("draws")
  %draws = dfg.opaque "While"(%i) {tf = {cond = #dfg.func<@below_two, {}>, body = #dfg.func<@add_drawn, {}>, parallel_iterations = 10 : i64}} : (tensor<i32>) -> tensor<i32> loc("draws")
  // CHECK: dfg.opaque "While"{{.*}}parallel_iterations = 10 : i64{{.*}} loc("counts")
  %counts = dfg.opaque "While"(%i) {tf = {cond = #dfg.func<@below_two, {}>, body = #dfg.func<@add_one, {}>, parallel_iterations = 10 : i64}} : (tensor<i32>) -> tensor<i32> loc("counts")
  // Frames of version 1, those around a frame that draws too.
  // CHECK: dfg.opaque "Enter"{{.*}}parallel_iterations = 1 : i64{{.*}} loc("outer")
  %outer = dfg.opaque "Enter"(%i) {tf = {frame_name = "outer", parallel_iterations = 10 : i64}} : (tensor<i32>) -> tensor<i32> loc("outer")
  // CHECK: dfg.opaque "Enter"{{.*}}parallel_iterations = 1 : i64{{.*}} loc("inner")
  %inner = dfg.opaque "Enter"(%outer) {tf = {frame_name = "inner", parallel_iterations = 10 : i64}} : (tensor<i32>) -> tensor<i32> loc("inner")
  %shape = dfg.const dense<[4]> : tensor<1xi32> {control = ["inner"]} : tensor<1xi32> loc("shape")
  %noise = dfg.random_uniform %shape {seed = 5 : i64, seed2 = 9 : i64} : (tensor<1xi32>) -> tensor<4xf32> loc("noise")
  %left = dfg.opaque "Exit"(%inner) : (tensor<i32>) -> tensor<i32> loc("left")
  %out = dfg.opaque "Exit"(%left) : (tensor<i32>) -> tensor<i32> loc("out")
  // What comes behind a loop is no part of it.
  // CHECK: dfg.opaque "Enter"{{.*}}parallel_iterations = 10 : i64{{.*}} loc("first")
  %first = dfg.opaque "Enter"(%i) {tf = {frame_name = "first", parallel_iterations = 10 : i64}} : (tensor<i32>) -> tensor<i32> loc("first")
  %end = dfg.opaque "Exit"(%first) : (tensor<i32>) -> tensor<i32> loc("end")
  %later = dfg.const dense<[4]> : tensor<1xi32> : tensor<1xi32> loc("later")
  %behind = dfg.random_uniform %later {control = ["end"], seed = 5 : i64, seed2 = 9 : i64} : (tensor<1xi32>) -> tensor<4xf32> loc("behind")
}
