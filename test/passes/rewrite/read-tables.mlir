// RUN: distc-opt %s --dfg-read-tables --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Three keys are found in two steps: behind them is one more, larger than all. What fills the table is a group.
// CHECK-LABEL: dfg.graph
// CHECK: %[[KEYS:.*]] = dfg.const dense<[-2, 5, 9, 9223372036854775807]> : tensor<4xi64> {{.*}}loc("found/keys")
// CHECK: dfg.gather_v2 %[[KEYS]], %{{.*}} loc("found/key_1")
// CHECK: %[[FIRST:.*]] = dfg.select_v2 {{.*}} loc("found/place_1")
// CHECK: %[[AT:.*]] = dfg.select_v2 {{.*}} loc("found/place_2")
// CHECK: %[[FOUND:.*]] = dfg.gather_v2 %[[KEYS]], %[[AT]], {{.*}} loc("found/found")
// CHECK: %[[EQUAL:.*]] = dfg.equal %[[FOUND]], %x
// CHECK: %[[KEY:.*]] = dfg.less %[[AT]], %{{.*}} loc("found/is_key")
// CHECK: %[[THERE:.*]] = dfg.logical_and %[[EQUAL]], %[[KEY]]
// CHECK: %[[VALUES:.*]] = dfg.const dense<[1.000000e+00, 2.000000e+00, 3.000000e+00]> {{.*}}loc("found/values")
// CHECK: %[[PLACES:.*]] = dfg.const dense<[2, 0, 1, 0]> : tensor<4xi32>
// CHECK: %[[ORDER:.*]] = dfg.gather_v2 %[[PLACES]], %[[AT]]
// CHECK: %[[VALUE:.*]] = dfg.gather_v2 %[[VALUES]], %[[ORDER]]
// CHECK: dfg.select_v2 %[[THERE]], %[[VALUE]], %otherwise : (tensor<?x2xi1>, tensor<?x2xf32>, tensor<f32>) -> tensor<?x2xf32> loc("found")
// CHECK: dfg.const dense<3> : tensor<i64> {{.*}}loc("size")
// CHECK-NOT: LookupTable
// CHECK: dfg.group {{.*}}loc("fill")
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x2xi64> loc("x")
  %table = dfg.opaque "HashTableV2"() {tf = {key_dtype = i64, value_dtype = f32}} : () -> tensor<!dfg.resource> loc("table")
  %keys = dfg.const dense<[5, 9, -2]> : tensor<3xi64> : tensor<3xi64> loc("keys")
  %otherwise = dfg.const dense<-1.0> : tensor<f32> : tensor<f32> loc("otherwise")
  %found = dfg.opaque "LookupTableFindV2"(%table, %x, %otherwise) : (tensor<!dfg.resource>, tensor<?x2xi64>, tensor<f32>) -> tensor<?x2xf32> loc("found")
  %size = dfg.opaque "LookupTableSizeV2"(%table) : (tensor<!dfg.resource>) -> tensor<i64> loc("size")
  %values = dfg.const dense<[1.0, 2.0, 3.0]> : tensor<3xf32> : tensor<3xf32> loc("values")
  dfg.opaque "LookupTableImportV2"(%table, %keys, %values) : (tensor<!dfg.resource>, tensor<3xi64>, tensor<3xf32>) -> () loc("fill")
  dfg.group {control = ["fill"]} : () -> () loc("init")
}

// -----

// Keys of a feature column's vocabulary are cast.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.const dense<[5, 9, 9223372036854775807, 9223372036854775807]> : tensor<4xi64> {{.*}}loc("found/keys")
// CHECK-NOT: LookupTable
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?xi64> loc("x")
  %table = dfg.opaque "HashTableV2"() : () -> tensor<!dfg.resource> loc("table")
  %keys = dfg.const dense<[9, 5]> : tensor<2xi32> : tensor<2xi32> loc("keys")
  %wide = dfg.cast %keys : (tensor<2xi32>) -> tensor<2xi64> loc("wide")
  %otherwise = dfg.const dense<-1> : tensor<i64> : tensor<i64> loc("otherwise")
  dfg.opaque "LookupTableImportV2"(%table, %wide, %wide) : (tensor<!dfg.resource>, tensor<2xi64>, tensor<2xi64>) -> () loc("fill")
  %found = dfg.opaque "LookupTableFindV2"(%table, %x, %otherwise) : (tensor<!dfg.resource>, tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("found")
}

// -----

// What a function that captured the table runs behind it, as a SavedModel's signature does, waits for nothing.
// CHECK-LABEL: dfg.graph
// CHECK-NOT: HashTable
// CHECK: dfg.group {{.*}}loc("table")
// CHECK: dfg.identity {{.*}}control = ["table"]
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?xi64> loc("x")
  %table = dfg.opaque "HashTableV2"() : () -> tensor<!dfg.resource> loc("table")
  %keys = dfg.const dense<[5, 9]> : tensor<2xi64> : tensor<2xi64> loc("keys")
  %otherwise = dfg.const dense<0> : tensor<i64> : tensor<i64> loc("otherwise")
  %found = dfg.opaque "LookupTableFindV2"(%table, %x, %otherwise) : (tensor<!dfg.resource>, tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("found")
  %result = dfg.identity %found {control = ["table"]} : (tensor<?xi64>) -> tensor<?xi64> loc("result")
  dfg.opaque "LookupTableImportV2"(%table, %keys, %keys) : (tensor<!dfg.resource>, tensor<2xi64>, tensor<2xi64>) -> () loc("fill")
}

// -----

// Strings, and what is read whole, stay.
// CHECK-LABEL: dfg.graph
// CHECK: LookupTableFindV2
// CHECK: LookupTableFindV2
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x!dfg.string> loc("x")
  %i = dfg.placeholder : () -> tensor<?xi64> loc("i")
  %zero = dfg.const dense<0> : tensor<i64> : tensor<i64> loc("zero")
  %values = dfg.const dense<[1, 2]> : tensor<2xi64> : tensor<2xi64> loc("values")
  %words = dfg.const dense<["a", "b"]> : tensor<2x!dfg.string> : tensor<2x!dfg.string> loc("words")
  %table = dfg.opaque "HashTableV2"() : () -> tensor<!dfg.resource> loc("table")
  dfg.opaque "LookupTableImportV2"(%table, %words, %values) : (tensor<!dfg.resource>, tensor<2x!dfg.string>, tensor<2xi64>) -> () loc("fill")
  %found = dfg.opaque "LookupTableFindV2"(%table, %x, %zero) : (tensor<!dfg.resource>, tensor<?x!dfg.string>, tensor<i64>) -> tensor<?xi64> loc("found")
  %other = dfg.opaque "HashTableV2"() : () -> tensor<!dfg.resource> loc("other")
  dfg.opaque "LookupTableImportV2"(%other, %values, %values) : (tensor<!dfg.resource>, tensor<2xi64>, tensor<2xi64>) -> () loc("fill_other")
  %found_other = dfg.opaque "LookupTableFindV2"(%other, %i, %zero) : (tensor<!dfg.resource>, tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("found_other")
  %k, %v = dfg.opaque "LookupTableExportV2"(%other) : (tensor<!dfg.resource>) -> (tensor<?xi64>, tensor<?xi64>) loc("export")
}
