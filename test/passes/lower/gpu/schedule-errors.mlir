// RUN: distc-opt %s --drt-schedule-for-gpu --split-input-file --verify-diagnostics

drt.kernel @copy(%x: memref<4xf64>, %y: memref<4xf64>) {
  // expected-error @below {{'memref.copy' op has no schedule on GPUs in a kernel}}
  memref.copy %x, %y : memref<4xf64> to memref<4xf64>
  drt.return
}

// -----

#i = affine_map<(i) -> (i)>
// expected-error @below {{kernel 'two' has 2 operations that no schedule takes together}}
drt.kernel @two(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>) {
  linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]} ins(%x : memref<4xf32>) outs(%z : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  drt.return
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
drt.kernel @overwritten(%x: memref<4x5xf32>, %y: memref<4xf32>) {
  // expected-error @below {{result 0 may have elements that several iterations write, none of them a reduction over all of the operation's reduced loops: no schedule on GPUs has an order for that}}
  linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x5xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  drt.return
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
drt.kernel @partly_reduced(%x: memref<4x5xf32>, %y: memref<4xf32>, %z: memref<f32>) {
  // expected-error @below {{result 0 may have elements that several iterations write}}
  linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]}
      ins(%x : memref<4x5xf32>) outs(%y, %z : memref<4xf32>, memref<f32>) {
  ^bb0(%a: f32, %o: f32, %p: f32):
    %s = arith.addf %o, %a : f32
    %t = arith.addf %p, %a : f32
    linalg.yield %s, %t : f32, f32
  }
  drt.return
}
