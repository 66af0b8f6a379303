// RUN: distc-opt %s --dfg-check-endpoints=code=false | FileCheck %s

// A graph that is to leave as a graph may need nodes without semantics.
// CHECK: dfg.opaque "Squared"
dfg.graph attributes {loss = "loss:0"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %squares = dfg.opaque "Squared"(%x) : (tensor<f32>) -> tensor<f32>
  %loss = dfg.identity %squares : (tensor<f32>) -> tensor<f32> loc("loss")
}
