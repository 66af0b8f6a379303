// RUN: distc-opt %s --dist-insert-synchronizers --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Clipping by a global norm, as TensorFlow writes it, of what a transformer's first layers leave: the raw gradients are reduced, and the
// norm, the scale and the clipped gradients are of the whole batch's.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.variable @embedding : tensor<50x8xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.variable @query : tensor<8x8xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
    %two = dfg.const dense<2.0> : tensor<f32> : tensor<f32> loc("two")
    %axis = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("axis")
    %rows = dfg.const dense<50> : tensor<i32> : tensor<i32> loc("rows")
    %embedding = dfg.var_handle @embedding : !dfg.ref<tensor<50x8xf32>> loc("embedding")
    %query = dfg.var_handle @query : !dfg.ref<tensor<8x8xf32>> loc("query")
    %q = dfg.read_variable %query : (!dfg.ref<tensor<8x8xf32>>) -> tensor<8x8xf32> loc("read")
    %x = dfg.resource_gather %embedding, %ids : (!dfg.ref<tensor<50x8xf32>>, tensor<?xi32>) -> tensor<?x8xf32> loc("x")
    %y = dfg.mat_mul %x, %q : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32> loc("y")
    %size = dfg.size %ids : (tensor<?xi32>) -> tensor<i32> loc("size")
    %batch = dfg.cast %size : (tensor<i32>) -> tensor<f32> loc("batch")
    %dy = dfg.real_div %y, %batch : (tensor<?x8xf32>, tensor<f32>) -> tensor<?x8xf32> loc("dy")
    // CHECK: %[[GQ:.*]] = dfg.mat_mul {{.*}} loc("gq")
    %gq = dfg.mat_mul %x, %dy {transpose_a = true} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<8x8xf32> loc("gq")
    %dx = dfg.mat_mul %dy, %q {transpose_b = true} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32> loc("dx")
    // CHECK: %[[GE:.*]] = dfg.unsorted_segment_sum
    %ge = dfg.unsorted_segment_sum %dx, %ids, %rows : (tensor<?x8xf32>, tensor<?xi32>, tensor<i32>) -> tensor<50x8xf32> loc("ge")
    // CHECK-NEXT: %[[R:.*]]:2 = dist.all_reduce mean bucket 0 group 0 (%[[GQ]], %[[GE]])
    // CHECK-NEXT: dfg.l2_loss %[[R]]#0
    // CHECK-NEXT: dfg.l2_loss %[[R]]#1
    %nq = dfg.l2_loss %gq : (tensor<8x8xf32>) -> tensor<f32> loc("nq")
    %ne = dfg.l2_loss %ge : (tensor<50x8xf32>) -> tensor<f32> loc("ne")
    %both = dfg.pack %nq, %ne : (tensor<f32>, tensor<f32>) -> tensor<2xf32> loc("both")
    %half = dfg.sum %both, %axis : (tensor<2xf32>, tensor<1xi32>) -> tensor<f32> loc("half")
    %squared = dfg.mul %half, %two : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("squared")
    %norm = dfg.sqrt %squared : (tensor<f32>) -> tensor<f32> loc("norm")
    %inverse = dfg.real_div %one, %norm : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("inverse")
    // CHECK: %[[SCALE:.*]] = dfg.minimum
    %scale = dfg.minimum %inverse, %one : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("scale")
    // CHECK: dfg.mul %[[R]]#0, %[[SCALE]]
    // CHECK: dfg.mul %[[R]]#1, %[[SCALE]]
    %cq = dfg.mul %gq, %scale : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32> loc("cq")
    %ce = dfg.mul %ge, %scale : (tensor<50x8xf32>, tensor<f32>) -> tensor<50x8xf32> loc("ce")
    // CHECK-NOT: dist.
    dfg.apply_gradient_descent %query, %lr, %cq : (!dfg.ref<tensor<8x8xf32>>, tensor<f32>, tensor<8x8xf32>) -> () loc("update_q")
    dfg.apply_gradient_descent %embedding, %lr, %ce : (!dfg.ref<tensor<50x8xf32>>, tensor<f32>, tensor<50x8xf32>) -> () loc("update_e")
  }
}
