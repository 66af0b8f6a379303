// RUN: distc-opt %s --pass-pipeline='builtin.module(func.func(drt-prepare-for-gpu))' --split-input-file --verify-diagnostics

func.func @sizes() attributes {drt.entry = "step"} {
  %x = drt.feed {name = "x"} : () -> tensor<1x8x8x4xf32>
  %w = drt.feed {name = "w"} : () -> tensor<3x3x4x2xf32>
  // expected-error @+1 {{has a filter of type 'tensor<3x3x4x2xf32>', its descriptor says 288 elements}}
  %y = drt.conv2d %x, %w {descriptor = array<i64: 1, 8, 8, 4, 3, 3, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1>}
      : (tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>) -> tensor<1x8x8x8xf32>
  return
}

// -----

func.func @descriptor() attributes {drt.entry = "step"} {
  %x = drt.feed {name = "x"} : () -> tensor<1x8x8x4xf32>
  %dy = drt.feed {name = "dy"} : () -> tensor<1x8x8x8xf32>
  // expected-error @+1 {{needs a descriptor of 18 numbers, not 2}}
  %dw = drt.conv2d_grad_filter %x, %dy {descriptor = array<i64: 1, 8>} : (tensor<1x8x8x4xf32>, tensor<1x8x8x8xf32>) -> tensor<3x3x4x2xf32>
  return
}
