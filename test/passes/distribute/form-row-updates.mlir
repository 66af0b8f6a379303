// RUN: distc-opt %s --split-input-file --dist-form-row-updates=batch=4 | FileCheck %s

// Adagrad leaves rows alone whose gradient is zero: rows of one index are added up, those without a number are zeros of row 0.
// CHECK-LABEL: dfg.graph attributes {train_op = "adagrad"}
// CHECK: %[[ROW:.*]] = dfg.less_equal %{{.*}}, %ids
// CHECK: %[[MASK:.*]] = dfg.reshape %[[ROW]]
// CHECK: %[[ROWS:.*]] = dfg.select_v2 %[[MASK]], %rows
// CHECK: %[[IDS:.*]] = dfg.maximum %ids
// CHECK: %[[UNIQUE:.*]]:2 = dfg.unique %[[IDS]]
// CHECK: %[[SUMS:.*]] = dfg.unsorted_segment_sum %[[ROWS]], %[[UNIQUE]]#1
// CHECK-NOT: dfg.unsorted_segment_sum
// CHECK: dist.update %w, %sums, %[[SUMS]], %[[UNIQUE]]#0 {has_gradient, has_indices}
// CHECK-NEXT: ^bb0(%{{.*}}: f32{{.*}}, %{{.*}}: f32{{.*}}, %{{.*}}: f32{{.*}}):
dfg.variable @w : tensor<9x2xf32> {trainable}
dfg.variable @sums : tensor<9x2xf32>
dfg.graph attributes {train_op = "adagrad"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<9x2xf32>> loc("w")
  %sums = dfg.var_handle @sums : !dfg.ref<tensor<9x2xf32>> loc("sums")
  %ids = dfg.placeholder {dtype = i32, shape = #dfg.shape<[?]>} : () -> tensor<?xi32> loc("ids")
  %rows = dfg.placeholder {dtype = f32, shape = #dfg.shape<[?, 2]>} : () -> tensor<?x2xf32> loc("rows")
  %count = dfg.const dense<9> : tensor<i32> : tensor<i32> loc("count")
  %0 = dfg.unsorted_segment_sum %rows, %ids, %count : (tensor<?x2xf32>, tensor<?xi32>, tensor<i32>) -> tensor<9x2xf32> loc("gradient")
  dist.update %w, %sums, %0 {has_gradient} : !dfg.ref<tensor<9x2xf32>>, !dfg.ref<tensor<9x2xf32>>, tensor<9x2xf32> {
  ^bb0(%old: f32, %sum: f32, %g: f32):
    %eps = arith.constant 1.0e-07 : f32
    %square = arith.mulf %g, %g : f32
    %new_sum = arith.addf %square, %sum : f32
    %safe = arith.addf %new_sum, %eps : f32
    %root = math.sqrt %safe : f32
    %step = arith.mulf %root, %g : f32
    %new = arith.subf %old, %step : f32
    dist.yield %new, %new_sum : f32, f32
  } loc("w/assign")
  dfg.group {control = ["w/assign"]} : () -> () loc("adagrad")
}

// -----

// Momentum changes what the batch does not name.
// CHECK-LABEL: dfg.graph attributes {train_op = "momentum"}
// CHECK: dist.update %w, %trace, %{{.*}} {has_gradient} :
dfg.variable @w : tensor<9xf32> {trainable}
dfg.variable @trace : tensor<9xf32>
dfg.graph attributes {train_op = "momentum"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<9xf32>> loc("w")
  %trace = dfg.var_handle @trace : !dfg.ref<tensor<9xf32>> loc("trace")
  %ids = dfg.placeholder {dtype = i32, shape = #dfg.shape<[?]>} : () -> tensor<?xi32> loc("ids")
  %rows = dfg.placeholder {dtype = f32, shape = #dfg.shape<[?]>} : () -> tensor<?xf32> loc("rows")
  %count = dfg.const dense<9> : tensor<i32> : tensor<i32> loc("count")
  %0 = dfg.unsorted_segment_sum %rows, %ids, %count : (tensor<?xf32>, tensor<?xi32>, tensor<i32>) -> tensor<9xf32> loc("gradient")
  dist.update %w, %trace, %0 {has_gradient} : !dfg.ref<tensor<9xf32>>, !dfg.ref<tensor<9xf32>>, tensor<9xf32> {
  ^bb0(%old: f32, %m: f32, %g: f32):
    %decay = arith.constant 9.0e-01 : f32
    %decayed = arith.mulf %m, %decay : f32
    %new_m = arith.addf %decayed, %g : f32
    %new = arith.subf %old, %new_m : f32
    dist.yield %new, %new_m : f32, f32
  } loc("w/assign")
  dfg.group {control = ["w/assign"]} : () -> () loc("momentum")
}

// -----

// A quotient of zeros is no zero: what may be divided by zero keeps its table.
// CHECK-LABEL: dfg.graph attributes {train_op = "divided"}
// CHECK: dist.update %w, %{{[a-z_0-9]*}} {has_gradient} :
dfg.variable @w : tensor<9xf32> {trainable}
dfg.graph attributes {train_op = "divided"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<9xf32>> loc("w")
  %ids = dfg.placeholder {dtype = i32, shape = #dfg.shape<[?]>} : () -> tensor<?xi32> loc("ids")
  %rows = dfg.placeholder {dtype = f32, shape = #dfg.shape<[?]>} : () -> tensor<?xf32> loc("rows")
  %count = dfg.const dense<9> : tensor<i32> : tensor<i32> loc("count")
  %0 = dfg.unsorted_segment_sum %rows, %ids, %count : (tensor<?xf32>, tensor<?xi32>, tensor<i32>) -> tensor<9xf32> loc("gradient")
  dist.update %w, %0 {has_gradient} : !dfg.ref<tensor<9xf32>>, tensor<9xf32> {
  ^bb0(%old: f32, %g: f32):
    %size = math.absf %g : f32
    %sign = arith.divf %g, %size : f32
    %new = arith.subf %old, %sign : f32
    dist.yield %new : f32
  } loc("divided")
}

// -----

// A batch that names more rows than the table has: the table is the smaller gradient.
// CHECK-LABEL: dfg.graph attributes {train_op = "small"}
// CHECK: dist.update %w, %{{[a-z_0-9]*}} {has_gradient} :
dfg.variable @w : tensor<7xf32> {trainable}
dfg.graph attributes {train_op = "small"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<7xf32>> loc("w")
  %ids = dfg.placeholder {dtype = i32, shape = #dfg.shape<[?, 2]>} : () -> tensor<?x2xi32> loc("ids")
  %rows = dfg.placeholder {dtype = f32, shape = #dfg.shape<[?, 2]>} : () -> tensor<?x2xf32> loc("rows")
  %count = dfg.const dense<7> : tensor<i32> : tensor<i32> loc("count")
  %0 = dfg.unsorted_segment_sum %rows, %ids, %count : (tensor<?x2xf32>, tensor<?x2xi32>, tensor<i32>) -> tensor<7xf32> loc("gradient")
  dist.update %w, %0 {has_gradient} : !dfg.ref<tensor<7xf32>>, tensor<7xf32> {
  ^bb0(%old: f32, %g: f32):
    %new = arith.subf %old, %g : f32
    dist.yield %new : f32
  } loc("small")
}

// -----

// A moving average of a table changes in every row: it is updated behind the table, of the value that this has then.
// CHECK-LABEL: dfg.graph attributes {train_op = "train"}
// CHECK: dist.update %w, %{{.*}}, %{{.*}}#0, %rate {has_gradient, has_indices} :
// CHECK-NEXT: ^bb0(%[[OLD:.*]]: f32{{.*}}, %[[G:.*]]: f32{{.*}}, %{{.*}}: f32{{.*}}):
// CHECK-NEXT: %[[NEW:.*]] = arith.subf %[[OLD]], %[[G]]
// CHECK-NEXT: dist.yield %[[NEW]] : f32
// CHECK: %[[TABLE:.*]] = dfg.read_variable %w {control = ["w/assign/rows"]
// CHECK: dist.update %average, %[[TABLE]], %{{.*}} {control = ["w/assign/rows"], has_gradient} :
// CHECK-NEXT: ^bb0(%[[BEFORE:.*]]: f32{{.*}}, %[[NOW:.*]]: f32{{.*}}, %[[DECAY:.*]]: f32{{.*}}):
// CHECK-NEXT: %[[FAR:.*]] = arith.subf %[[NOW]], %[[BEFORE]]
// CHECK-NEXT: %[[STEP:.*]] = arith.mulf %[[FAR]], %[[DECAY]]
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[BEFORE]], %[[STEP]]
// CHECK-NEXT: dist.yield %[[NEXT]] : f32
// CHECK: dfg.group {control = ["w/assign"]}
dfg.variable @w : tensor<9xf32> {trainable}
dfg.variable @average : tensor<9xf32>
dfg.graph attributes {train_op = "train"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<9xf32>> loc("w")
  %average = dfg.var_handle @average : !dfg.ref<tensor<9xf32>> loc("average")
  %ids = dfg.placeholder {dtype = i32, shape = #dfg.shape<[?]>} : () -> tensor<?xi32> loc("ids")
  %rows = dfg.placeholder {dtype = f32, shape = #dfg.shape<[?]>} : () -> tensor<?xf32> loc("rows")
  %rate = dfg.placeholder : () -> tensor<f32> loc("rate")
  %count = dfg.const dense<9> : tensor<i32> : tensor<i32> loc("count")
  %0 = dfg.unsorted_segment_sum %rows, %ids, %count : (tensor<?xf32>, tensor<?xi32>, tensor<i32>) -> tensor<9xf32> loc("gradient")
  dist.update %w, %average, %0, %rate {has_gradient} : !dfg.ref<tensor<9xf32>>, !dfg.ref<tensor<9xf32>>, tensor<9xf32>, tensor<f32> {
  ^bb0(%old: f32, %before: f32, %g: f32, %decay: f32):
    %new = arith.subf %old, %g : f32
    %far = arith.subf %new, %before : f32
    %step = arith.mulf %far, %decay : f32
    %next = arith.addf %before, %step : f32
    dist.yield %new, %next : f32, f32
  } loc("w/assign")
  dfg.group {control = ["w/assign"]} : () -> () loc("train")
}

// -----

// One of the value that the table had, or of the gradient as well, is a slot.
// CHECK-LABEL: dfg.graph attributes {train_op = "slot"}
// CHECK: dist.update %w, %average, %{{.*}} {has_gradient} :
dfg.variable @w : tensor<9xf32> {trainable}
dfg.variable @average : tensor<9xf32>
dfg.graph attributes {train_op = "slot"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<9xf32>> loc("w")
  %average = dfg.var_handle @average : !dfg.ref<tensor<9xf32>> loc("average")
  %ids = dfg.placeholder {dtype = i32, shape = #dfg.shape<[?]>} : () -> tensor<?xi32> loc("ids")
  %rows = dfg.placeholder {dtype = f32, shape = #dfg.shape<[?]>} : () -> tensor<?xf32> loc("rows")
  %count = dfg.const dense<9> : tensor<i32> : tensor<i32> loc("count")
  %0 = dfg.unsorted_segment_sum %rows, %ids, %count : (tensor<?xf32>, tensor<?xi32>, tensor<i32>) -> tensor<9xf32> loc("gradient")
  dist.update %w, %average, %0 {has_gradient} : !dfg.ref<tensor<9xf32>>, !dfg.ref<tensor<9xf32>>, tensor<9xf32> {
  ^bb0(%old: f32, %before: f32, %g: f32):
    %new = arith.subf %old, %g : f32
    %far = arith.subf %new, %before : f32
    %next = arith.addf %far, %g : f32
    dist.yield %new, %next : f32, f32
  } loc("w/assign")
  dfg.group {control = ["w/assign"]} : () -> () loc("slot")
}
