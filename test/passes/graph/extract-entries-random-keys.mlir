// RUN: distc-opt %s --dfg-extract-entries | FileCheck %s

// Keys of random numbers are each batch's: what mixes their bits are gradients alone. An integer that an update sees as
// well is a count of updates, whatever else is made of it, and so is one whose bits nothing mixes.
dfg.variable @w : tensor<2xf32> {trainable}
dfg.variable @rate : tensor<f32>
dfg.variable @key : tensor<2xi32>
dfg.variable @salt : tensor<2xi32>
dfg.variable @plain : tensor<2xi32>

// CHECK-LABEL: dfg.func @step()
// CHECK-COUNT-4: dfg.assign
// CHECK-LABEL: dfg.func @accumulate()
// CHECK: %[[KEY:.*]] = dfg.var_handle @key
// CHECK-NOT: dfg.assign
// CHECK: dfg.assign %[[KEY]]
// CHECK-NOT: dfg.assign
// CHECK: dfg.return
dfg.graph attributes {train_op = "train", loss = "loss:0"} {
  %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x2xf32> loc("x")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
  %one = dfg.const dense<1> : tensor<2xi32> : tensor<2xi32>
  %w = dfg.var_handle @w : !dfg.ref<tensor<2xf32>>
  %rate = dfg.var_handle @rate : !dfg.ref<tensor<f32>>
  %key = dfg.var_handle @key : !dfg.ref<tensor<2xi32>>
  %step = dfg.var_handle @salt : !dfg.ref<tensor<2xi32>>
  %plain = dfg.var_handle @plain : !dfg.ref<tensor<2xi32>>
  %r = dfg.read_variable %rate : (!dfg.ref<tensor<f32>>) -> tensor<f32>
  %k = dfg.read_variable %key : (!dfg.ref<tensor<2xi32>>) -> tensor<2xi32>
  %s = dfg.read_variable %step : (!dfg.ref<tensor<2xi32>>) -> tensor<2xi32>
  %p = dfg.read_variable %plain : (!dfg.ref<tensor<2xi32>>) -> tensor<2xi32>
  %mixed = dfg.bitwise_xor %k, %one : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %mixed_step = dfg.bitwise_xor %s, %one : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %noise = dfg.cast %mixed : (tensor<2xi32>) -> tensor<2xf32>
  %more = dfg.cast %mixed_step : (tensor<2xi32>) -> tensor<2xf32>
  %most = dfg.cast %p : (tensor<2xi32>) -> tensor<2xf32>
  %scale = dfg.mul %noise, %more : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %all = dfg.mul %scale, %most : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %mean = dfg.mean %x, %axis : (tensor<?x2xf32>, tensor<i32>) -> tensor<2xf32>
  %g = dfg.mul %mean, %all : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %loss = dfg.mean %g, %axis : (tensor<2xf32>, tensor<i32>) -> tensor<f32> loc("loss")
  %a = dist.accumulate mean of 3 (%g) variables ["w"] : tensor<2xf32> -> tensor<2xf32>
  dfg.apply_gradient_descent %w, %r, %a : (!dfg.ref<tensor<2xf32>>, tensor<f32>, tensor<2xf32>) -> () loc("update")
  %next_rate = dfg.mean %more, %axis : (tensor<2xf32>, tensor<i32>) -> tensor<f32>
  dfg.assign %rate, %next_rate : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("decay")
  dfg.assign %key, %mixed : (!dfg.ref<tensor<2xi32>>, tensor<2xi32>) -> () loc("draw")
  %count = dfg.add_v2 %s, %one : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  dfg.assign %step, %count : (!dfg.ref<tensor<2xi32>>, tensor<2xi32>) -> () loc("count")
  %next = dfg.add_v2 %p, %one : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  dfg.assign %plain, %next : (!dfg.ref<tensor<2xi32>>, tensor<2xi32>) -> () loc("next")
  dfg.group {control = ["update", "decay", "draw", "count", "next"]} : () -> () loc("train")
}
