// RUN: distc-opt %s --split-input-file --dfg-mask-rows --verify-diagnostics

// What looks at several rows sees which are there.
module {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    %rows = dfg.gather_nd %x, %at : (tensor<?xf32>, tensor<?x1xi64>) -> tensor<?xf32> loc("rows")
    %axis = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("axis")
    // expected-error @below {{(reverse_v2) has no code here: the number of its rows is only known when the program runs (by 'w'), and it does not work row by row}}
    %turned = dfg.reverse_v2 %rows, %axis : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
    %loss = dfg.sum %turned, %axis : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Rows of two masks are not the same ones.
module {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %v = dfg.placeholder : () -> tensor<?xi1> loc("v")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %some = dfg.opaque "Where"(%v) : (tensor<?xi1>) -> tensor<?x1xi64> loc("some")
    %others = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("others")
    %a = dfg.gather_nd %x, %some : (tensor<?xf32>, tensor<?x1xi64>) -> tensor<?xf32> loc("a")
    %b = dfg.gather_nd %x, %others : (tensor<?xf32>, tensor<?x1xi64>) -> tensor<?xf32> loc("b")
    // expected-error @below {{and rows of two choices meet: compute with all rows, and choose among what they give}}
    %both = dfg.add_v2 %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %loss = dfg.sum %both, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// A mask and what it leaves out are two choices, and so is the same mask turned.
module {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<?x3xi1> loc("w")
    %not = dfg.logical_not %w : (tensor<?x3xi1>) -> tensor<?x3xi1> loc("not")
    %some = dfg.opaque "Where"(%w) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("some")
    %others = dfg.opaque "Where"(%not) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("others")
    %a = dfg.gather_nd %x, %some : (tensor<?x3xf32>, tensor<?x2xi64>) -> tensor<?xf32> loc("a")
    %b = dfg.gather_nd %x, %others : (tensor<?x3xf32>, tensor<?x2xi64>) -> tensor<?xf32> loc("b")
    // expected-error @below {{and rows of two choices meet}}
    %both = dfg.add_v2 %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %loss = dfg.sum %both, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

module {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<?x3xi1> loc("w")
    %order = dfg.const dense<[1, 0]> : tensor<2xi32> : tensor<2xi32> loc("order")
    %vector = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32> loc("vector")
    %turned = dfg.transpose %w, %order : (tensor<?x3xi1>, tensor<2xi32>) -> tensor<3x?xi1> loc("turned")
    %flat = dfg.reshape %turned, %vector : (tensor<3x?xi1>, tensor<1xi32>) -> tensor<?xi1> loc("flat")
    %xs = dfg.reshape %x, %vector : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32> loc("xs")
    %some = dfg.opaque "Where"(%w) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("some")
    %others = dfg.opaque "Where"(%flat) : (tensor<?xi1>) -> tensor<?x1xi64> loc("others")
    %a = dfg.gather_nd %x, %some : (tensor<?x3xf32>, tensor<?x2xi64>) -> tensor<?xf32> loc("a")
    %b = dfg.gather_nd %xs, %others : (tensor<?xf32>, tensor<?x1xi64>) -> tensor<?xf32> loc("b")
    // expected-error @below {{and rows of two choices meet}}
    %both = dfg.add_v2 %a, %b : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %loss = dfg.sum %both, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Parts that are not all of a partition leave places empty.
module {
  dfg.graph attributes {loss = "loss:0"} {
    %part = dfg.placeholder : () -> tensor<?xi32> loc("part")
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %start = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("start")
    %step = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("step")
    %size = dfg.size %x : (tensor<?xf32>) -> tensor<i32> loc("size")
    %range = dfg.range %start, %size, %step : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32> loc("range")
    %xs:2 = dfg.dynamic_partition %x, %part : (tensor<?xf32>, tensor<?xi32>) -> (tensor<?xf32>, tensor<?xf32>) loc("xs")
    %places:2 = dfg.dynamic_partition %range, %part : (tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>) loc("places")
    // expected-error @below {{some parts of the partition are left out}}
    %rows = dfg.dynamic_stitch %places#0, %xs#0 : (tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %loss = dfg.sum %rows, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

module {
  dfg.graph attributes {fetches = ["rows:0"]} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    // expected-error@unknown {{'rows' has as many rows as data say, and cannot be fetched}}
    %rows = dfg.gather_nd %x, %at : (tensor<?xf32>, tensor<?x1xi64>) -> tensor<?xf32> loc("rows")
  }
}

// -----

// Rows that are repeated by other lengths than those that chose the values.
module {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
    %others = dfg.placeholder : () -> tensor<?xi32> loc("others")
    %n = dfg.placeholder : () -> tensor<?xi32> loc("n")
    %none = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("none")
    %one = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("one")
    %vector = dfg.const dense<-1> : tensor<1xi32> : tensor<1xi32> loc("vector")
    %axis = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("axis")
    %columns = dfg.const dense<[0, 1, 2]> : tensor<3xi32> : tensor<3xi32> loc("columns")
    %lengths = dfg.expand_dims %n, %one : (tensor<?xi32>, tensor<i32>) -> tensor<?x1xi32> loc("lengths")
    %mask = dfg.less %columns, %lengths : (tensor<3xi32>, tensor<?x1xi32>) -> tensor<?x3xi1> loc("mask")
    %at = dfg.opaque "Where"(%mask) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("at")
    %values = dfg.gather_nd %x, %at : (tensor<?x3xf32>, tensor<?x2xi64>) -> tensor<?xf32> loc("values")
    %times = dfg.identity %others : (tensor<?xi32>) -> tensor<?xi32> loc("times")
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
    // expected-error @below {{it repeats each row as often as data say, and these lengths are not those by which rows were chosen before}}
    %ids = dfg.gather_v2 %all, %place, %none {batch_dims = 0 : i64} : (tensor<?xi32>, tensor<?xi64>, tensor<i32>) -> tensor<?xi32>
    %most = dfg.unsorted_segment_max %values, %ids, %size : (tensor<?xf32>, tensor<?xi32>, tensor<i32>) -> tensor<?xf32> loc("most")
    %loss = dfg.mean %most, %axis : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Of one tensor two values are left out at other places.
module {
  dfg.graph attributes {loss = "loss:0"} {
    %ids = dfg.placeholder : () -> tensor<?x3xf32> loc("ids")
    %none = dfg.const dense<-1.0> : tensor<f32> : tensor<f32> loc("none")
    %zero = dfg.const dense<0.0> : tensor<f32> : tensor<f32> loc("zero")
    %axis = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("axis")
    %some = dfg.not_equal %ids, %none {incompatible_shape_error = true} : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xi1> loc("some")
    %others = dfg.not_equal %ids, %zero {incompatible_shape_error = true} : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xi1> loc("others")
    %at = dfg.opaque "Where"(%some) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("at")
    %of = dfg.opaque "Where"(%others) : (tensor<?x3xi1>) -> tensor<?x2xi64> loc("of")
    %id = dfg.gather_nd %ids, %at : (tensor<?x3xf32>, tensor<?x2xi64>) -> tensor<?xf32> loc("id")
    %other = dfg.gather_nd %ids, %of : (tensor<?x3xf32>, tensor<?x2xi64>) -> tensor<?xf32> loc("other")
    // expected-error @below {{and rows of two choices meet}}
    %both = dfg.mul %id, %other : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    %loss = dfg.sum %both, %axis : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// An order of all of a batch's rows is none of those that are there.
module {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %valid = dfg.placeholder {dfg.validity} : () -> tensor<?xi1> loc("valid")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32> loc("one")
    %at = dfg.opaque "Where"(%valid) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    %rows = dfg.gather_nd %x, %at : (tensor<?xf32>, tensor<?x1xi64>) -> tensor<?xf32> loc("rows")
    %shape = dfg.shape %rows : (tensor<?xf32>) -> tensor<1xi32> loc("shape")
    %size = dfg.strided_slice %shape, %zero, %one, %one {shrink_axis_mask = 1 : i64} : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("size")
    // expected-error @below {{(random_permutation) has no code here for a batch with fewer rows (--pad-batch): random numbers are drawn for all of them; leave the flag out}}
    %order = dfg.random_permutation %size {seed = 1 : i64, seed2 = 2 : i64} : (tensor<i32>) -> tensor<?xi32>
    %some = dfg.cast %order : (tensor<?xi32>) -> tensor<?xf32> loc("some")
    %both = dfg.mul %rows, %some : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> loc("both")
    %loss = dfg.sum %both, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Rows that are no multiple of the batch's.
module {
  dfg.graph attributes {loss = "loss:0"} {
    %id = dfg.placeholder : () -> tensor<?xi32> loc("id")
    %part = dfg.placeholder : () -> tensor<?xi32> loc("part")
    %more = dfg.const dense<[3, 0, 7]> : tensor<3xi32> : tensor<3xi32> loc("more")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %all = dfg.concat_v2 %id, %more, %axis : (tensor<?xi32>, tensor<3xi32>, tensor<i32>) -> tensor<?xi32> loc("all")
    %parts = dfg.concat_v2 %part, %more, %axis : (tensor<?xi32>, tensor<3xi32>, tensor<i32>) -> tensor<?xi32> loc("parts")
    %ids:8 = dfg.dynamic_partition %all, %parts : (tensor<?xi32>, tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) loc("ids")
    %vector = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("vector")
    // expected-error @below {{and it does not work row by row}}
    %turned = dfg.reverse_v2 %ids#0, %vector : (tensor<?xi32>, tensor<1xi32>) -> tensor<?xi32>
    %loss = dfg.sum %turned, %vector : (tensor<?xi32>, tensor<1xi32>) -> tensor<i32> loc("loss")
  }
}

// -----

// The sum for a distinct row, or the row itself, which would be added as often as it is met.
module {
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
    %long = dfg.greater %rows, %limit : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xi1> loc("long")
    // expected-error @below {{and it is not linear in rows that are to be added up}}
    %chosen = dfg.select_v2 %long, %sum, %rows : (tensor<?x4xi1>, tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
    %both = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("both")
    %loss = dfg.sum %chosen, %both : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// A batch that is a number is one among other sizes.
module {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<8xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<8xi1> loc("w")
    // expected-error @below {{only rows of the batch are chosen; there are others; the graph fixes its batch to 8 rows: leave the placeholders' first size open (None)}}
    %at = dfg.opaque "Where"(%w) : (tensor<8xi1>) -> tensor<?x1xi64>
    %rows = dfg.gather_nd %x, %at : (tensor<8xf32>, tensor<?x1xi64>) -> tensor<?xf32> loc("rows")
    %axis = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("axis")
    %loss = dfg.sum %rows, %axis : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Of each row the rows would be as many, and how many they are is no number of the batch's rows.
module {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?x9xf32> loc("x")
    %y = dfg.placeholder : () -> tensor<?xi32> loc("y")
    %both = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("both")
    %first = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("first")
    %count = dfg.max %y, %first : (tensor<?xi32>, tensor<1xi32>) -> tensor<i32> loc("count")
    // expected-error @below {{(top_k_v2) has no code here: the number of its rows is only known when the program runs, and it takes as many of each row: take the largest of a vector, or a number of them that is known and mask the others}}
    %values, %indices = dfg.top_k_v2 %x, %count : (tensor<?x9xf32>, tensor<i32>) -> (tensor<?x?xf32>, tensor<?x?xi32>)
    %loss = dfg.sum %values, %both : (tensor<?x?xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  }
}

// -----

// Sizes that data say cannot be compared.
module {
  dfg.graph attributes {fetches = ["count:0"]} {
    %y = dfg.placeholder : () -> tensor<?xi32> loc("y")
    %first = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("first")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    %longest = dfg.max %y, %first : (tensor<?xi32>, tensor<1xi32>) -> tensor<i32> loc("longest")
    %size = dfg.size %y : (tensor<?xi32>) -> tensor<i32> loc("size")
    %sizes = dfg.pack %size, %longest : (tensor<i32>, tensor<i32>) -> tensor<2xi32> loc("sizes")
    %set = dfg.expand_dims %sizes, %axis : (tensor<2xi32>, tensor<i32>) -> tensor<1x2xi32> loc("set")
    // expected-error @below {{the number of its rows is only known when the program runs, and so are sizes that it compares: make them numbers (maxlen of tf.sequence_mask, slices up to a constant), or compute the weighted loss without tf.losses}}
    %sets:3 = dfg.opaque "DenseToDenseSetOperation"(%set, %set) {tf = {set_operation = "a-b", validate_indices = true}}
      : (tensor<1x2xi32>, tensor<1x2xi32>) -> (tensor<?x2xi64>, tensor<?xi32>, tensor<2xi64>)
    %count = dfg.size %sets#1 : (tensor<?xi32>) -> tensor<i32> loc("count")
  }
}
