// RUN: distc-opt %s --split-input-file --dist-apply-strategy="replicas=2" --dist-replicate --dist-insert-synchronizers | FileCheck %s

// A gradient that two updates use is reduced once; weight decay and a global norm come after; both gradients are one bucket, behind
// which the updates stand.
// CHECK-LABEL: @one_bucket
module @one_bucket {
  dfg.variable @w : tensor<4x3xf32> {trainable}
  dfg.variable @v : tensor<4x3xf32> {trainable}
  dfg.variable @copy : tensor<4x3xf32>
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %e = dfg.placeholder : () -> tensor<?x3xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %hw = dfg.var_handle @w : !dfg.ref<tensor<4x3xf32>>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<4x3xf32>>
    %hc = dfg.var_handle @copy : !dfg.ref<tensor<4x3xf32>>
    // CHECK: %[[READ:.*]] = dfg.read_variable
    %w = dfg.read_variable %hw : (!dfg.ref<tensor<4x3xf32>>) -> tensor<4x3xf32>
    // CHECK: %[[GW:.*]] = dfg.mat_mul
    %gw = dfg.mat_mul %x, %e {transpose_a = true} : (tensor<?x4xf32>, tensor<?x3xf32>) -> tensor<4x3xf32>
    %decayed = dfg.add_v2 %gw, %w : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    dfg.apply_gradient_descent %hw, %lr, %decayed : (!dfg.ref<tensor<4x3xf32>>, tensor<f32>, tensor<4x3xf32>) -> ()
    dfg.assign_add %hc, %gw : (!dfg.ref<tensor<4x3xf32>>, tensor<4x3xf32>) -> ()
    // CHECK-NEXT: dfg.square
    %e2 = dfg.square %e : (tensor<?x3xf32>) -> tensor<?x3xf32>
    // CHECK-NEXT: %[[GV:.*]] = dfg.mat_mul
    %gv = dfg.mat_mul %x, %e2 {transpose_a = true} : (tensor<?x4xf32>, tensor<?x3xf32>) -> tensor<4x3xf32>
    // CHECK-NEXT: %[[R:.*]]:2 = dist.all_reduce sum bucket 0 group 0 (%[[GW]], %[[GV]]) variables ["w", "v"]
    // CHECK-NEXT: %[[DECAYED:.*]] = dfg.add_v2 %[[R]]#0, %[[READ]]
    // CHECK-NEXT: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[DECAYED]]
    // CHECK-NEXT: dfg.assign_add %{{.*}}, %[[R]]#0
    // CHECK-NEXT: dfg.l2_loss %[[R]]#1
    %norm = dfg.l2_loss %gv : (tensor<4x3xf32>) -> tensor<f32>
    %clipped = dfg.real_div %gv, %norm : (tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
    // CHECK: dfg.apply_gradient_descent
    dfg.apply_gradient_descent %hv, %lr, %clipped : (!dfg.ref<tensor<4x3xf32>>, tensor<f32>, tensor<4x3xf32>) -> ()
    // CHECK-NEXT: dfg.read_variable
    %after = dfg.read_variable %hv : (!dfg.ref<tensor<4x3xf32>>) -> tensor<4x3xf32>
    // CHECK-NOT: dist.all_reduce
  }
}

// -----

// A statistic is synchronized for its moving average; forward keeps the replica's own.
// CHECK-LABEL: @moving_average
module @moving_average {
  dfg.variable @moving : tensor<4xf32>
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    // CHECK: %[[MEAN:.*]] = dfg.mean
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    // CHECK: %[[R:.*]] = dist.all_reduce mean bucket 0 group -1 (%[[MEAN]]) variables ["moving"]
    %h = dfg.var_handle @moving : !dfg.ref<tensor<4xf32>>
    %old = dfg.read_variable %h : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32>
    // CHECK: dfg.sub %{{.*}}, %[[MEAN]] : (tensor<?x4xf32>
    %centered = dfg.sub %x, %mean : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
    // CHECK: %[[STEP:.*]] = dfg.sub %{{.*}}, %[[R]]
    %step = dfg.sub %old, %mean : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    // CHECK: dfg.assign_sub %{{.*}}, %[[STEP]]
    dfg.assign_sub %h, %step : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> ()
  }
}

// -----

// The second gradient sees the first update: it cannot share its bucket.
// CHECK-LABEL: @one_after_the_other
module @one_after_the_other {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.variable @v : tensor<4xf32> {trainable}
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %lr = dfg.placeholder : () -> tensor<f32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %hw = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %hv = dfg.var_handle @v : !dfg.ref<tensor<4xf32>>
    %gw = dfg.sum %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    // CHECK: dist.all_reduce sum bucket 0 group 0 {{.*}} variables ["w"]
    // CHECK: dfg.apply_gradient_descent
    dfg.apply_gradient_descent %hw, %lr, %gw : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
    %new = dfg.read_variable %hw : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32>
    %y = dfg.mul %x, %new : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
    %gv = dfg.sum %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    // CHECK: dist.all_reduce sum bucket 1 group 0 {{.*}} variables ["v"]
    // CHECK: dfg.apply_gradient_descent
    dfg.apply_gradient_descent %hv, %lr, %gv : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

// What only an update beside the training step needs is a collective of its own: in one of the step's, the step would compute it.
// CHECK-LABEL: @beside_the_step
module @beside_the_step {
  dfg.variable @w : tensor<4xf32>
  dfg.variable @moving : tensor<4xf32>
  dfg.graph attributes {train_op = "train"} {
    %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("lr")
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %other = dfg.placeholder : () -> tensor<?x4xf32> loc("other")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    // CHECK: %[[STEP:.*]] = dfg.mean
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    // CHECK-NEXT: dist.all_reduce mean bucket 0 group -1 (%[[STEP]]) variables ["w"]
    // CHECK-NEXT: %[[BESIDE:.*]] = dfg.mean
    // CHECK-NEXT: dist.all_reduce mean bucket 1 group -1 (%[[BESIDE]]) variables ["moving"]
    %mean = dfg.mean %other, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    %hw = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %hm = dfg.var_handle @moving : !dfg.ref<tensor<4xf32>> loc("moving")
    dfg.assign %hw, %g : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("train")
    dfg.assign %hm, %mean : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("moved")
  }
}
