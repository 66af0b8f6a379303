// RUN: distc-opt %s --drt-plan-memory=device=true | FileCheck %s
// RUN: distc-opt %s --drt-plan-memory | FileCheck %s --check-prefix=CPU

// CHECK: module attributes {drt.arena_bytes = 64 : i64, drt.variable_bytes = 1536 : i64}
// CPU: module attributes {drt.arena_bytes = 64 : i64}
// CPU-NOT: at = 0

// CHECK: drt.variable @w : tensor<65xf32> {at = 0 : i64}
drt.variable @w : tensor<65xf32>
// CHECK: drt.variable @b : tensor<3xf32> {at = 512 : i64}
drt.variable @b : tensor<3xf32>
// CHECK: drt.variable @table : tensor<80xi64> {at = 768 : i64}
drt.variable @table : tensor<80xi64>
func.func @entry() attributes {drt.entry = "step"} {
  %0 = drt.launch @make() : () -> tensor<4xf32>
  drt.fetch %0 {name = "y", join = 0 : i32} : (tensor<4xf32>) -> ()
  return
}
