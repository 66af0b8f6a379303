// RUN: distc-opt %s --drt-group-updates | FileCheck %s

// A thread an element of a row, 8 of each of 24 rows; the rate lies in a variable of its own, the slot's decay for each element in one too.
module {
drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena 4096 variables 8192
drt.variable @w : tensor<10x8xf32> {at = 0 : i64}
drt.variable @slot : tensor<10x8xf32> {at = 512 : i64}
drt.variable @rate : tensor<f32> {at = 1024 : i64}
drt.variable @decay : tensor<10x8xf32> {at = 1280 : i64}

// CHECK-LABEL: drt.entry "step"
drt.entry "step" {
  %ids = drt.feed {name = "ids"} : () -> tensor<24xi64>
  %rows = drt.feed {name = "rows"} : () -> tensor<2x24xi32>
  %g = drt.launch @kernel_0() {at = array<i64: 64>} : () -> tensor<24x8xf32>
  %rate = drt.read @rate : tensor<f32>
  %decay = drt.read @decay : tensor<10x8xf32>
  // CHECK: drt.update_group %{{.*}}, %{{.*}}, %{{.*}} reads(%{{.*}} : tensor<10x8xf32>) {kernel = @update_rows_0,
  // CHECK-SAME: variables = {{\[}}[@w, @slot]]} : (tensor<2x24xi32>, tensor<24x8xf32>, tensor<f32>) -> ()
  drt.sparse_update %rows, %g, %rate, %decay {kernel = @rule, variables = [@w, @slot], depth = 1 : i64, sorted}
    : (tensor<2x24xi32>, tensor<24x8xf32>, tensor<f32>, tensor<10x8xf32>) -> ()
  // CHECK: drt.update_group {{.*}}kernel = @update_rows_1
  drt.sparse_update %ids, %g, %rate, %decay {kernel = @rule, variables = [@w, @slot], depth = 1 : i64, distinct}
    : (tensor<24xi64>, tensor<24x8xf32>, tensor<f32>, tensor<10x8xf32>) -> ()
}
// CHECK-NOT: drt.kernel
drt.kernel range @rule(%begin: i64, %end: i64, %g: memref<80xf32>, %w: memref<80xf32>, %slot: memref<80xf32>, %rate: memref<1xf32>,
                        %decay: memref<80xf32>) {
  %from = arith.index_cast %begin : i64 to index
  %to = arith.index_cast %end : i64 to index
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
  %r = memref.load %rate[%zero] : memref<1xf32>
  scf.for %i = %from to %to step %one {
    %old = memref.load %w[%i] : memref<80xf32>
    %sum = memref.load %slot[%i] : memref<80xf32>
    %keep = memref.load %decay[%i] : memref<80xf32>
    %at = arith.subi %i, %from : index
    %d = memref.load %g[%at] : memref<80xf32>
    %kept = arith.mulf %sum, %keep : f32
    %all = arith.addf %kept, %d : f32
    memref.store %all, %slot[%i] : memref<80xf32>
    %s = arith.mulf %r, %all : f32
    %new = arith.subf %old, %s : f32
    memref.store %new, %w[%i] : memref<80xf32>
  }
  drt.return
}
}

// The first thread of a row's segment does all of the row's updates, in the order of their positions.
// CHECK: gpu.func @update_rows_0(%{{.*}}: memref<4096xi8> {{.*}}, %[[VARIABLES:.*]]: memref<8192xi8> {{.*}}, %[[ROWS:.*]]: memref<48xi32> {{.*}}, %[[G:.*]]: memref<192xf32> {{.*}}, %[[RATE:.*]]: memref<1xf32>
// CHECK: %[[W:.*]] = memref.view %[[VARIABLES]]
// CHECK: %[[SLOT:.*]] = memref.view %[[VARIABLES]]
// CHECK: scf.while
// CHECK: memref.load %[[ROWS]]
// CHECK: scf.condition
// CHECK: memref.load %[[G]]
// CHECK: scf.yield
// CHECK: memref.store %{{.*}}, %[[W]]
// CHECK: memref.store %{{.*}}, %[[SLOT]]

// Distinct rows are one update each.
// CHECK: gpu.func @update_rows_1
// CHECK-NOT: scf.while
