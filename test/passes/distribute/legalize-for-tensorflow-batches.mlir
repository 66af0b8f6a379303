// RUN: distc-opt %s --split-input-file --dist-legalize-for-tensorflow="worker=0 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Servers that wait for two gradients of each replica: an update at every second batch, which alone takes, updates and gives tokens.
// CHECK-LABEL: dfg.variable @twice
// CHECK: more_collections = {{.*}}distc_share = [2, 0, 1, 8, 0]
// CHECK: dfg.opaque "FloorMod"(%{{.*}}, %[[TWO:.*]]) {{.*}} loc("accumulate/rest")
// CHECK: dfg.opaque "AccumulatorApplyGradient"
// CHECK-NOT: control = ["accumulate/last"
// CHECK: %[[REQUIRED:.*]] = dfg.const dense<4>
// CHECK: dfg.opaque "AccumulatorTakeGradient"(%{{.*}}, %[[REQUIRED]]) {control = ["accumulate/last"]
// CHECK: dfg.group {control = ["synchronization/twice/push/apply", "update", "accumulate/last"]{{.*}} loc("synchronization/tokens/ready")
module {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @twice : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
  dfg.graph attributes {train_op = "train"} {
    %w = dfg.var_handle @twice : !dfg.ref<tensor<4xf32>> loc("twice")
    %g = dfg.const dense<0.1> : tensor<4xf32> : tensor<4xf32> loc("g")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    dist.push mean "synchronization/twice" to <"ps" 0> of 4 (%g) variable "twice" : tensor<4xf32> loc("synchronization/twice/push")
    %t = dist.take mean "synchronization/twice" from <"ps" 0> of 4 variable "twice" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("synchronization/twice/take")
    dfg.apply_gradient_descent %w, %lr, %t {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
    dist.tokens at <"ps" 0> of 2 {control = ["synchronization/twice/push", "update"]} loc("synchronization/tokens")
    dfg.group {control = ["synchronization/tokens"]} : () -> () loc("train")
  }
}

// -----

// With collectives as well, sessions end each batch together, behind what is dead as well: a Merge alone runs then.
// CHECK-LABEL: dfg.variable @served
// CHECK: %[[LAST:.*]] = dfg.opaque "Equal"{{.*}} loc("accumulate/is_last")
// CHECK: dfg.opaque "CollectiveReduceV2"{{.*}} loc("all_reduce/0/collective")
// CHECK: dfg.opaque "CollectiveReduceV2"{{.*}}control = ["synchronization/end/merge"]{{.*}} loc("synchronization/end/collective")
// CHECK: %[[CHOICE:.*]]:2 = dfg.opaque "Switch"(%[[LAST]], %[[LAST]])
// CHECK: dfg.opaque "Merge"(%[[CHOICE]]#0, %[[CHOICE]]#1) {control = ["all_reduce/0/collective", {{.*}}"synchronization/tokens/step/next"{{.*}} loc("synchronization/end/merge")
module {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @served : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
  dfg.variable @reduced : tensor<4xf32> {trainable}
  dfg.graph attributes {train_op = "train"} {
    %w = dfg.var_handle @served : !dfg.ref<tensor<4xf32>> loc("served")
    %v = dfg.var_handle @reduced : !dfg.ref<tensor<4xf32>> loc("reduced")
    %g = dfg.const dense<0.1> : tensor<4xf32> : tensor<4xf32> loc("g")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %gv = dist.accumulate mean of 3 (%g) variables ["reduced"] : tensor<4xf32> -> tensor<4xf32> loc("accumulate/0")
    %rv = dist.all_reduce mean bucket 0 group 0 (%gv) variables ["reduced"] : tensor<4xf32> loc("all_reduce/0")
    %gw = dist.accumulate mean of 3 (%g) variables ["served"] : tensor<4xf32> -> tensor<4xf32> loc("accumulate/1")
    dist.push mean "synchronization/served" to <"ps" 0> of 2 (%gw) variable "served" : tensor<4xf32> loc("synchronization/served/push")
    %t = dist.take mean "synchronization/served" from <"ps" 0> of 2 variable "served" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("synchronization/served/take")
    dfg.apply_gradient_descent %w, %lr, %t {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_served")
    dfg.apply_gradient_descent %v, %lr, %rv : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_reduced")
    dist.tokens at <"ps" 0> of 2 {control = ["synchronization/served/push", "update_served"]} loc("synchronization/tokens")
    dfg.group {control = ["synchronization/tokens", "update_reduced"]} : () -> () loc("train")
  }
}

// -----

// What changes without seeing the batch counts updates.
// CHECK-LABEL: dfg.variable @global_step
// CHECK: dfg.assign_add {{.*}}control = ["accumulate/last"]{{.*}} loc("count")
module {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>]
  dfg.variable @global_step : tensor<i64>
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph attributes {train_op = "train"} {
    %steps = dfg.var_handle @global_step : !dfg.ref<tensor<i64>> loc("global_step")
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %one = dfg.const dense<1> : tensor<i64> : tensor<i64> loc("one")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32> loc("x")
    %g = dfg.mean %x, %axis : (tensor<?x4xf32>, tensor<i32>) -> tensor<4xf32> loc("g")
    dfg.assign_add %steps, %one : (!dfg.ref<tensor<i64>>, tensor<i64>) -> () loc("count")
    %a = dist.accumulate mean of 3 (%g) variables ["w"] : tensor<4xf32> -> tensor<4xf32> loc("accumulate/0")
    dfg.apply_gradient_descent %w, %lr, %a : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["update", "count"]} : () -> () loc("train")
  }
}

// -----

// Nothing is pushed, but what a server holds is read: who has read says so at the batch of an update, when the chief waits for it.
// CHECK-LABEL: dfg.variable @unpushed
// CHECK: dfg.group {control = ["update", "accumulate/last"]{{.*}} loc("synchronization/tokens/ready")
module {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @unpushed : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
  dfg.graph attributes {train_op = "train"} {
    %w = dfg.var_handle @unpushed : !dfg.ref<tensor<4xf32>> loc("unpushed")
    %g = dfg.const dense<0.1> : tensor<4xf32> : tensor<4xf32> loc("g")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %ga = dist.accumulate mean of 2 (%g) variables ["unpushed"] : tensor<4xf32> -> tensor<4xf32> loc("accumulate/0")
    %r = dist.all_reduce mean bucket 0 group 0 (%ga) variables ["unpushed"] : tensor<4xf32> loc("all_reduce/0")
    dfg.apply_gradient_descent %w, %lr, %r {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
    dist.tokens at <"ps" 0> of 2 {control = ["update"]} loc("synchronization/tokens")
    dfg.group {control = ["synchronization/tokens"]} : () -> () loc("train")
  }
}

// -----

// A collective of each batch waits for one of an update's last batch, dead or not: else the second gradient would be dead with it.
// CHECK-LABEL: dfg.variable @first
// CHECK: dfg.opaque "CollectiveReduceV2"{{.*}} loc("all_reduce/0/collective")
// CHECK: dfg.opaque "CollectiveReduceV2"{{.*}}control = ["all_reduce/1/merge"]{{.*}} loc("all_reduce/1/collective")
// CHECK: dfg.opaque "Merge"{{.*}}control = ["all_reduce/0/collective"]{{.*}} loc("all_reduce/1/merge")
// CHECK: dfg.opaque "CollectiveReduceV2"{{.*}}control = ["all_reduce/1/collective"]{{.*}} loc("all_reduce/2/collective")
module {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>]
  dfg.variable @first : tensor<4xf32> {trainable}
  dfg.variable @second : tensor<4xf32> {trainable}
  dfg.graph attributes {train_op = "train"} {
    %v = dfg.var_handle @first : !dfg.ref<tensor<4xf32>> loc("first")
    %w = dfg.var_handle @second : !dfg.ref<tensor<4xf32>> loc("second")
    %g = dfg.const dense<0.1> : tensor<4xf32> : tensor<4xf32> loc("g")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %a = dist.accumulate mean of 2 (%g) variables ["first"] : tensor<4xf32> -> tensor<4xf32> loc("accumulate/0")
    %ra = dist.all_reduce mean bucket 0 group 0 (%a) variables ["first"] : tensor<4xf32> loc("all_reduce/0")
    %statistic = dist.all_reduce sum bucket 1 group -1 (%g) variables ["statistic"] {coupling} : tensor<4xf32> loc("all_reduce/1")
    %b = dist.accumulate mean of 2 (%statistic) variables ["second"] : tensor<4xf32> -> tensor<4xf32> loc("accumulate/1")
    %rb = dist.all_reduce mean bucket 2 group 0 (%b) variables ["second"] : tensor<4xf32> loc("all_reduce/2")
    dfg.apply_gradient_descent %v, %lr, %ra : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_first")
    dfg.apply_gradient_descent %w, %lr, %rb : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_second")
    dfg.group {control = ["update_first", "update_second"]} : () -> () loc("train")
  }
}
