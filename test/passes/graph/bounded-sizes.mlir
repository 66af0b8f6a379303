// RUN: distc-opt %s --split-input-file --dfg-infer-shapes | FileCheck %s

// How many distinct values there are is not known of a graph.
// CHECK-LABEL: dfg.graph
dfg.graph {
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  // CHECK: dfg.unique {{.*}} -> (tensor<?xi32>, tensor<4xi32>)
  %y, %idx = dfg.unique %ids : (tensor<4xi32>) -> (tensor<*xi32>, tensor<*xi32>) loc("unique")
}

// An entry takes the most that there can be.
// CHECK-LABEL: dfg.func @step
dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = []} {
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %table = dfg.const dense<1.0> : tensor<9x3xf32> : tensor<9x3xf32> loc("table")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  // CHECK: dfg.unique_with_counts {{.*}} -> (tensor<4xi32>, tensor<4xi32>, tensor<4xi32>)
  %y, %idx, %count = dfg.unique_with_counts %ids : (tensor<4xi32>) -> (tensor<*xi32>, tensor<*xi32>, tensor<*xi32>) loc("unique")
  // CHECK: dfg.gather_v2 {{.*}} -> tensor<4x3xf32>
  %rows = dfg.gather_v2 %table, %y, %axis : (tensor<9x3xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("rows")
  // CHECK: dfg.gather_v2 {{.*}} -> tensor<4x3xf32>
  %all = dfg.gather_v2 %rows, %idx, %axis : (tensor<*xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("all")
  // Sums of rows by the distinct values themselves: those behind the last are skipped.
  // CHECK: dfg.unsorted_segment_sum {{.*}} -> tensor<9x3xf32>
  %nine = dfg.const dense<9> : tensor<i32> : tensor<i32> loc("nine")
  %sums = dfg.unsorted_segment_sum %rows, %y, %nine : (tensor<*xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("sums")
  // A shard's own rows of distinct indices, beside values that are looked up by them.
  // CHECK: dfg.unsorted_segment_sum {{.*}} -> tensor<3x3xf32>
  %own_y, %own_rows = dist.own_rows 3 from 3 (%y, %rows) : (tensor<*xi32>, tensor<*xf32>) -> (tensor<*xi32>, tensor<*xf32>) loc("own")
  %three = dfg.const dense<3> : tensor<i32> : tensor<i32> loc("three")
  %own_sums = dfg.unsorted_segment_sum %own_rows, %own_y, %three : (tensor<*xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("own_sums")
  // Columns of rows whose number is not known.
  // CHECK: dfg.split {{.*}} -> (tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  %columns = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("columns")
  %first, %second, %third = dfg.split %columns, %rows : (tensor<i32>, tensor<*xf32>) -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>) loc("split")
  // A row's sizes are known although the rows' number is not.
  // CHECK: dfg.fill {{.*}} -> tensor<3xf32>
  %sizes = dfg.shape %rows : (tensor<*xf32>) -> tensor<2xi32> loc("sizes")
  %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("one")
  %rest = dfg.strided_slice %sizes, %one, %one, %one {begin_mask = 0 : i64, end_mask = 1 : i64}
    : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<*xi32> loc("rest")
  %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
  %halves = dfg.fill %rest, %half : (tensor<*xi32>, tensor<f32>) -> tensor<*xf32> loc("halves")
  dfg.return
}

// -----

// What is scattered, or put into segments, leaves out the rows behind the last, however it combines rows.
// CHECK-LABEL: dfg.func @step
// CHECK: dfg.unsorted_segment_max {{.*}} : (tensor<4x3xf32>, tensor<4xi32>, tensor<i32>) -> tensor<9x3xf32>
// CHECK: dfg.unsorted_segment_prod {{.*}} -> tensor<9x3xf32>
// CHECK: dfg.tensor_scatter_min {{.*}} -> tensor<9x3xf32>
// CHECK: dfg.scatter_nd_non_aliasing_add {{.*}} -> tensor<9x3xf32>
dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = []} {
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %last = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("last")
  %nine = dfg.const dense<9> : tensor<i32> : tensor<i32> loc("nine")
  %table = dfg.const dense<2.0> : tensor<9x3xf32> : tensor<9x3xf32> loc("table")
  %y, %idx = dfg.unique %ids : (tensor<4xi32>) -> (tensor<*xi32>, tensor<*xi32>) loc("unique")
  %rows = dfg.gather_v2 %table, %y, %axis : (tensor<9x3xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("rows")
  %max = dfg.unsorted_segment_max %rows, %y, %nine : (tensor<*xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("max")
  %prod = dfg.unsorted_segment_prod %rows, %y, %nine : (tensor<*xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("prod")
  %at = dfg.expand_dims %y, %last : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("at")
  %min = dfg.tensor_scatter_min %table, %at, %rows : (tensor<9x3xf32>, tensor<*xi32>, tensor<*xf32>) -> tensor<9x3xf32> loc("min")
  %sum = dfg.scatter_nd_non_aliasing_add %table, %at, %rows : (tensor<9x3xf32>, tensor<*xi32>, tensor<*xf32>) -> tensor<9x3xf32> loc("sum")
  dfg.return
}

// -----

// What looks at sparse tensors leaves out places of -1; how long the longest row is does not show in distances.
// CHECK-LABEL: dfg.func @step
// CHECK: dfg.ctc_greedy_decoder {{.*}} -> (tensor<10x2xi64>, tensor<10xi64>, tensor<2xi64>, tensor<2x1xf32>)
// CHECK: dfg.edit_distance {{.*}} -> tensor<2xf32>
// CHECK: dfg.sparse_block {{.*}} -> (tensor<10xi64>, tensor<10x2xi64>)
// CHECK: dfg.scatter_nd {{.*}} -> tensor<1x5xi64>
dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = []} {
  %scores = dfg.placeholder : () -> tensor<5x2x4xf32> loc("scores")
  %lengths = dfg.placeholder : () -> tensor<2xi32> loc("lengths")
  %at = dfg.placeholder : () -> tensor<3x2xi64> loc("at")
  %labels = dfg.placeholder : () -> tensor<3xi64> loc("labels")
  %sizes = dfg.const dense<[2, 4]> : tensor<2xi64> : tensor<2xi64> loc("sizes")
  %start = dfg.const dense<[1, 0]> : tensor<2xi64> : tensor<2xi64> loc("start")
  %size = dfg.const dense<[1, 5]> : tensor<2xi64> : tensor<2xi64> loc("size")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %d:4 = dfg.ctc_greedy_decoder %scores, %lengths : (tensor<5x2x4xf32>, tensor<2xi32>) -> (tensor<?x2xi64>, tensor<?xi64>, tensor<2xi64>, tensor<2x1xf32>) loc("d")
  %e = dfg.edit_distance %d#0, %d#1, %d#2, %at, %labels, %sizes
    : (tensor<?x2xi64>, tensor<?xi64>, tensor<2xi64>, tensor<3x2xi64>, tensor<3xi64>, tensor<2xi64>) -> tensor<*xf32> loc("e")
  %rows, %in = dfg.sparse_block %d#0, %start, %size : (tensor<?x2xi64>, tensor<2xi64>, tensor<2xi64>) -> (tensor<?xi64>, tensor<?x2xi64>) loc("block")
  %taken = dfg.gather_v2 %d#1, %rows, %axis : (tensor<?xi64>, tensor<?xi64>, tensor<i32>) -> tensor<?xi64> loc("taken")
  %dense = dfg.scatter_nd %in, %taken, %size : (tensor<?x2xi64>, tensor<?xi64>, tensor<2xi64>) -> tensor<*xi64> loc("dense")
  dfg.return
}
