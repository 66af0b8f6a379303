// RUN: distc-opt %s --split-input-file --dfg-mask-rows --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// Rows that a mask chooses stay where they are; their mean is the sum of those that are there, divided by their number.
// CHECK-LABEL: @masked_mean
module @masked_mean {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %last = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("last")
    %both = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("both")
    %first = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("first")
    // CHECK-NOT: "Where"
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    %flat = dfg.squeeze %at {squeeze_dims = [1]} : (tensor<?x1xi64>) -> tensor<?xi64> loc("flat")
    // CHECK: %[[ROWS:.*]] = dfg.identity %{{.*}} loc("rows")
    %rows = dfg.gather_v2 %x, %flat, %first {batch_dims = 0 : i64} : (tensor<?x4xf32>, tensor<?xi64>, tensor<i32>) -> tensor<?x4xf32> loc("rows")
    // CHECK: %[[SQUARE:.*]] = dfg.square %[[ROWS]]
    %square = dfg.square %rows : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("square")
    // CHECK: %[[THERE:.*]] = dfg.select_v2 %{{.*}}, %[[SQUARE]], %{{.*}} loc("loss/select_v2")
    // CHECK: %[[SUM:.*]] = dfg.sum %[[THERE]]
    // CHECK: %[[COUNT:.*]] = dfg.sum %{{.*}} loc("loss/sum")
    // CHECK: dfg.real_div %[[SUM]]
    // CHECK: loc("loss")
    %loss = dfg.mean %square, %both : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// As a size the number of rows is that of all; as a number it is that of those that are there.
// CHECK-LABEL: @sizes
module @sizes {
  dfg.graph attributes {loss = "loss:0"} {
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("one")
    %value = dfg.const dense<2.0> : tensor<1xf32> : tensor<1xf32> loc("value")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    // CHECK: %[[SHAPE:.*]] = dfg.shape %{{.*}} loc("shape")
    %shape = dfg.shape %at : (tensor<?x1xi64>) -> tensor<2xi32> loc("shape")
    // CHECK: %[[SIZE:.*]] = dfg.strided_slice %[[SHAPE]]{{.*}} loc("size")
    %size = dfg.strided_slice %shape, %zero, %one, %one : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<1xi32> loc("size")
    // CHECK: %[[ALIKE:.*]] = dfg.tile %{{.*}}, %[[SIZE]]
    %alike = dfg.tile %value, %size : (tensor<1xf32>, tensor<1xi32>) -> tensor<?xf32> loc("alike")
    // CHECK: dfg.select_v2 %{{.*}}, %[[ALIKE]]
    %sum = dfg.sum %alike, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
    // CHECK: %[[TRUE:.*]] = dfg.strided_slice {{.*}} loc("size/of_rows")
    // CHECK: dfg.cast %[[TRUE]]
    %number = dfg.cast %size : (tensor<1xi32>) -> tensor<1xf32> loc("number")
    %loss = dfg.real_div %sum, %number : (tensor<f32>, tensor<1xf32>) -> tensor<1xf32> loc("loss")
  }
}

// -----

// As many rows as follow from the batch: its own indices, and three more.
// CHECK-LABEL: @others_than_the_batch
module @others_than_the_batch {
  dfg.graph attributes {loss = "loss:0"} {
    %id = dfg.placeholder : () -> tensor<?xi32> loc("id")
    %more = dfg.const dense<[3, 0, 7]> : tensor<3xi32> : tensor<3xi32> loc("more")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %two = dfg.const dense<2> : tensor<i32> : tensor<i32> loc("two")
    %table = dfg.const dense<1.0> : tensor<8x4xf32> : tensor<8x4xf32> loc("table")
    %all = dfg.concat_v2 %id, %more, %axis : (tensor<?xi32>, tensor<3xi32>, tensor<i32>) -> tensor<?xi32> loc("all")
    %part = dfg.floor_mod %all, %two : (tensor<?xi32>, tensor<i32>) -> tensor<?xi32> loc("part")
    // CHECK-NOT: dfg.dynamic_partition
    %ids:2 = dfg.dynamic_partition %all, %part : (tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("ids")
    // CHECK: %[[INDEX:.*]] = dfg.select_v2 {{.*}} loc("rows/select_v2")
    // CHECK: %[[ROWS:.*]] = dfg.gather_v2 %{{.*}}, %[[INDEX]]
    %rows = dfg.gather_v2 %table, %ids#0, %axis {batch_dims = 0 : i64} : (tensor<8x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("rows")
    // CHECK: %[[SQUARE:.*]] = dfg.square %[[ROWS]]
    %square = dfg.square %rows : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("square")
    // CHECK: %[[THERE:.*]] = dfg.select_v2 %{{.*}}, %[[SQUARE]]
    // CHECK: dfg.sum %[[THERE]]
    %both = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("both")
    %loss = dfg.sum %square, %both : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// The parts of a partition, put back where they were, are chosen; a row that is not in a part reads row 0 of its table. Every row must be in one.
// CHECK-LABEL: @stitch
module @stitch {
  dfg.graph attributes {loss = "loss:0"} {
    %part = dfg.placeholder : () -> tensor<?xi32> loc("part")
    %id = dfg.placeholder : () -> tensor<?xi32> loc("id")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %start = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("start")
    %step = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("step")
    %size = dfg.size %id : (tensor<?xi32>) -> tensor<i32> loc("size")
    %range = dfg.range %start, %size, %step : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32> loc("range")
    %t0 = dfg.const dense<1.0> : tensor<6x4xf32> : tensor<6x4xf32> loc("t0")
    %t1 = dfg.const dense<2.0> : tensor<6x4xf32> : tensor<6x4xf32> loc("t1")
    // CHECK: dfg.assert {{.*}} loc("ids/rows_fit")
    // CHECK: dfg.identity {{.*}}control = ["ids/rows_fit"]{{.*}} loc("ids")
    %ids:2 = dfg.dynamic_partition %id, %part : (tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("ids")
    %places:2 = dfg.dynamic_partition %range, %part : (tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("places")
    // CHECK: %[[I0:.*]] = dfg.select_v2 {{.*}} loc("r0/select_v2")
    // CHECK: %[[R0:.*]] = dfg.gather_v2 %{{.*}}, %[[I0]]
    %r0 = dfg.gather_v2 %t0, %ids#0, %axis {batch_dims = 0 : i64} : (tensor<6x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("r0")
    // CHECK: %[[R1:.*]] = dfg.gather_v2
    %r1 = dfg.gather_v2 %t1, %ids#1, %axis {batch_dims = 0 : i64} : (tensor<6x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("r1")
    // CHECK: dfg.select_v2 %{{.*}}, %[[R1]], %[[R0]]
    %rows = dfg.dynamic_stitch %places#0, %places#1, %r0, %r1
      : (tensor<?xi32>, tensor<?xi32>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("rows")
    %zero = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("zero")
    // CHECK: dfg.sum
    %loss = dfg.sum %rows, %zero : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// What is not there names no row of a variable, and that is no mistake of the data.
// CHECK-LABEL: @update
module @update {
  dfg.variable @w : tensor<6xf32> {trainable}
  dfg.graph attributes {train_op = "train"} {
    %part = dfg.placeholder : () -> tensor<?xi32> loc("part")
    %id = dfg.placeholder : () -> tensor<?xi32> loc("id")
    %v = dfg.placeholder : () -> tensor<?xf32> loc("v")
    %ids:2 = dfg.dynamic_partition %id, %part : (tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("ids")
    %vs:2 = dfg.dynamic_partition %v, %part : (tensor<?xf32>, tensor<?xi32>) -> (tensor<?xf32>, tensor<?xf32>) loc("vs")
    %w = dfg.var_handle @w : !dfg.ref<tensor<6xf32>> loc("w")
    // CHECK: %[[I:.*]] = dfg.select_v2 {{.*}} {dfg.padding}
    // CHECK: %[[V:.*]] = dfg.select_v2
    // CHECK: dfg.scatter_add %{{.*}}, %[[I]], %[[V]]
    dfg.scatter_add %w, %ids#1, %vs#1 : (!dfg.ref<tensor<6xf32>>, tensor<?xi32>, tensor<?xf32>) -> () loc("train")
  }
}

// -----

// Segments of the rows that elements were chosen from are sums along the axis. Rows behind the last one with an element are not there.
// CHECK-LABEL: @segments
module @segments {
  dfg.graph attributes {loss = "loss:0"} {
    %ids = dfg.placeholder : () -> tensor<?x3xi32> loc("ids")
    %none = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("none")
    %there = dfg.greater_equal %ids, %none : (tensor<?x3xi32>, tensor<i32>) -> tensor<?x3xi1> loc("there")
    %at = dfg.opaque "Where"(%there) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("at")
    %table = dfg.const dense<1.0> : tensor<6x4xf32> : tensor<6x4xf32> loc("table")
    %id = dfg.gather_nd %ids, %at : (tensor<?x3xi32>, tensor<?x2xi64>) -> tensor<?xi32> loc("id")
    // CHECK: %[[ROWS:.*]] = dfg.gather_v2
    %rows = dfg.gather_v2 %table, %id, %none {batch_dims = 0 : i64} : (tensor<6x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("rows")
    %begin = dfg.const dense<0> : tensor<2xi32> : tensor<2xi32> loc("begin")
    %end = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("end")
    %strides = dfg.const dense<1> : tensor<2xi32> : tensor<2xi32> loc("strides")
    %row = dfg.strided_slice %at, %begin, %end, %strides {begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 2 : i64}
      : (tensor<?x2xi64>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?xi64> loc("row")
    // CHECK: %[[THERE:.*]] = dfg.select_v2 %{{.*}}, %[[ROWS]]
    // CHECK: %[[GRID:.*]] = dfg.reshape %[[THERE]]
    // CHECK: %[[SUM:.*]] = dfg.sum %[[GRID]]
    // CHECK: dfg.any
    // CHECK: dfg.cumsum {{.*}}reverse = true
    // CHECK: dfg.identity %[[SUM]]{{.*}} loc("sum")
    %sum = dfg.segment_sum %rows, %row : (tensor<?x4xf32>, tensor<?xi64>) -> tensor<?x4xf32> loc("sum")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    // CHECK: dfg.select_v2
    // CHECK: dfg.sum
    %loss = dfg.sum %sum, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Where the rows meet as many others, all must be there.
// CHECK-LABEL: @meet
module @meet {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    %rows = dfg.gather_nd %x, %at : (tensor<?xf32>, tensor<?x1xi64>) -> tensor<?xf32> loc("rows")
    // CHECK: dfg.assert {{.*}} loc("both/rows_fit")
    // CHECK: %[[BOTH:.*]] = dfg.add_v2 {{.*}} {control = ["both/rows_fit"]}
    %both = dfg.add_v2 %rows, %x : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("both")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    // CHECK: dfg.sum %[[BOTH]]
    %sum = dfg.sum %both, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
    // Also where a product adds them up.
    %column = dfg.placeholder : () -> tensor<?x2xf32> loc("column")
    %others = dfg.placeholder : () -> tensor<?x3xf32> loc("others")
    %chosen = dfg.gather_nd %column, %at : (tensor<?x2xf32>, tensor<?x1xi64>) -> tensor<?x2xf32> loc("chosen")
    // CHECK: dfg.mat_mul {{.*}}control = ["both/rows_fit"]
    %product = dfg.mat_mul %chosen, %others {transpose_a = true} : (tensor<?x2xf32>, tensor<?x3xf32>) -> tensor<2x3xf32> loc("product")
    %loss = dfg.add_v2 %sum, %product : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32> loc("loss")
  }
}

// -----

// Whether two lists of sizes differ is known where the sizes are, also where they depend on the batch.
// CHECK-LABEL: @sizes_that_differ
module @sizes_that_differ {
  dfg.graph attributes {fetches = ["count:0"]} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %shape = dfg.shape %x : (tensor<?x4xf32>) -> tensor<2xi32> loc("shape")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %set = dfg.expand_dims %shape, %axis : (tensor<2xi32>, tensor<i32>) -> tensor<1x2xi32> loc("set")
    // CHECK-NOT: "DenseToDenseSetOperation"
    // CHECK: %[[NONE:.*]] = dfg.const dense<> : tensor<0xi64>
    %sets:3 = dfg.opaque "DenseToDenseSetOperation"(%set, %set) {tf = {set_operation = "a-b", validate_indices = true}}
      : (tensor<1x2xi32>, tensor<1x2xi32>) -> (tensor<?x2xi64>, tensor<?xi32>, tensor<2xi64>) loc("sets")
    // CHECK: dfg.size %{{.*}} : (tensor<0xi32>)
    %count = dfg.size %sets#1 : (tensor<?xi32>) -> tensor<i32> loc("count")
  }
}

// -----

// The first coordinate of an element is the number of a row, also where it is reshaped: rows of as many as there are elements are looked up by it.
// CHECK-LABEL: @reshaped_coordinate
module @reshaped_coordinate {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<?x3xi1> loc("w")
    %vector = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32> loc("vector")
    %none = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("none")
    %axis = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("axis")
    %flat = dfg.reshape %x, %vector : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32> loc("flat")
    %at = dfg.opaque "Where"(%w) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("at")
    %begin = dfg.const dense<0> : tensor<2xi32> : tensor<2xi32> loc("begin")
    %end = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("end")
    %strides = dfg.const dense<1> : tensor<2xi32> : tensor<2xi32> loc("strides")
    %row = dfg.strided_slice %at, %begin, %end, %strides {begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 2 : i64}
      : (tensor<?x2xi64>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?xi64> loc("row")
    %again = dfg.reshape %row, %vector : (tensor<?xi64>, tensor<1xi32>) -> tensor<?xi64> loc("again")
    // CHECK: dfg.gather_v2 {{.*}} loc("taken")
    %taken = dfg.gather_v2 %flat, %again, %none {batch_dims = 0 : i64} : (tensor<?xf32>, tensor<?xi64>, tensor<i32>) -> tensor<?xf32> loc("taken")
    %loss = dfg.mean %taken, %axis : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Rows that are left out for what they hold, a divisor of 0, end no program.
// CHECK-LABEL: @left_out_divisors
module @left_out_divisors {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?xi32> loc("x")
    %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
    %axis = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("axis")
    // CHECK: %[[MASK:.*]] = dfg.less
    %w = dfg.less %zero, %x : (tensor<i32>, tensor<?xi32>) -> tensor<?xi1> loc("w")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    // CHECK: %[[ROWS:.*]] = dfg.identity {{.*}} loc("rows")
    %rows = dfg.gather_nd %x, %at : (tensor<?xi32>, tensor<?x1xi64>) -> tensor<?xi32> loc("rows")
    // CHECK: %[[THERE:.*]] = dfg.select_v2 %{{.*}}, %[[ROWS]], %{{.*}}
    // CHECK: dfg.floor_div %[[ROWS]], %[[THERE]]
    %divided = dfg.floor_div %rows, %rows : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32> loc("divided")
    %number = dfg.cast %divided : (tensor<?xi32>) -> tensor<?xf32> loc("number")
    %loss = dfg.sum %number, %axis : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// The gradient of a column has the rows' shape, as a size: all rows.
// CHECK-LABEL: @column_gradient
module @column_gradient {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %begin = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("begin")
    %end = dfg.const dense<[0, 2]> : tensor<2xi32> : tensor<2xi32> loc("end")
    %strides = dfg.const dense<1> : tensor<2xi32> : tensor<2xi32> loc("strides")
    %both = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("both")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    %rows = dfg.gather_nd %x, %at : (tensor<?x3xf32>, tensor<?x1xi64>) -> tensor<?x3xf32> loc("rows")
    %column = dfg.strided_slice %rows, %begin, %end, %strides {begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 2 : i64}
      : (tensor<?x3xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?xf32> loc("column")
    // CHECK: %[[SHAPE:.*]] = dfg.shape %{{.*}} loc("shape")
    %shape = dfg.shape %rows : (tensor<?x3xf32>) -> tensor<2xi32> loc("shape")
    // CHECK: %[[GRADIENT:.*]] = dfg.strided_slice_grad %[[SHAPE]]
    %gradient = dfg.strided_slice_grad %shape, %begin, %end, %strides, %column {begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 2 : i64}
      : (tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<?xf32>) -> tensor<?x3xf32> loc("gradient")
    // CHECK: dfg.select_v2 %{{.*}}, %[[GRADIENT]]
    %loss = dfg.sum %gradient, %both : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// One mask as a matrix, as a vector, as numbers that are compared, as the number of a part: the rows are the same, at the same places.
// CHECK-LABEL: @one_mask
module @one_mask {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x3x4xf32> loc("x")
    %y = dfg.placeholder : () -> tensor<?x3x4xf32> loc("y")
    %w = dfg.placeholder : () -> tensor<?x3xi1> loc("w")
    %vector = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32> loc("vector")
    %matrix = dfg.const dense<[-1, 4]> : tensor<2xi32> : tensor<2xi32> loc("matrix")
    %none = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("none")
    %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("half")
    %three = dfg.const dense<3> : tensor<i64> : tensor<i64> loc("three")
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("axes")
    // CHECK-NOT: "Where"
    // CHECK-COUNT-1: dfg.reshape %{{.*}} loc("at/reshape")
    %at = dfg.opaque "Where"(%w) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("at")
    // CHECK: %[[A:.*]] = dfg.identity {{.*}} loc("a")
    %a = dfg.gather_nd %x, %at : (tensor<?x3x4xf32>, tensor<?x2xi64>) -> tensor<?x4xf32> loc("a")
    %number = dfg.cast %w : (tensor<?x3xi1>) -> tensor<?x3xf32> loc("number")
    %flat = dfg.reshape %number, %vector : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32> loc("flat")
    %again = dfg.greater %flat, %half : (tensor<?xf32>, tensor<f32>) -> tensor<?xi1> loc("again")
    %place = dfg.opaque "Where"(%again) : (tensor<?xi1>) -> tensor<?x1xi64> loc("place")
    %ys = dfg.reshape %y, %matrix : (tensor<?x3x4xf32>, tensor<2xi32>) -> tensor<?x4xf32> loc("ys")
    // CHECK: %[[B:.*]] = dfg.identity {{.*}} loc("b")
    %b = dfg.gather_nd %ys, %place : (tensor<?x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32> loc("b")
    %part = dfg.cast %w : (tensor<?x3xi1>) -> tensor<?x3xi32> loc("part")
    %parts:2 = dfg.dynamic_partition %x, %part : (tensor<?x3x4xf32>, tensor<?x3xi32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) loc("parts")
    // CHECK: %[[AB:.*]] = dfg.mul %[[A]], %[[B]]
    %ab = dfg.mul %a, %b : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("ab")
    // CHECK: dfg.add_v2 %[[AB]]
    %abc = dfg.add_v2 %ab, %parts#1 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("abc")
    // A row's number, of its coordinates.
    %begin = dfg.const dense<0> : tensor<2xi32> : tensor<2xi32> loc("begin")
    %middle = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("middle")
    %end = dfg.const dense<[0, 2]> : tensor<2xi32> : tensor<2xi32> loc("end")
    %strides = dfg.const dense<1> : tensor<2xi32> : tensor<2xi32> loc("strides")
    %row = dfg.strided_slice %at, %begin, %middle, %strides {begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 2 : i64}
      : (tensor<?x2xi64>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?xi64> loc("row")
    %column = dfg.strided_slice %at, %middle, %end, %strides {begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 2 : i64}
      : (tensor<?x2xi64>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?xi64> loc("column")
    %first = dfg.mul %row, %three : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("first")
    %numbered = dfg.add_v2 %first, %column : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64> loc("numbered")
    // CHECK: dfg.identity {{.*}} loc("taken")
    %taken = dfg.gather_v2 %ys, %numbered, %none {batch_dims = 0 : i64} : (tensor<?x4xf32>, tensor<?xi64>, tensor<i32>) -> tensor<?x4xf32> loc("taken")
    %all = dfg.sub %abc, %taken : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("all")
    %loss = dfg.mean %all, %axes : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Of distinct rows each stands where it is met, with the terms of what is added up for it: a choice of that sum or zeros is one of each term or zeros.
// CHECK-LABEL: @choice_of_terms
module @choice_of_terms {
  dfg.graph attributes {loss = "loss:0"} {
    %id = dfg.placeholder : () -> tensor<?xi32> loc("id")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %table = dfg.const dense<1.0> : tensor<8x4xf32> : tensor<8x4xf32> loc("table")
    %first = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("first")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    %flat = dfg.squeeze %at {squeeze_dims = [1]} : (tensor<?x1xi64>) -> tensor<?xi64> loc("flat")
    %ids = dfg.gather_v2 %id, %flat, %first {batch_dims = 0 : i64} : (tensor<?xi32>, tensor<?xi64>, tensor<i32>) -> tensor<?xi32> loc("ids")
    %dy = dfg.gather_v2 %x, %flat, %first {batch_dims = 0 : i64} : (tensor<?x4xf32>, tensor<?xi64>, tensor<i32>) -> tensor<?x4xf32> loc("dy")
    %distinct:2 = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("distinct")
    %rows = dfg.gather_v2 %table, %distinct#0, %first {batch_dims = 0 : i64} : (tensor<8x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("rows")
    %count = dfg.size %distinct#0 : (tensor<?xi32>) -> tensor<i32> loc("count")
    %sum = dfg.unsorted_segment_sum %dy, %distinct#1, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("sum")
    %limit = dfg.const dense<0.5> : tensor<f32> : tensor<f32> loc("limit")
    // CHECK: %[[LONG:.*]] = dfg.greater {{.*}} loc("long")
    %long = dfg.greater %rows, %limit : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xi1> loc("long")
    %zeros = dfg.zeros_like %rows : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("zeros")
    // CHECK: %[[CHOSEN:.*]] = dfg.select_v2 %[[LONG]], {{.*}} loc("chosen")
    %chosen = dfg.select_v2 %long, %sum, %zeros : (tensor<?x4xi1>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("chosen")
    // CHECK: dfg.select_v2 %{{.*}}, %[[CHOSEN]]
    %both = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("both")
    %loss = dfg.sum %chosen, %both : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Ragged rows: tf.repeat of the rows' numbers by their lengths, which the values were chosen by, is where each value's row lies. As wide as the longest nothing is made.
// CHECK-LABEL: @ragged
module @ragged {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
    %n = dfg.placeholder : () -> tensor<?xi32> loc("n")
    %none = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("none")
    %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
    %vector = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32> loc("vector")
    %axis = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("axis")
    %columns = dfg.const dense<[0, 1, 2]> : tensor<3xi32> : tensor<3xi32> loc("columns")
    %lengths = dfg.expand_dims %n, %one : (tensor<?xi32>, tensor<i32>) -> tensor<?x1xi32> loc("lengths")
    %mask = dfg.less %columns, %lengths : (tensor<3xi32>, tensor<?x1xi32>) -> tensor<?x3xi1> loc("mask")
    %at = dfg.opaque "Where"(%mask) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("at")
    // CHECK: dfg.identity {{.*}} loc("values")
    %values = dfg.gather_nd %x, %at : (tensor<?x3xf32>, tensor<?x2xi64>) -> tensor<?xf32> loc("values")
    // The splits, and the lengths of them.
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %ones = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("ones")
    %last = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32> loc("last")
    %sums = dfg.cumsum %n, %none : (tensor<?xi32>, tensor<i32>) -> tensor<?xi32> loc("sums")
    %splits = dfg.concat_v2 %zero, %sums, %none : (tensor<1xi32>, tensor<?xi32>, tensor<i32>) -> tensor<?xi32> loc("splits")
    %ends = dfg.strided_slice %splits, %ones, %zero, %ones {end_mask = 1 : i64} : (tensor<?xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xi32> loc("ends")
    %starts = dfg.strided_slice %splits, %zero, %last, %ones {begin_mask = 1 : i64} : (tensor<?xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xi32> loc("starts")
    %times = dfg.sub %ends, %starts : (tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32> loc("times")
    // CHECK: %[[FITS:.*]] = dfg.all {{.*}} loc("ids/all")
    // CHECK: dfg.assert %[[FITS]]{{.*}} loc("ids/rows_fit")
    // CHECK-NOT: "Where"
    %size = dfg.size %n : (tensor<?xi32>) -> tensor<i32> loc("size")
    %rows = dfg.range %none, %size, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32> loc("rows")
    %longest = dfg.max %times, %axis : (tensor<?xi32>, tensor<1xi32>) -> tensor<i32> loc("longest")
    %width = dfg.maximum %none, %longest : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("width")
    %wide = dfg.range %none, %width, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32> loc("wide")
    %column = dfg.expand_dims %times, %one : (tensor<?xi32>, tensor<i32>) -> tensor<?x1xi32> loc("column")
    %there = dfg.less %wide, %column : (tensor<?xi32>, tensor<?x1xi32>) -> tensor<?x?xi1> loc("there")
    %row = dfg.expand_dims %rows, %one : (tensor<?xi32>, tensor<i32>) -> tensor<?x1xi32> loc("row")
    %multiples = dfg.pack %one, %width : (tensor<i32>, tensor<i32>) -> tensor<2xi32> loc("multiples")
    %tiled = dfg.tile %row, %multiples : (tensor<?x1xi32>, tensor<2xi32>) -> tensor<?x?xi32> loc("tiled")
    %all = dfg.reshape %tiled, %vector : (tensor<?x?xi32>, tensor<1xi32>) -> tensor<?xi32> loc("all")
    %flags = dfg.reshape %there, %vector : (tensor<?x?xi1>, tensor<1xi32>) -> tensor<?xi1> loc("flags")
    %places = dfg.opaque "Where"(%flags) : (tensor<?xi1>) -> tensor<?x1xi64> loc("places")
    %place = dfg.squeeze %places {squeeze_dims = [1]} : (tensor<?x1xi64>) -> tensor<?xi64> loc("place")
    %ids = dfg.gather_v2 %all, %place, %none {batch_dims = 0 : i64} : (tensor<?xi32>, tensor<?xi64>, tensor<i32>) -> tensor<?xi32> loc("ids")
    // CHECK: dfg.select_v2 %{{.*}}, %{{.*}} loc("most/select_v2")
    // CHECK: dfg.max %{{.*}} loc("most/max")
    %most = dfg.unsorted_segment_max %values, %ids, %size : (tensor<?xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?xf32> loc("most")
    %loss = dfg.mean %most, %axis : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// The ids and the weights of a sparse tensor, each without a value of its own, are at the same places: an assertion sees to it.
// CHECK-LABEL: @ids_and_weights
module @ids_and_weights {
  dfg.graph attributes {loss = "loss:0"} {
    %ids = dfg.placeholder : () -> tensor<?x3xf32> loc("ids")
    %weights = dfg.placeholder : () -> tensor<?x3xf32> loc("weights")
    %none = dfg.const dense<-1.0> : tensor<f32> : tensor<f32> loc("none")
    %zero = dfg.const dense<0.0> : tensor<f32> : tensor<f32> loc("zero")
    %axis = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("axis")
    %some = dfg.not_equal %ids, %none {incompatible_shape_error = true} : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xi1> loc("some")
    %heavy = dfg.not_equal %weights, %zero {incompatible_shape_error = true} : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xi1> loc("heavy")
    %at = dfg.opaque "Where"(%some) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("at")
    %of = dfg.opaque "Where"(%heavy) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("of")
    %id = dfg.gather_nd %ids, %at : (tensor<?x3xf32>, tensor<?x2xi64>) -> tensor<?xf32> loc("id")
    %weight = dfg.gather_nd %weights, %of : (tensor<?x3xf32>, tensor<?x2xi64>) -> tensor<?xf32> loc("weight")
    // CHECK: %[[AGREE:.*]] = dfg.equal
    // CHECK: %[[ALL:.*]] = dfg.all %[[AGREE]]
    // CHECK: dfg.assert %[[ALL]]{{.*}} loc("both/rows_fit")
    // CHECK: dfg.mul {{.*}} {control = ["both/rows_fit"]}
    %both = dfg.mul %id, %weight : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("both")
    // CHECK-NOT: rows_fit_1
    %again = dfg.add_v2 %both, %id : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("again")
    %loss = dfg.sum %again, %axis : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// The number of a row is made of its coordinates, but what a maximum with 0 makes of one that is turned round is not.
// CHECK-LABEL: @turned
module @turned {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x3x4xf32> loc("x")
    %y = dfg.placeholder : () -> tensor<?x3x4xf32> loc("y")
    %w = dfg.placeholder : () -> tensor<?x3xi1> loc("w")
    %vector = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32> loc("vector")
    %matrix = dfg.const dense<[-1, 4]> : tensor<2xi32> : tensor<2xi32> loc("matrix")
    %none = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("none")
    %nothing = dfg.const dense<0> : tensor<i64> : tensor<i64> loc("nothing")
    %turn = dfg.const dense<-3> : tensor<i64> : tensor<i64> loc("turn")
    %six = dfg.const dense<6> : tensor<i64> : tensor<i64> loc("six")
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("axes")
    %at = dfg.opaque "Where"(%w) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("at")
    %a = dfg.gather_nd %x, %at : (tensor<?x3x4xf32>, tensor<?x2xi64>) -> tensor<?x4xf32> loc("a")
    %ys = dfg.reshape %y, %matrix : (tensor<?x3x4xf32>, tensor<2xi32>) -> tensor<?x4xf32> loc("ys")
    %origin = dfg.const dense<[0, 0]> : tensor<2xi32> : tensor<2xi32> loc("origin")
    %second = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("second")
    %third = dfg.const dense<[0, 2]> : tensor<2xi32> : tensor<2xi32> loc("third")
    %ones = dfg.const dense<1> : tensor<2xi32> : tensor<2xi32> loc("ones")
    %row = dfg.strided_slice %at, %origin, %second, %ones {begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 2 : i64}
      : (tensor<?x2xi64>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?xi64> loc("row")
    %column = dfg.strided_slice %at, %second, %third, %ones {begin_mask = 1 : i64, end_mask = 1 : i64, shrink_axis_mask = 2 : i64}
      : (tensor<?x2xi64>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?xi64> loc("column")
    %turned = dfg.mul %row, %turn : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("turned")
    %kept = dfg.maximum %turned, %nothing : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("kept")
    %back = dfg.mul %row, %six : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("back")
    %first = dfg.add_v2 %kept, %back : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64> loc("first")
    %numbered = dfg.add_v2 %first, %column : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64> loc("numbered")
    // CHECK: dfg.gather_v2 {{.*}} loc("taken")
    %taken = dfg.gather_v2 %ys, %numbered, %none {batch_dims = 0 : i64} : (tensor<?x4xf32>, tensor<?xi64>, tensor<i32>) -> tensor<?x4xf32> loc("taken")
    %all = dfg.sub %a, %taken : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("all")
    %loss = dfg.mean %all, %axes : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// A number, what it is compared with 0 for, and what it is cast to, choose the same rows.
// CHECK-LABEL: @numbers
module @numbers {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<?xi32> loc("w")
    %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("axes")
    // CHECK-NOT: "Where"
    %at = dfg.opaque "Where"(%w) : (tensor<?xi32>) -> tensor<?x1xi64> loc("at")
    %a = dfg.gather_nd %x, %at : (tensor<?x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32> loc("a")
    %flags = dfg.cast %w : (tensor<?xi32>) -> tensor<?xi1> loc("flags")
    %set = dfg.opaque "Where"(%flags) : (tensor<?xi1>) -> tensor<?x1xi64> loc("set")
    %b = dfg.gather_nd %x, %set : (tensor<?x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32> loc("b")
    %other = dfg.not_equal %w, %zero : (tensor<?xi32>, tensor<i32>) -> tensor<?xi1> loc("other")
    %places = dfg.opaque "Where"(%other) : (tensor<?xi1>) -> tensor<?x1xi64> loc("places")
    %c = dfg.gather_nd %x, %places : (tensor<?x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32> loc("c")
    // CHECK: dfg.add_v2 {{.*}} loc("ab")
    %ab = dfg.add_v2 %a, %b : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("ab")
    // CHECK: dfg.add_v2 {{.*}} loc("abc")
    %abc = dfg.add_v2 %ab, %c : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("abc")
    %loss = dfg.mean %abc, %axes : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Cumulative sums, and a softmax over the rows, are as if those that are not there were none.
// CHECK-LABEL: @scans
module @scans {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %first = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("first")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    // CHECK: %[[ROWS:.*]] = dfg.identity %{{.*}} loc("rows")
    %rows = dfg.gather_nd %x, %at : (tensor<?xf32>, tensor<?x1xi64>) -> tensor<?xf32> loc("rows")
    // CHECK: %[[NONE:.*]] = dfg.const dense<0.000000e+00>
    // CHECK: %[[THERE:.*]] = dfg.select_v2 %{{.*}}, %[[ROWS]], %[[NONE]]
    // CHECK: dfg.cumsum %[[THERE]]
    %sums = dfg.cumsum %rows, %first : (tensor<?xf32>, tensor<i32>) -> tensor<?xf32> loc("sums")
    // CHECK: %[[LEAST:.*]] = dfg.const dense<0xFF800000>
    // CHECK: %[[SEEN:.*]] = dfg.select_v2 %{{.*}}, %[[ROWS]], %[[LEAST]]
    // CHECK: dfg.softmax %[[SEEN]]
    %shares = dfg.softmax %rows : (tensor<?xf32>) -> tensor<?xf32> loc("shares")
    %both = dfg.mul %sums, %shares : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("both")
    %loss = dfg.sum %both, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Rows of time and batch that became one axis have the mask for each time, and taken apart they have their own again; an end that is their number is that of all.
// CHECK-LABEL: @times
module @times {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x5x4xf32> loc("x")
    // CHECK: %[[W:.*]] = dfg.placeholder {{.*}} loc("w")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %begin = dfg.const dense<0> : tensor<3xi32> : tensor<3xi32> loc("begin")
    %ones = dfg.const dense<1> : tensor<3xi32> : tensor<3xi32> loc("ones")
    %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("one")
    %two = dfg.const dense<2> : tensor<1xi32> : tensor<1xi32> loc("two")
    %four = dfg.const dense<4> : tensor<i32> : tensor<i32> loc("four")
    %first = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("first")
    %swap = dfg.const dense<[1, 0, 2]> : tensor<3xi32> : tensor<3xi32> loc("swap")
    %flat = dfg.const dense<[-1, 4]> : tensor<2xi32> : tensor<2xi32> loc("flat")
    %apart = dfg.const dense<[5, -1, 4]> : tensor<3xi32> : tensor<3xi32> loc("apart")
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
    %three = dfg.const dense<[0, 1, 2]> : tensor<3xi32> : tensor<3xi32> loc("three")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    // CHECK: %[[MASK:.*]] = dfg.reshape %[[W]]
    %rows = dfg.gather_nd %x, %at : (tensor<?x5x4xf32>, tensor<?x1xi64>) -> tensor<?x5x4xf32> loc("rows")
    %turned = dfg.transpose %rows, %swap : (tensor<?x5x4xf32>, tensor<3xi32>) -> tensor<5x?x4xf32> loc("turned")
    // CHECK: dfg.tile %[[MASK]]
    // CHECK: %[[FLAT:.*]] = dfg.reshape {{.*}} loc("merged")
    %merged = dfg.reshape %turned, %flat : (tensor<5x?x4xf32>, tensor<2xi32>) -> tensor<?x4xf32> loc("merged")
    // CHECK: dfg.select_v2 %{{.*}}, %[[FLAT]]
    %sum = dfg.sum %merged, %all : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("sum")
    %back = dfg.reshape %merged, %apart : (tensor<?x4xf32>, tensor<3xi32>) -> tensor<5x?x4xf32> loc("back")
    %shape = dfg.shape %back : (tensor<5x?x4xf32>) -> tensor<3xi32> loc("shape")
    %size = dfg.strided_slice %shape, %one, %two, %one {shrink_axis_mask = 1 : i64} : (tensor<3xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("size")
    %end = dfg.pack %first, %size, %four : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3xi32> loc("end")
    // CHECK: %[[STEP:.*]] = dfg.strided_slice {{.*}} loc("step")
    %step = dfg.strided_slice %back, %begin, %end, %ones : (tensor<5x?x4xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<1x?x4xf32> loc("step")
    // CHECK: dfg.select_v2 %{{.*}}, %[[STEP]]
    %of_step = dfg.sum %step, %three : (tensor<1x?x4xf32>, tensor<3xi32>) -> tensor<f32> loc("of_step")
    %loss = dfg.mul %sum, %of_step : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Places made of ranges, all of a matrix' as a bucketized column has them: chosen ones are at those of the matrix.
// CHECK-LABEL: @all_places
module @all_places {
  dfg.graph attributes {loss = "loss:0"} {
    %ids = dfg.placeholder : () -> tensor<?x2xi32> loc("ids")
    // CHECK: %[[X:.*]] = dfg.placeholder {{.*}} loc("x")
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %zeros = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zeros")
    %ones = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("ones")
    %zero = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("zero")
    %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
    %two = dfg.const dense<2> : tensor<i32> : tensor<i32> loc("two")
    %often = dfg.const dense<[1, 2]> : tensor<2xi32> : tensor<2xi32> loc("often")
    %swap = dfg.const dense<[1, 0]> : tensor<2xi32> : tensor<2xi32> loc("swap")
    %flat = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32> loc("flat")
    %shape = dfg.shape %ids : (tensor<?x2xi32>) -> tensor<2xi32> loc("shape")
    %batch = dfg.strided_slice %shape, %zeros, %ones, %ones {shrink_axis_mask = 1 : i64} : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("batch")
    %range = dfg.range %zero, %batch, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32> loc("range")
    %column = dfg.expand_dims %range, %one : (tensor<?xi32>, tensor<i32>) -> tensor<?x1xi32> loc("column")
    %twice = dfg.tile %column, %often : (tensor<?x1xi32>, tensor<2xi32>) -> tensor<?x2xi32> loc("twice")
    %rows = dfg.reshape %twice, %flat : (tensor<?x2xi32>, tensor<1xi32>) -> tensor<?xi32> loc("rows")
    %width = dfg.range %zero, %two, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2xi32> loc("width")
    %times = dfg.pack %batch : (tensor<i32>) -> tensor<1xi32> loc("times")
    %columns = dfg.tile %width, %times : (tensor<2xi32>, tensor<1xi32>) -> tensor<?xi32> loc("columns")
    %pairs = dfg.pack %rows, %columns : (tensor<?xi32>, tensor<?xi32>) -> tensor<2x?xi32> loc("pairs")
    %turned = dfg.transpose %pairs, %swap : (tensor<2x?xi32>, tensor<2xi32>) -> tensor<?x2xi32> loc("turned")
    %places = dfg.cast %turned : (tensor<?x2xi32>) -> tensor<?x2xi64> loc("places")
    %sizes = dfg.pack %batch, %two : (tensor<i32>, tensor<i32>) -> tensor<2xi32> loc("sizes")
    %dense = dfg.cast %sizes : (tensor<2xi32>) -> tensor<2xi64> loc("dense")
    // CHECK-NOT: "SparseReshape"
    // CHECK-NOT: "Where"
    %same:2 = dfg.opaque "SparseReshape"(%places, %dense, %dense) : (tensor<?x2xi64>, tensor<2xi64>, tensor<2xi64>) -> (tensor<?x2xi64>, tensor<2xi64>) loc("same")
    %values = dfg.reshape %ids, %flat : (tensor<?x2xi32>, tensor<1xi32>) -> tensor<?xi32> loc("values")
    // CHECK: %[[VALID:.*]] = dfg.greater_equal
    %valid = dfg.greater_equal %values, %zero : (tensor<?xi32>, tensor<i32>) -> tensor<?xi1> loc("valid")
    %at = dfg.opaque "Where"(%valid) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    %numbers = dfg.reshape %at, %flat : (tensor<?x1xi64>, tensor<1xi32>) -> tensor<?xi64> loc("numbers")
    %there = dfg.gather_v2 %same#0, %numbers, %zero : (tensor<?x2xi64>, tensor<?xi64>, tensor<i32>) -> tensor<?x2xi64> loc("there")
    %row = dfg.gather_v2 %there, %zero, %one : (tensor<?x2xi64>, tensor<i32>, tensor<i32>) -> tensor<?xi64> loc("row")
    // The example's own x, once for each column.
    // CHECK: dfg.expand_dims %[[X]]
    // CHECK: %[[OWN:.*]] = dfg.identity {{.*}} loc("own")
    %own = dfg.gather_v2 %x, %row, %zero : (tensor<?xf32>, tensor<?xi64>, tensor<i32>) -> tensor<?xf32> loc("own")
    // CHECK: dfg.select_v2 %{{.*}}, %[[OWN]]
    %loss = dfg.sum %own, %zero : (tensor<?xf32>, tensor<i32>) -> tensor<f32> loc("loss")
  }
}

// -----

// A mean that nothing needs goes; what runs behind it, and is not needed either, stays without that.
// CHECK-LABEL: @behind_unneeded
module @behind_unneeded {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %last = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("last")
    %both = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("both")
    %first = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("first")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    %flat = dfg.squeeze %at {squeeze_dims = [1]} : (tensor<?x1xi64>) -> tensor<?xi64> loc("flat")
    %rows = dfg.gather_v2 %x, %flat, %first {batch_dims = 0 : i64} : (tensor<?x4xf32>, tensor<?xi64>, tensor<i32>) -> tensor<?x4xf32> loc("rows")
    // CHECK-NOT: loc("other")
    %other = dfg.square %rows : (tensor<?x4xf32>) -> tensor<?x4xf32> loc("other")
    // CHECK: dfg.const dense<2.000000e+00> {{.*}}control = ["x"]{{.*}} loc("two")
    %two = dfg.const dense<2.0> : tensor<f32> {control = ["other", "x"]} : tensor<f32> loc("two")
    // CHECK: dfg.const dense<3.000000e+00> : tensor<f32> loc("three")
    %three = dfg.const dense<3.0> : tensor<f32> {control = ["other"]} : tensor<f32> loc("three")
    // CHECK: loc("loss")
    %loss = dfg.mean %rows, %both : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// As many of the largest as data say are the first of all in order.
// CHECK-LABEL: @largest
module @largest {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %y = dfg.placeholder : () -> tensor<?xi32> loc("y")
    %first = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("first")
    // CHECK: %[[COUNT:.*]] = dfg.sum %{{.*}} loc("count")
    %count = dfg.sum %y, %first : (tensor<?xi32>, tensor<1xi32>) -> tensor<i32> loc("count")
    // CHECK: dfg.assert %{{.*}}, %[[COUNT]] {{.*}} loc("top/rows_fit")
    // CHECK: %[[ALL:.*]]:2 = dfg.top_k_v2 %{{.*}}, %{{.*}} {control = ["top/rows_fit"]} {{.*}} loc("top/all")
    // CHECK: %[[RANGE:.*]] = dfg.range
    // CHECK: %[[MASK:.*]] = dfg.less %[[RANGE]], %[[COUNT]]
    // CHECK: %[[VALUES:.*]] = dfg.identity %[[ALL]]#0 : {{.*}} loc("top")
    %values, %indices = dfg.top_k_v2 %x, %count : (tensor<?xf32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>) loc("top")
    // CHECK: %[[THERE:.*]] = dfg.select_v2 %[[MASK]], %[[VALUES]]
    // CHECK: dfg.sum %[[THERE]], %{{.*}} loc("loss")
    %loss = dfg.sum %values, %first : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// A part of the batch's size is known where that is.
// CHECK-LABEL: @part_of_the_size
module @part_of_the_size {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %first = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("first")
    %size = dfg.size %x : (tensor<?xf32>) -> tensor<i32> loc("size")
    %float = dfg.cast %size : (tensor<i32>) -> tensor<f32> loc("float")
    %third = dfg.const dense<0.3> : tensor<f32> : tensor<f32> loc("third")
    %part = dfg.mul %float, %third : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("part")
    // CHECK: %[[COUNT:.*]] = dfg.cast %{{.*}} loc("count")
    %count = dfg.cast %part : (tensor<f32>) -> tensor<i32> loc("count")
    // CHECK: dfg.top_k_v2 %{{.*}}, %[[COUNT]]
    %values, %indices = dfg.top_k_v2 %x, %count : (tensor<?xf32>, tensor<i32>) -> (tensor<?xf32>, tensor<?xi32>) loc("top")
    %loss = dfg.mean %values, %first : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// The rows of a gradient that an optimizer adds up by distinct indices: what is not there has an index of its own, -1, and its place among them, to which
// zeros are added.
// CHECK-LABEL: @added_by_distinct_indices
module @added_by_distinct_indices {
  dfg.variable @table : tensor<8x4xf32>
  dfg.graph attributes {train_op = "update"} {
    %id = dfg.placeholder : () -> tensor<?xi32> loc("id")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %first = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("first")
    %table = dfg.var_handle @table : !dfg.ref<tensor<8x4xf32>> loc("table")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    %flat = dfg.squeeze %at {squeeze_dims = [1]} : (tensor<?x1xi64>) -> tensor<?xi64> loc("flat")
    %ids = dfg.gather_v2 %id, %flat, %first {batch_dims = 0 : i64} : (tensor<?xi32>, tensor<?xi64>, tensor<i32>) -> tensor<?xi32> loc("ids")
    %dy = dfg.gather_v2 %x, %flat, %first {batch_dims = 0 : i64} : (tensor<?x4xf32>, tensor<?xi64>, tensor<i32>) -> tensor<?x4xf32> loc("dy")
    // CHECK: %[[IDS:.*]] = dfg.select_v2 {{.*}} {dfg.padding}
    // CHECK: %[[DISTINCT:.*]]:2 = dfg.unique %[[IDS]]
    %distinct:2 = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("distinct")
    %count = dfg.size %distinct#0 : (tensor<?xi32>) -> tensor<i32> loc("count")
    // CHECK: %[[DY:.*]] = dfg.select_v2
    // CHECK: %[[SUM:.*]] = dfg.unsorted_segment_sum %[[DY]], %[[DISTINCT]]#1,
    %sum = dfg.unsorted_segment_sum %dy, %distinct#1, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("sum")
    // CHECK: dfg.scatter_sub %{{.*}}, %[[DISTINCT]]#0, %[[SUM]]
    dfg.scatter_sub %table, %distinct#0, %sum : (!dfg.ref<tensor<8x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update")
  }
}

// -----

// An optimizer reads slots by the rows that it updates: these stay distinct, for what is made of sums is no term of them.
// CHECK-LABEL: @read_by_distinct_indices
module @read_by_distinct_indices {
  dfg.variable @table : tensor<8x4xf32>
  dfg.variable @slot : tensor<8x4xf32>
  dfg.graph attributes {train_op = "update", loss = "loss:0"} {
    %id = dfg.placeholder : () -> tensor<?xi32> loc("id")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
    %first = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("first")
    %both = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("both")
    %loss = dfg.sum %x, %both : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
    %table = dfg.var_handle @table : !dfg.ref<tensor<8x4xf32>> loc("table")
    %slot = dfg.var_handle @slot : !dfg.ref<tensor<8x4xf32>> loc("slot")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    %flat = dfg.squeeze %at {squeeze_dims = [1]} : (tensor<?x1xi64>) -> tensor<?xi64> loc("flat")
    %ids = dfg.gather_v2 %id, %flat, %first {batch_dims = 0 : i64} : (tensor<?xi32>, tensor<?xi64>, tensor<i32>) -> tensor<?xi32> loc("ids")
    %dy = dfg.gather_v2 %x, %flat, %first {batch_dims = 0 : i64} : (tensor<?x4xf32>, tensor<?xi64>, tensor<i32>) -> tensor<?x4xf32> loc("dy")
    // CHECK: %[[DISTINCT:.*]]:2 = dfg.unique %{{.*}}
    %distinct:2 = dfg.unique %ids : (tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("distinct")
    %count = dfg.size %distinct#0 : (tensor<?xi32>) -> tensor<i32> loc("count")
    // CHECK: %[[SUM:.*]] = dfg.unsorted_segment_sum %{{.*}}, %[[DISTINCT]]#1,
    %sum = dfg.unsorted_segment_sum %dy, %distinct#1, %count : (tensor<?x4xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?x4xf32> loc("sum")
    // CHECK: %[[SLOT:.*]] = dfg.resource_gather %{{.*}}, %[[DISTINCT]]#0
    %rows = dfg.resource_gather %slot, %distinct#0 : (!dfg.ref<tensor<8x4xf32>>, tensor<?xi32>) -> tensor<?x4xf32> loc("rows")
    // CHECK: %[[SCALED:.*]] = dfg.mul %[[SUM]], %[[SLOT]]
    %scaled = dfg.mul %sum, %rows : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32> loc("scaled")
    // CHECK: dfg.scatter_sub %{{.*}}, %[[DISTINCT]]#0, %[[SCALED]]
    dfg.scatter_sub %table, %distinct#0, %scaled : (!dfg.ref<tensor<8x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> () loc("update")
  }
}
