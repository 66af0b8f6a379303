// RUN: distc-opt %s --split-input-file --dist-apply-strategy="strategy=AllReduce replicas=2" --dist-replicate --dist-insert-synchronizers --dist-join-fetches --verify-diagnostics

module {
  dfg.variable @v : tensor<4xf32> {trainable}
  dfg.graph attributes {fetches = ["twice"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %minus = dfg.neg %x : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("minus")
    // expected-error @unknown {{cannot fetch 'twice:0' of 2 replicas (sharded(0 in segments 1+1)): the replicas' values do not make the whole batch's, for it has several parts}}
    %twice = dfg.concat_v2 %x, %minus, %axis : (tensor<?x4xf32>, tensor<?x4xf32>, tensor<i32>) -> tensor<?x4xf32> loc("twice")
  }
}

// -----

module {
  dfg.variable @v : tensor<4xf32> {trainable}
  dfg.graph attributes {fetches = ["max"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %axis = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("axis")
    // expected-error @unknown {{cannot fetch 'max:0' of 2 replicas (local): the replicas' values do not make the whole batch's, for it depends on node 'max', which takes together rows of the batch that replicas have shares of, of 'x'}}
    %max = dfg.max %x, %axis : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("max")
  }
}

// -----

// A loop that stays as it is, of an export, is what the message names.
module {
  dfg.variable @v : tensor<4xf32> {trainable}
  dfg.graph attributes {fetches = ["error"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %all = dfg.const dense<1.0> : tensor<8x4xf32> : tensor<8x4xf32> loc("all")
    %end = dfg.opaque "Exit"(%all) {tf = {T = f32}} : (tensor<8x4xf32>) -> tensor<?x4xf32> loc("while/Exit")
    // expected-error @unknown {{it depends on node 'error', which takes rows of the batch that replicas have shares of, of 'x', with what is made of 'while/Exit' (Exit), a loop or a condition that is exported as it is}}
    %error = dfg.sub %end, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("error")
  }
}
