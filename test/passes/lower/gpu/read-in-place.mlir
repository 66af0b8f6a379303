// RUN: distc-opt %s --pass-pipeline='builtin.module(drt.entry(drt-read-in-place))' | FileCheck %s

drt.variable @rate : tensor<f32>
drt.variable @step : tensor<i64>
drt.variable @fetched : tensor<f32>
drt.variable @power : tensor<2xf32>
drt.variable @bias : tensor<4xf32>
drt.variable @w : tensor<4xf32>
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  // Read before it is updated.
  // CHECK: %[[RATE:.*]] = drt.read @rate
  // CHECK-NEXT: drt.launch @kernel_0(%[[RATE]])
  %rate = drt.read @rate : tensor<f32>
  %0 = drt.copy %rate : (tensor<f32>) -> tensor<f32>
  %y = drt.launch @kernel_0(%0) : (tensor<f32>) -> tensor<4xf32>
  // Read behind the update, which the copy outlives.
  // CHECK: drt.read @step
  // CHECK-NEXT: %[[STEP:.*]] = drt.copy
  %step = drt.read @step : tensor<i64>
  %1 = drt.copy %step : (tensor<i64>) -> tensor<i64>
  // Fetched, so that it lies in the arena.
  // CHECK: drt.read @fetched
  // CHECK-NEXT: %[[FETCHED:.*]] = drt.copy
  %fetched = drt.read @fetched : tensor<f32>
  %2 = drt.copy %fetched : (tensor<f32>) -> tensor<f32>
  // The update itself reads the old value.
  // CHECK: drt.read @power
  // CHECK-NEXT: %[[POWER:.*]] = drt.copy
  %power = drt.read @power : tensor<2xf32>
  %3 = drt.copy %power : (tensor<2xf32>) -> tensor<2xf32>
  // Through a reshape.
  // CHECK: %[[BIAS:.*]] = drt.read @bias
  // CHECK-NEXT: tensor.expand_shape %[[BIAS]]
  %bias = drt.read @bias : tensor<4xf32>
  %4 = drt.copy %bias : (tensor<4xf32>) -> tensor<4xf32>
  %line = tensor.expand_shape %4 [[0, 1]] output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>
  %z = drt.launch @kernel_2(%line) : (tensor<1x4xf32>) -> tensor<4xf32>
  drt.update {kernel = @add_one, variables = [@step], count = 1 : i64} : () -> ()
  drt.update {kernel = @add_one, variables = [@bias], count = 4 : i64} : () -> ()
  // CHECK: drt.launch @kernel_1(%[[STEP]])
  %x = drt.launch @kernel_1(%1) : (tensor<i64>) -> tensor<4xf32>
  // CHECK: drt.update %[[RATE]]
  drt.update %0 {kernel = @update, variables = [@w], count = 4 : i64} : (tensor<f32>) -> ()
  drt.update {kernel = @decay, variables = [@rate], count = 1 : i64} : () -> ()
  // CHECK: drt.update %[[POWER]]
  drt.update %3 {kernel = @to_power, variables = [@power], count = 2 : i64} : (tensor<2xf32>) -> ()
  // CHECK: drt.fetch %[[FETCHED]]
  drt.fetch %2 {name = "fetched", join = 1 : i32} : (tensor<f32>) -> ()
}
