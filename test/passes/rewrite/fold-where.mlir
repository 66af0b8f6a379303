// RUN: distc-opt %s --dfg-fold-where --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// What a constant chooses is known.
// CHECK-LABEL: @triangle
module @triangle {
  dfg.graph attributes {loss = "loss:0"} {
    %mask = dfg.const dense<[[false, false], [true, true]]> : tensor<2x2xi1> : tensor<2x2xi1> loc("mask")
    // CHECK: %[[AT:.*]] = dfg.const dense<{{\[}}[1, 0], [1, 1]]> : tensor<2x2xi64> loc("at")
    %at = dfg.opaque "Where"(%mask) : (tensor<2x2xi1>) -> tensor<?x2xi64> loc("at")
    // CHECK: dfg.cast %[[AT]] {{.*}} -> tensor<2x2xf32>
    %loss = dfg.cast %at {Truncate = false} : (tensor<?x2xi64>) -> tensor<?x2xf32> loc("loss")
    // What data choose is not.
    // CHECK: dfg.opaque "Where"
    %x = dfg.placeholder : () -> tensor<?xi1> loc("x")
    %rows = dfg.opaque "Where"(%x) : (tensor<?xi1>) -> tensor<?x1xi64> loc("rows")
  }
}
