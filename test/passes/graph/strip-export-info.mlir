// RUN: distc-opt %s --dfg-strip-export-info | FileCheck %s
// RUN: distc-opt %s --dfg-strip-export-info --mlir-print-debuginfo > %t.mlir
// RUN: not distc compile %t.mlir --emit=graphdef -o %t.meta 2>&1 | FileCheck %s --check-prefix=EXPORT

// CHECK: dfg.graph attributes {stripped}
// CHECK-NEXT: dfg.var_handle @w :
// CHECK-NEXT: dfg.read_variable %{{.*}} : (
// What the operation does not model, and may depend on, stays.
// CHECK-NEXT: dfg.cast %{{.*}} {tf = {Truncate = true}} :
// EXPORT: error: was written with --strip-export-info, which leaves out what an export needs; write it again without
dfg.variable @w : tensor<2xf32> {trainable}
dfg.graph attributes {collections = #dfg.raw<"\0A">} {
  %w = dfg.var_handle @w {tf = {_class = ["loc:@w"], allowed_devices = [], container = "", debug_name = "w/", shared_name = "w"}} : !dfg.ref<tensor<2xf32>> loc("w")
  %r = dfg.read_variable %w {tf = {"$rest" = #dfg.raw<"\12">, _output_shapes = [#dfg.shape<[2]>]}} : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32> loc("r")
  %i = dfg.cast %r {tf = {Truncate = true, _output_shapes = [#dfg.shape<[2]>]}} : (tensor<2xf32>) -> tensor<2xi32> loc("i")
}
