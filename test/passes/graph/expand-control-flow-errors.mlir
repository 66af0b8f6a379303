// RUN: distc-opt %s --dfg-expand-control-flow --split-input-file --verify-diagnostics

// Data alone decide when it ends, and it draws random numbers.
dfg.func @above(%x: tensor<*xf32>) -> tensor<*xi1> {
  %limit = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
  %greater = dfg.greater %x, %limit : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1> loc("greater")
  dfg.return %greater : tensor<*xi1>
}
dfg.func @noise(%x: tensor<*xf32>) -> tensor<*xf32> {
  %shape = dfg.const dense<[]> : tensor<0xi32> : tensor<0xi32>
  %y = dfg.random_uniform %shape : (tensor<0xi32>) -> tensor<f32> loc("draw")
  %z = dfg.mul %x, %y : (tensor<*xf32>, tensor<f32>) -> tensor<*xf32> loc("mul")
  dfg.return %z : tensor<*xf32>
}
dfg.graph attributes {loss = "while"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  // expected-error@unknown {{node 'while' (op 'While') is a loop that distc knows no bound for, so that its iterations can only compute values: node 'while/body/draw' (random_uniform) inside changes, draws or tells something}}
  %w = dfg.opaque "While"(%x) {tf = {cond = #dfg.func<@above, {}>, body = #dfg.func<@noise, {}>}} : (tensor<f32>) -> tensor<f32> loc("while")
}

// -----

// What each iteration leaves is needed behind it.
dfg.func @above(%x: tensor<*xf32>, %l: tensor<!dfg.variant>) -> tensor<*xi1> {
  %limit = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
  %greater = dfg.greater %x, %limit : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1> loc("greater")
  dfg.return %greater : tensor<*xi1>
}
dfg.func @push(%x: tensor<*xf32>, %l: tensor<!dfg.variant>) -> (tensor<*xf32>, tensor<!dfg.variant>) {
  %y = dfg.tanh %x : (tensor<*xf32>) -> tensor<*xf32> loc("tanh")
  %m = dfg.opaque "TensorListPushBack"(%l, %x) {stateless, tf = {element_dtype = f32}} : (tensor<!dfg.variant>, tensor<*xf32>) -> tensor<!dfg.variant> loc("push")
  dfg.return %y, %m : tensor<*xf32>, tensor<!dfg.variant>
}
dfg.graph attributes {loss = "length"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %shape = dfg.const dense<[]> : tensor<0xi32> : tensor<0xi32>
  %most = dfg.const dense<-1> : tensor<i32> : tensor<i32> loc("most")
  %l = dfg.opaque "EmptyTensorList"(%shape, %most) {stateless, tf = {element_dtype = f32}} : (tensor<0xi32>, tensor<i32>) -> tensor<!dfg.variant> loc("list")
  // expected-error@unknown {{node 'while' (op 'While') is a loop that distc knows no bound for, and more than tensors goes on from an iteration}}
  %w:2 = dfg.opaque "While"(%x, %l) {tf = {cond = #dfg.func<@above, {}>, body = #dfg.func<@push, {}>}} : (tensor<f32>, tensor<!dfg.variant>) -> (tensor<f32>, tensor<!dfg.variant>) loc("while")
  %n = dfg.opaque "TensorListLength"(%w#1) {stateless} : (tensor<!dfg.variant>) -> tensor<i32> loc("length")
}

// -----

// Elements along the batch's axis, of which there are others than examples.
dfg.graph attributes {loss = "length"} {
  %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %one = dfg.const dense<1.0> : tensor<1x3xf32> : tensor<1x3xf32> loc("one")
  %both = dfg.concat_v2 %x, %one, %zero : (tensor<?x3xf32>, tensor<1x3xf32>, tensor<i32>) -> tensor<?x3xf32> loc("both")
  %shape = dfg.const dense<[3]> : tensor<1xi32> : tensor<1xi32>
  // expected-error@unknown {{takes apart a tensor along its first axis, whose size is the batch's}}
  %list = dfg.opaque "TensorListFromTensor"(%both, %shape) {tf = {element_dtype = f32}} : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<!dfg.variant> loc("list")
  %n = dfg.opaque "TensorListLength"(%list) : (tensor<!dfg.variant>) -> tensor<i32> loc("length")
}

// -----

dfg.func @draw(%x: tensor<*xf32>) -> tensor<*xf32> {
  %shape = dfg.const dense<[2]> : tensor<1xi32> : tensor<1xi32>
  // expected-error@unknown {{draws random numbers with a seed in a condition}}
  %y = dfg.random_uniform %shape {seed = 1 : i64} : (tensor<1xi32>) -> tensor<2xf32> loc("draw")
  dfg.return %y : tensor<2xf32>
}
dfg.graph attributes {loss = "cond"} {
  %x = dfg.placeholder : () -> tensor<2xf32> loc("x")
  %norm = dfg.l2_loss %x : (tensor<2xf32>) -> tensor<f32> loc("norm")
  %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
  %p = dfg.less %norm, %one : (tensor<f32>, tensor<f32>) -> tensor<i1> loc("p")
  %r = dfg.opaque "If"(%p, %x) {tf = {then_branch = #dfg.func<@draw, {}>, else_branch = #dfg.func<@draw, {}>}} : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32> loc("cond")
}

// -----

dfg.func @forever(%x: tensor<*xf32>) -> tensor<*xf32> {
  // expected-error@unknown {{calls function 'forever', which calls itself}}
  %y = dfg.opaque "StatefulPartitionedCall"(%x) {tf = {f = #dfg.func<@forever, {}>}} : (tensor<*xf32>) -> tensor<*xf32> loc("again")
  dfg.return %y : tensor<*xf32>
}
dfg.graph attributes {loss = "call"} {
  %x = dfg.placeholder : () -> tensor<2xf32> loc("x")
  %r = dfg.opaque "PartitionedCall"(%x) {tf = {f = #dfg.func<@forever, {}>}} : (tensor<2xf32>) -> tensor<2xf32> loc("call")
}

// -----

// Known before an iteration is written out.
dfg.func @below(%i: tensor<i32>, %x: tensor<f32>) -> tensor<i1> {
  %limit = dfg.const dense<1000000000> : tensor<i32> : tensor<i32>
  %less = dfg.less %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("less")
  dfg.return %less : tensor<i1>
}
dfg.func @next(%i: tensor<i32>, %x: tensor<f32>) -> (tensor<i32>, tensor<f32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %next = dfg.add_v2 %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("next")
  %y = dfg.tanh %x : (tensor<f32>) -> tensor<f32> loc("tanh")
  dfg.return %next, %y : tensor<i32>, tensor<f32>
}
dfg.graph attributes {loss = "while:1"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  // expected-error@unknown {{node 'while' (op 'While') is a loop of more than 100000 iterations}}
  %w:2 = dfg.opaque "While"(%zero, %x) {tf = {cond = #dfg.func<@below, {}>, body = #dfg.func<@next, {}>}} : (tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>) loc("while")
}

// -----

dfg.func @below(%i: tensor<i32>, %x: tensor<f32>) -> tensor<i1> {
  %limit = dfg.const dense<3> : tensor<i32> : tensor<i32>
  %less = dfg.less %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("less")
  dfg.return %less : tensor<i1>
}
dfg.func @same(%i: tensor<i32>, %x: tensor<f32>) -> (tensor<i32>, tensor<f32>) {
  %y = dfg.tanh %x : (tensor<f32>) -> tensor<f32> loc("tanh")
  %j = dfg.identity %i : (tensor<i32>) -> tensor<i32> loc("same")
  dfg.return %j, %y : tensor<i32>, tensor<f32>
}
dfg.graph attributes {loss = "while:1"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  // expected-error@unknown {{node 'while' (op 'While') is a loop without an end: an iteration leaves all as it is that its condition looks at}}
  %w:2 = dfg.opaque "While"(%zero, %x) {tf = {cond = #dfg.func<@below, {}>, body = #dfg.func<@same, {}>}} : (tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>) loc("while")
}

// -----

// It draws as often as it can: a warning.
dfg.func @below_limit(%i: tensor<i32>, %limit: tensor<i32>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %three = dfg.const dense<3> : tensor<i32> : tensor<i32>
  %less = dfg.less %i, %three : (tensor<i32>, tensor<i32>) -> tensor<*xi1> loc("less")
  %there = dfg.less %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<*xi1> loc("there")
  %both = dfg.logical_and %less, %there : (tensor<*xi1>, tensor<*xi1>) -> tensor<*xi1> loc("both")
  dfg.return %both : tensor<*xi1>
}
dfg.func @add_noise(%i: tensor<i32>, %limit: tensor<i32>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<i32>, tensor<*xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %next = dfg.add_v2 %i, %one : (tensor<i32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %shape = dfg.const dense<[2]> : tensor<1xi32> : tensor<1xi32>
  // expected-warning@unknown {{loop 'while' draws random numbers with a seed (node 'while/0/draw'), and data decide when it ends: its generators go on as if it always ran as often as it can}}
  %y = dfg.random_uniform %shape {seed = 1 : i64} : (tensor<1xi32>) -> tensor<2xf32> loc("draw")
  %noisy = dfg.add_v2 %x, %y : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32> loc("noisy")
  dfg.return %next, %limit, %noisy : tensor<*xi32>, tensor<i32>, tensor<*xf32>
}
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<2xf32> loc("x")
  %limit = dfg.placeholder : () -> tensor<i32> loc("limit")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %w:3 = dfg.opaque "While"(%zero, %limit, %x) {tf = {cond = #dfg.func<@below_limit, {}>, body = #dfg.func<@add_noise, {}>}} : (tensor<i32>, tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<i32>, tensor<2xf32>) loc("while")
  %loss = dfg.identity %w#2 : (tensor<2xf32>) -> tensor<2xf32> loc("loss")
}

// -----

// Data decide whether an iteration draws at all.
dfg.func @below_two(%i: tensor<i32>, %p: tensor<i1>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
  %less = dfg.less %i, %two : (tensor<i32>, tensor<i32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @draw(%x: tensor<*xf32>) -> tensor<*xf32> {
  %shape = dfg.const dense<[2]> : tensor<1xi32> : tensor<1xi32>
  // expected-error@unknown {{draws random numbers with a seed in a loop}}
  %y = dfg.random_uniform %shape {seed = 1 : i64} : (tensor<1xi32>) -> tensor<2xf32> loc("draw")
  %noisy = dfg.add_v2 %x, %y : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32> loc("noisy")
  dfg.return %noisy : tensor<*xf32>
}
dfg.func @keep(%x: tensor<*xf32>) -> tensor<*xf32> {
  dfg.return %x : tensor<*xf32>
}
dfg.func @maybe(%i: tensor<i32>, %p: tensor<i1>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<i1>, tensor<*xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %next = dfg.add_v2 %i, %one : (tensor<i32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %y = dfg.opaque "If"(%p, %x) {tf = {then_branch = #dfg.func<@draw, {}>, else_branch = #dfg.func<@keep, {}>}} : (tensor<i1>, tensor<*xf32>) -> tensor<*xf32> loc("cond")
  dfg.return %next, %p, %y : tensor<*xi32>, tensor<i1>, tensor<*xf32>
}
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<2xf32> loc("x")
  %zeros = dfg.zeros_like %x : (tensor<2xf32>) -> tensor<2xf32> loc("zeros")
  %above = dfg.greater %x, %zeros : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1> loc("above")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %p = dfg.any %above, %axis : (tensor<2xi1>, tensor<i32>) -> tensor<i1> loc("any")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %w:3 = dfg.opaque "While"(%zero, %p, %x) {tf = {cond = #dfg.func<@below_two, {}>, body = #dfg.func<@maybe, {}>}} : (tensor<i32>, tensor<i1>, tensor<2xf32>) -> (tensor<i32>, tensor<i1>, tensor<2xf32>) loc("while")
  %loss = dfg.identity %w#2 : (tensor<2xf32>) -> tensor<2xf32> loc("loss")
}
