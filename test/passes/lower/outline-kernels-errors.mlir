// RUN: distc-opt %s --drt-outline-kernels --split-input-file --verify-diagnostics

#ij = affine_map<(i, j) -> (i, j)>
#j = affine_map<(i, j) -> (j)>

drt.entry "starts_from_a_feed" {
  %x = drt.feed {name = "x"} : () -> tensor<8x4xf32>
  %start = drt.feed {name = "start"} : () -> tensor<4xf32>
  // expected-error @below {{internal error: result 0 starts from what is no fill}}
  %sum = linalg.generic {indexing_maps = [#ij, #j], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<8x4xf32>) outs(%start : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  drt.fetch %sum {name = "sum", join = 0 : i32} : (tensor<4xf32>) -> ()
}
