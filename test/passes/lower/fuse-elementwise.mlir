// RUN: distc-opt %s --drt-fuse-elementwise | FileCheck %s

#map = affine_map<(i) -> (i)>

// A chain is one operation; work that two need is done once.
// CHECK-LABEL: drt.entry "chain"
drt.entry "chain" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  // CHECK: %[[EXP:.*]] = linalg.generic
  // CHECK: math.exp
  // CHECK-NOT: arith
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  // CHECK: %[[SQUARE:.*]] = linalg.generic {{.*}} ins(%[[EXP]] :
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: arith.negf
  // CHECK-NEXT: arith.mulf
  // CHECK-NEXT: linalg.yield
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%0 : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.negf %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%1 : tensor<4xf32>) outs(%empty : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.mulf %a, %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  // CHECK-NOT: linalg.generic
  drt.fetch %0 {name = "e", join = 0 : i32} : (tensor<4xf32>) -> ()
  drt.fetch %2 {name = "s", join = 0 : i32} : (tensor<4xf32>) -> ()
}

#reduced = affine_map<(i) -> ()>

// What starts from its filled result is not fused: the result would become one of the sum's operation, read and written
// at each of its iterations.
// CHECK-LABEL: drt.entry "starts_from_result"
drt.entry "starts_from_result" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4xf32>
  %scalar = tensor.empty() : tensor<f32>
  %zero = arith.constant 0.0 : f32
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
  // CHECK: %[[COPY:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%filled : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  // CHECK: %{{.*}} = linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[COPY]] : tensor<4xf32>) outs(%{{.*}} : tensor<f32>)
  %1 = linalg.generic {indexing_maps = [#map, #reduced], iterator_types = ["reduction"]} ins(%0 : tensor<4xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  drt.fetch %1 {name = "s", join = 1 : i32} : (tensor<f32>) -> ()
}

// Nor is the only operand that says how far the loops go.
// CHECK-LABEL: drt.entry "only_extent"
drt.entry "only_extent" {
  %empty = tensor.empty() : tensor<4xf32>
  %scalar = tensor.empty() : tensor<f32>
  %zero = arith.constant 0.0 : f32
  %init = linalg.fill ins(%zero : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
  // CHECK: %[[POSITIONS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]
  %0 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%empty : tensor<4xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %v = arith.sitofp %n : i32 to f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  // CHECK: %{{.*}} = linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[POSITIONS]] : tensor<4xf32>) outs(%{{.*}} : tensor<f32>)
  %1 = linalg.generic {indexing_maps = [#map, #reduced], iterator_types = ["reduction"]} ins(%0 : tensor<4xf32>) outs(%init : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  } -> tensor<f32>
  drt.fetch %1 {name = "s", join = 1 : i32} : (tensor<f32>) -> ()
}

#row = affine_map<(i, j) -> (i, j)>
#swapped = affine_map<(i, j) -> (j, i)>

// What is read twice, by operations that become one, has one user; an index is that of the loop it becomes.
// CHECK-LABEL: drt.entry "diamond"
drt.entry "diamond" {
  %x = drt.feed {name = "x"} : () -> tensor<4x5xf32>
  %empty = tensor.empty() : tensor<4x5xf32>
  %other = tensor.empty() : tensor<5x4xf32>
  // CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4x5xf32>) outs(%{{.*}} : tensor<5x4xf32>)
  // CHECK: linalg.index 1
  // CHECK: arith.addf
  // CHECK: arith.negf
  // CHECK: arith.mulf
  // CHECK: linalg.yield
  %0 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x5xf32>) outs(%empty : tensor<4x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %v = arith.addf %a, %f : f32
    linalg.yield %v : f32
  } -> tensor<4x5xf32>
  %1 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%0 : tensor<4x5xf32>) outs(%empty : tensor<4x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.negf %a : f32
    linalg.yield %v : f32
  } -> tensor<4x5xf32>
  %2 = linalg.generic {indexing_maps = [#swapped, #swapped, #row], iterator_types = ["parallel", "parallel"]} ins(%0, %1 : tensor<4x5xf32>, tensor<4x5xf32>) outs(%other : tensor<5x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<5x4xf32>
  // CHECK-NOT: linalg.generic
  drt.fetch %2 {name = "p", join = 0 : i32} : (tensor<5x4xf32>) -> ()
}

// What reads a variable's memory stays before its update, what reads a gradient before its reduction in place.
drt.variable @w : tensor<32xf32>
drt.kernel range @rule(i64, i64, memref<32xf32>)
// CHECK-LABEL: drt.entry "memory"
drt.entry "memory" {
  %empty = tensor.empty() : tensor<32xf32>
  %g = drt.copy %empty : (tensor<32xf32>) -> tensor<32xf32>
  %w = drt.read @w : tensor<32xf32>
  // CHECK: math.exp
  // CHECK: math.sqrt
  // CHECK: drt.update
  // CHECK: drt.all_reduce_start
  // CHECK: arith.subf
  %0 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%w : tensor<32xf32>) outs(%empty : tensor<32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%g : tensor<32xf32>) outs(%empty : tensor<32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.sqrt %a : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  drt.update {kernel = @rule, variables = [@w], count = 32 : i64} : () -> ()
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<32xf32>) -> ()
  %2 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel"]} ins(%0, %1 : tensor<32xf32>, tensor<32xf32>) outs(%empty : tensor<32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<32xf32>
  drt.fetch %2 {name = "d", join = 0 : i32} : (tensor<32xf32>) -> ()
}

#rows = affine_map<(i, j) -> (i, j)>
#mean = affine_map<(i, j) -> (i)>

// A mean that is subtracted from rows costs no more than reading the difference, for each of two readers. What is made of two
// large tensors is written once, and so is what is written anyway.
// CHECK-LABEL: drt.entry "difference"
drt.entry "difference" {
  %x = drt.feed {name = "x"} : () -> tensor<4x32xf32>
  %y = drt.feed {name = "y"} : () -> tensor<4x32xf32>
  %m = drt.feed {name = "m"} : () -> tensor<4xf32>
  %empty = tensor.empty() : tensor<4x32xf32>
  // CHECK: %[[PRODUCT:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<4x32xf32>, tensor<4x32xf32>)
  // CHECK-NOT: subf
  // CHECK: %[[EXP:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[PRODUCT]] : tensor<4x32xf32>, tensor<4xf32>, tensor<4x32xf32>)
  // CHECK: arith.subf
  // CHECK: math.exp
  // CHECK: %[[TANH:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[PRODUCT]] : tensor<4x32xf32>, tensor<4xf32>, tensor<4x32xf32>)
  // CHECK: arith.subf
  // CHECK: math.tanh
  // CHECK: %[[KEPT:.*]] = linalg.generic
  // CHECK: arith.addf
  // CHECK: linalg.generic {{.*}} ins(%[[KEPT]] :
  // CHECK: drt.fetch %[[KEPT]]
  %0 = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%x, %y : tensor<4x32xf32>, tensor<4x32xf32>) outs(%empty : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x32xf32>
  %1 = linalg.generic {indexing_maps = [#rows, #mean, #rows], iterator_types = ["parallel", "parallel"]} ins(%x, %m : tensor<4x32xf32>, tensor<4xf32>) outs(%empty : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.subf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x32xf32>
  %2 = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%1, %0 : tensor<4x32xf32>, tensor<4x32xf32>) outs(%empty : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = math.exp %a : f32
    %w = arith.addf %v, %b : f32
    linalg.yield %w : f32
  } -> tensor<4x32xf32>
  %3 = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%1, %0 : tensor<4x32xf32>, tensor<4x32xf32>) outs(%empty : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = math.tanh %a : f32
    %w = arith.mulf %v, %b : f32
    linalg.yield %w : f32
  } -> tensor<4x32xf32>
  %4 = linalg.generic {indexing_maps = [#rows, #mean, #rows], iterator_types = ["parallel", "parallel"]} ins(%y, %m : tensor<4x32xf32>, tensor<4xf32>) outs(%empty : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x32xf32>
  %5 = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%4 : tensor<4x32xf32>) outs(%empty : tensor<4x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = math.exp %a : f32
    linalg.yield %v : f32
  } -> tensor<4x32xf32>
  drt.fetch %2 {name = "exp", join = 0 : i32} : (tensor<4x32xf32>) -> ()
  drt.fetch %3 {name = "tanh", join = 0 : i32} : (tensor<4x32xf32>) -> ()
  drt.fetch %4 {name = "kept", join = 0 : i32} : (tensor<4x32xf32>) -> ()
  drt.fetch %5 {name = "read", join = 0 : i32} : (tensor<4x32xf32>) -> ()
}

// Two tensors of half as wide elements are read as fast as what is made of them: a gradient behind ReLU, for each of its readers.
// CHECK-LABEL: drt.entry "halves"
drt.entry "halves" {
  %dy = drt.feed {name = "dy"} : () -> tensor<4x32xbf16>
  %y = drt.feed {name = "y"} : () -> tensor<4x32xbf16>
  %w = drt.feed {name = "w"} : () -> tensor<4x32xf32>
  %empty = tensor.empty() : tensor<4x32xf32>
  // CHECK-NOT: tensor<4x32xf32>, tensor<4x32xbf16>
  // CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xf32>)
  // CHECK: arith.select
  // CHECK: math.exp
  // CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<4x32xbf16>, tensor<4x32xbf16>, tensor<4x32xf32>)
  // CHECK: arith.select
  // CHECK: math.tanh
  // CHECK: drt.fetch
  %0 = linalg.generic {indexing_maps = [#rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%dy : tensor<4x32xbf16>) outs(%empty : tensor<4x32xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %v = arith.extf %a : bf16 to f32
    linalg.yield %v : f32
  } -> tensor<4x32xf32>
  %1 = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%0, %y : tensor<4x32xf32>, tensor<4x32xbf16>) outs(%empty : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: bf16, %o: f32):
    %zero = arith.constant 0.0 : f32
    %wide = arith.extf %b : bf16 to f32
    %c = arith.cmpf ogt, %wide, %zero : f32
    %v = arith.select %c, %a, %zero : f32
    linalg.yield %v : f32
  } -> tensor<4x32xf32>
  %2 = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%1, %w : tensor<4x32xf32>, tensor<4x32xf32>) outs(%empty : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = math.exp %a : f32
    %x = arith.addf %v, %b : f32
    linalg.yield %x : f32
  } -> tensor<4x32xf32>
  %3 = linalg.generic {indexing_maps = [#rows, #rows, #rows], iterator_types = ["parallel", "parallel"]} ins(%1, %w : tensor<4x32xf32>, tensor<4x32xf32>) outs(%empty : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = math.tanh %a : f32
    %x = arith.addf %v, %b : f32
    linalg.yield %x : f32
  } -> tensor<4x32xf32>
  drt.fetch %2 {name = "exp", join = 0 : i32} : (tensor<4x32xf32>) -> ()
  drt.fetch %3 {name = "tanh", join = 0 : i32} : (tensor<4x32xf32>) -> ()
}

// Elements that are all one constant are that constant in what reads them, in another shape too: a mean's gradient, of each row.
// CHECK-LABEL: drt.entry "constant"
drt.entry "constant" {
  %x = drt.feed {name = "x"} : () -> tensor<4x32xf32>
  %row = tensor.empty() : tensor<4xf32>
  %empty = tensor.empty() : tensor<4x32xf32>
  %four = arith.constant 4.0 : f32
  %one = arith.constant 1.0 : f32
  // CHECK: %[[QUARTER:.*]] = arith.constant 2.500000e-01 : f32
  // CHECK: linalg.generic {{.*}} ins(%{{[^,]*}} : tensor<4x32xf32>) outs
  // CHECK: arith.mulf %{{.*}}, %[[QUARTER]]
  // CHECK-NOT: linalg.generic
  %count = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%row : tensor<4xf32>) {
  ^bb0(%o: f32):
    linalg.yield %four : f32
  } -> tensor<4xf32>
  %share = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%count : tensor<4xf32>) outs(%row : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.divf %one, %a : f32
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %column = tensor.expand_shape %share [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
  %0 = linalg.generic {indexing_maps = [#rows, affine_map<(i, j) -> (i, 0)>, #rows], iterator_types = ["parallel", "parallel"]} ins(%x, %column : tensor<4x32xf32>, tensor<4x1xf32>) outs(%empty : tensor<4x32xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.mulf %a, %b : f32
    linalg.yield %v : f32
  } -> tensor<4x32xf32>
  drt.fetch %0 {name = "y", join = 0 : i32} : (tensor<4x32xf32>) -> ()
}
