// RUN: distc-opt %s --drt-describe-program=target=cuda --split-input-file --verify-diagnostics | FileCheck %s

// A graph that its author divided among devices: all of a replica's nodes are on one.
dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "localhost" devices ["localhost:GPU:0"] replicas 1 from 0>]
// CHECK: drt.program
dfg.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @below {{the graph divides its nodes among the devices 'GPU:0', 'GPU:1', which place nothing here: a replica is one device, and computes all of them}}
  %a = dfg.neg %x {device = "/job:worker/task:0/device:GPU:1"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = dfg.neg %a {device = "/gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = dfg.neg %b {device = "/device:CPU:0"} : (tensor<4xf32>) -> tensor<4xf32>
  dfg.return %c : tensor<4xf32>
}

// -----

// One device, however it is named.
dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "localhost" devices ["localhost:GPU:0"] replicas 1 from 0>]
dfg.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = dfg.neg %x {device = "/device:GPU:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %b = dfg.neg %a {device = "/gpu:0"} : (tensor<4xf32>) -> tensor<4xf32>
  %c = dfg.neg %b {device = "/job:ps/task:0"} : (tensor<4xf32>) -> tensor<4xf32>
  dfg.return %c : tensor<4xf32>
}
