// RUN: distc-opt %s --dist-keep-in-step --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-NOT: staleness
// CHECK: sync
// expected-warning @+1 {{lets replicas be ahead of the slowest one (staleness); here an executable's replicas keep in step, so that none is}}
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:GPU:0"] replicas 1 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 1>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0" staleness 2>}
}
