// RUN: distc-opt %s --split-input-file --test-batch-flow | FileCheck %s

// A mean loss: the gradient is divided by the batch's size, so that the sum over the batch is a mean.
// CHECK-LABEL: @mean_loss
module @mean_loss {
  dfg.variable @w : tensor<4x3xf32> {trainable}
  dfg.graph {
    // CHECK: dfg.placeholder {flow = "sharded(0)"}
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %h = dfg.var_handle @w : !dfg.ref<tensor<4x3xf32>>
    // CHECK: dfg.read_variable {{.*}} {flow = "replicated"}
    %w = dfg.read_variable %h : (!dfg.ref<tensor<4x3xf32>>) -> tensor<4x3xf32>
    // CHECK: dfg.mat_mul {{.*}}flow = "sharded(0)"
    %y = dfg.mat_mul %x, %w : (tensor<?x4xf32>, tensor<4x3xf32>) -> tensor<?x3xf32>
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    // CHECK: dfg.mean {{.*}} {flow = "partial mean"}
    %loss = dfg.mean %y, %all : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<f32>
    // CHECK: dfg.size {{.*}} {flow = "replicated * N^1"}
    %n = dfg.size %y : (tensor<?x3xf32>) -> tensor<i32>
    // CHECK: dfg.cast {{.*}} {flow = "replicated * N^1"}
    %f = dfg.cast %n : (tensor<i32>) -> tensor<f32>
    %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    // CHECK: dfg.real_div {{.*}} {flow = "replicated * N^-1"}
    %d = dfg.real_div %one, %f : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %s = dfg.shape %y : (tensor<?x3xf32>) -> tensor<2xi32>
    // CHECK: dfg.fill {{.*}} {flow = "sharded(0) * N^-1"}
    %g = dfg.fill %s, %d : (tensor<2xi32>, tensor<f32>) -> tensor<?x3xf32>
    // CHECK: dfg.mat_mul {{.*}}flow = "partial mean"
    %gw = dfg.mat_mul %x, %g {transpose_a = true} : (tensor<?x4xf32>, tensor<?x3xf32>) -> tensor<4x3xf32>
    // CHECK: dfg.mat_mul {{.*}}flow = "partial sum"
    %sum = dfg.mat_mul %x, %y {transpose_a = true} : (tensor<?x4xf32>, tensor<?x3xf32>) -> tensor<4x3xf32>
    // A sum that is divided by the batch's size afterwards is a mean.
    // CHECK: dfg.real_div {{.*}} {flow = "partial mean"}
    %mean = dfg.real_div %sum, %f : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
    // CHECK: dfg.add_n {{.*}} {flow = "partial mean"}
    %both = dfg.add_n %gw, %mean : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    // CHECK: dfg.add_v2 {{.*}} {flow = "local"}
    %decay = dfg.add_v2 %gw, %w : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    // CHECK: dfg.l2_loss {{.*}} {flow = "local"}
    %norm = dfg.l2_loss %gw : (tensor<4x3xf32>) -> tensor<f32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    // The greatest of the batch is no sum.
    // CHECK: dfg.max {{.*}} {flow = "local"}
    %max = dfg.max %y, %zero : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<3xf32>
  }
}

// -----

// No first size is open: the batch is the one that the feeds have in common, and stays in each replica.
// CHECK-LABEL: @fixed_batch
module @fixed_batch {
  dfg.graph {
    // CHECK: dfg.placeholder {flow = "sharded(0)"}
    %x = dfg.placeholder : () -> tensor<32x4xf32>
    // CHECK: dfg.placeholder {flow = "replicated"}
    %rate = dfg.placeholder : () -> tensor<f32>
    %y = dfg.placeholder : () -> tensor<32x32xf32>
    // CHECK: dfg.mat_mul {{.*}}flow = "partial mean"
    %g = dfg.mat_mul %y, %x {transpose_a = true} : (tensor<32x32xf32>, tensor<32x4xf32>) -> tensor<32x4xf32>
  }
}
