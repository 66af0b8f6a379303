// RUN: distc-opt %s --dfg-expand-control-flow --split-input-file --verify-diagnostics

// Each example's value is one of that before it.
dfg.func @below(%i: tensor<*xi32>, %n: tensor<*xi32>, %h: tensor<*xf32>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %less = dfg.less %i, %n : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @recur(%i: tensor<*xi32>, %n: tensor<*xi32>, %h: tensor<*xf32>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %next = dfg.add_v2 %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %row = dfg.gather_v2 %x, %i, %zero : (tensor<*xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("row")
  %sum = dfg.add_v2 %h, %row : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("sum")
  %after = dfg.tanh %sum : (tensor<*xf32>) -> tensor<*xf32> loc("after")
  dfg.return %next, %n, %after, %x : tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>
}
dfg.graph attributes {loss = "loop"} {
  %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %h = dfg.const dense<1.0> : tensor<3xf32> : tensor<3xf32> loc("initial")
  %shape = dfg.shape %x : (tensor<?x3xf32>) -> tensor<2xi32> loc("shape")
  %n = dfg.gather_v2 %shape, %zero, %zero : (tensor<2xi32>, tensor<i32>, tensor<i32>) -> tensor<i32> loc("n")
  // expected-error@unknown {{node 'loop' (op 'While') is a loop over the examples of a batch whose iterations depend on each other}}
  %r:4 = dfg.opaque "While"(%zero, %n, %h, %x) {tf = {cond = #dfg.func<@below, {}>, body = #dfg.func<@recur, {}>}} : (tensor<i32>, tensor<i32>, tensor<3xf32>, tensor<?x3xf32>) -> (tensor<i32>, tensor<i32>, tensor<3xf32>, tensor<?x3xf32>) loc("loop")
}

// -----

// Numbers of a generator go on from example to example.
dfg.func @below(%i: tensor<*xi32>, %n: tensor<*xi32>, %sum: tensor<*xf32>) -> tensor<*xi1> {
  %less = dfg.less %i, %n : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @draw(%i: tensor<*xi32>, %n: tensor<*xi32>, %sum: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xi32>, tensor<*xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %next = dfg.add_v2 %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %shape = dfg.const dense<[3]> : tensor<1xi32> : tensor<1xi32>
  %drawn = dfg.random_uniform %shape {seed = 1 : i64} : (tensor<1xi32>) -> tensor<3xf32> loc("drawn")
  %more = dfg.add_v2 %sum, %drawn : (tensor<*xf32>, tensor<3xf32>) -> tensor<*xf32> loc("more")
  dfg.return %next, %n, %more : tensor<*xi32>, tensor<*xi32>, tensor<*xf32>
}
dfg.graph attributes {loss = "loop"} {
  %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %sum = dfg.const dense<1.0> : tensor<3xf32> : tensor<3xf32> loc("initial")
  %shape = dfg.shape %x : (tensor<?x3xf32>) -> tensor<2xi32> loc("shape")
  %n = dfg.gather_v2 %shape, %zero, %zero : (tensor<2xi32>, tensor<i32>, tensor<i32>) -> tensor<i32> loc("n")
  // expected-error@unknown {{or draws random numbers with a seed}}
  %r:3 = dfg.opaque "While"(%zero, %n, %sum) {tf = {cond = #dfg.func<@below, {}>, body = #dfg.func<@draw, {}>}} : (tensor<i32>, tensor<i32>, tensor<3xf32>) -> (tensor<i32>, tensor<i32>, tensor<3xf32>) loc("loop")
}
