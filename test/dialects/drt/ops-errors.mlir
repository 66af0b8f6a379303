// RUN: distc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{is 'tensor<?xf32>'; a variable's memory has a size}}
drt.variable @w : tensor<?xf32>

// -----

// expected-error @below {{is 'tensor<2x2xf32>' at 3 of axis 0 of 4}}
drt.variable @w : tensor<2x2xf32> {full_shape = array<i64: 4, 2>, slice_begin = array<i64: 3, 0>, whole = "whole"}

// -----

// expected-error @below {{is 'tensor<2xf32>', which is no one of 2 shares of 6 elements}}
drt.variable @w : tensor<2xf32> {full_shape = array<i64: 3, 2>, shares = 2 : i64, whole = "whole"}

// -----

// Replicas could take different blocks, and meet unequally often.
// expected-error @below {{expects region #0 to have 0 or 1 blocks}}
drt.entry "step" {
  cf.br ^end
^end:
}

// -----

// expected-error @below {{takes values; an entry's are feeds and variables}}
drt.entry "step" {
^bb0(%x: tensor<4xf32>):
  drt.fetch %x {name = "x", join = 2 : i32} : (tensor<4xf32>) -> ()
}

// -----

// expected-note @below {{the first}}
drt.entry "step" {}
drt.entry "eval" {}
// expected-error @below {{is the second of the name "step"}}
drt.entry "step" {}

// -----

func.func @sizes_unknown() {
  // expected-error @below {{result #0 must be tensor of static shape}}
  %x = drt.feed {name = "x"} : () -> tensor<?xf32>
  return
}

// -----

func.func @default() {
  %x = drt.feed {name = "x"} : () -> tensor<2xf32>
  // expected-error @below {{has 'tensor<2xf32>' where 'tensor<3xf32>' is needed}}
  %y = drt.feed_or %x {name = "y"} : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @place(%x: tensor<2xf32>) {
  // expected-error @below {{has 2 places in the arena for 1 results}}
  %y = drt.copy %x {at = array<i64: 0, 64>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @negative_place(%x: tensor<2xf32>) {
  // expected-error @below {{has place -64 in the arena}}
  %y = drt.copy %x {at = array<i64: -64>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @rows(%x: tensor<5x3xf32>) {
  // expected-error @below {{takes rows 'tensor<2x3xf32>' of 'tensor<5x3xf32>', which are no equal part of it}}
  %y = drt.take_rows %x : (tensor<5x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @empty() {
  // expected-error @below {{has a result 'tensor<2xf32>'; it needs 0 elements}}
  %y = drt.empty : () -> tensor<2xf32>
  return
}

// -----

func.func @contraction(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @below {{makes 4 x 5 of 'tensor<4x3xf32>' and 'tensor<4x5xf32>'}}
  %c = drt.matmul %a, %b : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @batch(%a: tensor<2x1x4x3xf32>, %b: tensor<2x6x3x5xf32>) {
  // expected-error @below {{broadcasts some axes of its batch and not others: 'tensor<2x1x4x3xf32>'}}
  %c = drt.matmul %a, %b : (tensor<2x1x4x3xf32>, tensor<2x6x3x5xf32>) -> tensor<2x6x4x5xf32>
  return
}

// -----

func.func @bias(%a: tensor<4x3xf32>, %b: tensor<3x5xf32>, %bias: tensor<4xf32>) {
  // expected-error @below {{has a bias 'tensor<4xf32>'; it needs 5 elements}}
  %c = drt.matmul %a, %b, %bias : (tensor<4x3xf32>, tensor<3x5xf32>, tensor<4xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @packs_float64(%b: tensor<3x5xf64>) {
  // expected-error @below {{packs a matrix of float32, not 'tensor<3x5xf64>'}}
  %p = drt.pack %b : (tensor<3x5xf64>) -> tensor<6272xi8>
  return
}

// -----

func.func @packs_into_too_little(%b: tensor<3x5xf32>) {
  // expected-error @below {{gives 'tensor<60xi8>'; it needs a row of 6272 bytes}}
  %p = drt.pack %b : (tensor<3x5xf32>) -> tensor<60xi8>
  return
}

// -----

func.func @packed_another_way(%a: tensor<4x3xf32>, %b: tensor<3x5xf32>) {
  %p = drt.pack %b {transpose_b} : (tensor<3x5xf32>) -> tensor<6272xi8>
  // expected-error @below {{needs what drt.pack made of an operand like its own}}
  %c = drt.matmul_packed %a, %b, %p : (tensor<4x3xf32>, tensor<3x5xf32>, tensor<6272xi8>) -> tensor<4x5xf32>
  return
}

// -----

drt.entry "step" {
  %a = drt.feed {name = "a"} : () -> tensor<4x3xf32>
  %c = drt.feed {name = "c"} : () -> tensor<8x3xf32>
  %b = drt.feed {name = "b"} : () -> tensor<3x5xf32>
  // expected-error @+1 {{'drt.matmul_stacked' op makes 'tensor<4x5xf32>' of 'tensor<4x3xf32>', and 'tensor<8x5xf32>' of 'tensor<8x3xf32>'}}
  %y:2 = drt.matmul_stacked %a, %c by %b : (tensor<4x3xf32>, tensor<8x3xf32>, tensor<3x5xf32>) -> (tensor<4x5xf32>, tensor<8x5xf32>)
}

// -----

drt.entry "step" {
  %a = drt.feed {name = "a"} : () -> tensor<4x3xf32>
  %b = drt.feed {name = "b"} : () -> tensor<3x5xf32>
  // expected-error @+1 {{'drt.matmul_stacked' op needs matrices on its left, and a result for each; it has 2 and 1}}
  %y = drt.matmul_stacked %a, %a by %b : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
}

// -----

drt.entry "step" {
  %a = drt.feed {name = "a"} : () -> tensor<4x3xf64>
  %b = drt.feed {name = "b"} : () -> tensor<3x5xf64>
  // expected-error @+1 {{'drt.matmul_stacked' op multiplies float32, not 'tensor<4x3xf64>'}}
  %y = drt.matmul_stacked %a by %b : (tensor<4x3xf64>, tensor<3x5xf64>) -> tensor<4x5xf64>
}

// -----

func.func @sum_of_other_shapes(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>, %c: tensor<8x3xf32>, %d: tensor<8x5xf32>) {
  // expected-error @below {{adds up products of 'tensor<4x3xf32>' and 'tensor<4x5xf32>', and one of 'tensor<8x3xf32>' and 'tensor<8x5xf32>'}}
  %e = drt.matmul_sum %a, %c, %b, %d : (tensor<4x3xf32>, tensor<8x3xf32>, tensor<4x5xf32>, tensor<8x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @sum_contraction(%a: tensor<4x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @below {{makes 4 x 5 of 'tensor<4x3xf32>' transposed and 'tensor<4x5xf32>'}}
  %c = drt.matmul_sum %a, %b : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @epilogue(%a: tensor<4x3xf32>, %b: tensor<3x5xf32>) {
  // expected-error @below {{has epilogue 7, which is not from 0 to 3}}
  %c = drt.matmul %a, %b {epilogue = 7 : i32} : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @filter(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x2xf32>) {
  // expected-error @below {{has a filter 'tensor<3x3x4x2xf32>'; it needs 288 elements}}
  %y = drt.conv2d %x, %w {descriptor = array<i64: 1, 8, 8, 4, 3, 3, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1>}
      : (tensor<1x8x8x4xf32>, tensor<3x3x4x2xf32>) -> tensor<1x8x8x8xf32>
  return
}

// -----

func.func @descriptor(%x: tensor<1x8x8x4xf32>, %dy: tensor<1x8x8x8xf32>) {
  // expected-error @below {{needs a descriptor of 18 numbers, not 2}}
  %dw = drt.conv2d_grad_filter %x, %dy {descriptor = array<i64: 1, 8>} : (tensor<1x8x8x4xf32>, tensor<1x8x8x8xf32>) -> tensor<3x3x4x2xf32>
  return
}

// -----

func.func @groups(%dy: tensor<1x8x8x8xf32>, %w: tensor<3x3x4x2xf32>) {
  // expected-error @below {{has 3 groups of 4 channels into 8}}
  %dx = drt.conv2d_grad_input %w, %dy {descriptor = array<i64: 1, 8, 8, 4, 3, 3, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1, 3>}
      : (tensor<3x3x4x2xf32>, tensor<1x8x8x8xf32>) -> tensor<1x8x8x4xf32>
  return
}

// -----

func.func @pool(%x: tensor<1x4x4x2xf32>) {
  // expected-error @below {{has an output 'tensor<1x3x2x2xf32>'; it needs 8 elements}}
  %y = drt.pool %x {kind = 0 : i32, descriptor = array<i64: 1, 4, 4, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0>} : (tensor<1x4x4x2xf32>) -> tensor<1x3x2x2xf32>
  return
}

// -----

func.func @pool_grad(%dy: tensor<1x2x2x2xf32>) {
  // expected-error @below {{has 0 tensors of the pool; its kind needs 2}}
  %dx = drt.pool_grad %dy {kind = 0 : i32, descriptor = array<i64: 1, 4, 4, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0>} : (tensor<1x2x2x2xf32>) -> tensor<1x4x4x2xf32>
  return
}

// -----

func.func @distribution() {
  // expected-error @below {{has 0 bounds; its distribution has 2}}
  %y = drt.random {distribution = 3 : i32, seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<2xi32>
  return
}

// -----

func.func @seed(%seed: tensor<3xi64>) {
  // expected-error @below {{has a seed 'tensor<3xi64>'; it needs 2 elements}}
  %y = drt.random_stateless %seed {distribution = 0 : i32} : (tensor<3xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @key_and_counter(%seed: tensor<2xi64>) {
  // expected-error @below {{has a seed 'tensor<2xi64>'; it needs 3 elements}}
  %y = drt.random_stateless %seed {distribution = 0 : i32, keyed} : (tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @state() {
  // expected-error @below {{has a state 'tensor<6xi32>'; it needs 7 elements}}
  %state = drt.random_state {seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<6xi32>
  return
}

// -----

func.func @unique(%x: tensor<4xi32>) {
  // expected-error @below {{has counts 'tensor<3xi32>'; it needs 4 elements}}
  %y, %idx, %count = drt.unique %x : (tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>, tensor<3xi32>)
  return
}

// -----

func.func @updates(%i: tensor<2xi32>, %rows: tensor<3x4xf32>) {
  // expected-error @below {{has updates 'tensor<3x4xf32>'; it needs 8 elements}}
  %y = drt.scatter %i, %rows {kind = 1 : i32, depth = 1 : i64} : (tensor<2xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @depth(%i: tensor<2x2xi32>, %rows: tensor<2xf32>) {
  // expected-error @below {{has indices of 2 numbers into 1 axes}}
  %y = drt.scatter %i, %rows {kind = 1 : i32, depth = 2 : i64} : (tensor<2x2xi32>, tensor<2xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @assert(%holds: tensor<i1>, %x: tensor<2xf32>) {
  // expected-error @below {{has 1 tensors for 0 places in its message}}
  drt.assert %holds, %x {message = "wrong", summarize = 3 : i64} : (tensor<i1>, tensor<2xf32>) -> ()
  return
}

// -----

func.func @indices(%i: tensor<2xf32>) {
  // expected-error @below {{has indices 'tensor<2xf32>'; they are of 32 or 64 bits}}
  drt.check_indices %i {name = "i", sizes = array<i64: 3>, per_row = 0 : i64} : (tensor<2xf32>) -> ()
  return
}

// -----

func.func @names(%g: tensor<2xf32>) {
  // expected-error @below {{has 2 names of 1 gradients}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a", "b"]} : (tensor<2xf32>) -> ()
  return
}

// -----

func.func @algorithm(%g: tensor<2xf32>) {
  // expected-error @below {{attribute 'algorithm' failed to satisfy constraint}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a"], algorithm = 4 : i32} : (tensor<2xf32>) -> ()
  return
}

// -----

func.func @owners(%g: tensor<2xf32>) {
  // expected-error @below {{names task -1 as an owner; tasks are numbered from 0 on}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a"], scatter, owners = array<i64: -1>} : (tensor<2xf32>) -> ()
  return
}

// -----

func.func @pipelined(%g: tensor<2xf32>) {
  // expected-error @below {{is pipelined; plain sums that go to owners are}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a"], pipelined} : (tensor<2xf32>) -> ()
  return
}

// -----

func.func @pipelined_gather() {
  // expected-error @below {{is pipelined; values that come from owners are}}
  drt.gather_start {bucket = 0 : i32, variables = [@w], pipelined} : () -> ()
  return
}

// -----

func.func @member() {
  // expected-error @below {{names a bucket or a member of one, and not both}}
  drt.update {kernel = @sgd, variables = [@w], count = 4 : i64, bucket = 0 : i32} : () -> ()
  return
}

// -----

func.func @sparse(%i: tensor<3xi32>, %v: tensor<4x2xf32>) {
  // expected-error @below {{has 'tensor<4x2xf32>' for indices 'tensor<3xi32>' of depth 1}}
  drt.sparse_update %i, %v {depth = 1 : i64, kernel = @add, variables = [@t]} : (tensor<3xi32>, tensor<4x2xf32>) -> ()
  return
}

// -----

func.func @joined_batch(%a: tensor<2x4xf32>, %b: tensor<3x5xf32>) {
  // expected-error @below {{makes 4 x 5 of 'tensor<2x4xf32>' transposed and 'tensor<3x5xf32>'}}
  drt.matmul_update %a, %b {kernel = @sgd, variables = [@w], transpose_a, scale = 5.000000e-01 : f64} : (tensor<2x4xf32>, tensor<3x5xf32>) -> ()
  return
}

// -----

func.func @accumulated(%g: tensor<2xf32>) {
  // expected-error @below {{has a sum 'tensor<3xf32>'; it needs 2 elements}}
  %sum = drt.accumulated %g {first = 0 : i32, steps = 4 : i64, scale = 0.25 : f64} : (tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @fetch(%x: tensor<f32>) {
  // expected-error @below {{joins 'tensor<f32>' along axis 0}}
  drt.fetch %x {name = "x", join = 0 : i32} : (tensor<f32>) -> ()
  return
}

// -----

// expected-error @below {{has #drt.task<"worker" 1 on "b" replicas 2 from 3> where the next replica is 2}}
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 2 from 0>, #drt.task<"worker" 1 on "b" replicas 2 from 3>]

// -----

// expected-error @below {{has tasks for no replica}}
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks []

// -----

// expected-error @below {{is joint, and its tasks have not one replica each}}
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 2 from 0>] joint

// -----

// expected-error @below {{has a batch of 7, which 2 replicas do not divide}}
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 7 tasks [#drt.task<"worker" 0 on "a" replicas 2 from 0>]

// -----

// expected-error @below {{names the global step @steps, which is no variable of the program}}
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>] global_step @steps

// -----

drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>]
// expected-error @below {{is the module's second}}
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>]

// -----

// Rows are joined as they are.
func.func @join(%x: tensor<f32>) {
  // expected-error @below {{joins gradient 0, which is a scalar or asks for the mean; rows are joined as they are}}
  drt.push %x {joined = array<i1: true>, means = array<i1: false>, names = ["x"], required = 2 : i64, staleness = 0 : i64} : (tensor<f32>) -> ()
  return
}

// -----

func.func @room(%g: tensor<6xf32>) {
  // expected-error @below {{has room for 4 elements of 'tensor<6xf32>'}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"], scatter, room = array<i64: 4>} : (tensor<6xf32>) -> ()
  return
}

// -----

func.func @room_without_shares(%g: tensor<6xf32>) {
  // expected-error @below {{has room for shares of gradients that are not scattered in shares}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"], room = array<i64: 8>} : (tensor<6xf32>) -> ()
  return
}

// -----

func.func @room_of_some() {
  // expected-error @below {{has room for 1 of 2 members}}
  drt.gather_start {bucket = 0 : i32, variables = [@v, @w], room = array<i64: 8>} : () -> ()
  return
}

// -----

func.func @shares_of_nobody() {
  // expected-error @below {{updates shares and is not given the replica's number}}
  drt.update_group {kernel = @k, variables = [[@w]], shares = array<i64: 8>} : () -> ()
  return
}

// -----

func.func @filter_layout(%x: tensor<1x8x8x4xf32>, %f: tensor<8x3x3x4xf32>) {
  // expected-error @below {{has a filter in layout "IHWO"; there are HWIO (which it is without one), OHWI and OIHW}}
  %y = drt.conv2d %x, %f {descriptor = array<i64: 1, 8, 8, 4, 3, 3, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1>, filter_layout = "IHWO"}
      : (tensor<1x8x8x4xf32>, tensor<8x3x3x4xf32>) -> tensor<1x8x8x8xf32>
  return
}

// -----

func.func @compressed(%g: tensor<4xf32>) {
  // expected-error @below {{attribute 'compression' failed to satisfy constraint: a #dist.compression}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"], compression = 3 : i32} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @aggregated(%g: tensor<4xf32>) {
  // expected-error @below {{attribute 'aggregator' failed to satisfy constraint: a #dist.aggregator}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"], aggregator = #dist.compression<fp16>} : (tensor<4xf32>) -> ()
  return
}

// -----

// Random numbers without memory are an update's alone.
drt.variable @w : tensor<8xf32> {saved}
drt.entry "init" {
  // expected-error @+1 {{'drt.draw' op is drawn by updates alone, without a bucket and of as many elements}}
  %x = drt.draw {distribution = 0 : i32, seed = 1 : i64, seed2 = 2 : i64, operandSegmentSizes = array<i32: 0, 0>} : () -> tensor<8xf32>
  // expected-note @+1 {{this operation reads it (drt.fetch)}}
  drt.fetch %x {name = "x", join = 0 : i32} : (tensor<8xf32>) -> ()
}

// -----

drt.entry "init" {
  // expected-error @+1 {{'drt.draw' op begins at a key or at two seeds}}
  %x = drt.draw {distribution = 0 : i32, seed = 1 : i64, operandSegmentSizes = array<i32: 0, 0>} : () -> tensor<8xf32>
}

// -----

drt.entry "step" {
  // expected-error @below {{has a number 'tensor<2xi32>'; it needs 1 elements}}
  %0 = drt.replica_index : () -> tensor<2xi32>
}

// -----

drt.entry "step" {
  // expected-error @below {{has a number 'tensor<i64>'; it is of 32 bits}}
  %0 = drt.replica_index : () -> tensor<i64>
}

// -----

drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<7xi64>
  // expected-error @below {{advances 'tensor<7xi64>', which is no state of 7 32-bit words}}
  drt.random_advance @k(%x) : tensor<7xi64>
}

// -----

drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<7xi32>
  // expected-error @below {{looks for NaN in 'tensor<7xi32>'}}
  drt.check_numerics %x {message = "x"} : (tensor<7xi32>) -> ()
}

// -----

// The update is verified behind what it draws.
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  %0 = drt.draw {distribution = 0 : i32, seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<4xf32>
  // expected-error @below {{requires attribute 'count'}}
  drt.update %0 {kernel = @assign, variables = [@w]} : (tensor<4xf32>) -> ()
}

// -----

drt.entry "step" {
  %q = drt.feed {name = "q"} : () -> tensor<2x8x4x24xbf16>
  // expected-error @below {{has heads of size 24, which is not a multiple of 16 up to 128}}
  %o, %s = drt.attention %q, %q, %q {scale = 1.0 : f32} : (tensor<2x8x4x24xbf16>, tensor<2x8x4x24xbf16>, tensor<2x8x4x24xbf16>) -> (tensor<2x8x4x24xbf16>, tensor<2x2x4x8xf32>)
}

// -----

drt.entry "step" {
  %q = drt.feed {name = "q"} : () -> tensor<2x8x4x16xf64>
  // expected-error @below {{attends to 'tensor<2x8x4x16xf64>', which is not bfloat16 or float32 [batch, tokens, heads, size]}}
  %o, %s = drt.attention %q, %q, %q {scale = 1.0 : f32} : (tensor<2x8x4x16xf64>, tensor<2x8x4x16xf64>, tensor<2x8x4x16xf64>) -> (tensor<2x8x4x16xf64>, tensor<2x2x4x8xf32>)
}

// -----

drt.entry "step" {
  %q = drt.feed {name = "q"} : () -> tensor<2x8x4x16xbf16>
  %k = drt.feed {name = "k"} : () -> tensor<2x8x2x16xbf16>
  // expected-error @below {{has a query 'tensor<2x8x4x16xbf16>' for keys 'tensor<2x8x2x16xbf16>' and values 'tensor<2x8x2x16xbf16>'}}
  %o, %s = drt.attention %q, %k, %k {scale = 1.0 : f32} : (tensor<2x8x4x16xbf16>, tensor<2x8x2x16xbf16>, tensor<2x8x2x16xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x2x4x8xf32>)
}

// -----

drt.entry "step" {
  %q = drt.feed {name = "q"} : () -> tensor<2x8x4x16xbf16>
  %b = drt.feed {name = "b"} : () -> tensor<2x4x8x1xbf16>
  // expected-error @below {{adds a bias 'tensor<2x4x8x1xbf16>' to scores that are not of its shape}}
  %o, %s = drt.attention %q, %q, %q, %b {scale = 1.0 : f32} : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x4x8x1xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x2x4x8xf32>)
}

// -----

drt.entry "step" {
  %q = drt.feed {name = "q"} : () -> tensor<2x8x4x16xbf16>
  %s = drt.feed {name = "s"} : () -> tensor<2x2x8x4xf32>
  // expected-error @below {{has 'tensor<2x2x8x4xf32>' for the rows of its scores}}
  %g:2 = drt.attention_query_gradient %q, %q, %q, %s, %q, %q {scale = 1.0 : f32} : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x2x8x4xf32>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x8x4xf32>)
}

// -----

drt.entry "step" {
  %q = drt.feed {name = "q"} : () -> tensor<2x8x4x16xbf16>
  %s = drt.feed {name = "s"} : () -> tensor<2x2x4x8xf32>
  // expected-error @below {{has dots 'tensor<2x8x4xf32>' beside statistics 'tensor<2x2x4x8xf32>'}}
  %g:2 = drt.attention_query_gradient %q, %q, %q, %s, %q, %q {scale = 1.0 : f32} : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x2x4x8xf32>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>) -> (tensor<2x8x4x16xbf16>, tensor<2x8x4xf32>)
}

// -----

drt.entry "step" {
  %q = drt.feed {name = "q"} : () -> tensor<2x8x4x16xf32>
  %s = drt.feed {name = "s"} : () -> tensor<2x2x4x8xf32>
  // expected-error @below {{has a value's gradient 'tensor<2x4x8x16xf32>', which is not of the type 'tensor<2x8x4x16xf32>'}}
  %g:3 = drt.attention_gradient %q, %q, %q, %s, %q, %q {scale = 1.0 : f32} : (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x2x4x8xf32>, tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32>, tensor<2x4x8x16xf32>)
}

// -----

drt.entry "step" {
  %q = drt.feed {name = "q"} : () -> tensor<2x8x4x16xbf16>
  %s = drt.feed {name = "s"} : () -> tensor<2x2x4x8xf32>
  %d = drt.feed {name = "d"} : () -> tensor<2x4x8xf32>
  // expected-error @below {{has a key's gradient 'tensor<2x4x8x16xbf16>', which is not of the type 'tensor<2x8x4x16xbf16>'}}
  %g:2 = drt.attention_key_value_gradient %q, %q, %q, %s, %q, %d {scale = 1.0 : f32} : (tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x8x4x16xbf16>, tensor<2x2x4x8xf32>, tensor<2x8x4x16xbf16>, tensor<2x4x8xf32>) -> (tensor<2x4x8x16xbf16>, tensor<2x8x4x16xbf16>)
}

// -----

drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<8x4xbf16>
  %g = drt.feed {name = "g"} : () -> tensor<8x2xbf16>
  // expected-error @below {{has a bias's gradient 'tensor<4xf32>'; it needs 2 elements}}
  %0:2 = drt.matmul_bias_grad %x, %g : (tensor<8x4xbf16>, tensor<8x2xbf16>) -> (tensor<4x2xf32>, tensor<4xf32>)
}

// -----

drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<8x4xf32>
  %g = drt.feed {name = "g"} : () -> tensor<8x2xf32>
  // expected-error @below {{makes 'tensor<4x2xf32>' and 'tensor<2xf32>' of 'tensor<8x4xf32>' and 'tensor<8x2xf32>'}}
  %0:2 = drt.matmul_bias_grad %x, %g : (tensor<8x4xf32>, tensor<8x2xf32>) -> (tensor<4x2xf32>, tensor<2xf32>)
}

// -----

drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<8x4xf32>
  %w = drt.feed {name = "w"} : () -> tensor<4x2xf32>
  %r = drt.feed {name = "r"} : () -> tensor<2xf32>
  // expected-error @below {{'tensor<2xf32>'}}
  %0 = drt.matmul_add %x, %w, %r : (tensor<8x4xf32>, tensor<4x2xf32>, tensor<2xf32>) -> tensor<8x2xf32>
}

// -----

drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<8x4xf32>
  %w = drt.feed {name = "w"} : () -> tensor<3x2xf32>
  %r = drt.feed {name = "r"} : () -> tensor<8x2xf32>
  // expected-error @below {{'drt.matmul_add' op}}
  %0 = drt.matmul_add %x, %w, %r : (tensor<8x4xf32>, tensor<3x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
}

// -----

drt.entry "step" {
  %i = drt.feed {batched, name = "i"} : () -> tensor<4xi32>
  // expected-error @+1 {{has 2 variables, 1 tensors of indices, 1 owners and 1 results; they are equally many}}
  %rows = drt.pull_rows [@s, @t][%i] from [0] bucket 0 : (tensor<4xi32>) -> tensor<4x4xf32>
}

// -----

drt.entry "step" {
  %i = drt.feed {batched, name = "i"} : () -> tensor<4xi32>
  %j = drt.feed {batched, name = "j"} : () -> tensor<4xi64>
  // expected-error @+1 {{has indices 'tensor<4xi64>'; they are all of 32 or all of 64 bits}}
  %rows:2 = drt.pull_rows [@s, @t][%i, %j] from [0, 1] bucket 0 : (tensor<4xi32>, tensor<4xi64>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
}

// -----

drt.entry "step" {
  %i = drt.feed {batched, name = "i"} : () -> tensor<4xi32>
  %v = drt.feed {batched, name = "v"} : () -> tensor<4x2xf32>
  // expected-error @+1 {{has 2 names, 1 tensors of indices, 1 tables' shards and 1 results; they are equally many}}
  %ai, %av = drt.push_rows [%i], [%v] of ["s", "t"] to [array<i64: 0, 8, 0>] bucket 0 : (tensor<4xi32>, tensor<4x2xf32>) -> (tensor<8xi32>, tensor<8x2xf32>)
}

// -----

drt.entry "step" {
  %i = drt.feed {batched, name = "i"} : () -> tensor<4xi32>
  %v = drt.feed {batched, name = "v"} : () -> tensor<4x2xf32>
  // expected-error @+1 {{has a negative bucket, or shards that are not three numbers each, from 0 on}}
  %ai, %av = drt.push_rows [%i], [%v] of ["s"] to [array<i64: 0, 8>] bucket 0 : (tensor<4xi32>, tensor<4x2xf32>) -> (tensor<8xi32>, tensor<8x2xf32>)
}

// -----

// An aggregator chooses among several gradients, of which it compares elements.
func.func @aggregate(%x: tensor<4xf16>) {
  // expected-error @below {{has an aggregator of gradient 0, which has no others beside it, or is no float32 or float64}}
  drt.push %x {aggregators = [#dist.aggregator<median>], means = array<i1: true>, names = ["x"], required = 3 : i64, staleness = 0 : i64} : (tensor<4xf16>) -> ()
  return
}

// -----

func.func @aggregators(%x: tensor<4xf32>) {
  // expected-error @below {{has 1 gradients and 2 aggregators; they are one each}}
  drt.push %x {aggregators = [unit, unit], means = array<i1: true>, names = ["x"], required = 3 : i64, staleness = 0 : i64} : (tensor<4xf32>) -> ()
  return
}
