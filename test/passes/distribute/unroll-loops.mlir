// RUN: distc-opt %s --dist-apply-strategy="strategy=AllReduce replicas=2" --dist-replicate --dist-unroll --dist-rename-scopes --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// A loop of version 1 with anything of a replica's own is its own as a whole, in a frame of its own: its counter and its constants, too,
// and what comes back in it. Of a condition's branch what waits for its pivot.
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  // CHECK: %[[I0:.*]] = dfg.opaque "Enter"(%{{.*}}) {tf = {T = i32, frame_name = "replica_0/while"}} {{.*}} loc("replica_0/i")
  // CHECK: %[[I1:.*]] = dfg.opaque "Enter"(%{{.*}}) {tf = {T = i32, frame_name = "replica_1/while"}} {{.*}} loc("replica_1/i")
  %i = dfg.opaque "Enter"(%zero) {tf = {T = i32, frame_name = "while"}} : (tensor<i32>) -> tensor<i32> loc("i")
  // CHECK: dfg.opaque "Enter"(%{{.*}}) {tf = {T = f32, frame_name = "replica_0/while"}} {{.*}} loc("replica_0/h")
  // CHECK: dfg.opaque "Enter"(%{{.*}}) {tf = {T = f32, frame_name = "replica_1/while"}} {{.*}} loc("replica_1/h")
  %h = dfg.opaque "Enter"(%x) {tf = {T = f32, frame_name = "while"}} : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("h")
  // CHECK: %[[M0:.*]]:2 = dfg.opaque "Merge"(%[[I0]], %[[N0:[^ )]*]]) {{.*}} loc("replica_0/i/merge")
  // CHECK: %[[M1:.*]]:2 = dfg.opaque "Merge"(%[[I1]], %[[N1:[^ )]*]]) {{.*}} loc("replica_1/i/merge")
  %im:2 = dfg.opaque "Merge"(%i, %next_i) {tf = {N = 2 : i64, T = i32}} : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>) loc("i/merge")
  %hm:2 = dfg.opaque "Merge"(%h, %next_h) {tf = {N = 2 : i64, T = f32}} : (tensor<?x4xf32>, tensor<?x4xf32>) -> (tensor<?x4xf32>, tensor<i32>) loc("h/merge")
  // CHECK: dfg.const dense<3> : tensor<i32> {control = ["replica_0/i/merge"]} loc("replica_0/three")
  // CHECK: dfg.const dense<3> : tensor<i32> {control = ["replica_1/i/merge"]} loc("replica_1/three")
  %three = dfg.const dense<3> : tensor<i32> {control = ["i/merge"]} : tensor<i32> loc("three")
  %less = dfg.less %im#0, %three : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("less")
  %go = dfg.opaque "LoopCond"(%less) : (tensor<i1>) -> tensor<i1> loc("go")
  %is:2 = dfg.opaque "Switch"(%im#0, %go) {tf = {T = i32}} : (tensor<i32>, tensor<i1>) -> (tensor<i32>, tensor<i32>) loc("i/switch")
  %hs:2 = dfg.opaque "Switch"(%hm#0, %go) {tf = {T = f32}} : (tensor<?x4xf32>, tensor<i1>) -> (tensor<?x4xf32>, tensor<?x4xf32>) loc("h/switch")
  %one = dfg.const dense<1> : tensor<i32> {control = ["i/switch"]} : tensor<i32> loc("one")
  %add = dfg.add_v2 %is#1, %one : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("add")
  %tanh = dfg.tanh %hs#1 : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("tanh")
  // CHECK: %[[N0]] = dfg.opaque "NextIteration"
  // CHECK: %[[N1]] = dfg.opaque "NextIteration"
  %next_i = dfg.opaque "NextIteration"(%add) {tf = {T = i32}} : (tensor<i32>) -> tensor<i32> loc("i/next")
  %next_h = dfg.opaque "NextIteration"(%tanh) {tf = {T = f32}} : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("h/next")
  // CHECK: dfg.opaque "Exit"{{.*}} loc("replica_0/exit")
  // CHECK: dfg.opaque "Exit"{{.*}} loc("replica_1/exit")
  %exit = dfg.opaque "Exit"(%hs#0) {tf = {T = f32}} : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("exit")
  // CHECK-NOT: loc("exit")
}
