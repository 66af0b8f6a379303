// RUN: distc-opt %s --dfg-split-complex --split-input-file --verify-diagnostics

module {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("axes")
    %z = dfg.cast %x : (tensor<?x4xf32>) -> tensor<?x4xcomplex<f32>> loc("z")
    // expected-error @below {{(op 'tan') works on complex numbers, and distc has no code for that: compute with their real and imaginary parts}}
    %tan = dfg.tan %z : (tensor<?x4xcomplex<f32>>) -> tensor<?x4xcomplex<f32>>
    %real = dfg.opaque "Real"(%tan) : (tensor<?x4xcomplex<f32>>) -> tensor<?x4xf32> loc("real")
    %loss = dfg.sum %real, %axes : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Not along the batch.
module {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<4x?xf32> loc("x")
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("axes")
    %z = dfg.cast %x : (tensor<4x?xf32>) -> tensor<4x?xcomplex<f32>> loc("z")
    // expected-error @below {{the size of an axis that is transformed must be known}}
    %f = dfg.opaque "FFT"(%z) : (tensor<4x?xcomplex<f32>>) -> tensor<4x?xcomplex<f32>>
    %real = dfg.opaque "Real"(%f) : (tensor<4x?xcomplex<f32>>) -> tensor<4x?xf32> loc("real")
    %loss = dfg.sum %real, %axes : (tensor<4x?xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

module {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %length = dfg.const dense<100000> : tensor<1xi32> : tensor<1xi32> loc("length")
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("axes")
    // expected-error @below {{a transform of 100000 elements is too long for a product with a matrix}}
    %z = dfg.opaque "RFFT"(%x, %length) : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?x50001xcomplex<f32>>
    %real = dfg.opaque "Real"(%z) : (tensor<?x50001xcomplex<f32>>) -> tensor<?x50001xf32> loc("real")
    %loss = dfg.sum %real, %axes : (tensor<?x50001xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

module {
  dfg.graph attributes {fetches = ["z:0"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    // expected-error@unknown {{it cannot be fetched: fetch its real and its imaginary part}}
    %z = dfg.cast %x : (tensor<?x4xf32>) -> tensor<?x4xcomplex<f32>> loc("z")
  }
}
