// RUN: distc-opt %s --drt-schedule-for-gpu --lower-kernels --convert-drt-to-llvm | FileCheck %s

// Special functions are the host's: a kernel that calls one is compiled for it, and runs there in the order of the device's work.
#i = affine_map<(i) -> (i)>
module attributes {gpu.container_module} {
  drt.program "g.meta" strategy "AllReduce" target "cuda:sm_90" batch 4 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena 64 variables 0
  drt.image "sm_90" "ELF"
  drt.kernel @special(%x: memref<4xf64>, %y: memref<4xf64>) {
    linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : memref<4xf64>) outs(%y : memref<4xf64>) {
    ^bb0(%a: f64, %o: f64):
      %e = dfg.special_function "bessel_i0"(%a) : (f64) -> f64
      linalg.yield %e : f64
    }
    drt.return
  }
  // CHECK: llvm.func internal @special(
  // CHECK: llvm.call @drt_special_bessel_i0
  // CHECK: llvm.func internal @special_on_host(%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[TENSORS:.*]]: !llvm.ptr)
  // CHECK: llvm.load %[[TENSORS]]
  // CHECK: llvm.call @special(
  // CHECK-LABEL: llvm.func internal @drt_entry_step
  drt.entry "step" {
    %x = drt.feed {name = "x", batched} : () -> tensor<4xf64>
    // CHECK: %[[ROUTINE:.*]] = llvm.mlir.addressof @special_on_host
    // CHECK: llvm.call @drt_call_on_host(%{{.*}}, %[[ROUTINE]],
    %y = drt.launch @special(%x) {at = array<i64: 0>} : (tensor<4xf64>) -> tensor<4xf64>
    drt.fetch %y {name = "y:0", join = 0 : i32} : (tensor<4xf64>) -> ()
  }
}
