// RUN: distc-opt %s --dfg-inline-calls --split-input-file --verify-diagnostics

dfg.func @forever(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{calls function 'forever', which calls itself}}
  %y = dfg.call @forever(%x) : (tensor<f32>) -> tensor<f32>
  dfg.return %y : tensor<f32>
}

// -----

dfg.func @one(%x: tensor<f32>) -> tensor<f32> {
  dfg.return %x : tensor<f32>
}
dfg.graph {
  // expected-error @below {{with 0 operands for 1 results, but it has 1 arguments and 1 results}}
  %y = dfg.call @one() : () -> tensor<f32>
}

// -----

// Ten calls of what calls ten times, and so on: a million nodes.
dfg.graph {
  %x = dfg.placeholder : () -> tensor<f32>
  // expected-error @below {{calls function 'f0'; functions are put in where they are called, and these calls would become more than 524288 nodes}}
  %y = dfg.call @f0(%x) : (tensor<f32>) -> tensor<f32>
}
dfg.func @f0(%0: tensor<f32>) -> tensor<f32> {
  %1 = dfg.call @f1(%0) : (tensor<f32>) -> tensor<f32>
  %2 = dfg.call @f1(%1) : (tensor<f32>) -> tensor<f32>
  %3 = dfg.call @f1(%2) : (tensor<f32>) -> tensor<f32>
  %4 = dfg.call @f1(%3) : (tensor<f32>) -> tensor<f32>
  %5 = dfg.call @f1(%4) : (tensor<f32>) -> tensor<f32>
  %6 = dfg.call @f1(%5) : (tensor<f32>) -> tensor<f32>
  %7 = dfg.call @f1(%6) : (tensor<f32>) -> tensor<f32>
  %8 = dfg.call @f1(%7) : (tensor<f32>) -> tensor<f32>
  %9 = dfg.call @f1(%8) : (tensor<f32>) -> tensor<f32>
  %10 = dfg.call @f1(%9) : (tensor<f32>) -> tensor<f32>
  dfg.return %10 : tensor<f32>
}
dfg.func @f1(%0: tensor<f32>) -> tensor<f32> {
  %1 = dfg.call @f2(%0) : (tensor<f32>) -> tensor<f32>
  %2 = dfg.call @f2(%1) : (tensor<f32>) -> tensor<f32>
  %3 = dfg.call @f2(%2) : (tensor<f32>) -> tensor<f32>
  %4 = dfg.call @f2(%3) : (tensor<f32>) -> tensor<f32>
  %5 = dfg.call @f2(%4) : (tensor<f32>) -> tensor<f32>
  %6 = dfg.call @f2(%5) : (tensor<f32>) -> tensor<f32>
  %7 = dfg.call @f2(%6) : (tensor<f32>) -> tensor<f32>
  %8 = dfg.call @f2(%7) : (tensor<f32>) -> tensor<f32>
  %9 = dfg.call @f2(%8) : (tensor<f32>) -> tensor<f32>
  %10 = dfg.call @f2(%9) : (tensor<f32>) -> tensor<f32>
  dfg.return %10 : tensor<f32>
}
dfg.func @f2(%0: tensor<f32>) -> tensor<f32> {
  %1 = dfg.call @f3(%0) : (tensor<f32>) -> tensor<f32>
  %2 = dfg.call @f3(%1) : (tensor<f32>) -> tensor<f32>
  %3 = dfg.call @f3(%2) : (tensor<f32>) -> tensor<f32>
  %4 = dfg.call @f3(%3) : (tensor<f32>) -> tensor<f32>
  %5 = dfg.call @f3(%4) : (tensor<f32>) -> tensor<f32>
  %6 = dfg.call @f3(%5) : (tensor<f32>) -> tensor<f32>
  %7 = dfg.call @f3(%6) : (tensor<f32>) -> tensor<f32>
  %8 = dfg.call @f3(%7) : (tensor<f32>) -> tensor<f32>
  %9 = dfg.call @f3(%8) : (tensor<f32>) -> tensor<f32>
  %10 = dfg.call @f3(%9) : (tensor<f32>) -> tensor<f32>
  dfg.return %10 : tensor<f32>
}
dfg.func @f3(%0: tensor<f32>) -> tensor<f32> {
  %1 = dfg.call @f4(%0) : (tensor<f32>) -> tensor<f32>
  %2 = dfg.call @f4(%1) : (tensor<f32>) -> tensor<f32>
  %3 = dfg.call @f4(%2) : (tensor<f32>) -> tensor<f32>
  %4 = dfg.call @f4(%3) : (tensor<f32>) -> tensor<f32>
  %5 = dfg.call @f4(%4) : (tensor<f32>) -> tensor<f32>
  %6 = dfg.call @f4(%5) : (tensor<f32>) -> tensor<f32>
  %7 = dfg.call @f4(%6) : (tensor<f32>) -> tensor<f32>
  %8 = dfg.call @f4(%7) : (tensor<f32>) -> tensor<f32>
  %9 = dfg.call @f4(%8) : (tensor<f32>) -> tensor<f32>
  %10 = dfg.call @f4(%9) : (tensor<f32>) -> tensor<f32>
  dfg.return %10 : tensor<f32>
}
dfg.func @f4(%0: tensor<f32>) -> tensor<f32> {
  %1 = dfg.call @f5(%0) : (tensor<f32>) -> tensor<f32>
  %2 = dfg.call @f5(%1) : (tensor<f32>) -> tensor<f32>
  %3 = dfg.call @f5(%2) : (tensor<f32>) -> tensor<f32>
  %4 = dfg.call @f5(%3) : (tensor<f32>) -> tensor<f32>
  %5 = dfg.call @f5(%4) : (tensor<f32>) -> tensor<f32>
  %6 = dfg.call @f5(%5) : (tensor<f32>) -> tensor<f32>
  %7 = dfg.call @f5(%6) : (tensor<f32>) -> tensor<f32>
  %8 = dfg.call @f5(%7) : (tensor<f32>) -> tensor<f32>
  %9 = dfg.call @f5(%8) : (tensor<f32>) -> tensor<f32>
  %10 = dfg.call @f5(%9) : (tensor<f32>) -> tensor<f32>
  dfg.return %10 : tensor<f32>
}
dfg.func @f5(%0: tensor<f32>) -> tensor<f32> {
  %1 = dfg.neg %0 : (tensor<f32>) -> tensor<f32>
  %2 = dfg.neg %1 : (tensor<f32>) -> tensor<f32>
  %3 = dfg.neg %2 : (tensor<f32>) -> tensor<f32>
  %4 = dfg.neg %3 : (tensor<f32>) -> tensor<f32>
  %5 = dfg.neg %4 : (tensor<f32>) -> tensor<f32>
  %6 = dfg.neg %5 : (tensor<f32>) -> tensor<f32>
  %7 = dfg.neg %6 : (tensor<f32>) -> tensor<f32>
  %8 = dfg.neg %7 : (tensor<f32>) -> tensor<f32>
  %9 = dfg.neg %8 : (tensor<f32>) -> tensor<f32>
  %10 = dfg.neg %9 : (tensor<f32>) -> tensor<f32>
  dfg.return %10 : tensor<f32>
}
