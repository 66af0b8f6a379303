// RUN: distc-opt %s --split-input-file --dfg-mask-rows --verify-diagnostics

// What looks at several rows sees which are there.
module {
  dfg.graph attributes {loss = "loss:0"} {
    %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
    %w = dfg.placeholder : () -> tensor<?xi1> loc("w")
    %at = dfg.opaque "Where"(%w) : (tensor<?xi1>) -> tensor<?x1xi64> loc("at")
    %rows = dfg.gather_nd %x, %at : (tensor<?xf32>, tensor<?x1xi64>) -> tensor<?xf32> loc("rows")
    %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
    // expected-error @below {{(cumsum) has no code here: the number of its rows is only known when the program runs (by 'w'), and it does not work row by row}}
    %sums = dfg.cumsum %rows, %axis : (tensor<?xf32>, tensor<i32>) -> tensor<?xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("zero")
    %loss = dfg.sum %sums, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
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
    // expected-error @below {{and rows of two choices meet}}
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
