// RUN: distc-opt %s --drt-join-row-exchanges | FileCheck %s

drt.program "g.meta" strategy "PS" target "cpu" batch 8 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "a" replicas 1 from 1>]
drt.variable @s : tensor<8x4xf32> {owner = 0 : i64}
drt.variable @t : tensor<9x2xf32> {owner = 1 : i64}
drt.variable @wide : tensor<9x2xf32> {owner = 1 : i64}

// What makes the second table's indices moves in front; buckets are numbered in the order in which they start then.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[I:.*]] = drt.feed {batched, name = "i"}
// CHECK: %[[J:.*]] = drt.feed {batched, name = "j"}
// CHECK: %[[SUM:.*]] = arith.addi %[[I]], %[[J]]
// CHECK-NEXT: %[[ROWS:.*]]:2 = drt.pull_rows {{\[}}@s, @t][%[[I]], %[[SUM]]] from [0, 1] bucket 0 : (tensor<4xi32>, tensor<4xi32>) -> (tensor<4x4xf32>, tensor<4x2xf32>)
// CHECK: drt.all_reduce_start {{.*}}bucket = 1
// CHECK-NOT: drt.pull_rows
// CHECK: drt.all_reduce_wait 1
// CHECK: drt.fetch %[[ROWS]]#1
drt.entry "step" {
  %i = drt.feed {batched, name = "i"} : () -> tensor<4xi32>
  %j = drt.feed {batched, name = "j"} : () -> tensor<4xi32>
  %a = drt.pull_rows [@s][%i] from [0] bucket 0 : (tensor<4xi32>) -> tensor<4x4xf32>
  drt.all_reduce_start %a {bucket = 1 : i32, mean = false, names = ["a"]} : (tensor<4x4xf32>) -> ()
  %sum = arith.addi %i, %j : tensor<4xi32>
  %b = drt.pull_rows [@t][%sum] from [1] bucket 2 : (tensor<4xi32>) -> tensor<4x2xf32>
  drt.all_reduce_wait 1
  drt.fetch %b {join = 0 : i32, name = "b"} : (tensor<4x2xf32>) -> ()
}

// Rows that say which rows are needed come first, and so do those that an update writes. What comes behind them joins the first all the same.
// CHECK-LABEL: drt.entry "behind_each_other"
// CHECK: %[[FIRST:.*]]:2 = drt.pull_rows {{\[}}@s, @s]{{.*}} bucket 0
// CHECK: %[[NEXT:.*]] = arith.fptosi %[[FIRST]]#0
// CHECK: drt.pull_rows {{\[}}@t]{{.*}} bucket 1
// CHECK: drt.sparse_update
// CHECK: drt.pull_rows {{\[}}@t]{{.*}} bucket 2
drt.entry "behind_each_other" {
  %i = drt.feed {batched, name = "i"} : () -> tensor<16xi32>
  %v = drt.feed {batched, name = "v"} : () -> tensor<16x2xf32>
  %a = drt.pull_rows [@s][%i] from [0] bucket 0 : (tensor<16xi32>) -> tensor<16x4xf32>
  %next = arith.fptosi %a : tensor<16x4xf32> to tensor<16x4xi32>
  %b = drt.pull_rows [@t][%next] from [1] bucket 1 : (tensor<16x4xi32>) -> tensor<16x4x2xf32>
  drt.sparse_update %i, %v {depth = 1 : i64, kernel = @add, owner = 1 : i64, variables = [@t]} : (tensor<16xi32>, tensor<16x2xf32>) -> ()
  %c = drt.pull_rows [@t][%i] from [1] bucket 2 : (tensor<16xi32>) -> tensor<16x2xf32>
  %d = drt.pull_rows [@s][%i] from [0] bucket 3 : (tensor<16xi32>) -> tensor<16x4xf32>
  drt.fetch %b {join = 0 : i32, name = "b"} : (tensor<16x4x2xf32>) -> ()
  drt.fetch %c {join = 0 : i32, name = "c"} : (tensor<16x2xf32>) -> ()
  drt.fetch %d {join = 0 : i32, name = "d"} : (tensor<16x4xf32>) -> ()
}

// Indices of a bucket are of one type.
// CHECK-LABEL: drt.entry "two_types"
// CHECK: drt.pull_rows {{\[}}@s, @s]{{.*}}tensor<4xi32>, tensor<4xi32>
// CHECK: drt.pull_rows {{\[}}@t]{{.*}}tensor<4xi64>
drt.entry "two_types" {
  %i = drt.feed {batched, name = "i"} : () -> tensor<4xi32>
  %k = drt.feed {batched, name = "k"} : () -> tensor<4xi64>
  %a = drt.pull_rows [@s][%i] from [0] bucket 0 : (tensor<4xi32>) -> tensor<4x4xf32>
  %b = drt.pull_rows [@t][%k] from [1] bucket 1 : (tensor<4xi64>) -> tensor<4x2xf32>
  %c = drt.pull_rows [@s][%i] from [0] bucket 2 : (tensor<4xi32>) -> tensor<4x4xf32>
  drt.fetch %a {join = 0 : i32, name = "a"} : (tensor<4x4xf32>) -> ()
  drt.fetch %b {join = 0 : i32, name = "b"} : (tensor<4x2xf32>) -> ()
  drt.fetch %c {join = 0 : i32, name = "c"} : (tensor<4x4xf32>) -> ()
}

// What is pushed waits for the last of them, and what reads the rows stands behind it.
// CHECK-LABEL: drt.entry "pushes"
// CHECK: %[[HALF:.*]] = arith.addf
// CHECK: %[[I:.*]]:2, %[[V:.*]]:2 = drt.push_rows {{\[}}%{{.*}}, %{{.*}}], [%{{.*}}, %[[HALF]]{{\]}} of ["s", "t"] to [array<i64: 0, 8, 0>, array<i64: 0, 9, 1>] bucket 0
// CHECK-SAME: -> (tensor<8xi32>, tensor<8xi32>, tensor<8x4xf32>, tensor<8x2xf32>)
// CHECK-NEXT: %[[MORE:.*]] = arith.addf %[[V]]#0
// CHECK: drt.sparse_update %[[I]]#0, %[[MORE]] {{.*}}variables = [@s]
// CHECK: drt.sparse_update %[[I]]#1, %[[V]]#1 {{.*}}variables = [@t]
drt.entry "pushes" {
  %i = drt.feed {batched, name = "i"} : () -> tensor<4xi32>
  %v = drt.feed {batched, name = "v"} : () -> tensor<4x4xf32>
  %w = drt.feed {batched, name = "w"} : () -> tensor<4x2xf32>
  %si, %sv = drt.push_rows [%i], [%v] of ["s"] to [array<i64: 0, 8, 0>] bucket 0 : (tensor<4xi32>, tensor<4x4xf32>) -> (tensor<8xi32>, tensor<8x4xf32>)
  %more = arith.addf %sv, %sv : tensor<8x4xf32>
  %half = arith.addf %w, %w : tensor<4x2xf32>
  %ti, %tv = drt.push_rows [%i], [%half] of ["t"] to [array<i64: 0, 9, 1>] bucket 1 : (tensor<4xi32>, tensor<4x2xf32>) -> (tensor<8xi32>, tensor<8x2xf32>)
  drt.sparse_update %si, %more {depth = 1 : i64, kernel = @add, owner = 0 : i64, variables = [@s]} : (tensor<8xi32>, tensor<8x4xf32>) -> ()
  drt.sparse_update %ti, %tv {depth = 1 : i64, kernel = @add, owner = 1 : i64, variables = [@t]} : (tensor<8xi32>, tensor<8x2xf32>) -> ()
}

// An update in between reads the first one's rows: nothing is joined over it.
// CHECK-LABEL: drt.entry "update_between"
// CHECK-COUNT-2: drt.push_rows
drt.entry "update_between" {
  %i = drt.feed {batched, name = "i"} : () -> tensor<4xi32>
  %v = drt.feed {batched, name = "v"} : () -> tensor<4x4xf32>
  %w = drt.feed {batched, name = "w"} : () -> tensor<4x2xf32>
  %si, %sv = drt.push_rows [%i], [%v] of ["s"] to [array<i64: 0, 8, 0>] bucket 0 : (tensor<4xi32>, tensor<4x4xf32>) -> (tensor<8xi32>, tensor<8x4xf32>)
  drt.sparse_update %si, %sv {depth = 1 : i64, kernel = @add, owner = 0 : i64, variables = [@s]} : (tensor<8xi32>, tensor<8x4xf32>) -> ()
  %ti, %tv = drt.push_rows [%i], [%w] of ["t"] to [array<i64: 0, 9, 1>] bucket 1 : (tensor<4xi32>, tensor<4x2xf32>) -> (tensor<8xi32>, tensor<8x2xf32>)
  drt.sparse_update %ti, %tv {depth = 1 : i64, kernel = @add, owner = 1 : i64, variables = [@t]} : (tensor<8xi32>, tensor<8x2xf32>) -> ()
}
