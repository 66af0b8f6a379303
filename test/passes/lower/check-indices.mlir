// RUN: distc-opt %s --dfg-infer-shapes --dfg-fold --convert-dfg-to-drt=asserts=true --split-input-file | FileCheck %s
// RUN: distc-opt %s --dfg-infer-shapes --dfg-fold --convert-dfg-to-drt --split-input-file | FileCheck %s --check-prefix=NONE
// NONE-NOT: drt.check_indices

// Once for all gathers of the same rows; the feed that indices come from is named, and how many belong to a row of it.
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[IDS:.*]] = drt.feed {{.*}}name = "ids"
// CHECK: drt.check_indices %[[IDS]] {name = "the feed 'ids'", per_row = 2 : i64, sizes = array<i64: 10>}
// CHECK-NOT: drt.check_indices
dfg.variable @w : tensor<10x2xf32> {trainable}
dfg.func @step() -> tensor<4x2x2xf32> attributes {dfg.fetches = ["a:0"], dfg.entry = "step"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<10x2xf32>> loc("w")
  %ids = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<4x2xi32> loc("ids")
  %rows = dfg.resource_gather %w, %ids : (!dfg.ref<tensor<10x2xf32>>, tensor<4x2xi32>) -> tensor<4x2x2xf32> loc("rows")
  %again = dfg.resource_gather %w, %ids : (!dfg.ref<tensor<10x2xf32>>, tensor<4x2xi32>) -> tensor<4x2x2xf32> loc("again")
  %a = dfg.add_v2 %rows, %again : (tensor<4x2x2xf32>, tensor<4x2x2xf32>) -> tensor<4x2x2xf32> loc("a")
  dfg.return %a : tensor<4x2x2xf32>
}

// -----

// Labels; and padding behind distinct values, whose index is -1.
// CHECK-LABEL: drt.entry "step"
// CHECK: drt.check_indices %{{.*}} {name = "the feed 'labels'", per_row = 0 : i64, sizes = array<i64: 3>}
// CHECK: drt.check_indices %{{.*}} {name = "'unique'", padded, per_row = 0 : i64, sizes = array<i64: 10>}
dfg.variable @w : tensor<10x2xf32> {trainable}
dfg.func @step() -> (tensor<4xf32>, tensor<?x2xf32>) attributes {dfg.fetches = ["loss:0", "rows:0"], dfg.entry = "step"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<10x2xf32>> loc("w")
  %labels = dfg.placeholder : () -> tensor<4xi32> loc("labels")
  %logits = dfg.placeholder : () -> tensor<4x3xf32> loc("logits")
  %loss, %backprop = dfg.sparse_softmax_cross_entropy_with_logits %logits, %labels
    : (tensor<4x3xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4x3xf32>) loc("loss")
  %y, %idx = dfg.unique %labels : (tensor<4xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("unique")
  %unique_rows = dfg.resource_gather %w, %y : (!dfg.ref<tensor<10x2xf32>>, tensor<?xi32>) -> tensor<?x2xf32> loc("unique_rows")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %rows = dfg.gather_v2 %unique_rows, %idx, %axis : (tensor<?x2xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x2xf32> loc("rows")
  dfg.return %loss, %rows : tensor<4xf32>, tensor<?x2xf32>
}

// -----

// A shard of a split variable: the feed is named, although other shards' rows are replaced by 0.
// CHECK-LABEL: drt.entry "step"
// CHECK: drt.check_indices {{.*}} {name = "the feed 'ids'", per_row = 1 : i64, sizes = array<i64: 10>}
dfg.variable @w : tensor<10x2xf32> {trainable}
dfg.func @step() -> tensor<4x2xf32> attributes {dfg.fetches = ["rows:0"], dfg.entry = "step"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<10x2xf32>> loc("w")
  %ids = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<4xi32> loc("ids")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %ten = dfg.const dense<10> : tensor<i32> : tensor<i32> loc("ten")
  %others = dfg.greater_equal %ids, %ten : (tensor<4xi32>, tensor<i32>) -> tensor<4xi1> loc("others")
  %own = dfg.select_v2 %others, %zero, %ids : (tensor<4xi1>, tensor<i32>, tensor<4xi32>) -> tensor<4xi32> loc("own")
  %rows = dfg.resource_gather %w, %own : (!dfg.ref<tensor<10x2xf32>>, tensor<4xi32>) -> tensor<4x2xf32> loc("rows")
  dfg.return %rows : tensor<4x2xf32>
}

// -----

// What is taken of 0, 1, 2, ... are the indices, and no table is read. They are the feed's, -1 being the last; copies of
// an element are of its row.
// CHECK-LABEL: drt.entry "step"
// CHECK: drt.check_indices %[[ROWS:.*]] {name = "the feed 'ids'", per_row = 6 : i64, sizes = array<i64: 10>}
// CHECK: linalg.generic
// CHECK: %[[INDEX:.*]] = tensor.extract %[[ROWS]]
// CHECK: %[[ROW:.*]] = arith.index_cast %[[INDEX]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[ROW]]
// CHECK-NOT: tensor.extract
// CHECK: arith.select %[[INSIDE]]
dfg.func @step() -> tensor<4x6xi32> attributes {dfg.fetches = ["rows:0"], dfg.entry = "step"} {
  %ids = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<4x1xi32> loc("ids")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %ten = dfg.const dense<10> : tensor<i32> : tensor<i32> loc("ten")
  %below = dfg.less %ids, %zero : (tensor<4x1xi32>, tensor<i32>) -> tensor<4x1xi1> loc("below")
  %from_end = dfg.add_v2 %ids, %ten : (tensor<4x1xi32>, tensor<i32>) -> tensor<4x1xi32> loc("from_end")
  %own = dfg.select_v2 %below, %from_end, %ids : (tensor<4x1xi1>, tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x1xi32> loc("own")
  %sizes = dfg.const dense<[4, 6]> : tensor<2xi32> : tensor<2xi32> loc("sizes")
  %copies = dfg.broadcast_to %own, %sizes : (tensor<4x1xi32>, tensor<2xi32>) -> tensor<4x6xi32> loc("copies")
  %all = dfg.range %zero, %ten, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<10xi32> loc("all")
  %rows = dfg.gather_v2 %all, %copies, %zero : (tensor<10xi32>, tensor<4x6xi32>, tensor<i32>) -> tensor<4x6xi32> loc("rows")
  dfg.return %rows : tensor<4x6xi32>
}

// -----

// Along the first axis of what was copied there are no rows.
// CHECK-LABEL: drt.entry "step"
// CHECK: drt.check_indices %{{.*}} {name = "the feed 'ids'", per_row = 0 : i64, sizes = array<i64: 10>}
dfg.variable @w : tensor<10x2xf32> {trainable}
dfg.func @step() -> tensor<6x4x2xf32> attributes {dfg.fetches = ["rows:0"], dfg.entry = "step"} {
  %w = dfg.var_handle @w : !dfg.ref<tensor<10x2xf32>> loc("w")
  %ids = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<4xi32> loc("ids")
  %sizes = dfg.const dense<[6, 4]> : tensor<2xi32> : tensor<2xi32> loc("sizes")
  %copies = dfg.broadcast_to %ids, %sizes : (tensor<4xi32>, tensor<2xi32>) -> tensor<6x4xi32> loc("copies")
  %rows = dfg.resource_gather %w, %copies : (!dfg.ref<tensor<10x2xf32>>, tensor<6x4xi32>) -> tensor<6x4x2xf32> loc("rows")
  dfg.return %rows : tensor<6x4x2xf32>
}
