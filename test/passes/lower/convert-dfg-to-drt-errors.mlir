// RUN: distc-opt %s --convert-dfg-to-drt --split-input-file --verify-diagnostics

dfg.func @open() -> tensor<?xf32> attributes {dfg.fetches = ["y:0"]} {
  // expected-error@+1 {{has no static shape ('tensor<?xf32>'): give the global batch with --batch, or the shapes of its feeds with --feed NAME=SHAPE}}
  %x = dfg.placeholder : () -> tensor<?xf32>
  dfg.return %x : tensor<?xf32>
}

// -----

dfg.func @sized_by_data() -> tensor<?xi32> attributes {dfg.fetches = ["y:0"]} {
  %start = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("start")
  %lengths = dfg.placeholder : () -> tensor<4xi32> loc("lengths")
  %axes = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("axes")
  %end = dfg.max %lengths, %axes : (tensor<4xi32>, tensor<1xi32>) -> tensor<i32> loc("longest")
  %step = dfg.const dense<1> : tensor<i32> : tensor<i32> loc("step")
  // expected-error@+1 {{has no static shape ('tensor<?xi32>'): what 'longest' computes says how large it is, when the program runs; make its size a number (maxlen of tf.sequence_mask, for example)}}
  %y = dfg.range %start, %end, %step : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<?xi32>
  dfg.return %y : tensor<?xi32>
}

// -----

dfg.func @late() -> tensor<2x2xf32> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<2x2xf32>
  %order = dfg.placeholder : () -> tensor<2xi32>
  // expected-error@+1 {{operand 1 must be a constant when code is generated}}
  %y = dfg.transpose %x, %order : (tensor<2x2xf32>, tensor<2xi32>) -> tensor<2x2xf32>
  dfg.return %y : tensor<2x2xf32>
}

// -----

dfg.func @unsigned() -> tensor<2xui8> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<2xf32>
  // expected-error@+1 {{no code can be generated for elements of type 'ui8'}}
  %y = dfg.cast %x : (tensor<2xf32>) -> tensor<2xui8>
  dfg.return %y : tensor<2xui8>
}

// -----

dfg.func @images() -> tensor<1x1x2x2xf32> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<1x1x4x4xf32>
  // expected-error@+1 {{data_format "NCHW" has no code for CPUs; export the graph with NHWC}}
  %y = dfg.max_pool %x {ksize = [1, 1, 2, 2], strides = [1, 1, 2, 2], padding = "VALID", data_format = "NCHW"}
    : (tensor<1x1x4x4xf32>) -> tensor<1x1x2x2xf32>
  dfg.return %y : tensor<1x1x2x2xf32>
}

// -----

// expected-error@+1 {{variable 'w' has no static shape}}
dfg.variable @w : tensor<?xf32>

// -----

// Of a batch that is only accumulated nothing follows.
dfg.variable @w : tensor<4xf32>
dfg.func @accumulate() -> () attributes {dfg.entry = "accumulate", dfg.fetches = []} {
  %g = dfg.placeholder : () -> tensor<4xf32> loc("g")
  // expected-error @+1 {{gives no value in entry 'accumulate', and another one needs it}}
  %a = dist.accumulate mean of 4 (%g) variables ["w"] : tensor<4xf32> -> tensor<4xf32>
  %n = dfg.neg %a : (tensor<4xf32>) -> tensor<4xf32>
  dfg.return
}

// -----

dfg.func @no_rows() -> tensor<2xf32> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<0xf32>
  %i = dfg.placeholder : () -> tensor<2xi32>
  // expected-error@+1 {{takes rows along axis 0 of 'tensor<0xf32>', which has none}}
  %y = dfg.gather %x, %i : (tensor<0xf32>, tensor<2xi32>) -> tensor<2xf32>
  dfg.return %y : tensor<2xf32>
}

// -----

dfg.func @no_largest() -> tensor<2xi64> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<2x0xf32>
  %axis = dfg.const dense<1> : tensor<i32> : tensor<i32>
  // expected-error@+1 {{asks for a position along axis 1 of 'tensor<2x0xf32>', which has none}}
  %y = dfg.arg_max %x, %axis : (tensor<2x0xf32>, tensor<i32>) -> tensor<2xi64>
  dfg.return %y : tensor<2xi64>
}

// -----

dfg.func @no_mean() -> tensor<2xi32> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<2x0xi32>
  %axis = dfg.const dense<1> : tensor<i32> : tensor<i32>
  // expected-error@+1 {{the mean of no 'i32' is no number}}
  %y = dfg.mean %x, %axis : (tensor<2x0xi32>, tensor<i32>) -> tensor<2xi32>
  dfg.return %y : tensor<2xi32>
}

// -----

dfg.func @narrow_integers() -> tensor<2x2xi16> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<2x2xi16>
  // expected-error@+1 {{has no code for elements of type 'i16'; cast its operands to float32}}
  %y = dfg.mat_mul %x, %x : (tensor<2x2xi16>, tensor<2x2xi16>) -> tensor<2x2xi16>
  dfg.return %y : tensor<2x2xi16>
}

// -----

dfg.func @fed_size() -> tensor<?xf32> attributes {dfg.fetches = ["y:0"]} {
  %size = dfg.placeholder : () -> tensor<i32> loc("size")
  %shape = "dfg.pack"(%size) : (tensor<i32>) -> tensor<1xi32>
  %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
  // expected-error@+1 {{a size of it is what 'size' is fed, which is known when the program runs; take the batch's size of a feed (tf.shape(x)[0]), and other sizes as constants}}
  %y = dfg.fill %shape, %one : (tensor<1xi32>, tensor<f32>) -> tensor<?xf32>
  dfg.return %y : tensor<?xf32>
}

// -----

dfg.func @narrow_random() -> tensor<2xi16> attributes {dfg.fetches = ["y:0"]} {
  %shape = dfg.const dense<2> : tensor<1xi32> : tensor<1xi32>
  %bound = dfg.const dense<2> : tensor<i16> : tensor<i16>
  // expected-error@+1 {{draws numbers of type 'i16', which there is no code for; draw int32 or int64 and cast them}}
  %y = dfg.random_uniform_int %shape, %bound, %bound : (tensor<1xi32>, tensor<i16>, tensor<i16>) -> tensor<2xi16>
  dfg.return %y : tensor<2xi16>
}

// -----

// One report names all nodes, of all entries.
dfg.func @step() -> tensor<2x2xi16> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<2x2xi16>
  // expected-error @unknown {{has no code for elements of type 'i16'; cast its operands to float32}}
  %y = dfg.mat_mul %x, %x : (tensor<2x2xi16>, tensor<2x2xi16>) -> tensor<2x2xi16> loc("first")
  // expected-note @unknown {{has no code for elements of type 'i16'; cast its operands to float32 (in entry 'step')}}
  %z = dfg.mat_mul %y, %x : (tensor<2x2xi16>, tensor<2x2xi16>) -> tensor<2x2xi16> loc("second")
  dfg.return %z : tensor<2x2xi16>
}

dfg.func @eval() -> tensor<2xi16> attributes {dfg.fetches = ["z:0"]} {
  %shape = dfg.const dense<2> : tensor<1xi32> : tensor<1xi32>
  %bound = dfg.const dense<2> : tensor<i16> : tensor<i16>
  // expected-note @unknown {{draws numbers of type 'i16', which there is no code for; draw int32 or int64 and cast them (in entry 'eval')}}
  %y = dfg.random_uniform_int %shape, %bound, %bound : (tensor<1xi32>, tensor<i16>, tensor<i16>) -> tensor<2xi16> loc("third")
  dfg.return %y : tensor<2xi16>
}

// -----

// What only the runtime can do has no code inside of a loop.
dfg.func @sorting_loop() -> tensor<4xf32> attributes {dfg.fetches = ["y:0"]} {
  %x = dfg.placeholder : () -> tensor<4xf32> loc("x")
  %w = dfg.while(%x) {
  ^bb0(%v: tensor<4xf32>):
    %axes = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %zero = dfg.const dense<0.0> : tensor<4xf32> : tensor<4xf32>
    %less = dfg.less %v, %zero : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
    %any = dfg.any %less, %axes : (tensor<4xi1>, tensor<i32>) -> tensor<i1>
    dfg.yield %any : tensor<i1>
  } do {
  ^bb0(%v: tensor<4xf32>):
    // expected-error@unknown {{node 'sort' (top_k) is inside of a loop of which data say when it ends, where there is no code for it}}
    %values, %indices = dfg.top_k %v {k = 4 : i64} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>) loc("sort")
    dfg.yield %values : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32> loc("loop")
  dfg.return %w : tensor<4xf32>
}
