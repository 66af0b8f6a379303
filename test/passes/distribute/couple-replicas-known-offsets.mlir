// RUN: distc-opt %s --dist-couple-replicas --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Rows in another order are those of the whole batch, and so are those that they are joined with. The gradient of the concatenation compares the shapes of its
// operands, of which one is that of a share still: where its parts begin follows from their columns alone, and is written.
module @offsets attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "update"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %y = dfg.placeholder : () -> tensor<?x1xf32> loc("y")
    %first = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("first")
    %axis = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("axis")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %turned = dfg.reverse_v2 %x, %first : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?x4xf32> loc("turned")
    %joined = dfg.concat_v2 %turned, %y, %axis : (tensor<?x4xf32>, tensor<?x1xf32>, tensor<i32>) -> tensor<?x5xf32> loc("joined")
    %shapes:2 = dfg.shape_n %turned, %y : (tensor<?x4xf32>, tensor<?x1xf32>) -> (tensor<2xi32>, tensor<2xi32>) loc("shapes")
    // CHECK-NOT: dfg.concat_offset
    // CHECK: %[[KNOWN:.*]] = dfg.const dense<0> : tensor<2xi32> loc("offsets/known_0")
    // CHECK: dfg.const dense<[0, 4]> : tensor<2xi32> loc("offsets/known_1")
    // CHECK: dfg.slice %{{.*}}, %[[KNOWN]],
    %offsets:2 = dfg.concat_offset %axis, %shapes#0, %shapes#1 : (tensor<i32>, tensor<2xi32>, tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>) loc("offsets")
    %part = dfg.slice %joined, %offsets#0, %shapes#0 : (tensor<?x5xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32> loc("part")
    %g = dfg.mean %part, %first : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    dfg.assign_sub %w, %g : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
  }
}
