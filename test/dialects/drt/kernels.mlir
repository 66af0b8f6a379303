// RUN: distc-opt %s | distc-opt | FileCheck %s
// RUN: distc-opt %s --emit-bytecode | distc-opt | FileCheck %s
// RUN: distc-opt %s --symbol-dce | FileCheck %s --check-prefix=DCE

// CHECK: drt.kernel @twice(%{{.*}}: memref<4xf32> {llvm.noalias}{{.*}}, %{{.*}}: memref<4xf32>{{.*}}) {
// CHECK: drt.return
drt.kernel @twice(%x: memref<4xf32> {llvm.noalias}, %y: memref<4xf32>) {
  linalg.copy ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  drt.return
}

// CHECK: drt.kernel @elsewhere(memref<f32>){{$| loc}}
drt.kernel @elsewhere(memref<f32>)

// CHECK: drt.kernel range @sgd(%{{.*}}: i64{{.*}}, %{{.*}}: i64{{.*}}, %{{.*}}: memref<4xf32>{{.*}}) {
drt.kernel range @sgd(%begin: i64, %end: i64, %w: memref<4xf32>) {
  drt.return
}

// CHECK: drt.kernel @shared(%{{.*}}: i64{{.*}}, %{{.*}}: i64{{.*}}, %{{.*}}: memref<64xf32>{{.*}}) attributes {divided = array<i64: 64, 32>} {
drt.kernel @shared(%begin: i64, %end: i64, %y: memref<64xf32>) attributes {divided = array<i64: 64, 32>} {
  drt.return
}

// Kernels are the module's own: what no entry runs goes.
// DCE-NOT: @unused
drt.kernel @unused(%x: memref<f32>) {
  drt.return
}

// DCE: drt.variable @w
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  %s = drt.feed {name = "s"} : () -> tensor<f32>
  %x = drt.read @w : tensor<4xf32>
  %y = drt.launch @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %z = drt.launch @shared() : () -> tensor<64xf32>
  drt.launch @elsewhere(%s) : (tensor<f32>) -> ()
  drt.update {kernel = @sgd, variables = [@w], count = 4 : i64} : () -> ()
}
