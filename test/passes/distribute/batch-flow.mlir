// RUN: distc-opt %s --split-input-file --test-batch-flow | FileCheck %s

// A mean loss: the gradient is divided by the batch's size, so that the sum over the batch is a mean.
// CHECK-LABEL: @mean_loss
module @mean_loss {
  dfg.variable @w : tensor<4x3xf32> {trainable}
  dfg.graph {
    // CHECK: dfg.placeholder {flow = "sharded(0)"}
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %h = dfg.var_handle @w : !dfg.ref<tensor<4x3xf32>>
    // CHECK: dfg.read_variable {{.*}} {flow = "replicated"}
    %w = dfg.read_variable %h : (!dfg.ref<tensor<4x3xf32>>) -> tensor<4x3xf32>
    // CHECK: dfg.mat_mul {{.*}}flow = "sharded(0)"
    %y = dfg.mat_mul %x, %w : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    // CHECK: dfg.mean {{.*}} {flow = "partial mean"}
    %loss = dfg.mean %y, %all : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<f32>
    // CHECK: dfg.size {{.*}} {flow = "replicated * N^1"}
    %n = dfg.size %y : (tensor<?x3xf32>) -> tensor<i32>
    // CHECK: dfg.cast {{.*}} {flow = "replicated * N^1"}
    %f = dfg.cast %n : (tensor<i32>) -> tensor<f32>
    %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    // CHECK: dfg.real_div {{.*}} {flow = "replicated * N^-1"}
    %d = dfg.real_div %one, %f : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %s = dfg.shape %y : (tensor<?x3xf32>) -> tensor<2xi32>
    // CHECK: dfg.fill {{.*}} {flow = "sharded(0), uniform * N^-1"}
    %g = dfg.fill %s, %d : (tensor<2xi32>, tensor<f32>) -> tensor<?x3xf32>
    // CHECK: dfg.mat_mul {{.*}}flow = "partial mean"
    %gw = dfg.mat_mul %x, %g {transpose_a = true} : (tensor<?x4xf32>, tensor<?x3xf32>) -> tensor<4x3xf32>
    // CHECK: dfg.mat_mul {{.*}}flow = "partial sum"
    %sum = dfg.mat_mul %x, %y {transpose_a = true} : (tensor<?x4xf32>, tensor<?x3xf32>) -> tensor<4x3xf32>
    // A sum that is divided by the batch's size afterwards is a mean.
    // CHECK: dfg.real_div {{.*}} {flow = "partial mean"}
    %mean = dfg.real_div %sum, %f : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
    // CHECK: dfg.add_n {{.*}} {flow = "partial mean"}
    %both = dfg.add_n %gw, %mean : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    // CHECK: dfg.add_v2 {{.*}} {flow = "local"}
    %decay = dfg.add_v2 %gw, %w : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    // CHECK: dfg.l2_loss {{.*}} {flow = "local"}
    %norm = dfg.l2_loss %gw : (tensor<4x3xf32>) -> tensor<f32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    // The greatest of the batch is no sum.
    // CHECK: dfg.max {{.*}} {flow = "local"}
    %max = dfg.max %y, %zero : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<3xf32>
  }
}

// -----

// No first size is open: the batch is the one that the feeds have in common, and stays in each replica. Which numbers are its size shows
// where they meet the batch's rows and sums.
// CHECK-LABEL: @fixed_batch
module @fixed_batch {
  dfg.variable @state : tensor<32x4xf32>
  dfg.graph {
    // CHECK: dfg.placeholder {flow = "sharded(0)"}
    %x = dfg.placeholder : () -> tensor<32x4xf32>
    // CHECK: dfg.placeholder {flow = "replicated"}
    %rate = dfg.placeholder : () -> tensor<f32>
    %y = dfg.placeholder : () -> tensor<32x32xf32>
    // CHECK: dfg.mat_mul {{.*}}flow = "partial sum"
    %g = dfg.mat_mul %y, %x {transpose_a = true} : (tensor<32x32xf32>, tensor<32x4xf32>) -> tensor<32x4xf32>
    // A number that divides a sum over the batch counts its terms; one that divides rows is a number.
    %rows = dfg.const dense<32.0> : tensor<f32> : tensor<f32>
    // CHECK: dfg.real_div {{.*}}flow = "sharded(0)"
    %scaled = dfg.real_div %x, %rows : (tensor<32x4xf32>, tensor<f32>) -> tensor<32x4xf32>
    // CHECK: dfg.real_div {{.*}}flow = "partial mean"
    %mean = dfg.real_div %g, %rows : (tensor<32x4xf32>, tensor<f32>) -> tensor<32x4xf32>
    // So does one that divides copies by how many there are.
    %one = dfg.const dense<1.0> : tensor<1x1xf32> : tensor<1x1xf32>
    %sizes = dfg.const dense<[32, 4]> : tensor<2xi32> : tensor<2xi32>
    %count = dfg.const dense<128.0> : tensor<f32> : tensor<f32>
    // CHECK: dfg.tile {{.*}}flow = "sharded(0), uniform"
    %copies = dfg.tile %one, %sizes : (tensor<1x1xf32>, tensor<2xi32>) -> tensor<32x4xf32>
    // CHECK: dfg.real_div {{.*}}flow = "sharded(0), uniform * N^-1"
    %seed = dfg.real_div %copies, %count : (tensor<32x4xf32>, tensor<f32>) -> tensor<32x4xf32>
    // Drawn for the rows that it is multiplied with.
    // CHECK: dfg.random_uniform {{.*}}flow = "sharded(0)"
    %noise = dfg.random_uniform %sizes : (tensor<2xi32>) -> tensor<32x4xf32>
    // CHECK: dfg.mul {{.*}}flow = "sharded(0)"
    %kept = dfg.mul %x, %noise : (tensor<32x4xf32>, tensor<32x4xf32>) -> tensor<32x4xf32>
    // CHECK: dfg.mul {{.*}}flow = "sharded(0) * N^-1"
    %back = dfg.mul %kept, %seed : (tensor<32x4xf32>, tensor<32x4xf32>) -> tensor<32x4xf32>
    // Rows that are made in another way are not the batch's: positions, and what a variable holds.
    %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %size = dfg.const dense<32> : tensor<i32> : tensor<i32>
    %step = dfg.const dense<1> : tensor<i32> : tensor<i32>
    %range = dfg.range %zero, %size, %step : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<32xi32>
    %numbers = dfg.cast %range : (tensor<32xi32>) -> tensor<32xf32>
    %shape = dfg.const dense<[32, 1]> : tensor<2xi32> : tensor<2xi32>
    %positions = dfg.reshape %numbers, %shape : (tensor<32xf32>, tensor<2xi32>) -> tensor<32x1xf32>
    // CHECK: dfg.mul {{.*}}flow = "local"
    %placed = dfg.mul %x, %positions : (tensor<32x4xf32>, tensor<32x1xf32>) -> tensor<32x4xf32>
    %handle = dfg.var_handle @state : !dfg.ref<tensor<32x4xf32>>
    %state = dfg.read_variable %handle : (!dfg.ref<tensor<32x4xf32>>) -> tensor<32x4xf32>
    // CHECK: dfg.add_v2 {{.*}}flow = "local"
    %moved = dfg.add_v2 %x, %state : (tensor<32x4xf32>, tensor<32x4xf32>) -> tensor<32x4xf32>
  }
}

// -----

// What is computed of constants is a number like one: an element of a shape, a product.
// CHECK-LABEL: @fixed_batch_computed
module @fixed_batch_computed {
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<32x4xf32>
    %rows = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    // CHECK: dfg.sum {{.*}}flow = "partial sum"
    %sum = dfg.sum %x, %rows : (tensor<32x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %shape = dfg.const dense<[32, 4]> : tensor<2xi32> : tensor<2xi32>
    %sizes:2 = dfg.unpack %shape : (tensor<2xi32>) -> (tensor<i32>, tensor<i32>)
    %first = dfg.cast %sizes#0 : (tensor<i32>) -> tensor<f32>
    // CHECK: dfg.real_div {{.*}}flow = "partial mean"
    %mean = dfg.real_div %sum, %first : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %two = dfg.const dense<2.0> : tensor<f32> : tensor<f32>
    %twice = dfg.mul %two, %first : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // CHECK: dfg.real_div {{.*}}flow = "partial mean"
    %half = dfg.real_div %sum, %twice : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    // The same node is the same number: one by it shrinks with the batch.
    %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    // CHECK: dfg.real_div {{.*}}flow = "replicated * N^-1"
    %share = dfg.real_div %one, %first : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // CHECK: dfg.mul {{.*}}flow = "partial mean"
    %shared = dfg.mul %sum, %share : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    // Of two factors that may be it nothing shows which one is.
    %size = dfg.const dense<32.0> : tensor<f32> : tensor<f32>
    %other = dfg.const dense<32.0> : tensor<f32> : tensor<f32>
    %square = dfg.mul %size, %other : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // CHECK: dfg.real_div {{.*}}flow = "partial sum"
    %less = dfg.real_div %sum, %square : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    // What is no first size is no number of rows.
    %wide = dfg.const dense<[4, 32]> : tensor<2xi32> : tensor<2xi32>
    %widths:2 = dfg.unpack %wide : (tensor<2xi32>) -> (tensor<i32>, tensor<i32>)
    %width = dfg.cast %widths#1 : (tensor<i32>) -> tensor<f32>
    // CHECK: dfg.real_div {{.*}}flow = "partial sum"
    %scaled = dfg.real_div %sum, %width : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    // One less than the number is no power of it.
    // CHECK: dfg.sub {{.*}}flow = "replicated"
    %fewer = dfg.sub %first, %one : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // CHECK: dfg.real_div {{.*}}flow = "local"
    %unbiased = dfg.real_div %sum, %fewer : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    // Two sums of as many terms have twice as many.
    %both = dfg.add_v2 %sum, %sum : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %terms = dfg.const dense<64.0> : tensor<f32> : tensor<f32>
    // CHECK: dfg.real_div {{.*}}flow = "partial mean"
    %average = dfg.real_div %both, %terms : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  }
}

// -----

// Batches that are joined are cut where they were, by numbers too, and labels that are alike in each are theirs.
// CHECK-LABEL: @fixed_batch_segments
module @fixed_batch_segments {
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<8x2xf32>
    %y = dfg.placeholder : () -> tensor<8x2xf32>
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
    // CHECK: dfg.concat_v2 {{.*}}flow = "sharded(0 in segments 1+1)"
    %joined = dfg.concat_v2 %x, %y, %axis : (tensor<8x2xf32>, tensor<8x2xf32>, tensor<i32>) -> tensor<16x2xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %four = dfg.const dense<4> : tensor<1xi32> : tensor<1xi32>
    %eight = dfg.const dense<8> : tensor<1xi32> : tensor<1xi32>
    %twelve = dfg.const dense<12> : tensor<1xi32> : tensor<1xi32>
    %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32>
    // CHECK: dfg.strided_slice {{.*}}flow = "sharded(0)"
    %first = dfg.strided_slice %joined, %zero, %eight, %one : (tensor<16x2xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<8x2xf32>
    // CHECK: dfg.strided_slice {{.*}}flow = "local"
    %across = dfg.strided_slice %joined, %four, %twelve, %one : (tensor<16x2xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<8x2xf32>
    %begin = dfg.const dense<[8, 0]> : tensor<2xi32> : tensor<2xi32>
    %size = dfg.const dense<[8, 2]> : tensor<2xi32> : tensor<2xi32>
    // CHECK: dfg.slice {{.*}}flow = "sharded(0)"
    %second = dfg.slice %joined, %begin, %size : (tensor<16x2xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<8x2xf32>
    // Their gradients are zeros elsewhere.
    %behind = dfg.const dense<[[0, 8], [0, 0]]> : tensor<2x2xi32> : tensor<2x2xi32>
    // CHECK: dfg.pad {{.*}}flow = "sharded(0 in segments 1+1)"
    %padded = dfg.pad %first, %behind : (tensor<8x2xf32>, tensor<2x2xi32>) -> tensor<16x2xf32>
    %shape = dfg.const dense<[16, 2]> : tensor<2xi32> : tensor<2xi32>
    // CHECK: dfg.strided_slice_grad {{.*}}flow = "sharded(0 in segments 1+1)"
    %gradient = dfg.strided_slice_grad %shape, %zero, %eight, %one, %first : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<8x2xf32>) -> tensor<16x2xf32>
    // CHECK: dfg.const {{.*}}flow = "sharded(0 in segments 1+1)"
    %labels = dfg.const dense<[[1.0], [1.0], [1.0], [1.0], [1.0], [1.0], [1.0], [1.0], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0]]> : tensor<16x1xf32> : tensor<16x1xf32>
    // CHECK: dfg.mul {{.*}}flow = "sharded(0 in segments 1+1)"
    %labelled = dfg.mul %joined, %labels : (tensor<16x2xf32>, tensor<16x1xf32>) -> tensor<16x2xf32>
    // One more of the first: it tells rows by their positions.
    // CHECK: dfg.const {{.*}}flow = "replicated"
    %others = dfg.const dense<[[1.0], [1.0], [1.0], [1.0], [1.0], [1.0], [1.0], [1.0], [1.0], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0]]> : tensor<16x1xf32> : tensor<16x1xf32>
    // CHECK: dfg.mul {{.*}}flow = "local"
    %mixed = dfg.mul %joined, %others : (tensor<16x2xf32>, tensor<16x1xf32>) -> tensor<16x2xf32>
    // Two rows of each example are one segment, which is not cut.
    %pairs = dfg.placeholder : () -> tensor<8x4xf32>
    // CHECK: dfg.reshape {{.*}}flow = "sharded(0)"
    %flat = dfg.reshape %pairs, %shape : (tensor<8x4xf32>, tensor<2xi32>) -> tensor<16x2xf32>
    // CHECK: dfg.strided_slice {{.*}}flow = "local"
    %half = dfg.strided_slice %flat, %zero, %eight, %one : (tensor<16x2xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<8x2xf32>
  }
}

// -----

// A feed of a known size beside an open one is whole in each replica, whichever the graph has first; sums are sums.
// CHECK-LABEL: @whole_beside_open
module @whole_beside_open {
  dfg.graph {
    // CHECK: dfg.placeholder {flow = "replicated"}
    %weights = dfg.placeholder : () -> tensor<4xf32>
    // CHECK: dfg.placeholder {flow = "sharded(0)"}
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %y = dfg.mul %x, %weights : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    // CHECK: dfg.sum {{.*}} {flow = "partial sum"}
    %sum = dfg.sum %y, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32>
  }
}

// -----

// Joined along the batch's axis, the replicas' parts alternate in segments, until they are cut where they were joined.
// CHECK-LABEL: @segments
module @segments {
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
    // CHECK: dfg.concat_v2 {{.*}} {flow = "sharded(0 in segments 1+1)"}
    %twice = dfg.concat_v2 %x, %x, %axis : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<i32>) -> tensor<?x4xf32>
    %rows = dfg.const dense<[-1, 2]> : tensor<2xi32> : tensor<2xi32>
    // CHECK: dfg.reshape {{.*}} {flow = "sharded(0)"}
    %long = dfg.reshape %x, %rows : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x2xf32>
    %one = dfg.const dense<[1]> : tensor<1xi32> : tensor<1xi32>
    // CHECK: dfg.sum %{{[a-z0-9_]*}}, %{{[a-z0-9_]*}} {flow = "sharded(0 in segments 1+1)"
    %a = dfg.sum %twice, %one {keep_dims = true} : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?x1xf32>
    // CHECK: dfg.sum %{{[a-z0-9_]*}}, %{{[a-z0-9_]*}} {flow = "sharded(0)"
    %b = dfg.sum %long, %one {keep_dims = true} : (tensor<?x2xf32>, tensor<1xi32>) -> tensor<?x1xf32>
    // As many rows, but in another order.
    // CHECK: dfg.add_v2 {{.*}} {flow = "local"}
    %c = dfg.add_v2 %a, %b : (tensor<?x1xf32>, tensor<?x1xf32>) -> tensor<?x1xf32>
    // CHECK: dfg.split {{.*}} {flow = "sharded(0)"}
    %halves:2 = dfg.split %axis, %twice : (tensor<i32>, tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>)
    // CHECK: dfg.sum {{.*}} {flow = "partial sum"}
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %sum = dfg.sum %twice, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
  }
}

// -----

// The distinct values of a share, looked up by their positions, are the share's again.
// CHECK-LABEL: @distinct
module @distinct {
  dfg.graph {
    %i = dfg.placeholder : () -> tensor<?xi32>
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
    // CHECK: dfg.unique {{.*}} {flow = "local"}
    %u:2 = dfg.unique %i : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)
    %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
    %more = dfg.add_v2 %u#0, %two : (tensor<?xi32>, tensor<i32>) -> tensor<?xi32>
    // CHECK: dfg.gather_v2 {{.*}}flow = "sharded(0)"
    %g = dfg.gather_v2 %more, %u#1, %axis {batch_dims = 0 : i64} : (tensor<?xi32>, tensor<?xi32>, tensor<i32>) -> tensor<?xi32>
    // CHECK: dfg.gather_v2 {{.*}}flow = "local"
    %h = dfg.gather_v2 %more, %i, %axis {batch_dims = 0 : i64} : (tensor<?xi32>, tensor<?xi32>, tensor<i32>) -> tensor<?xi32>
  }
}

// -----

// What works along the batch, and what takes a share's sum for the batch's.
// CHECK-LABEL: @local
module @local {
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?xf32>
    %w = dfg.placeholder : () -> tensor<?xf32>
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %axes = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    // CHECK: dfg.cumsum {{.*}} {flow = "local"}
    %a = dfg.cumsum %x, %axis : (tensor<?xf32>, tensor<i32>) -> tensor<?xf32>
    // CHECK: dfg.reverse_v2 {{.*}} {flow = "local"}
    %b = dfg.reverse_v2 %x, %axes : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
    %n = dfg.size %x : (tensor<?xf32>) -> tensor<i32>
    %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
    // CHECK: dfg.range {{.*}} {flow = "local"}
    %c = dfg.range %axis, %n, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32>
    // CHECK: dfg.sum {{.*}} {flow = "partial sum"}
    %sum = dfg.sum %w, %axes : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32>
    // A weighted mean's gradient.
    // CHECK: dfg.real_div {{.*}} {flow = "local"}
    %d = dfg.real_div %w, %sum : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
    // CHECK: dfg.square {{.*}} {flow = "local"}
    %e = dfg.square %sum : (tensor<f32>) -> tensor<f32>
    // The number of weights is the batch's size.
    // CHECK: dfg.ones_like {{.*}} {flow = "sharded(0), uniform"}
    %ones = dfg.ones_like %w : (tensor<?xf32>) -> tensor<?xf32>
    // CHECK: dfg.sum {{.*}} {flow = "replicated * N^1"}
    %count = dfg.sum %ones, %axes : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32>
    // CHECK: dfg.real_div {{.*}} {flow = "sharded(0) * N^-1"}
    %f = dfg.real_div %w, %count : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
    %base = dfg.const dense<1.0> : tensor<3xf32> : tensor<3xf32>
    %zeros = dfg.const dense<0.0> : tensor<3xf32> : tensor<3xf32>
    %rows = dfg.placeholder : () -> tensor<?x1xi32>
    // The base is there once, not once a replica.
    // CHECK: dfg.tensor_scatter_add {{.*}} {flow = "local"}
    %g = dfg.tensor_scatter_add %base, %rows, %x : (tensor<3xf32>, tensor<?x1xi32>, tensor<?xf32>) -> tensor<3xf32>
    // CHECK: dfg.tensor_scatter_add {{.*}} {flow = "partial sum"}
    %h = dfg.tensor_scatter_add %zeros, %rows, %x : (tensor<3xf32>, tensor<?x1xi32>, tensor<?xf32>) -> tensor<3xf32>
  }
}

// -----

// With values of the replicas' own.
// CHECK-LABEL: @coupling
module @coupling attributes {dist.coupling = "replica"} {
  dfg.graph {
    %w = dfg.placeholder : () -> tensor<?xf32>
    %axes = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    // CHECK: dfg.mean {{.*}} {flow = "partial mean"}
    %mean = dfg.mean %w, %axes : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32>
    // CHECK: dfg.sub {{.*}} {flow = "sharded(0)"}
    %d = dfg.sub %w, %mean : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32>
  }
}

// -----

// A size that is computed from the examples is that of the share, also among sizes that are known.
// CHECK-LABEL: @counted
module @counted {
  dfg.graph {
    %w = dfg.placeholder : () -> tensor<?xi1>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %four = dfg.const dense<4> : tensor<i32> : tensor<i32>
    %numbers = dfg.cast %w : (tensor<?xi1>) -> tensor<?xi32>
    // CHECK: dfg.sum {{.*}} {flow = "partial sum"}
    %count = dfg.sum %numbers, %zero : (tensor<?xi32>, tensor<1xi32>) -> tensor<i32>
    // CHECK: dfg.pack {{.*}}flow = "local"
    %sizes = dfg.pack %count, %four : (tensor<i32>, tensor<i32>) -> tensor<2xi32>
    // CHECK: dfg.prod {{.*}}flow = "local"
    %all = dfg.prod %sizes, %zero : (tensor<2xi32>, tensor<1xi32>) -> tensor<i32>
  }
}

// -----

// A slice along the batch's axis takes whole segments; what is not between ends of segments is no rows of the replica's. Its gradient is
// zeros beside them, in the segments of what was sliced.
// CHECK-LABEL: @slices_of_segments
module @slices_of_segments {
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %two = dfg.const dense<[2, 1]> : tensor<2xi32> : tensor<2xi32>
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %wide = dfg.const dense<[-1, 2]> : tensor<2xi32> : tensor<2xi32>
    %narrow = dfg.placeholder : () -> tensor<?x2xf32>
    %long = dfg.reshape %x, %wide : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x2xf32>
    // CHECK: dfg.concat_v2 {{.*}} {flow = "sharded(0 in segments 1+2)"}
    %all = dfg.concat_v2 %narrow, %long, %axis : (tensor<?x2xf32>, tensor<?x2xf32>, tensor<i32>) -> tensor<?x2xf32>
    %shape = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %one = dfg.const dense<[1]> : tensor<1xi32> : tensor<1xi32>
    %b = dfg.strided_slice %shape, %zero, %one, %one : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
    %twice = dfg.add_v2 %b, %b : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32>
    // CHECK: dfg.strided_slice {{.*}} {begin_mask = 1 : i64, flow = "sharded(0)"}
    %first = dfg.strided_slice %all, %zero, %b, %one {begin_mask = 1 : i64} : (tensor<?x2xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?x2xf32>
    // CHECK: dfg.strided_slice {{.*}} {end_mask = 1 : i64, flow = "sharded(0)"}
    %rest = dfg.strided_slice %all, %b, %zero, %one {end_mask = 1 : i64} : (tensor<?x2xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?x2xf32>
    // CHECK: dfg.strided_slice {{.*}} {begin_mask = 1 : i64, flow = "local"}
    %part = dfg.strided_slice %all, %zero, %twice, %one {begin_mask = 1 : i64} : (tensor<?x2xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?x2xf32>
    %sizes = dfg.shape %all : (tensor<?x2xf32>) -> tensor<2xi32>
    // CHECK: dfg.strided_slice_grad {{.*}}flow = "sharded(0 in segments 1+2)"
    %back = dfg.strided_slice_grad %sizes, %b, %zero, %one, %rest {end_mask = 1 : i64} : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %pair = dfg.concat_v2 %narrow, %narrow, %axis : (tensor<?x2xf32>, tensor<?x2xf32>, tensor<i32>) -> tensor<?x2xf32>
    // CHECK: dfg.strided_slice_grad {{.*}}flow = "local"
    %wrong = dfg.strided_slice_grad %sizes, %b, %zero, %one, %pair {end_mask = 1 : i64} : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<?x2xf32>) -> tensor<?x2xf32>
    // Of the whole batch the slice began elsewhere, which no size shows.
    %ten = dfg.const dense<[10, 2]> : tensor<2xi32> : tensor<2xi32>
    %mean = dfg.mean %narrow, %axis : (tensor<?x2xf32>, tensor<i32>) -> tensor<2xf32>
    // CHECK: dfg.strided_slice_grad {{.*}}flow = "local"
    %row = dfg.strided_slice_grad %ten, %b, %zero, %one, %mean {shrink_axis_mask = 1 : i64} : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<2xf32>) -> tensor<10x2xf32>
    // What is printed besides does not matter.
    // CHECK: dfg.print {{.*}}flow = "sharded(0)"
    %printed = dfg.print %x, %part {message = ""} : (tensor<?x4xf32>, tensor<?x2xf32>) -> tensor<?x4xf32>
  }
}

// -----

// A share's size beside one of the whole batch's that nothing is known of (half of it, rounded up) are not sizes of one thing.
// CHECK-LABEL: @share_beside_unknown_size
module @share_beside_unknown_size attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %all = dist.all_gather bucket 0 (%x) name "x" : (tensor<?x4xf32>) -> tensor<?x4xf32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %two = dfg.const dense<[2]> : tensor<1xi32> : tensor<1xi32>
    %axis = dfg.const dense<1> : tensor<i32> : tensor<i32>
    %half = dfg.strided_slice %all, %zero, %zero, %two {begin_mask = 1 : i64, end_mask = 1 : i64} : (tensor<?x4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?x4xf32>
    %of_half = dfg.shape %half : (tensor<?x4xf32>) -> tensor<2xi32>
    %of_share = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32>
    // CHECK: dfg.concat_offset {{.*}} {flow = "local"}
    %offsets:2 = dfg.concat_offset %axis, %of_half, %of_share : (tensor<i32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
    // CHECK: dfg.concat_offset {{.*}} {flow = "replicated"}
    %shares:2 = dfg.concat_offset %axis, %of_share, %of_share : (tensor<i32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>)
  }
}

// -----

// Windows that are drawn are the same for all images, the best path and the best boxes of each example its own. How many labels there are in all
// is no example's.
// CHECK-LABEL: @rows_by_themselves
module @rows_by_themselves {
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x6x6x1xf32>
    // CHECK: dfg.fractional_sequences {{.*}}flow = "replicated", {{.*}}
    %rows, %columns = dfg.fractional_sequences {sizes = [6, 6, 4, 4], pseudo_random = false, deterministic = true, seed = 1 : i64, seed2 = 2 : i64} : () -> (tensor<5xi64>, tensor<5xi64>)
    // CHECK: dfg.fractional_max {{.*}}flow = "sharded(0)"
    %y = dfg.fractional_max %x, %rows, %columns {overlapping = false} : (tensor<?x6x6x1xf32>, tensor<5xi64>, tensor<5xi64>) -> tensor<?x4x4x1xf32>
    // CHECK: dfg.fractional_max_pool_grad {{.*}}flow = "sharded(0)"
    %d = dfg.fractional_max_pool_grad %x, %y, %y, %rows, %columns
      : (tensor<?x6x6x1xf32>, tensor<?x4x4x1xf32>, tensor<?x4x4x1xf32>, tensor<5xi64>, tensor<5xi64>) -> tensor<?x6x6x1xf32>
    // Of the node that TensorFlow runs all replicas draw the same by a seed alone.
    // CHECK: dfg.fractional_max_pool {{.*}}flow = "sharded(0)"
    %p:3 = dfg.fractional_max_pool %x {pooling_ratio = [1.0 : f32, 1.5 : f32, 1.5 : f32, 1.0 : f32], deterministic = true, seed = 1 : i64, seed2 = 2 : i64}
      : (tensor<?x6x6x1xf32>) -> (tensor<?x4x4x1xf32>, tensor<5xi64>, tensor<5xi64>)
    // CHECK: dfg.fractional_max_pool {{.*}}flow = "local"
    %q:3 = dfg.fractional_max_pool %x {pooling_ratio = [1.0 : f32, 1.5 : f32, 1.5 : f32, 1.0 : f32]}
      : (tensor<?x6x6x1xf32>) -> (tensor<?x4x4x1xf32>, tensor<5xi64>, tensor<5xi64>)
    %scores = dfg.placeholder : () -> tensor<?x5x3xf32>
    %lengths = dfg.placeholder : () -> tensor<?xi32>
    %order = dfg.const dense<[1, 0, 2]> : tensor<3xi32> : tensor<3xi32>
    %steps = dfg.transpose %scores, %order : (tensor<?x5x3xf32>, tensor<3xi32>) -> tensor<5x?x3xf32>
    // CHECK: dfg.ctc_greedy_decoder {{.*}}flow = "local"
    %path:4 = dfg.ctc_greedy_decoder %steps, %lengths : (tensor<5x?x3xf32>, tensor<?xi32>) -> (tensor<?x2xi64>, tensor<?xi64>, tensor<2xi64>, tensor<?x1xf32>)
    // CHECK: dfg.neg {{.*}}flow = "sharded(0)"
    %score = dfg.neg %path#3 : (tensor<?x1xf32>) -> tensor<?x1xf32>
    // CHECK: dfg.isotonic_regression {{.*}}sharded(0)
    %nearest, %pieces = dfg.isotonic_regression %scores : (tensor<?x5x3xf32>) -> (tensor<?x5x3xf32>, tensor<?x5x3xi32>)
    %boxes = dfg.placeholder : () -> tensor<?x5x1x4xf32>
    %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
    %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
    // CHECK: dfg.combined_non_max_suppression {{.*}}sharded(0)
    %best:4 = dfg.combined_non_max_suppression %boxes, %scores, %two, %two, %half, %half
      : (tensor<?x5x1x4xf32>, tensor<?x5x3xf32>, tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>) -> (tensor<?x2x4xf32>, tensor<?x2xf32>, tensor<?x2xf32>, tensor<?xi32>)
  }
}

// -----

// An element that is not known is not a constant where others of its tensor are sizes: it is what it was made of.
// CHECK-LABEL: @unknown_beside_sizes
module @unknown_beside_sizes attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %zeros = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %ones = dfg.const dense<[1]> : tensor<1xi32> : tensor<1xi32>
    %two = dfg.const dense<[2]> : tensor<1xi32> : tensor<1xi32>
    %places = dfg.const dense<[[0], [1]]> : tensor<2x1xi32> : tensor<2x1xi32>
    %shape = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32>
    %size = dfg.strided_slice %shape, %zeros, %ones, %ones {shrink_axis_mask = 1 : i64} : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32>
    %sizes = dfg.fill %two, %size : (tensor<1xi32>, tensor<i32>) -> tensor<2xi32>
    // CHECK: dfg.gather_nd {{.*}} {flow = "replicated * N^1"}
    %taken = dfg.gather_nd %sizes, %places : (tensor<2xi32>, tensor<2x1xi32>) -> tensor<2xi32>
    // CHECK: dfg.concat_v2 {{.*}} {flow = "replicated * N^1"}
    %both = dfg.concat_v2 %taken, %sizes, %zero : (tensor<2xi32>, tensor<2xi32>, tensor<i32>) -> tensor<4xi32>
    // CHECK: dfg.unpack {{.*}} {flow = "replicated * N^1"}
    %each:4 = dfg.unpack %both : (tensor<4xi32>) -> (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>)
    // Beside a constant they are not of one scale.
    // CHECK: dfg.concat_v2 {{.*}} {flow = "local"}
    %mixed = dfg.concat_v2 %taken, %two, %zero : (tensor<2xi32>, tensor<1xi32>, tensor<i32>) -> tensor<3xi32>
    // CHECK: dfg.unpack {{.*}} {flow = "local"}
    %of_mixed:3 = dfg.unpack %mixed : (tensor<3xi32>) -> (tensor<i32>, tensor<i32>, tensor<i32>)
  }
}

// -----

// All replicas' rows, repeated as often as a share has rows: the product is no size that is known, so that nothing shows how often.
// CHECK-LABEL: @repeated_by_share
module @repeated_by_share attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
    %size = dfg.size %x : (tensor<?x4xf32>) -> tensor<i32>
    %times = dfg.pack %size, %one : (tensor<i32>, tensor<i32>) -> tensor<2xi32>
    %all = dist.all_gather bucket 0 (%x) name "x" : (tensor<?x4xf32>) -> tensor<?x4xf32>
    // CHECK: dfg.tile {{.*}} {flow = "local"}
    %tile = dfg.tile %all, %times : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
  }
}

// -----

// An einsum, as exports have it: rows stay where their letter, or an axis of "...", goes, and are summed where it does not.
// CHECK-LABEL: @einsum
module @einsum attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4x3xf32>
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x5x4xf32>
    %y = dfg.placeholder : () -> tensor<?x5x4xf32>
    %handle = dfg.var_handle @w : !dfg.ref<tensor<4x3xf32>>
    %w = dfg.read_variable %handle : (!dfg.ref<tensor<4x3xf32>>) -> tensor<4x3xf32>
    // CHECK: dfg.einsum {{.*}} {equation = "bid,bjd->bij", flow = "sharded(0)"}
    %scores = dfg.einsum %x, %y {equation = "bid,bjd->bij"} : (tensor<?x5x4xf32>, tensor<?x5x4xf32>) -> tensor<?x5x5xf32>
    // CHECK: dfg.einsum {{.*}} {equation = "...d,dk->k...", flow = "sharded(1)"}
    %turned = dfg.einsum %x, %w {equation = "...d,dk->k..."} : (tensor<?x5x4xf32>, tensor<4x3xf32>) -> tensor<3x?x5xf32>
    // CHECK: dfg.einsum {{.*}} {equation = "kbi,bid->kd", flow = "partial sum"}
    %sum = dfg.einsum %turned, %y {equation = "kbi,bid->kd"} : (tensor<3x?x5xf32>, tensor<?x5x4xf32>) -> tensor<3x4xf32>
    // CHECK: dfg.einsum {{.*}} {equation = "kd,dj->kj", flow = "partial sum"}
    %linear = dfg.einsum %sum, %w {equation = "kd,dj->kj"} : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
    // Rows meet each other, and those of one place others of another.
    // CHECK: dfg.einsum {{.*}} {equation = "bid,cid->bc", flow = "local"}
    %pairs = dfg.einsum %x, %y {equation = "bid,cid->bc"} : (tensor<?x5x4xf32>, tensor<?x5x4xf32>) -> tensor<?x?xf32>
    // CHECK: dfg.einsum {{.*}} {equation = "bid,ibd->bi", flow = "local"}
    %crossed = dfg.einsum %x, %y {equation = "bid,ibd->bi"} : (tensor<?x5x4xf32>, tensor<?x5x4xf32>) -> tensor<?x5xf32>
  }
}

// -----

// Where a size is not known, no shape is; but the rows are those of a share, and who asks how many there are is told that.
// CHECK-LABEL: @rows_of_unknown_shape
module @rows_of_unknown_shape attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4x?xf32>
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %one = dfg.const dense<1.0> : tensor<1xf32> : tensor<1xf32>
    %handle = dfg.var_handle @w : !dfg.ref<tensor<4x?xf32>>
    %w = dfg.read_variable %handle : (!dfg.ref<tensor<4x?xf32>>) -> tensor<4x?xf32>
    // CHECK: dfg.einsum {{.*}} flow = "sharded(0)"
    %y = dfg.einsum %x, %w {equation = "bd,dk->bk"} : (tensor<?x4xf32>, tensor<4x?xf32>) -> tensor<?x?xf32>
    %axis = dfg.const dense<1> : tensor<i32> : tensor<i32>
    %rows = dfg.max %y, %axis : (tensor<?x?xf32>, tensor<i32>) -> tensor<?xf32>
    // CHECK: dfg.shape {{.*}} {flow = "replicated * N^1"}
    %shape = dfg.shape %rows : (tensor<?xf32>) -> tensor<1xi32>
    // CHECK: dfg.tile {{.*}} {flow = "sharded(0), uniform"}
    %tile = dfg.tile %one, %shape : (tensor<1xf32>, tensor<1xi32>) -> tensor<?xf32>
  }
}
