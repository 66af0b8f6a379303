// RUN: distc-opt %s --drt-verify-order --split-input-file --verify-diagnostics

// Plans of small training graphs as an earlier lowering made them for four replicas of one task. Each compiled, and trained to wrong numbers or, where
// threads raced, to other numbers in each run. Kernels are left out.

// A sparse Adam decays the moments by ranges, then adds to them by rows: nothing lies between.
drt.variable @table : tensor<5000x32xf32> {saved, trainable}
drt.variable @global_step : tensor<i64> {saved}
drt.variable @beta1_power : tensor<f32> {saved}
drt.variable @beta2_power : tensor<f32> {saved}
drt.variable @"table/Adam" : tensor<5000x32xf32> {saved}
drt.variable @"table/Adam_1" : tensor<5000x32xf32> {saved}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "ids"} : () -> tensor<10xi32>
  %1 = drt.copy %0 {at = array<i64: 1301760>} : (tensor<10xi32>) -> tensor<10xi32>
  %2 = drt.feed  {batched, name = "y"} : () -> tensor<10xf32>
  %3 = drt.read @table : tensor<5000x32xf32>
  %4 = drt.launch @kernel_1(%0, %3) {at = array<i64: 0>} : (tensor<10xi32>, tensor<5000x32xf32>) -> tensor<10x32xf32>
  %5 = drt.launch @kernel_2(%4) {at = array<i64: 1280>} : (tensor<10x32xf32>) -> tensor<10xf32>
  %6 = drt.launch @kernel_3(%5, %2) {at = array<i64: 0>} : (tensor<10xf32>, tensor<10xf32>) -> tensor<10xf32>
  %7 = drt.launch @kernel_4(%6) {at = array<i64: 64>} : (tensor<10xf32>) -> tensor<f32>
  %8 = drt.launch @kernel_5(%7) {at = array<i64: 1302208>} : (tensor<f32>) -> tensor<f32>
  %9 = drt.launch @kernel_6(%6) {at = array<i64: 1302016>} : (tensor<10xf32>) -> tensor<10xf32>
  %e = tensor.expand_shape %9 [[0, 1]] output_shape [10, 1] : tensor<10xf32> into tensor<10x1xf32>
  %10 = drt.launch @kernel_7(%e) {at = array<i64: 1280000>} : (tensor<10x1xf32>) -> tensor<10x32xf32>
  drt.all_reduce_start %1 {at = array<i64: 1301760>, bucket = 0 : i32, gather = 4 : i64, mean = false, names = ["table/Adam"]} : (tensor<10xi32>) -> ()
  drt.all_reduce_start %10 {at = array<i64: 1280000>, bucket = 1 : i32, gather = 4 : i64, mean = false, names = ["table/Adam"]} : (tensor<10x32xf32>) -> ()
  drt.all_reduce_wait 0
  %11 = drt.all_reduce_result  {bucket = 0 : i32} : () -> tensor<40xi32>
  drt.all_reduce_wait 1
  %12 = drt.all_reduce_result  {bucket = 1 : i32} : () -> tensor<40x32xf32>
  %13 = drt.read @beta2_power : tensor<f32>
  %14 = drt.copy %13 {at = array<i64: 1302272>} : (tensor<f32>) -> tensor<f32>
  %15 = drt.read @beta1_power : tensor<f32>
  %16 = drt.copy %15 {at = array<i64: 1302336>} : (tensor<f32>) -> tensor<f32>
  %17 = drt.read @"table/Adam" : tensor<5000x32xf32>
  %18 = drt.launch @kernel_8(%17) {at = array<i64: 0>} : (tensor<5000x32xf32>) -> tensor<5000x32xf32>
  %19 = drt.read @"table/Adam_1" : tensor<5000x32xf32>
  %20 = drt.launch @kernel_9(%19) {at = array<i64: 640000>} : (tensor<5000x32xf32>) -> tensor<5000x32xf32>
  %y, %idx, %count = drt.unique %11 {at = array<i64: 1302016, 1291520, 1286400>} : (tensor<40xi32>) -> (tensor<40xi32>, tensor<40xi32>, tensor<40xi32>)
  %21 = drt.scatter %idx, %12 {at = array<i64: 1286400>, depth = 1 : i64, kind = 1 : i32} : (tensor<40xi32>, tensor<40x32xf32>) -> tensor<40x32xf32>
  %22 = drt.launch @kernel_10(%21) {at = array<i64: 1291520>} : (tensor<40x32xf32>) -> tensor<40x32xf32>
  %23 = drt.launch @kernel_11(%21) {at = array<i64: 1296640>} : (tensor<40x32xf32>) -> tensor<40x32xf32>
  drt.barrier
  // expected-note @+1 {{the other access (drt.update)}}
  drt.update %18 {count = 160000 : i64, kernel = @update_init_0, variables = [@"table/Adam"]} : (tensor<5000x32xf32>) -> ()
  drt.update %20 {count = 160000 : i64, kernel = @update_init_0, variables = [@"table/Adam_1"]} : (tensor<5000x32xf32>) -> ()
  // expected-error @+1 {{reads variable table/Adam (each replica's rows by index) while another replica may still write it (each replica's range); the replicas do not meet between}}
  drt.sparse_update %y, %22 {depth = 1 : i64, kernel = @update_step_2, variables = [@"table/Adam"]} : (tensor<40xi32>, tensor<40x32xf32>) -> ()
  drt.barrier
  %24 = drt.read @"table/Adam" : tensor<5000x32xf32>
  drt.sparse_update %y, %23 {depth = 1 : i64, kernel = @update_step_2, variables = [@"table/Adam_1"]} : (tensor<40xi32>, tensor<40x32xf32>) -> ()
  drt.barrier
  %25 = drt.read @"table/Adam_1" : tensor<5000x32xf32>
  %26 = drt.launch @kernel_12(%14, %16, %24, %25) {at = array<i64: 0>} : (tensor<f32>, tensor<f32>, tensor<5000x32xf32>, tensor<5000x32xf32>) -> tensor<5000x32xf32>
  %27 = drt.read @beta1_power : tensor<f32>
  %28 = drt.copy %27 {at = array<i64: 1302016>} : (tensor<f32>) -> tensor<f32>
  %29 = drt.launch @kernel_13(%28) {at = array<i64: 1302080>} : (tensor<f32>) -> tensor<f32>
  %30 = drt.read @beta2_power : tensor<f32>
  %31 = drt.copy %30 {at = array<i64: 1302016>} : (tensor<f32>) -> tensor<f32>
  %32 = drt.launch @kernel_14(%31) {at = array<i64: 1302144>} : (tensor<f32>) -> tensor<f32>
  drt.update %26 {count = 160000 : i64, kernel = @update_step_4, variables = [@table]} : (tensor<5000x32xf32>) -> ()
  drt.barrier
  drt.update %29 {count = 1 : i64, kernel = @update_step_5, variables = [@beta1_power]} : (tensor<f32>) -> ()
  drt.update %32 {count = 1 : i64, kernel = @update_step_5, variables = [@beta2_power]} : (tensor<f32>) -> ()
  drt.update  {count = 1 : i64, kernel = @update_step_7, variables = [@global_step]} : () -> ()
  drt.fetch %8 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

// -----

// Two optimizers read one gradient, reduced and raw.
drt.variable @k : tensor<3x3x2x8xf32> {saved, trainable}
drt.variable @b : tensor<8xf32> {saved, trainable}
drt.variable @"k/Momentum" : tensor<3x3x2x8xf32> {saved}
drt.variable @"Nadam/iter" : tensor<i64> {saved}
drt.variable @"Nadam/beta_1" : tensor<f32> {saved}
drt.variable @"Nadam/beta_2" : tensor<f32> {saved}
drt.variable @"Nadam/decay" : tensor<f32> {saved}
drt.variable @"Nadam/learning_rate" : tensor<f32> {saved}
drt.variable @"Nadam/momentum_cache" : tensor<f32> {saved}
drt.variable @"Nadam/b/m" : tensor<8xf32> {saved}
drt.variable @"Nadam/b/v" : tensor<8xf32> {saved}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "x"} : () -> tensor<2x6x6x2xf32>
  %1 = drt.feed  {batched, name = "y"} : () -> tensor<2x8xf32>
  %2 = drt.read @k : tensor<3x3x2x8xf32>
  %3 = drt.read @b : tensor<8xf32>
  %4 = drt.copy %3 {at = array<i64: 1024>} : (tensor<8xf32>) -> tensor<8xf32>
  %5 = drt.conv2d %0, %2, %4 {at = array<i64: 0>, descriptor = array<i64: 2, 6, 6, 2, 3, 3, 8, 4, 4, 1, 1, 1, 1, 0, 0, 0, 0, 1>} : (tensor<2x6x6x2xf32>, tensor<3x3x2x8xf32>, tensor<8xf32>) -> tensor<2x4x4x8xf32>
  %6 = drt.launch @kernel_2(%5) {at = array<i64: 1024>} : (tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  %7 = drt.launch @kernel_3(%6) {at = array<i64: 0>} : (tensor<2x4x4x8xf32>) -> tensor<2x8xf32>
  %8 = drt.launch @kernel_4(%7, %1) {at = array<i64: 64>} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %9 = drt.launch @kernel_5(%8) {at = array<i64: 0>} : (tensor<2x8xf32>) -> tensor<f32>
  %10 = drt.launch @kernel_6(%9) {at = array<i64: 2048>} : (tensor<f32>) -> tensor<f32>
  %11 = drt.launch @kernel_7(%8) {at = array<i64: 2112>} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %e = tensor.expand_shape %11 [[0], [1, 2, 3]] output_shape [2, 1, 1, 8] : tensor<2x8xf32> into tensor<2x1x1x8xf32>
  %12 = drt.launch @kernel_8(%e, %6) {at = array<i64: 0>} : (tensor<2x1x1x8xf32>, tensor<2x4x4x8xf32>) -> tensor<2x4x4x8xf32>
  %13 = drt.launch @kernel_9(%12) {at = array<i64: 1664>} : (tensor<2x4x4x8xf32>) -> tensor<8xf32>
  %14 = drt.conv2d_grad_filter %0, %12 {at = array<i64: 1024>, descriptor = array<i64: 2, 6, 6, 2, 3, 3, 8, 4, 4, 1, 1, 1, 1, 0, 0, 0, 0, 1>} : (tensor<2x6x6x2xf32>, tensor<2x4x4x8xf32>) -> tensor<3x3x2x8xf32>
  %15 = drt.read @"Nadam/momentum_cache" : tensor<f32>
  %16 = drt.copy %15 {at = array<i64: 1792>} : (tensor<f32>) -> tensor<f32>
  %17 = drt.read @"Nadam/learning_rate" : tensor<f32>
  %18 = drt.read @"Nadam/beta_1" : tensor<f32>
  %19 = drt.read @"Nadam/beta_2" : tensor<f32>
  %20 = drt.read @"Nadam/iter" : tensor<i64>
  %21 = drt.copy %20 {at = array<i64: 1856>} : (tensor<i64>) -> tensor<i64>
  %22 = drt.launch @kernel_10(%21) {at = array<i64: 1920>} : (tensor<i64>) -> tensor<f32>
  %23 = drt.launch @kernel_11(%18, %22) {at = array<i64: 1984>} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %24 = drt.launch @kernel_12(%16, %23) {at = array<i64: 0>} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %25 = drt.read @"Nadam/b/m" : tensor<8xf32>
  %26 = drt.copy %25 {at = array<i64: 1792>} : (tensor<8xf32>) -> tensor<8xf32>
  %27 = drt.launch @kernel_13(%18, %13) {at = array<i64: 1728>} : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  // expected-note @+1 {{its bucket was started here (drt.all_reduce_start)}}
  drt.all_reduce_start %13, %27 {at = array<i64: 1664>, bucket = 0 : i32, mean = true, names = ["Nadam/b/v", "Nadam/b/m"]} : (tensor<8xf32>, tensor<8xf32>) -> ()
  %28 = drt.read @"Nadam/b/v" : tensor<8xf32>
  %29 = drt.copy %28 {at = array<i64: 64>} : (tensor<8xf32>) -> tensor<8xf32>
  %30 = drt.read @b : tensor<8xf32>
  %31 = drt.copy %30 {at = array<i64: 128>} : (tensor<8xf32>) -> tensor<8xf32>
  drt.barrier
  drt.update %24 {count = 1 : i64, kernel = @update_step_0, variables = [@"Nadam/momentum_cache"]} : (tensor<f32>) -> ()
  drt.barrier
  %32 = drt.read @"Nadam/momentum_cache" : tensor<f32>
  %33 = drt.copy %32 {at = array<i64: 0>} : (tensor<f32>) -> tensor<f32>
  // expected-error @+1 {{reads a gradient that is being reduced in place}}
  %34 = drt.launch @kernel_14(%23, %13, %33) {at = array<i64: 1600>} : (tensor<f32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  drt.all_reduce_start %14, %34 {at = array<i64: 1024>, bucket = 1 : i32, mean = true, names = ["k", "b"]} : (tensor<3x3x2x8xf32>, tensor<8xf32>) -> ()
  drt.all_reduce_wait 0
  %35:2 = drt.all_reduce_result  {bucket = 0 : i32} : () -> (tensor<8xf32>, tensor<8xf32>)
  %36 = drt.launch @kernel_15(%18, %26, %35#1) {at = array<i64: 1984>} : (tensor<f32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %37 = drt.launch @kernel_16(%19, %29, %35#0) {at = array<i64: 1792>} : (tensor<f32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_wait 1
  drt.update  {bucket = 1 : i32, count = 144 : i64, kernel = @update_step_1, member = 0 : i64, variables = [@k, @"k/Momentum"]} : () -> ()
  drt.update %36 {count = 8 : i64, kernel = @update_init_1, variables = [@"Nadam/b/m"]} : (tensor<8xf32>) -> ()
  drt.barrier
  %38 = drt.read @"Nadam/b/m" : tensor<8xf32>
  %39 = drt.copy %38 {at = array<i64: 64>} : (tensor<8xf32>) -> tensor<8xf32>
  %40:2 = drt.all_reduce_result  {bucket = 1 : i32} : () -> (tensor<3x3x2x8xf32>, tensor<8xf32>)
  drt.update %37 {count = 8 : i64, kernel = @update_init_1, variables = [@"Nadam/b/v"]} : (tensor<8xf32>) -> ()
  drt.barrier
  %41 = drt.read @"Nadam/b/v" : tensor<8xf32>
  %42 = drt.copy %41 {at = array<i64: 1792>} : (tensor<8xf32>) -> tensor<8xf32>
  %43 = drt.launch @kernel_17(%31, %17, %40#1, %18, %21, %39, %33, %42, %19, %22) {at = array<i64: 1984>} : (tensor<8xf32>, tensor<f32>, tensor<8xf32>, tensor<f32>, tensor<i64>, tensor<8xf32>, tensor<f32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>
  drt.update %43 {count = 8 : i64, kernel = @update_init_1, variables = [@b]} : (tensor<8xf32>) -> ()
  drt.update  {count = 1 : i64, kernel = @update_step_5, variables = [@"Nadam/iter"]} : () -> ()
  drt.fetch %10 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

// -----

// A gradient is accumulated in a variable, and reduced for the update.
drt.variable @w : tensor<5x9xf32> {saved, trainable}
drt.variable @s : tensor<5x9xf32> {saved}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "x"} : () -> tensor<2x5xf32>
  %1 = drt.feed  {batched, name = "y"} : () -> tensor<2x9xf32>
  %2 = drt.read @w : tensor<5x9xf32>
  %3 = drt.matmul %0, %2 {at = array<i64: 0>} : (tensor<2x5xf32>, tensor<5x9xf32>) -> tensor<2x9xf32>
  %4 = drt.launch @kernel_1(%3, %1) {at = array<i64: 128>} : (tensor<2x9xf32>, tensor<2x9xf32>) -> tensor<2x9xf32>
  %5 = drt.launch @kernel_2(%4) {at = array<i64: 0>} : (tensor<2x9xf32>) -> tensor<2xf32>
  %6 = drt.launch @kernel_3(%5) {at = array<i64: 64>} : (tensor<2xf32>) -> tensor<f32>
  %7 = drt.launch @kernel_4(%6) {at = array<i64: 384>} : (tensor<f32>) -> tensor<f32>
  %8 = drt.launch @kernel_5() {at = array<i64: 0>} : () -> tensor<2xf32>
  %e = tensor.expand_shape %8 [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %9 = drt.launch @kernel_6(%e, %4) {at = array<i64: 256>} : (tensor<2x1xf32>, tensor<2x9xf32>) -> tensor<2x9xf32>
  %10 = drt.matmul %0, %9 {at = array<i64: 0>, transpose_a} : (tensor<2x5xf32>, tensor<2x9xf32>) -> tensor<5x9xf32>
  // expected-note @+1 {{its bucket was started here (drt.all_reduce_start)}}
  drt.all_reduce_start %10 {at = array<i64: 0>, bucket = 0 : i32, mean = true, names = ["s"]} : (tensor<5x9xf32>) -> ()
  // expected-error @+1 {{reads a gradient that is being reduced in place}}
  %11 = drt.launch @kernel_7(%10) {at = array<i64: 192>} : (tensor<5x9xf32>) -> tensor<5x9xf32>
  drt.all_reduce_start %11 {at = array<i64: 192>, bucket = 1 : i32, mean = true, names = ["w"]} : (tensor<5x9xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update  {bucket = 0 : i32, count = 45 : i64, kernel = @update_step_0, member = 0 : i64, variables = [@s]} : () -> ()
  drt.all_reduce_wait 1
  drt.update  {bucket = 1 : i32, count = 45 : i64, kernel = @update_step_1, member = 0 : i64, variables = [@w]} : () -> ()
  drt.fetch %7 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

// -----

// A loss is kept in a variable, so it is reduced; and fetched.
drt.variable @w : tensor<5xf32> {saved, trainable}
drt.variable @q : tensor<f32> {saved}
drt.variable @q2 : tensor<f32> {saved}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "x"} : () -> tensor<2x5xf32>
  %1 = drt.feed  {batched, name = "y"} : () -> tensor<2xf32>
  %2 = drt.read @w : tensor<5xf32>
  %3 = drt.copy %2 {at = array<i64: 0>} : (tensor<5xf32>) -> tensor<5xf32>
  %4 = drt.launch @kernel_1(%0, %3) {at = array<i64: 64>} : (tensor<2x5xf32>, tensor<5xf32>) -> tensor<2xf32>
  %5 = drt.launch @kernel_2(%4, %1) {at = array<i64: 128>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %6 = drt.launch @kernel_3(%5) {at = array<i64: 192>} : (tensor<2xf32>) -> tensor<f32>
  %7 = drt.launch @kernel_4(%6) {at = array<i64: 0>} : (tensor<f32>) -> tensor<f32>
  %8 = drt.launch @kernel_5(%5) {at = array<i64: 192>} : (tensor<2xf32>) -> tensor<2xf32>
  %e = tensor.expand_shape %8 [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %9 = drt.launch @kernel_6(%0, %e) {at = array<i64: 128>} : (tensor<2x5xf32>, tensor<2x1xf32>) -> tensor<5xf32>
  %10 = drt.launch @kernel_7(%7) {at = array<i64: 64>} : (tensor<f32>) -> tensor<f32>
  // expected-note @+1 {{its bucket was started here (drt.all_reduce_start)}}
  drt.all_reduce_start %7, %10 {at = array<i64: 0>, bucket = 0 : i32, mean = true, names = ["q", "q2"]} : (tensor<f32>, tensor<f32>) -> ()
  %11 = drt.launch @kernel_8(%9) {at = array<i64: 192>} : (tensor<5xf32>) -> tensor<5xf32>
  drt.all_reduce_start %11 {at = array<i64: 192>, bucket = 1 : i32, mean = true, names = ["w"]} : (tensor<5xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update  {bucket = 0 : i32, count = 1 : i64, kernel = @update_step_0, member = 0 : i64, variables = [@q]} : () -> ()
  drt.update  {bucket = 0 : i32, count = 1 : i64, kernel = @update_step_1, member = 1 : i64, variables = [@q2]} : () -> ()
  drt.all_reduce_wait 1
  drt.update  {bucket = 1 : i32, count = 5 : i64, kernel = @update_step_2, member = 0 : i64, variables = [@w]} : () -> ()
  // expected-error @+1 {{reads a gradient that is being reduced in place}}
  drt.fetch %7 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

// -----

// Assignments of expressions, as Keras writes RMSprop.
drt.variable @"h/kernel" : tensor<20x32xf32> {saved, trainable}
drt.variable @"h/bias" : tensor<32xf32> {saved, trainable}
drt.variable @"out/kernel" : tensor<32x5xf32> {saved, trainable}
drt.variable @"out/bias" : tensor<5xf32> {saved, trainable}
drt.variable @global_step : tensor<i64> {saved}
drt.variable @"RMSprop/iter" : tensor<i64> {saved}
drt.variable @"RMSprop/decay" : tensor<f32> {saved}
drt.variable @"RMSprop/learning_rate" : tensor<f32> {saved}
drt.variable @"RMSprop/momentum" : tensor<f32> {saved}
drt.variable @"RMSprop/rho" : tensor<f32> {saved}
drt.variable @"RMSprop/h/kernel/rms" : tensor<20x32xf32> {saved}
drt.variable @"RMSprop/h/bias/rms" : tensor<32xf32> {saved}
drt.variable @"RMSprop/out/kernel/rms" : tensor<32x5xf32> {saved}
drt.variable @"RMSprop/out/bias/rms" : tensor<5xf32> {saved}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "x"} : () -> tensor<10x20xf32>
  %1 = drt.feed  {batched, name = "y"} : () -> tensor<10xi32>
  %2 = drt.read @"h/kernel" : tensor<20x32xf32>
  %3 = drt.read @"h/bias" : tensor<32xf32>
  %4 = drt.matmul %0, %2, %3 {at = array<i64: 0>} : (tensor<10x20xf32>, tensor<20x32xf32>, tensor<32xf32>) -> tensor<10x32xf32>
  %5 = drt.launch @kernel_2(%4) {at = array<i64: 3392>} : (tensor<10x32xf32>) -> tensor<10x32xf32>
  %6 = drt.launch @kernel_3(%4) {at = array<i64: 4672>} : (tensor<10x32xf32>) -> tensor<10x32xf32>
  %7 = drt.launch @kernel_4(%6) {at = array<i64: 5952>} : (tensor<10x32xf32>) -> tensor<10x32xf32>
  %8 = drt.launch @kernel_5(%5, %7) {at = array<i64: 7232>} : (tensor<10x32xf32>, tensor<10x32xf32>) -> tensor<10x32xf32>
  %9 = drt.read @"out/kernel" : tensor<32x5xf32>
  %10 = drt.read @"out/bias" : tensor<5xf32>
  %11 = drt.copy %10 {at = array<i64: 256>} : (tensor<5xf32>) -> tensor<5xf32>
  %12 = drt.matmul %8, %9, %11 {at = array<i64: 0>} : (tensor<10x32xf32>, tensor<32x5xf32>, tensor<5xf32>) -> tensor<10x5xf32>
  %13 = drt.launch @kernel_6(%12) {at = array<i64: 512>} : (tensor<10x5xf32>) -> tensor<10xf32>
  %e = tensor.expand_shape %13 [[0, 1]] output_shape [10, 1] : tensor<10xf32> into tensor<10x1xf32>
  %14 = drt.launch @kernel_7(%12, %e) {at = array<i64: 256>} : (tensor<10x5xf32>, tensor<10x1xf32>) -> tensor<10x5xf32>
  %15 = drt.launch @kernel_8(%14) {at = array<i64: 0>} : (tensor<10x5xf32>) -> tensor<10xf32>
  %e_0 = tensor.expand_shape %15 [[0, 1]] output_shape [10, 1] : tensor<10xf32> into tensor<10x1xf32>
  %16 = drt.launch @kernel_9(%1, %e_0, %14) {at = array<i64: 64>} : (tensor<10xi32>, tensor<10x1xf32>, tensor<10x5xf32>) -> tensor<10xf32>
  %17 = drt.launch @kernel_10(%16) {at = array<i64: 128>} : (tensor<10xf32>) -> tensor<f32>
  %18 = drt.launch @kernel_11(%17) {at = array<i64: 12352>} : (tensor<f32>) -> tensor<f32>
  %19 = drt.launch @kernel_12() {at = array<i64: 64>} : () -> tensor<10xf32>
  %e_1 = tensor.expand_shape %19 [[0, 1]] output_shape [10, 1] : tensor<10xf32> into tensor<10x1xf32>
  %20 = drt.launch @kernel_13(%e_1, %14, %e_0, %1) {at = array<i64: 9792>} : (tensor<10x1xf32>, tensor<10x5xf32>, tensor<10x1xf32>, tensor<10xi32>) -> tensor<10x5xf32>
  %21 = drt.launch @kernel_14(%20) {at = array<i64: 0>} : (tensor<10x5xf32>) -> tensor<5xf32>
  %22 = drt.matmul %20, %9 {at = array<i64: 8512>, transpose_b} : (tensor<10x5xf32>, tensor<32x5xf32>) -> tensor<10x32xf32>
  %23 = drt.matmul %8, %20 {at = array<i64: 64>, transpose_a} : (tensor<10x32xf32>, tensor<10x5xf32>) -> tensor<32x5xf32>
  %24:3 = drt.launch @kernel_15(%22, %7, %5, %6) {at = array<i64: 7232, 9792, 11072>} : (tensor<10x32xf32>, tensor<10x32xf32>, tensor<10x32xf32>, tensor<10x32xf32>) -> (tensor<10x32xf32>, tensor<10x32xf32>, tensor<10x32xf32>)
  %25 = drt.launch @kernel_16(%24#2) {at = array<i64: 704>} : (tensor<10x32xf32>) -> tensor<32xf32>
  %26 = drt.matmul %0, %24#2 {at = array<i64: 832>, transpose_a} : (tensor<10x20xf32>, tensor<10x32xf32>) -> tensor<20x32xf32>
  // expected-note @+1 {{its bucket was started here (drt.all_reduce_start)}}
  drt.all_reduce_start %21, %23, %25, %26 {at = array<i64: 0>, bucket = 0 : i32, mean = true, names = ["RMSprop/out/bias/rms", "RMSprop/out/kernel/rms", "RMSprop/h/bias/rms", "RMSprop/h/kernel/rms"]} : (tensor<5xf32>, tensor<32x5xf32>, tensor<32xf32>, tensor<20x32xf32>) -> ()
  %27 = drt.read @"RMSprop/learning_rate" : tensor<f32>
  %28 = drt.read @"RMSprop/rho" : tensor<f32>
  %29 = drt.launch @kernel_17(%28) {at = array<i64: 5952>} : (tensor<f32>) -> tensor<f32>
  %30 = drt.read @"RMSprop/h/kernel/rms" : tensor<20x32xf32>
  %31 = drt.read @"h/kernel" : tensor<20x32xf32>
  %32 = drt.read @"RMSprop/h/bias/rms" : tensor<32xf32>
  %33 = drt.read @"h/bias" : tensor<32xf32>
  %34 = drt.read @"RMSprop/out/kernel/rms" : tensor<32x5xf32>
  %35 = drt.read @"out/kernel" : tensor<32x5xf32>
  %36 = drt.read @"RMSprop/out/bias/rms" : tensor<5xf32>
  %37 = drt.copy %36 {at = array<i64: 6016>} : (tensor<5xf32>) -> tensor<5xf32>
  %38 = drt.read @"out/bias" : tensor<5xf32>
  %39 = drt.copy %38 {at = array<i64: 10112>} : (tensor<5xf32>) -> tensor<5xf32>
  drt.all_reduce_wait 0
  %40:4 = drt.all_reduce_result  {bucket = 0 : i32} : () -> (tensor<5xf32>, tensor<32x5xf32>, tensor<32xf32>, tensor<20x32xf32>)
  %41 = drt.launch @kernel_18(%28, %30, %29, %40#3) {at = array<i64: 3392>} : (tensor<f32>, tensor<20x32xf32>, tensor<f32>, tensor<20x32xf32>) -> tensor<20x32xf32>
  %42 = drt.launch @kernel_19(%28, %32, %29, %40#2) {at = array<i64: 7424>} : (tensor<f32>, tensor<32xf32>, tensor<f32>, tensor<32xf32>) -> tensor<32xf32>
  %43 = drt.launch @kernel_20(%28, %34, %29, %40#1) {at = array<i64: 6784>} : (tensor<f32>, tensor<32x5xf32>, tensor<f32>, tensor<32x5xf32>) -> tensor<32x5xf32>
  %44 = drt.launch @kernel_21(%28, %37, %29, %40#0) {at = array<i64: 10176>} : (tensor<f32>, tensor<5xf32>, tensor<f32>, tensor<5xf32>) -> tensor<5xf32>
  drt.barrier
  drt.update %41 {count = 640 : i64, kernel = @update_init_0, variables = [@"RMSprop/h/kernel/rms"]} : (tensor<20x32xf32>) -> ()
  drt.barrier
  %45 = drt.read @"RMSprop/h/kernel/rms" : tensor<20x32xf32>
  // expected-error @+1 {{reads a gradient that is being reduced in place}}
  %46 = drt.launch @kernel_22(%27, %26, %45) {at = array<i64: 3392>} : (tensor<f32>, tensor<20x32xf32>, tensor<20x32xf32>) -> tensor<20x32xf32>
  drt.update %42 {count = 32 : i64, kernel = @update_step_1, variables = [@"RMSprop/h/bias/rms"]} : (tensor<32xf32>) -> ()
  drt.barrier
  %47 = drt.read @"RMSprop/h/bias/rms" : tensor<32xf32>
  %48 = drt.launch @kernel_23(%27, %25, %47) {at = array<i64: 5952>} : (tensor<f32>, tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  drt.update %43 {count = 160 : i64, kernel = @update_init_2, variables = [@"RMSprop/out/kernel/rms"]} : (tensor<32x5xf32>) -> ()
  drt.barrier
  %49 = drt.read @"RMSprop/out/kernel/rms" : tensor<32x5xf32>
  %50 = drt.launch @kernel_24(%27, %23, %49) {at = array<i64: 6080>} : (tensor<f32>, tensor<32x5xf32>, tensor<32x5xf32>) -> tensor<32x5xf32>
  drt.update %44 {count = 5 : i64, kernel = @update_step_3, variables = [@"RMSprop/out/bias/rms"]} : (tensor<5xf32>) -> ()
  drt.barrier
  %51 = drt.read @"RMSprop/out/bias/rms" : tensor<5xf32>
  %52 = drt.copy %51 {at = array<i64: 10176>} : (tensor<5xf32>) -> tensor<5xf32>
  %53 = drt.launch @kernel_25(%27, %21, %52) {at = array<i64: 6720>} : (tensor<f32>, tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  drt.all_reduce_start %46, %48, %50, %53 {at = array<i64: 3392>, bucket = 1 : i32, mean = true, names = ["h/kernel", "h/bias", "out/kernel", "out/bias"]} : (tensor<20x32xf32>, tensor<32xf32>, tensor<32x5xf32>, tensor<5xf32>) -> ()
  drt.all_reduce_wait 1
  %54:4 = drt.all_reduce_result  {bucket = 1 : i32} : () -> (tensor<20x32xf32>, tensor<32xf32>, tensor<32x5xf32>, tensor<5xf32>)
  %55 = drt.launch @kernel_26(%31, %54#0) {at = array<i64: 6784>} : (tensor<20x32xf32>, tensor<20x32xf32>) -> tensor<20x32xf32>
  %56 = drt.launch @kernel_27(%33, %54#1) {at = array<i64: 9984>} : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %57 = drt.launch @kernel_28(%35, %54#2) {at = array<i64: 9344>} : (tensor<32x5xf32>, tensor<32x5xf32>) -> tensor<32x5xf32>
  %58 = drt.launch @kernel_29(%39, %54#3) {at = array<i64: 10176>} : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
  drt.barrier
  drt.update %55 {count = 640 : i64, kernel = @update_init_0, variables = [@"h/kernel"]} : (tensor<20x32xf32>) -> ()
  drt.update %56 {count = 32 : i64, kernel = @update_step_1, variables = [@"h/bias"]} : (tensor<32xf32>) -> ()
  drt.update %57 {count = 160 : i64, kernel = @update_init_2, variables = [@"out/kernel"]} : (tensor<32x5xf32>) -> ()
  drt.update %58 {count = 5 : i64, kernel = @update_step_3, variables = [@"out/bias"]} : (tensor<5xf32>) -> ()
  drt.update  {count = 1 : i64, kernel = @update_step_8, variables = [@"RMSprop/iter"]} : () -> ()
  drt.fetch %18 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

// -----

// The loss of weights is read behind the start of the bucket; its norm makes the update wait, but not for that read.
drt.variable @w : tensor<64x64xf32> {saved, trainable}
drt.variable @b : tensor<64xf32> {saved, trainable}
drt.variable @beta1_power : tensor<f32> {saved}
drt.variable @beta2_power : tensor<f32> {saved}
drt.variable @"w/Adam" : tensor<64x64xf32> {saved}
drt.variable @"w/Adam_1" : tensor<64x64xf32> {saved}
drt.variable @"b/Adam" : tensor<64xf32> {saved}
drt.variable @"b/Adam_1" : tensor<64xf32> {saved}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "x"} : () -> tensor<2x64xf32>
  %1 = drt.feed  {batched, name = "y"} : () -> tensor<2x64xf32>
  %2 = drt.read @w : tensor<64x64xf32>
  %3 = drt.read @b : tensor<64xf32>
  %4 = drt.matmul %0, %2, %3 {at = array<i64: 0>} : (tensor<2x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<2x64xf32>
  %5 = drt.launch @kernel_1(%4, %1) {at = array<i64: 512>} : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
  %6 = drt.launch @kernel_2(%5) {at = array<i64: 0>} : (tensor<2x64xf32>) -> tensor<f32>
  %7 = drt.launch @kernel_3(%2) {at = array<i64: 64>} : (tensor<64x64xf32>) -> tensor<f32>
  %8 = drt.launch @kernel_4(%6, %7) {at = array<i64: 49408>} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %9 = drt.launch @kernel_5(%5) {at = array<i64: 16640>} : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %10 = drt.launch @kernel_6(%9) {at = array<i64: 0>} : (tensor<2x64xf32>) -> tensor<64xf32>
  %11 = drt.matmul %0, %9 {at = array<i64: 256>, transpose_a} : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<64x64xf32>
  drt.all_reduce_start %10, %11 {at = array<i64: 0>, bucket = 0 : i32, mean = true, names = ["b", "w"]} : (tensor<64xf32>, tensor<64x64xf32>) -> ()
  %12 = drt.read @beta1_power : tensor<f32>
  %13 = drt.copy %12 {at = array<i64: 49472>} : (tensor<f32>) -> tensor<f32>
  %14 = drt.read @beta2_power : tensor<f32>
  %15 = drt.copy %14 {at = array<i64: 49536>} : (tensor<f32>) -> tensor<f32>
  drt.all_reduce_wait 0
  %16:2 = drt.all_reduce_result  {bucket = 0 : i32} : () -> (tensor<64xf32>, tensor<64x64xf32>)
  // expected-note @+1 {{the other access (drt.launch)}}
  %17 = drt.launch @kernel_7(%2, %16#1) {at = array<i64: 16640>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %18 = drt.launch @kernel_3(%17) {at = array<i64: 33024>} : (tensor<64x64xf32>) -> tensor<f32>
  %19 = drt.launch @kernel_9(%18) {at = array<i64: 33088>} : (tensor<f32>) -> tensor<f32>
  %20 = drt.launch @kernel_10(%16#0) {at = array<i64: 33024>} : (tensor<64xf32>) -> tensor<f32>
  %21 = drt.launch @kernel_9(%20) {at = array<i64: 33152>} : (tensor<f32>) -> tensor<f32>
  %e = tensor.expand_shape %19 [] output_shape [1] : tensor<f32> into tensor<1xf32>
  %e_0 = tensor.expand_shape %21 [] output_shape [1] : tensor<f32> into tensor<1xf32>
  %22 = drt.launch @kernel_12(%e, %e_0) {at = array<i64: 33024>} : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
  %23 = drt.launch @kernel_13(%22) {at = array<i64: 33088>} : (tensor<2xf32>) -> tensor<f32>
  %24 = drt.launch @kernel_14(%23) {at = array<i64: 49600>} : (tensor<f32>) -> tensor<f32>
  %25 = drt.launch @kernel_15(%17, %24) {at = array<i64: 33024>} : (tensor<64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
  %26 = drt.launch @kernel_16(%16#0, %24) {at = array<i64: 16640>} : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %27 = drt.read @beta1_power : tensor<f32>
  %28 = drt.copy %27 {at = array<i64: 16896>} : (tensor<f32>) -> tensor<f32>
  %29 = drt.launch @kernel_17(%28) {at = array<i64: 16960>} : (tensor<f32>) -> tensor<f32>
  %30 = drt.read @beta2_power : tensor<f32>
  %31 = drt.copy %30 {at = array<i64: 16896>} : (tensor<f32>) -> tensor<f32>
  %32 = drt.launch @kernel_18(%31) {at = array<i64: 17024>} : (tensor<f32>) -> tensor<f32>
  // expected-error @+1 {{writes variable w (each replica's range) while another replica may still read it (all elements); the replicas do not meet between}}
  drt.update %13, %15, %25 {count = 4096 : i64, kernel = @update_step_0, variables = [@w, @"w/Adam", @"w/Adam_1"]} : (tensor<f32>, tensor<f32>, tensor<64x64xf32>) -> ()
  drt.update %13, %15, %26 {count = 64 : i64, kernel = @update_step_1, variables = [@b, @"b/Adam", @"b/Adam_1"]} : (tensor<f32>, tensor<f32>, tensor<64xf32>) -> ()
  drt.barrier
  drt.update %29 {count = 1 : i64, kernel = @update_step_2, variables = [@beta1_power]} : (tensor<f32>) -> ()
  drt.update %32 {count = 1 : i64, kernel = @update_step_2, variables = [@beta2_power]} : (tensor<f32>) -> ()
  drt.fetch %8 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

// -----

// The same with a plain gradient descent.
drt.variable @w : tensor<64x64xf32> {saved, trainable}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "x"} : () -> tensor<2x64xf32>
  %1 = drt.feed  {batched, name = "y"} : () -> tensor<2x64xf32>
  %2 = drt.read @w : tensor<64x64xf32>
  %3 = drt.matmul %0, %2 {at = array<i64: 0>} : (tensor<2x64xf32>, tensor<64x64xf32>) -> tensor<2x64xf32>
  %4 = drt.launch @kernel_1(%3, %1) {at = array<i64: 512>} : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
  %5 = drt.launch @kernel_2(%4) {at = array<i64: 0>} : (tensor<2x64xf32>) -> tensor<f32>
  %6 = drt.launch @kernel_3(%2) {at = array<i64: 64>} : (tensor<64x64xf32>) -> tensor<f32>
  %7 = drt.launch @kernel_4(%5, %6) {at = array<i64: 49152>} : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %8 = drt.launch @kernel_5(%4) {at = array<i64: 16384>} : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %9 = drt.matmul %0, %8 {at = array<i64: 0>, transpose_a} : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<64x64xf32>
  drt.all_reduce_start %9 {at = array<i64: 0>, bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<64x64xf32>) -> ()
  drt.all_reduce_wait 0
  %10 = drt.all_reduce_result  {bucket = 0 : i32} : () -> tensor<64x64xf32>
  // expected-note @+1 {{the other access (drt.launch)}}
  %11 = drt.launch @kernel_6(%2, %10) {at = array<i64: 16384>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %12 = drt.launch @kernel_3(%11) {at = array<i64: 32768>} : (tensor<64x64xf32>) -> tensor<f32>
  %13 = drt.launch @kernel_8(%12) {at = array<i64: 32832>} : (tensor<f32>) -> tensor<f32>
  %e = tensor.expand_shape %13 [] output_shape [1] : tensor<f32> into tensor<1xf32>
  %14 = drt.launch @kernel_9(%e) {at = array<i64: 32768>} : (tensor<1xf32>) -> tensor<1xf32>
  %15 = drt.launch @kernel_10(%14) {at = array<i64: 49216>} : (tensor<1xf32>) -> tensor<f32>
  %16 = drt.launch @kernel_11(%11, %15) {at = array<i64: 32768>} : (tensor<64x64xf32>, tensor<f32>) -> tensor<64x64xf32>
  // expected-error @+1 {{writes variable w (each replica's range) while another replica may still read it (all elements); the replicas do not meet between}}
  drt.update %16 {count = 4096 : i64, kernel = @update_step_0, variables = [@w]} : (tensor<64x64xf32>) -> ()
  drt.fetch %7 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

// -----

// Gradients minus their mean.
drt.variable @w : tensor<5x9xf32> {saved, trainable}
drt.variable @u : tensor<9x4xf32> {saved, trainable}
drt.variable @q : tensor<f32> {saved, trainable}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "x"} : () -> tensor<2x5xf32>
  %1 = drt.feed  {batched, name = "y"} : () -> tensor<2x4xf32>
  %2 = drt.read @w : tensor<5x9xf32>
  %3 = drt.matmul %0, %2 {at = array<i64: 384>, epilogue = 2 : i32} : (tensor<2x5xf32>, tensor<5x9xf32>) -> tensor<2x9xf32>
  %4 = drt.read @u : tensor<9x4xf32>
  %5 = drt.matmul %3, %4 {at = array<i64: 0>} : (tensor<2x9xf32>, tensor<9x4xf32>) -> tensor<2x4xf32>
  %6 = drt.launch @kernel_2(%5, %1) {at = array<i64: 64>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %7 = drt.launch @kernel_3(%6) {at = array<i64: 0>} : (tensor<2x4xf32>) -> tensor<2xf32>
  %8 = drt.launch @kernel_4(%7) {at = array<i64: 128>} : (tensor<2xf32>) -> tensor<f32>
  %9 = drt.launch @kernel_5(%8) {at = array<i64: 768>} : (tensor<f32>) -> tensor<f32>
  %10 = drt.launch @kernel_6() {at = array<i64: 0>} : () -> tensor<f32>
  %e = tensor.expand_shape %10 [] output_shape [1] : tensor<f32> into tensor<1xf32>
  %11 = drt.launch @kernel_7(%e) {at = array<i64: 128>} : (tensor<1xf32>) -> tensor<2xf32>
  %e_0 = tensor.expand_shape %11 [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %12 = drt.launch @kernel_8(%e_0, %6) {at = array<i64: 640>} : (tensor<2x1xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %13 = drt.matmul %12, %4 {at = array<i64: 512>, transpose_b} : (tensor<2x4xf32>, tensor<9x4xf32>) -> tensor<2x9xf32>
  %14 = drt.matmul %3, %12 {at = array<i64: 0>, transpose_a} : (tensor<2x9xf32>, tensor<2x4xf32>) -> tensor<9x4xf32>
  %15 = drt.launch @kernel_9(%3, %13) {at = array<i64: 640>} : (tensor<2x9xf32>, tensor<2x9xf32>) -> tensor<2x9xf32>
  %16 = drt.matmul %0, %15 {at = array<i64: 192>, transpose_a} : (tensor<2x5xf32>, tensor<2x9xf32>) -> tensor<5x9xf32>
  // expected-note @+1 {{its bucket was started here (drt.all_reduce_start)}}
  drt.all_reduce_start %14, %16 {at = array<i64: 0>, bucket = 0 : i32, mean = false, names = ["q", "q"]} : (tensor<9x4xf32>, tensor<5x9xf32>) -> ()
  drt.all_reduce_wait 0
  %17:2 = drt.all_reduce_result  {bucket = 0 : i32} : () -> (tensor<9x4xf32>, tensor<5x9xf32>)
  %18 = drt.launch @kernel_10(%17#1) {at = array<i64: 384>} : (tensor<5x9xf32>) -> tensor<f32>
  %19 = drt.launch @kernel_11(%18) {at = array<i64: 448>} : (tensor<f32>) -> tensor<f32>
  %20 = drt.launch @kernel_12(%17#0) {at = array<i64: 384>} : (tensor<9x4xf32>) -> tensor<f32>
  %21 = drt.launch @kernel_11(%20) {at = array<i64: 512>} : (tensor<f32>) -> tensor<f32>
  %e_1 = tensor.expand_shape %19 [] output_shape [1] : tensor<f32> into tensor<1xf32>
  %e_2 = tensor.expand_shape %21 [] output_shape [1] : tensor<f32> into tensor<1xf32>
  %22 = drt.launch @kernel_14(%e_1, %e_2) {at = array<i64: 384>} : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
  %23 = drt.launch @kernel_4(%22) {at = array<i64: 448>} : (tensor<2xf32>) -> tensor<f32>
  %24 = drt.launch @kernel_16(%23) {at = array<i64: 832>} : (tensor<f32>) -> tensor<f32>
  // expected-error @+1 {{reads a gradient that is being reduced in place}}
  %25 = drt.launch @kernel_17(%16) {at = array<i64: 384>} : (tensor<5x9xf32>) -> tensor<9xf32>
  %26 = drt.launch @kernel_18(%25) {at = array<i64: 896>} : (tensor<9xf32>) -> tensor<9xf32>
  %e_3 = tensor.expand_shape %26 [[0, 1]] output_shape [1, 9] : tensor<9xf32> into tensor<1x9xf32>
  %27 = drt.launch @kernel_19(%16, %e_3) {at = array<i64: 384>} : (tensor<5x9xf32>, tensor<1x9xf32>) -> tensor<5x9xf32>
  %28 = drt.launch @kernel_20(%14) {at = array<i64: 896>} : (tensor<9x4xf32>) -> tensor<4xf32>
  %29 = drt.launch @kernel_21(%28) {at = array<i64: 960>} : (tensor<4xf32>) -> tensor<4xf32>
  %e_4 = tensor.expand_shape %29 [[0, 1]] output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>
  %30 = drt.launch @kernel_22(%14, %e_4) {at = array<i64: 576>} : (tensor<9x4xf32>, tensor<1x4xf32>) -> tensor<9x4xf32>
  drt.all_reduce_start %27, %30 {at = array<i64: 384>, bucket = 1 : i32, mean = false, names = ["w", "u"]} : (tensor<5x9xf32>, tensor<9x4xf32>) -> ()
  drt.update %24 {count = 1 : i64, kernel = @update_step_0, variables = [@q]} : (tensor<f32>) -> ()
  drt.all_reduce_wait 1
  drt.update  {bucket = 1 : i32, count = 45 : i64, kernel = @update_step_1, member = 0 : i64, variables = [@w]} : () -> ()
  drt.update  {bucket = 1 : i32, count = 36 : i64, kernel = @update_step_2, member = 1 : i64, variables = [@u]} : () -> ()
  drt.fetch %9 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

// -----

// One optimizer after another, by a gradient that is clipped by its norm.
drt.variable @v : tensor<40xf32> {saved, trainable}
drt.variable @u : tensor<40xf32> {saved, trainable}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "x"} : () -> tensor<2x40xf32>
  %1 = drt.feed  {batched, name = "y"} : () -> tensor<2xf32>
  %2 = drt.read @v : tensor<40xf32>
  %3 = drt.launch @kernel_2(%0, %2) {at = array<i64: 0>} : (tensor<2x40xf32>, tensor<40xf32>) -> tensor<2xf32>
  %4 = drt.launch @kernel_3(%3, %1) {at = array<i64: 64>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %5 = drt.read @u : tensor<40xf32>
  %6 = drt.launch @kernel_2(%0, %5) {at = array<i64: 0>} : (tensor<2x40xf32>, tensor<40xf32>) -> tensor<2xf32>
  %7 = drt.launch @kernel_5(%6, %1) {at = array<i64: 128>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %8 = drt.launch @kernel_6(%4, %7) {at = array<i64: 0>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
  %9 = drt.launch @kernel_7(%8) {at = array<i64: 768>} : (tensor<f32>) -> tensor<f32>
  %10:2 = drt.launch @kernel_8(%4) {at = array<i64: 0, 384>} : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %11:2 = drt.launch @kernel_8(%7) {at = array<i64: 0, 448>} : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %e = tensor.expand_shape %10#1 [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %e_0 = tensor.expand_shape %11#1 [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %12 = drt.launch @kernel_10(%0, %e) {at = array<i64: 0>} : (tensor<2x40xf32>, tensor<2x1xf32>) -> tensor<40xf32>
  %13 = drt.launch @kernel_10(%0, %e_0) {at = array<i64: 192>} : (tensor<2x40xf32>, tensor<2x1xf32>) -> tensor<40xf32>
  // expected-note @+1 {{its bucket was started here (drt.all_reduce_start)}}
  drt.all_reduce_start %12, %13 {at = array<i64: 0>, bucket = 0 : i32, mean = true, names = ["v", "u"]} : (tensor<40xf32>, tensor<40xf32>) -> ()
  drt.all_reduce_wait 0
  %14:2 = drt.all_reduce_result  {bucket = 0 : i32} : () -> (tensor<40xf32>, tensor<40xf32>)
  %15 = drt.launch @kernel_12(%14#1) {at = array<i64: 832>} : (tensor<40xf32>) -> tensor<f32>
  %e_1 = tensor.expand_shape %15 [] output_shape [1] : tensor<f32> into tensor<1xf32>
  // expected-error @+1 {{reads a gradient that is being reduced in place}}
  %16 = drt.launch @kernel_13(%13) {at = array<i64: 384>} : (tensor<40xf32>) -> tensor<40xf32>
  drt.all_reduce_start %16 {at = array<i64: 384>, bucket = 1 : i32, mean = true, names = ["u"]} : (tensor<40xf32>) -> ()
  drt.all_reduce_wait 1
  %17 = drt.all_reduce_result  {bucket = 1 : i32} : () -> tensor<40xf32>
  %18 = drt.launch @kernel_14(%17, %e_1) {at = array<i64: 576>} : (tensor<40xf32>, tensor<1xf32>) -> tensor<40xf32>
  drt.update %14#0 {count = 40 : i64, kernel = @update_step_0, variables = [@v]} : (tensor<40xf32>) -> ()
  drt.update %18 {count = 40 : i64, kernel = @update_step_0, variables = [@u]} : (tensor<40xf32>) -> ()
  drt.fetch %9 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

// -----

// The global norm of the gradients is kept in a variable.
drt.variable @w : tensor<5x9xf32> {saved, trainable}
drt.variable @u : tensor<9x4xf32> {saved, trainable}
drt.variable @q : tensor<f32> {saved, trainable}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "x"} : () -> tensor<2x5xf32>
  %1 = drt.feed  {batched, name = "y"} : () -> tensor<2x4xf32>
  %2 = drt.read @w : tensor<5x9xf32>
  %3 = drt.matmul %0, %2 {at = array<i64: 384>, epilogue = 2 : i32} : (tensor<2x5xf32>, tensor<5x9xf32>) -> tensor<2x9xf32>
  %4 = drt.read @u : tensor<9x4xf32>
  %5 = drt.matmul %3, %4 {at = array<i64: 0>} : (tensor<2x9xf32>, tensor<9x4xf32>) -> tensor<2x4xf32>
  %6 = drt.launch @kernel_2(%5, %1) {at = array<i64: 64>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %7 = drt.launch @kernel_3(%6) {at = array<i64: 0>} : (tensor<2x4xf32>) -> tensor<2xf32>
  %8 = drt.launch @kernel_4(%7) {at = array<i64: 128>} : (tensor<2xf32>) -> tensor<f32>
  %9 = drt.launch @kernel_5(%8) {at = array<i64: 768>} : (tensor<f32>) -> tensor<f32>
  %10 = drt.launch @kernel_6() {at = array<i64: 0>} : () -> tensor<f32>
  %e = tensor.expand_shape %10 [] output_shape [1] : tensor<f32> into tensor<1xf32>
  %11 = drt.launch @kernel_7(%e) {at = array<i64: 128>} : (tensor<1xf32>) -> tensor<2xf32>
  %e_0 = tensor.expand_shape %11 [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %12 = drt.launch @kernel_8(%e_0, %6) {at = array<i64: 640>} : (tensor<2x1xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %13 = drt.matmul %12, %4 {at = array<i64: 512>, transpose_b} : (tensor<2x4xf32>, tensor<9x4xf32>) -> tensor<2x9xf32>
  %14 = drt.matmul %3, %12 {at = array<i64: 0>, transpose_a} : (tensor<2x9xf32>, tensor<2x4xf32>) -> tensor<9x4xf32>
  %15 = drt.launch @kernel_9(%3, %13) {at = array<i64: 640>} : (tensor<2x9xf32>, tensor<2x9xf32>) -> tensor<2x9xf32>
  %16 = drt.matmul %0, %15 {at = array<i64: 192>, transpose_a} : (tensor<2x5xf32>, tensor<2x9xf32>) -> tensor<5x9xf32>
  // expected-note @+1 {{its bucket was started here (drt.all_reduce_start)}}
  drt.all_reduce_start %14, %16 {at = array<i64: 0>, bucket = 0 : i32, mean = false, names = ["q", "q"]} : (tensor<9x4xf32>, tensor<5x9xf32>) -> ()
  drt.all_reduce_wait 0
  %17:2 = drt.all_reduce_result  {bucket = 0 : i32} : () -> (tensor<9x4xf32>, tensor<5x9xf32>)
  %18 = drt.launch @kernel_10(%17#1) {at = array<i64: 384>} : (tensor<5x9xf32>) -> tensor<f32>
  %19 = drt.launch @kernel_11(%18) {at = array<i64: 448>} : (tensor<f32>) -> tensor<f32>
  %20 = drt.launch @kernel_12(%17#0) {at = array<i64: 384>} : (tensor<9x4xf32>) -> tensor<f32>
  %21 = drt.launch @kernel_11(%20) {at = array<i64: 512>} : (tensor<f32>) -> tensor<f32>
  %e_1 = tensor.expand_shape %19 [] output_shape [1] : tensor<f32> into tensor<1xf32>
  %e_2 = tensor.expand_shape %21 [] output_shape [1] : tensor<f32> into tensor<1xf32>
  %22 = drt.launch @kernel_14(%e_1, %e_2) {at = array<i64: 384>} : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
  %23 = drt.launch @kernel_4(%22) {at = array<i64: 448>} : (tensor<2xf32>) -> tensor<f32>
  %24 = drt.launch @kernel_16(%23) {at = array<i64: 832>} : (tensor<f32>) -> tensor<f32>
  // expected-error @+1 {{reads a gradient that is being reduced in place}}
  %25 = drt.launch @kernel_17(%16) {at = array<i64: 384>} : (tensor<5x9xf32>) -> tensor<5x9xf32>
  %26 = drt.launch @kernel_18(%14) {at = array<i64: 576>} : (tensor<9x4xf32>) -> tensor<9x4xf32>
  drt.all_reduce_start %25, %26 {at = array<i64: 384>, bucket = 1 : i32, mean = false, names = ["w", "u"]} : (tensor<5x9xf32>, tensor<9x4xf32>) -> ()
  drt.update %24 {count = 1 : i64, kernel = @update_step_0, variables = [@q]} : (tensor<f32>) -> ()
  drt.all_reduce_wait 1
  drt.update  {bucket = 1 : i32, count = 45 : i64, kernel = @update_step_1, member = 0 : i64, variables = [@w]} : () -> ()
  drt.update  {bucket = 1 : i32, count = 36 : i64, kernel = @update_step_2, member = 1 : i64, variables = [@u]} : () -> ()
  drt.fetch %9 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

// -----

// The values of the last steps move on from variable to variable.
drt.variable @w : tensor<17xf32> {saved, trainable}
drt.variable @h1 : tensor<17xf32> {saved}
drt.variable @h2 : tensor<17xf32> {saved}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "x"} : () -> tensor<2x17xf32>
  %1 = drt.feed  {batched, name = "y"} : () -> tensor<2xf32>
  %2 = drt.read @w : tensor<17xf32>
  %3 = drt.launch @kernel_1(%0, %2) {at = array<i64: 0>} : (tensor<2x17xf32>, tensor<17xf32>) -> tensor<2xf32>
  %4 = drt.launch @kernel_2(%3, %1) {at = array<i64: 64>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %5 = drt.launch @kernel_3(%4) {at = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  %6 = drt.launch @kernel_4(%5) {at = array<i64: 256>} : (tensor<f32>) -> tensor<f32>
  %7 = drt.launch @kernel_5(%4) {at = array<i64: 128>} : (tensor<2xf32>) -> tensor<2xf32>
  %e = tensor.expand_shape %7 [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %8 = drt.launch @kernel_6(%0, %e) {at = array<i64: 0>} : (tensor<2x17xf32>, tensor<2x1xf32>) -> tensor<17xf32>
  // expected-note @+1 {{its bucket was started here (drt.all_reduce_start)}}
  drt.all_reduce_start %8 {at = array<i64: 0>, bucket = 0 : i32, mean = true, names = ["h1"]} : (tensor<17xf32>) -> ()
  %9 = drt.read @h1 : tensor<17xf32>
  // expected-error @+1 {{reads a gradient that is being reduced in place}}
  %10 = drt.launch @kernel_7(%8) {at = array<i64: 128>} : (tensor<17xf32>) -> tensor<17xf32>
  drt.all_reduce_start %10 {at = array<i64: 128>, bucket = 1 : i32, mean = true, names = ["w"]} : (tensor<17xf32>) -> ()
  drt.update %9 {count = 17 : i64, kernel = @update_init_0, variables = [@h2]} : (tensor<17xf32>) -> ()
  drt.all_reduce_wait 0
  drt.barrier
  drt.update  {bucket = 0 : i32, count = 17 : i64, kernel = @update_step_1, member = 0 : i64, variables = [@h1]} : () -> ()
  drt.all_reduce_wait 1
  drt.update  {bucket = 1 : i32, count = 17 : i64, kernel = @update_step_2, member = 0 : i64, variables = [@w]} : () -> ()
  drt.fetch %6 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

// -----

// A variable keeps another one's value of before the update.
drt.variable @w : tensor<64xf32> {saved, trainable}
drt.variable @h : tensor<64xf32> {saved, trainable}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "x"} : () -> tensor<2x64xf32>
  %1 = drt.feed  {batched, name = "y"} : () -> tensor<2xf32>
  %2 = drt.read @w : tensor<64xf32>
  %3 = drt.launch @kernel_1(%0, %2) {at = array<i64: 0>} : (tensor<2x64xf32>, tensor<64xf32>) -> tensor<2xf32>
  %4 = drt.launch @kernel_2(%3, %1) {at = array<i64: 64>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %5 = drt.launch @kernel_3(%4) {at = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  %6 = drt.launch @kernel_4(%5) {at = array<i64: 512>} : (tensor<f32>) -> tensor<f32>
  %7 = drt.launch @kernel_5(%4) {at = array<i64: 256>} : (tensor<2xf32>) -> tensor<2xf32>
  %e = tensor.expand_shape %7 [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %8 = drt.launch @kernel_6(%0, %e) {at = array<i64: 0>} : (tensor<2x64xf32>, tensor<2x1xf32>) -> tensor<64xf32>
  %9 = drt.launch @kernel_7(%8) {at = array<i64: 256>} : (tensor<64xf32>) -> tensor<64xf32>
  drt.all_reduce_start %9 {at = array<i64: 256>, bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<64xf32>) -> ()
  drt.all_reduce_wait 0
  // expected-note @+1 {{it was written here (drt.update)}}
  drt.update  {bucket = 0 : i32, count = 64 : i64, kernel = @update_step_0, member = 0 : i64, variables = [@w]} : () -> ()
  // expected-error @+1 {{reads the old value of w, which is gone}}
  drt.update %2 {count = 64 : i64, kernel = @update_init_0, variables = [@h]} : (tensor<64xf32>) -> ()
  drt.fetch %6 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}

// -----

// Two variables exchange their values.
drt.variable @w : tensor<64xf32> {saved, trainable}
drt.variable @a : tensor<64xf32> {saved}
drt.variable @b : tensor<64xf32> {saved}
drt.entry "step" {
  %0 = drt.feed  {batched, name = "x"} : () -> tensor<2x64xf32>
  %1 = drt.feed  {batched, name = "y"} : () -> tensor<2xf32>
  %2 = drt.read @w : tensor<64xf32>
  %3 = drt.launch @kernel_1(%0, %2) {at = array<i64: 0>} : (tensor<2x64xf32>, tensor<64xf32>) -> tensor<2xf32>
  %4 = drt.launch @kernel_2(%3, %1) {at = array<i64: 64>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %5 = drt.launch @kernel_3(%4) {at = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
  %6 = drt.launch @kernel_4(%5) {at = array<i64: 512>} : (tensor<f32>) -> tensor<f32>
  %7 = drt.launch @kernel_5(%4) {at = array<i64: 256>} : (tensor<2xf32>) -> tensor<2xf32>
  %e = tensor.expand_shape %7 [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %8 = drt.launch @kernel_6(%0, %e) {at = array<i64: 0>} : (tensor<2x64xf32>, tensor<2x1xf32>) -> tensor<64xf32>
  %9 = drt.read @a : tensor<64xf32>
  %10 = drt.read @b : tensor<64xf32>
  %11 = drt.launch @kernel_7(%8) {at = array<i64: 256>} : (tensor<64xf32>) -> tensor<64xf32>
  drt.all_reduce_start %11 {at = array<i64: 256>, bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<64xf32>) -> ()
  // expected-note @+1 {{it was written here (drt.update)}}
  drt.update %10 {count = 64 : i64, kernel = @update_init_0, variables = [@a]} : (tensor<64xf32>) -> ()
  drt.barrier
  // expected-error @+1 {{reads the old value of a, which is gone}}
  drt.update %9 {count = 64 : i64, kernel = @update_init_0, variables = [@b]} : (tensor<64xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update  {bucket = 0 : i32, count = 64 : i64, kernel = @update_step_2, member = 0 : i64, variables = [@w]} : () -> ()
  drt.fetch %6 {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}
