// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=0 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=CHECK,CHIEF
// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=1 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=CHECK,OTHER

// What conditions and loops that are kept read of a server by its handle workers have to have read, too, before the chief updates: a node
// that runs functions when it is done, a loop of version 1 when it is left, and a branch also where it is dead.
dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
  #dist.task<"ps" 0 on "a" devices [] replicas 0 from 2>]
dfg.variable @w : tensor<4xf32> {trainable, dist.place = #dist.place<"ps" 0>}
dfg.graph attributes {train_op = "train", loss = "loss:0"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
  %more = dfg.placeholder : () -> tensor<i1> loc("more")
  %x = dfg.placeholder : () -> tensor<4xf32> loc("x")
  %called = dfg.opaque "If"(%more, %x, %w) {tf = {Tcond = i1, Tin = [f32, !dfg.resource], Tout = [f32], then_branch = #dfg.func<@branch, {}>, else_branch = #dfg.func<@branch, {}>}} : (tensor<i1>, tensor<4xf32>, !dfg.ref<tensor<4xf32>>) -> tensor<4xf32> loc("called")
  %enter = dfg.opaque "Enter"(%w) {tf = {T = !dfg.resource, frame_name = "loop", is_constant = true}} : (!dfg.ref<tensor<4xf32>>) -> tensor<!dfg.resource> loc("enter")
  %begin = dfg.opaque "Enter"(%x) {tf = {T = f32, frame_name = "loop"}} : (tensor<4xf32>) -> tensor<4xf32> loc("begin")
  %inside = dfg.read_variable %enter {control = ["begin"]} : (tensor<!dfg.resource>) -> tensor<4xf32> loc("inside")
  %sum = dfg.add_v2 %begin, %inside : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("sum")
  %left = dfg.opaque "Exit"(%sum) {tf = {T = f32}} : (tensor<4xf32>) -> tensor<4xf32> loc("left")
  %ways:2 = dfg.opaque "Switch"(%w, %more) {tf = {T = !dfg.resource}} : (!dfg.ref<tensor<4xf32>>, tensor<i1>) -> (tensor<!dfg.resource>, tensor<!dfg.resource>) loc("ways")
  %branch = dfg.read_variable %ways#1 : (tensor<!dfg.resource>) -> tensor<4xf32> loc("branch")
  %other:2 = dfg.opaque "Switch"(%x, %more) {tf = {T = f32}} : (tensor<4xf32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) loc("other")
  %met:2 = dfg.opaque "Merge"(%other#0, %branch) {tf = {T = f32, N = 2 : i64}} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>) loc("met")
  %both = dfg.add_v2 %called, %left : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("both")
  %loss = dfg.add_v2 %both, %met#0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("loss")
  dist.push sum "synchronization/sent/0" to <"ps" 0> of 1 (%x) variable "w" {dist.place = #dist.place<"worker" 0>} : tensor<4xf32> loc("synchronization/sent/0/push")
  %sent = dist.take sum "synchronization/sent/0" from <"ps" 0> of 1 variable "w" {dist.place = #dist.place<"ps" 0>} : tensor<4xf32> loc("synchronization/sent/0/take")
  // CHIEF: dfg.apply_gradient_descent %{{.*}} {control = ["synchronization/taken"]{{.*}} loc("update_w")
  dfg.apply_gradient_descent %w, %lr, %sent {dist.place = #dist.place<"ps" 0>} : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update_w")
  // CHECK: dfg.opaque "Merge"(%{{.*}}) {control = ["branch"]{{.*}} loc("[[DONE:synchronization/tokens/reads/done/merge]]")
  // CHECK: dfg.opaque "QueueEnqueueV2"({{.*}}control = ["called", "left", "[[DONE]]"]{{.*}} loc("synchronization/tokens/reads/enqueue")
  // CHIEF: "QueueDequeueManyV2"({{.*}} loc("[[READ:.*reads/dequeue]]")
  // OTHER-NOT: QueueDequeueManyV2
  // CHIEF: dfg.group {control = [{{.*}}"[[READ]]"]{{.*}} loc("synchronization/taken")
  dist.tokens at <"ps" 0> of 2 staleness 0 {control = ["update_w", "more"]} loc("synchronization/tokens")
  dfg.group {control = ["synchronization/tokens"]} : () -> () loc("train")
}
dfg.func @branch(%x: tensor<4xf32>, %w: tensor<!dfg.resource>) -> tensor<4xf32> {
  %read = dfg.read_variable %w : (tensor<!dfg.resource>) -> tensor<4xf32> loc("read")
  dfg.return %read : tensor<4xf32>
}
