// RUN: distc-opt %s --split-input-file --dist-verify-collectives --verify-diagnostics

module {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>]
  dfg.graph {
    // expected-error @below {{waits for accumulator "g", to which nothing is pushed}}
    %t = dist.take mean "g" from <"ps" 0> of 2 variable "w" : tensor<4xf32>
  }
}

// -----

module {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>]
  // expected-error @below {{is placed on ps:3, which is no task of the topology}}
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 3>}
}

// -----

module {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<4xf32>
    // expected-error @below {{differs in how many gradients it waits for from what takes from accumulator "g"}}
    dist.push mean "g" to <"ps" 0> of 1 (%x) variable "w" : tensor<4xf32>
    // expected-note @below {{it is taken here}}
    %t = dist.take mean "g" from <"ps" 0> of 2 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32>
  }
}

// -----

module {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<4xf32>
    %r = dist.all_reduce mean bucket 1 group 0 (%x) variables ["w"] : tensor<4xf32>
    // expected-error @below {{is issued as bucket 0 after bucket 1}}
    %s = dist.all_reduce mean bucket 0 group 0 (%x) variables ["v"] : tensor<4xf32>
  }
}

// -----

module {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {dist.role = "chief"} {
    %x = dfg.placeholder : () -> tensor<4xf32>
    // expected-note @below {{the other one is here}}
    %r = dist.all_reduce mean bucket 0 group 0 (%x) variables ["w"] : tensor<4xf32>
  }
  dfg.graph attributes {dist.role = "worker"} {
    %x = dfg.placeholder : () -> tensor<4xf32>
    // expected-error @below {{collective 0 of the program of role worker is not that of the program of role chief}}
    %r = dist.all_reduce sum bucket 0 group 0 (%x) variables ["w"] : tensor<4xf32>
  }
}

// -----

module {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>}
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<4xf32> loc("x")
    %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32>
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-error @below {{runs on ps:0, but the value of node 'x' depends on what only workers have, and nothing sends it}}
    dfg.apply_gradient_descent %h, %lr, %x {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

module {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>}
  dfg.graph {
    %h = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-error @below {{accesses variable 'w', which server 0 holds; it must run there, or pull}}
    %v = dfg.read_variable %h : (!dfg.ref<tensor<4xf32>>) -> tensor<4xf32>
  }
}

// -----

module {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.graph {
    %i = dfg.placeholder : () -> tensor<?xi32>
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    // expected-error @below {{keeps the rows of each of 2 replicas apart, but 1 gradients are waited for}}
    dist.push mean "g" to <"ps" 0> of 1 (%i, %x) variable "w" apart : tensor<?xi32>, tensor<?x4xf32>
    %t:2 = dist.take mean "g" from <"ps" 0> of 1 variable "w" apart {dist.place = #dist.place<"ps" 0>} : tensor<?xi32>, tensor<?x4xf32>
  }
}

// -----

module {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
  dfg.graph {
    %i = dfg.placeholder : () -> tensor<?xi32>
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    // expected-error @below {{differs in whether rows of one index are added from what takes from accumulator "g"}}
    dist.push mean "g" to <"ps" 0> of 2 (%i, %x) variable "w" apart : tensor<?xi32>, tensor<?x4xf32>
    // expected-note @below {{it is taken here}}
    %t:2 = dist.take mean "g" from <"ps" 0> of 2 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<?xi32>, tensor<?x4xf32>
  }
}

// -----

module {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>]
  dfg.graph {
    %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32>
    %shape = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32>
    // expected-error @below {{draws numbers for each replica's share of the batch without 'dist.seed'}}
    %r = dfg.random_uniform %shape : (tensor<2xi32>) -> tensor<?x4xf32>
  }
}

// -----

// A norm of processed gradients that nothing but a summary needs.
module {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "a" devices ["a:CPU:0", "a:CPU:1"] replicas 2 from 0>, #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>, #dist.task<"ps" 1 on "a" devices [] replicas 0 from 2>]
  dfg.graph attributes {train_op = "train"} {
    %c = dfg.const dense<0.1> : tensor<4xf32> : tensor<4xf32>
    %square = dfg.square %c {dist.place = #dist.place<"ps" 0>} : (tensor<4xf32>) -> tensor<4xf32> loc("square")
    // expected-error @unknown {{uses the value of node 'square', which only ps:0 computes, and nothing sends it; no endpoint needs it, as a summary of gradients that are processed: leave it out of the graph, or take one server (--ps 1) or AllReduce}}
    %norm = dfg.sqrt %square {dist.place = #dist.place<"ps" 1>} : (tensor<4xf32>) -> tensor<4xf32> loc("norm")
    dfg.group : () -> () loc("train")
  }
}
