// RUN: distc-opt %s --split-input-file --verify-diagnostics

drt.entry "step" {
  // expected-error @below {{names @w, which is no variable of the plan}}
  %w = drt.read @w : tensor<4xf32>
}

// -----

// expected-note @below {{it is 'tensor<4xf32>'}}
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  // expected-error @below {{takes variable @w as 'tensor<8xf32>'}}
  %w = drt.read @w : tensor<8xf32>
}

// -----

drt.kernel range @w(%begin: i64, %end: i64, %w: memref<4xf32>) {
  drt.return
}
drt.entry "step" {
  // expected-error @below {{names @w, which is no variable of the plan}}
  drt.update {kernel = @w, variables = [@w], count = 4 : i64} : () -> ()
}

// -----

// The kernel would write behind the variable's end.
// expected-note @below {{it is 'tensor<4xf32>'}}
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  // expected-error @below {{updates 8 elements of variable @w}}
  drt.update {kernel = @sgd, variables = [@w], count = 8 : i64} : () -> ()
}

// -----

// Of a slot that is held in shares it is given the replica's own.
drt.variable @w : tensor<7xf32>
// expected-note @below {{it is 'tensor<4xf32>'}}
drt.variable @slot : tensor<4xf32> {full_shape = array<i64: 7>, shares = 2 : i64, whole = "slot"}
drt.entry "step" {
  drt.update {kernel = @momentum, variables = [@w, @slot], count = 7 : i64, share = 4 : i64} : () -> ()
  // expected-error @below {{updates 3 elements of variable @slot}}
  drt.update {kernel = @momentum, variables = [@w, @slot], count = 7 : i64, share = 3 : i64} : () -> ()
}

// -----

drt.entry "step" {
  // expected-error @below {{attribute 'variables' failed to satisfy constraint}}
  drt.update {kernel = @sgd, variables = [], count = 8 : i64} : () -> ()
}

// -----

drt.entry "step" {
  // expected-error @below {{attribute 'variables' failed to satisfy constraint}}
  drt.update_group {kernel = @sgd, variables = [[]]} : () -> ()
}

// -----

drt.entry "step" {
  // expected-error @below {{names @w, which is no variable of the plan}}
  drt.update_group {kernel = @sgd, variables = [[@w]]} : () -> ()
}

// -----

// expected-note @below {{it is 'tensor<10x4xf32>'}}
drt.variable @table : tensor<10x4xf32>
drt.entry "step" {
  %rows = drt.feed {name = "rows"} : () -> tensor<3xi64>
  %values = drt.feed {name = "values"} : () -> tensor<3x8xf32>
  // expected-error @below {{updates rows of variable @table by 'tensor<3x8xf32>', at indices of 1 numbers}}
  drt.sparse_update %rows, %values {kernel = @sgd, variables = [@table], depth = 1 : i64} : (tensor<3xi64>, tensor<3x8xf32>) -> ()
}

// -----

// expected-note @below {{it is 'tensor<4x3xf32>'}}
drt.variable @w : tensor<4x3xf32>
drt.entry "step" {
  %a = drt.feed {name = "a"} : () -> tensor<2x4xf32>
  %b = drt.feed {name = "b"} : () -> tensor<2x4xf32>
  // expected-error @below {{updates 16 elements of variable @w}}
  drt.matmul_update %a, %b {kernel = @sgd, variables = [@w], transpose_a, scale = 5.000000e-01 : f64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> ()
}

// -----

drt.entry "step" {
  // expected-error @below {{names @w, which is no variable of the plan}}
  drt.gather_start {bucket = 0 : i32, variables = [@w]} : () -> ()
}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
// expected-error @below {{names task 1 as an owner, and there are 1}}
drt.variable @w : tensor<4xf32> {owner = 1 : i64}

// -----

drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  // expected-error @below {{names task 1 as an owner, and there are 1}}
  drt.gather_start {bucket = 0 : i32, owners = array<i64: 1>, variables = [@w]} : () -> ()
}

// -----

// expected-error @below {{needs to know the program's tasks; run drt-describe-program}}
drt.variable @w : tensor<4xf32> {owner = 1 : i64}

// -----

drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<4x4xf32>
  // expected-error @below {{attribute 'precision' failed to satisfy constraint: string attribute tf32}}
  %y = drt.matmul %x, %x {precision = "fp8"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
}

// -----

// expected-error @below {{has memory of a negative size}}
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena -1

// -----

// expected-error @below {{has a block of variables and no arena}}
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] variables 64

// -----

// expected-error @below {{has no data}}
drt.image "sm_90" ""

// -----

// A whole program has all of its kernels.
drt.program "mlp" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>]
drt.kernel @another(%x: memref<4xf32>) {
  drt.return
}
drt.entry "step" {
  // expected-error @below {{runs @k, which is no kernel of the program}}
  %y = drt.launch @k() : () -> tensor<4xf32>
}

// -----

drt.program "mlp" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>]
drt.kernel range @another(%begin: i64, %end: i64, %w: memref<4xf32>) {
  drt.return
}
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  // expected-error @below {{runs @sgd, which is no kernel of the program}}
  drt.update {kernel = @sgd, variables = [@w], count = 4 : i64} : () -> ()
}

// -----

// Devices' kernels are in a module of their own.
drt.program "mlp" strategy "AllReduce" target "cuda:sm_90" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>]
gpu.module @kernels {
  gpu.func @k() kernel {
    gpu.return
  }
}
drt.kernel @on_the_host(memref<4xf32>)
drt.entry "step" {
  %y = drt.launch @k() : () -> tensor<4xf32>
  // expected-error @below {{runs @other, which is no kernel of the program}}
  %z = drt.launch @other() : () -> tensor<4xf32>
}
