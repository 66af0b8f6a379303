// RUN: distc-opt %s --distribute="replicas=2 unrolled=true" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

dfg.variable @w : tensor<4xf32> {trainable}
dfg.variable @step : tensor<i64>
dfg.graph {
  // Shared: what all replicas are fed, variables, constants.
  // CHECK: dfg.placeholder {{.*}}loc("lr")
  %lr = dfg.placeholder : () -> tensor<f32> loc("lr")
  // CHECK: %[[X0:.*]] = dfg.placeholder {{.*}}loc("replica_0/x")
  // CHECK: %[[X1:.*]] = dfg.placeholder {{.*}}loc("replica_1/x")
  %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
  %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
  // CHECK: %[[G0:.*]] = dfg.mean %[[X0]], %{{.*}} {control = ["replica_0/x", "lr"], tf = {_class = ["loc:@replica_0/x"]}}
  // CHECK: %[[G1:.*]] = dfg.mean %[[X1]], %{{.*}} {control = ["replica_1/x", "lr"], tf = {_class = ["loc:@replica_1/x"]}}
  %g = dfg.mean %x, %zero {control = ["x", "lr"], tf = {_class = ["loc:@x"]}} : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
  // CHECK: %[[SUM:.*]] = dfg.add_n %[[G0]], %[[G1]]
  // CHECK: dfg.const dense<5.000000e-01>
  // CHECK: %[[MEAN:.*]] = dfg.mul %[[SUM]]
  // A replica that spans devices keeps those that its author asked for.
  // CHECK: dfg.square %[[X0]] {device = "/device:GPU:1"} {{.*}} loc("replica_0/there")
  // CHECK: dfg.square %[[X1]] {device = "/device:GPU:1"} {{.*}} loc("replica_1/there")
  %there = dfg.square %x {device = "/device:GPU:1"} : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("there")
  // A shape is the same everywhere, but it is the shape of a replica's own value.
  // CHECK: dfg.shape %[[X0]]
  // CHECK: dfg.shape %[[X1]]
  %shape = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32> loc("shape")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  dfg.apply_gradient_descent %w, %lr, %g {control = ["g"]} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
  %one = dfg.const dense<1> : tensor<i64> : tensor<i64> loc("one")
  %s = dfg.var_handle @step : !dfg.ref<tensor<i64>> loc("step")
  // The step is counted once.
  // CHECK: dfg.assign_add
  // CHECK-NOT: dfg.assign_add
  dfg.assign_add %s, %one : (!dfg.ref<tensor<i64>>, tensor<i64>) -> () loc("count")
  // What waits for the reduction stands behind the rest.
  // CHECK: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[MEAN]] {control = ["replica_0/g", "replica_1/g"]}
  // CHECK-NOT: dfg.a{{pply|ssign}}
}
