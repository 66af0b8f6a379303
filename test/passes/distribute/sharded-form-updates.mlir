// RUN: distc-opt %s --distribute="strategy=ShardedUpdate replicas=2 one-process-per-replica form-updates" | FileCheck %s

// Each task updates its share of a variable by the rule that the graph spells out, slots included. A rule without a gradient (a decay) is
// one as well.
// CHECK-DAG: dfg.variable @trace : tensor<2xf32> {dist.shares = 2 : i64
// CHECK: %[[SHARE:.*]] = dist.reduce_scatter
// CHECK-DAG: %[[W:.*]] = dist.share_handle %w
// CHECK-DAG: dist.update %[[W]], %trace, %[[SHARE]] {has_gradient}
// CHECK-DAG: %[[DECAYS:.*]] = dist.share_handle %decays
// CHECK-DAG: dist.update %[[DECAYS]] :
// CHECK: dist.all_gather_variables
dfg.variable @w : tensor<4xf32> {trainable}
dfg.variable @trace : tensor<4xf32>
dfg.variable @decays : tensor<4xf32> {trainable}
dfg.graph attributes {loss = "loss:0", train_op = "train"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %trace = dfg.var_handle @trace : !dfg.ref<tensor<4xf32>> loc("trace")
  %decays = dfg.var_handle @decays : !dfg.ref<tensor<4xf32>> loc("decays")
  %x = dfg.placeholder {dtype = f32, shape = #dfg.shape<[?, 4]>} : () -> tensor<?x4xf32> loc("x")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
  %rate = dfg.const dense<0.9> : tensor<f32> : tensor<f32> loc("rate")
  %loss = dfg.mean %x, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  %g = dfg.mean %x, %axis : (tensor<?x4xf32>, tensor<i32>) -> tensor<4xf32> loc("g")
  %0 = dfg.read_variable %w : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("w/read")
  %1 = dfg.read_variable %trace : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("trace/read")
  %2 = dfg.read_variable %decays : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("decays/read")
  %3 = dfg.mul %1, %rate : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("decayed")
  %4 = dfg.add_v2 %3, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("new_trace")
  %5 = dfg.sub %0, %4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("new_w")
  %6 = dfg.mul %2, %rate : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32> loc("new_decays")
  dfg.assign %trace, %4 : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("trace/assign")
  dfg.assign %w, %5 : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("w/assign")
  dfg.assign %decays, %6 : (!dfg.ref<tensor<4xf32>>, tensor<4xf32>) -> () loc("decays/assign")
  dfg.group {control = ["trace/assign", "w/assign", "decays/assign"]} : () -> () loc("train")
}
