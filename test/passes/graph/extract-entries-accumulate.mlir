// RUN: distc-opt %s --dfg-extract-entries --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Of a step, "accumulate" does what each batch does: the loss, the gradients that are kept, and a moving average over the batch;
// neither the update, nor what follows it by data or by order, nor the count of updates, nor the update of a bias whose gradient is made of the
// batch's size, the same in each batch.
dfg.variable @w : tensor<2xf32> {trainable}
dfg.variable @b : tensor<f32> {trainable}
dfg.variable @average : tensor<2xf32>
dfg.variable @global_step : tensor<i64>

// CHECK-LABEL: dfg.func @step()
// CHECK-SAME: dfg.fetches = ["loss:0", "norm:0"]
// CHECK-DAG: dist.all_reduce
// CHECK-DAG: dfg.assign_add
// CHECK-DAG: dfg.assign_sub
// CHECK-DAG: dfg.apply_gradient_descent {{.*}} loc("update")
// CHECK-DAG: dfg.apply_gradient_descent {{.*}} loc("update_b")
// CHECK-LABEL: dfg.func @accumulate()
// CHECK-SAME: dfg.entry = "accumulate", dfg.fetches = ["loss:0"]
// CHECK-NOT: dfg.assign_add
// CHECK-NOT: all_reduce
// CHECK-NOT: apply_gradient_descent
// CHECK: dist.accumulate
// CHECK-NOT: apply_gradient_descent
// CHECK: dfg.assign_sub
// CHECK-NOT: all_reduce
// CHECK: dfg.return
dfg.graph attributes {train_op = "train", loss = "loss:0", fetches = ["norm:0"]} {
  %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x2xf32> loc("x")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
  %one = dfg.const dense<1> : tensor<i64> : tensor<i64>
  %rate = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  %w = dfg.var_handle @w : !dfg.ref<tensor<2xf32>>
  %average = dfg.var_handle @average : !dfg.ref<tensor<2xf32>>
  %steps = dfg.var_handle @global_step : !dfg.ref<tensor<i64>>
  %g = dfg.mean %x, %axis : (tensor<?x2xf32>, tensor<i32>) -> tensor<2xf32>
  %loss = dfg.mean %g, %axis : (tensor<2xf32>, tensor<i32>) -> tensor<f32> loc("loss")
  %a = dist.accumulate mean of 3 (%g) variables ["w"] : tensor<2xf32> -> tensor<2xf32>
  %r = dist.all_reduce mean bucket 0 group 0 (%a) variables ["w"] : tensor<2xf32>
  %norm = dfg.mean %r, %axis : (tensor<2xf32>, tensor<i32>) -> tensor<f32> loc("norm")
  dfg.apply_gradient_descent %w, %rate, %r : (!dfg.ref<tensor<2xf32>>, tensor<f32>, tensor<2xf32>) -> () loc("update")
  %b = dfg.var_handle @b : !dfg.ref<tensor<f32>>
  %count = dfg.size %x : (tensor<?x2xf32>) -> tensor<i32>
  %elements = dfg.cast %count : (tensor<i32>) -> tensor<f32>
  %ones = dfg.ones_like %x : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
  %sum = dfg.sum %ones, %all : (tensor<?x2xf32>, tensor<2xi32>) -> tensor<f32>
  %gb = dfg.real_div %sum, %elements : (tensor<f32>, tensor<f32>) -> tensor<f32>
  dfg.apply_gradient_descent %b, %rate, %gb : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("update_b")
  dfg.assign_sub %average, %g : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> () loc("moving")
  dfg.assign_add %steps, %one : (!dfg.ref<tensor<i64>>, tensor<i64>) -> () loc("count")
  dfg.group {control = ["update", "update_b", "moving", "count"]} : () -> () loc("train")
}
