// RUN: distc-opt %s --split-input-file --dist-apply-strategy="replicas=2" --dist-replicate --dist-insert-synchronizers --verify-diagnostics

module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.placeholder : () -> tensor<f32>
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    // expected-error @below {{variable 'w' cannot be synchronized: its update '' depends on node '' (dfg.max), which takes together rows of the batch that replicas have shares of, of ''; with coupling=replica in the strategy each replica uses its own}}
    %max = dfg.max %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-note @below {{the update is here}}
    dfg.apply_gradient_descent %w, %lr, %max : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

module {
  dfg.variable @table : tensor<9x4xf32> {trainable}
  dfg.graph {
    %g = dfg.placeholder : () -> tensor<?x4xf32>
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %h = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
    // expected-error @below {{does not know the operation, so its sparse gradient cannot be synchronized}}
    dfg.opaque "ResourceScatterSub"(%h, %ids, %g) : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
  }
}

// -----

// A weighted mean: the gradient is divided by the sum of a share's weights.
module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %weights = dfg.placeholder : () -> tensor<?x1xf32>
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    %axis = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %sum = dfg.sum %weights, %all : (tensor<?x1xf32>, tensor<2xi32>) -> tensor<f32> loc("sum")
    // expected-error @below {{depends on node '' (dfg.real_div), which in each replica sees its own share's part of the sum or mean 'sum' over the batch}}
    %share = dfg.real_div %weights, %sum : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
    %rows = dfg.mul %x, %share : (tensor<?x4xf32>, tensor<?x1xf32>) -> tensor<?x4xf32>
    %g = dfg.sum %rows, %axis : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-note @below {{the update is here}}
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

// A function that updates a variable, given a share of the batch: a call that was not inlined, a condition.
module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-error @unknown {{node 'call' runs a function whose node 'inner' updates a variable, and is given a share of the batch: inline calls first (dfg-inline-calls)}}
    dfg.call @apply(%g, %w) {stateful} : (tensor<4xf32>, !dfg.ref<tensor<4xf32>>) -> () loc("call")
  }
  dfg.func @apply(%g: tensor<4xf32>, %w: tensor<*x!dfg.resource>) {
    dfg.assign_sub %w, %g : (tensor<*x!dfg.resource>, tensor<4xf32>) -> () loc("inner")
    dfg.return
  }
}

// -----

module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %yes = dfg.placeholder : () -> tensor<i1>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-error @unknown {{node 'if' runs a function whose node 'inner' updates a variable, and is given a share of the batch: updates in conditions and loops cannot be synchronized}}
    dfg.opaque "If"(%yes, %g, %w) {tf = {then_branch = #dfg.func<@then, {}>, else_branch = #dfg.func<@else, {}>}} : (tensor<i1>, tensor<4xf32>, !dfg.ref<tensor<4xf32>>) -> () loc("if")
  }
  dfg.func @then(%g: tensor<4xf32>, %w: tensor<*x!dfg.resource>) {
    dfg.assign_sub %w, %g : (tensor<*x!dfg.resource>, tensor<4xf32>) -> () loc("inner")
    dfg.return
  }
  dfg.func @else(%g: tensor<4xf32>, %w: tensor<*x!dfg.resource>) {
    dfg.return
  }
}
