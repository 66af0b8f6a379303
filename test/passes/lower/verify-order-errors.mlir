// RUN: distc-opt %s --drt-verify-order --split-input-file --verify-diagnostics

// Races:

drt.variable @w : tensor<64x64xf32>
drt.entry "read_then_update" {
  %w = drt.read @w : tensor<64x64xf32>
  // expected-note @+1 {{the other access (drt.launch)}}
  %norm = drt.launch @norm(%w) : (tensor<64x64xf32>) -> tensor<f32>
  // expected-error @+1 {{writes variable w (each replica's range) while another replica may still read it (all elements); the replicas do not meet between}}
  drt.update %norm {count = 4096 : i64, kernel = @sgd, variables = [@w]} : (tensor<f32>) -> ()
}

// -----

drt.variable @w : tensor<64x64xf32>
drt.entry "update_then_read" {
  // expected-note @+1 {{the other access (drt.update)}}
  drt.update {count = 4096 : i64, kernel = @zero, variables = [@w]} : () -> ()
  %w = drt.read @w : tensor<64x64xf32>
  // expected-error @+1 {{reads variable w (all elements) while another replica may still write it (each replica's range)}}
  %norm = drt.launch @norm(%w) : (tensor<64x64xf32>) -> tensor<f32>
}

// -----

// A wait orders what came before its bucket's start, not what came between.
drt.variable @w : tensor<64xf32>
drt.entry "read_behind_start" {
  %x = drt.feed {name = "x"} : () -> tensor<64xf32>
  %w = drt.read @w : tensor<64xf32>
  %g = drt.launch @g(%x) : (tensor<64xf32>) -> tensor<64xf32>
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<64xf32>) -> ()
  // expected-note @+1 {{the other access}}
  %norm = drt.launch @norm(%w) : (tensor<64xf32>) -> tensor<f32>
  drt.all_reduce_wait 0
  // expected-error @+1 {{writes variable w}}
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 64 : i64, kernel = @sgd, variables = [@w]} : () -> ()
}

// -----

drt.variable @t : tensor<8x8xf32>
drt.entry "ranges_then_rows" {
  %i = drt.feed {name = "i"} : () -> tensor<4xi32>
  %v = drt.feed {name = "v"} : () -> tensor<4x8xf32>
  // expected-note @+1 {{the other access}}
  drt.update {count = 64 : i64, kernel = @decay, variables = [@t]} : () -> ()
  // expected-error @+1 {{reads variable t (each replica's rows by index) while another replica may still write it (each replica's range)}}
  drt.sparse_update %i, %v {depth = 1 : i64, kernel = @add, variables = [@t]} : (tensor<4xi32>, tensor<4x8xf32>) -> ()
}

// -----

drt.variable @w : tensor<8x8xf32>
drt.entry "ranges_then_product" {
  %a = drt.feed {batched, name = "a"} : () -> tensor<4x8xf32>
  // expected-note @+1 {{the other access}}
  drt.update {count = 64 : i64, kernel = @decay, variables = [@w]} : () -> ()
  // expected-error @+1 {{reads variable w (each replica's rows of a matmul) while another replica may still write it (each replica's range)}}
  drt.matmul_update %a, %a {kernel = @sgd, variables = [@w], transpose_a, scale = 5.000000e-01 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> ()
}

// -----

// Each replica reads what the others made.
drt.variable @w : tensor<8x8xf32>
drt.entry "operands_of_others" {
  %x = drt.feed {batched, name = "x"} : () -> tensor<4x8xf32>
  // expected-note @+1 {{the other access}}
  %a = drt.launch @a(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-error @+1 {{reads a tensor of every replica (all elements) while another replica may still write it}}
  drt.matmul_update %a, %x {kernel = @sgd, variables = [@w], transpose_a, scale = 5.000000e-01 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> ()
}

// -----

drt.variable @w : tensor<64xf32>
drt.entry "update_then_result" {
  %x = drt.feed {name = "x"} : () -> tensor<64xf32>
  %g = drt.launch @g(%x) : (tensor<64xf32>) -> tensor<64xf32>
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<64xf32>) -> ()
  drt.all_reduce_wait 0
  // expected-note @+1 {{the other access}}
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 64 : i64, kernel = @sgd, variables = [@w]} : () -> ()
  // expected-error @+1 {{writes bucket 0 (each replica's range) while another replica may still read it (each replica's range)}}
  %r = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<64xf32>
}

// -----

// Values:

drt.variable @a : tensor<64xf32>
drt.variable @b : tensor<64xf32>
drt.entry "exchange" {
  %a = drt.read @a : tensor<64xf32>
  %b = drt.read @b : tensor<64xf32>
  // expected-note @+1 {{it was written here}}
  drt.update %b {count = 64 : i64, kernel = @assign, variables = [@a]} : (tensor<64xf32>) -> ()
  // expected-error @+1 {{reads the old value of a, which is gone}}
  drt.update %a {count = 64 : i64, kernel = @assign, variables = [@b]} : (tensor<64xf32>) -> ()
}

// -----

drt.variable @w : tensor<64xf32>
drt.entry "own_value" {
  %w = drt.read @w : tensor<64xf32>
  // expected-error @+1 {{writes w while it reads its old value from the same memory}}
  drt.update %w {count = 64 : i64, kernel = @add, variables = [@w]} : (tensor<64xf32>) -> ()
}

// -----

// In another shape too.
drt.entry "raw_gradient" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %g = drt.launch @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %shaped = tensor.expand_shape %g [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  // expected-note @+1 {{its bucket was started here}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<4xf32>) -> ()
  drt.all_reduce_wait 0
  // expected-error @+1 {{reads a gradient that is being reduced in place}}
  %norm = drt.launch @norm(%shaped) : (tensor<2x2xf32>) -> tensor<f32>
}

// -----

drt.entry "two_buckets" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %g = drt.launch @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-note @+1 {{its bucket was started here}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<4xf32>) -> ()
  // expected-error @+1 {{reads a gradient that is being reduced in place}}
  drt.all_reduce_start %g {bucket = 1 : i32, mean = true, names = ["w"]} : (tensor<4xf32>) -> ()
}

// -----

// Buckets:

drt.entry "no_wait" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %g = drt.launch @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{starts bucket 0, which nothing waits for}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<4xf32>) -> ()
}

// -----

drt.entry "not_started" {
  // expected-error @+1 {{waits for bucket 3, which was not started before}}
  drt.all_reduce_wait 3
}

// -----

drt.entry "started_twice" {
  // expected-note @+1 {{it was started here}}
  drt.all_reduce_start {bucket = 0 : i32, mean = true, names = []} : () -> ()
  drt.all_reduce_wait 0
  // expected-error @+1 {{starts bucket 0 again}}
  drt.all_reduce_start {bucket = 0 : i32, mean = true, names = []} : () -> ()
}

// -----

drt.variable @w : tensor<4xf32>
drt.entry "update_before_wait" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %g = drt.launch @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-note @+1 {{it was started here}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<4xf32>) -> ()
  // expected-error @+1 {{reads bucket 0 before the wait for it}}
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 4 : i64, kernel = @sgd, variables = [@w]} : () -> ()
  drt.all_reduce_wait 0
}

// -----

// Shares:

drt.variable @w : tensor<8xf32>
drt.entry "shares_arrive" {
  // expected-note @+1 {{the other access (drt.gather_start)}}
  drt.gather_start {bucket = 0 : i32, variables = [@w]} : () -> ()
  %w = drt.read @w : tensor<8xf32>
  // expected-error @+1 {{reads variable w (all elements) while another replica may still write it (all elements)}}
  %norm = drt.launch @norm(%w) : (tensor<8xf32>) -> tensor<f32>
  drt.all_reduce_wait 0
}

// -----

// Tasks of one replica have no threads that race, but the shares of others arrive all the same.
module {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>, #drt.task<"worker" 1 on "localhost" replicas 1 from 1>]
  drt.variable @w : tensor<8xf32>
  drt.entry "shares_arrive_in_tasks" {
    %x = drt.feed {name = "x"} : () -> tensor<8xf32>
    drt.update %x {count = 8 : i64, share = 4 : i64, kernel = @assign, variables = [@w]} : (tensor<8xf32>) -> ()
    // expected-note @+1 {{the gather was started here}}
    drt.gather_start {bucket = 0 : i32, variables = [@w]} : () -> ()
    %w = drt.read @w : tensor<8xf32>
    // expected-error @+1 {{accesses w while its shares arrive}}
    %norm = drt.launch @norm(%w) : (tensor<8xf32>) -> tensor<f32>
    drt.all_reduce_wait 0
  }
}

// -----

drt.variable @w : tensor<8xf32>
drt.entry "shares_not_gathered" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  // expected-error @+1 {{updates shares of w, which are not gathered}}
  drt.update %x {count = 8 : i64, share = 4 : i64, kernel = @assign, variables = [@w]} : (tensor<8xf32>) -> ()
}

// -----

// Owners:

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 2 from 0>, #drt.task<"worker" 1 on "b" replicas 2 from 2>]
drt.variable @w : tensor<8xf32>
drt.entry "owned_value_is_read" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  // expected-note @+1 {{it was updated here, and not gathered since}}
  drt.update %x {count = 8 : i64, kernel = @assign, owner = 1 : i64, variables = [@w]} : (tensor<8xf32>) -> ()
  drt.barrier
  %w = drt.read @w : tensor<8xf32>
  // expected-error @+1 {{accesses w, whose new value task 1 alone has}}
  %norm = drt.launch @norm(%w) : (tensor<8xf32>) -> tensor<f32>
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 2 from 0>, #drt.task<"worker" 1 on "b" replicas 2 from 2>]
drt.variable @w : tensor<8xf32>
drt.entry "owned_value_is_kept" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  // expected-error @+1 {{updates w in task 1 alone, and the others are not given its new value}}
  drt.update %x {count = 8 : i64, kernel = @assign, owner = 1 : i64, variables = [@w]} : (tensor<8xf32>) -> ()
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 2 from 0>, #drt.task<"worker" 1 on "b" replicas 2 from 2>]
drt.variable @w : tensor<8xf32>
drt.entry "taken_from_another" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  // expected-note @+1 {{it was updated here by task 1}}
  drt.update %x {count = 8 : i64, kernel = @assign, owner = 1 : i64, variables = [@w]} : (tensor<8xf32>) -> ()
  // expected-error @+1 {{takes w from where it was not updated: task 0}}
  drt.gather_start {bucket = 0 : i32, variables = [@w], owners = array<i64: 0>} : () -> ()
  drt.all_reduce_wait 0
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 2 from 0>, #drt.task<"worker" 1 on "b" replicas 2 from 2>]
drt.variable @slot : tensor<8xf32> {owner = 1 : i64}
drt.entry "slot_of_another" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  // expected-error @+1 {{accesses slot in every task, but task 1 alone holds it}}
  drt.update %x {count = 8 : i64, kernel = @assign, variables = [@slot]} : (tensor<8xf32>) -> ()
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 2 from 0>, #drt.task<"worker" 1 on "b" replicas 2 from 2>]
drt.variable @w : tensor<8xf32>
drt.entry "gradient_of_another" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %g = drt.launch @gradient(%x) {at = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32>
  // expected-note @+1 {{it is scattered here}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 1>, at = array<i64: 0>} : (tensor<8xf32>) -> ()
  drt.all_reduce_wait 0
  // expected-error @+1 {{reads of bucket 0 what this task may not have: each has the gradients that it owns only}}
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, variables = [@w]} : () -> ()
}

// -----

// Places in the arena:

drt.entry "overwritten" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %0 = drt.launch @a(%x) {at = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-note @+1 {{it was written over here}}
  %1 = drt.launch @b(%x) {at = array<i64: 8>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error @+1 {{reads memory of the arena that another result lies in}}
  %2 = drt.launch @c(%0, %1) {at = array<i64: 64>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
}

// -----

// Others read it, and may be behind: until the barrier, which comes too late.
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>]
drt.variable @w : tensor<8x8xf32>
drt.kernel range @sgd(i64, i64, memref<64xf32>, memref<64xf32>)
drt.entry "on_what_others_read" {
  %x = drt.feed {name = "x"} : () -> tensor<4x8xf32>
  %a = drt.launch @a(%x) {at = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  drt.barrier
  // expected-note @+1 {{it is read here}}
  drt.matmul_update %a, %x {kernel = @sgd, variables = [@w], transpose_a, scale = 5.000000e-01 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> ()
  // expected-error @+1 {{writes memory of the arena that other replicas, or the runtime, may still read}}
  %b = drt.launch @b(%x) {at = array<i64: 64>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  drt.barrier
}

// -----

drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>]
drt.variable @w : tensor<8x8xf32>
drt.kernel range @sgd(i64, i64, memref<64xf32>, memref<64xf32>)
drt.entry "behind_a_meeting" {
  %x = drt.feed {name = "x"} : () -> tensor<4x8xf32>
  %a = drt.launch @a(%x) {at = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  drt.barrier
  drt.matmul_update %a, %x {kernel = @sgd, variables = [@w], transpose_a, scale = 5.000000e-01 : f64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> ()
  drt.barrier
  %b = drt.launch @b(%x) {at = array<i64: 64>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
}

// -----

drt.entry "on_a_bucket" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %g = drt.launch @g(%x) {at = array<i64: 64>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-note @+1 {{it is read here}}
  drt.all_reduce_start %g {at = array<i64: 64>, bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<4xf32>) -> ()
  // expected-error @+1 {{writes memory of the arena that other replicas, or the runtime, may still read}}
  %1 = drt.launch @b(%x) {at = array<i64: 96>} : (tensor<4xf32>) -> tensor<4xf32>
  drt.all_reduce_wait 0
}

// -----

drt.entry "buckets_overlap" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %g = drt.launch @g(%x) {at = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  // Its padding reaches to byte 64.
  // expected-note @+1 {{it is read here}}
  drt.all_reduce_start %g {at = array<i64: 0>, bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<4xf32>) -> ()
  // expected-error @+1 {{writes memory of the arena that other replicas, or the runtime, may still read}}
  %h = drt.launch @h(%x) {at = array<i64: 32>} : (tensor<4xf32>) -> tensor<4xf32>
  drt.all_reduce_wait 0
}

// -----

// The second bucket's member was written before the first one started, but the bucket reaches beyond it.
drt.entry "bucket_on_bucket" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  %h = drt.launch @h(%x) {at = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  %g = drt.launch @g(%x) {at = array<i64: 32>} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-note @+1 {{it is read here}}
  drt.all_reduce_start %g {at = array<i64: 32>, bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<4xf32>) -> ()
  // expected-error @+1 {{writes memory of the arena that other replicas, or the runtime, may still read}}
  drt.all_reduce_start %h {at = array<i64: 0>, bucket = 1 : i32, mean = true, names = ["u"]} : (tensor<4xf32>) -> ()
  drt.all_reduce_wait 0
  drt.all_reduce_wait 1
}

// -----

// What nothing is known of:

func.func private @f(tensor<4xf32>) -> tensor<4xf32>
drt.entry "unknown" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  // expected-error @+1 {{does not say what memory it accesses}}
  %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

// Rows that the owner sends lie where replicas meet: who reads a table elsewhere is refused.
drt.program "g.meta" strategy "PS" target "cpu" batch 8 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "a" replicas 1 from 1>]
drt.variable @t : tensor<8x4xf32> {owner = 1 : i64}
drt.entry "everyone_updates" {
  %i = drt.feed {batched, name = "i"} : () -> tensor<4xi32>
  %rows = drt.pull_rows [@t][%i] from [1] bucket 0 {at = array<i64: 0>} : (tensor<4xi32>) -> tensor<4x4xf32>
  // expected-error @+1 {{accesses t in every task, but task 1 alone holds it}}
  drt.sparse_update %i, %rows {depth = 1 : i64, kernel = @add, variables = [@t]} : (tensor<4xi32>, tensor<4x4xf32>) -> ()
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 8 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "a" replicas 1 from 1>]
drt.variable @t : tensor<8x4xf32> {owner = 1 : i64}
drt.entry "from_another" {
  %i = drt.feed {batched, name = "i"} : () -> tensor<4xi32>
  // expected-error @+1 {{pulls rows from task 0, which does not alone hold variable @t}}
  %rows = drt.pull_rows [@t][%i] from [0] bucket 0 {at = array<i64: 0>} : (tensor<4xi32>) -> tensor<4x4xf32>
}
