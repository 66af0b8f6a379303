// RUN: distc-opt %s --split-input-file --dist-split-roles --verify-diagnostics

module {
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>}
  dfg.graph attributes {fetches = ["inside:0"]} {
    %t = dist.take mean "g" from <"ps" 0> of 2 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("take")
    // expected-error @unknown {{node 'inside' is asked for, but it needs what only a server computes}}
    %s = dfg.square %t {dist.place = #dist.place<"ps" 0>} : (tensor<4xf32>) -> tensor<4xf32> loc("inside")
  }
}

// -----

module {
  dfg.graph attributes {dist.role = "chief"} {
    // expected-error @above {{is a role's program already}}
  }
}

// -----

module {
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 1>}
  dfg.graph {
    %t = dist.take mean "g" from <"ps" 0> of 2 variable "v" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("take")
    // expected-error @unknown {{node 'square' of server 1 needs the value of node 'take', which another task computes, and nothing sends it}}
    %s = dfg.square %t {dist.place = #dist.place<"ps" 1>} : (tensor<4xf32>) -> tensor<4xf32> loc("square")
  }
}
