// RUN: distc-opt %s --convert-dfg-to-drt --split-input-file | FileCheck %s

// A row is broadcast by its map, a scalar constant becomes part of the kernel.
// CHECK-DAG: #[[WHOLE:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: drt.entry "elementwise"
dfg.func @elementwise() -> tensor<4x3xf32> attributes {dfg.fetches = ["y:0"]} {
  // CHECK: %[[X:.*]] = drt.feed {batched, name = "x"}
  // CHECK: %[[V:.*]] = drt.feed {name = "row"}
  %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<4x3xf32> loc("x")
  %row = dfg.placeholder : () -> tensor<3xf32> loc("row")
  // CHECK: %[[SUM:.*]] = linalg.generic {indexing_maps = [#[[WHOLE]], #[[ROW]], #[[WHOLE]]]{{.*}} ins(%[[X]], %[[V]] :
  // CHECK: arith.addf
  %sum = dfg.add_v2 %x, %row : (tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  // CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[SUM]] :
  // CHECK: %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
  // CHECK: arith.mulf %{{.*}}, %[[TWO]]
  %two = dfg.const dense<2.0> : tensor<f32> : tensor<f32>
  %y = dfg.mul %sum, %two : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  // CHECK: drt.fetch %[[Y]] {{.*}}name = "y:0"
  dfg.return %y : tensor<4x3xf32>
}

// -----

// A mean is a sum, then a division by how many there were.
// CHECK-LABEL: drt.entry "reduction"
dfg.func @reduction() -> tensor<4xf32> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<4x8xf32> loc("x")
  %axis = dfg.const dense<1> : tensor<i32> : tensor<i32>
  // CHECK: linalg.fill
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
  // CHECK: arith.addf
  // CHECK: arith.constant 8.000000e+00
  // CHECK: arith.divf
  %y = dfg.mean %x, %axis : (tensor<4x8xf32>, tensor<i32>) -> tensor<4xf32>
  dfg.return %y : tensor<4xf32>
}

// -----

// A sum over no axes, as gradients have it of what was not broadcast, is element-wise: it starts from nothing that its result holds.
// CHECK-LABEL: drt.entry "no_axes"
dfg.func @no_axes() -> tensor<4x8xf32> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<4x8xf32> loc("x")
  %axes = dfg.const dense<> : tensor<0xi32> : tensor<0xi32>
  // CHECK-NOT: linalg.fill
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]
  // CHECK-NEXT: ^bb0(%[[X:.*]]: f32{{.*}}, %{{.*}}: f32{{.*}}):
  // CHECK: arith.addf %{{.*}}, %[[X]]
  %y = dfg.sum %x, %axes : (tensor<4x8xf32>, tensor<0xi32>) -> tensor<4x8xf32>
  dfg.return %y : tensor<4x8xf32>
}

// -----

// A reverse reads where its elements come from.
// CHECK-LABEL: drt.entry "layout"
dfg.func @layout() -> tensor<4x3xf32> attributes {dfg.fetches = ["y:0"]} {
  // CHECK: %[[X:.*]] = drt.feed
  %x = dfg.placeholder : () -> tensor<4x3xf32> loc("x")
  %axis = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32>
  // CHECK: linalg.generic
  // CHECK-DAG: linalg.index 0
  // CHECK-DAG: linalg.index 1
  // CHECK: tensor.extract %[[X]]
  %y = dfg.reverse_v2 %x, %axis : (tensor<4x3xf32>, tensor<1xi32>) -> tensor<4x3xf32>
  dfg.return %y : tensor<4x3xf32>
}

// -----

// A running sum of four takes two steps, of distances 1 and 2.
// CHECK-LABEL: drt.entry "scan"
dfg.func @scan() -> tensor<4xf32> attributes {dfg.fetches = ["y:0"]} {
  // CHECK: %[[X:.*]] = drt.feed
  %x = dfg.placeholder : () -> tensor<4xf32> loc("x")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
  // CHECK: %[[ONCE:.*]] = linalg.generic
  // CHECK: arith.constant 1 : index
  // CHECK: tensor.extract %[[X]]
  // CHECK: linalg.generic
  // CHECK: arith.constant 2 : index
  // CHECK: tensor.extract %[[ONCE]]
  // CHECK-NOT: linalg.generic
  %y = dfg.cumsum %x, %axis : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  dfg.return %y : tensor<4xf32>
}

// -----

// Products and convolutions are the runtime's.
// CHECK-LABEL: drt.entry "products"
dfg.func @products() -> (tensor<4x5xf32>, tensor<2x3x3x4xf32>) attributes {dfg.fetches = ["y:0", "z:0"]} {
  %a = dfg.placeholder : () -> tensor<4x3xf32> loc("a")
  %b = dfg.placeholder : () -> tensor<5x3xf32> loc("b")
  // CHECK: drt.matmul {{.*}}transpose_b
  %y = dfg.mat_mul %a, %b {transpose_b = true} : (tensor<4x3xf32>, tensor<5x3xf32>) -> tensor<4x5xf32>
  %image = dfg.placeholder : () -> tensor<2x6x6x1xf32> loc("image")
  %filter = dfg.placeholder : () -> tensor<3x3x1x4xf32> loc("filter")
  // n h w c kh kw k oh ow strides dilations padding (nothing before, one behind) groups
  // CHECK: drt.conv2d {{.*}}descriptor = array<i64: 2, 6, 6, 1, 3, 3, 4, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1, 1>
  %z = dfg.conv_2d %image, %filter {strides = [1, 2, 2, 1], padding = "SAME"}
    : (tensor<2x6x6x1xf32>, tensor<3x3x1x4xf32>) -> tensor<2x3x3x4xf32>
  dfg.return %y, %z : tensor<4x5xf32>, tensor<2x3x3x4xf32>
}

// -----

// Rows less their maximum, so that no exponential overflows; a label that is no class makes NaN.
// CHECK-LABEL: drt.entry "cross_entropy"
dfg.func @cross_entropy() -> tensor<4xf32> attributes {dfg.fetches = ["y:0"]} {
  %logits = dfg.placeholder : () -> tensor<4x3xf32> loc("logits")
  %labels = dfg.placeholder : () -> tensor<4xi32> loc("labels")
  // CHECK: arith.maximumf
  // CHECK: arith.subf
  // CHECK: math.exp
  // CHECK: arith.addf
  // CHECK: arith.constant 0x7FC00000 : f32
  %loss, %backprop = dfg.sparse_softmax_cross_entropy_with_logits %logits, %labels
    : (tensor<4x3xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4x3xf32>)
  dfg.return %loss : tensor<4xf32>
}

// -----

// CHECK-LABEL: drt.entry "random"
dfg.func @random() -> (tensor<5xf32>, tensor<5xi32>, tensor<5xi32>, tensor<5xf32>) attributes {dfg.fetches = ["x:0", "y:0", "p:0", "u:0"]} {
  %five = dfg.const dense<5> : tensor<1xi32> : tensor<1xi32>
  // CHECK: drt.random {{.*}}distribution = 2 : i32, seed = 3 : i64, seed2 = 4 : i64
  %x = dfg.truncated_normal %five {seed = 3, seed2 = 4} : (tensor<1xi32>) -> tensor<5xf32>
  // Version 2 takes the seed from where key and counter come from.
  // CHECK: %[[SEED:.*]] = arith.constant dense<[1, 2]> : tensor<2xi64>
  %seed = dfg.const dense<[1, 2]> : tensor<2xi64> : tensor<2xi64>
  %algorithm = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %low = dfg.const dense<-5> : tensor<i32> : tensor<i32>
  %high = dfg.const dense<9> : tensor<i32> : tensor<i32>
  %key, %counter = dfg.stateless_random_get_key_counter %seed : (tensor<2xi64>) -> (tensor<1xui64>, tensor<2xui64>)
  // CHECK: drt.random_stateless %[[SEED]], %{{.*}}, %{{.*}} {distribution = 3 : i32}
  %y = dfg.stateless_random_uniform_int_v2 %five, %key, %counter, %algorithm, %low, %high
    : (tensor<1xi32>, tensor<1xui64>, tensor<2xui64>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5xi32>
  // Or takes them as a generator's state has them.
  // CHECK: %[[STATE:.*]] = arith.constant dense<[4, 5]> : tensor<2xi64>
  // CHECK: %[[KEYED:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<3xi64>)
  // CHECK: drt.random_stateless %[[KEYED]] {distribution = 0 : i32, keyed}
  %own_key = dfg.const dense<[3]> : tensor<1xi64> : tensor<1xi64>
  %own_counter = dfg.const dense<[4, 5]> : tensor<2xi64> : tensor<2xi64>
  %k = dfg.stateless_random_uniform_v2 %five, %own_key, %own_counter, %algorithm
    : (tensor<1xi32>, tensor<1xi64>, tensor<2xi64>, tensor<i32>) -> tensor<5xf32>
  // A permutation takes a word for each row but the last, in whole positions.
  // CHECK: %[[POSITIONS:.*]] = arith.constant dense<1> : tensor<i64>
  // CHECK: %[[STATE:.*]] = drt.random %[[POSITIONS]] {distribution = 4 : i32, seed = 5 : i64, seed2 = 6 : i64} : (tensor<i64>) -> tensor<6xi32>
  // CHECK: drt.routine "random_permutation"(%[[STATE]]) {parameters = array<i64: 5>}
  %n = dfg.const dense<5> : tensor<i32> : tensor<i32>
  %p = dfg.random_permutation %n {seed = 5, seed2 = 6} : (tensor<i32>) -> tensor<5xi32>
  // CHECK: drt.random {{.*}}reserved = 10240 : i64
  %u = dfg.random_uniform %five {seed = 5, seed2 = 6, reserved_per_row = 2048 : i64} : (tensor<1xi32>) -> tensor<5xf32>
  dfg.return %x, %y, %p, %u : tensor<5xf32>, tensor<5xi32>, tensor<5xi32>, tensor<5xf32>
}

// -----

// Narrow floats are made of float32: normal numbers are rounded, uniform ones have the lowest bits of the same word.
// CHECK-LABEL: drt.entry "narrow_random"
dfg.func @narrow_random() -> (tensor<5xf16>, tensor<5xbf16>) attributes {dfg.fetches = ["x:0", "y:0"]} {
  %five = dfg.const dense<5> : tensor<1xi32> : tensor<1xi32>
  // CHECK: %[[X:.*]] = drt.random {{.*}}distribution = 0 : i32{{.*}} -> tensor<5xf32>
  // CHECK: linalg.generic {{.*}} ins(%[[X]] : tensor<5xf32>) outs(%{{.*}} : tensor<5xf16>)
  // CHECK: arith.constant 8.192000e+03 : f32
  // CHECK: arith.truncf %{{.*}} : f32 to f16
  %x = dfg.random_uniform %five {seed = 3, seed2 = 4} : (tensor<1xi32>) -> tensor<5xf16>
  // CHECK: %[[Y:.*]] = drt.random {{.*}}distribution = 1 : i32{{.*}} -> tensor<5xf32>
  // CHECK: linalg.generic {{.*}} ins(%[[Y]] : tensor<5xf32>) outs(%{{.*}} : tensor<5xbf16>)
  // CHECK-NOT: arith.mulf
  %y = dfg.random_standard_normal %five {seed = 3, seed2 = 4} : (tensor<1xi32>) -> tensor<5xbf16>
  dfg.return %x, %y : tensor<5xf16>, tensor<5xbf16>
}

// -----

// A gradient goes into its bucket where it is ready; its update takes it from there, on this replica's part.
// CHECK: drt.variable @w : tensor<40xf32> {{.*}}trainable
dfg.variable @w : tensor<40xf32> {trainable}
// CHECK-LABEL: drt.entry "bucket"
// CHECK: %[[G:.*]] = linalg.generic
// CHECK: drt.all_reduce_start %[[G]] {bucket = 0 : i32, mean = true, names = ["w"]}
// CHECK: drt.all_reduce_wait 0
// CHECK-NOT: drt.barrier
// CHECK: drt.update {bucket = 0 : i32, count = 40 : i64, kernel = @[[KERNEL:.*]], member = 0 : i64, variables = [@w]}
dfg.func @bucket() attributes {dfg.fetches = []} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<40xf32>>
  %rate = dfg.const dense<0.1> : tensor<f32> : tensor<f32>
  %x = dfg.placeholder : () -> tensor<40xf32> loc("x")
  %g = dfg.neg %x : (tensor<40xf32>) -> tensor<40xf32>
  %reduced = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] : tensor<40xf32>
  dfg.apply_gradient_descent %w, %rate, %reduced : (!dfg.ref<tensor<40xf32>>, tensor<f32>, tensor<40xf32>) -> ()
  dfg.return
}
// CHECK: drt.kernel range @[[KERNEL]]({{.*}})

// -----

// A value stays what it was: the read that is fetched gives what stood before the update, that of the update's result what it gave.
dfg.variable @w : tensor<40xf32> {trainable}
// CHECK-LABEL: drt.entry "read_then_update"
// CHECK: %[[OLD:.*]] = drt.read @w
// CHECK: drt.update {{.*}}variables = [@w]
// CHECK: drt.fetch %[[OLD]]
dfg.func @read_then_update() -> tensor<40xf32> attributes {dfg.fetches = ["old:0"]} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<40xf32>>
  %old = dfg.read_variable %w : (!dfg.ref<tensor<40xf32>>) -> tensor<40xf32>
  %half = dfg.const dense<0.5> : tensor<40xf32> : tensor<40xf32>
  dfg.assign_sub %w, %half : (!dfg.ref<tensor<40xf32>>, tensor<40xf32>) -> ()
  dfg.return %old : tensor<40xf32>
}

// -----

// A factor that broadcasts along some axes of the batch is laid out for all of them.
// CHECK-LABEL: drt.entry "batches"
dfg.func @batches() -> tensor<4x3x2x2xf32> attributes {dfg.fetches = ["y:0"]} {
  %a = dfg.placeholder : () -> tensor<4x1x2x5xf32> loc("a")
  %b = dfg.placeholder : () -> tensor<4x3x5x2xf32> loc("b")
  // CHECK: %[[A:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<4x1x2x5xf32>) outs(%{{.*}} : tensor<4x3x2x5xf32>)
  // CHECK: drt.matmul %[[A]], %{{.*}} : (tensor<4x3x2x5xf32>, tensor<4x3x5x2xf32>)
  %y = dfg.batch_mat_mul_v2 %a, %b : (tensor<4x1x2x5xf32>, tensor<4x3x5x2xf32>) -> tensor<4x3x2x2xf32>
  dfg.return %y : tensor<4x3x2x2xf32>
}

// -----

// Libraries compute in float32 what is narrower; sums of it are kept in float32.
// CHECK-LABEL: drt.entry "narrow"
dfg.func @narrow() -> tensor<bf16> attributes {dfg.fetches = ["y:0"]} {
  %a = dfg.placeholder : () -> tensor<2x5xbf16> loc("a")
  %b = dfg.placeholder : () -> tensor<5x2xbf16> loc("b")
  %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
  // CHECK: drt.matmul {{.*}} : (tensor<2x5xf32>, tensor<5x2xf32>) -> tensor<2x2xf32>
  // CHECK: arith.truncf {{.*}} : f32 to bf16
  // CHECK: linalg.fill ins(%{{.*}} : f32)
  %product = dfg.mat_mul %a, %b : (tensor<2x5xbf16>, tensor<5x2xbf16>) -> tensor<2x2xbf16>
  %y = dfg.sum %product, %axes : (tensor<2x2xbf16>, tensor<2xi32>) -> tensor<bf16>
  dfg.return %y : tensor<bf16>
}

// -----

// What an integer cannot hold is its lowest value.
// CHECK-LABEL: drt.entry "cast"
dfg.func @cast() -> tensor<4xi32> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<4xf32> loc("x")
  // CHECK: linalg.generic
  // CHECK: %[[LOWEST:.*]] = arith.constant -2147483648 : i32
  // CHECK: arith.select %{{.*}}, %{{.*}}, %[[LOWEST]] : i32
  %y = dfg.cast %x : (tensor<4xf32>) -> tensor<4xi32>
  dfg.return %y : tensor<4xi32>
}

// -----

// An average pooling's gradient of more elements than its attributes ask for: the first of them count.
// CHECK-LABEL: drt.entry "pool_gradient"
dfg.func @pool_gradient() -> tensor<2x3x3x5xf32> attributes {dfg.fetches = ["y:0"]} {
  %sizes = dfg.const dense<[2, 3, 3, 5]> : tensor<4xi32> : tensor<4xi32>
  %g = dfg.placeholder : () -> tensor<2x2x2x5xf32> loc("g")
  // CHECK: %[[FLAT:.*]] = {{.*}} : tensor<2x2x2x5xf32> {{.*}}tensor<40xf32>
  // CHECK: %[[READ:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<10xf32>)
  // CHECK: tensor.extract %[[FLAT]]
  // CHECK: %[[POOLED:.*]] = {{.*}} %[[READ]] {{.*}}tensor<2x1x1x5xf32>
  // CHECK: drt.pool_grad {{.*}}%[[POOLED]]
  %y = dfg.avg_pool_grad %sizes, %g {ksize = [1, 2, 2, 1], strides = [1, 2, 2, 1], padding = "VALID"}
    : (tensor<4xi32>, tensor<2x2x2x5xf32>) -> tensor<2x3x3x5xf32>
  dfg.return %y : tensor<2x3x3x5xf32>
}

// -----

// Of many parts each branch has half.
// CHECK-LABEL: drt.entry "parts"
dfg.func @parts() -> tensor<18xf32> attributes {dfg.fetches = ["y:0"]} {
  // CHECK: %[[HALF:.*]] = arith.constant 9 : index
  // CHECK: %[[LOWER:.*]] = arith.cmpi ult, %{{.*}}, %[[HALF]]
  // CHECK: scf.if %[[LOWER]]
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %y = dfg.pack %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x, %x : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<18xf32> loc("y")
  dfg.return %y : tensor<18xf32>
}
