// RUN: distc-opt %s --dfg-fold-distinct --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A table of which each row is looked up once, and an optimizer that looks for distinct rows again: it finds those of the ids.
// CHECK-LABEL: dfg.graph
// CHECK: %[[IDS:.*]] = dfg.placeholder : () -> tensor<?xi32> loc("ids")
// CHECK: %[[ROWS:.*]] = dfg.resource_gather %table, %[[IDS]] : {{.*}}loc("rows/rows")
// CHECK: dfg.neg %[[ROWS]]
// CHECK: %[[AGAIN:.*]]:2 = dfg.unique %[[IDS]] {{.*}}loc("again")
// CHECK: dfg.unsorted_segment_sum %d, %[[AGAIN]]#1, %count {{.*}}loc("sum")
// CHECK: dfg.scatter_sub %table, %[[AGAIN]]#0
dfg.variable @table : tensor<9x4xf32>
dfg.graph {
  %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %count = dfg.const dense<5> : tensor<i32> : tensor<i32> loc("count")
  %shape = dfg.const dense<[-1, 4]> : tensor<2xi32> : tensor<2xi32> loc("shape")
  %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
  %d = dfg.placeholder : () -> tensor<?x4xf32> loc("d")
  %u:2 = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("u")
  %once = dfg.resource_gather %table, %u#0 : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("once")
  %rows = dfg.gather_v2 %once, %u#1, %zero : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("rows")
  %y = dfg.neg %rows : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("y")
  %first = dfg.unsorted_segment_sum %d, %u#1, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("first")
  %summed = dfg.reshape %first, %shape : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x4xf32> loc("summed")
  %again:2 = dfg.unique %u#0 : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("again")
  %sum = dfg.unsorted_segment_sum %summed, %again#1, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("sum")
  dfg.scatter_sub %table, %again#0, %sum : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update")
}

// -----

// Gradient descent adds what was summed for each place, times a rate: row by row. The ids are a matrix.
// CHECK-LABEL: dfg.graph
// CHECK: %[[VALUES:.*]] = dfg.reshape %flat, %square : {{.*}} -> tensor<3x2xi32> loc("rows/values")
// CHECK: %[[ROWS:.*]] = dfg.resource_gather %table, %[[VALUES]] : {{.*}} -> tensor<3x2x4xf32> loc("rows/rows")
// CHECK: dfg.neg %[[ROWS]]
// CHECK: %[[EACH:.*]] = dfg.mul %d, %rate : {{.*}}loc("step/each")
// CHECK: dfg.scatter_add %table, %flat, %[[EACH]]
dfg.variable @table : tensor<9x4xf32>
dfg.graph {
  %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %count = dfg.const dense<5> : tensor<i32> : tensor<i32> loc("count")
  %square = dfg.const dense<[3, 2]> : tensor<2xi32> : tensor<2xi32> loc("square")
  %rate = dfg.const dense<-0.1> : tensor<f32> : tensor<f32> loc("rate")
  %flat = dfg.placeholder : () -> tensor<6xi32> loc("flat")
  %d = dfg.placeholder : () -> tensor<6x4xf32> loc("d")
  %u:2 = dfg.unique %flat : (tensor<6xi32>) -> (tensor<?xi32>, tensor<6xi32>) loc("u")
  %places = dfg.reshape %u#1, %square : (tensor<6xi32>, tensor<2xi32>) -> tensor<3x2xi32> loc("places")
  %once = dfg.resource_gather %table, %u#0 : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("once")
  %rows = dfg.gather_v2 %once, %places, %zero : (tensor<?x4xf32>, tensor<3x2xi32>, tensor<i32>) -> tensor<3x2x4xf32> loc("rows")
  %y = dfg.neg %rows : (tensor<3x2x4xf32>) -> tensor<3x2x4xf32> loc("y")
  %summed = dfg.unsorted_segment_sum %d, %u#1, %count : (tensor<6x4xf32>, tensor<6xi32>, tensor<i32>) -> tensor<?x4xf32> loc("summed")
  %step = dfg.mul %summed, %rate : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("step")
  dfg.scatter_add %table, %u#0, %step : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update")
}

// -----

// What is more than the distinct rows themselves, or of another operation's places, stays.
// CHECK-LABEL: dfg.graph
// CHECK: %[[A:.*]] = dfg.gather_v2 %twice, %u#1
// CHECK: %[[B:.*]] = dfg.gather_v2 %once, %v#1
// CHECK: dfg.neg %[[A]]
// CHECK: dfg.neg %[[B]]
dfg.graph {
  %table = dfg.placeholder : () -> tensor<9x4xf32> loc("table")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %two = dfg.const dense<2.0> : tensor<f32> : tensor<f32> loc("two")
  %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
  %u:2 = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("u")
  %v:2 = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("v")
  %once = dfg.gather_v2 %table, %u#0, %zero : (tensor<9x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("once")
  %twice = dfg.mul %once, %two : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32> loc("twice")
  %a = dfg.gather_v2 %twice, %u#1, %zero : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("a")
  %b = dfg.gather_v2 %once, %v#1, %zero : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("b")
  %c = dfg.neg %a : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("c")
  %d = dfg.neg %b : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("d")
}

// -----

// Where an update waits for the rows that are read once, and not for what is made of them, they are read where they were.
// CHECK-LABEL: dfg.graph
// CHECK: %[[ROWS:.*]] = dfg.gather_v2 %once, %u#1
// CHECK: dfg.neg %[[ROWS]]
dfg.variable @table : tensor<9x4xf32>
dfg.graph {
  %table = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>> loc("table")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
  %new = dfg.placeholder : () -> tensor<9x4xf32> loc("new")
  %u:2 = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("u")
  %once = dfg.resource_gather %table, %u#0 : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("once")
  %rows = dfg.gather_v2 %once, %u#1, %zero : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("rows")
  %y = dfg.neg %rows : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("y")
  dfg.assign %table, %new {control = ["once"]} : (!dfg.ref<tensor<9x4xf32>>, tensor<9x4xf32>) -> () loc("update")
}

// -----

// How many there are is a number of its own where it is no size: one more than the largest place.
// CHECK-LABEL: dfg.graph
// CHECK: %[[U:.*]]:2 = dfg.unique %ids
// CHECK: %[[SIZE:.*]] = dfg.size %[[U]]#0
// CHECK: %[[LAST:.*]] = dfg.max %[[U]]#1, %{{.*}} loc("size/last")
// CHECK: %[[KNOWN:.*]] = dfg.maximum %[[LAST]], %{{.*}}
// CHECK: %[[COUNT:.*]] = dfg.add_v2 %[[KNOWN]], %{{.*}} loc("size/count")
// CHECK: dfg.cast %[[COUNT]] : (tensor<i32>) -> tensor<f32>
// CHECK: dfg.unsorted_segment_sum %d, %[[U]]#1, %[[SIZE]]
dfg.graph {
  %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
  %d = dfg.placeholder : () -> tensor<?x4xf32> loc("d")
  %u:2 = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("u")
  %size = dfg.size %u#0 : (tensor<?xi32>) -> tensor<i32> loc("size")
  %number = dfg.cast %size : (tensor<i32>) -> tensor<f32> loc("number")
  %sums = dfg.unsorted_segment_sum %d, %u#1, %size : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("sums")
}
