// RUN: distc-opt %s --dfg-extract-entries 2>&1 | FileCheck %s

// Where replicas push to servers, "step" is what leads to the pushes, with what may end the program, and "update" what is behind the takes.
// A number that is made of these is the update's to give, and no evaluation's.
module {
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable}
  dfg.graph attributes {train_op = "train", loss = "loss:0", fetches = ["norm:0"]} {
    %x = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[4]>} : () -> tensor<4xf32> loc("x")
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32> loc("rate")
    %w = dist.pull %h from <"worker" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("read")
    %g = dfg.sub %w, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("gradient")
    %loss = dfg.neg %g : (tensor<4xf32>) -> tensor<4xf32> loc("loss")
    dist.push mean "gradients/0/w" to <"worker" 0> of 2 (%g) variable "w" : tensor<4xf32> loc("push")
    %r = dist.take mean "gradients/0/w" from <"worker" 0> of 2 variable "w" {dist.place = #dist.place<"worker" 0>} : tensor<4xf32> loc("take")
    %n = dfg.l2_loss %r {dist.place = #dist.place<"worker" 0>} : (tensor<4xf32>) -> tensor<f32> loc("norm")
    dfg.apply_gradient_descent %h, %rate, %r {dist.place = #dist.place<"worker" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
    dist.tokens at <"worker" 0> of 3 {control = ["push"]} loc("tokens")
  }
}

// CHECK: warning: {{.*}}'norm:0' is what servers make of an update's gradients; --eval, which makes none, does not give it
// CHECK: dfg.func @step
// CHECK-NOT: dist.take
// CHECK-NOT: dfg.apply_gradient_descent
// CHECK: dist.pull
// CHECK: dist.push
// CHECK: dist.tokens
// CHECK: dfg.func @update
// CHECK-SAME: dfg.fetches = ["norm:0"]
// CHECK-SAME: dfg.joins = ["first"]
// CHECK-NOT: dist.push
// CHECK-NOT: dist.pull
// CHECK: %[[TAKEN:.*]] = dist.take
// CHECK: %[[NORM:.*]] = dfg.l2_loss %[[TAKEN]]
// CHECK: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[TAKEN]]
// CHECK: dfg.return %[[NORM]]
// CHECK: dfg.func @eval
// CHECK: dist.pull
