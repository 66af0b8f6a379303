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
