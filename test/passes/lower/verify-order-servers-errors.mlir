// RUN: distc-opt %s --drt-verify-order --split-input-file --verify-diagnostics

// What a replica pushes is what the update takes.
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  %w = drt.pull {at = array<i64: 0>, variables = [@w]} : () -> tensor<4xf32>
  // expected-note @+1 {{it is pushed here}}
  drt.push %w {means = array<i1: true>, names = ["w"], required = 2 : i64, staleness = 0 : i64} : (tensor<4xf32>) -> ()
  drt.take_token
}
drt.entry "update" {
  // expected-error @+1 {{does not take what is pushed: names and types differ}}
  %g = drt.take {at = array<i64: 0>, names = ["b"]} : () -> tensor<4xf32>
  drt.update %g {count = 4 : i64, kernel = @sgd, variables = [@w]} : (tensor<4xf32>) -> ()
}

// -----

drt.variable @w : tensor<4xf32>
drt.entry "step" {
  %w = drt.pull {at = array<i64: 0>, variables = [@w]} : () -> tensor<4xf32>
  // expected-error @+1 {{is in a program that does not pull variables, push gradients and take them}}
  drt.push %w {means = array<i1: true>, names = ["w"], required = 2 : i64, staleness = 0 : i64} : (tensor<4xf32>) -> ()
  drt.take_token
}

// -----

// Whoever counts for an update waits for it.
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  %w = drt.pull {at = array<i64: 0>, variables = [@w]} : () -> tensor<4xf32>
  // expected-error @+1 {{counts for an update that nothing waits for; a step ends with a token}}
  drt.push %w {means = array<i1: true>, names = ["w"], required = 2 : i64, staleness = 0 : i64} : (tensor<4xf32>) -> ()
}
drt.entry "update" {
  %g = drt.take {at = array<i64: 0>, names = ["w"]} : () -> tensor<4xf32>
  drt.update %g {count = 4 : i64, kernel = @sgd, variables = [@w]} : (tensor<4xf32>) -> ()
}

// -----

// What an update writes is pulled, all at once.
drt.variable @w : tensor<4xf32>
drt.variable @b : tensor<4xf32>
drt.entry "step" {
  %w = drt.pull {at = array<i64: 0>, variables = [@w]} : () -> tensor<4xf32>
  %b = drt.read @b : tensor<4xf32>
  // expected-error @+1 {{reads variable b, which an update may write meanwhile; replicas pull it}}
  %g = drt.launch @gradient(%w, %b) {at = array<i64: 64>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  drt.push %g {means = array<i1: true>, names = ["w"], required = 2 : i64, staleness = 0 : i64} : (tensor<4xf32>) -> ()
  drt.take_token
}
drt.entry "update" {
  %g = drt.take {at = array<i64: 0>, names = ["w"]} : () -> tensor<4xf32>
  drt.update %g {count = 4 : i64, kernel = @sgd, variables = [@w]} : (tensor<4xf32>) -> ()
  drt.update %g {count = 4 : i64, kernel = @sgd, variables = [@b]} : (tensor<4xf32>) -> ()
}

// -----

// A replica updates nothing by itself.
drt.variable @w : tensor<4xf32>
drt.variable @statistics : tensor<4xf32>
drt.entry "step" {
  %w = drt.pull {at = array<i64: 0>, variables = [@w]} : () -> tensor<4xf32>
  // expected-error @+1 {{writes variable statistics, which only an update does where servers serve on their own}}
  drt.update %w {count = 4 : i64, kernel = @average, variables = [@statistics]} : (tensor<4xf32>) -> ()
  drt.push %w {means = array<i1: true>, names = ["w"], required = 2 : i64, staleness = 0 : i64} : (tensor<4xf32>) -> ()
  drt.take_token
}
drt.entry "update" {
  %g = drt.take {at = array<i64: 0>, names = ["w"]} : () -> tensor<4xf32>
  drt.update %g {count = 4 : i64, kernel = @sgd, variables = [@w]} : (tensor<4xf32>) -> ()
}

// -----

// Replicas are not in step.
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  %w = drt.pull {at = array<i64: 0>, variables = [@w]} : () -> tensor<4xf32>
  // expected-error @+1 {{waits for the other replicas, which are each at their own pace where servers serve on their own}}
  drt.barrier
  drt.push %w {means = array<i1: true>, names = ["w"], required = 2 : i64, staleness = 0 : i64} : (tensor<4xf32>) -> ()
  drt.take_token
}
drt.entry "update" {
  %g = drt.take {at = array<i64: 0>, names = ["w"]} : () -> tensor<4xf32>
  drt.update %g {count = 4 : i64, kernel = @sgd, variables = [@w]} : (tensor<4xf32>) -> ()
}

// -----

// What a step's log says is known when it pushes.
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  %w = drt.pull {at = array<i64: 0>, variables = [@w]} : () -> tensor<4xf32>
  // expected-note @+1 {{the push}}
  drt.push %w {means = array<i1: true>, names = ["w"], required = 2 : i64, staleness = 0 : i64} : (tensor<4xf32>) -> ()
  // expected-error @+1 {{stands behind the push, which says what the step has computed}}
  %loss = drt.launch @loss(%w) {at = array<i64: 64>} : (tensor<4xf32>) -> tensor<f32>
  drt.take_token
  drt.fetch %loss {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
}
drt.entry "update" {
  %g = drt.take {at = array<i64: 0>, names = ["w"]} : () -> tensor<4xf32>
  drt.update %g {count = 4 : i64, kernel = @sgd, variables = [@w]} : (tensor<4xf32>) -> ()
}

// -----

// Of rows that are joined an update takes those of all its gradients.
drt.variable @w : tensor<4x2xf32>
drt.entry "step" {
  %w = drt.pull {at = array<i64: 0>, variables = [@w]} : () -> tensor<4x2xf32>
  %i = drt.feed {batched, name = "i"} : () -> tensor<4xi32>
  // expected-note @+1 {{it is pushed here}}
  drt.push %i, %w {joined = array<i1: true, true>, means = array<i1: false, false>, names = ["w", "w"], required = 2 : i64, staleness = 0 : i64} : (tensor<4xi32>, tensor<4x2xf32>) -> ()
  drt.take_token
}
drt.entry "update" {
  // expected-error @+1 {{does not take what is pushed: names and types differ}}
  %i, %v = drt.take {at = array<i64: 0, 64>, names = ["w", "w"]} : () -> (tensor<4xi32>, tensor<4x2xf32>)
  drt.sparse_update %i, %v {depth = 1 : i64, kernel = @sgd, variables = [@w]} : (tensor<4xi32>, tensor<4x2xf32>) -> ()
}

// -----

// What the first task alone holds its updates access, and its evaluations; replicas of others have it where they pull it.
drt.program "g.meta" strategy "PS:sync=false" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<4xf32> {owner = 0 : i64}
drt.variable @v : tensor<4xf32> {owner = 0 : i64}
drt.entry "step" {
  %w = drt.pull {at = array<i64: 0>, variables = [@w]} : () -> tensor<4xf32>
  %v = drt.read @v : tensor<4xf32>
  // expected-error @+1 {{accesses v in every task, but task 0 alone holds it}}
  %g = drt.launch @gradient(%w, %v) {at = array<i64: 64>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  drt.push %g {means = array<i1: true>, names = ["w"], required = 2 : i64, staleness = 0 : i64} : (tensor<4xf32>) -> ()
  drt.take_token
}
drt.entry "update" {
  %g = drt.take {at = array<i64: 0>, names = ["w"]} : () -> tensor<4xf32>
  %v = drt.read @v : tensor<4xf32>
  drt.update %g, %v {count = 4 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w]} : (tensor<4xf32>, tensor<4xf32>) -> ()
}
drt.entry "eval" {
  %w = drt.read @w : tensor<4xf32>
  drt.fetch %w {axis = 0 : i32, join = 0 : i32, name = "w:0"} : (tensor<4xf32>) -> ()
}
