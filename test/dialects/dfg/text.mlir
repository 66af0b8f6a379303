// What a graph's text is made of, besides its operations: it is written to be read, and read back.

// RUN: distc-opt %s --mlir-print-debuginfo -o %t.mlir
// RUN: FileCheck %s --strict-whitespace --input-file %t.mlir
// RUN: distc-opt %t.mlir --mlir-print-debuginfo | diff %t.mlir -

// What only an export needs stands apart, once.
// CHECK-DAG: #[[RAW:raw[0-9]*]] = #dfg.raw<"the rest of a graph's file, in many bytes">
// CHECK-DAG: #[[SHAPE:tf[0-9]*]] = {_output_shapes = [#dfg.shape<[?, 3]>]}
// CHECK-DAG: #[[NOTES:tf[0-9]*]] = {"$rest" = #dfg.raw<"\12">, _output_shapes = [#dfg.shape<[]>, #dfg.shape<*>], shared_name = "w"}
// CHECK: dfg.graph attributes {collections = #[[RAW]]} {
dfg.graph attributes {collections = #dfg.raw<"the rest of a graph's file, in many bytes">} {
  // A name stands where its node does; no operands, no space for them.
  // CHECK-NEXT: %x = dfg.placeholder {shape = #dfg.shape<[?, 3]>, tf = #[[SHAPE]]} : () -> tensor<?x3xf32> loc("x")
  %x = dfg.placeholder {shape = #dfg.shape<[?, 3]>, tf = {_output_shapes = [#dfg.shape<[?, 3]>]}} : () -> tensor<?x3xf32> loc("x")
  // CHECK-NEXT: %y = dfg.relu %x {tf = #[[SHAPE]]} : (tensor<?x3xf32>) -> tensor<?x3xf32> loc("y")
  %y = dfg.relu %x {tf = {_output_shapes = [#dfg.shape<[?, 3]>]}} : (tensor<?x3xf32>) -> tensor<?x3xf32> loc("y")
  // CHECK-NEXT: %z = dfg.relu %y {tf = #[[NOTES]]} : (tensor<?x3xf32>) -> tensor<?x3xf32> loc(fused["z", "y"])
  %z = dfg.relu %y {tf = {"$rest" = #dfg.raw<"\12">, _output_shapes = [#dfg.shape<[]>, #dfg.shape<*>], shared_name = "w"}} : (tensor<?x3xf32>) -> tensor<?x3xf32> loc(fused["z", "y"])
  // What an operation may depend on stands with it.
  // CHECK-NEXT: %{{.*}} = dfg.opaque "Unknown"(%z) {tf = {_class = ["loc:@z"], depth = 3 : i64}} :
  %i = dfg.opaque "Unknown"(%z) {tf = {_class = ["loc:@z"], depth = 3 : i64}} : (tensor<?x3xf32>) -> tensor<2xi32> loc("i")
  // A constant's type is its value's, unless it says another.
  // CHECK-NEXT: %c = dfg.const dense<[1, 2]> : tensor<2xi32> loc("c")
  %c = dfg.const dense<[1, 2]> : tensor<2xi32> : tensor<2xi32> loc("c")
  // CHECK-NEXT: %d = dfg.const dense<[1, 2]> : tensor<2xi32> {device = "/cpu:0"} : tensor<?xi32> loc("d")
  %d = dfg.const dense<[1, 2]> : tensor<2xi32> {device = "/cpu:0"} : tensor<?xi32> loc("d")
}
