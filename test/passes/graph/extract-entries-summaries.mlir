// RUN: distc-opt %s --dfg-extract-entries 2> %t.errors | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARNING < %t.errors

// The step gives the graph's scalar summaries behind its fetches; evaluation does not. What has no code is left out.
// WARNING: warning: {{.*}}the summary "text" is left out: it needs node 'parsed', which distc has no code for
// CHECK: module attributes {{.*}}dfg.summaries = {"loss:0" = "training/loss", "rate:0" = "rate"}
// CHECK-LABEL: dfg.func @step()
// CHECK-SAME: dfg.fetches = ["loss:0", "rate:0"]
// CHECK-LABEL: dfg.func @eval()
// CHECK-SAME: dfg.fetches = ["loss:0"]
dfg.variable @w : tensor<f32> {trainable}
dfg.graph attributes {train_op = "train", loss = "loss:0",
                      summaries = {"loss:0" = "training/loss", "rate:0" = "rate", "parsed:0" = "text"}} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %loss = dfg.square %x : (tensor<f32>) -> tensor<f32> loc("loss")
  %rate = dfg.neg %x : (tensor<f32>) -> tensor<f32> loc("rate")
  %parsed = dfg.opaque "StringToNumber"(%x) : (tensor<f32>) -> tensor<f32> loc("parsed")
  dfg.assign_sub %w, %loss : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("train")
}
