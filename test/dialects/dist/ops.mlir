// RUN: distc-opt %s | distc-opt | FileCheck %s

// CHECK: dist.topology @cluster replicas 3
// CHECK-SAME: #dist.task<"worker" 0 on "11.0.0.1" devices ["11.0.0.1:CPU:0", "11.0.0.1:CPU:1"] replicas 2 from 0>
// CHECK-SAME: #dist.task<"worker" 1 on "11.0.0.2" devices ["11.0.0.2:CPU:0"] replicas 1 from 2>
dist.topology @cluster replicas 3 [
  #dist.task<"worker" 0 on "11.0.0.1" devices ["11.0.0.1:CPU:0", "11.0.0.1:CPU:1"] replicas 2 from 0>,
  #dist.task<"worker" 1 on "11.0.0.2" devices ["11.0.0.2:CPU:0"] replicas 1 from 2>]

// CHECK: dfg.variable @served : tensor<2xf32> {dist.sync = #dist.sync<server at "ps:0" async proxy staleness 2>}
dfg.variable @served : tensor<2xf32> {dist.sync = #dist.sync<server at "ps:0" async proxy staleness 2>}
// CHECK: dfg.variable @proxied : tensor<2xf32> {dist.sync = #dist.sync<server proxy>}
dfg.variable @proxied : tensor<2xf32> {dist.sync = #dist.sync<server proxy>}
// CHECK: dfg.variable @plain : tensor<2xf32> {dist.sync = #dist.sync<server>}
dfg.variable @plain : tensor<2xf32> {dist.sync = #dist.sync<server>}

dfg.graph {
  %a = dfg.placeholder {dist.feed = "whole"} : () -> tensor<2xf32>
  %b = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x3xf32>
  // CHECK: dist.all_reduce mean bucket 0 group 3 (%{{.*}}, %{{.*}}) variables ["a", "b"] : tensor<2xf32>, tensor<?x3xf32>
  %r:2 = dist.all_reduce mean bucket 0 group 3 (%a, %b) variables ["a", "b"] : tensor<2xf32>, tensor<?x3xf32>
  // CHECK: dist.all_reduce sum {{.*}} {spec = #dist.spec<ring>}
  %s = dist.all_reduce sum bucket 1 group 4 (%a) variables ["a"] {spec = #dist.spec<ring>} : tensor<2xf32>
  // CHECK: dist.all_reduce mean {{.*}} {compression = #dist.compression<power_sgd rank 4>}
  %t = dist.all_reduce mean bucket 2 group 5 (%a) variables ["a"] {compression = #dist.compression<power_sgd rank 4>} : tensor<2xf32>
  // CHECK: dist.all_reduce mean {{.*}} {aggregator = #dist.aggregator<multi_krum f 1 m 2>, compression = #dist.compression<top_k ratio 1.000000e-02 : f64>}
  %u = dist.all_reduce mean bucket 3 group 5 (%a) variables ["a"]
    {aggregator = #dist.aggregator<multi_krum f 1 m 2>, compression = #dist.compression<top_k ratio 1.0e-2 : f64>} : tensor<2xf32>
  %i = dfg.placeholder : () -> tensor<?xi32>
  // CHECK: %[[I:.*]], %[[V:.*]] = dist.all_gather_slices mean bucket 4 group 0 (%{{.*}}, %{{.*}}) variable "a" :
  %ai, %av = dist.all_gather_slices mean bucket 4 group 0 (%i, %b) variable "a" : (tensor<?xi32>, tensor<?x3xf32>) -> (tensor<?xi32>, tensor<?x3xf32>)
  %w = dfg.var_handle @a : !dfg.ref<tensor<2xf32>>
  // CHECK: dist.reduce_scatter mean bucket 5 group 1 (%{{.*}}) variables ["a"] : (tensor<2xf32>) -> tensor<1xf32>
  %gs = dist.reduce_scatter mean bucket 5 group 1 (%a) variables ["a"] : (tensor<2xf32>) -> tensor<1xf32>
  // What an owner has whole has the variable's shape, whatever is known of the gradient's.
  // CHECK: dist.reduce_scatter mean bucket 6 group 1 (%{{.*}}) variables ["a"] {owners = array<i64: 0>} : (tensor<*xf32>) -> tensor<2xf32>
  %of = builtin.unrealized_conversion_cast %a : tensor<2xf32> to tensor<*xf32>
  %ow = dist.reduce_scatter mean bucket 6 group 1 (%of) variables ["a"] {owners = array<i64: 0>} : (tensor<*xf32>) -> tensor<2xf32>
  // CHECK: dist.share_handle %{{.*}} : !dfg.ref<tensor<2xf32>> -> !dfg.ref<tensor<1xf32>>
  %ws = dist.share_handle %w : !dfg.ref<tensor<2xf32>> -> !dfg.ref<tensor<1xf32>>
  // CHECK: dist.take_share %{{.*}} : tensor<2xf32> -> tensor<1xf32>
  %as = dist.take_share %a : tensor<2xf32> -> tensor<1xf32>
  // CHECK: dist.all_gather_variables bucket 6 (%{{.*}}) variables ["a"] : !dfg.ref<tensor<2xf32>>
  dist.all_gather_variables bucket 6 (%w) variables ["a"] : !dfg.ref<tensor<2xf32>>
  // CHECK: dist.accumulate mean of 4 (%{{.*}}) variables ["a"] : tensor<2xf32> -> tensor<2xf32>
  %acc = dist.accumulate mean of 4 (%a) variables ["a"] : tensor<2xf32> -> tensor<2xf32>
  // CHECK: dist.pull %{{.*}} from <"ps" 0> proxy : !dfg.ref<tensor<2xf32>> -> tensor<2xf32>
  %p = dist.pull %w from <"ps" 0> proxy : !dfg.ref<tensor<2xf32>> -> tensor<2xf32>
  // CHECK: dist.push mean "g/a" to <"ps" 0> of 4 (%{{.*}}) variable "a" : tensor<2xf32>
  dist.push mean "g/a" to <"ps" 0> of 4 (%a) variable "a" : tensor<2xf32>
  // CHECK: dist.take mean "g/a" from <"ps" 0> of 4 variable "a" : tensor<2xf32>
  %ga = dist.take mean "g/a" from <"ps" 0> of 4 variable "a" : tensor<2xf32>
  // CHECK: dist.tokens at <"ps" 0> of 4 staleness 2
  dist.tokens at <"ps" 0> of 4 staleness 2
}
// CHECK: dfg.variable @a : tensor<2xf32> {dist.place = #dist.place<"ps" 0>, dist.slice = #dist.slice<"whole" [8] at [2]>}
dfg.variable @a : tensor<2xf32> {dist.place = #dist.place<"ps" 0>, dist.slice = #dist.slice<"whole" [8] at [2]>}
