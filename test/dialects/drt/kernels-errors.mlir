// RUN: distc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{has results; it writes what it computes into its arguments}}
drt.kernel @k(%x: memref<4xf32>) -> f32 {
  drt.return
}

// -----

// expected-error @below {{takes 'tensor<4xf32>', which is no tensor's memory}}
drt.kernel @k(%x: tensor<4xf32>) {
  drt.return
}

// -----

// expected-error @below {{takes 'memref<?xf32>', which is no tensor's memory}}
drt.kernel @k(%x: memref<?xf32>) {
  drt.return
}

// -----

// expected-error @below {{computes a part, and its first two arguments are no i64}}
drt.kernel range @k(%x: memref<4xf32>) {
  drt.return
}

// -----

// expected-error @below {{works on a range of elements and takes 'memref<2x2xf32>', which is not flat}}
drt.kernel range @k(%begin: i64, %end: i64, %x: memref<2x2xf32>) {
  drt.return
}

// -----

// expected-error @below {{computes a part, and its first two arguments are no i64}}
drt.kernel @k(%x: memref<4xf32>) attributes {divided = array<i64: 4, 1>} {
  drt.return
}

// -----

// expected-error @below {{has another `divided` than how long a loop is}}
drt.kernel @k(%begin: i64, %end: i64, %x: memref<4xf32>) attributes {divided = array<i64: 4>} {
  drt.return
}

// -----

// expected-error @below {{works on a range of elements and is divided}}
drt.kernel range @k(%begin: i64, %end: i64, %x: memref<4xf32>) attributes {divided = array<i64: 4, 1>} {
  drt.return
}

// -----

func.func private @f() {
  // expected-error @below {{expects parent op 'drt.kernel'}}
  drt.return
}

// -----

// A launch of other tensors would have the kernel write beyond their end.
// expected-note @below {{it takes '(memref<4xf32>, memref<4xf32>) -> ()'}}
drt.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) {
  drt.return
}
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<2xf32>
  // expected-error @below {{runs @k on other tensors than it takes}}
  %y = drt.launch @k(%x) : (tensor<2xf32>) -> tensor<4xf32>
}

// -----

// expected-note @below {{it takes}}
drt.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) {
  drt.return
}
drt.entry "step" {
  // expected-error @below {{runs @k on other tensors than it takes}}
  %y = drt.launch @k() : () -> tensor<4xf32>
}

// -----

// expected-note @below {{it is this}}
drt.kernel range @sgd(%begin: i64, %end: i64, %w: memref<4xf32>) {
  drt.return
}
drt.entry "step" {
  // expected-error @below {{runs @sgd, which takes a range of elements}}
  %y = drt.launch @sgd() : () -> tensor<4xf32>
}

// -----

// expected-note @below {{it is this}}
drt.kernel @k(%w: memref<4xf32>) {
  drt.return
}
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  // expected-error @below {{runs @k, which takes no range of elements}}
  drt.update {kernel = @k, variables = [@w], count = 4 : i64} : () -> ()
}

// -----

// expected-note @below {{it is this}}
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  // expected-error @below {{runs @w, which is no kernel}}
  drt.update {kernel = @w, variables = [@w], count = 4 : i64} : () -> ()
}

// -----

// Of a bucket it is given the gradient, too.
// expected-note @below {{it is this}}
drt.kernel range @sgd(%begin: i64, %end: i64, %w: memref<4xf32>) {
  drt.return
}
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  // expected-error @below {{runs @sgd, which takes 1 buffers and not 2}}
  drt.update {kernel = @sgd, variables = [@w], count = 4 : i64, bucket = 0 : i32, member = 0 : i64} : () -> ()
}

// -----

// expected-note @below {{it is this}}
drt.kernel range @sgd(%begin: i64, %end: i64, %w: memref<4xf64>) {
  drt.return
}
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  // expected-error @below {{takes elements of another width than those of variable w}}
  drt.update {kernel = @sgd, variables = [@w], count = 4 : i64} : () -> ()
}

// -----

// expected-note @below {{it is this}}
drt.kernel range @add(%begin: i64, %end: i64, %w: memref<4xf32>, %x: memref<4xf32>) {
  drt.return
}
drt.variable @w : tensor<4xf32>
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<2xf32>
  // expected-error @below {{runs @add, which takes more elements than an argument has}}
  drt.update %x {kernel = @add, variables = [@w], count = 4 : i64} : (tensor<2xf32>) -> ()
}
