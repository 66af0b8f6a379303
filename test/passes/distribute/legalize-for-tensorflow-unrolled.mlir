// RUN: distc-opt %s --dist-unroll="replicas=2 keep-synchronizers=true" --dist-rename-scopes --dist-legalize-for-tensorflow="batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "localhost" devices ["localhost:GPU:0", "localhost:GPU:1"] replicas 2 from 0>]
dfg.variable @w : tensor<4xf32> {trainable}
dfg.graph attributes {loss = "loss:0", train_op = "update", fetches = ["y:0"]} {
  // The placeholder has its name, and is split.
  // CHECK: %[[X:.*]] = dfg.placeholder {{.*}} -> tensor<?x4xf32> loc("x")
  // CHECK: %[[PARTS:.*]]:2 = dfg.opaque "Split"(%{{.*}}, %[[X]]) {{.*}}num_split = 2
  // CHECK: %[[X0:.*]] = dfg.identity %[[PARTS]]#0 {device = "/job:worker/task:0/device:GPU:0"} {{.*}} loc("replica_0/x")
  // CHECK: %[[X1:.*]] = dfg.identity %[[PARTS]]#1 {device = "/job:worker/task:0/device:GPU:1"} {{.*}} loc("replica_1/x")
  %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32> loc("x")
  %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("lr")
  %axis = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("axis")
  %both = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("both")
  %y = dfg.neg %x : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("y")
  %loss = dfg.mean %x, %both : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  // CHECK: %[[G0:.*]] = dfg.mean %[[X0]]{{.*}} loc("replica_0/g")
  // CHECK: %[[G1:.*]] = dfg.mean %[[X1]]{{.*}} loc("replica_1/g")
  %g = dfg.mean %x, %axis : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
  // CHECK: %[[SUM:.*]] = dfg.add_n %[[G0]], %[[G1]]
  // CHECK-NOT: Collective
  // CHECK: %[[MEAN:.*]] = dfg.mul %[[SUM]]
  %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] : tensor<4xf32> loc("all_reduce/0")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  // CHECK: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[MEAN]]
  dfg.apply_gradient_descent %w, %lr, %r : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
  // The loss is the mean over the replicas, a batched tensor theirs in order.
  // CHECK: dfg.add_n {{.*}} loc("loss/replicas/sum")
  // CHECK: dfg.identity {{.*}} loc("loss")
  // CHECK: %[[Y:.*]] = dfg.concat_v2 {{.*}} loc("y/replicas/joined")
  // CHECK: dfg.identity %[[Y]] {{.*}} loc("y")
}
