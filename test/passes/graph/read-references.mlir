// RUN: distc-opt %s --split-input-file --dfg-read-references --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// What runs behind the update sees the reference's new value; what does not, and a resource's value, stay as they were read.
// CHECK: %[[REF:.*]] = dfg.var_handle @ref
// CHECK: %[[OLD:.*]] = dfg.identity
// CHECK: %[[VALUE:.*]] = dfg.read_variable %{{.*}} : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32> loc("value")
// CHECK: dfg.assign %[[REF]]
// CHECK: %[[NEW:.*]] = dfg.read_variable %[[REF]] {control = ["update"]} {{.*}} loc("late/ref")
// CHECK: dfg.add_v2 %[[NEW]], %[[VALUE]] {control = ["train"]}
// CHECK: dfg.square %[[OLD]]
dfg.variable @ref : tensor<2xf32> {kind = "ref"}
dfg.variable @resource : tensor<2xf32>
dfg.graph attributes {train_op = "late"} {
  %ref = dfg.var_handle @ref : !dfg.ref<tensor<2xf32>> loc("ref")
  %read = dfg.read_variable %ref {implicit} : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32>
  %old = dfg.identity %read : (tensor<2xf32>) -> tensor<2xf32> loc("ref/read")
  %resource = dfg.var_handle @resource : !dfg.ref<tensor<2xf32>> loc("resource")
  %value = dfg.read_variable %resource : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32> loc("value")
  %zero = dfg.const dense<0.0> : tensor<2xf32> : tensor<2xf32> loc("zero")
  dfg.assign %ref, %zero : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> () loc("update")
  dfg.assign %resource, %zero : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> () loc("resource/update")
  dfg.group {control = ["update", "resource/update"]} : () -> () loc("train")
  %late = dfg.add_v2 %old, %value {control = ["train"]} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("late")
  %early = dfg.square %old : (tensor<2xf32>) -> tensor<2xf32> loc("early")
}

// -----

// A read behind an update, whose value is used behind the next one of the same variable; what is used before that keeps it.
// CHECK: %[[W:.*]] = dfg.var_handle @w
// CHECK: %[[BETWEEN:.*]] = dfg.read_variable %[[W]] {{.*}} loc("between")
// CHECK: %[[OLD:.*]] = dfg.identity %[[BETWEEN]] {{.*}} loc("old")
// CHECK: dfg.neg %[[OLD]]
// CHECK: dfg.assign %[[W]], {{.*}} loc("second")
// CHECK: %[[LAST:.*]] = dfg.read_variable %[[W]] {control = ["second"]} {{.*}} loc("history/w")
// CHECK: dfg.assign %{{.*}}, %[[LAST]] {control = ["second"]}
dfg.variable @w : tensor<2xf32> {kind = "ref"}
dfg.variable @previous : tensor<2xf32> {kind = "ref"}
dfg.graph attributes {train_op = "history"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<2xf32>> loc("w")
  %previous = dfg.var_handle @previous : !dfg.ref<tensor<2xf32>> loc("previous")
  %zero = dfg.const dense<0.0> : tensor<2xf32> : tensor<2xf32> loc("zero")
  dfg.assign %w, %zero : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> () loc("first")
  %between = dfg.read_variable %w {control = ["first"], implicit} : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32> loc("between")
  %old = dfg.identity %between : (tensor<2xf32>) -> tensor<2xf32> loc("old")
  %new = dfg.neg %old : (tensor<2xf32>) -> tensor<2xf32> loc("new")
  dfg.assign %w, %new : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> () loc("second")
  dfg.assign %previous, %old {control = ["second"]} : (!dfg.ref<tensor<2xf32>>, tensor<2xf32>) -> () loc("history")
}

// -----

// A branch that updates the variable takes it itself: what it computes of it behind the update reads it there. (dfg-expand-control-flow makes the reads.)
// CHECK-LABEL: dfg.graph attributes {train_op = "merge"}
// CHECK: %[[W:.*]] = dfg.var_handle @w
// CHECK: %[[R:.*]]:2 = dfg.opaque "RefSwitch"(%[[W]], {{.*}} loc("read_switch")
// CHECK: dfg.square %[[R]]#1 {control = ["update"]}
// CHECK: dfg.opaque "Switch"(%{{.*}}, {{.*}} loc("other_switch")
dfg.variable @w : tensor<2xf32> {kind = "ref"}
dfg.variable @other : tensor<2xf32> {kind = "ref"}
dfg.graph attributes {train_op = "merge"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<2xf32>> loc("w")
  %other = dfg.var_handle @other : !dfg.ref<tensor<2xf32>> loc("other")
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %read = dfg.read_variable %w {implicit} : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32>
  %old = dfg.identity %read : (tensor<2xf32>) -> tensor<2xf32> loc("w/read")
  %read_other = dfg.read_variable %other {implicit} : (!dfg.ref<tensor<2xf32>>) -> tensor<2xf32>
  %r:2 = dfg.opaque "Switch"(%old, %p) {tf = {T = f32}} : (tensor<2xf32>, tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>) loc("read_switch")
  %s:2 = dfg.opaque "RefSwitch"(%w, %p) {tf = {T = f32}} : (!dfg.ref<tensor<2xf32>>, tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>) loc("switch")
  %u = dfg.opaque "AssignAdd"(%s#1, %r#1) {tf = {T = f32}} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("update")
  %late = dfg.square %r#1 {control = ["update"]} : (tensor<2xf32>) -> tensor<2xf32> loc("late")
  %o:2 = dfg.opaque "Switch"(%read_other, %p) {tf = {T = f32}} : (tensor<2xf32>, tensor<i1>) -> (tensor<2xf32>, tensor<2xf32>) loc("other_switch")
  %m:2 = dfg.opaque "Merge"(%o#0, %late) {tf = {N = 2 : i64, T = f32}} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<i32>) loc("merge")
}

// -----

// So does a loop, in each iteration; one that only runs behind an update takes the value behind it.
// CHECK-LABEL: dfg.graph attributes {train_op = "train"}
// CHECK: %[[W:.*]] = dfg.var_handle @w
// CHECK: %[[OTHER:.*]] = dfg.var_handle @other
// CHECK: dfg.opaque "RefEnter"(%[[W]]) {{.*}} loc("read_enter")
// CHECK: %[[NEW:.*]] = dfg.read_variable %[[OTHER]] {control = ["before"]} {{.*}} loc("other_enter/other")
// CHECK: dfg.opaque "Enter"(%[[NEW]]) {{.*}} loc("other_enter")
dfg.variable @w : tensor<f32> {kind = "ref"}
dfg.variable @other : tensor<f32> {kind = "ref"}
dfg.graph attributes {train_op = "train"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %other = dfg.var_handle @other : !dfg.ref<tensor<f32>> loc("other")
  %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
  dfg.assign %other, %one : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("before")
  %zero = dfg.const dense<0> : tensor<i32> {control = ["before"]} : tensor<i32> loc("zero")
  %read = dfg.read_variable %w {implicit} : (!dfg.ref<tensor<f32>>) -> tensor<f32>
  %read_other = dfg.read_variable %other {implicit} : (!dfg.ref<tensor<f32>>) -> tensor<f32>
  %i = dfg.opaque "Enter"(%zero) {tf = {T = i32, frame_name = "loop", is_constant = false}} : (tensor<i32>) -> tensor<i32> loc("enter")
  %r = dfg.opaque "Enter"(%read) {tf = {T = f32, frame_name = "loop", is_constant = true}} : (tensor<f32>) -> tensor<f32> loc("read_enter")
  %o = dfg.opaque "Enter"(%read_other) {tf = {T = f32, frame_name = "loop", is_constant = true}} : (tensor<f32>) -> tensor<f32> loc("other_enter")
  %v = dfg.opaque "RefEnter"(%w) {tf = {T = f32, frame_name = "loop", is_constant = true}} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("variable")
  %m:2 = dfg.opaque "Merge"(%i, %n) {tf = {N = 2 : i64, T = i32}} : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>) loc("merge")
  %two = dfg.const dense<2> : tensor<i32> {control = ["merge"]} : tensor<i32> loc("two")
  %less = dfg.less %m#0, %two : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("less")
  %c = dfg.opaque "LoopCond"(%less) : (tensor<i1>) -> tensor<i1> loc("cond")
  %s:2 = dfg.opaque "Switch"(%m#0, %c) {tf = {T = i32}} : (tensor<i32>, tensor<i1>) -> (tensor<i32>, tensor<i32>) loc("switch")
  %k = dfg.identity %s#1 : (tensor<i32>) -> tensor<i32> loc("k")
  %sum = dfg.add_v2 %r, %o {control = ["k"]} : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("sum")
  %u = dfg.opaque "Assign"(%v, %sum) {tf = {T = f32}} : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("update")
  %step = dfg.const dense<1> : tensor<i32> {control = ["update"]} : tensor<i32> loc("step")
  %next = dfg.add_v2 %k, %step : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("next")
  %n = dfg.opaque "NextIteration"(%next) {tf = {T = i32}} : (tensor<i32>) -> tensor<i32> loc("next_iteration")
  %x = dfg.opaque "Exit"(%s#0) {tf = {T = i32}} : (tensor<i32>) -> tensor<i32> loc("exit")
  dfg.group {control = ["exit"]} : () -> () loc("train")
}

// -----

// What runs behind a condition that updates the variable reads it there: it waits for what its user waits for, since the update may not run. What was read
// before is the variable's memory as well.
// CHECK-LABEL: dfg.graph attributes {train_op = "sum"}
// CHECK: %[[W:.*]] = dfg.var_handle @w
// CHECK: %[[NEW:.*]] = dfg.read_variable %[[W]] {control = ["merge"]} {{.*}} loc("behind/w")
// CHECK: dfg.identity %[[NEW]] {control = ["merge"]} {{.*}} loc("behind")
// CHECK: %[[AGAIN:.*]] = dfg.read_variable %[[W]] {control = ["merge"]} {{.*}} loc("sum/w")
// CHECK: dfg.add_v2 %[[AGAIN]], %{{.*}} loc("sum")
dfg.variable @w : tensor<f32> {kind = "ref"}
dfg.graph attributes {train_op = "sum"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
  %read = dfg.read_variable %w {implicit} : (!dfg.ref<tensor<f32>>) -> tensor<f32>
  %old = dfg.identity %read : (tensor<f32>) -> tensor<f32> loc("old")
  %s:2 = dfg.opaque "Switch"(%one, %p) {tf = {T = f32}} : (tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("switch")
  %v:2 = dfg.opaque "RefSwitch"(%w, %p) {tf = {T = f32}} : (!dfg.ref<tensor<f32>>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("variable")
  %u = dfg.opaque "AssignAdd"(%v#1, %s#1) {tf = {T = f32}} : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("update")
  %t = dfg.identity %s#1 {control = ["update"]} : (tensor<f32>) -> tensor<f32> loc("taken")
  %m:2 = dfg.opaque "Merge"(%s#0, %t) {tf = {N = 2 : i64, T = f32}} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<i32>) loc("merge")
  %late = dfg.read_variable %w {implicit} : (!dfg.ref<tensor<f32>>) -> tensor<f32>
  %behind = dfg.identity %late {control = ["merge"]} : (tensor<f32>) -> tensor<f32> loc("behind")
  %sum = dfg.add_v2 %old, %m#0 : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("sum")
}

// -----

// A slot of an update in a condition is one of the variables that it writes.
// CHECK-LABEL: dfg.graph attributes {train_op = "behind"}
// CHECK: %[[SLOT:.*]] = dfg.var_handle @slot
// CHECK: %[[NEW:.*]] = dfg.read_variable %[[SLOT]] {control = ["merge"]} {{.*}} loc("behind/slot")
// CHECK: dfg.identity %[[NEW]] {control = ["merge"]} {{.*}} loc("behind")
dfg.variable @w : tensor<f32> {kind = "ref"}
dfg.variable @slot : tensor<f32> {kind = "ref"}
dfg.graph attributes {train_op = "behind"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %slot = dfg.var_handle @slot : !dfg.ref<tensor<f32>> loc("slot")
  %p = dfg.placeholder : () -> tensor<i1> loc("p")
  %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
  %s:2 = dfg.opaque "Switch"(%one, %p) {tf = {T = f32}} : (tensor<f32>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("switch")
  %v:2 = dfg.opaque "RefSwitch"(%w, %p) {tf = {T = f32}} : (!dfg.ref<tensor<f32>>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("variable")
  %a:2 = dfg.opaque "RefSwitch"(%slot, %p) {tf = {T = f32}} : (!dfg.ref<tensor<f32>>, tensor<i1>) -> (tensor<f32>, tensor<f32>) loc("accumulator")
  %u = dfg.opaque "ApplyMomentum"(%v#1, %a#1, %s#1, %s#1, %s#1) {tf = {T = f32}} : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32> loc("update")
  %t = dfg.identity %s#1 {control = ["update"]} : (tensor<f32>) -> tensor<f32> loc("taken")
  %m:2 = dfg.opaque "Merge"(%s#0, %t) {tf = {N = 2 : i64, T = f32}} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<i32>) loc("merge")
  %late = dfg.read_variable %slot {implicit} : (!dfg.ref<tensor<f32>>) -> tensor<f32>
  %behind = dfg.identity %late {control = ["merge"]} : (tensor<f32>) -> tensor<f32> loc("behind")
}
