// RUN: split-file %s %t
// RUN: distc-opt %t/graph.mlir --dist-apply-strategy="strategy=%t/rows.pbtxt replicas=1" --dist-partition-variables --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=ROWS
// RUN: distc-opt %t/columns.mlir --dist-partition-variables --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=COLUMNS
// RUN: distc-opt %t/references.mlir --dist-apply-strategy="strategy=%t/rows.pbtxt replicas=1" --dist-partition-variables --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=REFERENCES

// ROWS: %[[IDS:.*]] = dfg.placeholder : () -> tensor<?xi32>
// ROWS: %[[T0:.*]] = dfg.var_handle @"table/part_0"
// ROWS: %[[T1:.*]] = dfg.var_handle @"table/part_1"
// Each shard gives a row for each index, its first one for those of other shards; the owner's is chosen. The first shard's
// gather gets an index that is outside of the whole table as it is, so that it is refused when the program runs.
// ROWS: dfg.greater_equal %[[IDS]], %[[END0:.*]] : (tensor<?xi32>, tensor<i32>)
// ROWS: %[[END:.*]] = dfg.const dense<5> : tensor<i32>
// ROWS: dfg.less %[[IDS]], %[[END]]
// ROWS: %[[OTHERS:.*]] = dfg.logical_and
// ROWS: %[[ZERO:.*]] = dfg.const dense<0> : tensor<i32>
// ROWS: %[[LOCAL0:.*]] = dfg.select_v2 %[[OTHERS]], %[[ZERO]], %[[IDS]]
// ROWS: %[[G0:.*]] = dfg.resource_gather %[[T0]], %[[LOCAL0]] : (!dfg.ref<tensor<3x2xf32>>, tensor<?xi32>) -> tensor<?x2xf32>
// ROWS: %[[THREE:.*]] = dfg.const dense<3> : tensor<i32>
// ROWS: %[[FROM:.*]] = dfg.greater_equal %[[IDS]], %[[THREE]]
// ROWS: %[[FIVE:.*]] = dfg.const dense<5> : tensor<i32>
// ROWS: %[[TO:.*]] = dfg.less %[[IDS]], %[[FIVE]]
// ROWS: %[[OWN1:.*]] = dfg.logical_and %[[FROM]], %[[TO]]
// ROWS: dfg.sub %[[IDS]]
// ROWS: %[[LOCAL1:.*]] = dfg.select_v2 %[[OWN1]]
// ROWS: %[[G1:.*]] = dfg.resource_gather %[[T1]], %[[LOCAL1]] : (!dfg.ref<tensor<2x2xf32>>, tensor<?xi32>) -> tensor<?x2xf32>
// The last node alone has the name that the update waits for.
// ROWS: %[[MASK:.*]] = dfg.expand_dims %[[OWN1]], %{{.*}} : (tensor<?xi1>, tensor<i32>) -> tensor<?x1xi1> loc("gather/rows")
// ROWS: dfg.select_v2 %[[MASK]], %[[G1]], %[[G0]] : (tensor<?x1xi1>, tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32> loc("gather")
// The variable's shape is that of the whole.
// ROWS: dfg.const dense<[5, 2]> : tensor<2xi32> loc("shape")
// ROWS: %[[I0:.*]], %[[V0:.*]] = dist.own_rows 3 from 0 (%[[IDS]], %[[V:.*]]) : (tensor<?xi32>, tensor<?x2xf32>) -> (tensor<?xi32>, tensor<?x2xf32>)
// ROWS: %[[I1:.*]], %[[V1:.*]] = dist.own_rows 2 from 3 (%[[IDS]], %[[V]])
// ROWS: dfg.scatter_sub %[[T0]], %[[I0]], %[[V0]] {control = ["gather"]}
// ROWS: dfg.scatter_sub %[[T1]], %[[I1]], %[[V1]]

// Columns: a part of every row.
// COLUMNS: %[[IDS:.*]] = dfg.placeholder : () -> tensor<?xi32>
// COLUMNS: %[[V:.*]]:2 = dfg.split
// COLUMNS: %[[G0:.*]] = dfg.resource_gather %[[T0:.*]], %[[IDS]] : (!dfg.ref<tensor<5x1xf32>>, tensor<?xi32>) -> tensor<?x1xf32>
// COLUMNS: %[[G1:.*]] = dfg.resource_gather %[[T1:.*]], %[[IDS]]
// COLUMNS: dfg.concat_v2 %[[G0]], %[[G1]], %{{.*}} -> tensor<?x2xf32> loc("gather")
// COLUMNS: dfg.scatter_sub %[[T0]], %[[IDS]], %[[V]]#0
// COLUMNS: dfg.scatter_sub %[[T1]], %[[IDS]], %[[V]]#1

// Rows of a reference variable are taken of its value: of the shards' values then. What takes columns has the whole.
// REFERENCES: %[[R0:.*]] = dfg.read_variable {{.*}} -> tensor<3x2xf32>
// REFERENCES: %[[R1:.*]] = dfg.read_variable {{.*}} -> tensor<2x2xf32>
// REFERENCES: %[[WHOLE:.*]] = dfg.concat_v2 %[[R0]], %[[R1]]
// REFERENCES: %[[READ:.*]] = dfg.identity %[[WHOLE]] {{.*}}loc("table/read")
// REFERENCES: %[[G0:.*]] = dfg.gather_v2 %[[R0]], {{.*}} -> tensor<?x2xf32> loc("gather/part_0")
// REFERENCES: %[[G1:.*]] = dfg.gather_v2 %[[R1]], {{.*}} -> tensor<?x2xf32> loc("gather/part_1")
// REFERENCES: dfg.select_v2 %{{.*}}, %[[G1]], %[[G0]] {{.*}} loc("gather")
// REFERENCES: dfg.gather_v2 %[[READ]], {{.*}} -> tensor<5x?xf32> loc("columns")
// REFERENCES: dfg.gather %[[R0]], {{.*}} loc("older/part_0")
// REFERENCES: dfg.gather %[[R1]], {{.*}} loc("older/part_1")

//--- rows.pbtxt
node_config {
  var_name: "table" partitioner: "2,1"
  part_config { var_name: "table/part_0" AllReduceSynchronizer { group: 0 } }
  part_config { var_name: "table/part_1" AllReduceSynchronizer { group: 1 } }
}
//--- graph.mlir
dfg.variable @table : tensor<5x2xf32> {trainable, dist.parts = #dist.parts<[1, 2]>, dist.sync = #dist.sync<all_reduce>}
dfg.graph attributes {train_op = "update"} {
  %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
  %v = dfg.placeholder : () -> tensor<?x2xf32> loc("v")
  %h = dfg.var_handle @table : !dfg.ref<tensor<5x2xf32>> loc("table")
  %rows = dfg.resource_gather %h, %ids : (!dfg.ref<tensor<5x2xf32>>, tensor<?xi32>) -> tensor<?x2xf32> loc("gather")
  %shape = dfg.variable_shape %h : (!dfg.ref<tensor<5x2xf32>>) -> tensor<2xi32> loc("shape")
  dfg.scatter_sub %h, %ids, %v {control = ["gather"]} : (!dfg.ref<tensor<5x2xf32>>, tensor<?xi32>, tensor<?x2xf32>) -> () loc("update")
}
//--- columns.mlir
// Builders split gradients of rows by rows alone; the pass can do it.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0"] replicas 1 from 0>]
  dfg.variable @table : tensor<5x2xf32> {trainable, dist.parts = #dist.parts<[1, 2]>, dist.sync = #dist.sync<all_reduce>}
  dfg.graph attributes {train_op = "update"} {
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %v = dfg.placeholder : () -> tensor<?x2xf32> loc("v")
    %h = dfg.var_handle @table : !dfg.ref<tensor<5x2xf32>> loc("table")
    %rows = dfg.resource_gather %h, %ids : (!dfg.ref<tensor<5x2xf32>>, tensor<?xi32>) -> tensor<?x2xf32> loc("gather")
    dfg.scatter_sub %h, %ids, %v : (!dfg.ref<tensor<5x2xf32>>, tensor<?xi32>, tensor<?x2xf32>) -> () loc("update")
  }
}
//--- references.mlir
dfg.variable @table : tensor<5x2xf32> {kind = "ref", trainable}
dfg.graph attributes {train_op = "update"} {
  %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
  %v = dfg.placeholder : () -> tensor<?x2xf32> loc("v")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %h = dfg.var_handle @table : !dfg.ref<tensor<5x2xf32>> loc("table")
  %value = dfg.read_variable %h {implicit} : (!dfg.ref<tensor<5x2xf32>>) -> tensor<5x2xf32>
  %read = dfg.identity %value {tf = {_class = ["loc:@table"]}} : (tensor<5x2xf32>) -> tensor<5x2xf32> loc("table/read")
  %rows = dfg.gather_v2 %read, %ids, %zero : (tensor<5x2xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x2xf32> loc("gather")
  %columns = dfg.gather_v2 %read, %ids, %one : (tensor<5x2xf32>, tensor<?xi32>, tensor<i32>) -> tensor<5x?xf32> loc("columns")
  %older = dfg.gather %value, %ids : (tensor<5x2xf32>, tensor<?xi32>) -> tensor<?x2xf32> loc("older")
  %u = dfg.scatter_sub %h, %ids, %v : (!dfg.ref<tensor<5x2xf32>>, tensor<?xi32>, tensor<?x2xf32>) -> tensor<5x2xf32> loc("update")
}
