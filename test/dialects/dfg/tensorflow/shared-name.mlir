// RUN: distc-translate --export-graphdef %s --text | FileCheck %s

// Two variables that no graph of TensorFlow gave a name to share.
dfg.variable @w : tensor<2xf32>
dfg.variable @v : tensor<3xf32>
dfg.graph {
  // CHECK: name: "handle_of_w"
  // CHECK: key: "shared_name"
  // CHECK-NEXT: value {
  // CHECK-NEXT: s: "w"
  %w = dfg.var_handle @w : !dfg.ref<tensor<2xf32>> loc("handle_of_w")
  // CHECK: name: "v"
  // CHECK: key: "shared_name"
  // CHECK-NEXT: value {
  // CHECK-NEXT: s: "v"
  %v = dfg.var_handle @v : !dfg.ref<tensor<3xf32>> loc("v")
}
