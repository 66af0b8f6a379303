// RUN: distc-opt %s --split-input-file --dist-colocate-servers=where-supported | FileCheck %s

// A server on a host without workers serves on its own, so that all do.
module attributes {dist.strategy = #dist.strategy<"">} {
  // CHECK: dist.topology
  // CHECK-SAME: #dist.task<"ps" 0 on "b"
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"ps" 0 on "b" devices [] replicas 0 from 1>]
  // CHECK: dfg.variable @w {{.*}}dist.place = #dist.place<"ps" 0>
  dfg.variable @w : tensor<2xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
}

// -----

// Updates that wait for nobody beside a variable that all reduce together.
module attributes {dist.strategy = #dist.strategy<"">} {
  // CHECK: dist.topology
  // CHECK-SAME: #dist.task<"ps" 0 on "a"
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<2xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0" async>}
  dfg.variable @v : tensor<2xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
}

// -----

// Replicas of several processes reach those that all variables are on.
module attributes {dist.strategy = #dist.strategy<"">} {
  // CHECK: dist.topology
  // CHECK-NOT: "ps"
  // CHECK: dfg.variable @w {{.*}}dist.place = #dist.place<"worker" 0>
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<2xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0" async>}
}

// -----

// Others share processes.
module attributes {dist.strategy = #dist.strategy<"">} {
  // CHECK: dist.topology
  // CHECK-NOT: "ps"
  // CHECK: dfg.variable @w {{.*}}dist.place = #dist.place<"worker" 0>
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 1>]
  dfg.variable @w : tensor<2xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
}
