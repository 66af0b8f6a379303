// RUN: distc-opt %s --dfg-expand-control-flow --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A loop whose counter is compared with a constant is unrolled; the counter is gone.
dfg.func @below_two(%i: tensor<*xi32>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
  %less = dfg.less %i, %two : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @tanh(%i: tensor<*xi32>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %next = dfg.add_v2 %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %y = dfg.tanh %x : (tensor<*xf32>) -> tensor<*xf32> loc("tanh")
  dfg.return %next, %y : tensor<*xi32>, tensor<*xf32>
}
// CHECK-LABEL: dfg.graph
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
  // CHECK: %[[X:.*]] = dfg.placeholder
  // CHECK-NOT: dfg.opaque
  // CHECK: %[[FIRST:.*]] = dfg.tanh %[[X]] : (tensor<?x3xf32>) -> tensor<?x3xf32> loc("while/0/tanh")
  // CHECK-NOT: dfg.less
  // CHECK: %[[SECOND:.*]] = dfg.tanh %[[FIRST]] : {{.*}} loc("while/1/tanh")
  // CHECK: dfg.identity %[[SECOND]] : (tensor<?x3xf32>) -> tensor<?x3xf32> loc("loss")
  %w:2 = dfg.opaque "While"(%zero, %x) {tf = {cond = #dfg.func<@below_two, {}>, body = #dfg.func<@tanh, {}>}} : (tensor<i32>, tensor<?x3xf32>) -> (tensor<i32>, tensor<?x3xf32>) loc("while")
  %loss = dfg.identity %w#1 : (tensor<?x3xf32>) -> tensor<?x3xf32> loc("loss")
}

// -----

// A loop that data end runs to its bound, on the values it would have; what it gives is selected from where it ended.
dfg.func @bounded(%i: tensor<*xi32>, %x: tensor<*xf32>, %n: tensor<*xi32>) -> tensor<*xi1> {
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
  %less = dfg.less %i, %two : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1> loc("less")
  %wanted = dfg.less %i, %n : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1> loc("wanted")
  %both = dfg.logical_and %less, %wanted : (tensor<*xi1>, tensor<*xi1>) -> tensor<*xi1> loc("both")
  dfg.return %both : tensor<*xi1>
}
dfg.func @tanh(%i: tensor<*xi32>, %x: tensor<*xf32>, %n: tensor<*xi32>) -> (tensor<*xi32>, tensor<*xf32>, tensor<*xi32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %next = dfg.add_v2 %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %y = dfg.tanh %x : (tensor<*xf32>) -> tensor<*xf32> loc("tanh")
  dfg.return %next, %y, %n : tensor<*xi32>, tensor<*xf32>, tensor<*xi32>
}
// CHECK-LABEL: dfg.graph
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
  %n = dfg.placeholder : () -> tensor<i32> loc("n")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
  // CHECK: %[[X:.*]] = dfg.placeholder : () -> tensor<?x3xf32>
  // CHECK: %[[RUNS0:.*]] = dfg.logical_and {{.*}} loc("while/0/condition/both")
  // CHECK: %[[T0:.*]] = dfg.tanh %[[X]]
  // CHECK: %[[R0:.*]] = dfg.select_v2 %[[RUNS0]], %[[T0]], %[[X]]
  // CHECK: %[[RUNS1:.*]] = dfg.logical_and %[[RUNS0]], {{.*}} loc("while/1/goes_on")
  // CHECK: %[[T1:.*]] = dfg.tanh %[[T0]]
  // CHECK: %[[R1:.*]] = dfg.select_v2 %[[RUNS1]], %[[T1]], %[[R0]]
  // CHECK-NOT: dfg.tanh
  // CHECK: dfg.identity %[[R1]]
  %w:3 = dfg.opaque "While"(%zero, %x, %n) {tf = {cond = #dfg.func<@bounded, {}>, body = #dfg.func<@tanh, {}>}} : (tensor<i32>, tensor<?x3xf32>, tensor<i32>) -> (tensor<i32>, tensor<?x3xf32>, tensor<i32>) loc("while")
  %loss = dfg.identity %w#1 : (tensor<?x3xf32>) -> tensor<?x3xf32> loc("loss")
}

// -----

// A predicate that depends on data: both branches run, results and what is assigned are selected.
dfg.variable @v : tensor<f32>
dfg.func @assign(%x: tensor<*xf32>, %handle: tensor<*x!dfg.resource>) -> tensor<*xf32> attributes {control = ["set"]} {
  %y = dfg.tanh %x : (tensor<*xf32>) -> tensor<*xf32> loc("tanh")
  dfg.assign %handle, %y : (tensor<*x!dfg.resource>, tensor<*xf32>) -> () loc("set")
  dfg.return %y : tensor<*xf32>
}
dfg.func @keep(%x: tensor<*xf32>, %handle: tensor<*x!dfg.resource>) -> tensor<*xf32> {
  dfg.return %x : tensor<*xf32>
}
// CHECK-LABEL: dfg.graph
dfg.graph attributes {loss = "loss"} {
  %v = dfg.var_handle @v : !dfg.ref<tensor<f32>> loc("v")
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  // CHECK: %[[V:.*]] = dfg.var_handle
  // CHECK: %[[P:.*]] = dfg.placeholder : () -> tensor<i1>
  // CHECK: %[[X:.*]] = dfg.placeholder : () -> tensor<f32>
  // CHECK: %[[Y:.*]] = dfg.tanh %[[X]]
  // CHECK: %[[OLD:.*]] = dfg.read_variable %[[V]]
  // CHECK: %[[NEW:.*]] = dfg.select_v2 %[[P]], %[[Y]], %[[OLD]]
  // CHECK: dfg.assign %[[V]], %[[NEW]]
  // CHECK: %[[R:.*]] = dfg.select_v2 %[[P]], %[[Y]], %[[X]]
  // Whoever takes the result waits for the assignment.
  // CHECK: dfg.identity %[[R]] {control = ["cond/then/set"]}
  %r = dfg.opaque "If"(%p, %x, %v) {tf = {then_branch = #dfg.func<@assign, {}>, else_branch = #dfg.func<@keep, {}>}} : (tensor<i1>, tensor<f32>, !dfg.ref<tensor<f32>>) -> tensor<f32> loc("cond")
  %loss = dfg.identity %r : (tensor<f32>) -> tensor<f32> loc("loss")
}

// -----

// Lists are their elements. One that was never written is zeros.
// CHECK-LABEL: dfg.graph
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<2xf32> loc("x")
  %shape = dfg.const dense<[2]> : tensor<1xi32> : tensor<1xi32>
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  // CHECK: %[[X:.*]] = dfg.placeholder
  // CHECK: %[[ZEROS:.*]] = dfg.zeros_like %[[X]]
  // CHECK: %[[ALL:.*]] = dfg.pack %[[ZEROS]], %[[X]] {{.*}} -> tensor<2x2xf32>
  // CHECK: dfg.identity %[[ALL]]
  %list = dfg.opaque "TensorListReserve"(%shape, %two) {tf = {element_dtype = f32}} : (tensor<1xi32>, tensor<i32>) -> tensor<!dfg.variant> loc("reserve")
  %written = dfg.opaque "TensorListSetItem"(%list, %one, %x) {tf = {element_dtype = f32}} : (tensor<!dfg.variant>, tensor<i32>, tensor<2xf32>) -> tensor<!dfg.variant> loc("set")
  %all = dfg.opaque "TensorListStack"(%written, %shape) {tf = {element_dtype = f32}} : (tensor<!dfg.variant>, tensor<1xi32>) -> tensor<?x2xf32> loc("stack")
  %loss = dfg.identity %all : (tensor<?x2xf32>) -> tensor<?x2xf32> loc("loss")
}

// -----

// What no endpoint needs stays as it is, or goes with what it hangs on.
// CHECK-LABEL: dfg.graph
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %y:2 = dfg.opaque "IdentityN"(%x, %x) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>) loc("both")
  // CHECK: dfg.opaque "Unknown"(%{{.*}}) : (tensor<f32>)
  %u = dfg.opaque "Unknown"(%y#0) : (tensor<f32>) -> tensor<f32> loc("unknown")
  // CHECK: dfg.identity
  %loss = dfg.identity %y#1 : (tensor<f32>) -> tensor<f32> loc("loss")
}

// -----

// Switch and Merge of version 1: a branch whose predicate is known to be false is gone; else the Merge selects.
// CHECK-LABEL: dfg.graph
dfg.graph attributes {loss = "loss", fetches = ["merge:0"]} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %yes = dfg.const dense<true> : tensor<i1> : tensor<i1>
  %s:2 = dfg.opaque "Switch"(%x, %p) : (tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("switch")
  %a = dfg.tanh %s#0 : (tensor<f32>) -> tensor<f32> loc("tanh")
  %b = dfg.square %s#1 : (tensor<f32>) -> tensor<f32> loc("square")
  %m:2 = dfg.opaque "Merge"(%a, %b) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<i32>) loc("merge")
  %t:2 = dfg.opaque "Switch"(%x, %yes) : (tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("switch_1")
  %c = dfg.exp %t#0 : (tensor<f32>) -> tensor<f32> loc("exp")
  %d = dfg.neg %t#1 : (tensor<f32>) -> tensor<f32> loc("neg")
  %k:2 = dfg.opaque "Merge"(%c, %d) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<i32>) loc("merge_1")
  // CHECK-DAG: %[[X:.*]] = dfg.placeholder : () -> tensor<f32>
  // CHECK-DAG: %[[P:.*]] = dfg.placeholder : () -> tensor<i1>
  // CHECK: %[[A:.*]] = dfg.tanh %[[X]]
  // CHECK: %[[B:.*]] = dfg.square %[[X]]
  // CHECK: %[[M:.*]] = dfg.select_v2 %[[P]], %[[B]], %[[A]]
  // CHECK-NOT: dfg.exp
  // CHECK: %[[D:.*]] = dfg.neg %[[X]]
  // CHECK: dfg.identity %[[D]] {{.*}} loc("loss")
  // CHECK: dfg.identity %[[M]] {{.*}} loc("merge")
  %loss = dfg.identity %k#0 : (tensor<f32>) -> tensor<f32> loc("loss")
}

// -----

// An operation without semantics that is stateless may run where its branch is not taken, as others do.
// CHECK-LABEL: dfg.graph
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<4xcomplex<f32>> loc("x")
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %s:2 = dfg.opaque "Switch"(%x, %p) : (tensor<4xcomplex<f32>>, tensor<i1>) -> (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) loc("switch")
  %a = dfg.opaque "FFT"(%s#0) {stateless} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> loc("fft")
  %b = dfg.opaque "IFFT"(%s#1) {stateless} : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> loc("ifft")
  %m:2 = dfg.opaque "Merge"(%a, %b) : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> (tensor<4xcomplex<f32>>, tensor<i32>) loc("merge")
  // CHECK-DAG: %[[X:.*]] = dfg.placeholder : () -> tensor<4xcomplex<f32>>
  // CHECK-DAG: %[[P:.*]] = dfg.placeholder : () -> tensor<i1>
  // CHECK: %[[A:.*]] = dfg.opaque "FFT"(%[[X]]) {stateless}
  // CHECK: %[[B:.*]] = dfg.opaque "IFFT"(%[[X]]) {stateless}
  // CHECK: dfg.select_v2 %[[P]], %[[B]], %[[A]]
  %loss = dfg.identity %m#0 : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> loc("loss")
}

// -----

// Zeros like one of two optionals: what its gradient adds to them is the gradient.
// CHECK-LABEL: dfg.graph attributes {loss = "optionals"
// CHECK: %[[X:.*]] = dfg.placeholder : () -> tensor<3xf32>
// CHECK-NEXT: %[[G:.*]] = dfg.mul %[[X]], %[[X]] {{.*}}loc("grad/then/gradient")
// CHECK-NEXT: dfg.select_v2 %{{.*}}, %[[G]], %[[X]]
dfg.graph attributes {loss = "optionals"} {
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %x = dfg.placeholder : () -> tensor<3xf32> loc("x")
  %optional = dfg.opaque "If"(%p, %x) {tf = {Tcond = i1, Tin = [f32], Tout = [!dfg.variant], then_branch = #dfg.func<@wrap, {}>, else_branch = #dfg.func<@wrap_square, {}>}} : (tensor<i1>, tensor<3xf32>) -> tensor<!dfg.variant> loc("cond")
  %zeros = dfg.zeros_like %optional : (tensor<!dfg.variant>) -> tensor<!dfg.variant> loc("zeros")
  %grad = dfg.opaque "If"(%p, %x, %zeros) {tf = {Tcond = i1, Tin = [f32, !dfg.variant], Tout = [f32], then_branch = #dfg.func<@grad, {}>, else_branch = #dfg.func<@other, {}>}} : (tensor<i1>, tensor<3xf32>, tensor<!dfg.variant>) -> tensor<3xf32> loc("grad")
  %loss = dfg.identity %grad : (tensor<3xf32>) -> tensor<3xf32> loc("optionals")
}
dfg.func @wrap(%x: tensor<3xf32>) -> tensor<!dfg.variant> {
  %optional = dfg.opaque "OptionalFromValue"(%x) {tf = {Toutput_types = [f32]}} : (tensor<3xf32>) -> tensor<!dfg.variant> loc("optional")
  dfg.return %optional : tensor<!dfg.variant>
}
dfg.func @wrap_square(%x: tensor<3xf32>) -> tensor<!dfg.variant> {
  %square = dfg.square %x : (tensor<3xf32>) -> tensor<3xf32> loc("square")
  %optional = dfg.opaque "OptionalFromValue"(%square) {tf = {Toutput_types = [f32]}} : (tensor<3xf32>) -> tensor<!dfg.variant> loc("optional")
  dfg.return %optional : tensor<!dfg.variant>
}
dfg.func @grad(%x: tensor<3xf32>, %zeros: tensor<!dfg.variant>) -> tensor<3xf32> {
  %value = dfg.opaque "OptionalGetValue"(%zeros) {tf = {output_types = [f32]}} : (tensor<!dfg.variant>) -> tensor<3xf32> loc("value")
  %gradient = dfg.mul %x, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32> loc("gradient")
  %sum = dfg.add_n %value, %gradient : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32> loc("sum")
  dfg.return %sum : tensor<3xf32>
}
dfg.func @other(%x: tensor<3xf32>, %zeros: tensor<!dfg.variant>) -> tensor<3xf32> {
  dfg.return %x : tensor<3xf32>
}

// -----

// Both branches run, but an index or a divisor ends the program only where its branch is chosen.
dfg.func @chosen(%i: tensor<*xi32>, %x: tensor<*xf32>, %n: tensor<*xi32>) -> tensor<*xf32> {
  %q = dfg.floor_div %i, %n : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi32> loc("quotient")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
  %row = dfg.gather_v2 %x, %q, %axis : (tensor<*xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("row")
  dfg.return %row : tensor<*xf32>
}
dfg.func @otherwise(%i: tensor<*xi32>, %x: tensor<*xf32>, %n: tensor<*xi32>) -> tensor<*xf32> {
  %none = dfg.const dense<0.0> : tensor<f32> : tensor<f32>
  dfg.return %none : tensor<f32>
}
// CHECK-LABEL: dfg.graph
dfg.graph attributes {loss = "loss"} {
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %n = dfg.placeholder : () -> tensor<i32> loc("n")
  %i = dfg.placeholder : () -> tensor<i32> loc("i")
  %x = dfg.placeholder : () -> tensor<4xf32> loc("x")
  // CHECK-DAG: %[[P:.*]] = dfg.placeholder {{.*}} loc("p")
  // CHECK-DAG: %[[N:.*]] = dfg.placeholder {{.*}} loc("n")
  // CHECK-DAG: %[[ONE:.*]] = dfg.const dense<1>
  // CHECK: %[[DIVISOR:.*]] = dfg.select_v2 %[[P]], %[[N]], %[[ONE]]
  // CHECK: %[[QUOTIENT:.*]] = dfg.floor_div %{{.*}}, %[[DIVISOR]]
  // CHECK: %[[INDEX:.*]] = dfg.select_v2 %[[P]], %[[QUOTIENT]], %{{.*}}
  // CHECK: dfg.gather_v2 %{{.*}}, %[[INDEX]],
  %r = dfg.opaque "If"(%p, %i, %x, %n) {tf = {then_branch = #dfg.func<@chosen, {}>, else_branch = #dfg.func<@otherwise, {}>}} : (tensor<i1>, tensor<i32>, tensor<4xf32>, tensor<i32>) -> tensor<f32> loc("if")
  %loss = dfg.identity %r : (tensor<f32>) -> tensor<f32> loc("loss")
}

// -----

// Who only waits for a Merge waits for what its branches did, though both give the same; and who waits for something that is made
// of a node behind an update waits for the update, also where nothing else needs what lies between.
dfg.variable @v : tensor<f32>
dfg.variable @w : tensor<f32>
dfg.func @counts(%v: tensor<*x!dfg.resource>, %one: tensor<*xf32>) -> tensor<*xf32> {
  dfg.assign_add %v, %one : (tensor<*x!dfg.resource>, tensor<*xf32>) -> () loc("add")
  %new = dfg.read_variable %v {control = ["add"]} : (tensor<*x!dfg.resource>) -> tensor<*xf32> loc("new")
  dfg.return %new : tensor<*xf32>
}
// CHECK-LABEL: dfg.graph
dfg.graph attributes {train_op = "train"} {
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
  %two = dfg.const dense<2.0> : tensor<f32> : tensor<f32> loc("two")
  %v = dfg.var_handle @v : !dfg.ref<tensor<f32>> loc("v")
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %s:2 = dfg.opaque "Switch"(%one, %p) : (tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("switch")
  %t:2 = dfg.opaque "Switch"(%two, %p) : (tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("switch_1")
  // CHECK: dfg.assign %{{.*}} loc("assign")
  // CHECK: dfg.const {{.*}} {control = ["assign"]} loc("done")
  dfg.assign %v, %s#1 : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("assign")
  %done = dfg.const dense<0.0> : tensor<f32> {control = ["assign"]} : tensor<f32> loc("done")
  // CHECK: dfg.assign %{{.*}} loc("assign_1")
  // CHECK: dfg.const {{.*}} {control = ["assign_1"]} loc("done_1")
  dfg.assign %v, %t#0 : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("assign_1")
  %done_1 = dfg.const dense<0.0> : tensor<f32> {control = ["assign_1"]} : tensor<f32> loc("done_1")
  %m:2 = dfg.opaque "Merge"(%done_1, %done) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<i32>) loc("merge")
  // CHECK: dfg.assign_add {{.*}} loc("call/add")
  %c = dfg.opaque "StatefulPartitionedCall"(%w, %one) {tf = {f = #dfg.func<@counts, {}>}} : (!dfg.ref<tensor<f32>>, tensor<f32>) -> tensor<f32> loc("call")
  // CHECK: dfg.group {control = ["done_1", "done", "call/add"]} : () -> () loc("train")
  dfg.group {control = ["merge", "call"]} : () -> () loc("train")
}

// -----

// An Identity of a reference variable in a loop is what the variable holds in that iteration, also where nothing but an assignment takes it.
dfg.variable @u : tensor<f32> {kind = "ref"}
dfg.variable @v : tensor<f32> {kind = "ref"}
dfg.func @once(%i: tensor<*xi32>, %u: !dfg.ref<tensor<f32>>, %v: !dfg.ref<tensor<f32>>) -> tensor<*xi1> {
  %two = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %less = dfg.less %i, %two : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @copies(%i: tensor<*xi32>, %u: !dfg.ref<tensor<f32>>, %v: !dfg.ref<tensor<f32>>) -> (tensor<*xi32>, !dfg.ref<tensor<f32>>, !dfg.ref<tensor<f32>>) {
  %read = dfg.identity %u : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("read")
  %assign = dfg.assign %v, %read : (!dfg.ref<tensor<f32>>, tensor<f32>) -> tensor<f32> loc("assign")
  %one = dfg.const dense<1> : tensor<i32> {control = ["assign"]} : tensor<i32> loc("one")
  %next = dfg.add_v2 %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  dfg.return %next, %u, %v : tensor<*xi32>, !dfg.ref<tensor<f32>>, !dfg.ref<tensor<f32>>
}
// CHECK-LABEL: dfg.graph
dfg.graph attributes {train_op = "train"} {
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
  %u = dfg.var_handle @u : !dfg.ref<tensor<f32>> loc("u")
  %v = dfg.var_handle @v : !dfg.ref<tensor<f32>> loc("v")
  // CHECK: %[[READ:.*]] = dfg.read_variable %{{.*}} loc("loop/0/read/reference")
  // CHECK: %[[COPY:.*]] = dfg.identity %[[READ]]
  // CHECK: dfg.assign %{{.*}}, %[[COPY]] {{.*}} loc("loop/0/assign")
  %w:3 = dfg.opaque "While"(%zero, %u, %v) {tf = {cond = #dfg.func<@once, {}>, body = #dfg.func<@copies, {}>}} : (tensor<i32>, !dfg.ref<tensor<f32>>, !dfg.ref<tensor<f32>>) -> (tensor<i32>, !dfg.ref<tensor<f32>>, !dfg.ref<tensor<f32>>) loc("loop")
  dfg.group {control = ["loop"]} : () -> () loc("train")
}

// -----

// A condition in a branch of another that gives nothing but that it has run: its result is its predicate, which is there before the
// assignment; who waits for the outer one waits for both.
dfg.variable @v : tensor<f32>
// CHECK-LABEL: dfg.graph
dfg.graph attributes {train_op = "train"} {
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %q = dfg.placeholder : () -> tensor<i1> loc("q")
  %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
  %v = dfg.var_handle @v : !dfg.ref<tensor<f32>> loc("v")
  %outer:2 = dfg.opaque "Switch"(%p, %p) : (tensor<i1>, tensor<i1>) -> (tensor<i1>, tensor<i1>) loc("outer")
  %s:2 = dfg.opaque "Switch"(%one, %p) : (tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("switch")
  %r:2 = dfg.opaque "Switch"(%q, %p) : (tensor<i1>, tensor<i1>) -> (tensor<i1>, tensor<i1>) loc("q_switch")
  %inner:2 = dfg.opaque "Switch"(%r#1, %r#1) : (tensor<i1>, tensor<i1>) -> (tensor<i1>, tensor<i1>) loc("inner")
  %t:2 = dfg.opaque "Switch"(%s#1, %r#1) : (tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("switch_1")
  // CHECK: dfg.assign %{{.*}} loc("assign")
  dfg.assign %v, %t#1 : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("assign")
  // CHECK: dfg.identity %{{.*}} {control = ["assign"]} {{.*}} loc("done")
  %done = dfg.identity %inner#1 {control = ["assign"]} : (tensor<i1>) -> tensor<i1> loc("done")
  %else = dfg.identity %inner#0 : (tensor<i1>) -> tensor<i1> loc("else")
  %m:2 = dfg.opaque "Merge"(%else, %done) : (tensor<i1>, tensor<i1>) -> (tensor<i1>, tensor<i32>) loc("merge")
  %other = dfg.identity %outer#0 : (tensor<i1>) -> tensor<i1> loc("other")
  %n:2 = dfg.opaque "Merge"(%other, %m#0) : (tensor<i1>, tensor<i1>) -> (tensor<i1>, tensor<i32>) loc("merge_1")
  // CHECK: dfg.group {control = ["done"]} : () -> () loc("train")
  dfg.group {control = ["merge_1"]} : () -> () loc("train")
}

// -----

// Who takes what a loop gives waits for all that the loop waits for: also for what comes before a counter whose values are known.
// CHECK-LABEL: dfg.variable @before
dfg.func @below_two(%i: tensor<i32>, %x: tensor<3xf32>) -> tensor<i1> {
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
  %less = dfg.less %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
  dfg.return %less : tensor<i1>
}
dfg.func @tanh(%i: tensor<i32>, %x: tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %next = dfg.add_v2 %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %y = dfg.tanh %x : (tensor<3xf32>) -> tensor<3xf32>
  dfg.return %next, %y : tensor<i32>, tensor<3xf32>
}
dfg.variable @before : tensor<3xf32>
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<3xf32> loc("x")
  %before = dfg.var_handle @before : !dfg.ref<tensor<3xf32>> loc("before")
  // CHECK: dfg.assign %{{.*}} loc("update")
  dfg.assign %before, %x : (!dfg.ref<tensor<3xf32>>, tensor<3xf32>) -> () loc("update")
  // CHECK: dfg.const dense<0> : tensor<i32> {control = ["update"]} loc("zero")
  %zero = dfg.const dense<0> : tensor<i32> {control = ["update"]} : tensor<i32> loc("zero")
  // CHECK: dfg.identity {{.*}} {control = ["zero"]} {{.*}} loc("while/output_1")
  %w:2 = dfg.opaque "While"(%zero, %x) {tf = {cond = #dfg.func<@below_two, {}>, body = #dfg.func<@tanh, {}>}} : (tensor<i32>, tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>) loc("while")
  %loss = dfg.identity %w#1 : (tensor<3xf32>) -> tensor<3xf32> loc("loss")
}

// -----

// A reference that came through a Switch is read when its reader runs: behind the update that it waits for.
// CHECK-LABEL: dfg.variable @kept :
dfg.variable @kept : tensor<f32> {kind = "ref"}
dfg.graph attributes {loss = "loss", train_op = "train"} {
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  // CHECK: %[[KEPT:.*]] = dfg.var_handle @kept
  %r = dfg.var_handle @kept : !dfg.ref<tensor<f32>> loc("kept")
  %s:2 = dfg.opaque "RefSwitch"(%r, %p) : (!dfg.ref<tensor<f32>>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("switch")
  // CHECK: dfg.assign %[[KEPT]], %{{.*}} loc("update/assign")
  // CHECK: %[[VALUE:.*]] = dfg.read_variable %[[KEPT]] {control = ["update/assign", "update"]} {{.*}} loc("read/reference")
  // CHECK: %[[READ:.*]] = dfg.identity %[[VALUE]]
  // CHECK: dfg.add_v2 %[[READ]],
  %update = dfg.opaque "AssignAdd"(%s#1, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("update")
  %read = dfg.identity %s#1 {control = ["update"]} : (tensor<f32>) -> tensor<f32> loc("read")
  %sum = dfg.add_v2 %read, %x : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("sum")
  %t:2 = dfg.opaque "Switch"(%x, %p) : (tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("switch_1")
  %m:2 = dfg.opaque "Merge"(%t#0, %sum) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<i32>) loc("merge")
  %loss = dfg.identity %m#0 : (tensor<f32>) -> tensor<f32> loc("loss")
  dfg.group {control = ["loss"]} : () -> () loc("train")
}

// -----

// An array that may grow has an element where one is written. An update whose reference came through a Switch is one; who takes its
// value takes what the variable is afterwards.
// CHECK-LABEL: dfg.variable @r :
dfg.variable @r : tensor<f32>
dfg.graph attributes {loss = "loss"} {
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %none = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("none")
  // CHECK: %[[P:.*]] = dfg.placeholder : () -> tensor<i1>
  // CHECK: %[[X:.*]] = dfg.placeholder : () -> tensor<f32>
  // CHECK: %[[R:.*]] = dfg.var_handle @r
  %r = dfg.var_handle @r : !dfg.ref<tensor<f32>> loc("r")
  %s:2 = dfg.opaque "RefSwitch"(%r, %p) : (!dfg.ref<tensor<f32>>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("switch")
  %array:2 = dfg.opaque "TensorArrayV3"(%none) {tf = {dtype = f32, dynamic_size = true}} : (tensor<i32>) -> (tensor<*x!dfg.resource>, tensor<f32>) loc("array")
  %flow = dfg.opaque "TensorArrayWriteV3"(%array#0, %none, %x, %array#1) : (tensor<*x!dfg.resource>, tensor<i32>, tensor<f32>, tensor<f32>) -> tensor<f32> loc("write")
  %y = dfg.opaque "TensorArrayReadV3"(%array#0, %none, %flow) {tf = {dtype = f32}} : (tensor<*x!dfg.resource>, tensor<i32>, tensor<f32>) -> tensor<f32> loc("read")
  // CHECK: %[[OLD:.*]] = dfg.read_variable %[[R]]
  // CHECK: dfg.assign_add %[[R]], %[[X]] {{.*}} loc("add")
  // CHECK: %[[NEW:.*]] = dfg.read_variable %[[R]]
  // CHECK: %[[CHOSEN:.*]] = dfg.select_v2 %[[P]], %[[NEW]], %[[OLD]]
  // CHECK: dfg.assign %[[R]], %[[CHOSEN]] {{.*}} loc("add/assign")
  // CHECK: %[[BEHIND:.*]] = dfg.identity %[[CHOSEN]] {control = ["add/assign"]}
  // CHECK: dfg.select_v2 %[[P]], %[[BEHIND]], %[[X]]
  %added = dfg.opaque "AssignAdd"(%s#1, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("add")
  %t:2 = dfg.opaque "Switch"(%y, %p) : (tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("switch_1")
  %m:2 = dfg.opaque "Merge"(%t#0, %added) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<i32>) loc("merge")
  %loss = dfg.identity %m#0 : (tensor<f32>) -> tensor<f32> loc("loss")
}

// -----

// A run's scalars are the same in all of its steps: what is drawn under them goes on with each, or is never taken.
dfg.func @draw(%x: tensor<*xf32>) -> tensor<*xf32> {
  %shape = dfg.const dense<[2]> : tensor<1xi32> : tensor<1xi32>
  %y = dfg.random_uniform %shape {seed = 1 : i64} : (tensor<1xi32>) -> tensor<2xf32> loc("draw")
  dfg.return %y : tensor<2xf32>
}
dfg.func @keep(%x: tensor<*xf32>) -> tensor<*xf32> {
  dfg.return %x : tensor<*xf32>
}
// CHECK-LABEL: dfg.func @keep(
// CHECK: %[[DRAWN:.*]] = dfg.random_uniform {{.*}} loc("cond/then/draw")
// CHECK: dfg.select_v2 %{{.*}}, %[[DRAWN]]
dfg.graph attributes {loss = "cond"} {
  %x = dfg.placeholder : () -> tensor<2xf32> loc("x")
  %yes = dfg.const dense<true> : tensor<i1> : tensor<i1> loc("yes")
  %p = dfg.placeholder_with_default %yes : (tensor<i1>) -> tensor<i1> loc("training")
  %r = dfg.opaque "If"(%p, %x) {tf = {then_branch = #dfg.func<@draw, {}>, else_branch = #dfg.func<@keep, {}>}} : (tensor<i1>, tensor<2xf32>) -> tensor<2xf32> loc("cond")
}

// -----

// A node with a seed in a loop is one an iteration, all of one generator, one behind the other.
dfg.func @below_two_of(%i: tensor<i32>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
  %less = dfg.less %i, %two : (tensor<i32>, tensor<i32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @add_noise(%i: tensor<i32>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %next = dfg.add_v2 %i, %one : (tensor<i32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %shape = dfg.const dense<[2]> : tensor<1xi32> : tensor<1xi32>
  %y = dfg.random_uniform %shape {seed = 1 : i64} : (tensor<1xi32>) -> tensor<2xf32> loc("draw")
  %noisy = dfg.add_v2 %x, %y : (tensor<*xf32>, tensor<2xf32>) -> tensor<*xf32> loc("noisy")
  dfg.return %next, %noisy : tensor<*xi32>, tensor<*xf32>
}
// CHECK-LABEL: dfg.func @add_noise(
// CHECK: dfg.random_uniform {{.*}} {generator = "while/add_noise/draw", seed = 1 : i64} {{.*}} loc("while/0/draw")
// CHECK: dfg.random_uniform {{.*}} {control = ["while/0/draw"], generator = "while/add_noise/draw", seed = 1 : i64} {{.*}} loc("while/1/draw")
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<2xf32> loc("x")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %w:2 = dfg.opaque "While"(%zero, %x) {tf = {cond = #dfg.func<@below_two_of, {}>, body = #dfg.func<@add_noise, {}>}} : (tensor<i32>, tensor<2xf32>) -> (tensor<i32>, tensor<2xf32>) loc("while")
  %loss = dfg.identity %w#1 : (tensor<2xf32>) -> tensor<2xf32> loc("loss")
}

// -----

// tf.cond's pivots hang on a Switch by the predicate, its values on Switches by an Identity of it: both tell the same branches apart.
// CHECK-LABEL: dfg.graph attributes {loss = "merge"}
dfg.graph attributes {loss = "merge"} {
  // CHECK-DAG: %[[X:.*]] = dfg.placeholder : () -> tensor<f32>
  // CHECK-DAG: %[[P:.*]] = dfg.placeholder : () -> tensor<i1>
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %id = dfg.identity %p : (tensor<i1>) -> tensor<i1> loc("pred_id")
  %pivot:2 = dfg.opaque "Switch"(%p, %p) : (tensor<i1>, tensor<i1>) -> (tensor<i1>, tensor<i1>) loc("switch")
  %pivot_f = dfg.identity %pivot#0 : (tensor<i1>) -> tensor<i1> loc("switch_f")
  %zero = dfg.const dense<0.0> : tensor<f32> {control = ["switch_f"]} : tensor<f32> loc("zero")
  %value:2 = dfg.opaque "Switch"(%x, %id) : (tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("value")
  // CHECK: %[[SQUARE:.*]] = dfg.square %[[X]]
  // CHECK: dfg.select_v2 %[[P]], %[[SQUARE]], %
  %square = dfg.square %value#1 : (tensor<f32>) -> tensor<f32> loc("square")
  %m:2 = dfg.opaque "Merge"(%zero, %square) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<i32>) loc("merge")
}

// -----

// Data alone decide when it ends, and each iteration takes the next of three elements: there are three iterations at most, and
// one that would go on ends the program, as there is no fourth element.
dfg.func @there_are_more(%t: tensor<*xi32>, %limit: tensor<*xi32>, %sum: tensor<*xf32>, %x: tensor<*xf32>) -> tensor<*xi1> {
  %less = dfg.less %t, %limit : (tensor<*xi32>, tensor<*xi32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @add_next(%t: tensor<*xi32>, %limit: tensor<*xi32>, %sum: tensor<*xf32>, %x: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %next = dfg.add_v2 %t, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %element = dfg.gather_v2 %x, %t, %axis : (tensor<*xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("element")
  %added = dfg.add_v2 %sum, %element : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("added")
  dfg.return %next, %limit, %added, %x : tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>
}
// CHECK-LABEL: dfg.graph attributes {loss = "end"
dfg.graph attributes {loss = "end"} {
  %x = dfg.placeholder : () -> tensor<3xf32> loc("x")
  %limit = dfg.placeholder : () -> tensor<i32> loc("limit")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %start = dfg.const dense<0.0> : tensor<f32> : tensor<f32> loc("start")
  // CHECK-COUNT-3: dfg.gather_v2
  // CHECK-NOT: dfg.gather_v2
  // CHECK: %[[GOES_ON:.*]] = dfg.logical_and {{.*}} loc("while/3/goes_on")
  // CHECK: %[[ENDED:.*]] = dfg.logical_not
  // CHECK: %[[MESSAGE:.*]] = dfg.const dense<"loop 'while' goes on behind the last of the elements that it takes one of in each iteration">
  // CHECK: dfg.assert %[[ENDED]], %[[MESSAGE]] {{.*}} loc("while/ends")
  %while:4 = dfg.opaque "While"(%zero, %limit, %start, %x) {tf = {T = [i32, i32, f32, f32], cond = #dfg.func<@there_are_more, {}>, body = #dfg.func<@add_next, {}>}} : (tensor<i32>, tensor<i32>, tensor<f32>, tensor<3xf32>) -> (tensor<*xi32>, tensor<*xi32>, tensor<*xf32>, tensor<*xf32>) loc("while")
  // CHECK: dfg.identity {{.*}}control = ["while/ends"]
  %end = dfg.identity %while#2 : (tensor<*xf32>) -> tensor<*xf32> loc("end")
}

// -----

// Quotients of rows by a tensor without a 0 or a NaN are those of the rows; that it has none is asserted, since with one data say how many others there are.
dfg.func @with_others(%rows: tensor<?xf32>, %none: tensor<4xi1>) -> tensor<?xf32> {
  %at = dfg.opaque "Where"(%none) : (tensor<4xi1>) -> tensor<?x1xi64> loc("where")
  %others = dfg.cast %at : (tensor<?x1xi64>) -> tensor<?x1xf32> loc("others")
  %shape = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32> loc("shape")
  %flat = dfg.reshape %others, %shape : (tensor<?x1xf32>, tensor<1xi32>) -> tensor<?xf32> loc("flat")
  dfg.return %flat : tensor<?xf32>
}
dfg.func @alone(%rows: tensor<?xf32>, %none: tensor<4xi1>) -> tensor<?xf32> {
  %quotients = dfg.neg %rows : (tensor<?xf32>) -> tensor<?xf32> loc("quotients")
  dfg.return %quotients : tensor<?xf32>
}
// CHECK-LABEL: dfg.graph
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
  %by = dfg.placeholder : () -> tensor<4xf32> loc("by")
  %zero = dfg.const dense<0.0> : tensor<f32> : tensor<f32> loc("zero")
  %axes = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("axes")
  %equal = dfg.equal %by, %zero : (tensor<4xf32>, tensor<f32>) -> tensor<4xi1> loc("equal")
  %nan = dfg.is_nan %by : (tensor<4xf32>) -> tensor<4xi1> loc("nan")
  %none = dfg.logical_or %equal, %nan : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1> loc("none")
  // CHECK: %[[ANY:.*]] = dfg.any
  %any = dfg.any %none, %axes : (tensor<4xi1>, tensor<1xi32>) -> tensor<i1> loc("any")
  // CHECK: %[[NOT:.*]] = dfg.logical_not %[[ANY]]
  // CHECK: dfg.assert %[[NOT]]
  // CHECK-NOT: Where
  // CHECK: %[[QUOTIENTS:.*]] = dfg.neg {{.*}} loc("if/quotients")
  %if = dfg.opaque "If"(%any, %x, %none) {tf = {then_branch = #dfg.func<@with_others, {}>, else_branch = #dfg.func<@alone, {}>}} : (tensor<i1>, tensor<?xf32>, tensor<4xi1>) -> tensor<?xf32> loc("if")
  // CHECK: dfg.identity %[[QUOTIENTS]]
  %loss = dfg.identity %if : (tensor<?xf32>) -> tensor<?xf32> loc("loss")
}

// -----

// All examples end in the same iteration: predicates of each example are known to be alike, whatever the batch's size.
dfg.func @some_go_on(%k: tensor<*xi32>, %ended: tensor<*xi1>, %h: tensor<*xf32>) -> tensor<*xi1> {
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32>
  %all = dfg.all %ended, %axis {keep_dims = false} : (tensor<*xi1>, tensor<i32>) -> tensor<*xi1> loc("all")
  %not = dfg.logical_not %all : (tensor<*xi1>) -> tensor<*xi1> loc("not")
  dfg.return %not : tensor<*xi1>
}
dfg.func @step(%k: tensor<*xi32>, %ended: tensor<*xi1>, %h: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xi1>, tensor<*xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
  %n = dfg.add_v2 %k, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("count")
  %shape = dfg.shape %h : (tensor<*xf32>) -> tensor<*xi32> loc("shape")
  %over = dfg.greater_equal %n, %two : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1> loc("over")
  %fill = dfg.fill %shape, %over : (tensor<*xi32>, tensor<*xi1>) -> tensor<*xi1> loc("fill")
  %or = dfg.logical_or %fill, %ended : (tensor<*xi1>, tensor<*xi1>) -> tensor<*xi1> loc("or")
  %y = dfg.tanh %h : (tensor<*xf32>) -> tensor<*xf32> loc("tanh")
  dfg.return %n, %or, %y : tensor<*xi32>, tensor<*xi1>, tensor<*xf32>
}
// CHECK-LABEL: dfg.graph attributes {loss = "same_end"}
// CHECK-COUNT-2: dfg.tanh
// CHECK-NOT: dfg.tanh
// CHECK-NOT: dfg.select
dfg.graph attributes {loss = "same_end"} {
  %h = dfg.placeholder : () -> tensor<?xf32> loc("h")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %false = dfg.const dense<false> : tensor<i1> : tensor<i1> loc("false")
  %shape = dfg.shape %h : (tensor<?xf32>) -> tensor<1xi32> loc("shape")
  %none = dfg.fill %shape, %false : (tensor<1xi32>, tensor<i1>) -> tensor<?xi1> loc("none")
  %w:3 = dfg.opaque "While"(%zero, %none, %h) {tf = {cond = #dfg.func<@some_go_on, {}>, body = #dfg.func<@step, {}>}} : (tensor<i32>, tensor<?xi1>, tensor<?xf32>) -> (tensor<i32>, tensor<?xi1>, tensor<?xf32>) loc("while")
  %y = dfg.identity %w#2 : (tensor<?xf32>) -> tensor<?xf32> loc("same_end")
}
