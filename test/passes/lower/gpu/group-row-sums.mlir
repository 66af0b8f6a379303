// RUN: distc-opt %s --drt-group-row-sums | FileCheck %s

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#l = affine_map<(i) -> (i)>

// Both wait for the first that reads one of them, and so does a reshape; a warp has a row: 2 x 100 + 2 x 7 rows are 27 blocks of 8.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[P:.*]] = drt.feed {name = "p"}
// CHECK: %[[Q:.*]] = drt.feed {name = "q"}
// CHECK-NOT: linalg.generic
// CHECK: %[[Y:.*]] = drt.copy
// CHECK-NOT: linalg.generic
// CHECK: %[[S:.*]]:4 = drt.launch @[[KERNEL:row_sums_joined_0]](%[[P]], %[[P]], %[[Q]], %[[Q]])
// CHECK-NEXT: %[[R:.*]] = tensor.expand_shape %[[S]]#0
// CHECK: drt.fetch %[[S]]#3
// CHECK: drt.fetch %[[R]]
drt.entry "step" {
  %p = drt.feed {name = "p"} : () -> tensor<100x40xf32>
  %q = drt.feed {name = "q"} : () -> tensor<7x256xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<100xf32>
  %f = tensor.empty() : tensor<7xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%e : tensor<100xf32>) -> tensor<100xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%f : tensor<7xf32>) -> tensor<7xf32>
  %s:2 = linalg.generic {indexing_maps = [#ij, #ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%p, %p : tensor<100x40xf32>, tensor<100x40xf32>) outs(%e0, %e0 : tensor<100xf32>, tensor<100xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %n: f32):
    %0 = arith.addf %o, %a : f32
    %1 = arith.addf %b, %n : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<100xf32>, tensor<100xf32>)
  %r = tensor.expand_shape %s#0 [[0, 1]] output_shape [10, 10] : tensor<100xf32> into tensor<10x10xf32>
  %y = drt.copy %q : (tensor<7x256xf32>) -> tensor<7x256xf32>
  %t:2 = linalg.generic {indexing_maps = [#ij, #ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%q, %q : tensor<7x256xf32>, tensor<7x256xf32>) outs(%f0, %f0 : tensor<7xf32>, tensor<7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %n: f32):
    %0 = arith.addf %o, %a : f32
    %1 = arith.addf %n, %b : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<7xf32>, tensor<7xf32>)
  drt.fetch %t#1 {name = "t", join = 1 : i32} : (tensor<7xf32>) -> ()
  drt.fetch %r {name = "r", join = 1 : i32} : (tensor<10x10xf32>) -> ()
}

// What is read before the next is made waits for none; neither squares, nor maxima, nor rows of more than 1,024 are taken, nor sums of a variable.
// CHECK-LABEL: drt.entry "apart"
// CHECK-NOT: drt.launch
drt.variable @v : tensor<7x256xf32> {checkpoint = "v"}
drt.entry "apart" {
  %p = drt.feed {name = "p"} : () -> tensor<7x256xf32>
  %wide = drt.feed {name = "wide"} : () -> tensor<7x1025xf32>
  %v = drt.read @v : tensor<7x256xf32>
  %zero = arith.constant 0.0 : f32
  %f = tensor.empty() : tensor<7xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%f : tensor<7xf32>) -> tensor<7xf32>
  %a:2 = linalg.generic {indexing_maps = [#ij, #ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%p, %p : tensor<7x256xf32>, tensor<7x256xf32>) outs(%f0, %f0 : tensor<7xf32>, tensor<7xf32>) {
  ^bb0(%in: f32, %other: f32, %o: f32, %n: f32):
    %0 = arith.addf %o, %in : f32
    %1 = arith.addf %n, %other : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<7xf32>, tensor<7xf32>)
  drt.fetch %a#0 {name = "a", join = 1 : i32} : (tensor<7xf32>) -> ()
  %b:2 = linalg.generic {indexing_maps = [#ij, #ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%p, %p : tensor<7x256xf32>, tensor<7x256xf32>) outs(%f0, %f0 : tensor<7xf32>, tensor<7xf32>) {
  ^bb0(%in: f32, %other: f32, %o: f32, %n: f32):
    %s = arith.mulf %in, %in : f32
    %0 = arith.addf %o, %s : f32
    %1 = arith.maximumf %n, %other : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<7xf32>, tensor<7xf32>)
  %c:2 = linalg.generic {indexing_maps = [#ij, #ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%wide, %wide : tensor<7x1025xf32>, tensor<7x1025xf32>) outs(%f0, %f0 : tensor<7xf32>, tensor<7xf32>) {
  ^bb0(%in: f32, %other: f32, %o: f32, %n: f32):
    %0 = arith.addf %o, %in : f32
    %1 = arith.addf %n, %other : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<7xf32>, tensor<7xf32>)
  %d:2 = linalg.generic {indexing_maps = [#ij, #ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%v, %v : tensor<7x256xf32>, tensor<7x256xf32>) outs(%f0, %f0 : tensor<7xf32>, tensor<7xf32>) {
  ^bb0(%in: f32, %other: f32, %o: f32, %n: f32):
    %0 = arith.addf %o, %in : f32
    %1 = arith.addf %n, %other : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<7xf32>, tensor<7xf32>)
  drt.fetch %a#1 {name = "a1", join = 1 : i32} : (tensor<7xf32>) -> ()
  drt.fetch %b#0 {name = "b", join = 1 : i32} : (tensor<7xf32>) -> ()
  drt.fetch %b#1 {name = "b1", join = 1 : i32} : (tensor<7xf32>) -> ()
  drt.fetch %c#0 {name = "c", join = 1 : i32} : (tensor<7xf32>) -> ()
  drt.fetch %c#1 {name = "c1", join = 1 : i32} : (tensor<7xf32>) -> ()
  drt.fetch %d#0 {name = "d", join = 1 : i32} : (tensor<7xf32>) -> ()
  drt.fetch %d#1 {name = "d1", join = 1 : i32} : (tensor<7xf32>) -> ()
}

// Behind the start of its exchange, what is summed is another gradient.
// CHECK-LABEL: drt.entry "exchanged"
// CHECK: drt.launch @row_sums_joined
// CHECK-NEXT: drt.all_reduce_start
drt.entry "exchanged" {
  %p = drt.feed {name = "p"} : () -> tensor<100x40xf32>
  %g = drt.copy %p : (tensor<100x40xf32>) -> tensor<100x40xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<100xf32>
  %e0 = linalg.fill ins(%zero : f32) outs(%e : tensor<100xf32>) -> tensor<100xf32>
  %s:2 = linalg.generic {indexing_maps = [#ij, #ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%g, %p : tensor<100x40xf32>, tensor<100x40xf32>) outs(%e0, %e0 : tensor<100xf32>, tensor<100xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %n: f32):
    %0 = arith.addf %o, %a : f32
    %1 = arith.addf %b, %n : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<100xf32>, tensor<100xf32>)
  %t:2 = linalg.generic {indexing_maps = [#ij, #ij, #i, #i], iterator_types = ["parallel", "reduction"]}
      ins(%p, %g : tensor<100x40xf32>, tensor<100x40xf32>) outs(%e0, %e0 : tensor<100xf32>, tensor<100xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %n: f32):
    %0 = arith.addf %o, %a : f32
    %1 = arith.addf %n, %b : f32
    linalg.yield %0, %1 : f32, f32
  } -> (tensor<100xf32>, tensor<100xf32>)
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<100x40xf32>) -> ()
  drt.all_reduce_wait 0
  drt.fetch %s#0 {name = "s0", join = 1 : i32} : (tensor<100xf32>) -> ()
  drt.fetch %s#1 {name = "s1", join = 1 : i32} : (tensor<100xf32>) -> ()
  drt.fetch %t#0 {name = "t0", join = 1 : i32} : (tensor<100xf32>) -> ()
  drt.fetch %t#1 {name = "t1", join = 1 : i32} : (tensor<100xf32>) -> ()
}

// CHECK: gpu.func @[[KERNEL]]{{.*}}drt.grid = array<i64: 27, 1, 1>
