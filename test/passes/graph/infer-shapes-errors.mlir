// RUN: distc-opt %s --dfg-infer-shapes="feeds=imag=2x3" --verify-diagnostics

// expected-error @below {{feeds: there is no placeholder 'imag'; did you mean 'image'?}}
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x3xf32> loc("image")
}
