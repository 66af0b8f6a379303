// RUN: distc-opt %s --dfg-infer-shapes | FileCheck %s --check-prefixes=CHECK,SYMBOLIC
// RUN: distc-opt %s --dfg-infer-shapes=batch=8 | FileCheck %s --check-prefixes=CHECK,BATCH
// RUN: distc-opt %s --dfg-infer-shapes="batch=8 feeds=x=16x3" --mlir-print-debuginfo | FileCheck %s --check-prefix=FEED

// CHECK-LABEL: dfg.graph
dfg.graph {
  // SYMBOLIC: dfg.placeholder {{.*}} -> tensor<?x3xf32>
  // BATCH: dfg.placeholder {{.*}} -> tensor<8x3xf32>
  // FEED: dfg.placeholder {{.*}} -> tensor<16x3xf32>
  %x = dfg.placeholder {shape = #dfg.shape<[?, 3]>} : () -> tensor<?x3xf32> loc("x")
  %w = dfg.const dense<1.0> : tensor<3x2xf32> : tensor<3x2xf32> loc("w")
  // SYMBOLIC: dfg.mat_mul {{.*}} -> tensor<?x2xf32>
  // BATCH: dfg.mat_mul {{.*}} -> tensor<8x2xf32>
  // FEED: dfg.mat_mul {{.*}} -> tensor<16x2xf32>
  %y = dfg.mat_mul %x, %w : (tensor<?x3xf32>, tensor<3x2xf32>) -> tensor<*xf32> loc("y")
  %s = dfg.shape %y : (tensor<*xf32>) -> tensor<*xi32> loc("s")
  // CHECK: dfg.shape {{.*}} -> tensor<2xi32>
}

// The function's type follows its body's.
// BATCH: dfg.func @entry() -> tensor<8x3xf32>
dfg.func @entry() -> tensor<?x3xf32> {
  %x = dfg.placeholder {shape = #dfg.shape<[?, 3]>} : () -> tensor<?x3xf32> loc("x")
  dfg.return %x : tensor<?x3xf32>
}

// Sizes that are repeated are sizes.
// CHECK: dfg.func @repeated({{.*}}) -> tensor<1x1xf32>
dfg.func @repeated(%value: tensor<f32>) -> tensor<?x?xf32> {
  %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("one")
  %two = dfg.const dense<2> : tensor<1xi32> : tensor<1xi32> loc("two")
  %sizes = dfg.tile %one, %two : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32> loc("sizes")
  %filled = dfg.fill %sizes, %value : (tensor<2xi32>, tensor<f32>) -> tensor<?x?xf32> loc("filled")
  dfg.return %filled : tensor<?x?xf32>
}

// Ranges of floats, and slices of the batch by its own size.
// CHECK: dfg.func @counted
dfg.func @counted() {
  %start = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("start")
  %limit = dfg.const dense<2.5> : tensor<f32> : tensor<f32> loc("limit")
  %delta = dfg.const dense<0.75> : tensor<f32> : tensor<f32> loc("delta")
  // CHECK: dfg.range {{.*}} -> tensor<3xf32>
  %r = dfg.range %start, %limit, %delta : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<?xf32> loc("range")
  %x = dfg.placeholder {shape = #dfg.shape<[?, 3]>} : () -> tensor<?x3xf32> loc("x")
  %y = dfg.placeholder {shape = #dfg.shape<[?, 3]>} : () -> tensor<?x3xf32> loc("y")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %both = dfg.concat_v2 %x, %y, %axis : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<i32>) -> tensor<?x3xf32> loc("both")
  %shape = dfg.shape %x : (tensor<?x3xf32>) -> tensor<2xi32> loc("shape")
  %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
  %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("one")
  %b = dfg.strided_slice %shape, %zero, %one, %one : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32> loc("b")
  // BATCH: dfg.strided_slice {{.*}}end_mask{{.*}} -> tensor<8x3xf32>
  %rest = dfg.strided_slice %both, %b, %zero, %one {end_mask = 1 : i64} : (tensor<?x3xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?x3xf32> loc("rest")
  dfg.return
}

// The batch's size out of the largest of several, and of a shape that is split, as vectorized maps have them.
// CHECK: dfg.func @split_sizes
dfg.func @split_sizes() {
  %x = dfg.placeholder {shape = #dfg.shape<[?, 3]>} : () -> tensor<?x3xf32> loc("x")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %first = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("first")
  %shape = dfg.shape %x : (tensor<?x3xf32>) -> tensor<2xi32> loc("shape")
  %sizes:2 = dfg.split %zero, %shape : (tensor<i32>, tensor<2xi32>) -> (tensor<1xi32>, tensor<1xi32>) loc("sizes")
  %turned = dfg.concat_v2 %sizes#1, %sizes#0, %zero : (tensor<1xi32>, tensor<1xi32>, tensor<i32>) -> tensor<2xi32> loc("turned")
  // SYMBOLIC: dfg.reshape {{.*}} -> tensor<3x?xf32>
  // BATCH: dfg.reshape {{.*}} -> tensor<3x8xf32>
  %y = dfg.reshape %x, %turned : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<?x?xf32> loc("y")
  %lengths = dfg.const dense<[1, 1]> : tensor<2xi32> : tensor<2xi32> loc("lengths")
  %others:2 = dfg.split_v %shape, %lengths, %zero : (tensor<2xi32>, tensor<2xi32>, tensor<i32>) -> (tensor<1xi32>, tensor<1xi32>) loc("others")
  %both = dfg.concat_v2 %others#0, %sizes#0, %zero : (tensor<1xi32>, tensor<1xi32>, tensor<i32>) -> tensor<2xi32> loc("both")
  %most = dfg.max %both, %first : (tensor<2xi32>, tensor<1xi32>) -> tensor<i32> loc("most")
  // BATCH: dfg.range {{.*}} -> tensor<8xi32>
  %numbers = dfg.range %zero, %most, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32> loc("numbers")
  dfg.return
}

// A part of the batch, as float32 rounds it, is known with the batch. A truth value of a float is no size.
// CHECK: dfg.func @part_of_batch
dfg.func @part_of_batch() {
  %x = dfg.placeholder {shape = #dfg.shape<[?]>} : () -> tensor<?xf32> loc("losses")
  %n = dfg.size %x : (tensor<?xf32>) -> tensor<i32> loc("n")
  %float = dfg.cast %n {Truncate = false} : (tensor<i32>) -> tensor<f32> loc("float")
  %part = dfg.const dense<0.7> : tensor<f32> : tensor<f32> loc("part")
  %some = dfg.mul %float, %part : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("some")
  %count = dfg.cast %some {Truncate = false} : (tensor<f32>) -> tensor<i32> loc("count")
  // SYMBOLIC: dfg.top_k_v2 {{.*}} -> (tensor<?xf32>, tensor<?xi32>)
  // BATCH: dfg.top_k_v2 {{.*}} -> (tensor<5xf32>, tensor<5xi32>)
  %hard:2 = dfg.top_k_v2 %x, %count {sorted = true} : (tensor<?xf32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>) loc("hard")
  dfg.return
}

// A size that becomes a vector by a new axis, as tf.math.unsorted_segment_mean has the number of its segments.
// CHECK: dfg.func @new_axis
dfg.func @new_axis() {
  %x = dfg.placeholder {shape = #dfg.shape<[?]>} : () -> tensor<?xf32> loc("rows")
  %n = dfg.size %x : (tensor<?xf32>) -> tensor<i32> loc("n")
  %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
  %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("one")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %vector = dfg.strided_slice %n, %zero, %zero, %one {new_axis_mask = 1}
    : (tensor<i32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32> loc("vector")
  %sizes = dfg.concat_v2 %vector, %one, %axis : (tensor<1xi32>, tensor<1xi32>, tensor<i32>) -> tensor<2xi32> loc("sizes")
  // SYMBOLIC: dfg.reshape {{.*}} -> tensor<?x1xf32>
  // BATCH: dfg.reshape {{.*}} -> tensor<8x1xf32>
  %column = dfg.reshape %x, %sizes : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x1xf32> loc("column")
  dfg.return
}

// Bounds of a range of floats are often integers that are cast, or quotients.
// CHECK-LABEL: dfg.func @floats
dfg.func @floats() {
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
  %nine = dfg.const dense<9> : tensor<i32> : tensor<i32>
  %two = dfg.const dense<2.0> : tensor<f32> : tensor<f32>
  %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
  %start = dfg.cast %zero : (tensor<i32>) -> tensor<f32>
  %nine_f = dfg.cast %nine : (tensor<i32>) -> tensor<f32>
  %limit = dfg.real_div %nine_f, %two : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: dfg.range {{.*}} -> tensor<5xf32>
  %range = dfg.range %start, %limit, %one : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<*xf32>
  dfg.return
}

// Sizes in the other order are followed.
// CHECK-LABEL: dfg.func @turned
dfg.func @turned(%x: tensor<5x3xf32>) {
  %first = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
  %sizes = dfg.shape %x : (tensor<5x3xf32>) -> tensor<2xi32>
  %turned = dfg.reverse_v2 %sizes, %first : (tensor<2xi32>, tensor<1xi32>) -> tensor<2xi32>
  // CHECK: dfg.reshape {{.*}} -> tensor<3x5xf32>
  %y = dfg.reshape %x, %turned : (tensor<5x3xf32>, tensor<2xi32>) -> tensor<*xf32>
  dfg.return
}

// A column of sizes that is repeated along rows has each size as often, one behind the other, as tf.repeat has them.
// CHECK: dfg.func @repeated_along_rows({{.*}}) -> tensor<2x2x3x3xf32>
dfg.func @repeated_along_rows(%value: tensor<f32>) -> tensor<?x?x?x?xf32> {
  %column = dfg.const dense<[[2], [3]]> : tensor<2x1xi32> : tensor<2x1xi32>
  %times = dfg.const dense<[1, 2]> : tensor<2xi32> : tensor<2xi32>
  %rows = dfg.tile %column, %times : (tensor<2x1xi32>, tensor<2xi32>) -> tensor<2x2xi32>
  %all = dfg.const dense<[-1]> : tensor<1xi32> : tensor<1xi32>
  %sizes = dfg.reshape %rows, %all : (tensor<2x2xi32>, tensor<1xi32>) -> tensor<4xi32>
  %filled = dfg.fill %sizes, %value : (tensor<4xi32>, tensor<f32>) -> tensor<?x?x?x?xf32>
  dfg.return %filled : tensor<?x?x?x?xf32>
}
