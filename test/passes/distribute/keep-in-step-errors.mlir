// RUN: distc-opt %s --dist-keep-in-step --verify-diagnostics

// expected-error @+1 {{servers that serve on their own (sync: false, replicas_to_aggregate, staleness) are not supported yet on devices; synchronous servers do}}
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:GPU:0"] replicas 1 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 1>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0" async>}
}
