// RUN: distc-opt %s --split-input-file --verify-diagnostics --dfg-pad-batch --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: distc-opt %s --split-input-file --verify-diagnostics --dfg-pad-batch --dfg-mask-rows --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=MASKED

// The batch is the rows that the runtime says are there; a mean divides by their number, numbers are drawn for all, and a fetch has all of them.
// CHECK-LABEL: @mean
// MASKED-LABEL: @mean
module @mean {
  dfg.graph attributes {loss = "loss:0", fetches = ["noisy:0"]} {
    // CHECK: %[[VALID:.*]] = dfg.placeholder {{.*}}dfg.validity{{.*}} -> tensor<?xi1> loc("distc/valid_rows")
    // CHECK: %[[AT:.*]] = dfg.opaque "Where"(%[[VALID]])
    // MASKED: %[[VALID:.*]] = dfg.placeholder {{.*}}dfg.validity
    // CHECK: %[[X:.*]] = dfg.placeholder {{.*}} loc("x")
    // CHECK: %[[ROWS:.*]] = dfg.gather_nd %[[X]], %[[AT]] {{.*}} loc("x/valid_rows")
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    // CHECK-NOT: gather_nd
    %rate = dfg.placeholder : () -> tensor<f32> loc("rate")
    %both = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("both")
    // CHECK: dfg.shape %[[ROWS]]
    %shape = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32> loc("shape")
    %noise = dfg.random_uniform %shape {seed = 1 : i64, seed2 = 2 : i64} : (tensor<2xi32>) -> tensor<?x4xf32> loc("noise")
    // MASKED: %[[NOISY:.*]] = dfg.mul
    %noisy = dfg.mul %x, %noise : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("noisy")
    // MASKED: dfg.select_v2 %{{.*}}, %[[NOISY]]
    // MASKED: dfg.real_div
    %loss = dfg.mean %noisy, %both : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

module @fixed {
  // expected-error @+1 {{--pad-batch: no placeholder has a batch of open size, so that no example can be left out of one; leave the flag out, or leave the placeholders' first size open (None)}}
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<8x4xf32> loc("x")
    %both = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("both")
    %loss = dfg.mean %x, %both : (tensor<8x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// An integer is drawn below the number of rows that are there; the last row that is there of each example is one of its places.
// MASKED-LABEL: @draws
module @draws {
  dfg.graph attributes {loss = "loss:0"} {
    // MASKED: %[[VALID:.*]] = dfg.placeholder {{.*}}dfg.validity
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %last = dfg.placeholder : () -> tensor<?xi32> loc("last")
    %first = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("first")
    %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
    %begin = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("begin")
    %end = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("end")
    %shape = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32> loc("shape")
    %size = dfg.strided_slice %shape, %begin, %end, %end {shrink_axis_mask = 1 : i64} : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("size")
    // MASKED: %[[TRUE:.*]] = dfg.strided_slice {{.*}} loc("size/of_rows")
    // MASKED: dfg.random_uniform_int %{{.*}}, %{{.*}}, %[[TRUE]]
    %drawn = dfg.random_uniform_int %end, %first, %size {seed = 1 : i64, seed2 = 2 : i64} : (tensor<1xi32>, tensor<i32>, tensor<i32>) -> tensor<1xi32> loc("drawn")
    %numbers = dfg.range %first, %size, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32> loc("numbers")
    %places = dfg.pack %numbers, %last {axis = 1 : i64} : (tensor<?xi32>, tensor<?xi32>) -> tensor<?x2xi32> loc("places")
    // MASKED: %[[PICKED:.*]] = dfg.gather_nd
    %picked = dfg.gather_nd %x, %places : (tensor<?x4xf32>, tensor<?x2xi32>) -> tensor<?xf32> loc("picked")
    // MASKED: dfg.select_v2 %{{.*}}, %[[PICKED]]
    %sum = dfg.sum %picked, %begin : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
    %some = dfg.cast %drawn : (tensor<1xi32>) -> tensor<1xf32> loc("some")
    %loss = dfg.mul %sum, %some : (tensor<f32>, tensor<1xf32>) -> tensor<1xf32> loc("loss")
  }
}
