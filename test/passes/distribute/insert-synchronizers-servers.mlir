// RUN: distc-opt %s --split-input-file --dist-insert-synchronizers --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Each replica pushes; the server takes the mean and updates. It has no learning rate: the chief sends it. Workers pull, the server's own
// weight decay reads what it holds.
// CHECK-LABEL: @synchronous
module @synchronous attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server proxy staleness 2>}
  dfg.variable @step : tensor<i64>
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    // CHECK: %[[LR:.*]] = dfg.placeholder : () -> tensor<f32>
    // CHECK: dist.push sum "synchronization/sent/0" to <"ps" 0> of 1 (%[[LR]]) variable "w" {dist.place = #dist.place<"worker" 0>}
    // CHECK: %[[SENT:.*]] = dist.take sum "synchronization/sent/0" from <"ps" 0> of 1 variable "w" {dist.place = #dist.place<"ps" 0>}
    %lr = dfg.placeholder : () -> tensor<f32> loc("lr")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %decay = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("decay")
    %one = dfg.const dense<1> : tensor<i64> : tensor<i64> loc("one")
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    // CHECK: dist.pull %{{.*}} from <"ps" 0> proxy : {{.*}} loc("read")
    // CHECK: %[[OWN:.*]] = dfg.read_variable %{{.*}} {dist.place = #dist.place<"ps" 0>}
    %w = dfg.read_variable %h : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("read")
    %y = dfg.mul %x, %w : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("y")
    // CHECK: %[[G:.*]] = dfg.mean
    %g = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    // CHECK: dist.push mean "synchronization/w" to <"ps" 0> of 2 (%[[G]]) variable "w" {staleness = 2 : i64}
    // CHECK: %[[PART:.*]] = dfg.mul %{{.*}}, %[[OWN]] {dist.place = #dist.place<"ps" 0>}
    // CHECK: %[[T:.*]] = dist.take mean "synchronization/w" from <"ps" 0> of 2 variable "w" {dist.place = #dist.place<"ps" 0>}
    %part = dfg.mul %decay, %w : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32> loc("part")
    // CHECK: %[[SUM:.*]] = dfg.add_v2 %[[T]], %[[PART]] {dist.place = #dist.place<"ps" 0>}
    %sum = dfg.add_v2 %g, %part : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("sum")
    // CHECK: dfg.apply_gradient_descent %{{.*}}, %[[SENT]], %[[SUM]] {dist.place = #dist.place<"ps" 0>}
    dfg.apply_gradient_descent %h, %lr, %sum : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
    %hs = dfg.var_handle @step : !dfg.ref<tensor<i64>> loc("step")
    // CHECK: dfg.assign_add
    // CHECK-NOT: dist.place
    dfg.assign_add %hs, %one {control = ["update"]} : (!dfg.ref<tensor<i64>>, tensor<i64>) -> () loc("count")
    // A worker's copy is renewed at the end of the step: what reads behind the update asks the server.
    // CHECK: dist.pull %{{.*}} from <"ps" 0> {control = ["count"]} : {{.*}} loc("after")
    %after = dfg.read_variable %h {control = ["count"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("after")
    // CHECK: dist.tokens at <"ps" 0> of 2 staleness 2 {control = ["synchronization/sent/0/push", "synchronization/w/push", "update"]} loc("synchronization/tokens")
    // CHECK-NEXT: dfg.group {control = ["update", "count", "synchronization/tokens"]}
    dfg.group {control = ["update", "count"]} : () -> () loc("train")
  }
}

// -----

// Nothing waits: a replica's value before its update is pushed, clipped as it is.
// CHECK-LABEL: @asynchronous
module @asynchronous attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server async>}
  dfg.graph attributes {train_op = "update"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %norm = dfg.l2_loss %g : (tensor<4xf32>) -> tensor<f32> loc("norm")
    // CHECK: %[[C:.*]] = dfg.real_div
    %c = dfg.real_div %g, %norm : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("clipped")
    // CHECK: dist.push mean "synchronization/w" to <"ps" 0> of 1 (%[[C]]) variable "w" async
    // CHECK: %[[T:.*]] = dist.take mean "synchronization/w" from <"ps" 0> of 1 variable "w" async {dist.place = #dist.place<"ps" 0>}
    // CHECK: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[T]] {dist.place = #dist.place<"ps" 0>} {{.*}} loc("update/update")
    // CHECK: dfg.group {control = ["synchronization/w/push"]} {{.*}} loc("synchronization/pushes")
    // CHECK: dfg.group {control = ["update/update", "synchronization/pushes"]} {{.*}} loc("update")
    dfg.apply_gradient_descent %h, %lr, %c : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
  }
}

// -----

// A norm over variables of two servers: the chief takes both gradients, clips them, and sends them on.
// CHECK-LABEL: @global_norm
module @global_norm attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 1 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 1>, #dist.task<"ps" 1 on "a" devices [] replicas 0 from 1>]
  dfg.variable @v : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 1>, dist.sync = #dist.sync<server>}
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %hv = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
    %hw = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %gv = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("gv")
    // CHECK: dist.push mean "synchronization/w" to <"ps" 1> of 1
    // CHECK: dist.take mean "synchronization/v" {{.*}} {dist.place = #dist.place<"worker" 0>}
    // CHECK: dist.take mean "synchronization/w" {{.*}} {dist.place = #dist.place<"worker" 0>}
    %gw = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("gw")
    // CHECK: dfg.l2_loss {{.*}} {dist.place = #dist.place<"worker" 0>}
    %nv = dfg.l2_loss %gv : (tensor<4xf32>) -> tensor<f32> loc("nv")
    %nw = dfg.l2_loss %gw : (tensor<4xf32>) -> tensor<f32> loc("nw")
    %n = dfg.add_v2 %nv, %nw : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("n")
    // CHECK: %[[CV:.*]] = dfg.real_div {{.*}} {dist.place = #dist.place<"worker" 0>}
    %cv = dfg.real_div %gv, %n : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("cv")
    // CHECK: dist.push sum "synchronization/sent/0" to <"ps" 0> of 1 (%[[CV]]) variable "v" {dist.place = #dist.place<"worker" 0>}
    %cw = dfg.real_div %gw, %n : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("cw")
    // CHECK: %[[TW:.*]] = dist.take sum "synchronization/sent/1" from <"ps" 1> of 1 variable "w" {dist.place = #dist.place<"ps" 1>}
    dfg.apply_gradient_descent %hv, %lr, %cv : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("uv")
    // CHECK: dfg.apply_gradient_descent %{{.*}}, %{{.*}}, %[[TW]] {dist.place = #dist.place<"ps" 1>}
    dfg.apply_gradient_descent %hw, %lr, %cw : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("uw")
    dfg.group {control = ["uv", "uw"]} : () -> () loc("train")
  }
}

// -----

// What nothing takes, and only control edges name, is where its operand is: of the server's value no worker knows.
// CHECK-LABEL: @dead_end
module @dead_end attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
    %clipped = dfg.square %g : (tensor<4xf32>) -> tensor<4xf32> loc("clipped")
    // CHECK: %[[CLIPPED:.*]] = dfg.square %{{.*}} {dist.place = #dist.place<"ps" 0>}
    // CHECK: %[[EXIT:.*]] = dfg.identity %[[CLIPPED]] {dist.place = #dist.place<"ps" 0>}
    // CHECK: dfg.neg %[[EXIT]] {dist.place = #dist.place<"ps" 0>}
    %exit = dfg.identity %clipped : (tensor<4xf32>) -> tensor<4xf32> loc("exit")
    %rest = dfg.neg %exit : (tensor<4xf32>) -> tensor<4xf32> loc("rest")
    dfg.apply_gradient_descent %h, %lr, %clipped {control = ["rest"]} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
    dfg.group {control = ["update"]} : () -> () loc("train")
  }
}

// -----

// The loss, a mean and a penalty, is part of the update's learning rate: every worker is asked for it, so that what it is computed from is
// reduced by all of them, and the chief sends the server the rest.
// CHECK-LABEL: @rate_by_the_loss
module @rate_by_the_loss attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<f32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.graph attributes {train_op = "update", loss = "named:0"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %h = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %w = dfg.read_variable %h : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("read")
    %y = dfg.mul %x, %w : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("y")
    %penalty = dfg.l2_loss %w : (tensor<f32>) -> tensor<f32> loc("penalty")
    // CHECK: %[[M:.*]] = dfg.mean
    // CHECK-NOT: dist.push mean
    %m = dfg.mean %y, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("m")
    // CHECK: %[[R:.*]] = dist.all_reduce mean {{.*}} (%[[M]])
    // CHECK: %[[G:.*]] = dist.all_reduce mean
    %g = dfg.mean %x, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("g")
    // CHECK: %[[LOSS:.*]] = dfg.add_v2 %[[R]], %{{[a-z0-9_]*}} : {{.*}} loc("loss")
    %loss = dfg.add_v2 %m, %penalty : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss")
    // CHECK: dfg.identity %[[LOSS]] : {{.*}} loc("named")
    %named = dfg.identity %loss : (tensor<f32>) -> tensor<f32> loc("named")
    // CHECK: %[[STEP:.*]] = dfg.mul %[[G]], %[[LOSS]] : {{.*}} loc("step")
    // CHECK: dist.push sum "synchronization/sent/0" to <"ps" 0> of 1 (%[[STEP]]) variable "w" {dist.place = #dist.place<"worker" 0>}
    %step = dfg.mul %g, %loss : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("step")
    dfg.assign_sub %h, %step : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update")
  }
}

// -----

// A norm of gradients that two servers process, which no endpoint needs (a summary): no task has all of it, and it is left out.
// CHECK-LABEL: @summary_of_two_servers
// CHECK: dfg.square {{.*}}dist.place = #dist.place<"ps" 0>{{.*}} loc("square_v")
// CHECK-NOT: loc("norm")
// CHECK-NOT: loc("root")
// CHECK: dfg.group {control = ["update_v", "update_w", "synchronization/tokens"]}
module @summary_of_two_servers attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>, #dist.task<"ps" 1 on "a" devices [] replicas 0 from 2>]
  dfg.variable @v : tensor<f32> {trainable, dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server>}
  dfg.variable @w : tensor<f32> {trainable, dist.place = #dist.place<"ps" 1>, dist.sync = #dist.sync<server>}
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %hv = dfg.var_handle @v : !dfg.ref<tensor<f32>> loc("v")
    %hw = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %gv = dfg.mean %x, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("gv")
    %gw = dfg.mean %x, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("gw")
    %pv = dfg.tanh %gv : (tensor<f32>) -> tensor<f32> loc("pv")
    %pw = dfg.tanh %gw : (tensor<f32>) -> tensor<f32> loc("pw")
    %nv = dfg.square %pv : (tensor<f32>) -> tensor<f32> loc("square_v")
    %nw = dfg.square %pw : (tensor<f32>) -> tensor<f32> loc("square_w")
    %norm = dfg.add_v2 %nv, %nw : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("norm")
    %root = dfg.sqrt %norm : (tensor<f32>) -> tensor<f32> loc("root")
    dfg.assign_sub %hv, %pv : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update_v")
    dfg.assign_sub %hw, %pw : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("update_w")
    dfg.group {control = ["update_v", "update_w"]} : () -> () loc("train")
  }
}
