// RUN: distc-opt %s --dfg-raise-loops --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: distc-opt %s --dfg-raise-loops --dfg-expand-control-flow --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=UNROLLED

// CHECK-LABEL: dfg.graph
// CHECK: %[[X:.*]] = dfg.placeholder
// CHECK: %[[W:.*]] = dfg.placeholder
// CHECK: %[[LOOP:.*]]:3 = dfg.opaque "While"(%{{.*}}, %[[X]], %[[W]]) {{.*}} loc("while")
// CHECK-NOT: dfg.opaque
// CHECK: dfg.identity %[[LOOP]]#1 {{.*}} loc("exit")
// CHECK: dfg.identity %[[LOOP]]#1 {{.*}} loc("loss")
// CHECK: dfg.func @"__raised/while/body"(%[[I:.*]]: tensor<*xi32>{{.*}}, %[[H:.*]]: tensor<*xf32>{{.*}}, %[[V:.*]]: tensor<*xf32>
// CHECK: dfg.mul %[[H]], %[[V]]
// CHECK: dfg.func @"__raised/while/cond"
// CHECK: dfg.less
// CHECK-NOT: dfg.mul

// UNROLLED: dfg.mul
// UNROLLED-SAME: loc("while/0/mul")
// UNROLLED: dfg.mul
// UNROLLED-SAME: loc("while/1/mul")
// UNROLLED-NOT: dfg.mul
// UNROLLED: dfg.func
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<3xf32> loc("x")
  %w = dfg.placeholder : () -> tensor<3xf32> loc("w")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %e0 = dfg.opaque "Enter"(%zero) {tf = {frame_name = "while"}} : (tensor<i32>) -> tensor<i32> loc("enter")
  %e1 = dfg.opaque "Enter"(%x) {tf = {frame_name = "while"}} : (tensor<3xf32>) -> tensor<3xf32> loc("enter_1")
  %e2 = dfg.opaque "Enter"(%w) {tf = {frame_name = "while", is_constant = true}} : (tensor<3xf32>) -> tensor<3xf32> loc("enter_2")
  %m0:2 = dfg.opaque "Merge"(%e0, %n0) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>) loc("merge")
  %m1:2 = dfg.opaque "Merge"(%e1, %n1) : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<i32>) loc("merge_1")
  %two = dfg.const dense<2> : tensor<i32> {control = ["merge"]} : tensor<i32> loc("two")
  %less = dfg.less %m0#0, %two : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("less")
  %cond = dfg.opaque "LoopCond"(%less) : (tensor<i1>) -> tensor<i1> loc("cond")
  %s0:2 = dfg.opaque "Switch"(%m0#0, %cond) : (tensor<i32>, tensor<i1>) -> (tensor<i32>, tensor<i32>) loc("switch")
  %s1:2 = dfg.opaque "Switch"(%m1#0, %cond) : (tensor<3xf32>, tensor<i1>) -> (tensor<3xf32>, tensor<3xf32>) loc("switch_1")
  %exit = dfg.opaque "Exit"(%s1#0) : (tensor<3xf32>) -> tensor<3xf32> loc("exit")
  %loss = dfg.identity %exit : (tensor<3xf32>) -> tensor<3xf32> loc("loss")
  %pivot = dfg.identity %s0#1 : (tensor<i32>) -> tensor<i32> loc("pivot")
  %one = dfg.const dense<1> : tensor<i32> {control = ["pivot"]} : tensor<i32> loc("one")
  %add = dfg.add_v2 %pivot, %one : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("add")
  %mul = dfg.mul %s1#1, %e2 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32> loc("mul")
  %n0 = dfg.opaque "NextIteration"(%add) : (tensor<i32>) -> tensor<i32> loc("next")
  %n1 = dfg.opaque "NextIteration"(%mul) : (tensor<3xf32>) -> tensor<3xf32> loc("next_1")
}

// -----

// What no endpoint needs does not run, in a loop either: TensorFlow's sessions leave it out.
// CHECK-LABEL: dfg.variable @unread
// CHECK: dfg.func @"__raised/while/body"
// CHECK-NOT: dfg.assign_add
// CHECK: dfg.return
dfg.variable @unread : tensor<3xf32>
dfg.graph attributes {loss = "loss"} {
  %x = dfg.placeholder : () -> tensor<3xf32> loc("x")
  %unread = dfg.var_handle @unread : !dfg.ref<tensor<3xf32>> loc("unread")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %e0 = dfg.opaque "Enter"(%zero) {tf = {frame_name = "while"}} : (tensor<i32>) -> tensor<i32> loc("enter")
  %e1 = dfg.opaque "Enter"(%x) {tf = {frame_name = "while"}} : (tensor<3xf32>) -> tensor<3xf32> loc("enter_1")
  %e2 = dfg.opaque "Enter"(%unread) {tf = {frame_name = "while", is_constant = true}} : (!dfg.ref<tensor<3xf32>>) -> !dfg.ref<tensor<3xf32>> loc("enter_2")
  %m0:2 = dfg.opaque "Merge"(%e0, %n0) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>) loc("merge")
  %m1:2 = dfg.opaque "Merge"(%e1, %n1) : (tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<i32>) loc("merge_1")
  %two = dfg.const dense<2> : tensor<i32> {control = ["merge"]} : tensor<i32> loc("two")
  %less = dfg.less %m0#0, %two : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("less")
  %cond = dfg.opaque "LoopCond"(%less) : (tensor<i1>) -> tensor<i1> loc("cond")
  %s0:2 = dfg.opaque "Switch"(%m0#0, %cond) : (tensor<i32>, tensor<i1>) -> (tensor<i32>, tensor<i32>) loc("switch")
  %s1:2 = dfg.opaque "Switch"(%m1#0, %cond) : (tensor<3xf32>, tensor<i1>) -> (tensor<3xf32>, tensor<3xf32>) loc("switch_1")
  %exit = dfg.opaque "Exit"(%s1#0) : (tensor<3xf32>) -> tensor<3xf32> loc("exit")
  %loss = dfg.identity %exit : (tensor<3xf32>) -> tensor<3xf32> loc("loss")
  %pivot = dfg.identity %s0#1 : (tensor<i32>) -> tensor<i32> loc("pivot")
  %one = dfg.const dense<1> : tensor<i32> {control = ["pivot"]} : tensor<i32> loc("one")
  %add = dfg.add_v2 %pivot, %one : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("add")
  %tanh = dfg.tanh %s1#1 : (tensor<3xf32>) -> tensor<3xf32> loc("tanh")
  dfg.assign_add %e2, %tanh : (!dfg.ref<tensor<3xf32>>, tensor<3xf32>) -> () loc("update")
  %n0 = dfg.opaque "NextIteration"(%add) : (tensor<i32>) -> tensor<i32> loc("next")
  %n1 = dfg.opaque "NextIteration"(%tanh) : (tensor<3xf32>) -> tensor<3xf32> loc("next_1")
}

// -----

// What a loop computes of a reference variable that it takes itself reads it in each iteration, behind the update of the one before.
// CHECK-LABEL: dfg.func @"__raised/loop/body"
// CHECK: %[[OLD:.*]] = dfg.identity %{{.*}} {control = ["k"]} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("sum/reference")
// CHECK: dfg.add_v2 %[[OLD]], %{{.*}} {control = ["k"]}
// UNROLLED: %[[W:.*]] = dfg.var_handle @w
// UNROLLED: dfg.assign %[[W]], {{.*}} loc("loop/0/update")
// UNROLLED: dfg.read_variable %[[W]] {{.*}} loc("loop/1/sum/reference/reference")
// UNROLLED: dfg.assign %[[W]], {{.*}} loc("loop/1/update")
dfg.variable @w : tensor<f32> {kind = "ref"}
dfg.graph attributes {train_op = "train"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
  %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("one")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %i = dfg.opaque "Enter"(%zero) {tf = {T = i32, frame_name = "loop", is_constant = false}} : (tensor<i32>) -> tensor<i32> loc("enter")
  %o = dfg.opaque "Enter"(%one) {tf = {T = f32, frame_name = "loop", is_constant = true}} : (tensor<f32>) -> tensor<f32> loc("one_enter")
  %r = dfg.opaque "RefEnter"(%w) {tf = {T = f32, frame_name = "loop", is_constant = true}} : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("read_enter")
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
