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
