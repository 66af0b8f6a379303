// RUN: distc-opt %s --dfg-decompose=last --split-input-file --verify-diagnostics

dfg.func @size(%x: tensor<1x2x2x1xf32>, %n: tensor<2xi32>) -> tensor<*xf32> {
  // expected-error@unknown {{node 'resized' (resize_bilinear) has no code here: an operand that says sizes, axes or counts is not constant}}
  %y = dfg.resize_bilinear %x, %n : (tensor<1x2x2x1xf32>, tensor<2xi32>) -> tensor<*xf32> loc("resized")
  dfg.return %y : tensor<*xf32>
}

// -----

dfg.func @segments(%x: tensor<4x2xf32>, %ids: tensor<4xi32>) -> tensor<*xf32> {
  // expected-error@+1 {{(segment_sum) has no code here: the number of segments depends on the data; say it by the operation's form with num_segments, or unsorted_segment_*}}
  %y = dfg.segment_sum %x, %ids : (tensor<4x2xf32>, tensor<4xi32>) -> tensor<*xf32>
  dfg.return %y : tensor<*xf32>
}

// -----

dfg.graph attributes {fetches = ["bn:1"]} {
  %x = dfg.placeholder : () -> tensor<?x4x4x8xf32> loc("x")
  %c = dfg.const dense<1.0> : tensor<8xf32> : tensor<8xf32> loc("c")
  // expected-error@unknown {{'bn:1' is an output beside the first of a node (fused_batch_norm) that is compiled as several; fetch an Identity of it}}
  %y:5 = dfg.fused_batch_norm %x, %c, %c, %c, %c {is_training = false}
    : (tensor<?x4x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    -> (tensor<?x4x4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) loc("bn")
}

// -----

dfg.func @axes(%x: tensor<2x3xf32>, %n: tensor<2xi32>) -> tensor<*xf32> {
  // expected-error@+1 {{(reverse_sequence) has no code here: seq_dim and batch_dim are not two of its operand's axes}}
  %y = dfg.reverse_sequence %x, %n {seq_dim = 1, batch_dim = 9007199254740992} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<*xf32>
  dfg.return %y : tensor<*xf32>
}

// -----

dfg.func @stride(%x: tensor<1x4x4x1xf32>) -> tensor<*xf32> {
  // expected-error@+1 {{(extract_image_patches) has no code here: attribute 'strides' has the entry 0, outside of [1, 1073741824]}}
  %y = dfg.extract_image_patches %x {ksizes = [1, 2, 2, 1], strides = [1, 0, 1, 1], rates = [1, 1, 1, 1], padding = "SAME"} : (tensor<1x4x4x1xf32>) -> tensor<*xf32>
  dfg.return %y : tensor<*xf32>
}

// -----

dfg.func @patches(%x: tensor<1x4x4x1xf32>) -> tensor<*xf32> {
  // expected-error@+1 {{(extract_image_patches) has no code here: its window has more than 8192 elements}}
  %y = dfg.extract_image_patches %x {ksizes = [1, 1000000, 2, 1], strides = [1, 1, 1, 1], rates = [1, 1, 1, 1], padding = "SAME"} : (tensor<1x4x4x1xf32>) -> tensor<*xf32>
  dfg.return %y : tensor<*xf32>
}

// -----

dfg.func @positions(%x: tensor<1x4x4x1xf32>) -> tensor<*xi64> {
  // expected-error@+1 {{(max_pool_with_argmax) has no code here: attribute 'strides' has the entry -9223372036854775808}}
  %y, %i = dfg.max_pool_with_argmax %x {ksize = [1, 2, 2, 1], strides = [1, -9223372036854775808, 1, 1], padding = "SAME"} : (tensor<1x4x4x1xf32>) -> (tensor<*xf32>, tensor<*xi64>)
  dfg.return %i : tensor<*xi64>
}

// -----

dfg.func @volumes(%x: tensor<1x4x4x4x1xf32>) -> tensor<*xf32> {
  // expected-error@+1 {{(max_pool_3d) has no code here: attribute 'ksize' joins images or channels}}
  %y = dfg.max_pool_3d %x {ksize = [2, 2, 2, 2, 1], strides = [1, 1, 1, 1, 1], padding = "SAME"} : (tensor<1x4x4x4x1xf32>) -> tensor<*xf32>
  dfg.return %y : tensor<*xf32>
}

// -----

dfg.func @large(%x: tensor<1x4x4x1xf32>) -> tensor<*xf32> {
  %n = dfg.const dense<[2000000000, 1]> : tensor<2xi32> : tensor<2xi32>
  // expected-error@+1 {{(resize_nearest_neighbor) has no code here: the images are too large to be resized, or have no pixels}}
  %y = dfg.resize_nearest_neighbor %x, %n : (tensor<1x4x4x1xf32>, tensor<2xi32>) -> tensor<*xf32>
  dfg.return %y : tensor<*xf32>
}

// -----

dfg.func @channels_first(%x: tensor<2x3x4x4xf32>, %y: tensor<2x3x2x2xf32>) -> tensor<*xf32> {
  // expected-error@+1 {{(max_pool_grad_grad) has no code here: data_format NCHW has no code; export the graph with NHWC}}
  %r = dfg.max_pool_grad_grad %x, %y, %x {ksize = [1, 1, 2, 2], strides = [1, 1, 2, 2], padding = "VALID", data_format = "NCHW"}
    : (tensor<2x3x4x4xf32>, tensor<2x3x2x2xf32>, tensor<2x3x4x4xf32>) -> tensor<*xf32>
  dfg.return %r : tensor<*xf32>
}

// -----

dfg.func @order(%at: tensor<?x2xi64>, %v: tensor<?xf32>, %shape: tensor<2xi64>) -> (tensor<*xi64>, tensor<*xf32>) {
  // expected-error@+1 {{(sparse_reorder) has no code here: how many values a sparse tensor has depends on the data, so that they are not put in order}}
  %to, %w = dfg.sparse_reorder %at, %v, %shape : (tensor<?x2xi64>, tensor<?xf32>, tensor<2xi64>) -> (tensor<*xi64>, tensor<*xf32>)
  dfg.return %to, %w : tensor<*xi64>, tensor<*xf32>
}

// -----

dfg.func @dense(%at: tensor<5x2xi64>, %v: tensor<5xf32>, %dense: tensor<3xf32>) -> tensor<*xf32> {
  %shape = dfg.const dense<[2, 4]> : tensor<2xi64> : tensor<2xi64>
  // expected-error@+1 {{(sparse_dense_cwise_add) has no code here: its dense operand of shape [3] does not broadcast to [2, 4]}}
  %w = dfg.sparse_dense_cwise_add %at, %v, %shape, %dense : (tensor<5x2xi64>, tensor<5xf32>, tensor<2xi64>, tensor<3xf32>) -> tensor<*xf32>
  dfg.return %w : tensor<*xf32>
}

// -----

dfg.func @axis(%at: tensor<5x2xi64>, %v: tensor<5xf32>, %shape: tensor<2xi64>) -> tensor<*xf32> {
  %axis = dfg.const dense<2> : tensor<1xi32> : tensor<1xi32>
  // expected-error@+1 {{(sparse_reduce_sum) has no code here: it reduces axis 2 of 2}}
  %w = dfg.sparse_reduce_sum %at, %v, %shape, %axis : (tensor<5x2xi64>, tensor<5xf32>, tensor<2xi64>, tensor<1xi32>) -> tensor<*xf32>
  dfg.return %w : tensor<*xf32>
}

// -----

dfg.func @nth(%x: tensor<2x5xf32>) -> tensor<*xf32> {
  %n = dfg.const dense<5> : tensor<i32> : tensor<i32>
  // expected-error@+1 {{(nth_element) has no code here: element 5 of a row of shape [2, 5] is not known}}
  %y = dfg.nth_element %x, %n : (tensor<2x5xf32>, tensor<i32>) -> tensor<*xf32>
  dfg.return %y : tensor<*xf32>
}

// -----

dfg.func @sizes(%i: tensor<2xi32>) -> tensor<*xi32> {
  %sizes = dfg.const dense<[3, 0]> : tensor<2xi32> : tensor<2xi32>
  // expected-error@+1 {{(unravel_index) has no code here: its sizes are not those of a tensor with elements}}
  %y = dfg.unravel_index %i, %sizes : (tensor<2xi32>, tensor<2xi32>) -> tensor<*xi32>
  dfg.return %y : tensor<*xi32>
}

// -----

dfg.func @sum_of_sparse(%at: tensor<5x2xi64>, %v: tensor<5xf32>, %shape: tensor<2xi64>) -> tensor<*xf32> {
  %none = dfg.const dense<0.0> : tensor<f32> : tensor<f32>
  // expected-error@+1 {{(sparse_add) has no code here: it adds sparse tensors whose places are no constants, so that how many there are is not known}}
  %p, %w, %z = dfg.sparse_add %at, %v, %shape, %at, %v, %shape, %none
    : (tensor<5x2xi64>, tensor<5xf32>, tensor<2xi64>, tensor<5x2xi64>, tensor<5xf32>, tensor<2xi64>, tensor<f32>) -> (tensor<*xi64>, tensor<*xf32>, tensor<2xi64>)
  dfg.return %w : tensor<*xf32>
}

// -----

dfg.func @small_sums(%v: tensor<1xf32>) -> tensor<*xf32> {
  %at = dfg.const dense<[[0, 1]]> : tensor<1x2xi64> : tensor<1x2xi64>
  %shape = dfg.const dense<[3, 2]> : tensor<2xi64> : tensor<2xi64>
  %small = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  // expected-error@+1 {{(sparse_add) has no code here: it leaves out small sums, so that how many there are depends on the data}}
  %p, %w, %z = dfg.sparse_add %at, %v, %shape, %at, %v, %shape, %small
    : (tensor<1x2xi64>, tensor<1xf32>, tensor<2xi64>, tensor<1x2xi64>, tensor<1xf32>, tensor<2xi64>, tensor<f32>) -> (tensor<*xi64>, tensor<*xf32>, tensor<2xi64>)
  dfg.return %w : tensor<*xf32>
}

// -----

dfg.func @bands(%d: tensor<5x4xf32>, %b: tensor<4x3xf32>) -> tensor<4x3xf32> {
  // expected-error@+1 {{(banded_triangular_solve) has no code here: it has 5 diagonals of a matrix of 4 rows}}
  %x = dfg.banded_triangular_solve %d, %b : (tensor<5x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  dfg.return %x : tensor<4x3xf32>
}

// -----

dfg.func @steps(%n: tensor<i64>, %x: tensor<?x5x4xf32>, %s: tensor<5x3xf32>, %w: tensor<7x12xf32>, %p: tensor<3xf32>, %b: tensor<12xf32>) -> tensor<*xf32> {
  // expected-error@+1 {{(block_lstm_v2) has no code here: how many steps its layer has is not known}}
  %y:7 = dfg.block_lstm_v2 %n, %x, %s, %s, %w, %p, %p, %p, %b
    : (tensor<i64>, tensor<?x5x4xf32>, tensor<5x3xf32>, tensor<5x3xf32>, tensor<7x12xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<12xf32>)
    -> (tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>)
  dfg.return %y#6 : tensor<*xf32>
}

// -----

dfg.func @longest(%v: tensor<5xf32>, %splits: tensor<4xi64>) -> tensor<*xf32> {
  %any = dfg.const dense<-1> : tensor<i64> : tensor<i64>
  %none = dfg.const dense<0.0> : tensor<f32> : tensor<f32>
  // expected-error@+1 {{(ragged_tensor_to_tensor) has no code here: how long its longest row is depends on the data; say the size, as in to_tensor(shape=[None, 20])}}
  %x = dfg.ragged_tensor_to_tensor %any, %v, %none, %splits {row_partition_types = ["ROW_SPLITS"]}
    : (tensor<i64>, tensor<5xf32>, tensor<f32>, tensor<4xi64>) -> tensor<*xf32>
  dfg.return %x : tensor<*xf32>
}

// -----

dfg.func @taken(%v: tensor<4xf32>, %rows: tensor<2xi32>) -> tensor<*xf32> {
  %splits = dfg.const dense<[0, 3, 3, 4]> : tensor<4xi64> : tensor<4xi64>
  // expected-error@+1 {{(ragged_gather) has no code here: which rows of a ragged tensor are taken depends on the data, so that how many values there are does}}
  %t, %y = dfg.ragged_gather %splits, %v, %rows {OUTPUT_RAGGED_RANK = 1 : i64} : (tensor<4xi64>, tensor<4xf32>, tensor<2xi32>) -> (tensor<3xi64>, tensor<*xf32>)
  dfg.return %y : tensor<*xf32>
}

// -----

dfg.func @range(%starts: tensor<2xi32>) -> tensor<*xi32> {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  // expected-error@+1 {{(ragged_range) has no code here: how long its ranges are depends on the data}}
  %s, %x = dfg.ragged_range %starts, %one, %one : (tensor<2xi32>, tensor<i32>, tensor<i32>) -> (tensor<3xi64>, tensor<*xi32>)
  dfg.return %x : tensor<*xi32>
}

// -----

dfg.func @places(%v: tensor<5xf32>, %splits: tensor<4xi64>) -> tensor<*xi64> {
  // expected-error@+1 {{(ragged_tensor_to_sparse) has no code here: where the rows of its ragged tensor begin depends on the data}}
  %p, %w, %s = dfg.ragged_tensor_to_sparse %splits, %v : (tensor<4xi64>, tensor<5xf32>) -> (tensor<*xi64>, tensor<*xf32>, tensor<2xi64>)
  dfg.return %p : tensor<*xi64>
}

// -----

dfg.func @ratio(%x: tensor<2x7x5x3xf32>) -> tensor<*xf32> {
  // expected-error@+1 {{(fractional_max_pool) has no code here: its pooling_ratio is not of the form [1, rows, columns, 1]}}
  %y:3 = dfg.fractional_max_pool %x {pooling_ratio = [2.0 : f32, 1.5 : f32, 1.5 : f32, 1.0 : f32]} : (tensor<2x7x5x3xf32>) -> (tensor<*xf32>, tensor<*xi64>, tensor<*xi64>)
  dfg.return %y#0 : tensor<*xf32>
}

// -----

dfg.func @parts(%at: tensor<5x2xi64>, %v: tensor<5xf32>) -> tensor<*xi64> {
  %axis = dfg.const dense<1> : tensor<i64> : tensor<i64>
  %shape = dfg.const dense<[4, 2]> : tensor<2xi64> : tensor<2xi64>
  // expected-error@+1 {{(sparse_split) has no code here: it splits 2 axes along axis 1 into 3}}
  %p:9 = dfg.sparse_split %axis, %at, %v, %shape {num_split = 3 : i64} : (tensor<i64>, tensor<5x2xi64>, tensor<5xf32>, tensor<2xi64>)
    -> (tensor<*xi64>, tensor<*xi64>, tensor<*xi64>, tensor<*xf32>, tensor<*xf32>, tensor<*xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>)
  dfg.return %p#0 : tensor<*xi64>
}
