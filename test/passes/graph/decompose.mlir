// RUN: distc-opt %s --dfg-decompose | FileCheck %s

// The statistics are means over the batch; the correction of the variance follows from the batch's size.
// CHECK-LABEL: dfg.graph
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x4x4x8xf32> loc("x")
  %c = dfg.const dense<1.0> : tensor<8xf32> : tensor<8xf32> loc("c")
  // CHECK: %[[MEAN:.*]] = dfg.mean
  // CHECK: %[[CENTERED:.*]] = dfg.sub
  // CHECK: %[[SQUARES:.*]] = dfg.square %[[CENTERED]]
  // CHECK: %[[VARIANCE:.*]] = dfg.mean %[[SQUARES]]
  // CHECK: dfg.rsqrt
  // CHECK: %[[SHAPE:.*]] = dfg.shape
  // CHECK: dfg.strided_slice %[[SHAPE]]
  // CHECK: dfg.real_div
  // CHECK-NOT: dfg.fused_batch_norm
  %y:6 = dfg.fused_batch_norm_v3 %x, %c, %c, %c, %c {is_training = true, epsilon = 1.0e-3 : f32}
    : (tensor<?x4x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    -> (tensor<?x4x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<?xf32>) loc("bn")
  // CHECK: dfg.neg
  %z = dfg.neg %y#0 : (tensor<?x4x4x8xf32>) -> tensor<?x4x4x8xf32> loc("z")
}

// A product of matrices; nothing is moved that may stay.
// CHECK-LABEL: dfg.func @einsum
dfg.func @einsum(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>) -> tensor<2x3x5xf32> {
  // CHECK-NOT: dfg.transpose
  // CHECK: dfg.reshape %{{.*}} : (tensor<2x3x4xf32>, tensor<2xi32>) -> tensor<6x4xf32>
  // CHECK: dfg.mat_mul
  // CHECK: dfg.reshape %{{.*}} -> tensor<2x3x5xf32>
  %y = dfg.einsum %x, %w {equation = "abc,cd->abd"} : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  dfg.return %y : tensor<2x3x5xf32>
}

// What waited for the whole waits for every part; the first result's node has its name.
// CHECK-LABEL: dfg.graph
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
  %n = dfg.const dense<-1> : tensor<i32> : tensor<i32> loc("n")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  // CHECK: dfg.select_v2 {{.*}} {control = ["x"]
  %y = dfg.matrix_band_part %x, %n, %zero {control = ["x"]} : (tensor<?x3xf32>, tensor<i32>, tensor<i32>) -> tensor<?x3xf32> loc("band")
}

// Too little is known: it stays.
// CHECK-LABEL: dfg.func @unknown
dfg.func @unknown(%x: tensor<*xf32>, %n: tensor<2xi32>) -> tensor<*xf32> {
  // CHECK: dfg.resize_bilinear
  %y = dfg.resize_bilinear %x, %n : (tensor<*xf32>, tensor<2xi32>) -> tensor<*xf32>
  dfg.return %y : tensor<*xf32>
}

// Version 3 normalizes volumes as well.
// CHECK-LABEL: dfg.func @volumes
dfg.func @volumes(%x: tensor<2x3x4x4x8xf32>, %c: tensor<8xf32>) -> tensor<2x3x4x4x8xf32> {
  // CHECK: dfg.const dense<[0, 1, 2, 3]>
  // CHECK: dfg.mean %{{.*}} : (tensor<2x3x4x4x8xf32>, tensor<4xi32>) -> tensor<8xf32>
  // CHECK-NOT: dfg.fused_batch_norm
  %y:6 = dfg.fused_batch_norm_v3 %x, %c, %c, %c, %c {is_training = true, epsilon = 1.0e-3 : f32, data_format = "NDHWC"}
    : (tensor<2x3x4x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    -> (tensor<2x3x4x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<?xf32>) loc("bn")
  dfg.return %y#0 : tensor<2x3x4x4x8xf32>
}

// A permutation, by which rows are gathered. Classes are uniform numbers, looked up in sums of probabilities; what TensorFlow's kernel
// reserves for a row is two words for each of whole groups of four samples, 256 times.
// CHECK-LABEL: dfg.func @choices
dfg.func @choices(%x: tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<5x3xi64>) {
  // CHECK: %[[ORDER:.*]] = dfg.random_permutation %{{.*}} {seed = 1 : i64, seed2 = 2 : i64} : (tensor<i32>) -> tensor<5xi32>
  // CHECK: dfg.gather_v2 %{{.*}}, %[[ORDER]]
  %shuffled = dfg.random_shuffle %x {seed = 1, seed2 = 2} : (tensor<5x3xf32>) -> tensor<5x3xf32> loc("shuffled")
  %three = dfg.const dense<3> : tensor<i32> : tensor<i32>
  // CHECK: dfg.cumsum
  // CHECK: dfg.random_uniform %{{.*}} {reserved_per_row = 2048 : i64, seed = 3 : i64, seed2 = 4 : i64} : (tensor<2xi32>) -> tensor<5x3xf64>
  // CHECK: dfg.less_equal
  // CHECK: dfg.sum
  %classes = dfg.multinomial %x, %three {seed = 3, seed2 = 4} : (tensor<5x3xf32>, tensor<i32>) -> tensor<5x3xi64> loc("classes")
  dfg.return %shuffled, %classes : tensor<5x3xf32>, tensor<5x3xi64>
}

// Pixels are gathered by their number among those of all images, and added up by the same.
// CHECK-LABEL: dfg.func @crops
dfg.func @crops(%x: tensor<2x6x5x3xf32>, %boxes: tensor<4x4xf32>, %of: tensor<4xi32>) -> (tensor<4x2x2x3xf32>, tensor<2x6x5x3xf32>) {
  %two = dfg.const dense<2> : tensor<2xi32> : tensor<2xi32>
  // CHECK-COUNT-4: dfg.gather_v2 %{{.*}} : (tensor<60x3xf32>, tensor<16xi32>, tensor<i32>) -> tensor<16x3xf32>
  %crops = dfg.crop_and_resize %x, %boxes, %of, %two {method = "bilinear"}
    : (tensor<2x6x5x3xf32>, tensor<4x4xf32>, tensor<4xi32>, tensor<2xi32>) -> tensor<4x2x2x3xf32> loc("crops")
  %shape = dfg.shape %x : (tensor<2x6x5x3xf32>) -> tensor<4xi32>
  // CHECK-COUNT-4: dfg.unsorted_segment_sum %{{.*}} -> tensor<60x3xf32>
  %grad = dfg.crop_and_resize_grad_image %crops, %boxes, %of, %shape {method = "bilinear"}
    : (tensor<4x2x2x3xf32>, tensor<4x4xf32>, tensor<4xi32>, tensor<4xi32>) -> tensor<2x6x5x3xf32> loc("grad")
  dfg.return %crops, %grad : tensor<4x2x2x3xf32>, tensor<2x6x5x3xf32>
}

// A filter's weights are tables: the scale is a quotient of sizes that are known.
// CHECK-LABEL: dfg.func @filtered
dfg.func @filtered(%x: tensor<?x4x6x2xf32>, %dy: tensor<?x8x3x2xf32>) -> (tensor<?x8x3x2xf32>, tensor<?x4x6x2xf32>) {
  %size = dfg.const dense<[8, 3]> : tensor<2xi32> : tensor<2xi32>
  %own = dfg.const dense<[4, 6]> : tensor<2xi32> : tensor<2xi32>
  %size_f = dfg.cast %size : (tensor<2xi32>) -> tensor<2xf32>
  %own_f = dfg.cast %own : (tensor<2xi32>) -> tensor<2xf32>
  %scale = dfg.real_div %size_f, %own_f : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %none = dfg.const dense<0.0> : tensor<2xf32> : tensor<2xf32>
  // CHECK: dfg.const dense<{{.*}}> : tensor<8x4xf32>
  // CHECK: dfg.const dense<{{.*}}> : tensor<3x6xf32>
  // CHECK-NOT: scale_and_translate
  %y = dfg.scale_and_translate %x, %size, %scale, %none {kernel_type = "gaussian"}
    : (tensor<?x4x6x2xf32>, tensor<2xi32>, tensor<2xf32>, tensor<2xf32>) -> tensor<?x8x3x2xf32> loc("up")
  // CHECK: dfg.const dense<{{.*}}> : tensor<4x8xf32>
  // CHECK: dfg.const dense<{{.*}}> : tensor<6x3xf32>
  %dx = dfg.scale_and_translate_grad %dy, %x, %scale, %none {kernel_type = "gaussian"}
    : (tensor<?x8x3x2xf32>, tensor<?x4x6x2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<?x4x6x2xf32> loc("up_grad")
  dfg.return %y, %dx : tensor<?x8x3x2xf32>, tensor<?x4x6x2xf32>
}

// An image's pixels are read by where its own projection puts them.
// CHECK-LABEL: dfg.func @projected
dfg.func @projected(%x: tensor<5x4x6x2xui8>, %t: tensor<5x8xf32>, %all: tensor<1x8xf32>) -> (tensor<5x3x2x2xui8>, tensor<5x3x2x2xui8>) {
  %size = dfg.const dense<[3, 2]> : tensor<2xi32> : tensor<2xi32>
  %fill = dfg.const dense<7.0> : tensor<f32> : tensor<f32>
  // CHECK: dfg.gather_v2 {{.*}}{batch_dims = 1 : i64} : (tensor<5x24x2xui8>, tensor<5x6xi32>, tensor<i32>) -> tensor<5x6x2xui8>
  %near = dfg.image_projective_transform_v3 %x, %t, %size, %fill {interpolation = "NEAREST", fill_mode = "WRAP"}
    : (tensor<5x4x6x2xui8>, tensor<5x8xf32>, tensor<2xi32>, tensor<f32>) -> tensor<5x3x2x2xui8> loc("near")
  // CHECK-COUNT-4: dfg.gather_v2 %{{[^{]*}} : (tensor<5x24x2xui8>, tensor<6xi32>, tensor<i32>) -> tensor<5x6x2xui8>
  %mean = dfg.image_projective_transform_v2 %x, %all, %size {interpolation = "BILINEAR"}
    : (tensor<5x4x6x2xui8>, tensor<1x8xf32>, tensor<2xi32>) -> tensor<5x3x2x2xui8> loc("mean")
  dfg.return %near, %mean : tensor<5x3x2x2xui8>, tensor<5x3x2x2xui8>
}

// Patches of images without rows: what strides take of nothing is nothing.
// CHECK-LABEL: dfg.func @empty_patches
// CHECK-NOT: extract_image_patches
// CHECK: dfg.strided_slice {{.*}} -> tensor<4x0x3x2xf32>
// CHECK: dfg.concat_v2 {{.*}} -> tensor<4x0x3x18xf32>
dfg.func @empty_patches(%x: tensor<4x0x3x2xf32>) -> tensor<4x0x3x18xf32> {
  %y = dfg.extract_image_patches %x {ksizes = [1, 3, 3, 1], padding = "SAME", rates = [1, 2, 2, 1], strides = [1, 2, 1, 1]} : (tensor<4x0x3x2xf32>) -> tensor<4x0x3x18xf32> loc("patches")
  dfg.return %y : tensor<4x0x3x18xf32>
}

// A range is nudged so that 0 is one of its steps; what lies outside hands its gradient on to the range's ends, one a channel.
// CHECK-LABEL: dfg.func @quantized
dfg.func @quantized(%x: tensor<2x3xf32>, %dy: tensor<2x3xf32>, %low: tensor<3xf32>, %high: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK-DAG: %[[LAST:.*]] = dfg.const dense<1.500000e+01>
  // CHECK-DAG: %[[FIRST:.*]] = dfg.const dense<1.000000e+00>
  // CHECK: dfg.floor
  // CHECK-NOT: fake_quant
  // CHECK: dfg.sum %{{.*}} : (tensor<2x3xf32>, tensor<1xi32>) -> tensor<3xf32>
  // CHECK: dfg.sum %{{.*}} : (tensor<2x3xf32>, tensor<1xi32>) -> tensor<3xf32>
  %d:3 = dfg.fake_quant_with_min_max_vars_per_channel_gradient %dy, %x, %low, %high {num_bits = 4 : i64, narrow_range = true}
    : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
  dfg.return %d#1 : tensor<3xf32>
}

// Sizes that give way to others: those of one operand, or some of each.
// CHECK-LABEL: dfg.graph
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
  %shape = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32> loc("shape")
  %none = dfg.const dense<> : tensor<0xi32> : tensor<0xi32>
  %row = dfg.const dense<[1, 4]> : tensor<2xi32> : tensor<2xi32>
  %column = dfg.const dense<[3, 1, 1]> : tensor<3xi32> : tensor<3xi32>
  // CHECK: %a = dfg.identity %shape
  // CHECK: %b = dfg.identity %shape
  // CHECK: %[[PARTS:.*]] = dfg.pack %{{.*}}, %{{.*}}, %{{.*}} : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xi32>
  %a = dfg.broadcast_args %shape, %none : (tensor<2xi32>, tensor<0xi32>) -> tensor<2xi32> loc("a")
  %b = dfg.broadcast_args %row, %shape : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32> loc("b")
  %c = dfg.broadcast_args %column, %shape : (tensor<3xi32>, tensor<2xi32>) -> tensor<3xi32> loc("c")
}

// Each window takes the gradient of the first of its largest elements, which is looked at last.
// CHECK-LABEL: dfg.func @second_gradient
dfg.func @second_gradient(%x: tensor<2x4x2x3xf32>, %y: tensor<2x2x2x3xf32>, %d: tensor<2x4x2x3xf32>) -> tensor<2x2x2x3xf32> {
  // CHECK: %[[ZEROS:.*]] = dfg.zeros_like
  // CHECK: %[[LAST:.*]] = dfg.select_v2 %{{.*}}, %{{.*}}, %[[ZEROS]]
  // CHECK: %[[FIRST:.*]] = dfg.select_v2 %{{.*}}, %{{.*}}, %[[LAST]]
  // CHECK: dfg.return %[[FIRST]]
  %r = dfg.max_pool_grad_grad %x, %y, %d {ksize = [1, 2, 1, 1], strides = [1, 2, 1, 1], padding = "VALID"}
    : (tensor<2x4x2x3xf32>, tensor<2x2x2x3xf32>, tensor<2x4x2x3xf32>) -> tensor<2x2x2x3xf32>
  dfg.return %r : tensor<2x2x2x3xf32>
}

// Rows of a sparse tensor are those of all axes but the last; what is out of order is sorted by where it is in a row-major tensor.
// CHECK-LABEL: dfg.func @sparse
dfg.func @sparse(%at: tensor<5x3xi64>, %v: tensor<5xf32>, %dense: tensor<4x1xf32>) -> (tensor<5xf32>, tensor<5x3xi64>, tensor<2x4xf32>, tensor<5xf32>) {
  %shape = dfg.const dense<[2, 4, 3]> : tensor<3xi64> : tensor<3xi64>
  %axis = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32>
  // CHECK: %[[LARGEST:.*]] = dfg.unsorted_segment_max
  // CHECK: dfg.gather_v2 %[[LARGEST]]
  // CHECK: dfg.exp
  // CHECK: dfg.unsorted_segment_sum
  %p = dfg.sparse_softmax %at, %v, %shape : (tensor<5x3xi64>, tensor<5xf32>, tensor<3xi64>) -> tensor<5xf32>
  // CHECK: %[[KEY:.*]] = dfg.neg
  // CHECK: %[[ORDER:.*]]:2 = dfg.top_k_v2 %[[KEY]]
  // CHECK: dfg.gather_v2 %{{.*}}, %[[ORDER]]#1
  %to, %w = dfg.sparse_reorder %at, %p, %shape : (tensor<5x3xi64>, tensor<5xf32>, tensor<3xi64>) -> (tensor<5x3xi64>, tensor<5xf32>)
  // CHECK: dfg.scatter_nd {{.*}} -> tensor<2x4xf32>
  %s = dfg.sparse_reduce_sum %to, %w, %shape, %axis : (tensor<5x3xi64>, tensor<5xf32>, tensor<3xi64>, tensor<1xi32>) -> tensor<2x4xf32>
  // The axis of 1 is not looked at.
  // CHECK: %[[COLUMN:.*]] = dfg.reshape %{{.*}} -> tensor<4xf32>
  // CHECK: dfg.gather_nd %[[COLUMN]], %{{.*}} : (tensor<4xf32>, tensor<5x1xi64>) -> tensor<5xf32>
  %m = dfg.sparse_dense_cwise_mul %at, %v, %shape, %dense : (tensor<5x3xi64>, tensor<5xf32>, tensor<3xi64>, tensor<4x1xf32>) -> tensor<5xf32>
  dfg.return %p, %to, %s, %m : tensor<5xf32>, tensor<5x3xi64>, tensor<2x4xf32>, tensor<5xf32>
}

// The coordinate along the first axis is looked up, where a place outside is an error.
// CHECK-LABEL: dfg.func @small
dfg.func @small(%i: tensor<6xi32>, %x: tensor<7x5xf32>) -> (tensor<2x6xi32>, tensor<7xf32>) {
  %sizes = dfg.const dense<[3, 4]> : tensor<2xi32> : tensor<2xi32>
  %n = dfg.const dense<1> : tensor<i32> : tensor<i32>
  // CHECK: %[[RANGE:.*]] = dfg.range
  // CHECK: %[[ROW:.*]] = dfg.gather_v2 %[[RANGE]]
  // CHECK: %[[COLUMN:.*]] = dfg.floor_mod
  // CHECK: dfg.pack %[[ROW]], %[[COLUMN]]
  %at = dfg.unravel_index %i, %sizes : (tensor<6xi32>, tensor<2xi32>) -> tensor<2x6xi32>
  // The second smallest of five is the fourth largest.
  // CHECK: %[[FOUR:.*]] = dfg.const dense<4>
  // CHECK: dfg.top_k_v2 %{{.*}}, %[[FOUR]]
  %nth = dfg.nth_element %x, %n : (tensor<7x5xf32>, tensor<i32>) -> tensor<7xf32>
  dfg.return %at, %nth : tensor<2x6xi32>, tensor<7xf32>
}

// Steps that are none of those there are give zeros; the sum over the steps is in one matmul.
// CHECK-LABEL: dfg.func @layer
dfg.func @layer(%n: tensor<i64>, %x: tensor<2x5x4xf32>, %s: tensor<5x3xf32>, %w: tensor<7x12xf32>, %p: tensor<3xf32>, %b: tensor<12xf32>, %a: tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>, tensor<7x12xf32>) {
  // CHECK-COUNT-2: dfg.mat_mul
  // CHECK: dfg.less %{{.*}}, %arg0
  // CHECK: dfg.select_v2
  // CHECK: dfg.pack
  %y:7 = dfg.block_lstm %n, %x, %s, %s, %w, %p, %p, %p, %b
    : (tensor<i64>, tensor<2x5x4xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<7x12xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<12xf32>)
    -> (tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>)
  // CHECK: dfg.mat_mul {{.*}}transpose_a = true{{.*}} : (tensor<10x7xf32>, tensor<10x12xf32>) -> tensor<7x12xf32>
  %d:8 = dfg.block_lstm_grad %n, %x, %s, %s, %w, %p, %p, %p, %b, %y#0, %y#1, %y#2, %y#3, %y#4, %y#5, %y#6, %a, %a {use_peephole = false}
    : (tensor<i64>, tensor<2x5x4xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<7x12xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<12xf32>,
       tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>)
    -> (tensor<2x5x4xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<7x12xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<12xf32>)
  dfg.return %y#6, %d#3 : tensor<2x5x3xf32>, tensor<7x12xf32>
}

// Two places of three are the same.
// CHECK-LABEL: dfg.func @sum_of_sparse
dfg.func @sum_of_sparse(%v: tensor<2xf32>, %w: tensor<1xf32>) -> (tensor<2x2xi64>, tensor<2xf32>, tensor<2xi64>) {
  %a = dfg.const dense<[[0, 1], [2, 0]]> : tensor<2x2xi64> : tensor<2x2xi64>
  %b = dfg.const dense<[[0, 1]]> : tensor<1x2xi64> : tensor<1x2xi64>
  %shape = dfg.const dense<[3, 2]> : tensor<2xi64> : tensor<2xi64>
  %none = dfg.const dense<0.0> : tensor<f32> : tensor<f32>
  // CHECK: dfg.const dense<[0, 1, 2, 0]>
  // CHECK: dfg.unsorted_segment_sum
  // CHECK: dfg.unsorted_segment_sum
  // CHECK: dfg.add_v2
  %p, %s, %z = dfg.sparse_add %a, %v, %shape, %b, %w, %shape, %none
    : (tensor<2x2xi64>, tensor<2xf32>, tensor<2xi64>, tensor<1x2xi64>, tensor<1xf32>, tensor<2xi64>, tensor<f32>) -> (tensor<2x2xi64>, tensor<2xf32>, tensor<2xi64>)
  dfg.return %p, %s, %z : tensor<2x2xi64>, tensor<2xf32>, tensor<2xi64>
}

// Elements of a diagonal below are behind what is left over; the whole matrix is solved with.
// CHECK-LABEL: dfg.func @bands
dfg.func @bands(%d: tensor<2x4xf32>, %b: tensor<4x3xf32>) -> tensor<4x3xf32> {
  // CHECK: dfg.matrix_triangular_solve {{.*}} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %x = dfg.banded_triangular_solve %d, %b : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  dfg.return %x : tensor<4x3xf32>
}

// One number for each that is drawn, of the key and the counter.
// CHECK-LABEL: dfg.func @gamma
dfg.func @gamma(%key: tensor<1xui64>, %counter: tensor<2xui64>, %alg: tensor<i32>, %alpha: tensor<3xf32>) -> tensor<5x3xf32> {
  %sizes = dfg.const dense<[5, 3]> : tensor<2xi32> : tensor<2xi32>
  // CHECK: %[[DRAWN:.*]] = dfg.stateless_random_uniform_v2 %{{.*}}, %arg0, %arg1, %arg2 {{.*}} -> tensor<5x3xf64>
  // CHECK: dfg.draw_gamma %{{.*}}, %[[DRAWN]]
  %x = dfg.stateless_random_gamma_v3 %sizes, %key, %counter, %alg, %alpha
    : (tensor<2xi32>, tensor<1xui64>, tensor<2xui64>, tensor<i32>, tensor<3xf32>) -> tensor<5x3xf32>
  dfg.return %x : tensor<5x3xf32>
}

// Rows of a block of places that are constants are known; of others as many as the data say are found when the program runs.
// CHECK-LABEL: dfg.func @blocks
dfg.func @blocks(%at: tensor<5x2xi64>, %v: tensor<5xf32>, %w: tensor<3xf32>) -> (tensor<*xi64>, tensor<*xf32>, tensor<*xi64>, tensor<*xf32>, tensor<*xf32>) {
  %shape = dfg.const dense<[4, 3]> : tensor<2xi64> : tensor<2xi64>
  %start = dfg.const dense<[1, 0]> : tensor<2xi64> : tensor<2xi64>
  %size = dfg.const dense<[2, 9]> : tensor<2xi64> : tensor<2xi64>
  // CHECK: %[[BLOCK:.*]]:2 = dfg.sparse_block %arg0
  // CHECK: %[[VALUES:.*]] = dfg.gather_v2 %arg1, %[[BLOCK]]#0
  %p, %x, %s = dfg.sparse_slice %at, %v, %shape, %start, %size
    : (tensor<5x2xi64>, tensor<5xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> (tensor<*xi64>, tensor<*xf32>, tensor<2xi64>)
  // CHECK: dfg.sparse_block_rows %arg0, %{{.*}} -> tensor<5xi64>
  %d = dfg.sparse_slice_grad %x, %at, %start, %p : (tensor<*xf32>, tensor<5x2xi64>, tensor<2xi64>, tensor<*xi64>) -> tensor<*xf32>
  %known = dfg.const dense<[[0, 1], [1, 2], [2, 0]]> : tensor<3x2xi64> : tensor<3x2xi64>
  // CHECK: dfg.const dense<[1, 2]> : tensor<2xi64>
  // CHECK-NOT: dfg.sparse_block
  // CHECK: dfg.gather_v2 %arg2{{.*}} -> tensor<2xf32>
  %q, %y, %t = dfg.sparse_slice %known, %w, %shape, %start, %size
    : (tensor<3x2xi64>, tensor<3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> (tensor<*xi64>, tensor<*xf32>, tensor<2xi64>)
  dfg.return %p, %x, %q, %y, %d : tensor<*xi64>, tensor<*xf32>, tensor<*xi64>, tensor<*xf32>, tensor<*xf32>
}

// A dense tensor has a place for each of the longest row, where that is known, or for as many as are asked for.
// CHECK-LABEL: dfg.func @ragged
dfg.func @ragged(%v: tensor<5x2xf32>, %given: tensor<4xi64>) -> (tensor<3x3x2xf32>, tensor<3x4x2xf32>, tensor<10x3xi64>) {
  %splits = dfg.const dense<[0, 1, 1, 4]> : tensor<4xi64> : tensor<4xi64>
  %any = dfg.const dense<-1> : tensor<i64> : tensor<i64>
  %four = dfg.const dense<[-1, 4, -1]> : tensor<3xi64> : tensor<3xi64>
  %none = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  // CHECK: dfg.select_v2 {{.*}} -> tensor<3x3x2xf32>
  %x = dfg.ragged_tensor_to_tensor %any, %v, %none, %splits {row_partition_types = ["ROW_SPLITS"]}
    : (tensor<i64>, tensor<5x2xf32>, tensor<f32>, tensor<4xi64>) -> tensor<3x3x2xf32>
  // CHECK: dfg.select_v2 {{.*}} -> tensor<3x4x2xf32>
  %y = dfg.ragged_tensor_to_tensor %four, %v, %none, %given {row_partition_types = ["ROW_SPLITS"]}
    : (tensor<3xi64>, tensor<5x2xf32>, tensor<f32>, tensor<4xi64>) -> tensor<3x4x2xf32>
  %all = dfg.const dense<[0, 1, 1, 5]> : tensor<4xi64> : tensor<4xi64>
  // CHECK: dfg.const dense<[3, 4, 2]> : tensor<3xi64>
  %p, %w, %s = dfg.ragged_tensor_to_sparse %all, %v : (tensor<4xi64>, tensor<5x2xf32>) -> (tensor<10x3xi64>, tensor<10xf32>, tensor<3xi64>)
  dfg.return %x, %y, %p : tensor<3x3x2xf32>, tensor<3x4x2xf32>, tensor<10x3xi64>
}

// CHECK-LABEL: dfg.func @ragged_constants
dfg.func @ragged_constants(%v: tensor<4xf32>) -> (tensor<4xi64>, tensor<5xi32>, tensor<3xi64>, tensor<4xf32>) {
  %starts = dfg.const dense<[3, 0, 7]> : tensor<3xi32> : tensor<3xi32>
  %limits = dfg.const dense<[9, 0, 2]> : tensor<3xi32> : tensor<3xi32>
  %steps = dfg.const dense<[2, 1, -3]> : tensor<3xi32> : tensor<3xi32>
  // CHECK: dfg.const dense<[0, 3, 3, 5]> : tensor<4xi64>
  // CHECK: dfg.const dense<[3, 5, 7, 7, 4]> : tensor<5xi32>
  %s, %x = dfg.ragged_range %starts, %limits, %steps : (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> (tensor<4xi64>, tensor<5xi32>)
  %splits = dfg.const dense<[0, 3, 3, 4]> : tensor<4xi64> : tensor<4xi64>
  %rows = dfg.const dense<[2, 0]> : tensor<2xi32> : tensor<2xi32>
  // CHECK: dfg.const dense<[0, 1, 4]> : tensor<3xi64>
  // CHECK: dfg.const dense<[3, 0, 1, 2]> : tensor<4xi64>
  // CHECK: dfg.gather_v2 %arg0
  %t, %y = dfg.ragged_gather %splits, %v, %rows {OUTPUT_RAGGED_RANK = 1 : i64} : (tensor<4xi64>, tensor<4xf32>, tensor<2xi32>) -> (tensor<3xi64>, tensor<4xf32>)
  dfg.return %s, %x, %t, %y : tensor<4xi64>, tensor<5xi32>, tensor<3xi64>, tensor<4xf32>
}

// Windows are drawn once for all images; the kernel's quotient is in float32.
// CHECK-LABEL: dfg.func @fractional
dfg.func @fractional(%x: tensor<2x7x5x3xf32>) -> tensor<2x4x3x3xf32> {
  // CHECK: %[[WINDOWS:.*]]:2 = dfg.fractional_sequences {deterministic = true, pseudo_random = false, seed = 3 : i64, seed2 = 4 : i64, sizes = [7, 5, 4, 3]}
  // CHECK: dfg.fractional_max %arg0, %[[WINDOWS]]#0, %[[WINDOWS]]#1 {overlapping = true}
  %y:3 = dfg.fractional_max_pool %x {pooling_ratio = [1.0 : f32, 1.5 : f32, 1.5 : f32, 1.0 : f32], overlapping = true, deterministic = true, seed = 3 : i64, seed2 = 4 : i64}
    : (tensor<2x7x5x3xf32>) -> (tensor<2x4x3x3xf32>, tensor<5xi64>, tensor<4xi64>)
  dfg.return %y#0 : tensor<2x4x3x3xf32>
}

// An axis that is taken whole need not be known: the others' elements are numbered.
// CHECK-LABEL: dfg.func @slices
dfg.func @slices(%x: tensor<?x4xf32>, %v: tensor<?x2xf32>, %table: tensor<5x3xf32>, %row: tensor<i32>, %new: tensor<3xf32>) -> (tensor<?x4xf32>, tensor<5x3xf32>) {
  %begin = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
  %end = dfg.const dense<[0, 3]> : tensor<2xi32> : tensor<2xi32>
  %one = dfg.const dense<1> : tensor<2xi32> : tensor<2xi32>
  // CHECK: dfg.strided_slice {{.*}} -> tensor<2xi32>
  // CHECK: dfg.tensor_scatter_update {{.*}} -> tensor<4x?xf32>
  %y = dfg.tensor_strided_slice_update %x, %begin, %end, %one, %v {begin_mask = 1 : i64, end_mask = 1 : i64}
    : (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<?x2xf32>) -> tensor<?x4xf32>
  // CHECK: dfg.tensor_scatter_add %arg2
  %z = dfg.inplace_add %table, %row, %new : (tensor<5x3xf32>, tensor<i32>, tensor<3xf32>) -> tensor<5x3xf32>
  dfg.return %y, %z : tensor<?x4xf32>, tensor<5x3xf32>
}

// CHECK-LABEL: dfg.func @formats
dfg.func @formats(%axes: tensor<3xi32>, %sizes: tensor<2x2xi32>) -> (tensor<3xi32>, tensor<2x2xi32>) {
  // CHECK: %[[MAP:.*]] = dfg.const dense<[0, 2, 3, 1]>
  // CHECK: dfg.gather_v2 %[[MAP]]
  %a = dfg.data_format_dim_map %axes : (tensor<3xi32>) -> tensor<3xi32>
  // Of images alone.
  // CHECK: %[[ORDER:.*]] = dfg.const dense<[1, 0]>
  // CHECK: dfg.gather_v2 %arg1, %[[ORDER]]
  %b = dfg.data_format_vec_permute %sizes {src_format = "NHWC", dst_format = "NCWH"} : (tensor<2x2xi32>) -> tensor<2x2xi32>
  dfg.return %a, %b : tensor<3xi32>, tensor<2x2xi32>
}

// CHECK-LABEL: dfg.func @drawn
dfg.func @drawn(%x: tensor<6x2xf32>, %seed: tensor<2xi64>, %n: tensor<3xf64>, %p: tensor<f64>, %m: tensor<f32>) -> (tensor<6x2xf32>, tensor<5x3xi64>, tensor<4xf32>) {
  // CHECK: %[[KEY:.*]]:2 = dfg.stateless_random_get_key_counter
  %key, %counter, %alg = dfg.stateless_random_get_key_counter_alg %seed : (tensor<2xi64>) -> (tensor<1xui64>, tensor<2xui64>, tensor<i32>)
  // A word a row.
  // CHECK: %[[WORDS:.*]] = dfg.stateless_random_uniform_full_int_v2 %{{.*}}, %[[KEY]]#1
  // CHECK: %[[ORDER:.*]] = dfg.shuffled_rows %[[WORDS]]
  // CHECK: dfg.gather_v2 %arg0, %[[ORDER]]
  %y = dfg.stateless_shuffle %x, %key, %counter, %alg : (tensor<6x2xf32>, tensor<1xui64>, tensor<2xui64>, tensor<i32>) -> tensor<6x2xf32>
  %sizes = dfg.const dense<[5, 3]> : tensor<2xi32> : tensor<2xi32>
  // CHECK: dfg.draw_binomial
  %b = dfg.stateless_random_binomial %sizes, %seed, %n, %p : (tensor<2xi32>, tensor<2xi64>, tensor<3xf64>, tensor<f64>) -> tensor<5x3xi64>
  %four = dfg.const dense<4> : tensor<1xi32> : tensor<1xi32>
  // CHECK: dfg.erfc
  // CHECK: dfg.ndtri
  %t = dfg.stateless_parameterized_truncated_normal %four, %seed, %m, %m, %m, %m
    : (tensor<1xi32>, tensor<2xi64>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  dfg.return %y, %b, %t : tensor<6x2xf32>, tensor<5x3xi64>, tensor<4xf32>
}
