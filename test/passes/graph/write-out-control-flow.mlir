// RUN: distc-opt %s --dfg-write-out-control-flow --split-input-file --mlir-print-debuginfo --mlir-print-local-scope 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// What a branch reads, it reads behind what the condition waits for; each branch's choice goes on from the other's.
dfg.func @copy(%source: tensor<*x!dfg.resource>, %target: tensor<*x!dfg.resource>) -> tensor<i1> {
  %value = dfg.read_variable %source : (tensor<*x!dfg.resource>) -> tensor<*xf32> loc("read")
  dfg.assign %target, %value : (tensor<*x!dfg.resource>, tensor<*xf32>) -> () loc("assign")
  %done = dfg.const dense<true> : tensor<i1> {control = ["assign"]} : tensor<i1> loc("done")
  dfg.return %done : tensor<i1>
}
dfg.func @nothing(%source: tensor<*x!dfg.resource>, %target: tensor<*x!dfg.resource>) -> tensor<i1> {
  %done = dfg.const dense<true> : tensor<i1> : tensor<i1> loc("done")
  dfg.return %done : tensor<i1>
}
dfg.variable @w : tensor<3xf32>
dfg.variable @copy_of_w : tensor<3xf32>
// CHECK-LABEL: dfg.graph
// CHECK: dfg.assign_add {{.*}} loc("update")
// CHECK-NOT: dfg.opaque
// CHECK: %[[VALUE:.*]] = dfg.read_variable {{.*}}control = ["update"{{.*}} loc("cond/then/read")
// CHECK: %[[OLD:.*]] = dfg.read_variable {{.*}}control = ["update"{{.*}} loc("cond/then/assign/old")
// CHECK: %[[CHOSEN:.*]] = dfg.select_v2 %{{.*}}, %[[VALUE]], %[[OLD]]
// CHECK: dfg.assign %{{.*}}, %[[CHOSEN]]
dfg.graph attributes {train_op = "train"} {
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %g = dfg.placeholder : () -> tensor<3xf32> loc("g")
  %w = dfg.var_handle @w : !dfg.ref<tensor<3xf32>> loc("w")
  %t = dfg.var_handle @copy_of_w : !dfg.ref<tensor<3xf32>> loc("copy_of_w")
  dfg.assign_add %w, %g : (!dfg.ref<tensor<3xf32>>, tensor<3xf32>) -> () loc("update")
  %r = dfg.opaque "If"(%p, %w, %t) {control = ["update"], tf = {then_branch = #dfg.func<@copy, {}>, else_branch = #dfg.func<@nothing, {}>}} : (tensor<i1>, !dfg.ref<tensor<3xf32>>, !dfg.ref<tensor<3xf32>>) -> tensor<i1> loc("cond")
  dfg.group {control = ["cond"]} : () -> () loc("train")
}

// -----

// What has no such form stays.
dfg.func @goes_on(%x: tensor<*xf32>) -> tensor<*xi1> {
  %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
  %less = dfg.less %x, %one : (tensor<*xf32>, tensor<f32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @tanh(%x: tensor<*xf32>) -> tensor<*xf32> {
  %y = dfg.tanh %x : (tensor<*xf32>) -> tensor<*xf32> loc("tanh")
  dfg.return %y : tensor<*xf32>
}
// REMARK: remark: {{.*}}conditions and loops are exported as they are, and what they make of the batch counts as made of all of its rows: {{.*}}'while' (op 'While') is a loop that distc knows no bound for
// CHECK-LABEL: dfg.graph
// CHECK: dfg.opaque "While"
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<f32> loc("x")
  %w = dfg.opaque "While"(%x) {tf = {cond = #dfg.func<@goes_on, {}>, body = #dfg.func<@tanh, {}>}} : (tensor<f32>) -> tensor<f32> loc("while")
  %loss = dfg.identity %w : (tensor<f32>) -> tensor<f32> loc("loss")
}

// -----

// A branch of version 1 waits for the predicate.
dfg.variable @w : tensor<3xf32>
dfg.variable @copy_of_w : tensor<3xf32>
// CHECK-LABEL: dfg.graph
// CHECK-NOT: dfg.opaque
// CHECK: %[[P:.*]] = dfg.identity %{{.*}} {control = ["update"]} {{.*}} loc("pred_id")
// CHECK: %[[VALUE:.*]] = dfg.read_variable {{.*}}control = ["pred_id"]{{.*}} loc("read")
// CHECK: %[[OLD:.*]] = dfg.read_variable {{.*}}control = ["pred_id", "read"]{{.*}} loc("assign/old")
// CHECK: %[[CHOSEN:.*]] = dfg.select_v2 %[[P]], %[[VALUE]], %[[OLD]]
// CHECK: dfg.assign %{{.*}}, %[[CHOSEN]] {control = ["pred_id"]}
dfg.graph attributes {train_op = "train"} {
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %g = dfg.placeholder : () -> tensor<3xf32> loc("g")
  %w = dfg.var_handle @w : !dfg.ref<tensor<3xf32>> loc("w")
  %t = dfg.var_handle @copy_of_w : !dfg.ref<tensor<3xf32>> loc("copy_of_w")
  dfg.assign_add %w, %g : (!dfg.ref<tensor<3xf32>>, tensor<3xf32>) -> () loc("update")
  %pred = dfg.identity %p {control = ["update"]} : (tensor<i1>) -> tensor<i1> loc("pred_id")
  %s:2 = dfg.opaque "Switch"(%w, %pred) : (!dfg.ref<tensor<3xf32>>, tensor<i1>) -> (tensor<*x!dfg.resource>, tensor<*x!dfg.resource>) loc("switch")
  %u:2 = dfg.opaque "Switch"(%t, %pred) : (!dfg.ref<tensor<3xf32>>, tensor<i1>) -> (tensor<*x!dfg.resource>, tensor<*x!dfg.resource>) loc("switch_1")
  %value = dfg.read_variable %s#1 : (tensor<*x!dfg.resource>) -> tensor<3xf32> loc("read")
  dfg.assign %u#1, %value : (tensor<*x!dfg.resource>, tensor<3xf32>) -> () loc("assign")
  dfg.group {control = ["assign"]} : () -> () loc("train")
}

// -----

// What is added under a condition is nothing where that does not hold; an optimizer's update is what its rule says, the variable's last.
dfg.func @train(%w: tensor<*x!dfg.resource>, %m: tensor<*x!dfg.resource>, %n: tensor<*x!dfg.resource>, %g: tensor<*xf32>) -> tensor<i1> {
  %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
  dfg.apply_momentum %w, %m, %lr, %g, %lr : (tensor<*x!dfg.resource>, tensor<*x!dfg.resource>, tensor<f32>, tensor<*xf32>, tensor<f32>) -> () loc("update")
  dfg.assign_add %n, %lr {control = ["update"]} : (tensor<*x!dfg.resource>, tensor<f32>) -> () loc("count")
  %done = dfg.const dense<true> : tensor<i1> {control = ["count"]} : tensor<i1> loc("done")
  dfg.return %done : tensor<i1>
}
dfg.func @rest(%w: tensor<*x!dfg.resource>, %m: tensor<*x!dfg.resource>, %n: tensor<*x!dfg.resource>, %g: tensor<*xf32>) -> tensor<i1> {
  %done = dfg.const dense<true> : tensor<i1> : tensor<i1> loc("done")
  dfg.return %done : tensor<i1>
}
dfg.variable @trained : tensor<3xf32>
dfg.variable @trained_momentum : tensor<3xf32>
dfg.variable @steps : tensor<f32>
// CHECK-LABEL: dfg.graph
// CHECK: %[[OLD:.*]] = dfg.read_variable {{.*}} loc("cond/then/update/old_0")
// CHECK: %[[OLDM:.*]] = dfg.read_variable {{.*}} loc("cond/then/update/old_1")
// CHECK: %[[DECAYED:.*]] = dfg.mul %[[OLDM]], %{{.*}} loc("cond/then/update/rule_0")
// CHECK: %[[M:.*]] = dfg.add_v2 %[[DECAYED]], %{{.*}} loc("cond/then/update/rule_1")
// CHECK: %[[W:.*]] = dfg.sub %[[OLD]], %{{.*}} loc("cond/then/update/rule_{{.*}}")
// CHECK: %[[NEWW:.*]] = dfg.select_v2 %{{.*}}, %[[W]], %[[OLD]]
// CHECK: %[[NEWM:.*]] = dfg.select_v2 %{{.*}}, %[[M]], %[[OLDM]]
// CHECK: dfg.assign %{{.*}}, %[[NEWM]] {{.*}} loc("cond/then/update/assign_1")
// CHECK: dfg.assign %{{.*}}, %[[NEWW]] {control = ["cond/then/update/assign_1"]} {{.*}} loc("cond/then/update")
// CHECK: %[[ADDED:.*]] = dfg.select_v2
// CHECK: dfg.assign_add %{{.*}}, %[[ADDED]] {control = ["cond/then/update"]} {{.*}} loc("cond/then/count")
dfg.graph attributes {train_op = "train"} {
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %g = dfg.placeholder : () -> tensor<3xf32> loc("g")
  %w = dfg.var_handle @trained : !dfg.ref<tensor<3xf32>> loc("w")
  %m = dfg.var_handle @trained_momentum : !dfg.ref<tensor<3xf32>> loc("m")
  %n = dfg.var_handle @steps : !dfg.ref<tensor<f32>> loc("n")
  %r = dfg.opaque "If"(%p, %w, %m, %n, %g) {tf = {then_branch = #dfg.func<@train, {}>, else_branch = #dfg.func<@rest, {}>}} : (tensor<i1>, !dfg.ref<tensor<3xf32>>, !dfg.ref<tensor<3xf32>>, !dfg.ref<tensor<f32>>, tensor<3xf32>) -> tensor<i1> loc("cond")
  dfg.group {control = ["cond"]} : () -> () loc("train")
}

// -----

// An average of a reference begins with the variable's initial value, whether the variable has been assigned already or not.
dfg.func @value(%value: tensor<*xf32>, %initial: tensor<*xf32>) -> tensor<*xf32> {
  dfg.return %value : tensor<*xf32>
}
dfg.func @initial(%value: tensor<*xf32>, %initial: tensor<*xf32>) -> tensor<*xf32> {
  dfg.return %initial : tensor<*xf32>
}
// CHECK-LABEL: dfg.variable @w :
dfg.variable @w : tensor<f32> {kind = "ref"}
dfg.variable @average : tensor<f32> {kind = "ref"}
// CHECK: %[[INITIAL:.*]] = dfg.const {{.*}} loc("w/initial")
// CHECK-NOT: dfg.is_initialized
// CHECK-NOT: dfg.opaque
// CHECK: dfg.assign %{{.*}}, %[[INITIAL]] {{.*}} loc("average/assign")
dfg.graph attributes {train_op = "train", init_op = "init"} {
  %initial = dfg.const dense<2.0> : tensor<f32> : tensor<f32> loc("w/initial")
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %average = dfg.var_handle @average : !dfg.ref<tensor<f32>> loc("average")
  dfg.assign %w, %initial : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("w/assign")
  %p = dfg.is_initialized %w : (!dfg.ref<tensor<f32>>) -> tensor<i1> loc("asked")
  %read = dfg.read_variable %w {implicit} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("cond/read")
  %r = dfg.opaque "StatelessIf"(%p, %read, %initial) {tf = {then_branch = #dfg.func<@value, {}>, else_branch = #dfg.func<@initial, {}>}} : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32> loc("cond")
  dfg.assign %average, %r : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("average/assign")
  dfg.group {control = ["w/assign", "average/assign"]} : () -> () loc("init")
  dfg.group : () -> () loc("train")
}

// -----

// Iterations take turns at one generator, and of a node an iteration each would have its own.
dfg.func @below_three(%i: tensor<*xi32>, %sum: tensor<*xf32>) -> tensor<*xi1> {
  %three = dfg.const dense<3> : tensor<i32> : tensor<i32> loc("three")
  %r = dfg.less %i, %three : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1> loc("less")
  dfg.return %r : tensor<*xi1>
}
dfg.func @draw(%i: tensor<*xi32>, %sum: tensor<*xf32>) -> (tensor<*xi32>, tensor<*xf32>) {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %shape = dfg.const dense<4> : tensor<1xi32> : tensor<1xi32> loc("shape")
  %next = dfg.add_v2 %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  %numbers = dfg.random_uniform %shape {dtype = f32, seed = 1 : i64, seed2 = 2 : i64} : (tensor<1xi32>) -> tensor<*xf32> loc("numbers")
  %more = dfg.add_v2 %sum, %numbers : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32> loc("more")
  dfg.return %next, %more : tensor<*xi32>, tensor<*xf32>
}
// REMARK: remark: {{.*}}conditions and loops are exported as they are, {{.*}}numbers{{.*}} draws random numbers with a seed in a loop, where each iteration goes on with the generator of the last, and of a node an iteration each would begin anew
// CHECK: dfg.opaque "While"
dfg.graph attributes {train_op = "drawn", loss = "drawn:1"} {
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %x = dfg.placeholder : () -> tensor<4xf32> loc("x")
  %r:2 = dfg.opaque "While"(%zero, %x) {tf = {cond = #dfg.func<@below_three, {}>, body = #dfg.func<@draw, {}>}} : (tensor<i32>, tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) loc("drawn")
}

// -----

// Updates of references in a loop are behind those of the iteration before, reads too; who waits for one in the loop's body waits for it there.
dfg.variable @v : tensor<f32> {kind = "ref"}
dfg.variable @u : tensor<f32> {kind = "ref"}
dfg.func @below_two(%i: tensor<*xi32>, %v: !dfg.ref<tensor<f32>>, %u: !dfg.ref<tensor<f32>>) -> tensor<*xi1> {
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32>
  %less = dfg.less %i, %two : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @counts(%i: tensor<*xi32>, %v: !dfg.ref<tensor<f32>>, %u: !dfg.ref<tensor<f32>>) -> (tensor<*xi32>, !dfg.ref<tensor<f32>>, !dfg.ref<tensor<f32>>) {
  %old = dfg.identity %v : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("old")
  %add = dfg.opaque "AssignAdd"(%v, %old) {tf = {T = f32}} : (!dfg.ref<tensor<f32>>, tensor<f32>) -> tensor<f32> loc("add")
  %new = dfg.identity %v {control = ["add"]} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("new")
  %copy = dfg.opaque "Assign"(%u, %new) {tf = {T = f32}} : (!dfg.ref<tensor<f32>>, tensor<f32>) -> tensor<f32> loc("copy")
  %one = dfg.const dense<1> : tensor<i32> {control = ["copy"]} : tensor<i32> loc("one")
  %next = dfg.add_v2 %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  dfg.return %next, %v, %u : tensor<*xi32>, !dfg.ref<tensor<f32>>, !dfg.ref<tensor<f32>>
}
// CHECK-LABEL: dfg.graph attributes {train_op = "count"}
// CHECK: dfg.assign_add %{{.*}} loc("loop/0/add")
// CHECK: dfg.read_variable %{{.*}} {control = ["loop/0/add"]} {{.*}} loc("loop/0/new/reference")
// CHECK: dfg.assign %{{.*}} loc("loop/0/copy")
// CHECK: dfg.read_variable %{{.*}} {control = [{{.*}}"loop/0/add"{{.*}}]} {{.*}} loc("loop/1/old/reference")
// CHECK: dfg.assign_add %{{.*}} {control = [{{.*}}"loop/0/add"{{.*}}]{{.*}} loc("loop/1/add")
// CHECK: dfg.read_variable %{{.*}} {control = [{{.*}}"loop/1/add"{{.*}}]} {{.*}} loc("loop/1/new/reference")
dfg.graph attributes {train_op = "count"} {
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
  %v = dfg.var_handle @v : !dfg.ref<tensor<f32>> loc("v")
  %u = dfg.var_handle @u : !dfg.ref<tensor<f32>> loc("u")
  %w:3 = dfg.opaque "While"(%zero, %v, %u) {tf = {cond = #dfg.func<@below_two, {}>, body = #dfg.func<@counts, {}>}} : (tensor<i32>, !dfg.ref<tensor<f32>>, !dfg.ref<tensor<f32>>) -> (tensor<i32>, !dfg.ref<tensor<f32>>, !dfg.ref<tensor<f32>>) loc("loop")
  dfg.group {control = ["loop"]} : () -> () loc("count")
}

// -----

// What is known behind an update in a loop's body stays behind it: who takes it waits for the update.
dfg.variable @v : tensor<f32>
dfg.variable @u : tensor<f32>
dfg.func @below_one(%i: tensor<*xi32>, %v: tensor<*x!dfg.resource>, %u: tensor<*x!dfg.resource>) -> tensor<*xi1> {
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
  %less = dfg.less %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi1> loc("less")
  dfg.return %less : tensor<*xi1>
}
dfg.func @adds(%i: tensor<*xi32>, %v: tensor<*x!dfg.resource>, %u: tensor<*x!dfg.resource>) -> (tensor<*xi32>, tensor<*x!dfg.resource>, tensor<*x!dfg.resource>) {
  %two = dfg.const dense<2.0> : tensor<f32> : tensor<f32> loc("two")
  dfg.assign_add %v, %two : (tensor<*x!dfg.resource>, tensor<f32>) -> () loc("add")
  %half = dfg.const dense<0.5> : tensor<f32> {control = ["add"]} : tensor<f32> loc("half")
  dfg.assign %u, %half : (tensor<*x!dfg.resource>, tensor<f32>) -> () loc("late")
  %one = dfg.const dense<1> : tensor<i32> {control = ["late"]} : tensor<i32> loc("one")
  %next = dfg.add_v2 %i, %one : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("next")
  dfg.return %next, %v, %u : tensor<*xi32>, tensor<*x!dfg.resource>, tensor<*x!dfg.resource>
}
// CHECK-LABEL: dfg.graph attributes {train_op = "adding"}
// CHECK: %[[HALF:.*]] = dfg.const dense<5.000000e-01> : tensor<f32> {control = ["loop/0/add"]} loc("loop/0/half")
// CHECK: dfg.assign %{{.*}}, %[[HALF]] {{.*}} loc("loop/0/late")
dfg.graph attributes {train_op = "adding"} {
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
  %v = dfg.var_handle @v : !dfg.ref<tensor<f32>> loc("v")
  %u = dfg.var_handle @u : !dfg.ref<tensor<f32>> loc("u")
  %w:3 = dfg.opaque "While"(%zero, %v, %u) {tf = {cond = #dfg.func<@below_one, {}>, body = #dfg.func<@adds, {}>}} : (tensor<i32>, !dfg.ref<tensor<f32>>, !dfg.ref<tensor<f32>>) -> (tensor<i32>, !dfg.ref<tensor<f32>>, !dfg.ref<tensor<f32>>) loc("loop")
  dfg.group {control = ["loop"]} : () -> () loc("adding")
}

// -----

// So it does under a condition, where it is chosen or not.
dfg.variable @v : tensor<f32>
dfg.variable @u : tensor<f32>
// CHECK-LABEL: dfg.graph attributes {train_op = "choosing"}
// CHECK: %[[HALF:.*]] = dfg.const dense<5.000000e-01> : tensor<f32> {control = ["first"]} loc("half")
// CHECK: %[[ADDED:.*]] = dfg.select_v2 %{{.*}}, %[[HALF]], %{{.*}} loc("second/select")
// CHECK: dfg.assign_add %{{.*}}, %[[ADDED]] {{.*}}loc("second")
dfg.graph attributes {train_op = "choosing"} {
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
  %v = dfg.var_handle @v : !dfg.ref<tensor<f32>> loc("v")
  %u = dfg.var_handle @u : !dfg.ref<tensor<f32>> loc("u")
  %s:2 = dfg.opaque "Switch"(%v, %p) : (!dfg.ref<tensor<f32>>, tensor<i1>) -> (tensor<!dfg.resource>, tensor<!dfg.resource>) loc("switch")
  %t:2 = dfg.opaque "Switch"(%u, %p) : (!dfg.ref<tensor<f32>>, tensor<i1>) -> (tensor<!dfg.resource>, tensor<!dfg.resource>) loc("switch_1")
  dfg.assign %s#1, %one : (tensor<!dfg.resource>, tensor<f32>) -> () loc("first")
  %half = dfg.const dense<0.5> : tensor<f32> {control = ["first"]} : tensor<f32> loc("half")
  dfg.assign_add %t#1, %half : (tensor<!dfg.resource>, tensor<f32>) -> () loc("second")
  dfg.group {control = ["second"]} : () -> () loc("choosing")
}
