// RUN: distc-opt %s --drt-verify-order --split-input-file --verify-diagnostics

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
drt.entry "old_value" {
  %w = drt.read @w : tensor<8xf32>
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  // expected-note @+1 {{it is let come here}}
  drt.all_reduce_wait 0
  // expected-error @+1 {{accesses w while its new value may arrive: the bucket is pipelined}}
  %norm = drt.launch @norm(%w) : (tensor<8xf32>) -> tensor<f32>
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  drt.gather_start {bucket = 2 : i32, variables = [@w, @v], owners = array<i64: 0, 0>, pipelined} : () -> ()
  drt.all_reduce_wait 2
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
drt.entry "new_value" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  // expected-note @+1 {{it is let come here}}
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  %w = drt.read @w : tensor<8xf32>
  // expected-error @+1 {{accesses w while its new value may arrive}}
  drt.update %w {count = 8 : i64, kernel = @average, owner = 0 : i64, variables = [@m]} : (tensor<8xf32>) -> ()
  drt.gather_start {bucket = 2 : i32, variables = [@w, @v], owners = array<i64: 0, 0>, pipelined} : () -> ()
  drt.all_reduce_wait 2
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
drt.entry "updated_twice" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  // expected-note @+1 {{it is let come here}}
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  // expected-error @+1 {{accesses w while its new value may arrive}}
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  drt.gather_start {bucket = 2 : i32, variables = [@w, @v], owners = array<i64: 0, 0>, pipelined} : () -> ()
  drt.all_reduce_wait 2
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
drt.entry "not_updated" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  // expected-note @+1 {{the wait for its gradient}}
  drt.all_reduce_wait 0
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  // expected-error @+1 {{takes the value of w, which was not updated}}
  drt.gather_start {bucket = 2 : i32, variables = [@w, @v], owners = array<i64: 0, 0>, pipelined} : () -> ()
  drt.all_reduce_wait 2
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
drt.entry "gathered_whole" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  // expected-error @+1 {{takes the value of w whole, which comes piece by piece}}
  drt.gather_start {bucket = 2 : i32, variables = [@w, @v], owners = array<i64: 0, 0>} : () -> ()
  drt.all_reduce_wait 2
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
drt.entry "gathered_in_pieces" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  // expected-error @+1 {{takes the value of v piece by piece, of which no bucket is pipelined}}
  drt.gather_start {bucket = 2 : i32, variables = [@w, @v], owners = array<i64: 0, 0>, pipelined} : () -> ()
  drt.all_reduce_wait 2
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
drt.entry "not_gathered" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  // expected-error @+1 {{lets values of w come, which no gather has waited for}}
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
}

// -----

// What is on its way is finished before the communication goes on.
drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
drt.entry "update_behind" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  // expected-note @+1 {{they are let come here}}
  drt.all_reduce_wait 0
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  drt.gather_start {bucket = 2 : i32, variables = [@v], owners = array<i64: 0>, pipelined} : () -> ()
  // expected-error @+1 {{waits for bucket 2, but the values of w come first, and it is not updated before}}
  drt.all_reduce_wait 2
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.gather_start {bucket = 3 : i32, variables = [@w], owners = array<i64: 0>, pipelined} : () -> ()
  drt.all_reduce_wait 3
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
drt.entry "wait_behind" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  // expected-note @+1 {{nothing has waited for it}}
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  drt.gather_start {bucket = 2 : i32, variables = [@v], owners = array<i64: 0>, pipelined} : () -> ()
  // expected-error @+1 {{waits for bucket 2, but values of bucket 0 come first}}
  drt.all_reduce_wait 2
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.gather_start {bucket = 3 : i32, variables = [@w], owners = array<i64: 0>, pipelined} : () -> ()
  drt.all_reduce_wait 3
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<4x2xf32>
drt.entry "another_type" {
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error @+1 {{is pipelined, and the gradient of w is 'tensor<8xf32>', which is not its type}}
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>, pipelined} : (tensor<8xf32>) -> ()
  drt.all_reduce_wait 0
}
