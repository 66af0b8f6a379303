// RUN: distc-opt %s --drt-row-kernels --split-input-file | FileCheck %s

// Rows are sorted with their positions, the segments of rows found, and each element of the result written by one thread.
module {
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  // CHECK-DAG: %[[IDS:.*]] = drt.feed {{.*}}name = "ids"
  // CHECK-DAG: %[[G:.*]] = drt.feed {{.*}}name = "g"
  %ids = drt.feed {name = "ids"} : () -> tensor<24xi32>
  %g = drt.feed {name = "g"} : () -> tensor<24x8xf32>
  // CHECK: %[[SORTED:.*]] = drt.launch @rows_sort_rows_0(%[[IDS]]) : (tensor<24xi32>) -> tensor<2x24xi32>
  // CHECK: %[[BOUNDS:.*]] = drt.launch @rows_segments_1(%[[SORTED]]) : (tensor<2x24xi32>) -> tensor<11xi32>
  // CHECK: %[[SUMS:.*]] = drt.launch @rows_scatter_2(%[[G]], %[[SORTED]], %[[BOUNDS]]) : ({{.*}}) -> tensor<10x8xf32>
  %sums = drt.scatter %ids, %g {depth = 1 : i64, kind = 1 : i32} : (tensor<24xi32>, tensor<24x8xf32>) -> tensor<10x8xf32>
  // Equal kernels are one, and `initial` is where rows start.
  // CHECK: drt.launch @rows_sort_rows_0(%[[IDS]])
  // CHECK: drt.launch @rows_segments_1
  // CHECK: drt.launch @rows_scatter_3(%[[G]], %{{.*}}, %{{.*}}, %[[SUMS]])
  %more = drt.scatter %ids, %g, %sums {depth = 1 : i64, kind = 2 : i32} : (tensor<24xi32>, tensor<24x8xf32>, tensor<10x8xf32>) -> tensor<10x8xf32>
  drt.fetch %more {name = "more", join = 0 : i32} : (tensor<10x8xf32>) -> ()
}
// A block sorts a tile: the threads' keys meet in shared memory.
// CHECK: gpu.func @rows_sort_rows_0(%{{.*}}: memref<24xi32> {llvm.noalias}, %{{.*}}: memref<48xi32> {llvm.noalias}) workgroup(%{{.*}} : memref<32xi32, #gpu.address_space<workgroup>>)
// CHECK-SAME: drt.block = array<i64: 32, 1, 1>, drt.grid = array<i64: 1, 1, 1>
// CHECK: gpu.barrier
// CHECK: gpu.func @rows_segments_1
// CHECK: gpu.func @rows_scatter_2
// CHECK: arith.addf
// CHECK-NOT: atomic
// CHECK: gpu.func @rows_scatter_3
// CHECK: arith.subf
}

// -----

// What has many tiles is merged, 16 runs a launch at most; a long segment is summed in chunks first. Vectors of two numbers name rows of two axes.
module {
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  %ids = drt.feed {name = "ids"} : () -> tensor<20000x2xi64>
  %g = drt.feed {name = "g"} : () -> tensor<20000x4xf32>
  // CHECK: drt.launch @rows_sort_rows_0({{.*}}) : (tensor<20000x2xi64>) -> tensor<2x20000xi32>
  // CHECK: drt.launch @rows_merge_1({{.*}}) : (tensor<2x20000xi32>) -> tensor<2x20000xi32>
  // CHECK: drt.launch @rows_merge_2
  // CHECK: drt.launch @rows_segments_3({{.*}}) : (tensor<2x20000xi32>) -> tensor<16xi32>
  // CHECK: drt.launch @rows_chunks_4({{.*}}) : (tensor<20000x4xf32>, tensor<2x20000xi32>) -> tensor<78x4xf32>
  // CHECK: drt.launch @rows_scatter_5({{.*}}) : {{.*}} -> tensor<3x5x4xf32>
  %sums = drt.scatter %ids, %g {depth = 2 : i64, kind = 1 : i32} : (tensor<20000x2xi64>, tensor<20000x4xf32>) -> tensor<3x5x4xf32>
  drt.fetch %sums {name = "sums", join = 0 : i32} : (tensor<3x5x4xf32>) -> ()
}
}

// -----

// The segments of distinct values are those of the rows that their numbers name, and the values name each row once.
module {
drt.variable @w : tensor<100x8xf32>
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  // CHECK-DAG: %[[IDS:.*]] = drt.feed {{.*}}name = "ids"
  // CHECK-DAG: %[[G:.*]] = drt.feed {{.*}}name = "g"
  %ids = drt.feed {name = "ids"} : () -> tensor<1000xi64>
  %g = drt.feed {name = "g"} : () -> tensor<1000x8xf32>
  // CHECK: %[[TILES:.*]] = drt.launch @rows_sort_values_0(%[[IDS]]) : (tensor<1000xi64>) -> tensor<2x1000xi64>
  // CHECK: %[[SORTED:.*]] = drt.launch @rows_merge_1(%[[TILES]])
  // CHECK: %[[FIRST:.*]]:2 = drt.launch @rows_first_2(%[[SORTED]]) : (tensor<2x1000xi64>) -> (tensor<1000xi64>, tensor<2x1000xi64>)
  // CHECK: %[[COUNT:.*]]:2 = drt.launch @rows_count_3(%[[FIRST]]#0) : (tensor<1000xi64>) -> (tensor<1000xi64>, tensor<2xi64>)
  // CHECK: %[[TILE:.*]]:2 = drt.launch @rows_count_4(%[[COUNT]]#1) : (tensor<2xi64>) -> (tensor<2xi64>, tensor<1xi64>)
  // CHECK: %[[MADE:.*]]:4 = drt.launch @rows_unique_5(%[[IDS]], %[[FIRST]]#0, %[[FIRST]]#1, %[[COUNT]]#0, %[[TILE]]#0, %[[TILE]]#1)
  // CHECK-SAME: -> (tensor<1000xi64>, tensor<1000xi32>, tensor<1000xi32>, tensor<2x1000xi64>)
  %y, %idx, %count = drt.unique %ids : (tensor<1000xi64>) -> (tensor<1000xi64>, tensor<1000xi32>, tensor<1000xi32>)
  // CHECK: drt.launch @rows_chunks_6(%[[G]], %[[SORTED]])
  // CHECK: %[[SUMS:.*]] = drt.launch @rows_scatter_7(%[[G]], %[[SORTED]], %[[MADE]]#3, %{{.*}})
  %sums = drt.scatter %idx, %g {depth = 1 : i64, kind = 1 : i32} : (tensor<1000xi32>, tensor<1000x8xf32>) -> tensor<1000x8xf32>
  // CHECK: drt.sparse_update %[[MADE]]#0, %[[SUMS]] {depth = 1 : i64, distinct, kernel = @sgd, variables = [@w]}
  drt.sparse_update %y, %sums {kernel = @sgd, variables = [@w], depth = 1 : i64} : (tensor<1000xi64>, tensor<1000x8xf32>) -> ()
  // What may name a row twice is sorted.
  // CHECK: drt.sparse_update %{{.*}}, %[[G]] {depth = 1 : i64, kernel = @sgd, sorted, variables = [@w]} : (tensor<2x1000xi32>, tensor<1000x8xf32>)
  drt.sparse_update %ids, %g {kernel = @sgd, variables = [@w], depth = 1 : i64} : (tensor<1000xi64>, tensor<1000x8xf32>) -> ()
}
}

// -----

// Where nothing is scattered, rows are what they start from; a result without elements is none.
module {
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  %ids = drt.empty : () -> tensor<0xi32>
  %g = drt.empty : () -> tensor<0x8xf32>
  // CHECK: drt.launch @rows_scatter_0() : () -> tensor<10x8xf32>
  %sums = drt.scatter %ids, %g {depth = 1 : i64, kind = 1 : i32} : (tensor<0xi32>, tensor<0x8xf32>) -> tensor<10x8xf32>
  // CHECK: drt.empty {{.*}} -> tensor<0x8xf32>
  %none = drt.scatter %ids, %g {depth = 1 : i64, kind = 1 : i32} : (tensor<0xi32>, tensor<0x8xf32>) -> tensor<0x8xf32>
  drt.fetch %sums {name = "sums", join = 0 : i32} : (tensor<10x8xf32>) -> ()
  drt.fetch %none {name = "none", join = 0 : i32} : (tensor<0x8xf32>) -> ()
}
}

// -----

// Short rows are compared element by element; long ones sorted, the row's number in front of what orders its elements.
module {
// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  // CHECK-DAG: %[[X:.*]] = drt.feed {{.*}}name = "x"
  // CHECK-DAG: %[[LONG:.*]] = drt.feed {{.*}}name = "long"
  %x = drt.feed {name = "x"} : () -> tensor<8x10xf32>
  %long = drt.feed {name = "long"} : () -> tensor<8x300xf32>
  // CHECK: drt.launch @rows_top_k_0(%[[X]]) : (tensor<8x10xf32>) -> (tensor<8x3xf32>, tensor<8x3xi32>)
  %a:2 = drt.routine "top_k" (%x) {parameters = array<i64: 1, 8, 10, 3, 3>} : (tensor<8x10xf32>) -> (tensor<8x3xf32>, tensor<8x3xi32>)
  // CHECK: %[[TILES:.*]] = drt.launch @rows_sort_elements_1(%[[LONG]]) : (tensor<8x300xf32>) -> tensor<2x2400xi64>
  // CHECK: %[[SORTED:.*]] = drt.launch @rows_merge_2(%[[TILES]])
  // CHECK: drt.launch @rows_take_3(%[[LONG]], %[[SORTED]]) : (tensor<8x300xf32>, tensor<2x2400xi64>) -> (tensor<8x3xf32>, tensor<8x3xi32>)
  %b:2 = drt.routine "top_k" (%long) {parameters = array<i64: 1, 8, 300, 3, 3>} : (tensor<8x300xf32>) -> (tensor<8x3xf32>, tensor<8x3xi32>)
  // CHECK: drt.routine "matrix_inverse"
  %c = drt.feed {name = "c"} : () -> tensor<2x2xf32>
  %d = drt.routine "matrix_inverse" (%c) {parameters = array<i64: 1, 1, 2, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  drt.fetch %a#0 {name = "a", join = 0 : i32} : (tensor<8x3xf32>) -> ()
  drt.fetch %b#1 {name = "b", join = 0 : i32} : (tensor<8x3xi32>) -> ()
  drt.fetch %d {name = "d", join = 0 : i32} : (tensor<2x2xf32>) -> ()
}
}
