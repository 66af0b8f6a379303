// RUN: distc-opt %s --dfg-extract-entries --verify-diagnostics

// A replica has nothing of what servers make of the gradients.
module {
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 0>, trainable}
  dfg.graph attributes {train_op = "train", fetches = ["norm:0"]} {
    %x = dfg.placeholder {dist.feed = "sharded", shape = #dfg.shape<[4]>} : () -> tensor<4xf32>
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32>
    dist.push mean "gradients/0/w" to <"worker" 0> of 2 (%x) variable "w" : tensor<4xf32> loc("push")
    // expected-error @+1 {{is computed from what servers have made of all gradients, but a fetch of entry 'step' needs it: 'norm:0'; leave it out, or take a synchronous strategy}}
    %r = dist.take mean "gradients/0/w" from <"worker" 0> of 2 variable "w" {dist.place = #dist.place<"worker" 0>} : tensor<4xf32>
    %n = dfg.neg %r : (tensor<4xf32>) -> tensor<4xf32> loc("norm")
    dfg.apply_gradient_descent %h, %rate, %r {dist.place = #dist.place<"worker" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
    dist.tokens at <"worker" 0> of 3 {control = ["push"]}
  }
}
