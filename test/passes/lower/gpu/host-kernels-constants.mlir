// RUN: distc-opt %s --drt-schedule-for-gpu | FileCheck %s

// A constant that kernels of both sides read is in the devices' image, and here. One that only devices read is in the image alone.
// CHECK: gpu.module @kernels
// CHECK-DAG: memref.global "private" constant @both : memref<4xf64> = {{.*}} {alignment = 256 : i64}
// CHECK-DAG: memref.global "private" constant @device : memref<4xf64> = {{.*}} {alignment = 256 : i64}
// CHECK: memref.get_global @both
// CHECK: memref.get_global @device
// CHECK: memref.global "private" constant @both : memref<4xf64> = {{.*}}{{\]>$}}
// CHECK-NEXT: drt.kernel @special
// CHECK: memref.get_global @both
#i = affine_map<(i) -> (i)>
memref.global "private" constant @both : memref<4xf64> = dense<[1.0, 2.0, 3.0, 4.0]>
memref.global "private" constant @device : memref<4xf64> = dense<[4.0, 3.0, 2.0, 1.0]>
drt.kernel @special(%x: memref<4xf64>, %y: memref<4xf64>) {
  %c = memref.get_global @both : memref<4xf64>
  linalg.generic {indexing_maps = [#i, #i, #i], iterator_types = ["parallel"]} ins(%x, %c : memref<4xf64>, memref<4xf64>) outs(%y : memref<4xf64>) {
  ^bb0(%a: f64, %b: f64, %o: f64):
    %e = dfg.special_function "bessel_i0"(%a) : (f64) -> f64
    %m = arith.mulf %e, %b : f64
    linalg.yield %m : f64
  }
  drt.return
}
drt.kernel @plain(%x: memref<4xf64>, %y: memref<4xf64>) {
  %c = memref.get_global @both : memref<4xf64>
  %d = memref.get_global @device : memref<4xf64>
  linalg.generic {indexing_maps = [#i, #i, #i, #i], iterator_types = ["parallel"]} ins(%x, %c, %d : memref<4xf64>, memref<4xf64>, memref<4xf64>) outs(%y : memref<4xf64>) {
  ^bb0(%a: f64, %b: f64, %e: f64, %o: f64):
    %m = arith.mulf %a, %b : f64
    %n = arith.mulf %m, %e : f64
    linalg.yield %n : f64
  }
  drt.return
}
