// RUN: distc-opt %s --split-input-file --dist-form-updates --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Momentum, spelled out: the variable and its slot are updated together, by a rule of the old values, the gradient and a scalar.
// CHECK-LABEL: dfg.graph attributes {train_op = "momentum"}
// CHECK: %g = dfg.placeholder
// CHECK-NOT: dfg.mul
// CHECK: dist.update %w, %trace, %g, %rate {has_gradient} : !dfg.ref<tensor<4xf32>>, !dfg.ref<tensor<4xf32>>, tensor<4xf32>, tensor<f32>
// CHECK-NEXT: ^bb0(%[[W:.*]]: f32 {{.*}}, %[[T:.*]]: f32 {{.*}}, %[[G:.*]]: f32 {{.*}}, %[[R:.*]]: f32
// CHECK: %[[DECAY:.*]] = arith.constant 0.899999976 : f32
// CHECK: %[[OLD:.*]] = arith.mulf %[[T]], %[[DECAY]] : f32
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]], %[[G]] : f32
// CHECK: %[[STEP:.*]] = arith.mulf %[[NEW]], %[[R]] : f32
// CHECK: %[[VALUE:.*]] = arith.subf %[[W]], %[[STEP]] : f32
// CHECK: dist.yield %[[VALUE]], %[[NEW]] : f32, f32
// CHECK: loc("w/assign")
// CHECK: dfg.group {control = ["w/assign"]}
dfg.variable @w : tensor<4xf32> {trainable}
dfg.variable @trace : tensor<4xf32>
dfg.graph attributes {train_op = "momentum"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %trace = dfg.var_handle @trace : !dfg.ref<tensor<4xf32>> loc("trace")
  %g = dfg.placeholder {dtype = f32, shape = #dfg.shape<[4]>} : () -> tensor<4xf32> loc("g")
  %rate = dfg.placeholder {dtype = f32, shape = #dfg.shape<[]>} : () -> tensor<f32> loc("rate")
  %decay = dfg.const dense<0.9> : tensor<f32> : tensor<f32> loc("decay")
  %0 = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("w/read")
  %1 = dfg.read_variable %trace : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("trace/read")
  %2 = dfg.mul %1, %decay : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("decayed")
  %3 = dfg.add_v2 %2, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("new_trace")
  %4 = dfg.mul %3, %rate : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("step")
  %5 = dfg.sub %0, %4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("new_w")
  dfg.assign %trace, %3 : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("trace/assign")
  dfg.assign %w, %5 : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("w/assign")
  dfg.group {control = ["trace/assign", "w/assign"]} : () -> () loc("momentum")
}

// -----

// The lowest value that all comes through: what is made of two products is the gradient, not each of them.
// CHECK-LABEL: dfg.graph attributes {train_op = "shared"}
// CHECK: %sum = dfg.add_v2
// CHECK: dist.update %w, %sum {has_gradient} : !dfg.ref<tensor<2x2xf32>>, tensor<2x2xf32>
// CHECK: arith.mulf
// CHECK: arith.subf
dfg.variable @w : tensor<2x2xf32> {trainable}
dfg.graph attributes {train_op = "shared"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<2x2xf32>> loc("w")
  %x = dfg.placeholder {dtype = f32, shape = #dfg.shape<[2, 2]>} : () -> tensor<2x2xf32> loc("x")
  %rate = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("rate")
  %0 = dfg.read_variable %w : (!dfg.ref<tensor<2x2xf32>>) -> tensor<2x2xf32> loc("w/read")
  %1 = dfg.mat_mul %x, %0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> loc("first")
  %2 = dfg.mat_mul %0, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> loc("second")
  %3 = dfg.add_v2 %1, %2 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> loc("sum")
  %4 = dfg.mul %3, %rate : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32> loc("scaled")
  %5 = dfg.sub %0, %4 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> loc("new")
  dfg.assign %w, %5 : (!dfg.ref<tensor<2x2xf32>>, tensor<2x2xf32>) -> () loc("shared")
}

// -----

// TensorFlow's optimizers in Python read a slot that they have just added to.
// CHECK-LABEL: dfg.graph attributes {train_op = "keras"}
// CHECK: dist.update %w, %m, %g {has_gradient}
// CHECK: %[[DIFFERENCE:.*]] = arith.subf
// CHECK: %[[SCALED:.*]] = arith.mulf %[[DIFFERENCE]]
// CHECK: %[[M:.*]] = arith.addf %{{.*}}, %[[SCALED]]
// CHECK: %[[STEP:.*]] = arith.mulf %[[M]]
// CHECK: %[[W:.*]] = arith.subf %{{.*}}, %[[STEP]]
// CHECK: dist.yield %[[W]], %[[M]]
dfg.variable @w : tensor<4xf32> {trainable}
dfg.variable @m : tensor<4xf32>
dfg.graph attributes {train_op = "keras"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %m = dfg.var_handle @m : !dfg.ref<tensor<4xf32>> loc("m")
  %g = dfg.placeholder {dtype = f32, shape = #dfg.shape<[4]>} : () -> tensor<4xf32> loc("g")
  %rate = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("rate")
  %0 = dfg.read_variable %m : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("m/read")
  %1 = dfg.sub %g, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("difference")
  %2 = dfg.mul %1, %rate : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("part")
  dfg.assign_add %m, %2 : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("m/add")
  %3 = dfg.read_variable %m {control = ["m/add"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("m/read_1")
  %4 = dfg.mul %3, %rate : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("step")
  dfg.assign_sub %w, %4 : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("w/sub")
  dfg.group {control = ["m/add", "w/sub"]} : () -> () loc("keras")
}

// -----

// What is left as it is: a slot whose new value something else reads before the variable is updated, two gradients, a slot of another
// type.
// CHECK-LABEL: dfg.graph attributes {fetches = ["seen:0"], train_op = "none"}
// CHECK-NOT: dist.update
// CHECK-COUNT-2: dfg.assign
dfg.variable @w : tensor<4xf32> {trainable}
dfg.variable @m : tensor<4xf32>
dfg.graph attributes {fetches = ["seen:0"], train_op = "none"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %m = dfg.var_handle @m : !dfg.ref<tensor<4xf32>> loc("m")
  %g = dfg.placeholder {dtype = f32, shape = #dfg.shape<[4]>} : () -> tensor<4xf32> loc("g")
  dfg.assign_add %m, %g : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("m/add")
  %0 = dfg.read_variable %m {control = ["m/add"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("m/read")
  %1 = dfg.identity %0 : (tensor<4xf32>) -> tensor<4xf32> loc("seen")
  dfg.assign_sub %w, %0 : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("w/sub")
  dfg.group {control = ["m/add", "w/sub", "seen"]} : () -> () loc("none")
}

// -----

// CHECK-LABEL: dfg.graph attributes {train_op = "two"}
// CHECK-NOT: dist.update
// CHECK: dfg.assign
dfg.variable @w : tensor<4xf32> {trainable}
dfg.graph attributes {train_op = "two"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %g = dfg.placeholder {dtype = f32, shape = #dfg.shape<[4]>} : () -> tensor<4xf32> loc("g")
  %h = dfg.placeholder {dtype = f32, shape = #dfg.shape<[4]>} : () -> tensor<4xf32> loc("h")
  %0 = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("w/read")
  %1 = dfg.mul %0, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("scaled")
  %2 = dfg.sub %1, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("new")
  dfg.assign %w, %2 : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("two")
}

// -----

// What the expressions waited for, the update waits for: here a constant and a read are all that wait for the update before.
// CHECK-LABEL: dfg.graph attributes {train_op = "in_sequence"}
// CHECK: dfg.assign_add {{.*}} loc("before")
// CHECK: dist.update %w, %g {control = ["other", "before"], has_gradient}
// CHECK: loc("w/assign")
dfg.variable @w : tensor<4xf32> {trainable}
dfg.variable @count : tensor<i64>
dfg.graph attributes {train_op = "in_sequence"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %count = dfg.var_handle @count : !dfg.ref<tensor<i64>> loc("count")
  %one = dfg.const dense<1> : tensor<i64> : tensor<i64> loc("one")
  %g = dfg.placeholder {dtype = f32, shape = #dfg.shape<[4]>} : () -> tensor<4xf32> loc("g")
  dfg.assign_add %count, %one : (!dfg.ref<tensor<i64>>, tensor<i64>) -> () loc("before")
  dfg.group : () -> () loc("other")
  %rate = dfg.const dense<0.1> : tensor<f32> {control = ["before"]} : tensor<f32> loc("rate")
  %0 = dfg.read_variable %w {control = ["other"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("w/read")
  %1 = dfg.mul %g, %rate : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("step")
  %2 = dfg.sub %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("new_w")
  dfg.assign %w, %2 : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("w/assign")
  dfg.group {control = ["w/assign"]} : () -> () loc("in_sequence")
}

// -----

// A gradient of another type is the variable's: it is widened before it is reduced.
// CHECK-LABEL: dfg.graph attributes {train_op = "narrow"}
// CHECK: %wide = dfg.cast
// CHECK: dist.update %w, %wide {has_gradient} : !dfg.ref<tensor<4xf32>>, tensor<4xf32>
dfg.variable @w : tensor<4xf32> {trainable}
dfg.graph attributes {train_op = "narrow"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %g = dfg.placeholder {dtype = bf16, shape = #dfg.shape<[4]>} : () -> tensor<4xbf16> loc("g")
  %rate = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("rate")
  %0 = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("w/read")
  %1 = dfg.cast %g {DstT = f32, SrcT = bf16, Truncate = false} : (tensor<4xbf16>) -> tensor<4xf32> loc("wide")
  %2 = dfg.mul %1, %rate : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("scaled")
  %3 = dfg.sub %0, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("new")
  dfg.assign %w, %3 : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("narrow")
}
