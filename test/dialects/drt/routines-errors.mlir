// RUN: distc-opt %s --split-input-file --verify-diagnostics

// All that the runtime has, with what their parameters say.
drt.entry "step" {
  %m = drt.feed {name = "m"} : () -> tensor<2x3x3xf32>
  %b = drt.feed {name = "b"} : () -> tensor<2x3x5xf32>
  %r = drt.feed {name = "r"} : () -> tensor<2x4x3xf32>
  %n = drt.feed {name = "n"} : () -> tensor<f64>
  %0:2 = drt.routine "top_k"(%b) {parameters = array<i64: 1, 6, 5, 2, 3>} : (tensor<2x3x5xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi32>)
  %1 = drt.routine "cholesky"(%m) {parameters = array<i64: 1, 2, 3>} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %2 = drt.routine "matrix_inverse"(%m) {parameters = array<i64: 1, 2, 3, 0>} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %3 = drt.routine "matrix_determinant"(%m) {parameters = array<i64: 1, 2, 3>} : (tensor<2x3x3xf32>) -> tensor<2xf32>
  %4:2 = drt.routine "log_matrix_determinant"(%m) {parameters = array<i64: 1, 2, 3>} : (tensor<2x3x3xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %5 = drt.routine "matrix_solve"(%m, %b) {parameters = array<i64: 1, 2, 3, 5, 0>} : (tensor<2x3x3xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %6 = drt.routine "matrix_triangular_solve"(%m, %b) {parameters = array<i64: 1, 2, 3, 5, 1, 0>} : (tensor<2x3x3xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %d = drt.feed {name = "d"} : () -> tensor<2x3x7xf32>
  %e = drt.feed {name = "e"} : () -> tensor<2x7x5xf32>
  %17 = drt.routine "tridiagonal_solve"(%d, %e) {parameters = array<i64: 1, 2, 7, 5>} : (tensor<2x3x7xf32>, tensor<2x7x5xf32>) -> tensor<2x7x5xf32>
  %boxes = drt.feed {name = "boxes"} : () -> tensor<6x4xf32>
  %scores = drt.feed {name = "scores"} : () -> tensor<6xf32>
  %t = drt.feed {name = "t"} : () -> tensor<f32>
  %18:3 = drt.routine "non_max_suppression"(%boxes, %scores, %t, %t, %t) {parameters = array<i64: 6, 3, 0, 1>} : (tensor<6x4xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<3xi32>, tensor<3xf32>, tensor<i32>)
  %eb = drt.feed {name = "eb"} : () -> tensor<2x6x1x4xf32>
  %es = drt.feed {name = "es"} : () -> tensor<2x6x3xf32>
  %19:4 = drt.routine "combined_non_max_suppression"(%eb, %es, %t, %t) {parameters = array<i64: 2, 6, 1, 3, 2, 5, 1>} : (tensor<2x6x1x4xf32>, tensor<2x6x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<2x5x4xf32>, tensor<2x5xf32>, tensor<2x5xf32>, tensor<2xi32>)
  %i = drt.feed {name = "i"} : () -> tensor<6xi32>
  %20:4 = drt.routine "ctc_greedy_decoder"(%es, %i) {parameters = array<i64: 1, 2, 6, 3, 0, 2>} : (tensor<2x6x3xf32>, tensor<6xi32>) -> (tensor<12x2xi64>, tensor<12xi64>, tensor<2xi64>, tensor<6x1xf32>)
  %21 = drt.routine "edit_distance"(%20#0, %20#1, %20#0, %20#1) {parameters = array<i64: 1, 12, 12, 1, 6>} : (tensor<12x2xi64>, tensor<12xi64>, tensor<12x2xi64>, tensor<12xi64>) -> tensor<6xf32>
  %22:2 = drt.routine "isotonic_regression"(%es) {parameters = array<i64: 1, 12, 3>} : (tensor<2x6x3xf32>) -> (tensor<2x6x3xf32>, tensor<2x6x3xi32>)
  %23:2 = drt.routine "sparse_block"(%20#0, %20#2, %20#2) {parameters = array<i64: 12, 2>} : (tensor<12x2xi64>, tensor<2xi64>, tensor<2xi64>) -> (tensor<12xi64>, tensor<12x2xi64>)
  %24 = drt.routine "sparse_block_rows"(%20#0, %20#2, %23#1) {parameters = array<i64: 12, 2, 12>} : (tensor<12x2xi64>, tensor<2xi64>, tensor<12x2xi64>) -> tensor<12xi64>
  %25 = drt.routine "shuffled_rows"(%i) {parameters = array<i64: 6>} : (tensor<6xi32>) -> tensor<6xi32>
  %26:2 = drt.routine "fractional_sequences"(%i) {parameters = array<i64: 7, 5, 4, 3, 0, 1>} : (tensor<6xi32>) -> (tensor<5xi64>, tensor<4xi64>)
  %images = drt.feed {name = "images"} : () -> tensor<2x7x5x3xf32>
  %27 = drt.routine "fractional_max"(%images, %26#0, %26#1) {parameters = array<i64: 1, 2, 7, 5, 3, 4, 3, 0>} : (tensor<2x7x5x3xf32>, tensor<5xi64>, tensor<4xi64>) -> tensor<2x4x3x3xf32>
  %28 = drt.routine "fractional_avg_grad"(%27, %26#0, %26#1) {parameters = array<i64: 1, 2, 7, 5, 3, 4, 3, 0>} : (tensor<2x4x3x3xf32>, tensor<5xi64>, tensor<4xi64>) -> tensor<2x7x5x3xf32>
  %29 = drt.routine "fractional_max_pool_grad"(%images, %27, %26#0, %26#1) {parameters = array<i64: 1, 2, 7, 5, 3, 4, 3, 0>} : (tensor<2x7x5x3xf32>, tensor<2x4x3x3xf32>, tensor<5xi64>, tensor<4xi64>) -> tensor<2x7x5x3xf32>
  %7 = drt.routine "matrix_solve_ls"(%m, %b, %n) {parameters = array<i64: 1, 2, 3, 3, 5, 1>} : (tensor<2x3x3xf32>, tensor<2x3x5xf32>, tensor<f64>) -> tensor<2x3x5xf32>
  %8 = drt.routine "matrix_square_root"(%m) {parameters = array<i64: 1, 2, 3>} : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %9:2 = drt.routine "qr"(%r) {parameters = array<i64: 1, 2, 4, 3, 1>} : (tensor<2x4x3xf32>) -> (tensor<2x4x4xf32>, tensor<2x4x3xf32>)
  %10:2 = drt.routine "householder_factors"(%r) {parameters = array<i64: 1, 2, 4, 3>} : (tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x3xf32>)
  %11 = drt.routine "householder_product"(%r, %10#1) {parameters = array<i64: 1, 2, 4, 3, 3>} : (tensor<2x4x3xf32>, tensor<2x3xf32>) -> tensor<2x4x3xf32>
  %12 = drt.routine "self_adjoint_eig"(%m) {parameters = array<i64: 1, 2, 3, 0>} : (tensor<2x3x3xf32>) -> tensor<2x3xf32>
  %13:2 = drt.routine "self_adjoint_eig"(%m) {parameters = array<i64: 1, 2, 3, 1>} : (tensor<2x3x3xf32>) -> (tensor<2x3xf32>, tensor<2x3x3xf32>)
  %14:3 = drt.routine "svd"(%r) {parameters = array<i64: 1, 2, 4, 3, 1, 0>} : (tensor<2x4x3xf32>) -> (tensor<2x3xf32>, tensor<2x4x3xf32>, tensor<2x3x3xf32>)
  %15:2 = drt.routine "lu"(%m) {parameters = array<i64: 1, 2, 3, 3, 3>} : (tensor<2x3x3xf32>) -> (tensor<2x3x3xf32>, tensor<2x3xi32>)
  %16:2 = drt.routine "lu_pivots"(%r) {parameters = array<i64: 1, 2, 4, 3, 3>} : (tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x3xi32>)
}

// -----

drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  // expected-error @below {{calls routine 'top_l', which is none of the runtime's}}
  %0 = drt.routine "top_l"(%x) {parameters = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
}

// -----

drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<3x3xf32>
  // expected-error @below {{calls routine 'cholesky', which is none of the runtime's with these parameters}}
  %0 = drt.routine "cholesky"(%x) {parameters = array<i64: 1, 1>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
}

// -----

// Larger matrices than there are.
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<3x3xf32>
  // expected-error @below {{has operand 0 of type 'tensor<3x3xf32>', which routine 'cholesky' with these parameters has not}}
  %0 = drt.routine "cholesky"(%x) {parameters = array<i64: 1, 1, 4>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
}

// -----

// More elements of each row than it has.
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<2x4xf32>
  // expected-error @below {{calls routine 'top_k', which is none of the runtime's with these parameters}}
  %0:2 = drt.routine "top_k"(%x) {parameters = array<i64: 1, 2, 4, 5, 3>} : (tensor<2x4xf32>) -> (tensor<2x5xf32>, tensor<2x5xi32>)
}

// -----

drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<2x4xf32>
  // expected-error @below {{has result 1 of type 'tensor<2x2xi64>', which routine 'top_k' with these parameters has not}}
  %0:2 = drt.routine "top_k"(%x) {parameters = array<i64: 1, 2, 4, 2, 3>} : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi64>)
}

// -----

drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<3x3xf32>
  // expected-error @below {{has 1 operands, where routine 'matrix_solve' with these parameters has 2}}
  %0 = drt.routine "matrix_solve"(%x) {parameters = array<i64: 1, 1, 3, 3, 0>} : (tensor<3x3xf32>) -> tensor<3x3xf32>
}

// -----

// Overlaps are of all boxes with all.
drt.entry "step" {
  %boxes = drt.feed {name = "boxes"} : () -> tensor<6x4xf32>
  %scores = drt.feed {name = "scores"} : () -> tensor<6xf32>
  %t = drt.feed {name = "t"} : () -> tensor<f32>
  // expected-error @below {{has operand 0 of type 'tensor<6x4xf32>', which routine 'non_max_suppression' with these parameters has not}}
  %0:3 = drt.routine "non_max_suppression"(%boxes, %scores, %t, %t, %t) {parameters = array<i64: 6, 3, 1, 1>} : (tensor<6x4xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<3xi32>, tensor<3xf32>, tensor<i32>)
}

// -----

// The blank is one of the classes.
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<2x6x3xf32>
  %i = drt.feed {name = "i"} : () -> tensor<6xi32>
  // expected-error @below {{calls routine 'ctc_greedy_decoder', which is none of the runtime's with these parameters}}
  %0:4 = drt.routine "ctc_greedy_decoder"(%x, %i) {parameters = array<i64: 1, 2, 6, 3, 0, 3>} : (tensor<2x6x3xf32>, tensor<6xi32>) -> (tensor<12x2xi64>, tensor<12xi64>, tensor<2xi64>, tensor<6x1xf32>)
}

// -----

// There are no more windows than rows.
drt.entry "step" {
  %i = drt.feed {name = "i"} : () -> tensor<6xi32>
  // expected-error @below {{calls routine 'fractional_sequences', which is none of the runtime's with these parameters}}
  %0:2 = drt.routine "fractional_sequences"(%i) {parameters = array<i64: 3, 5, 4, 3, 0, 1>} : (tensor<6xi32>) -> (tensor<5xi64>, tensor<4xi64>)
}
