// RUN: distc-opt %s --convert-dfg-to-drt=asserts | FileCheck %s
// RUN: distc-opt %s --convert-dfg-to-drt=device | FileCheck %s --check-prefix=DEVICE

// CHECK-LABEL: drt.entry "step"
// DEVICE-LABEL: drt.entry "step"
dfg.func @step() -> (tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x2xf64>) attributes {dfg.entry = "step", dfg.fetches = ["v", "i", "c"], dfg.joins = ["first", "first", "first"]} {
  %x = dfg.placeholder : () -> tensor<2x8xf32> loc("x")
  %a = dfg.placeholder : () -> tensor<2x2xf64> loc("a")
  %k = dfg.const dense<3> : tensor<i32> : tensor<i32>
  // dtype, rows, columns, k, type of the indices.
  // CHECK: drt.routine "top_k"(%{{.*}}) {parameters = array<i64: 1, 2, 8, 3, {{[0-9]+}}>} : (tensor<2x8xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
  %v, %i = dfg.top_k_v2 %x, %k : (tensor<2x8xf32>, tensor<i32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) loc("k")
  // CHECK: drt.routine "cholesky"(%{{.*}}) {parameters = array<i64: {{[0-9]+}}, 1, 2>}
  %c = dfg.cholesky %a : (tensor<2x2xf64>) -> tensor<2x2xf64> loc("c")
  // Results without elements are none of the routine's.
  // CHECK: %[[S:.*]]:3 = drt.routine "svd"(%{{.*}}) {parameters = array<i64: {{[0-9]+}}, 4, 3, 2, 1, 0>} : (tensor<4x3x2xf32>) -> (tensor<4x2xf32>, tensor<4x3x2xf32>, tensor<4x2x2xf32>)
  // CHECK: drt.routine "svd"(%{{.*}}) {parameters = array<i64: {{[0-9]+}}, 4, 3, 2, 0, 0>} : (tensor<4x3x2xf32>) -> tensor<4x2xf32>
  // CHECK: drt.routine "lu"(%{{.*}}) {parameters = array<i64: {{[0-9]+}}, 1, 2, 2, [[I64:[0-9]+]]>} : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2xi64>)
  %m = dfg.placeholder : () -> tensor<4x3x2xf32> loc("m")
  %s, %u, %w = dfg.svd %m : (tensor<4x3x2xf32>) -> (tensor<4x2xf32>, tensor<4x3x2xf32>, tensor<4x2x2xf32>) loc("s")
  %t, %none, %nothing = dfg.svd %m {compute_uv = false} : (tensor<4x3x2xf32>) -> (tensor<4x2xf32>, tensor<0xf32>, tensor<0xf32>) loc("t")
  %lu, %p = dfg.lu %a : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<2xi64>) loc("lu")
  // The diagonals are a row each.
  // CHECK: drt.routine "tridiagonal_solve"(%{{.*}}) {parameters = array<i64: 1, 2, 5, 4>} : (tensor<2x3x5xf32>, tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %bands = dfg.placeholder : () -> tensor<2x3x5xf32> loc("bands")
  %sides = dfg.placeholder : () -> tensor<2x5x4xf32> loc("sides")
  %solved = dfg.tridiagonal_solve %bands, %sides : (tensor<2x3x5xf32>, tensor<2x5x4xf32>) -> tensor<2x5x4xf32> loc("solved")
  // What TensorFlow takes where the node says no threshold; what is selected is padded, or as long as it may become.
  // CHECK: drt.routine "non_max_suppression"(%{{.*}}) {parameters = array<i64: 6, 3, 0, 0>}
  // CHECK: drt.routine "non_max_suppression"(%{{.*}}) {parameters = array<i64: 6, 9, 0, 1>}
  %boxes = dfg.placeholder : () -> tensor<6x4xf32> loc("boxes")
  %scores = dfg.placeholder : () -> tensor<6xf32> loc("scores")
  %nine = dfg.const dense<9> : tensor<i32> : tensor<i32>
  %least = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  %chosen = dfg.non_max_suppression %boxes, %scores, %k : (tensor<6x4xf32>, tensor<6xf32>, tensor<i32>) -> tensor<3xi32> loc("chosen")
  %more, %count = dfg.non_max_suppression_v4 %boxes, %scores, %nine, %least, %least {pad_to_max_output_size = true} : (tensor<6x4xf32>, tensor<6xf32>, tensor<i32>, tensor<f32>, tensor<f32>) -> (tensor<9xi32>, tensor<i32>) loc("more")
  // Distances of the best paths: what is behind the last label has places of -1.
  // CHECK: %[[DECODED:.*]]:4 = drt.routine "ctc_greedy_decoder"(%{{.*}}) {parameters = array<i64: 1, 5, 2, 4, 1, 3>}
  // CHECK: drt.routine "edit_distance"(%[[DECODED]]#0, %[[DECODED]]#1, %{{.*}}) {parameters = array<i64: 1, 10, 3, 1, 2>} : {{.*}} -> tensor<2xf32>
  %scored = dfg.placeholder : () -> tensor<5x2x4xf32> loc("scored")
  %lengths = dfg.placeholder : () -> tensor<2xi32> loc("lengths")
  %true = dfg.placeholder : () -> tensor<3x2xi64> loc("true")
  %labels = dfg.placeholder : () -> tensor<3xi64> loc("labels")
  %sizes = dfg.const dense<[2, 4]> : tensor<2xi64> : tensor<2xi64>
  %d:4 = dfg.ctc_greedy_decoder %scored, %lengths {merge_repeated = true} : (tensor<5x2x4xf32>, tensor<2xi32>) -> (tensor<10x2xi64>, tensor<10xi64>, tensor<2xi64>, tensor<2x1xf32>) loc("d")
  %distance = dfg.edit_distance %d#0, %d#1, %d#2, %true, %labels, %sizes
    : (tensor<10x2xi64>, tensor<10xi64>, tensor<2xi64>, tensor<3x2xi64>, tensor<3xi64>, tensor<2xi64>) -> tensor<2xf32> loc("distance")
  // Weights of the classes of this shard, behind the reserved one.
  // CHECK: %[[WEIGHTS:.*]] = arith.constant dense<[0.000000e+00, 4.000000e+00, 1.600000e+01]> : tensor<3xf32>
  // CHECK: drt.routine "sample_candidates"(%{{.*}}, %{{.*}}, %[[WEIGHTS]]) {parameters = array<i64: 2, 2, 2, 3, 1>}
  %classes = dfg.placeholder : () -> tensor<2x1xi64> loc("classes")
  %drawn:3 = dfg.fixed_unigram_candidate_sampler %classes {num_true = 1 : i64, num_sampled = 2 : i64, unique = true, range_max = 3 : i64, distortion = 2.0 : f32, num_reserved_ids = 1 : i64, unigrams = [2.0 : f32, 4.0 : f32], seed = 1 : i64}
    : (tensor<2x1xi64>) -> (tensor<2xi64>, tensor<2x1xf32>, tensor<2xf32>) loc("drawn")
  // A placeholder with a default is that of the data, where it is there.
  // CHECK: %[[RATE:.*]] = drt.feed_or {{.*}}name = "rate"
  // DEVICE-NOT: drt.feed_or
  %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
  %rate = dfg.placeholder_with_default %half : (tensor<f32>) -> tensor<f32> loc("rate")
  // Without asserts, as on devices, there is none.
  // CHECK: drt.assert {{.*}}message = "node 'check': assertion failed: [no rate] [\01]"
  // DEVICE-NOT: drt.assert
  %text = dfg.const dense<"no rate"> : tensor<!dfg.string> : tensor<!dfg.string> loc("text")
  %zero = dfg.const dense<0.0> : tensor<f32> : tensor<f32> loc("zero")
  %ok = dfg.less %zero, %rate : (tensor<f32>, tensor<f32>) -> tensor<i1> loc("ok")
  dfg.assert %ok, %text, %rate : (tensor<i1>, tensor<!dfg.string>, tensor<f32>) -> () loc("check")
  dfg.return %v, %i, %c : tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x2xf64>
}
