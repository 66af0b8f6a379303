// RUN: distc-opt %s --split-input-file --dist-open-batch=batch=8 | FileCheck %s
// RUN: distc-opt %s --split-input-file --dist-open-batch=batch=16 | FileCheck %s --check-prefix=OTHER

// A replica is given rows of a share, and its nodes take them; who takes all rows apart has all of them, as the graph's own shape.
// OTHER: dfg.placeholder : () -> tensor<8x3xf32>
// CHECK-LABEL: @cut
module @cut attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["first:0"]} {
    // CHECK: %[[X:.*]] = dfg.placeholder : () -> tensor<?x3xf32>
    %x = dfg.placeholder : () -> tensor<8x3xf32> loc("x")
    // CHECK: %[[H:.*]] = dfg.tanh %[[X]] : (tensor<?x3xf32>) -> tensor<?x3xf32>
    %h = dfg.tanh %x : (tensor<8x3xf32>) -> tensor<8x3xf32> loc("h")
    // CHECK: %[[ALL:.*]] = dfg.reshape %[[H]], %{{.*}} -> tensor<8x3xf32>
    // CHECK: dfg.unpack %[[ALL]]
    %r:8 = dfg.unpack %h : (tensor<8x3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) loc("r")
    %first = dfg.identity %r#0 : (tensor<3xf32>) -> tensor<3xf32> loc("first")
  }
}

// -----

// What all replicas have a row of for each example meets the replica's rows as its part; sizes of all rows are a share's; a mean is of the replica's.
// CHECK-LABEL: @rows
module @rows attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["mean:0"]} {
    %x = dfg.placeholder : () -> tensor<8x4xf32> loc("x")
    %weights = dfg.const dense<[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]]> : tensor<8x1xf32> : tensor<8x1xf32> loc("weights")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %sizes = dfg.const dense<[8, 2, 2]> : tensor<3xi32> : tensor<3xi32> loc("sizes")
    // CHECK: %[[OWN:.*]] = dist.take_rows %{{.*}} -> tensor<?x1xf32>
    // CHECK: %[[TIMES:.*]] = dfg.mul %{{.*}}, %[[OWN]] : (tensor<?x4xf32>, tensor<?x1xf32>) -> tensor<?x4xf32>
    %times = dfg.mul %x, %weights : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32> loc("times")
    // CHECK: %[[SQUARES:.*]] = dfg.reshape %[[TIMES]], %{{.*}} -> tensor<?x2x2xf32>
    %squares = dfg.reshape %times, %sizes : (tensor<8x4xf32>, tensor<3xi32>) -> tensor<8x2x2xf32> loc("squares")
    // CHECK: dfg.mean %[[SQUARES]], %{{.*}} -> tensor<2x2xf32>
    %mean = dfg.mean %squares, %zero : (tensor<8x2x2xf32>, tensor<1xi32>) -> tensor<2x2xf32> loc("mean")
  }
}

// -----

// Replicas of their own have no rows but theirs.
// CHECK-LABEL: @own
module @own attributes {dist.coupling = "replica", dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["h:0"]} {
    // CHECK: dfg.placeholder : () -> tensor<8x3xf32>
    %x = dfg.placeholder : () -> tensor<8x3xf32> loc("x")
    %h = dfg.tanh %x : (tensor<8x3xf32>) -> tensor<8x3xf32> loc("h")
  }
}
