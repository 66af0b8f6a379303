// RUN: distc-opt %s --pass-pipeline='builtin.module(drt.kernel(drt-loop-over-rows),canonicalize,cse)' | FileCheck %s
// RUN: distc-opt %s --pass-pipeline='builtin.module(drt.kernel(drt-loop-over-rows),drt-divide-kernels)' | FileCheck %s --check-prefix=CORES

#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#row = affine_map<(d0, d1, d2) -> (d0, d1)>
#flat = affine_map<(d0, d1) -> (d0, d1)>
#flatrow = affine_map<(d0, d1) -> (d0)>
module {
  drt.program "g.meta" strategy "AllReduce" target "x86-64-v3" batch 32 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] cores 4
  // A loop over all rows, and in it the operations' loops within a row. What only the kernel uses is one row of it: a number where it is one a row.
  // The last operation has its rows along one axis.
  // CHECK: drt.kernel @softmax(%[[X:[a-z0-9]+]]: memref<4x8x32xf32>{{.*}}, %[[Y:[a-z0-9]+]]: memref<32x32xf32>
  // CHECK-NOT: memref.alloc(
  // CHECK-DAG: %[[MAX:.*]] = memref.alloca() {alignment = 64 : i64} : memref<1xf32>
  // CHECK-DAG: %[[EXP:.*]] = memref.alloca() {alignment = 64 : i64} : memref<32xf32>
  // CHECK: scf.for %[[ROW:.*]] = %c0 to %c32
  // CHECK: %[[IN:.*]] = arith.remui %[[ROW]], %c8
  // CHECK: %[[OUT:.*]] = arith.divui %[[ROW]], %c8
  // CHECK: scf.for %[[J:.*]] = %c0 to %c32
  // CHECK: memref.load %[[X]][%[[OUT]], %[[IN]], %[[J]]]
  // CHECK: arith.maximumf
  // CHECK: scf.for %[[J:.*]] = %c0 to %c32
  // CHECK: math.exp
  // CHECK: memref.store %{{.*}}, %[[EXP]][%[[J]]]
  // CHECK: scf.for %[[J:.*]] = %c0 to %c32
  // CHECK: memref.load %[[EXP]][%[[J]]]
  // CHECK: arith.addf
  // CHECK: scf.for %[[J:.*]] = %c0 to %c32
  // CHECK: memref.load %[[EXP]][%[[J]]]
  // CHECK: arith.divf
  // CHECK: memref.store %{{.*}}, %[[Y]][%[[ROW]], %[[J]]]
  // CHECK-NOT: scf.for
  // CHECK: drt.return

  // Cores have some of the rows each.
  // CORES: drt.kernel @softmax(%[[BEGIN:[a-z0-9]+]]: i64{{.*}}, %[[END:[a-z0-9]+]]: i64{{.*}}, %{{.*}}: memref<4x8x32xf32>
  // CORES-SAME: divided = array<i64: 32,
  // CORES: %[[FIRST:.*]] = arith.index_cast %[[BEGIN]]
  // CORES: %[[LAST:.*]] = arith.index_cast %[[END]]
  // CORES: scf.for %{{.*}} = %[[FIRST]] to %[[LAST]]
  drt.kernel @softmax(%x: memref<4x8x32xf32>, %y: memref<32x32xf32>) {
    %max = memref.alloc() : memref<4x8xf32>
    %exp = memref.alloc() : memref<4x8x32xf32>
    %sum = memref.alloc() : memref<4x8xf32>
    %least = arith.constant 0xFF800000 : f32
    linalg.fill ins(%least : f32) outs(%max : memref<4x8xf32>)
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : memref<4x8x32xf32>) outs(%max : memref<4x8xf32>) {
    ^bb0(%a: f32, %out: f32):
      %m = arith.maximumf %a, %out : f32
      linalg.yield %m : f32
    }
    linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%x, %max : memref<4x8x32xf32>, memref<4x8xf32>) outs(%exp : memref<4x8x32xf32>) {
    ^bb0(%a: f32, %m: f32, %out: f32):
      %d = arith.subf %a, %m : f32
      %e = math.exp %d : f32
      linalg.yield %e : f32
    }
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%sum : memref<4x8xf32>)
    linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "reduction"]} ins(%exp : memref<4x8x32xf32>) outs(%sum : memref<4x8xf32>) {
    ^bb0(%a: f32, %out: f32):
      %s = arith.addf %a, %out : f32
      linalg.yield %s : f32
    }
    %flat = memref.collapse_shape %exp [[0, 1], [2]] : memref<4x8x32xf32> into memref<32x32xf32>
    %rows = memref.collapse_shape %sum [[0, 1]] : memref<4x8xf32> into memref<32xf32>
    linalg.generic {indexing_maps = [#flat, #flatrow, #flat], iterator_types = ["parallel", "parallel"]} ins(%flat, %rows : memref<32x32xf32>, memref<32xf32>) outs(%y : memref<32x32xf32>) {
    ^bb0(%e: f32, %s: f32, %out: f32):
      %q = arith.divf %e, %s : f32
      linalg.yield %q : f32
    }
    drt.return
  }

  // One operation keeps its loops.
  // CHECK: drt.kernel @alone
  // CHECK: linalg.generic
  drt.kernel @alone(%x: memref<32x32xf32>, %y: memref<32xf32>) {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<32xf32>)
    linalg.generic {indexing_maps = [#flat, #flatrow], iterator_types = ["parallel", "reduction"]} ins(%x : memref<32x32xf32>) outs(%y : memref<32xf32>) {
    ^bb0(%a: f32, %out: f32):
      %s = arith.addf %a, %out : f32
      linalg.yield %s : f32
    }
    drt.return
  }

  // So do sums of columns beside rows, which are no kernel of this kind: a GPU's that the host runs.
  // CHECK: drt.kernel @columns
  // CHECK: linalg.generic
  // CHECK: linalg.generic
  // CHECK-NOT: scf.for
  drt.kernel @columns(%x: memref<32x32xf32>, %y: memref<32xf32>, %z: memref<32xf32>) {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%y : memref<32xf32>)
    linalg.generic {indexing_maps = [#flat, #flatrow], iterator_types = ["parallel", "reduction"]} ins(%x : memref<32x32xf32>) outs(%y : memref<32xf32>) {
    ^bb0(%a: f32, %out: f32):
      %s = arith.addf %a, %out : f32
      linalg.yield %s : f32
    }
    linalg.fill ins(%zero : f32) outs(%z : memref<32xf32>)
    linalg.generic {indexing_maps = [#flat, affine_map<(d0, d1) -> (d1)>], iterator_types = ["reduction", "parallel"]} ins(%x : memref<32x32xf32>) outs(%z : memref<32xf32>) {
    ^bb0(%a: f32, %out: f32):
      %s = arith.addf %a, %out : f32
      linalg.yield %s : f32
    }
    drt.return
  }

  // Beside a loop, as that of dfg.while, operations stay where they are.
  // CORES: drt.kernel @beside_a_loop
  // CORES-NOT: divided
  // CHECK: drt.kernel @beside_a_loop
  // CHECK: linalg.generic
  // CHECK: scf.for
  // CHECK: linalg.generic
  // CHECK: drt.return
  drt.kernel @beside_a_loop(%x: memref<32x32xf32>, %y: memref<32xf32>, %z: memref<32x32xf32>) {
    %zero = arith.constant 0.0 : f32
    %first = arith.constant 0 : index
    %one = arith.constant 1 : index
    %end = arith.constant 32 : index
    linalg.generic {indexing_maps = [#flat, #flat], iterator_types = ["parallel", "parallel"]} ins(%x : memref<32x32xf32>) outs(%z : memref<32x32xf32>) {
    ^bb0(%a: f32, %out: f32):
      %s = arith.addf %a, %a : f32
      linalg.yield %s : f32
    }
    scf.for %i = %first to %end step %one {
      memref.store %zero, %z[%i, %i] : memref<32x32xf32>
    }
    linalg.generic {indexing_maps = [#flat, #flatrow], iterator_types = ["parallel", "reduction"]} ins(%z : memref<32x32xf32>) outs(%y : memref<32xf32>) {
    ^bb0(%a: f32, %out: f32):
      %s = arith.addf %a, %out : f32
      linalg.yield %s : f32
    }
    drt.return
  }
}
