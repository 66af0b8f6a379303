// RUN: distc-opt %s --pass-pipeline="builtin.module(drt.kernel(drt-prepare-kernels))" | FileCheck %s --check-prefix=PREPARE
// RUN: distc-opt %s --lower-kernels | FileCheck %s

#map = affine_map<(i) -> (i)>

// What is as accurate in polynomials as the C library's is made of them; others are left.
// PREPARE-LABEL: drt.kernel @kernel
// PREPARE-SAME: %{{[^:]*}}: memref<4xf32> {llvm.noalias}, %{{[^:]*}}: memref<4xf32> {llvm.noalias}
// PREPARE-NOT: math.exp
// PREPARE: math.acos
// PREPARE: math.asinh
// PREPARE: arith.addf %{{[^ ]*}}, %{{[^ ]*}} : f32
// CHECK-DAG: llvm.func @asinhf(f32) -> f32
// CHECK-LABEL: llvm.func @kernel(
// CHECK-SAME: !llvm.ptr {llvm.noalias}{{.*}}!llvm.ptr {llvm.noalias}
// CHECK: llvm.intr.sqrt
// CHECK: llvm.intr.acos
// CHECK: llvm.call @asinhf
drt.kernel @kernel(%x: memref<4xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    %r = math.sqrt %e : f32
    %c = math.acos %r : f32
    %s = math.asinh %c : f32
    %v = arith.addf %s, %a : f32
    linalg.yield %v : f32
  }
  drt.return
}

// A product may be added to a sum without rounding in between. What is added up is the same number in each kernel that computes it.
// PREPARE-LABEL: @kernel_sum
// PREPARE: arith.mulf %{{[^ ]*}}, %{{[^ ]*}} : f32
// PREPARE: %[[ELEMENT:.*]] = arith.addf %{{[^ ]*}}, %{{[^ ]*}} : f32
// PREPARE: %[[PRODUCT:.*]] = arith.mulf %[[ELEMENT]], %{{[^ ]*}} fastmath<contract> : f32
// PREPARE: arith.addf %{{[^ ]*}}, %[[PRODUCT]] fastmath<reassoc,contract> : f32
drt.kernel @kernel_sum(%x: memref<4xf32>, %y: memref<f32>) {
  linalg.generic {indexing_maps = [#map, affine_map<(i) -> ()>], iterator_types = ["reduction"]} ins(%x : memref<4xf32>) outs(%y : memref<f32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %a : f32
    %e = arith.addf %m, %a : f32
    %p = arith.mulf %e, %a : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32
  }
  drt.return
}

// Elements of float64 are computed by the library.
// PREPARE-LABEL: @kernel_f64
// PREPARE: math.exp
// CHECK-LABEL: llvm.func @kernel_f64(
// CHECK: llvm.intr.exp
drt.kernel @kernel_f64(%x: memref<4xf64>, %y: memref<4xf64>) {
  linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : memref<4xf64>) outs(%y : memref<4xf64>) {
  ^bb0(%a: f64, %o: f64):
    %e = math.exp %a : f64
    linalg.yield %e : f64
  }
  drt.return
}

// A table is one row, whatever its shape: LLVM would make a constant of each innermost row.
// CHECK-DAG: llvm.mlir.global private constant @table(dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>) {{.*}}: !llvm.array<4 x f32>
memref.global "private" constant @table : memref<2x2x1xf32> = dense<[[[1.0], [2.0]], [[3.0], [4.0]]]>
drt.kernel @copies(%out: memref<2x2x1xf32>) {
  %table = memref.get_global @table : memref<2x2x1xf32>
  memref.copy %table, %out : memref<2x2x1xf32> to memref<2x2x1xf32>
  drt.return
}

// What loops of vectors are made of: the largest of two numbers is one operation, which passes NaN on and does not tell zeros
// apart; a bool is a byte.
// PREPARE-LABEL: @kernel_masked_max
// PREPARE: arith.maximumf {{.*}} fastmath<{{.*}}nsz
// CHECK-LABEL: llvm.func @kernel_masked_max(
// CHECK: %[[BYTE:.*]] = llvm.load {{.*}} -> i8
// CHECK: llvm.icmp "ne" %[[BYTE]]
// CHECK-NOT: llvm.fcmp
// CHECK: llvm.intr.maximum
// CHECK: llvm.zext %{{.*}} : i1 to i8
// CHECK: llvm.store {{.*}} : i8
drt.kernel @kernel_masked_max(%m: memref<4xi1>, %x: memref<4xf32>, %y: memref<f32>, %n: memref<4xi1>) {
  linalg.generic {indexing_maps = [#map, #map, affine_map<(i) -> ()>, #map], iterator_types = ["reduction"]} ins(%m, %x : memref<4xi1>, memref<4xf32>) outs(%y, %n : memref<f32>, memref<4xi1>) {
  ^bb0(%b: i1, %a: f32, %o: f32, %p: i1):
    %low = arith.constant 0xFF800000 : f32
    %s = arith.select %b, %a, %low : f32
    %l = arith.maximumf %o, %s : f32
    %true = arith.constant true
    %not = arith.xori %b, %true : i1
    linalg.yield %l, %not : f32, i1
  }
  drt.return
}
