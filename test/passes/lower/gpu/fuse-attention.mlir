// RUN: distc-opt %s --drt-fuse-attention --split-input-file | FileCheck %s

#id = affine_map<(b, h, t, s) -> (b, h, t, s)>
#heads = affine_map<(b, h, t, s) -> (b, t, h, s)>
#row = affine_map<(b, h, t, s) -> (b, h, t)>
#row1 = affine_map<(b, h, t, s) -> (b, h, t, 0)>
#keys = affine_map<(b, h, t, s) -> (b, s)>

// CHECK-LABEL: drt.entry "eval"
// CHECK-NOT: drt.matmul
// CHECK: %[[Q:.*]] = drt.feed {name = "q"}
// CHECK: %[[K:.*]] = drt.feed {name = "k"}
// CHECK: %[[V:.*]] = drt.feed {name = "v"}
// CHECK-NOT: linalg.generic
// CHECK: %[[O:.*]], %{{.*}} = drt.attention %[[Q]], %[[K]], %[[V]] {scale = 2.500000e-01 : f32} : (tensor<1x4x2x16xbf16>, tensor<1x4x2x16xbf16>, tensor<1x4x2x16xbf16>) -> (tensor<1x4x2x16xbf16>, tensor<2x1x2x4xf32>)
// CHECK-NEXT: drt.fetch %[[O]]
drt.entry "eval" {
    %q0 = drt.feed {name = "q"} : () -> tensor<1x4x2x16xbf16>
    %k0 = drt.feed {name = "k"} : () -> tensor<1x4x2x16xbf16>
    %v0 = drt.feed {name = "v"} : () -> tensor<1x4x2x16xbf16>
    %s_ = tensor.empty() : tensor<1x2x4x4xf32>
    %sb_ = tensor.empty() : tensor<1x2x4x4xbf16>
    %q_ = tensor.empty() : tensor<1x2x4x16xbf16>
    %qf_ = tensor.empty() : tensor<1x2x4x16xf32>
    %t_ = tensor.empty() : tensor<1x4x2x16xbf16>
    %tf_ = tensor.empty() : tensor<1x4x2x16xf32>
    %r_ = tensor.empty() : tensor<1x2x4xf32>
    %zero = arith.constant 0.000000e+00 : f32
    %none = arith.constant 0xFF800000 : f32
    %scale = arith.constant 2.500000e-01 : f32
    %one = arith.constant 1.000000e+00 : f32
    %qw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %qm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %kw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %km = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %k = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%km : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %vw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %vm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %s = drt.matmul %q, %k {transpose_b} : (tensor<1x2x4x16xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x4xbf16>
    %sw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %x0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sw : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %scale : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fmost = linalg.fill ins(%none : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %mostr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x0 : tensor<1x2x4x4xf32>) outs(%fmost : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.maximumf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %most = tensor.expand_shape %mostr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %shifted = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %most : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.subf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %power = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%shifted : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = math.exp %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fsum = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %sumr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%power : tensor<1x2x4x4xf32>) outs(%fsum : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %sum = tensor.expand_shape %sumr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %pw = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%power, %sum : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.divf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%pw : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %o = drt.matmul %p, %v : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %ow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%o : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %om = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ow : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %result = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%om : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %result {axis = 0 : i32, join = 0 : i32, name = "output"} : (tensor<1x4x2x16xbf16>) -> ()
}

// -----

// What is added to scores, of the sizes that it has.
#id = affine_map<(b, h, t, s) -> (b, h, t, s)>
#heads = affine_map<(b, h, t, s) -> (b, t, h, s)>
#row = affine_map<(b, h, t, s) -> (b, h, t)>
#row1 = affine_map<(b, h, t, s) -> (b, h, t, 0)>
#keys = affine_map<(b, h, t, s) -> (b, s)>

// CHECK-LABEL: drt.entry "eval"
// CHECK: %[[MASK:.*]] = drt.feed {name = "mask"}
// CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[MASK]] {{\[}}[0, 1]] : tensor<1x4xf32> into tensor<4xf32>
// CHECK: %[[BIAS:.*]] = tensor.expand_shape %[[FLAT]] {{\[}}[0, 1, 2, 3]] output_shape [1, 1, 1, 4]
// CHECK: drt.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[BIAS]]
drt.entry "eval" {
    %q0 = drt.feed {name = "q"} : () -> tensor<1x4x2x16xbf16>
    %k0 = drt.feed {name = "k"} : () -> tensor<1x4x2x16xbf16>
    %v0 = drt.feed {name = "v"} : () -> tensor<1x4x2x16xbf16>
    %mask = drt.feed {name = "mask"} : () -> tensor<1x4xf32>
    %s_ = tensor.empty() : tensor<1x2x4x4xf32>
    %sb_ = tensor.empty() : tensor<1x2x4x4xbf16>
    %q_ = tensor.empty() : tensor<1x2x4x16xbf16>
    %qf_ = tensor.empty() : tensor<1x2x4x16xf32>
    %t_ = tensor.empty() : tensor<1x4x2x16xbf16>
    %tf_ = tensor.empty() : tensor<1x4x2x16xf32>
    %r_ = tensor.empty() : tensor<1x2x4xf32>
    %zero = arith.constant 0.000000e+00 : f32
    %none = arith.constant 0xFF800000 : f32
    %scale = arith.constant 2.500000e-01 : f32
    %one = arith.constant 1.000000e+00 : f32
    %qw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %qm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %kw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %km = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %k = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%km : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %vw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %vm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %s = drt.matmul %q, %k {transpose_b} : (tensor<1x2x4x16xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x4xbf16>
    %sw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %x0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sw : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %scale : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %x1 = linalg.generic {indexing_maps = [#id, #keys, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %mask : tensor<1x2x4x4xf32>, tensor<1x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.addf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fmost = linalg.fill ins(%none : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %mostr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x1 : tensor<1x2x4x4xf32>) outs(%fmost : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.maximumf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %most = tensor.expand_shape %mostr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %shifted = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x1, %most : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.subf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %power = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%shifted : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = math.exp %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fsum = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %sumr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%power : tensor<1x2x4x4xf32>) outs(%fsum : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %sum = tensor.expand_shape %sumr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %pw = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%power, %sum : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.divf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%pw : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %o = drt.matmul %p, %v : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %ow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%o : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %om = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ow : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %result = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%om : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %result {axis = 0 : i32, join = 0 : i32, name = "output"} : (tensor<1x4x2x16xbf16>) -> ()
}

// -----

#id = affine_map<(b, h, t, s) -> (b, h, t, s)>
#heads = affine_map<(b, h, t, s) -> (b, t, h, s)>
#row = affine_map<(b, h, t, s) -> (b, h, t)>
#row1 = affine_map<(b, h, t, s) -> (b, h, t, 0)>
#keys = affine_map<(b, h, t, s) -> (b, s)>

// CHECK-LABEL: drt.entry "step"
// CHECK: %[[G:.*]] = drt.feed {name = "g"}
// CHECK-NOT: linalg.generic
// CHECK-NOT: drt.matmul
// CHECK: %[[O:.*]], %[[SUMS:.*]] = drt.attention %[[Q:.*]], %[[K:.*]], %[[V:.*]] {scale
// CHECK: %[[QG:.*]], %[[DOTS:.*]] = drt.attention_query_gradient %[[Q]], %[[K]], %[[V]], %[[SUMS]], %[[G]], %[[O]] {scale = 2.500000e-01 : f32}
// CHECK-NEXT: %[[KG:.*]], %[[VG:.*]] = drt.attention_key_value_gradient %[[Q]], %[[K]], %[[V]], %[[SUMS]], %[[G]], %[[DOTS]] {scale = 2.500000e-01 : f32}
// CHECK-NEXT: drt.fetch %[[QG]]
// CHECK-NEXT: drt.fetch %[[KG]]
// CHECK-NEXT: drt.fetch %[[VG]]
drt.entry "step" {
    %q0 = drt.feed {name = "q"} : () -> tensor<1x4x2x16xbf16>
    %k0 = drt.feed {name = "k"} : () -> tensor<1x4x2x16xbf16>
    %v0 = drt.feed {name = "v"} : () -> tensor<1x4x2x16xbf16>
    %g0 = drt.feed {name = "g"} : () -> tensor<1x4x2x16xbf16>
    %s_ = tensor.empty() : tensor<1x2x4x4xf32>
    %sb_ = tensor.empty() : tensor<1x2x4x4xbf16>
    %q_ = tensor.empty() : tensor<1x2x4x16xbf16>
    %qf_ = tensor.empty() : tensor<1x2x4x16xf32>
    %t_ = tensor.empty() : tensor<1x4x2x16xbf16>
    %tf_ = tensor.empty() : tensor<1x4x2x16xf32>
    %r_ = tensor.empty() : tensor<1x2x4xf32>
    %zero = arith.constant 0.000000e+00 : f32
    %none = arith.constant 0xFF800000 : f32
    %scale = arith.constant 2.500000e-01 : f32
    %one = arith.constant 1.000000e+00 : f32
    %qw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %qm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %kw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %km = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %k = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%km : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %vw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %vm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %s = drt.matmul %q, %k {transpose_b} : (tensor<1x2x4x16xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x4xbf16>
    %sw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %x0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sw : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %scale : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fmost = linalg.fill ins(%none : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %mostr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x0 : tensor<1x2x4x4xf32>) outs(%fmost : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.maximumf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %most = tensor.expand_shape %mostr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %shifted = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %most : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.subf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %power = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%shifted : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = math.exp %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fsum = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %sumr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%power : tensor<1x2x4x4xf32>) outs(%fsum : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %sum = tensor.expand_shape %sumr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %pw = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%power, %sum : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.divf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%pw : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %o = drt.matmul %p, %v : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %ow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%o : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %om = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ow : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %result = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%om : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %result {axis = 0 : i32, join = 0 : i32, name = "output"} : (tensor<1x4x2x16xbf16>) -> ()
    %g = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%g0 : tensor<1x4x2x16xbf16>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: bf16, %out: bf16): linalg.yield %in : bf16 } -> tensor<1x2x4x16xbf16>
    %d = drt.matmul %g, %v {transpose_b} : (tensor<1x2x4x16xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x4xbf16>
    %dw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%d : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %pww = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %vg = drt.matmul %p, %g {transpose_a} : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %pd = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%dw, %pww : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.mulf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fdot = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %dotr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%pd : tensor<1x2x4x4xf32>) outs(%fdot : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %dot = tensor.expand_shape %dotr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %less = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%dw, %dot : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.subf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %ds0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%less, %pww : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.mulf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %ds1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ds0 : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %scale : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %ds = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ds1 : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %qg = drt.matmul %ds, %k : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %kg = drt.matmul %ds, %q {transpose_a} : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %qgw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qg : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %qgm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qgw : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %qgt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qgm : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %qgt {axis = 0 : i32, join = 0 : i32, name = "qg"} : (tensor<1x4x2x16xbf16>) -> ()
    %kgw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kg : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %kgm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kgw : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %kgt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kgm : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %kgt {axis = 0 : i32, join = 0 : i32, name = "kg"} : (tensor<1x4x2x16xbf16>) -> ()
    %vgw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vg : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %vgm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vgw : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %vgt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vgm : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %vgt {axis = 0 : i32, join = 0 : i32, name = "vg"} : (tensor<1x4x2x16xbf16>) -> ()
}

// -----

// The same gradient, multiplied out.
#id = affine_map<(b, h, t, s) -> (b, h, t, s)>
#heads = affine_map<(b, h, t, s) -> (b, t, h, s)>
#row = affine_map<(b, h, t, s) -> (b, h, t)>
#row1 = affine_map<(b, h, t, s) -> (b, h, t, 0)>
#keys = affine_map<(b, h, t, s) -> (b, s)>

// CHECK-LABEL: drt.entry "step"
// CHECK-NOT: drt.matmul
// CHECK: drt.attention_query_gradient
// CHECK: drt.attention_key_value_gradient
// CHECK-NOT: drt.matmul
drt.entry "step" {
    %q0 = drt.feed {name = "q"} : () -> tensor<1x4x2x16xbf16>
    %k0 = drt.feed {name = "k"} : () -> tensor<1x4x2x16xbf16>
    %v0 = drt.feed {name = "v"} : () -> tensor<1x4x2x16xbf16>
    %g0 = drt.feed {name = "g"} : () -> tensor<1x4x2x16xbf16>
    %s_ = tensor.empty() : tensor<1x2x4x4xf32>
    %sb_ = tensor.empty() : tensor<1x2x4x4xbf16>
    %q_ = tensor.empty() : tensor<1x2x4x16xbf16>
    %qf_ = tensor.empty() : tensor<1x2x4x16xf32>
    %t_ = tensor.empty() : tensor<1x4x2x16xbf16>
    %tf_ = tensor.empty() : tensor<1x4x2x16xf32>
    %r_ = tensor.empty() : tensor<1x2x4xf32>
    %zero = arith.constant 0.000000e+00 : f32
    %none = arith.constant 0xFF800000 : f32
    %scale = arith.constant 2.500000e-01 : f32
    %one = arith.constant 1.000000e+00 : f32
    %qw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %qm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %kw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %km = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %k = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%km : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %vw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %vm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %s = drt.matmul %q, %k {transpose_b} : (tensor<1x2x4x16xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x4xbf16>
    %sw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %x0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sw : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %scale : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fmost = linalg.fill ins(%none : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %mostr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x0 : tensor<1x2x4x4xf32>) outs(%fmost : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.maximumf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %most = tensor.expand_shape %mostr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %shifted = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %most : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.subf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %power = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%shifted : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = math.exp %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fsum = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %sumr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%power : tensor<1x2x4x4xf32>) outs(%fsum : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %sum = tensor.expand_shape %sumr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %pw = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%power, %sum : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.divf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%pw : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %o = drt.matmul %p, %v : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %ow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%o : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %om = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ow : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %result = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%om : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %result {axis = 0 : i32, join = 0 : i32, name = "output"} : (tensor<1x4x2x16xbf16>) -> ()
    %g = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%g0 : tensor<1x4x2x16xbf16>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: bf16, %out: bf16): linalg.yield %in : bf16 } -> tensor<1x2x4x16xbf16>
    %d = drt.matmul %g, %v {transpose_b} : (tensor<1x2x4x16xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x4xbf16>
    %dw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%d : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %pww = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %vg = drt.matmul %p, %g {transpose_a} : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %pd = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%dw, %pww : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.mulf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fdot = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %dotr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%pd : tensor<1x2x4x4xf32>) outs(%fdot : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %dot = tensor.expand_shape %dotr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %pr = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%pww, %dot : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.mulf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %ds0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%pd, %pr : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.subf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %ds1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ds0 : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %scale : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %ds = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ds1 : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %qg = drt.matmul %ds, %k : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %kg = drt.matmul %ds, %q {transpose_a} : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %qgw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qg : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %qgm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qgw : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %qgt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qgm : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %qgt {axis = 0 : i32, join = 0 : i32, name = "qg"} : (tensor<1x4x2x16xbf16>) -> ()
    %kgw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kg : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %kgm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kgw : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %kgt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kgm : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %kgt {axis = 0 : i32, join = 0 : i32, name = "kg"} : (tensor<1x4x2x16xbf16>) -> ()
    %vgw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vg : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %vgm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vgw : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %vgt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vgm : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %vgt {axis = 0 : i32, join = 0 : i32, name = "vg"} : (tensor<1x4x2x16xbf16>) -> ()
}

// -----

// As JAX has it: exponentials over their sum, and the gradients of both.
#id = affine_map<(b, h, t, s) -> (b, h, t, s)>
#heads = affine_map<(b, h, t, s) -> (b, t, h, s)>
#row = affine_map<(b, h, t, s) -> (b, h, t)>
#row1 = affine_map<(b, h, t, s) -> (b, h, t, 0)>
#keys = affine_map<(b, h, t, s) -> (b, s)>

// CHECK-LABEL: drt.entry "step"
// CHECK-NOT: drt.matmul
// CHECK: drt.attention_query_gradient
// CHECK: drt.attention_key_value_gradient
// CHECK-NOT: drt.matmul
drt.entry "step" {
    %q0 = drt.feed {name = "q"} : () -> tensor<1x4x2x16xbf16>
    %k0 = drt.feed {name = "k"} : () -> tensor<1x4x2x16xbf16>
    %v0 = drt.feed {name = "v"} : () -> tensor<1x4x2x16xbf16>
    %g0 = drt.feed {name = "g"} : () -> tensor<1x4x2x16xbf16>
    %s_ = tensor.empty() : tensor<1x2x4x4xf32>
    %sb_ = tensor.empty() : tensor<1x2x4x4xbf16>
    %q_ = tensor.empty() : tensor<1x2x4x16xbf16>
    %qf_ = tensor.empty() : tensor<1x2x4x16xf32>
    %t_ = tensor.empty() : tensor<1x4x2x16xbf16>
    %tf_ = tensor.empty() : tensor<1x4x2x16xf32>
    %r_ = tensor.empty() : tensor<1x2x4xf32>
    %zero = arith.constant 0.000000e+00 : f32
    %none = arith.constant 0xFF800000 : f32
    %scale = arith.constant 2.500000e-01 : f32
    %one = arith.constant 1.000000e+00 : f32
    %qw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %qm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %kw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %km = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %k = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%km : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %vw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %vm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %s = drt.matmul %q, %k {transpose_b} : (tensor<1x2x4x16xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x4xbf16>
    %sw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %x0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sw : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %scale : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fmost = linalg.fill ins(%none : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %mostr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x0 : tensor<1x2x4x4xf32>) outs(%fmost : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.maximumf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %most = tensor.expand_shape %mostr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %shifted = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %most : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.subf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %power = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%shifted : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = math.exp %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fsum = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %sumr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%power : tensor<1x2x4x4xf32>) outs(%fsum : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %sum = tensor.expand_shape %sumr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %pw = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%power, %sum : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.divf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%pw : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %o = drt.matmul %p, %v : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %ow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%o : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %om = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ow : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %result = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%om : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %result {axis = 0 : i32, join = 0 : i32, name = "output"} : (tensor<1x4x2x16xbf16>) -> ()
    %g = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%g0 : tensor<1x4x2x16xbf16>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: bf16, %out: bf16): linalg.yield %in : bf16 } -> tensor<1x2x4x16xbf16>
    %d = drt.matmul %g, %v {transpose_b} : (tensor<1x2x4x16xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x4xbf16>
    %dw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%d : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %pww = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %vg = drt.matmul %p, %g {transpose_a} : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %r1_ = tensor.empty() : tensor<1x2x4x1xf32>
    %square = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sum, %sum : tensor<1x2x4x1xf32>, tensor<1x2x4x1xf32>) outs(%r1_ : tensor<1x2x4x1xf32>) { ^bb0(%in0: f32, %in1: f32, %out: f32): %r = arith.mulf %in0, %in1 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x1xf32>
    %inverse = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%square : tensor<1x2x4x1xf32>) outs(%r1_ : tensor<1x2x4x1xf32>) { ^bb0(%in0: f32, %out: f32): %r = arith.divf %one, %in0 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x1xf32>
    %pd0 = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%dw, %inverse : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.mulf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %pd = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%pd0, %power : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.mulf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fdot = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %dotr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%pd : tensor<1x2x4x4xf32>) outs(%fdot : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %dot = tensor.expand_shape %dotr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %negative = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%dot : tensor<1x2x4x1xf32>) outs(%r1_ : tensor<1x2x4x1xf32>) { ^bb0(%in0: f32, %out: f32): %r = arith.negf %in0 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x1xf32>
    %ratio = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%dw, %sum : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.divf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %less = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ratio, %negative : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.addf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %ds0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%less, %power : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.mulf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %ds1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ds0 : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %scale : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %ds = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ds1 : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %qg = drt.matmul %ds, %k : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %kg = drt.matmul %ds, %q {transpose_a} : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %qgw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qg : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %qgm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qgw : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %qgt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qgm : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %qgt {axis = 0 : i32, join = 0 : i32, name = "qg"} : (tensor<1x4x2x16xbf16>) -> ()
    %kgw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kg : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %kgm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kgw : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %kgt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kgm : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %kgt {axis = 0 : i32, join = 0 : i32, name = "kg"} : (tensor<1x4x2x16xbf16>) -> ()
    %vgw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vg : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %vgm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vgw : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %vgt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vgm : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %vgt {axis = 0 : i32, join = 0 : i32, name = "vg"} : (tensor<1x4x2x16xbf16>) -> ()
}

// -----

// Not the gradient of these scores: another factor.
#id = affine_map<(b, h, t, s) -> (b, h, t, s)>
#heads = affine_map<(b, h, t, s) -> (b, t, h, s)>
#row = affine_map<(b, h, t, s) -> (b, h, t)>
#row1 = affine_map<(b, h, t, s) -> (b, h, t, 0)>
#keys = affine_map<(b, h, t, s) -> (b, s)>

// CHECK-LABEL: drt.entry "step"
// CHECK-NOT: drt.attention
// CHECK-COUNT-6: drt.matmul
// CHECK-NOT: drt.attention
drt.entry "step" {
    %q0 = drt.feed {name = "q"} : () -> tensor<1x4x2x16xbf16>
    %k0 = drt.feed {name = "k"} : () -> tensor<1x4x2x16xbf16>
    %v0 = drt.feed {name = "v"} : () -> tensor<1x4x2x16xbf16>
    %g0 = drt.feed {name = "g"} : () -> tensor<1x4x2x16xbf16>
    %s_ = tensor.empty() : tensor<1x2x4x4xf32>
    %sb_ = tensor.empty() : tensor<1x2x4x4xbf16>
    %q_ = tensor.empty() : tensor<1x2x4x16xbf16>
    %qf_ = tensor.empty() : tensor<1x2x4x16xf32>
    %t_ = tensor.empty() : tensor<1x4x2x16xbf16>
    %tf_ = tensor.empty() : tensor<1x4x2x16xf32>
    %r_ = tensor.empty() : tensor<1x2x4xf32>
    %zero = arith.constant 0.000000e+00 : f32
    %none = arith.constant 0xFF800000 : f32
    %scale = arith.constant 2.500000e-01 : f32
    %one = arith.constant 1.000000e+00 : f32
    %qw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %qm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %kw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %km = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %k = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%km : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %vw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %vm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %s = drt.matmul %q, %k {transpose_b} : (tensor<1x2x4x16xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x4xbf16>
    %sw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %x0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sw : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %scale : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fmost = linalg.fill ins(%none : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %mostr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x0 : tensor<1x2x4x4xf32>) outs(%fmost : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.maximumf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %most = tensor.expand_shape %mostr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %shifted = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %most : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.subf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %power = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%shifted : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = math.exp %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fsum = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %sumr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%power : tensor<1x2x4x4xf32>) outs(%fsum : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %sum = tensor.expand_shape %sumr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %pw = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%power, %sum : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.divf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%pw : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %o = drt.matmul %p, %v : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %ow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%o : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %om = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ow : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %result = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%om : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %result {axis = 0 : i32, join = 0 : i32, name = "output"} : (tensor<1x4x2x16xbf16>) -> ()
    %g = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%g0 : tensor<1x4x2x16xbf16>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: bf16, %out: bf16): linalg.yield %in : bf16 } -> tensor<1x2x4x16xbf16>
    %d = drt.matmul %g, %v {transpose_b} : (tensor<1x2x4x16xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x4xbf16>
    %dw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%d : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %pww = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%p : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %vg = drt.matmul %p, %g {transpose_a} : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %pd = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%dw, %pww : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.mulf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fdot = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %dotr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%pd : tensor<1x2x4x4xf32>) outs(%fdot : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %dot = tensor.expand_shape %dotr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %less = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%dw, %dot : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.subf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %ds0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%less, %pww : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.mulf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %ds1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ds0 : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %zero : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %ds = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ds1 : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %qg = drt.matmul %ds, %k : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %kg = drt.matmul %ds, %q {transpose_a} : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %qgw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qg : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %qgm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qgw : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %qgt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qgm : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %qgt {axis = 0 : i32, join = 0 : i32, name = "qg"} : (tensor<1x4x2x16xbf16>) -> ()
    %kgw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kg : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %kgm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kgw : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %kgt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kgm : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %kgt {axis = 0 : i32, join = 0 : i32, name = "kg"} : (tensor<1x4x2x16xbf16>) -> ()
    %vgw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vg : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %vgm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vgw : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %vgt = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vgm : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %vgt {axis = 0 : i32, join = 0 : i32, name = "vg"} : (tensor<1x4x2x16xbf16>) -> ()
}

// -----

// Probabilities go to memory as it is: something else reads them.
#id = affine_map<(b, h, t, s) -> (b, h, t, s)>
#heads = affine_map<(b, h, t, s) -> (b, t, h, s)>
#row = affine_map<(b, h, t, s) -> (b, h, t)>
#row1 = affine_map<(b, h, t, s) -> (b, h, t, 0)>
#keys = affine_map<(b, h, t, s) -> (b, s)>

// CHECK-LABEL: drt.entry "eval"
// CHECK-NOT: drt.attention
// CHECK-COUNT-2: drt.matmul
// CHECK-NOT: drt.attention
drt.entry "eval" {
    %q0 = drt.feed {name = "q"} : () -> tensor<1x4x2x16xbf16>
    %k0 = drt.feed {name = "k"} : () -> tensor<1x4x2x16xbf16>
    %v0 = drt.feed {name = "v"} : () -> tensor<1x4x2x16xbf16>
    %s_ = tensor.empty() : tensor<1x2x4x4xf32>
    %sb_ = tensor.empty() : tensor<1x2x4x4xbf16>
    %q_ = tensor.empty() : tensor<1x2x4x16xbf16>
    %qf_ = tensor.empty() : tensor<1x2x4x16xf32>
    %t_ = tensor.empty() : tensor<1x4x2x16xbf16>
    %tf_ = tensor.empty() : tensor<1x4x2x16xf32>
    %r_ = tensor.empty() : tensor<1x2x4xf32>
    %zero = arith.constant 0.000000e+00 : f32
    %none = arith.constant 0xFF800000 : f32
    %scale = arith.constant 2.500000e-01 : f32
    %one = arith.constant 1.000000e+00 : f32
    %qw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %qm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %kw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %km = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %k = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%km : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %vw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %vm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %s = drt.matmul %q, %k {transpose_b} : (tensor<1x2x4x16xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x4xbf16>
    %sw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %x0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sw : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %scale : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fmost = linalg.fill ins(%none : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %mostr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x0 : tensor<1x2x4x4xf32>) outs(%fmost : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.maximumf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %most = tensor.expand_shape %mostr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %shifted = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %most : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.subf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %power = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%shifted : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = math.exp %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fsum = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %sumr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%power : tensor<1x2x4x4xf32>) outs(%fsum : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %sum = tensor.expand_shape %sumr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %pw = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%power, %sum : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.divf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%pw : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %o = drt.matmul %p, %v : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %ow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%o : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %om = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ow : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %result = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%om : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %result {axis = 0 : i32, join = 0 : i32, name = "output"} : (tensor<1x4x2x16xbf16>) -> ()
    drt.fetch %p {axis = 0 : i32, join = 0 : i32, name = "p"} : (tensor<1x2x4x4xbf16>) -> ()
}

// -----

// The maximum is another tensor's: no softmax of these scores.
#id = affine_map<(b, h, t, s) -> (b, h, t, s)>
#heads = affine_map<(b, h, t, s) -> (b, t, h, s)>
#row = affine_map<(b, h, t, s) -> (b, h, t)>
#row1 = affine_map<(b, h, t, s) -> (b, h, t, 0)>
#keys = affine_map<(b, h, t, s) -> (b, s)>

// CHECK-LABEL: drt.entry "eval"
// CHECK-NOT: drt.attention
// CHECK-COUNT-2: drt.matmul
drt.entry "eval" {
    %q0 = drt.feed {name = "q"} : () -> tensor<1x4x2x16xbf16>
    %k0 = drt.feed {name = "k"} : () -> tensor<1x4x2x16xbf16>
    %v0 = drt.feed {name = "v"} : () -> tensor<1x4x2x16xbf16>
    %s_ = tensor.empty() : tensor<1x2x4x4xf32>
    %sb_ = tensor.empty() : tensor<1x2x4x4xbf16>
    %q_ = tensor.empty() : tensor<1x2x4x16xbf16>
    %qf_ = tensor.empty() : tensor<1x2x4x16xf32>
    %t_ = tensor.empty() : tensor<1x4x2x16xbf16>
    %tf_ = tensor.empty() : tensor<1x4x2x16xf32>
    %r_ = tensor.empty() : tensor<1x2x4xf32>
    %zero = arith.constant 0.000000e+00 : f32
    %none = arith.constant 0xFF800000 : f32
    %scale = arith.constant 2.500000e-01 : f32
    %one = arith.constant 1.000000e+00 : f32
    %qw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %qm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %kw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %km = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %k = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%km : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %vw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v0 : tensor<1x4x2x16xbf16>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x16xf32>
    %vm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vw : tensor<1x4x2x16xf32>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x16xf32>
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vm : tensor<1x2x4x16xf32>) outs(%q_ : tensor<1x2x4x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x16xbf16>
    %s = drt.matmul %q, %k {transpose_b} : (tensor<1x2x4x16xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x4xbf16>
    %sw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %x0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sw : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %scale : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fmost = linalg.fill ins(%none : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %mostr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%sw : tensor<1x2x4x4xf32>) outs(%fmost : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.maximumf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %most = tensor.expand_shape %mostr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %shifted = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %most : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.subf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %power = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%shifted : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = math.exp %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fsum = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %sumr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%power : tensor<1x2x4x4xf32>) outs(%fsum : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %sum = tensor.expand_shape %sumr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %pw = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%power, %sum : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.divf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%pw : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %o = drt.matmul %p, %v : (tensor<1x2x4x4xbf16>, tensor<1x2x4x16xbf16>) -> tensor<1x2x4x16xbf16>
    %ow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%o : tensor<1x2x4x16xbf16>) outs(%qf_ : tensor<1x2x4x16xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x16xf32>
    %om = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ow : tensor<1x2x4x16xf32>) outs(%tf_ : tensor<1x4x2x16xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x16xf32>
    %result = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%om : tensor<1x4x2x16xf32>) outs(%t_ : tensor<1x4x2x16xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x16xbf16>
    drt.fetch %result {axis = 0 : i32, join = 0 : i32, name = "output"} : (tensor<1x4x2x16xbf16>) -> ()
}

// -----

// Heads of 24 are no multiple of what matrix units take.
#id = affine_map<(b, h, t, s) -> (b, h, t, s)>
#heads = affine_map<(b, h, t, s) -> (b, t, h, s)>
#row = affine_map<(b, h, t, s) -> (b, h, t)>
#row1 = affine_map<(b, h, t, s) -> (b, h, t, 0)>
#keys = affine_map<(b, h, t, s) -> (b, s)>

// CHECK-LABEL: drt.entry "eval"
// CHECK-NOT: drt.attention
// CHECK-COUNT-2: drt.matmul
drt.entry "eval" {
    %q0 = drt.feed {name = "q"} : () -> tensor<1x4x2x24xbf16>
    %k0 = drt.feed {name = "k"} : () -> tensor<1x4x2x24xbf16>
    %v0 = drt.feed {name = "v"} : () -> tensor<1x4x2x24xbf16>
    %s_ = tensor.empty() : tensor<1x2x4x4xf32>
    %sb_ = tensor.empty() : tensor<1x2x4x4xbf16>
    %q_ = tensor.empty() : tensor<1x2x4x24xbf16>
    %qf_ = tensor.empty() : tensor<1x2x4x24xf32>
    %t_ = tensor.empty() : tensor<1x4x2x24xbf16>
    %tf_ = tensor.empty() : tensor<1x4x2x24xf32>
    %r_ = tensor.empty() : tensor<1x2x4xf32>
    %zero = arith.constant 0.000000e+00 : f32
    %none = arith.constant 0xFF800000 : f32
    %scale = arith.constant 2.500000e-01 : f32
    %one = arith.constant 1.000000e+00 : f32
    %qw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%q0 : tensor<1x4x2x24xbf16>) outs(%tf_ : tensor<1x4x2x24xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x24xf32>
    %qm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qw : tensor<1x4x2x24xf32>) outs(%qf_ : tensor<1x2x4x24xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x24xf32>
    %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%qm : tensor<1x2x4x24xf32>) outs(%q_ : tensor<1x2x4x24xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x24xbf16>
    %kw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%k0 : tensor<1x4x2x24xbf16>) outs(%tf_ : tensor<1x4x2x24xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x24xf32>
    %km = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%kw : tensor<1x4x2x24xf32>) outs(%qf_ : tensor<1x2x4x24xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x24xf32>
    %k = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%km : tensor<1x2x4x24xf32>) outs(%q_ : tensor<1x2x4x24xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x24xbf16>
    %vw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%v0 : tensor<1x4x2x24xbf16>) outs(%tf_ : tensor<1x4x2x24xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x4x2x24xf32>
    %vm = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vw : tensor<1x4x2x24xf32>) outs(%qf_ : tensor<1x2x4x24xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x2x4x24xf32>
    %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%vm : tensor<1x2x4x24xf32>) outs(%q_ : tensor<1x2x4x24xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x24xbf16>
    %s = drt.matmul %q, %k {transpose_b} : (tensor<1x2x4x24xbf16>, tensor<1x2x4x24xbf16>) -> tensor<1x2x4x4xbf16>
    %sw = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<1x2x4x4xbf16>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %x0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sw : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.mulf %in, %scale : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fmost = linalg.fill ins(%none : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %mostr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x0 : tensor<1x2x4x4xf32>) outs(%fmost : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.maximumf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %most = tensor.expand_shape %mostr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %shifted = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x0, %most : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.subf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %power = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%shifted : tensor<1x2x4x4xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %out: f32): %r = math.exp %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %fsum = linalg.fill ins(%zero : f32) outs(%r_ : tensor<1x2x4xf32>) -> tensor<1x2x4xf32>
    %sumr = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%power : tensor<1x2x4x4xf32>) outs(%fsum : tensor<1x2x4xf32>) { ^bb0(%in: f32, %out: f32): %r = arith.addf %out, %in : f32  linalg.yield %r : f32 } -> tensor<1x2x4xf32>
    %sum = tensor.expand_shape %sumr [[0], [1], [2, 3]] output_shape [1, 2, 4, 1] : tensor<1x2x4xf32> into tensor<1x2x4x1xf32>
    %pw = linalg.generic {indexing_maps = [#id, #row1, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%power, %sum : tensor<1x2x4x4xf32>, tensor<1x2x4x1xf32>) outs(%s_ : tensor<1x2x4x4xf32>) { ^bb0(%in: f32, %in2: f32, %out: f32): %r = arith.divf %in, %in2 : f32  linalg.yield %r : f32 } -> tensor<1x2x4x4xf32>
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%pw : tensor<1x2x4x4xf32>) outs(%sb_ : tensor<1x2x4x4xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x2x4x4xbf16>
    %o = drt.matmul %p, %v : (tensor<1x2x4x4xbf16>, tensor<1x2x4x24xbf16>) -> tensor<1x2x4x24xbf16>
    %ow = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%o : tensor<1x2x4x24xbf16>) outs(%qf_ : tensor<1x2x4x24xf32>) { ^bb0(%in: bf16, %out: f32): %r = arith.extf %in : bf16 to f32  linalg.yield %r : f32 } -> tensor<1x2x4x24xf32>
    %om = linalg.generic {indexing_maps = [#heads, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%ow : tensor<1x2x4x24xf32>) outs(%tf_ : tensor<1x4x2x24xf32>) { ^bb0(%in: f32, %out: f32): linalg.yield %in : f32 } -> tensor<1x4x2x24xf32>
    %result = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%om : tensor<1x4x2x24xf32>) outs(%t_ : tensor<1x4x2x24xbf16>) { ^bb0(%in: f32, %out: bf16): %r = arith.truncf %in : f32 to bf16  linalg.yield %r : bf16 } -> tensor<1x4x2x24xbf16>
    drt.fetch %result {axis = 0 : i32, join = 0 : i32, name = "output"} : (tensor<1x4x2x24xbf16>) -> ()
}
