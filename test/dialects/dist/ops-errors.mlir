// RUN: distc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{has tasks for 1 replicas of 2}}
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "h" devices ["h:CPU:0"] replicas 1 from 0>]

// -----

// expected-error @below {{task worker:0 begins with replica 1 where 0 is next}}
dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "h" devices ["h:CPU:0"] replicas 1 from 1>]

// -----

// expected-error @below {{task worker:0 has 2 replicas on 1 devices}}
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "h" devices ["h:CPU:0"] replicas 2 from 0>]

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<2xf32>
  %b = dfg.placeholder : () -> tensor<2xf64>
  // expected-error @below {{value 1 has element type 'f64' in a bucket of 'f32'; it needs a bucket of its own}}
  %r:2 = dist.all_reduce mean bucket 0 group 0 (%a, %b) variables ["a", "b"] : tensor<2xf32>, tensor<2xf64>
}

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<2xf32>
  // expected-error @below {{has 1 values for 2 variables}}
  %r = dist.all_reduce mean bucket 0 group 0 (%a) variables ["a", "b"] : tensor<2xf32>
}

// -----

dfg.graph {
  // expected-error @below {{attribute 'dist.feed' is not "sharded" or "whole"}}
  %a = dfg.placeholder {dist.feed = "some"} : () -> tensor<2xf32>
}

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<2xf32>
  // expected-error @below {{attribute 'dist.feed' stands on a placeholder only}}
  %b = dfg.neg %a {dist.feed = "whole"} : (tensor<2xf32>) -> tensor<2xf32>
}

// -----

// A place that is not one would read as every worker's.
dfg.graph {
  // expected-error @below {{attribute 'dist.place' is not a #dist.place whose index is not negative}}
  dfg.variable @w : tensor<2xf32> {dist.place = "ps:0"}
}

// -----

dfg.graph {
  // expected-error @below {{attribute 'dist.slice' is not a #dist.slice}}
  dfg.variable @w : tensor<2xf32> {dist.slice = [2]}
}

// -----

dfg.graph {
  // expected-error @below {{is 'tensor<2xf32>', a part at 2 offsets of a variable of rank 2}}
  dfg.variable @w : tensor<2xf32> {dist.slice = #dist.slice<"whole" [4, 2] at [2, 0]>}
}

// -----

dfg.graph {
  // expected-error @below {{is 'tensor<2x2xf32>' at 3 of axis 0, where 'whole' has 4}}
  dfg.variable @w : tensor<2x2xf32> {dist.slice = #dist.slice<"whole" [4, 2] at [3, 0]>}
}

// -----

dfg.graph {
  // expected-error @below {{attribute 'dist.shares' is not a positive 64-bit integer}}
  dfg.variable @w : tensor<2xf32> {dist.shares = 0 : i64}
}

// -----

dfg.graph {
  // expected-error @below {{attribute 'dist.seed' is not "replica"}}
  %a = dfg.placeholder {dist.seed = 3} : () -> tensor<2xf32>
}

// -----

dfg.graph {
  // expected-error @below {{attribute 'dist.replica' is not a 64-bit integer that is not negative}}
  %a = dfg.placeholder {dist.replica = -1 : i64} : () -> tensor<2xf32>
}

// -----

// expected-error @below {{attribute 'dist.role' is not "chief" or "worker" or "server"}}
dfg.graph attributes {dist.role = "boss"} {
}

// -----

// expected-error @below {{attribute 'dist.joins' is not a dictionary of "mean"}}
dfg.graph attributes {dist.joins = "x"} {
}

// -----

// expected-error @below {{attribute 'dist.strategy' stands on the module only}}
dfg.graph attributes {dist.strategy = #dist.strategy<"">} {
}

// -----

dfg.graph {
  // expected-error @below {{attribute 'dist.plaec' is none of the dialect 'dist'}}
  dfg.variable @w : tensor<2xf32> {dist.plaec = #dist.place<"ps" 0>}
}

// -----

dfg.graph {
  %i = dfg.placeholder : () -> tensor<4x2xi32>
  %v = dfg.placeholder : () -> tensor<4x3xf32>
  // expected-error @below {{has indices 'tensor<4x2xi32>'; a sparse gradient's are numbers of rank 1}}
  %r:2 = dist.all_gather_slices mean bucket 0 group 0 (%i, %v) variable "e" : (tensor<4x2xi32>, tensor<4x3xf32>) -> (tensor<8xi32>, tensor<8x3xf32>)
}

// -----

// How many rows all replicas have follows from their number.
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x3xf32>
  // expected-error @below {{is of several replicas, and the module does not say how many: it has no topology; run dist-apply-strategy}}
  %all = dist.all_gather bucket 0 (%x) name "x" : (tensor<?x3xf32>) -> tensor<?x3xf32>
}

// -----

dfg.graph {
  %i = dfg.placeholder : () -> tensor<4xi32>
  %v = dfg.placeholder : () -> tensor<5x3xf32>
  // expected-error @below {{has values 'tensor<5x3xf32>' for indices 'tensor<4xi32>'; there must be a row for each}}
  dist.push mean "g" to <"ps" 0> of 2 (%i, %v) variable "e" : tensor<4xi32>, tensor<5x3xf32>
}

// -----

dfg.graph {
  %v = dfg.placeholder : () -> tensor<5x3xf32>
  // expected-error @below {{waits for 0 gradients; at least one is needed}}
  dist.push mean "g" to <"ps" 0> of 0 (%v) variable "e" : tensor<5x3xf32>
}

// -----

func.func @owners_of_others(%a: tensor<2xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{has 1 owners of 2 members}}
  %r:2 = dist.reduce_scatter mean bucket 0 group 0 (%a, %b) variables ["a", "b"] {owners = array<i64: 0>} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @owned_part(%a: tensor<2xf32>) {
  // expected-error @+1 {{gives 'tensor<1xf32>' of value 0, but its owner has it whole: 'tensor<2xf32>'}}
  %r = dist.reduce_scatter mean bucket 0 group 0 (%a) variables ["a"] {owners = array<i64: 0>} : (tensor<2xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @gathered_from_nobody(%w: !dfg.ref<tensor<2xf32>>) {
  // expected-error @+1 {{names worker -1 as an owner; workers are numbered from 0 on}}
  dist.all_gather_variables bucket 0 (%w) variables ["a"] {owners = array<i64: -1>} : !dfg.ref<tensor<2xf32>>
  return
}

// -----

// Rows are said by two numbers, of indices and values.
dfg.graph {
  // expected-error @below {{has 2 numbers of rows and 1 values; rows are said by two numbers, of indices and values}}
  %g = dist.take mean "g/a" from <"worker" 0> of 2 variable "a" {rows = array<i64: 1, 0>} : tensor<2xf32>
}

// -----

dfg.graph {
  // expected-error @below {{has padding, but no rows}}
  %i, %v = dist.take mean "g/a" from <"worker" 0> of 2 variable "a" {padded} : tensor<?xi32>, tensor<?x2xf32>
}

// -----

// expected-error @below {{attribute 'dist.joins' is not a dictionary of "mean"}}
dfg.graph attributes {dist.joins = {"loss:0" = "foo"}} {
}

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<2xf32>
  // expected-error @below {{makes 'tensor<1xf64>' of 'tensor<2xf32>'; elements stay what they are}}
  %r = dist.take_share %a : tensor<2xf32> -> tensor<1xf64>
}

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<2xf32>
  // expected-error @below {{is of 'tensor<2xf32>'; sizes are integers}}
  %r = dist.whole_size %a by [4, 1] : (tensor<2xf32>) -> tensor<2xf32>
}

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<2xi32>
  // expected-error @below {{has 1 factors for 2 sizes}}
  %r = dist.whole_size %a by [4] : (tensor<2xi32>) -> tensor<2xi32>
}

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<2xi32>
  // expected-error @below {{has the factor 0; a factor is a number of replicas, or 1}}
  %r = dist.whole_size %a by [0, 1] : (tensor<2xi32>) -> tensor<2xi32>
}

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<f32>
  // expected-error @below {{has the power 0, which changes nothing}}
  %r = dist.rescale %a power 0 : tensor<f32>
}

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<f32>
  // expected-error @below {{is of several replicas, and the module does not say how many}}
  %r = dist.rescale %a power -1 : tensor<f32>
}

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<2xf32>
  // expected-error @below {{is of -1 batches; at least one is needed}}
  %r = dist.accumulate mean of -1 (%a) variables ["a"] : tensor<2xf32> -> tensor<2xf32>
}

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<2xf32>
  // expected-error @below {{makes 'tensor<3xf32>' of 'tensor<2xf32>'}}
  %r = dist.accumulate mean of 2 (%a) variables ["a"] : tensor<2xf32> -> tensor<3xf32>
}

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<2xf32>
  // expected-error @below {{pulls 'tensor<2xf32>', which is no variable}}
  %r = dist.pull %a from <"ps" 0> : tensor<2xf32> -> tensor<2xf32>
}

// -----

dfg.graph {
  // expected-error @below {{is of 0 replicas and 0 steps of staleness}}
  dist.tokens at <"ps" 0> of 0
}

// -----

dfg.graph {
  %a = dfg.placeholder : () -> tensor<2xf32>
  // expected-error @below {{waits for -3 gradients; at least one is needed}}
  dist.push mean "gradients/w" to <"ps" 0> of -3 (%a) variable "w" : tensor<2xf32>
}

// -----

// expected-error @below {{attribute 'dist.sync' stands on a variable only}}
module attributes {dist.sync = #dist.sync<all_reduce>} {
}

// -----

// expected-error @below {{attribute 'dist.parts' is not a #dist.parts}}
dfg.variable @w : tensor<4xf32> {dist.parts = "2"}

// -----

// expected-error @below {{`at`, `async`, `proxy` and `staleness` are of servers}}
dfg.variable @w : tensor<4xf32> {dist.sync = #dist.sync<all_reduce staleness 2>}

// -----

// expected-error @below {{`group`, `spec`, `compression` and `sharded` are of all-reduces}}
dfg.variable @w : tensor<4xf32> {dist.sync = #dist.sync<server group 1>}

// -----

// expected-error @below {{a group or a staleness is not negative, and `sharded` is 0, 1 or 2}}
dfg.variable @w : tensor<4xf32> {dist.sync = #dist.sync<all_reduce sharded 3>}

// -----

// expected-error @below {{an axis is split into at least one part}}
dfg.variable @w : tensor<4xf32> {dist.parts = #dist.parts<[0]>}

// -----

// expected-error @below {{each part is synchronized as a #dist.sync says}}
dfg.variable @w : tensor<4xf32> {dist.parts = #dist.parts<[2] as ["x", "y"]>}

// -----

// expected-error @below {{`coupling` is "replica" or "whole"}}
module attributes {dist.strategy = #dist.strategy<"mine" coupling "some">} {
}

// -----

// expected-error @below {{`accumulate` and `required` are numbers of batches and of gradients}}
module attributes {dist.strategy = #dist.strategy<"mine" required -1>} {
}

// -----

// expected-error @below {{`averages` is of type f32}}
module attributes {dist.strategy = #dist.strategy<"mine" averages 0.9 : f64>} {
}

// -----

// expected-error @below {{`replicas` are the names of devices}}
module attributes {dist.strategy = #dist.strategy<"mine" replicas [1]>} {
}
