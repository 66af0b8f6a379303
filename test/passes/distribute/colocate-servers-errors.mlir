// RUN: distc-opt %s --split-input-file --dist-colocate-servers --verify-diagnostics

module attributes {dist.strategy = "node_config { var_name: 'w' PSSynchronizer { reduction_destination: 'ps:0' sync: true } }"} {
  // expected-error @+1 {{server ps:0 is on host 'b', which has no replica: a process of servers alone is not supported yet by executables; give the host a device}}
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"ps" 0 on "b" devices [] replicas 0 from 1>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable}
}

// -----

// expected-error @+1 {{variable 'w' asks for asynchronous updates (sync: false), which is not supported yet by executables; say sync: true}}
module attributes {dist.strategy = "node_config { var_name: 'w' PSSynchronizer { reduction_destination: 'ps:0' } }"} {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 1>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable}
}

// -----

// expected-error @+1 {{the strategy has replicas_to_aggregate, which is not supported yet by executables}}
module attributes {dist.strategy = "replicas_to_aggregate: 1 node_config { var_name: 'w' PSSynchronizer { reduction_destination: 'ps:0' sync: true } }"} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable}
}

// -----

// A bound that is kept needs no more than a word.
// expected-warning @+1 {{the strategy's entry of variable 'w' lets replicas be ahead of the slowest one (staleness); an executable's replicas keep in step}}
module attributes {dist.strategy = "node_config { var_name: 'w' PSSynchronizer { reduction_destination: 'ps:0' sync: true staleness: 2 } }"} {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 1>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable}
}
