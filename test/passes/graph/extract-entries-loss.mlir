// RUN: distc-opt %s --dfg-extract-entries --split-input-file 2>&1 | FileCheck %s

// A loss that is not one number is given like a fetch, and no line of the log has it: that is said.
// CHECK: warning: {{.*}}the loss 'rows:0' is 'tensor<?xf32>', and not one floating-point number: the log has no loss; candidates for loss: 'rows:0' 'mean:0'
// CHECK: dfg.fetches = ["rows:0"]
dfg.graph attributes {candidates = {loss = ["rows:0", "mean:0"]}, train_op = "train", loss = "rows:0"} {
  %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
  %rows = dfg.square %x : (tensor<?xf32>) -> tensor<?xf32> loc("rows")
  dfg.group {control = ["rows"]} : () -> () loc("train")
}

// -----

// CHECK-NOT: warning
// CHECK: dfg.fetches = ["one:0"]
dfg.graph attributes {train_op = "train", loss = "one:0"} {
  %x = dfg.placeholder : () -> tensor<1x1xf32> loc("x")
  %one = dfg.square %x : (tensor<1x1xf32>) -> tensor<1x1xf32> loc("one")
  dfg.group {control = ["one"]} : () -> () loc("train")
}
