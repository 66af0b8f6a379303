// RUN: distc-opt %s --split-input-file --dist-couple-replicas --verify-diagnostics

// A replica that does not wait for the others has nothing of theirs.
module @spare attributes {dist.strategy = #dist.strategy<"" coupling "whole" required 1>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %rate = dfg.placeholder : () -> tensor<f32>
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    // expected-error @below {{node '' depends on examples of other replicas, and with staleness, backup workers or asynchronous servers a replica does not wait for them: coupling=whole cannot be; take coupling=replica, or a synchronous strategy}}
    %max = dfg.max %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    dfg.apply_gradient_descent %h, %rate, %max : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

// Unless it was asked for, each replica uses its own.
module @own attributes {dist.strategy = #dist.strategy<"" required 1>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %rate = dfg.placeholder : () -> tensor<f32>
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    // expected-remark @below {{each replica uses its own share's (coupling=replica)}}
    %max = dfg.max %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    dfg.apply_gradient_descent %h, %rate, %max : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

// Updates of a gradient of every replica are synchronous ones, and replicas that need each other's examples are in step.
module @in_step attributes {dist.strategy = #dist.strategy<"" required 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"worker" 0>, dist.sync = #dist.sync<server>}
  // expected-remark @+2 {{values of the step depend on other replicas' examples: gathered is}}
  // expected-remark @below {{so that replicas take each step together: with replicas_to_aggregate the number of replicas, every update is the one that it would be otherwise}}
  dfg.graph {
    %rate = dfg.placeholder : () -> tensor<f32>
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %max = dfg.max %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    dfg.apply_gradient_descent %h, %rate, %max : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

// What is logged, too: of a root of a mean replicas have only their own, and the mean of these is another number.
module @logged attributes {dist.strategy = #dist.strategy<"" required 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"worker" 0>, dist.sync = #dist.sync<server>}
  // expected-remark @below {{so that replicas take each step together: with replicas_to_aggregate the number of replicas, every update is the one that it would be otherwise}}
  dfg.graph attributes {train_op = "train", fetches = ["root:0"]} {
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32> loc("rate")
    %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    %root = dfg.sqrt %mean : (tensor<4xf32>) -> tensor<4xf32> loc("root")
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    dfg.apply_gradient_descent %h, %rate, %mean : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
  }
}

// -----

// Of a mean and a penalty the mean is right, and what an update makes of gradients is the server's.
module @of_means attributes {dist.strategy = #dist.strategy<"" required 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"worker" 0>, dist.sync = #dist.sync<server>}
  dfg.graph attributes {train_op = "train", fetches = ["penalized:0", "root:0"]} {
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32> loc("rate")
    %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %w = dfg.read_variable %h : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("read")
    %penalized = dfg.add_v2 %mean, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("penalized")
    %root = dfg.sqrt %mean : (tensor<4xf32>) -> tensor<4xf32> loc("root")
    dfg.apply_gradient_descent %h, %rate, %root : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
  }
}

// -----

// Who does not wait for the others logs its own, and says so.
module @logged_alone attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"worker" 0>, dist.sync = #dist.sync<server staleness 1>}
  dfg.graph attributes {train_op = "train", fetches = ["root:0"]} {
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32> loc("rate")
    %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    // expected-remark @unknown {{each replica uses its own share's (coupling=replica)}}
    %root = dfg.sqrt %mean : (tensor<4xf32>) -> tensor<4xf32> loc("root")
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    dfg.apply_gradient_descent %h, %rate, %mean : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
  }
}

// -----

// A loss that an update needs as well is a server's, where each step has one of its own to log.
module @loss_of_update attributes {dist.strategy = #dist.strategy<"" required 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable, dist.place = #dist.place<"worker" 0>, dist.sync = #dist.sync<server>}
  // expected-remark @below {{so that replicas take each step together: with replicas_to_aggregate the number of replicas, every update is the one that it would be otherwise}}
  dfg.graph attributes {train_op = "train", loss = "loss:0"} {
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32> loc("rate")
    %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %mean = dfg.mean %x, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("mean")
    %h = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %w = dfg.read_variable %h : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("read")
    %loss = dfg.add_v2 %mean, %w : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss")
    %square = dfg.square %loss : (tensor<f32>) -> tensor<f32> loc("square")
    dfg.apply_gradient_descent %h, %rate, %square : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("train")
  }
}

// -----

// A second pass over the batch, behind the first one's update.
module @in_turn attributes {dist.strategy = #dist.strategy<"" required 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"worker" 0>, dist.sync = #dist.sync<server>}
  dfg.variable @v : tensor<4xf32> {trainable, dist.place = #dist.place<"worker" 0>, dist.sync = #dist.sync<server>}
  // expected-remark @below {{gradients are computed from what updates of their own step leave, so that replicas take each step together}}
  dfg.graph attributes {train_op = "train"} {
    %rate = dfg.const dense<1.000000e+00> : tensor<f32> : tensor<f32> loc("rate")
    %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %i = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
    dfg.apply_gradient_descent %h, %rate, %mean : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("first")
    %w = dfg.read_variable %h {control = ["first"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("again")
    %y = dfg.mul %x, %w : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32> loc("y")
    %second = dfg.mean %y, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("second")
    dfg.apply_gradient_descent %i, %rate, %second {control = ["first"]} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
  }
}

// -----

// What an optimizer makes of a slot that the step has updated is a server's.
module @slots_in_turn attributes {dist.strategy = #dist.strategy<"" required 2>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"worker" 0>, dist.sync = #dist.sync<server>}
  dfg.variable @slot : tensor<4xf32> {dist.place = #dist.place<"worker" 0>}
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %mean = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("mean")
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
    %s = dfg.var_handle @slot : !dfg.ref<tensor<4xf32>> loc("slot")
    dfg.assign_add %s, %mean : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("first")
    %m = dfg.read_variable %s {control = ["first"]} : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("again")
    %both = dfg.add_v2 %m, %mean : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("both")
    dfg.assign_sub %h, %both : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("train")
  }
}
