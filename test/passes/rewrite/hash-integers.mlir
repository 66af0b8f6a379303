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

// -----

// A keyed hash begins with its key, of which two words are taken; a word of digits is absorbed by two rounds, and four end it.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.const dense<133>
// CHECK: dfg.const dense<137>
// CHECK: dfg.truncate_mod {{.*}} loc("bucket")
// CHECK-NOT: StringToHashBucketStrong
dfg.graph {
  %ids = dfg.placeholder : () -> tensor<?xi8> loc("ids")
  %text = dfg.opaque "AsString"(%ids) {stateless, tf = {fill = "", width = -1 : i64}} : (tensor<?xi8>) -> tensor<?x!dfg.string> loc("text")
  %bucket = dfg.opaque "StringToHashBucketStrong"(%text) {stateless, tf = {key = [133 : i64, 137 : i64], num_buckets = 100 : i64}} : (tensor<?x!dfg.string>) -> tensor<?xi64> loc("bucket")
}

// -----

// Crosses of two columns, one for each example, at its row. Columns of several, and strings, stay.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.truncate_mod
// CHECK: %[[BUCKET:.*]] = dfg.truncate_mod
// CHECK: %[[SHAPE:.*]] = dfg.shape %a
// CHECK: %[[NUMBERS:.*]] = dfg.range
// CHECK: %[[VALUES:.*]] = dfg.reshape %[[BUCKET]]
// CHECK: %[[INDICES:.*]] = dfg.pack %[[NUMBERS]], %{{.*}} {axis = 1 : i64}
// CHECK: dfg.sparse_to_dense %[[INDICES]], %[[SHAPE]], %[[VALUES]]
// CHECK: dfg.opaque "SparseCross"(%wide, %b)
dfg.graph {
  %a = dfg.placeholder : () -> tensor<?x1xi64> loc("a")
  %b = dfg.placeholder : () -> tensor<?x1xi64> loc("b")
  %wide = dfg.placeholder : () -> tensor<?x3xi64> loc("wide")
  %zero = dfg.const dense<0> : tensor<i64> : tensor<i64> loc("zero")
  %c:3 = dfg.opaque "SparseCross"(%a, %b) {stateless, tf = {N = 0 : i64, dense_types = [i64, i64], hash_key = 956888297470 : i64, hashed_output = true, internal_type = i64, num_buckets = 7 : i64, out_type = i64, sparse_types = []}} : (tensor<?x1xi64>, tensor<?x1xi64>) -> (tensor<?x2xi64>, tensor<?xi64>, tensor<2xi64>) loc("cross")
  %dense = dfg.sparse_to_dense %c#0, %c#2, %c#1, %zero : (tensor<?x2xi64>, tensor<2xi64>, tensor<?xi64>, tensor<i64>) -> tensor<?x?xi64> loc("dense")
  %d:3 = dfg.opaque "SparseCross"(%wide, %b) {stateless, tf = {N = 0 : i64, dense_types = [i64, i64], hash_key = 956888297470 : i64, hashed_output = true, internal_type = i64, num_buckets = 7 : i64, out_type = i64, sparse_types = []}} : (tensor<?x3xi64>, tensor<?x1xi64>) -> (tensor<?x2xi64>, tensor<?xi64>, tensor<2xi64>) loc("cross2")
}
