// RUN: distc-opt %s --dfg-hash-integers --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Ten digits of int32, each the remainder of what is left; the bucket is the remainder of the hash without its sign.
// CHECK-LABEL: dfg.graph
// CHECK: %[[WORD:.*]] = dfg.cast %ids : (tensor<?x3xi32>) -> tensor<?x3xi64>
// CHECK: dfg.truncate_mod %[[WORD]], %{{.*}} : (tensor<?x3xi64>, tensor<i64>) -> tensor<?x3xi64>
// CHECK-COUNT-9: dfg.truncate_mod
// CHECK: %[[UPPER:.*]] = dfg.truncate_mod
// CHECK: %[[TWICE:.*]] = dfg.mul %[[UPPER]]
// CHECK: %[[SUM:.*]] = dfg.add_v2 %[[TWICE]]
// CHECK: dfg.truncate_mod %[[SUM]], %{{.*}} {control = ["ids"]} : (tensor<?x3xi64>, tensor<i64>) -> tensor<?x3xi64> loc("bucket")
// CHECK-NOT: StringToHashBucketFast
dfg.graph {
  %ids = dfg.placeholder : () -> tensor<?x3xi32> loc("ids")
  %text = dfg.opaque "AsString"(%ids) {stateless, tf = {fill = "", width = -1 : i64}} : (tensor<?x3xi32>) -> tensor<?x3x!dfg.string> loc("text")
  %bucket = dfg.opaque "StringToHashBucketFast"(%text) {control = ["ids"], stateless, tf = {num_buckets = 100 : i64}} : (tensor<?x3x!dfg.string>) -> tensor<?x3xi64> loc("bucket")
  %kept = dfg.identity %bucket : (tensor<?x3xi64>) -> tensor<?x3xi64> loc("kept")
}

// -----

// Floats, digits with zeros before, and strings that are fed, stay.
// CHECK-LABEL: dfg.graph
// CHECK-COUNT-3: StringToHashBucketFast
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
  %ids = dfg.placeholder : () -> tensor<?xi64> loc("ids")
  %words = dfg.placeholder : () -> tensor<?x!dfg.string> loc("words")
  %float = dfg.opaque "AsString"(%x) {stateless} : (tensor<?xf32>) -> tensor<?x!dfg.string> loc("float")
  %padded = dfg.opaque "AsString"(%ids) {stateless, tf = {fill = "0", width = 8 : i64}} : (tensor<?xi64>) -> tensor<?x!dfg.string> loc("padded")
  %a = dfg.opaque "StringToHashBucketFast"(%float) {stateless, tf = {num_buckets = 100 : i64}} : (tensor<?x!dfg.string>) -> tensor<?xi64> loc("a")
  %b = dfg.opaque "StringToHashBucketFast"(%padded) {stateless, tf = {num_buckets = 100 : i64}} : (tensor<?x!dfg.string>) -> tensor<?xi64> loc("b")
  %c = dfg.opaque "StringToHashBucketFast"(%words) {stateless, tf = {num_buckets = 100 : i64}} : (tensor<?x!dfg.string>) -> tensor<?xi64> loc("c")
}
