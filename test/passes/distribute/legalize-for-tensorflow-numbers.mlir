// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=1 batch=12" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

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
