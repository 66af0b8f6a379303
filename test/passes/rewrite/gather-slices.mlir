// RUN: distc-opt %s --dfg-gather-slices --split-input-file | FileCheck %s

// Of images the second axis alone: of the examples all are taken.
// CHECK-LABEL: dfg.graph
// CHECK: %[[X:.*]] = dfg.placeholder
// CHECK: %[[BEGIN:.*]] = dfg.placeholder
// CHECK: %[[PLACE:.*]] = dfg.strided_slice %[[BEGIN]]
// CHECK: %[[POSITIONS:.*]] = dfg.add_v2 %[[PLACE]], {{.*}} -> tensor<4xi32>
// CHECK: dfg.gather_v2 %[[X]], %[[POSITIONS]], {{.*}} -> tensor<?x4xf32>
// CHECK-NOT: dfg.slice
dfg.graph attributes {loss = "y"} {
  %x = dfg.placeholder : () -> tensor<?x8xf32> loc("x")
  %begin = dfg.placeholder : () -> tensor<2xi32> loc("begin")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %four = dfg.const dense<4> : tensor<i32> : tensor<i32> loc("four")
  %shape = dfg.shape %x : (tensor<?x8xf32>) -> tensor<2xi32> loc("shape")
  %n = dfg.gather_v2 %shape, %zero, %zero : (tensor<2xi32>, tensor<i32>, tensor<i32>) -> tensor<i32> loc("n")
  %size = dfg.pack %n, %four : (tensor<i32>, tensor<i32>) -> tensor<2xi32> loc("size")
  %y = dfg.slice %x, %begin, %size : (tensor<?x8xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32> loc("y")
}

// -----

// A size that data decide, too, stays.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.slice
dfg.graph attributes {loss = "y"} {
  %x = dfg.placeholder : () -> tensor<8xf32> loc("x")
  %begin = dfg.placeholder : () -> tensor<1xi32> loc("begin")
  %size = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32> loc("size")
  %y = dfg.slice %x, %begin, %size : (tensor<8xf32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32> loc("y")
}

// -----

// `x[:, i : i + 4, j]`: what is taken of an axis is how much more its end is; one element may be counted from the end.
// CHECK-LABEL: dfg.graph
// CHECK-DAG: %[[X:.*]] = dfg.placeholder : () -> tensor<?x8x5xf32>
// CHECK-DAG: %[[BEGIN:.*]] = dfg.pack
// CHECK: %[[I:.*]] = dfg.strided_slice %[[BEGIN]]
// CHECK: %[[AT:.*]] = dfg.add_v2 %[[I]], {{.*}} -> tensor<4xi32>
// CHECK: %[[ROWS:.*]] = dfg.gather_v2 %[[X]], %[[AT]], {{.*}} -> tensor<?x4x5xf32>
// CHECK: %[[J:.*]] = dfg.strided_slice %[[BEGIN]]
// CHECK: %[[FROM_START:.*]] = dfg.select_v2 {{.*}}, %[[J]]
// CHECK: %[[COLUMN:.*]] = dfg.gather_v2 %[[ROWS]], {{.*}} -> tensor<?x4x1xf32>
// CHECK: dfg.strided_slice %[[COLUMN]], {{.*}} {begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 4 : i64} {{.*}} -> tensor<?x4xf32>
dfg.graph attributes {loss = "y"} {
  %x = dfg.placeholder : () -> tensor<?x8x5xf32> loc("x")
  %i = dfg.placeholder : () -> tensor<i32> loc("i")
  %j = dfg.placeholder : () -> tensor<i32> loc("j")
  %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %four = dfg.const dense<4> : tensor<i32> : tensor<i32> loc("four")
  %last = dfg.add_v2 %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("last")
  %next = dfg.add_v2 %j, %one : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("next")
  %begin = dfg.pack %zero, %i, %j : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xi32> loc("begin")
  %end = dfg.pack %zero, %last, %next : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xi32> loc("end")
  %strides = dfg.const dense<1> : tensor<3xi32> : tensor<3xi32> loc("strides")
  %y = dfg.strided_slice %x, %begin, %end, %strides {begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 4 : i64} : (tensor<?x8x5xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<?x?xf32> loc("y")
}

// -----

// Whose end is another number, or open, stays.
// CHECK-LABEL: dfg.graph
// CHECK-NOT: dfg.gather_v2
// CHECK-COUNT-2: dfg.strided_slice
dfg.graph attributes {loss = "y"} {
  %x = dfg.placeholder : () -> tensor<8xf32> loc("x")
  %i = dfg.placeholder : () -> tensor<1xi32> loc("i")
  %j = dfg.placeholder : () -> tensor<1xi32> loc("j")
  %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("one")
  %y = dfg.strided_slice %x, %i, %j, %one : (tensor<8xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32> loc("y")
  %z = dfg.strided_slice %x, %i, %j, %one {end_mask = 1 : i64} : (tensor<8xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32> loc("z")
}

// -----

// Its gradient lies between zeros.
// CHECK-LABEL: dfg.graph
// CHECK: %[[TAKEN:.*]] = dfg.strided_slice_grad {{.*}} -> tensor<4xf32>
// CHECK: %[[FROM:.*]] = dfg.sub %{{.*}}, %{{.*}} : (tensor<8xi32>, tensor<1xi32>) -> tensor<8xi32>
// CHECK: %[[INSIDE:.*]] = dfg.logical_and
// CHECK: %[[LAID:.*]] = dfg.gather_v2 %[[TAKEN]], {{.*}} -> tensor<8xf32>
// CHECK: dfg.select_v2 %{{.*}}, %[[LAID]], %{{.*}} -> tensor<8xf32>
dfg.graph attributes {loss = "y"} {
  %dy = dfg.placeholder : () -> tensor<4xf32> loc("dy")
  %shape = dfg.const dense<8> : tensor<1xi32> : tensor<1xi32> loc("shape")
  %i = dfg.placeholder : () -> tensor<1xi32> loc("i")
  %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("one")
  %four = dfg.const dense<4> : tensor<1xi32> : tensor<1xi32> loc("four")
  %end = dfg.add_v2 %i, %four : (tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32> loc("end")
  %y = dfg.strided_slice_grad %shape, %i, %end, %one, %dy : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<4xf32>) -> tensor<8xf32> loc("y")
}

// -----

// So does the gradient of a slice, which TensorFlow writes as a padding.
// CHECK-LABEL: dfg.graph
// CHECK-NOT: dfg.pad
// CHECK: %[[LAID:.*]] = dfg.gather_v2 %{{.*}} -> tensor<?x8xf32>
// CHECK: dfg.select_v2 %{{.*}}, %[[LAID]], %{{.*}} -> tensor<?x8xf32>
dfg.graph attributes {loss = "y"} {
  %x = dfg.placeholder : () -> tensor<?x8xf32> loc("x")
  %dy = dfg.placeholder : () -> tensor<?x4xf32> loc("dy")
  %begin = dfg.placeholder : () -> tensor<2xi32> loc("begin")
  %column = dfg.const dense<[2, 1]> : tensor<2xi32> : tensor<2xi32> loc("column")
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %all = dfg.shape %x : (tensor<?x8xf32>) -> tensor<2xi32> loc("all")
  %some = dfg.shape %dy : (tensor<?x4xf32>) -> tensor<2xi32> loc("some")
  %rest = dfg.sub %all, %some : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32> loc("rest")
  %behind = dfg.sub %rest, %begin : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32> loc("behind")
  %a = dfg.reshape %begin, %column : (tensor<2xi32>, tensor<2xi32>) -> tensor<2x1xi32> loc("a")
  %b = dfg.reshape %behind, %column : (tensor<2xi32>, tensor<2xi32>) -> tensor<2x1xi32> loc("b")
  %paddings = dfg.concat_v2 %a, %b, %one : (tensor<2x1xi32>, tensor<2x1xi32>, tensor<i32>) -> tensor<2x2xi32> loc("paddings")
  %y = dfg.pad %dy, %paddings : (tensor<?x4xf32>, tensor<2x2xi32>) -> tensor<?x?xf32> loc("y")
}

// -----

// `x[i * n : (i + 1) * n]` takes n, of a count that two nodes cast.
// CHECK-LABEL: dfg.graph
// CHECK: %[[X:.*]] = dfg.placeholder
// CHECK: dfg.gather_v2 %[[X]], {{.*}} -> tensor<3x5xf32>
// CHECK-NOT: -> tensor<?x5xf32>
dfg.graph attributes {loss = "y"} {
  %x = dfg.placeholder : () -> tensor<12x5xf32> loc("x")
  %step = dfg.placeholder : () -> tensor<i64> loc("step")
  %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
  %three = dfg.const dense<3> : tensor<i32> : tensor<i32> loc("three")
  %i = dfg.cast %step : (tensor<i64>) -> tensor<i32> loc("i")
  %again = dfg.cast %step : (tensor<i64>) -> tensor<i32> loc("again")
  %first = dfg.mul %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("first")
  %next = dfg.add_v2 %again, %one : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("next")
  %last = dfg.mul %three, %next : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("last")
  %begin = dfg.pack %first : (tensor<i32>) -> tensor<1xi32> loc("begin")
  %end = dfg.pack %last : (tensor<i32>) -> tensor<1xi32> loc("end")
  %strides = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("strides")
  %y = dfg.strided_slice %x, %begin, %end, %strides : (tensor<12x5xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?x5xf32> loc("y")
}

// -----

// As much as data decide: `x[i : 2 * i]`.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.strided_slice
// CHECK-NOT: dfg.gather_v2
dfg.graph attributes {loss = "y"} {
  %x = dfg.placeholder : () -> tensor<12x5xf32> loc("x")
  %i = dfg.placeholder : () -> tensor<i32> loc("i")
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32> loc("two")
  %last = dfg.mul %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("last")
  %begin = dfg.pack %i : (tensor<i32>) -> tensor<1xi32> loc("begin")
  %end = dfg.pack %last : (tensor<i32>) -> tensor<1xi32> loc("end")
  %strides = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("strides")
  %y = dfg.strided_slice %x, %begin, %end, %strides : (tensor<12x5xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?x5xf32> loc("y")
}
