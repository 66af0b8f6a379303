// RUN: distc-opt %s --pass-pipeline="builtin.module(drt.entry(drt-fuse-rows),drt-outline-kernels)" | FileCheck %s

#ij = affine_map<(i, j) -> (i, j)>
#i0 = affine_map<(i, j) -> (i, 0)>
#i = affine_map<(i, j) -> (i)>
#l = affine_map<(i) -> (i)>

// Sparse cross entropy: the row's maximum, shifted, the sum of exponentials, the loss by index. The labels come to the first operation;
// what is fetched is a result, the rest is the kernel's own.
// CHECK-LABEL: drt.entry "cross_entropy"
// CHECK: %[[X:.*]] = drt.feed {{.*}}"x"
// CHECK: %[[LABELS:.*]] = drt.feed {{.*}}"labels"
// CHECK: %[[MADE:.*]]:2 = drt.launch @[[KERNEL:.*]](%[[X]], %[[LABELS]])
// CHECK-NOT: drt.launch
// CHECK: drt.fetch %[[MADE]]#1
// CHECK: drt.fetch %[[MADE]]#0
drt.entry "cross_entropy" {
  %x = drt.feed {name = "x"} : () -> tensor<8x10xf32>
  %labels = drt.feed {name = "labels"} : () -> tensor<8xi32>
  %rows = tensor.empty() : tensor<8x10xf32>
  %row = tensor.empty() : tensor<8xf32>
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %lowest = linalg.fill ins(%low : f32) outs(%row : tensor<8xf32>) -> tensor<8xf32>
  %max = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x10xf32>) outs(%lowest : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %o, %a : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  %max1 = tensor.expand_shape %max [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  %shifted = linalg.generic {indexing_maps = [#ij, #i0, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max1 : tensor<8x10xf32>, tensor<8x1xf32>) outs(%rows : tensor<8x10xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x10xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%row : tensor<8xf32>) -> tensor<8xf32>
  %sum = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%shifted : tensor<8x10xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %e = math.exp %a : f32
    %s = arith.addf %o, %e : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %sum1 = tensor.expand_shape %sum [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
  %loss = linalg.generic {indexing_maps = [#l], iterator_types = ["parallel"]} outs(%row : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %c0 = arith.constant 0 : index
    %label = tensor.extract %labels[%i] : tensor<8xi32>
    %j = arith.index_cast %label : i32 to index
    %s = tensor.extract %sum1[%i, %c0] : tensor<8x1xf32>
    %log = math.log %s : f32
    %at = tensor.extract %shifted[%i, %j] : tensor<8x10xf32>
    %v = arith.subf %log, %at : f32
    linalg.yield %v : f32
  } -> tensor<8xf32>
  drt.fetch %loss {name = "loss", join = 0 : i32} : (tensor<8xf32>) -> ()
  drt.fetch %shifted {name = "shifted", join = 0 : i32} : (tensor<8x10xf32>) -> ()
}

// The sum over all rows is none of the rows, and a reduction alone is no group.
// CHECK-LABEL: drt.entry "separate"
// CHECK-COUNT-2: drt.launch
drt.entry "separate" {
  %x = drt.feed {name = "x"} : () -> tensor<8x10xf32>
  %row = tensor.empty() : tensor<8xf32>
  %one = tensor.empty() : tensor<f32>
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%row : tensor<8xf32>) -> tensor<8xf32>
  %sums = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x10xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %none = linalg.fill ins(%zero : f32) outs(%one : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#l, affine_map<(i) -> ()>], iterator_types = ["reduction"]}
      ins(%sums : tensor<8xf32>) outs(%none : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  drt.fetch %sum {name = "sum", join = 1 : i32} : (tensor<f32>) -> ()
}

// What is known only behind the first operation, here the other product, keeps an operation out.
// CHECK-LABEL: drt.entry "late"
// CHECK: drt.launch
// CHECK: drt.matmul
// CHECK: drt.launch
drt.entry "late" {
  %x = drt.feed {name = "x"} : () -> tensor<8x8xf32>
  %rows = tensor.empty() : tensor<8x8xf32>
  %row = tensor.empty() : tensor<8xf32>
  %zero = arith.constant 0.0 : f32
  %zeros = linalg.fill ins(%zero : f32) outs(%row : tensor<8xf32>) -> tensor<8xf32>
  %sums = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x8xf32>) outs(%zeros : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<8xf32>
  %product = drt.matmul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %scaled = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%product, %sums : tensor<8x8xf32>, tensor<8xf32>) outs(%rows : tensor<8x8xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %m = arith.mulf %a, %s : f32
    linalg.yield %m : f32
  } -> tensor<8x8xf32>
  drt.fetch %scaled {name = "y", join = 0 : i32} : (tensor<8x8xf32>) -> ()
}

// Layer normalization's gradient reads what the gradients of its scale are sums of, by columns: the parts of these are the kernel's blocks. Their sum, behind
// them, waits. What is read in two shapes is given once.
// CHECK-LABEL: drt.entry "columns"
// CHECK: %[[X:.*]] = drt.feed
// CHECK-NOT: linalg.generic
// CHECK: %[[MADE:.*]]:2 = drt.launch @[[BOTH:.*]](%[[X]])
// CHECK-NEXT: %[[SUM:.*]] = drt.launch @{{.*}}(%[[MADE]]#0)
// CHECK-NEXT: drt.fetch %[[SUM]]
// CHECK-NEXT: drt.fetch %[[MADE]]#1
drt.entry "columns" {
  %x = drt.feed {name = "x"} : () -> tensor<1024x128xf32>
  %zero = arith.constant 0.0 : f32
  %c = tensor.empty() : tensor<128x256xf32>
  %r = tensor.empty() : tensor<1024xf32>
  %e = tensor.empty() : tensor<1024x128xf32>
  %w = tensor.empty() : tensor<128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%c : tensor<128x256xf32>) -> tensor<128x256xf32>
  %x3 = tensor.expand_shape %x [[0, 1], [2]] output_shape [256, 4, 128] : tensor<1024x128xf32> into tensor<256x4x128xf32>
  %parts = linalg.generic {indexing_maps = [affine_map<(p, r, c) -> (p, r, c)>, affine_map<(p, r, c) -> (c, p)>],
      iterator_types = ["parallel", "reduction", "parallel"]} ins(%x3 : tensor<256x4x128xf32>) outs(%zeros : tensor<128x256xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<128x256xf32>
  %none = linalg.fill ins(%zero : f32) outs(%w : tensor<128xf32>) -> tensor<128xf32>
  %whole = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%parts : tensor<128x256xf32>) outs(%none : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  %nothing = linalg.fill ins(%zero : f32) outs(%r : tensor<1024xf32>) -> tensor<1024xf32>
  %sums = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<1024x128xf32>) outs(%nothing : tensor<1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<1024xf32>
  %y = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]} ins(%x, %sums : tensor<1024x128xf32>, tensor<1024xf32>) outs(%e : tensor<1024x128xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %v = arith.subf %a, %s : f32
    linalg.yield %v : f32
  } -> tensor<1024x128xf32>
  drt.fetch %whole {name = "whole", join = 1 : i32} : (tensor<128xf32>) -> ()
  drt.fetch %y {name = "y", join = 0 : i32} : (tensor<1024x128xf32>) -> ()
}

// What the rows need of the columns comes first: two kernels.
// CHECK-LABEL: drt.entry "columns_first"
// CHECK: drt.launch
// CHECK: drt.launch
// CHECK: drt.launch
drt.entry "columns_first" {
  %x = drt.feed {name = "x"} : () -> tensor<1024x128xf32>
  %zero = arith.constant 0.0 : f32
  %c = tensor.empty() : tensor<128x256xf32>
  %r = tensor.empty() : tensor<1024xf32>
  %e = tensor.empty() : tensor<1024x128xf32>
  %w = tensor.empty() : tensor<128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%c : tensor<128x256xf32>) -> tensor<128x256xf32>
  %x3 = tensor.expand_shape %x [[0, 1], [2]] output_shape [256, 4, 128] : tensor<1024x128xf32> into tensor<256x4x128xf32>
  %parts = linalg.generic {indexing_maps = [affine_map<(p, r, c) -> (p, r, c)>, affine_map<(p, r, c) -> (c, p)>],
      iterator_types = ["parallel", "reduction", "parallel"]} ins(%x3 : tensor<256x4x128xf32>) outs(%zeros : tensor<128x256xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<128x256xf32>
  %none = linalg.fill ins(%zero : f32) outs(%w : tensor<128xf32>) -> tensor<128xf32>
  %whole = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%parts : tensor<128x256xf32>) outs(%none : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  %nothing = linalg.fill ins(%zero : f32) outs(%r : tensor<1024xf32>) -> tensor<1024xf32>
  %sums = linalg.generic {indexing_maps = [#ij, affine_map<(i, j) -> (j)>, #i], iterator_types = ["parallel", "reduction"]} ins(%x, %whole : tensor<1024x128xf32>, tensor<128xf32>) outs(%nothing : tensor<1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1024xf32>
  drt.fetch %sums {name = "sums", join = 1 : i32} : (tensor<1024xf32>) -> ()
}

// What waits would take one operation of another group from the rest of it: no kernel reads what is made behind it.
// CHECK-LABEL: drt.entry "columns_of_a_group"
// CHECK: %[[PARTS:.*]] = drt.launch
// CHECK: %[[WHOLE:.*]] = drt.launch @{{.*}}(%[[PARTS]])
// CHECK: drt.launch @{{.*}}({{.*}}%[[WHOLE]]{{.*}})
// CHECK: drt.launch
// CHECK-NOT: drt.launch
drt.entry "columns_of_a_group" {
  %x = drt.feed {name = "x"} : () -> tensor<1024x128xf32>
  %z = drt.feed {name = "z"} : () -> tensor<128x256xf32>
  %zero = arith.constant 0.0 : f32
  %c = tensor.empty() : tensor<128x256xf32>
  %r = tensor.empty() : tensor<1024xf32>
  %e = tensor.empty() : tensor<1024x128xf32>
  %w = tensor.empty() : tensor<128xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%c : tensor<128x256xf32>) -> tensor<128x256xf32>
  %x3 = tensor.expand_shape %x [[0, 1], [2]] output_shape [256, 4, 128] : tensor<1024x128xf32> into tensor<256x4x128xf32>
  %parts = linalg.generic {indexing_maps = [affine_map<(p, r, c) -> (p, r, c)>, affine_map<(p, r, c) -> (c, p)>],
      iterator_types = ["parallel", "reduction", "parallel"]} ins(%x3 : tensor<256x4x128xf32>) outs(%zeros : tensor<128x256xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<128x256xf32>
  %none = linalg.fill ins(%zero : f32) outs(%w : tensor<128xf32>) -> tensor<128xf32>
  %whole = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%parts : tensor<128x256xf32>) outs(%none : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  %other = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%z : tensor<128x256xf32>) outs(%none : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  %both = linalg.generic {indexing_maps = [#l, #l, #l], iterator_types = ["parallel"]} ins(%whole, %other : tensor<128xf32>, tensor<128xf32>) outs(%w : tensor<128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.mulf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<128xf32>
  %nothing = linalg.fill ins(%zero : f32) outs(%r : tensor<1024xf32>) -> tensor<1024xf32>
  %sums = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<1024x128xf32>) outs(%nothing : tensor<1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  } -> tensor<1024xf32>
  %y = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]} ins(%x, %sums : tensor<1024x128xf32>, tensor<1024xf32>) outs(%e : tensor<1024x128xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %v = arith.subf %a, %s : f32
    linalg.yield %v : f32
  } -> tensor<1024x128xf32>
  drt.fetch %both {name = "both", join = 1 : i32} : (tensor<128xf32>) -> ()
  drt.fetch %y {name = "y", join = 0 : i32} : (tensor<1024x128xf32>) -> ()
}

// A row of a vocabulary's is more than a block's memory has, but what a kernel makes and does not read needs none: cross entropy's gradient is made where
// its loss is, and logits are read once. What is read by index has to lie there, and is a kernel of its own.
// CHECK-LABEL: drt.entry "wide"
// CHECK: %[[MADE:.*]]:2 = drt.launch
// CHECK-NEXT: drt.launch @{{.*}}, %[[MADE]]#1)
// CHECK-NOT: drt.launch
drt.entry "wide" {
  %x = drt.feed {name = "x"} : () -> tensor<8x30000xf32>
  %labels = drt.feed {name = "labels"} : () -> tensor<8xi32>
  %rows = tensor.empty() : tensor<8x30000xf32>
  %row = tensor.empty() : tensor<8xf32>
  %low = arith.constant 0xFF800000 : f32
  %lowest = linalg.fill ins(%low : f32) outs(%row : tensor<8xf32>) -> tensor<8xf32>
  %max = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<8x30000xf32>) outs(%lowest : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %o, %a : f32
    linalg.yield %m : f32
  } -> tensor<8xf32>
  %shifted = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max : tensor<8x30000xf32>, tensor<8xf32>) outs(%rows : tensor<8x30000xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x30000xf32>
  %at = linalg.generic {indexing_maps = [#l], iterator_types = ["parallel"]} outs(%row : tensor<8xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %label = tensor.extract %labels[%i] : tensor<8xi32>
    %j = arith.index_cast %label : i32 to index
    %v = tensor.extract %shifted[%i, %j] : tensor<8x30000xf32>
    linalg.yield %v : f32
  } -> tensor<8xf32>
  drt.fetch %max {name = "max", join = 0 : i32} : (tensor<8xf32>) -> ()
  drt.fetch %shifted {name = "shifted", join = 0 : i32} : (tensor<8x30000xf32>) -> ()
  drt.fetch %at {name = "at", join = 0 : i32} : (tensor<8xf32>) -> ()
}

// CHECK: drt.kernel @[[KERNEL]](%[[IN:.*]]: memref<8x10xf32>{{.*}}, %{{.*}}: memref<8xi32>{{.*}}, %[[SHIFTED:.*]]: memref<8x10xf32>{{.*}}, %[[LOSS:.*]]: memref<8xf32>{{.*}})
// CHECK: %[[MAX:.*]] = memref.alloc() : memref<8xf32>
// CHECK: %[[SUM:.*]] = memref.alloc() : memref<8xf32>
// CHECK: linalg.generic {{.*}} outs(%[[MAX]] : memref<8xf32>)
// CHECK: %[[COLUMN:.*]] = memref.expand_shape %[[MAX]]
// CHECK: linalg.generic {{.*}} ins(%[[IN]], %[[COLUMN]] : {{.*}}) outs(%[[SHIFTED]] : memref<8x10xf32>)
// CHECK: linalg.generic {{.*}} outs(%[[SUM]] : memref<8xf32>)
// CHECK: linalg.generic {{.*}} outs(%[[LOSS]] : memref<8xf32>)
// CHECK: memref.load %[[SHIFTED]]
