// RUN: distc-opt %s --split-input-file --dist-legalize-for-tensorflow="worker=1 batch=8" --verify-diagnostics

// A target network under a condition that is kept as it is: each worker would assign its own what the chief has not written yet.
dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @v : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.variable @target : tensor<4xf32> {kind = "ref"}
dfg.graph attributes {train_op = "train", loss = "loss:0"} {
  %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
  %target = dfg.var_handle @target : !dfg.ref<tensor<4xf32>> loc("target")
  %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
  %yes = dfg.const dense<true> : tensor<i1> : tensor<i1> loc("yes")
  %loss = dist.pull %v from <"ps" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("loss")
  dist.push mean "synchronization/v" to <"ps" 0> of 2 (%loss) variable "v" : tensor<4xf32> loc("synchronization/v/push")
  %t = dist.take mean "synchronization/v" from <"ps" 0> of 2 variable "v" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("synchronization/v/take")
  dfg.apply_gradient_descent %v, %lr, %t {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_v")
  // expected-error@unknown {{node 'new' reads variable 'v', which a server holds, behind an update of the same step, for an update that every worker makes of a variable of its own}}
  %new = dist.pull %v from <"ps" 0> {control = ["update_v"]} : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("new")
  %ref:2 = dfg.opaque "RefSwitch"(%target, %yes) {tf = {T = f32}} : (!dfg.ref<tensor<4xf32>>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) loc("cond/Assign/Switch")
  %value:2 = dfg.opaque "Switch"(%new, %yes) {tf = {T = f32}} : (tensor<4xf32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) loc("cond/Assign/Switch_1")
  %assigned = dfg.opaque "Assign"(%ref#1, %value#1) {tf = {T = f32, use_locking = true, validate_shape = true}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("cond/Assign")
  dist.tokens at <"ps" 0> of 2 staleness 0 {control = ["synchronization/v/push", "update_v", "cond/Assign"]} loc("synchronization/tokens")
  dfg.group {control = ["synchronization/tokens"]} : () -> () loc("train")
}

// -----

// The loss of a second part of the batch, behind the update by the first: another worker would read whatever the server has by then.
dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @v : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.graph attributes {train_op = "train", loss = "loss:0"} {
  %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
  %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
  %old = dist.pull %v from <"ps" 0> : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("old")
  dist.push mean "synchronization/v" to <"ps" 0> of 2 (%old) variable "v" : tensor<4xf32> loc("synchronization/v/push")
  %t = dist.take mean "synchronization/v" from <"ps" 0> of 2 variable "v" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("synchronization/v/take")
  dfg.apply_gradient_descent %v, %lr, %t {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_v")
  // expected-error@unknown {{node 'new' reads variable 'v', which a server holds, behind an update of the same step, for the loss: workers cannot know when the chief has updated; all-reduce the variable that is read, or train with one worker}}
  %new = dist.pull %v from <"ps" 0> {control = ["update_v"]} : !dfg.ref<tensor<4xf32>> -> tensor<4xf32> loc("new")
  %loss = dfg.add_v2 %old, %new : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("loss")
  dist.tokens at <"ps" 0> of 2 staleness 0 {control = ["synchronization/v/push", "update_v", "loss"]} loc("synchronization/tokens")
  dfg.group {control = ["synchronization/tokens"]} : () -> () loc("train")
}
