// RUN: distc-opt %s --split-input-file --dist-apply-strategy="replicas=2" --dist-replicate --dist-insert-synchronizers | FileCheck %s

// A gradient and linear functions of it are one reduction, nearest to the loss: what is reduced in place has no other reader.
// CHECK-LABEL: @gradient_and_its_product
module @gradient_and_its_product {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.variable @a : tensor<4xf32>
  dfg.graph attributes {train_op = "train"} {
    %lr = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    // CHECK: %[[G:.*]] = dfg.mean
    // CHECK-NEXT: %[[R:.*]] = dist.all_reduce mean bucket 0 group {{.*}} (%[[G]])
    // CHECK-NOT: dist.all_reduce
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %a = dfg.var_handle @a : !dfg.ref<tensor<4xf32>> loc("a")
    // CHECK: dfg.square %[[R]]
    %square = dfg.square %g : (tensor<4xf32>) -> tensor<4xf32> loc("square")
    dfg.assign_add %a, %square : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("add")
    // CHECK: dfg.mul %{{.*}}, %[[R]]
    %scaled = dfg.mul %lr, %g : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32> loc("scaled")
    dfg.assign_sub %w, %scaled : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["update", "add"]} : () -> () loc("train")
  }
}

// -----

// Where no other value needs the gradient itself, the reduction stays behind what is linear: a number instead of a tensor.
// CHECK-LABEL: @linear_alone
module @linear_alone {
  dfg.variable @s : tensor<f32> {trainable}
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    // CHECK: %[[S:.*]] = dfg.sum
    // CHECK-NEXT: dist.all_reduce mean bucket 0 group {{.*}} (%[[S]])
    %sum = dfg.sum %g, %zero : (tensor<4xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
    %s = dfg.var_handle @s : !dfg.ref<tensor<f32>> loc("s")
    dfg.assign_sub %s, %sum : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("train")
  }
}
