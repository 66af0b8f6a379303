// REQUIRES: libdevice
// RUN: distc-opt %s --lower-gpu-kernels --drt-make-images="ptx-only" | FileCheck %s --check-prefix=PTX
// RUN: distc-opt %s --lower-gpu-kernels --drt-make-images="ptx-only target=cuda:sm_90,sm_80" | FileCheck %s --check-prefix=NEWEST

// Later chips compile the newest chip's PTX. Exponentials are libdevice's, which is linked; divisions and roots are rounded as IEEE says.
// PTX: drt.image "compute_90" "{{.*}}.target sm_90{{.*}}.visible .entry exp_of_root(
// PTX-SAME: .maxntid 128, 1, 1
// PTX-SAME: ld.global.nc.v4.b32
// PTX-SAME: div.rn.f32
// PTX-SAME: sqrt.rn.f32
// PTX-SAME: ex2.approx
// PTX-SAME: st.global.v4.b32
// PTX-SAME: \00"
// NEWEST: drt.image "compute_90"
// NEWEST-NOT: compute_80
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @exp_of_root(%x: memref<1024xf32> {llvm.noalias, llvm.readonly}, %y: memref<1024xf32> {llvm.noalias}) kernel attributes {drt.grid = array<i64: 2, 1, 1>, drt.block = array<i64: 128, 1, 1>} {
      %b = gpu.block_id x
      %t = gpu.thread_id x
      %c128 = arith.constant 128 : index
      %c4 = arith.constant 4 : index
      %w = arith.muli %b, %c128 : index
      %thread = arith.addi %w, %t : index
      %i = arith.muli %thread, %c4 : index
      %v = vector.load %x[%i] {alignment = 16 : i64} : memref<1024xf32>, vector<4xf32>
      %three = arith.constant dense<3.0> : vector<4xf32>
      %d = arith.divf %three, %v : vector<4xf32>
      %q = math.sqrt %d : vector<4xf32>
      %e = math.exp %q : vector<4xf32>
      vector.store %e, %y[%i] {alignment = 16 : i64} : memref<1024xf32>, vector<4xf32>
      gpu.return
    }
  }
}
