// RUN: distc-opt %s --drt-schedule-for-gpu --canonicalize | FileCheck %s

// One block runs a loop that data end: its threads share each operation's elements and meet behind it. All of them read
// what decides whether there is another iteration, before any writes it again. What is written is exchanged between
// threads, so it is not said that nothing else points to it.
#i = affine_map<(i) -> (i)>
#0 = affine_map<(i) -> ()>

// CHECK-LABEL: gpu.func @halve(
// CHECK-SAME: %[[X:[^:]*]]: memref<4096xf32> {llvm.noalias, llvm.readonly}, %[[STATE:[^:]*]]: memref<4096xf32>, %[[VALID:[^:]*]]: memref<i1>, %[[SCRATCH:[^:]*]]: memref<128xi8>)
// CHECK-SAME: workgroup(%[[WARPS:.*]] : memref<32xf32, #gpu.address_space<workgroup>>)
// CHECK-SAME: drt.block = array<i64: 1024, 1, 1>, drt.grid = array<i64: 1, 1, 1>, drt.schedule = "loops"
// CHECK: %[[THREAD:.*]] = arith.index_castui
// One thread stores a scalar.
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[THREAD]]
// CHECK: scf.if %[[FIRST]]
// CHECK-NEXT: memref.store %true, %[[VALID]][]
// CHECK: gpu.barrier
// CHECK: scf.for %{{.*}} = %[[THREAD]] to %c4096_i32 step %c1024_i32
// CHECK: memref.load %[[X]]
// CHECK: memref.store %{{.*}}, %[[STATE]]
// CHECK: gpu.barrier
// CHECK: scf.while
// A sum over many elements is all threads'; what it starts from is no memory.
// CHECK: scf.for %{{.*}} = %[[THREAD]] to %c4096_i32 step %c1024_i32 iter_args(%{{.*}} = %{{.*}}) -> (f32)
// CHECK: gpu.shuffle xor
// CHECK: memref.store %{{.*}}, %[[WARPS]]
// CHECK: gpu.barrier
// CHECK: memref.store
// CHECK: gpu.barrier
// CHECK: %[[RUNS:.*]] = memref.load %{{.*}} : memref<i1>
// CHECK-NEXT: scf.condition(%[[RUNS]])
// CHECK: do {
// CHECK-NEXT: gpu.barrier
// CHECK: scf.for %{{.*}} = %[[THREAD]] to %c4096_i32 step %c1024_i32
// CHECK: arith.mulf
// CHECK: gpu.barrier
// CHECK: scf.yield
// CHECK: gpu.return
drt.kernel @halve(%x: memref<4096xf32>, %state: memref<4096xf32>, %valid: memref<i1>, %scratch: memref<128xi8>) {
  %c0 = arith.constant 0 : index
  %sum = memref.view %scratch[%c0][] : memref<128xi8> to memref<f32>
  %c64 = arith.constant 64 : index
  %greater = memref.view %scratch[%c64][] : memref<128xi8> to memref<i1>
  %true = arith.constant true
  memref.store %true, %valid[] : memref<i1>
  linalg.copy ins(%x : memref<4096xf32>) outs(%state : memref<4096xf32>)
  scf.while : () -> () {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%sum : memref<f32>)
    linalg.generic {indexing_maps = [#i, #0], iterator_types = ["reduction"]} ins(%state : memref<4096xf32>) outs(%sum : memref<f32>) {
    ^bb0(%a: f32, %o: f32):
      %s = arith.addf %a, %o : f32
      linalg.yield %s : f32
    }
    linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []} ins(%sum : memref<f32>) outs(%greater : memref<i1>) {
    ^bb0(%a: f32, %o: i1):
      %one = arith.constant 1.0 : f32
      %g = arith.cmpf ogt, %a, %one : f32
      linalg.yield %g : i1
    }
    %runs = memref.load %greater[] : memref<i1>
    scf.condition(%runs)
  } do {
    linalg.generic {indexing_maps = [#i], iterator_types = ["parallel"]} outs(%state : memref<4096xf32>) {
    ^bb0(%o: f32):
      %half = arith.constant 0.5 : f32
      %h = arith.mulf %o, %half : f32
      linalg.yield %h : f32
    }
    scf.yield
  }
  drt.return
}
