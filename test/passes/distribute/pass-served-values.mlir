// RUN: distc-opt %s --dist-pass-served-values --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// What is kept and only reads variables of servers takes their values, once for each node, behind what the node waits for. What does more
// keeps the handle, and so does what reads a variable that every worker has, and an initializer.
dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.variable @v : tensor<4xf32> {trainable}
// CHECK: dfg.graph
dfg.graph attributes {train_op = "train", init_op = "init"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %v = dfg.var_handle @v : !dfg.ref<tensor<4xf32>> loc("v")
  %x = dfg.placeholder : () -> tensor<4xf32> loc("x")
  %more = dfg.placeholder : () -> tensor<i1> loc("more")
  // CHECK: %[[VALUE:.*]] = dfg.read_variable %[[W:w]] {control = ["x"]} : {{.*}} loc("w/value")
  // CHECK: dfg.opaque "If"(%more, %x, %[[VALUE]], %v) {{.*}}Tin = [f32, f32, !dfg.resource]{{.*}}then_branch = #dfg.func<@[[READS:reads_of_values.*]], {}>{{.*}} loc("read")
  %read = dfg.opaque "If"(%more, %x, %w, %v) {control = ["x"], tf = {Tcond = i1, Tin = [f32, !dfg.resource, !dfg.resource], Tout = [f32], then_branch = #dfg.func<@reads, {}>, else_branch = #dfg.func<@reads, {}>}} : (tensor<i1>, tensor<4xf32>, !dfg.ref<tensor<4xf32>>, !dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("read")
  // CHECK: dfg.opaque "If"(%more, %x, %[[W]]) {{.*}}@updates{{.*}} loc("updated")
  %updated = dfg.opaque "If"(%more, %x, %w) {tf = {Tcond = i1, Tin = [f32, !dfg.resource], Tout = [f32], then_branch = #dfg.func<@updates, {}>, else_branch = #dfg.func<@updates, {}>}} : (tensor<i1>, tensor<4xf32>, !dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("updated")
  // Behind what may have updated.
  // CHECK: %[[AGAIN:.*]] = dfg.read_variable %[[W]] {control = ["updated"]} : {{.*}} loc("w/value_1")
  // CHECK: dfg.opaque "If"(%more, %{{.*}}, %[[AGAIN]], %v)
  %behind = dfg.opaque "If"(%more, %updated, %w, %v) {tf = {Tcond = i1, Tin = [f32, !dfg.resource, !dfg.resource], Tout = [f32], then_branch = #dfg.func<@reads, {}>, else_branch = #dfg.func<@reads, {}>}} : (tensor<i1>, tensor<4xf32>, !dfg.ref<tensor<4xf32>>, !dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("behind")
  // CHECK: %[[LOOP:.*]] = dfg.read_variable %[[W]] : {{.*}} loc("w/value_2")
  // CHECK: %[[ENTER:.*]] = dfg.opaque "Enter"(%[[LOOP]]) {{.*}} -> tensor<4xf32>
  // CHECK: dfg.identity %[[ENTER]] : {{.*}} loc("inside")
  %enter = dfg.opaque "Enter"(%w) {tf = {T = !dfg.resource, frame_name = "loop", is_constant = true}} : (!dfg.ref<tensor<4xf32>>) -> tensor<!dfg.resource> loc("enter")
  %inside = dfg.read_variable %enter : (tensor<!dfg.resource>) -> tensor<4xf32> loc("inside")
  %left = dfg.opaque "Exit"(%inside) {tf = {T = f32}} : (tensor<4xf32>) -> tensor<4xf32> loc("left")
  dfg.group {control = ["read", "behind", "left"]} : () -> () loc("train")
  // CHECK: dfg.opaque "Switch"(%[[W]], %more)
  %ways:2 = dfg.opaque "Switch"(%w, %more) {tf = {T = !dfg.resource}} : (!dfg.ref<tensor<4xf32>>, tensor<i1>) -> (tensor<!dfg.resource>, tensor<!dfg.resource>) loc("ways")
  %initial = dfg.read_variable %ways#1 : (tensor<!dfg.resource>) -> tensor<4xf32> loc("initial")
  dfg.group {control = ["initial"]} : () -> () loc("init")
}
dfg.func @reads(%x: tensor<4xf32>, %w: tensor<!dfg.resource>, %v: tensor<!dfg.resource>) -> tensor<4xf32> {
  %value = dfg.read_variable %w : (tensor<!dfg.resource>) -> tensor<4xf32> loc("value")
  dfg.return %value : tensor<4xf32>
}
dfg.func @updates(%x: tensor<4xf32>, %w: tensor<!dfg.resource>) -> tensor<4xf32> {
  dfg.assign_add %w, %x : (tensor<!dfg.resource>, tensor<4xf32>) -> () loc("add")
  dfg.return %x : tensor<4xf32>
}
