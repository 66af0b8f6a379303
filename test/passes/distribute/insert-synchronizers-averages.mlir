// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers --dist-verify-collectives --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A moving average of each variable, from its initial value on, held where the variable is; training waits for it.
// CHECK: dfg.variable @"v/ExponentialMovingAverage" : tensor<4xf32> {dist.place = #dist.place<"ps" 0>}
// CHECK: dfg.variable @"w/ExponentialMovingAverage" : tensor<4xf32> loc
module attributes {dist.strategy = #dist.strategy<"" averages 7.500000e-01 : f32>} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @v : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {init_op = "init", train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    // CHECK: %[[INITIAL:.*]] = dfg.const {{.*}} loc("initial")
    %initial = dfg.const dense<1.0> : tensor<4xf32> : tensor<4xf32> loc("initial")
    %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    // CHECK: dfg.assign %{{.*}}, %[[INITIAL]] {dist.place = #dist.place<"ps" 0>} {{.*}} loc("v/ExponentialMovingAverage/Assign")
    // CHECK: dfg.assign %{{.*}}, %[[INITIAL]] : {{.*}} loc("w/ExponentialMovingAverage/Assign")
    dfg.assign %v, %initial : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("v/Assign")
    dfg.assign %w, %initial : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("w/Assign")
    // CHECK: dfg.group {control = ["v/Assign", "w/Assign", "v/ExponentialMovingAverage/Assign", "w/ExponentialMovingAverage/Assign"]} {{.*}} loc("init")
    dfg.group {control = ["v/Assign", "w/Assign"]} : () -> () loc("init")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %h = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("h")
    // CHECK: loc("update_w")
    dfg.apply_gradient_descent %v, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_v")
    dfg.apply_gradient_descent %w, %lr, %h : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_w")
    // CHECK: dfg.assign_sub {{.*}} {dist.place = #dist.place<"ps" 0>} {{.*}} loc("v/ExponentialMovingAverage/update")
    // CHECK: %[[NEW:.*]] = dfg.read_variable {{.*}}control = ["update_w"]{{.*}} loc("w/ExponentialMovingAverage/value")
    // CHECK: %[[OLD:.*]] = dfg.read_variable {{.*}} loc("w/ExponentialMovingAverage/old")
    // CHECK: %[[RATE:.*]] = dfg.const dense<2.500000e-01>
    // CHECK: %[[D:.*]] = dfg.sub %[[OLD]], %[[NEW]]
    // CHECK: %[[S:.*]] = dfg.mul %[[D]], %[[RATE]]
    // CHECK: dfg.assign_sub %{{.*}}, %[[S]] : {{.*}} loc("w/ExponentialMovingAverage/update")
    // CHECK: dfg.group {control = ["update_v", "update_w", "synchronization/tokens", "v/ExponentialMovingAverage/update", "w/ExponentialMovingAverage/update"]} {{.*}} loc("train")
    dfg.group {control = ["update_v", "update_w"]} : () -> () loc("train")
  }
}

// -----

// Of one replica nothing is synchronized, whatever its gradient does with the rows.
// CHECK: dfg.variable @"w/ExponentialMovingAverage"
module attributes {dist.strategy = #dist.strategy<"" averages 7.500000e-01 : f32>} {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>]
  dfg.variable @w : tensor<f32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {init_op = "init", train_op = "update_w"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %initial = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("initial")
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    dfg.assign %w, %initial : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("w/Assign")
    dfg.group {control = ["w/Assign"]} : () -> () loc("init")
    // CHECK-NOT: all_reduce
    // CHECK: dfg.cumsum
    // CHECK-NOT: all_reduce
    // CHECK: loc("w/ExponentialMovingAverage/update")
    %sums = dfg.cumsum %x, %axis : (tensor<?xf32>, tensor<i32>) -> tensor<?xf32> loc("sums")
    %root = dfg.sqrt %sums : (tensor<?xf32>) -> tensor<?xf32> loc("root")
    %g = dfg.max %root, %axis : (tensor<?xf32>, tensor<i32>) -> tensor<f32> loc("g")
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("update_w")
  }
}

// -----

// An initializer that is the init op itself: the average begins behind it, and a group of its name waits for both.
// CHECK: dfg.variable @"w/ExponentialMovingAverage"
module attributes {dist.strategy = #dist.strategy<"" averages 7.500000e-01 : f32>} {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>]
  dfg.variable @w : tensor<f32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {init_op = "w/Assign", train_op = "update_w"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %axis = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("axis")
    %initial = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("initial")
    %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    // CHECK: dfg.assign {{.*}} loc("w/Assign/update")
    // CHECK: dfg.assign {{.*}} loc("w/ExponentialMovingAverage/Assign")
    dfg.assign %w, %initial : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("w/Assign")
    // CHECK: dfg.read_variable {{.*}}control = ["w/Assign/update"]{{.*}} loc("first")
    %first = dfg.read_variable %w {control = ["w/Assign"]} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("first")
    %g = dfg.mean %x, %axis : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("g")
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("update_w")
    // CHECK: dfg.group {control = ["w/Assign/update", "w/ExponentialMovingAverage/Assign"]} {{.*}} loc("w/Assign")
  }
}
