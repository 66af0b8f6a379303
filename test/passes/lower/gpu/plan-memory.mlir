// RUN: distc-opt %s --drt-plan-memory=device=true | FileCheck %s
// RUN: distc-opt %s --drt-plan-memory | FileCheck %s --check-prefix=CPU

// CHECK: drt.program {{.*}} arena 192 variables 2304
// CPU: drt.program {{.*}} arena 192{{$}}
drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>]
// CPU-NOT: at = 0

// CHECK: drt.variable @w : tensor<65xf32> {at = 0 : i64}
drt.variable @w : tensor<65xf32>
// What a replica has a share of lies behind what all replicas have.
// CHECK: drt.variable @slot : tensor<36xf32> {at = 2048 : i64,
drt.variable @slot : tensor<36xf32> {full_shape = array<i64: 65>, shares = 2 : i64, whole = "slot"}
// Shares of it are gathered: it has room for those of all replicas.
// CHECK: drt.variable @b : tensor<63xf32> {at = 512 : i64}
drt.variable @b : tensor<63xf32>
// CHECK: drt.variable @table : tensor<80xi64> {at = 1280 : i64}
drt.variable @table : tensor<80xi64>
drt.entry "step" {
  %0 = drt.launch @make() : () -> tensor<4xf32>
  drt.fetch %0 {name = "y", join = 0 : i32} : (tensor<4xf32>) -> ()
  // CHECK: %[[G:.*]]:2 = drt.launch @gradients() {at = array<i64: 0, 64>}
  %g:2 = drt.launch @gradients() : () -> (tensor<3xf32>, tensor<10xf32>)
  drt.all_reduce_start %g#0, %g#1 {bucket = 0 : i32, mean = true, names = ["c", "b"], scatter, room = array<i64: 8, 16>} : (tensor<3xf32>, tensor<10xf32>) -> ()
  drt.all_reduce_wait 0
  drt.gather_start {bucket = 1 : i32, variables = [@b], room = array<i64: 130>} : () -> ()
  drt.all_reduce_wait 1
}
