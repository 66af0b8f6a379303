// RUN: distc-opt %s --split-input-file --dist-colocate-servers --verify-diagnostics

module attributes {dist.strategy = #dist.strategy<"">} {
  // expected-error @+1 {{server ps:0 is on host 'b', which has no replica: a process of servers alone is not supported yet by executables; give the host a device}}
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"ps" 0 on "b" devices [] replicas 0 from 1>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
}

// -----

// expected-error @+1 {{the strategy has replicas_to_aggregate, but variable 'v' is not on a server, which is not supported yet by executables}}
module attributes {dist.strategy = #dist.strategy<"" required 1>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
  dfg.variable @v : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
}

// -----

// expected-error @+1 {{variable 'v' asks for asynchronous updates (sync: false), and variable 'w' for synchronous ones, which is not supported yet by executables}}
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
  dfg.variable @v : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0" async>}
}

// -----

// expected-error @+1 {{the strategy has accumulate_steps and replicas_to_aggregate, which is not supported yet by executables}}
module attributes {dist.strategy = #dist.strategy<"" accumulate 2 required 1>} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
}

// -----

// A bound that is kept needs no more than a word: who reduces another variable with all others is in step.
// expected-warning @+1 {{the strategy's entry of variable 'w' lets replicas be ahead of the slowest one (staleness); here an executable's replicas keep in step}}
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "a" devices ["a:CPU:1"] replicas 1 from 1>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0" staleness 2>}
  dfg.variable @v : tensor<4xf32> {trainable, dist.sync = #dist.sync<all_reduce>}
}
