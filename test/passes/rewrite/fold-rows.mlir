// RUN: distc-opt %s --dfg-fold-rows --split-input-file | FileCheck %s

// All rows in their order, as vectorized_map takes them: by the size that all of its inputs have, and of one row always row 0.
// CHECK-LABEL: dfg.graph
// CHECK: %[[X:.*]] = dfg.placeholder {{.*}} -> tensor<?x4xf32>
// CHECK: %[[Y:.*]] = dfg.placeholder {{.*}} -> tensor<?xi32>
// CHECK: dfg.exp %[[X]]
// CHECK: dfg.identity %[[Y]]
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
  %y = dfg.placeholder : () -> tensor<?xi32> loc("y")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %first = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("first")
  %n = dfg.size %y : (tensor<?xi32>) -> tensor<i32> loc("n")
  %both = dfg.pack %n, %n : (tensor<i32>, tensor<i32>) -> tensor<2xi32> loc("both")
  %count = dfg.max %both, %first : (tensor<2xi32>, tensor<1xi32>) -> tensor<i32> loc("count")
  %numbers = dfg.range %zero, %count, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32> loc("numbers")
  %several = dfg.greater %n, %one : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("several")
  %taken = dfg.select_v2 %several, %numbers, %zero : (tensor<i1>, tensor<?xi32>, tensor<i32>) -> tensor<?xi32> loc("taken")
  %rows = dfg.gather_v2 %x, %taken, %zero : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("rows")
  %exp = dfg.exp %rows : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("exp")
  %labels = dfg.gather_v2 %y, %numbers, %zero : (tensor<?xi32>, tensor<?xi32>, tensor<i32>) -> tensor<?xi32> loc("labels")
  %same = dfg.identity %labels : (tensor<?xi32>) -> tensor<?xi32> loc("same")
}

// -----

// Not by other numbers, of fewer rows, of columns, or where another row is taken instead.
// CHECK-LABEL: dfg.graph
// CHECK: %[[BEHIND:.*]] = dfg.gather_v2
// CHECK: %[[FIVE:.*]] = dfg.gather_v2
// CHECK: %[[COLUMNS:.*]] = dfg.gather_v2
// CHECK: %[[OTHERS:.*]] = dfg.gather_v2
// CHECK: dfg.exp %[[BEHIND]]
// CHECK: dfg.exp %[[FIVE]]
// CHECK: dfg.exp %[[COLUMNS]]
// CHECK: dfg.exp %[[OTHERS]]
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?x7xf32> loc("x")
  %y = dfg.placeholder : () -> tensor<?xi32> loc("y")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %five = dfg.const dense<5> : tensor<i32> : tensor<i32> loc("five")
  %n = dfg.size %y : (tensor<?xi32>) -> tensor<i32> loc("n")
  %numbers = dfg.range %one, %n, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32> loc("numbers")
  %behind = dfg.gather_v2 %x, %numbers, %zero : (tensor<?x7xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x7xf32> loc("behind")
  %few = dfg.range %zero, %five, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5xi32> loc("few")
  %some = dfg.gather_v2 %x, %few, %zero : (tensor<?x7xf32>, tensor<5xi32>, tensor<i32>) -> tensor<5x7xf32> loc("some")
  %all = dfg.range %zero, %n, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32> loc("all")
  %columns = dfg.gather_v2 %x, %all, %one : (tensor<?x7xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x?xf32> loc("columns")
  %many = dfg.greater %n, %five : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("many")
  %chosen = dfg.select_v2 %many, %all, %zero : (tensor<i1>, tensor<?xi32>, tensor<i32>) -> tensor<?xi32> loc("chosen")
  %others = dfg.gather_v2 %x, %chosen, %zero : (tensor<?x7xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x7xf32> loc("others")
  %a = dfg.exp %behind : (tensor<?x7xf32>) -> tensor<?x7xf32> loc("a")
  %b = dfg.exp %some : (tensor<5x7xf32>) -> tensor<5x7xf32> loc("b")
  %c = dfg.exp %columns : (tensor<?x?xf32>) -> tensor<?x?xf32> loc("c")
  %d = dfg.exp %others : (tensor<?x7xf32>) -> tensor<?x7xf32> loc("d")
}

// -----

// Vectors that one mask chooses are as long as each other: joined and made rows of a matrix they are stacked.
// CHECK-LABEL: dfg.graph
// CHECK: %[[A:.*]] = dfg.gather_v2 %x
// CHECK: %[[B:.*]] = dfg.gather_v2 %y
// CHECK: %[[STACKED:.*]] = dfg.pack %[[A]], %[[B]]
// CHECK: dfg.transpose %[[STACKED]]
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?xi32> loc("x")
  %y = dfg.placeholder : () -> tensor<?xi32> loc("y")
  %mask = dfg.placeholder : () -> tensor<?xi1> loc("mask")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %flat = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32> loc("flat")
  %m = dfg.reshape %mask, %flat : (tensor<?xi1>, tensor<1xi32>) -> tensor<?xi1> loc("m")
  %at = dfg.opaque "Where"(%m) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
  %i = dfg.squeeze %at {squeeze_dims = [1]} : (tensor<?x1xi64>) -> tensor<?xi64> loc("i")
  %a = dfg.gather_v2 %x, %i, %zero : (tensor<?xi32>, tensor<?xi64>, tensor<i32>) -> tensor<?xi32> loc("a")
  %at2 = dfg.opaque "Where"(%mask) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at2")
  %i2 = dfg.squeeze %at2 {squeeze_dims = [1]} : (tensor<?x1xi64>) -> tensor<?xi64> loc("i2")
  %b = dfg.gather_v2 %y, %i2, %zero : (tensor<?xi32>, tensor<?xi64>, tensor<i32>) -> tensor<?xi32> loc("b")
  %joined = dfg.concat_v2 %a, %b, %zero : (tensor<?xi32>, tensor<?xi32>, tensor<i32>) -> tensor<?xi32> loc("joined")
  %two = dfg.const dense<[2, -1]> : tensor<2xi32> : tensor<2xi32> loc("two")
  %rows = dfg.reshape %joined, %two : (tensor<?xi32>, tensor<2xi32>) -> tensor<2x?xi32> loc("rows")
  %turn = dfg.const dense<[1, 0]> : tensor<2xi32> : tensor<2xi32> loc("turn")
  %pairs = dfg.transpose %rows, %turn : (tensor<2x?xi32>, tensor<2xi32>) -> tensor<?x2xi32> loc("pairs")
}

// -----

// Those of two masks may not be.
// CHECK-LABEL: dfg.graph
// CHECK-NOT: dfg.pack
dfg.graph {
  %x = dfg.placeholder : () -> tensor<?xi32> loc("x")
  %mask = dfg.placeholder : () -> tensor<?xi1> loc("mask")
  %other = dfg.placeholder : () -> tensor<?xi1> loc("other")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %at = dfg.opaque "Where"(%mask) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
  %i = dfg.squeeze %at {squeeze_dims = [1]} : (tensor<?x1xi64>) -> tensor<?xi64> loc("i")
  %a = dfg.gather_v2 %x, %i, %zero : (tensor<?xi32>, tensor<?xi64>, tensor<i32>) -> tensor<?xi32> loc("a")
  %at2 = dfg.opaque "Where"(%other) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at2")
  %i2 = dfg.squeeze %at2 {squeeze_dims = [1]} : (tensor<?x1xi64>) -> tensor<?xi64> loc("i2")
  %b = dfg.gather_v2 %x, %i2, %zero : (tensor<?xi32>, tensor<?xi64>, tensor<i32>) -> tensor<?xi32> loc("b")
  %joined = dfg.concat_v2 %a, %b, %zero : (tensor<?xi32>, tensor<?xi32>, tensor<i32>) -> tensor<?xi32> loc("joined")
  %two = dfg.const dense<[2, -1]> : tensor<2xi32> : tensor<2xi32> loc("two")
  %rows = dfg.reshape %joined, %two : (tensor<?xi32>, tensor<2xi32>) -> tensor<2x?xi32> loc("rows")
}
