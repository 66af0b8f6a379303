// RUN: distc-opt %s --dfg-infer-shapes --split-input-file --verify-diagnostics

// A sum would add padding.
dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = []} {
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %y, %idx = dfg.unique %ids : (tensor<4xi32>) -> (tensor<*xi32>, tensor<*xi32>) loc("unique")
  // expected-error@unknown {{node 'total' (sum) needs the true size of 'unique', which depends on the data}}
  %total = dfg.sum %y, %axis : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("total")
  dfg.return
}

// -----

// A count that is used as a number.
dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = []} {
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %y, %idx = dfg.unique %ids : (tensor<4xi32>) -> (tensor<*xi32>, tensor<*xi32>) loc("unique")
  %size = dfg.size %y : (tensor<*xi32>) -> tensor<i32> loc("size")
  %number = dfg.cast %size : (tensor<i32>) -> tensor<f32> loc("number")
  // expected-error@unknown {{node 'root' (sqrt) needs the true value of 'number'}}
  %root = dfg.sqrt %number : (tensor<f32>) -> tensor<f32> loc("root")
  dfg.return
}

// -----

// What is computed from distinct values has other numbers than -1 behind them.
dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = []} {
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %rows = dfg.const dense<1.0> : tensor<4x3xf32> : tensor<4x3xf32> loc("rows")
  %three = dfg.const dense<3> : tensor<i32> : tensor<i32> loc("three")
  %y, %idx = dfg.unique %ids : (tensor<4xi32>) -> (tensor<*xi32>, tensor<*xi32>) loc("unique")
  %class = dfg.floor_mod %y, %three : (tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("class")
  // expected-error@unknown {{node 'sums' (unsorted_segment_sum) takes indices that are computed from values of which there are fewer than room for them}}
  %sums = dfg.unsorted_segment_sum %rows, %class, %three : (tensor<4x3xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("sums")
  dfg.return
}

// -----

// So has what is looked up by them.
dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = []} {
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %rows = dfg.const dense<1.0> : tensor<4x3xf32> : tensor<4x3xf32> loc("rows")
  %classes = dfg.const dense<1> : tensor<9xi32> : tensor<9xi32> loc("classes")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %shape = dfg.const dense<[9, 3]> : tensor<2xi32> : tensor<2xi32> loc("shape")
  %column = dfg.const dense<[-1, 1]> : tensor<2xi32> : tensor<2xi32> loc("column")
  %y, %idx = dfg.unique %ids : (tensor<4xi32>) -> (tensor<*xi32>, tensor<*xi32>) loc("unique")
  %class = dfg.gather_v2 %classes, %y, %axis : (tensor<9xi32>, tensor<*xi32>, tensor<i32>) -> tensor<*xi32> loc("class")
  %at = dfg.reshape %class, %column : (tensor<*xi32>, tensor<2xi32>) -> tensor<*xi32> loc("at")
  // expected-error@unknown {{node 'put' (scatter_nd) takes indices that are computed from values of which there are fewer than room for them}}
  %put = dfg.scatter_nd %at, %rows, %shape : (tensor<*xi32>, tensor<4x3xf32>, tensor<2xi32>) -> tensor<*xf32> loc("put")
  dfg.return
}

// -----

// Padding that no index of -1 marks.
dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = []} {
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  %table = dfg.const dense<1.0> : tensor<9x3xf32> : tensor<9x3xf32> loc("table")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %segments = dfg.const dense<[0, 0, 1, 1]> : tensor<4xi32> : tensor<4xi32> loc("segments")
  %two = dfg.const dense<2> : tensor<i32> : tensor<i32> loc("two")
  %y, %idx = dfg.unique %ids : (tensor<4xi32>) -> (tensor<*xi32>, tensor<*xi32>) loc("unique")
  %rows = dfg.gather_v2 %table, %y, %axis : (tensor<9x3xf32>, tensor<*xi32>, tensor<i32>) -> tensor<*xf32> loc("rows")
  // expected-error@unknown {{node 'sums' (unsorted_segment_sum) needs the true size of 'rows'}}
  %sums = dfg.unsorted_segment_sum %rows, %segments, %two : (tensor<*xf32>, tensor<4xi32>, tensor<i32>) -> tensor<*xf32> loc("sums")
  dfg.return
}

// -----

// What is fetched is named, and not the end of the function that gives it.
dfg.func @eval() -> tensor<*xi32> attributes {dfg.entry = "eval", dfg.fetches = ["unique:0"]} {
  %ids = dfg.placeholder : () -> tensor<4xi32> loc("ids")
  // expected-error@unknown {{'unique' has as many rows as data say, and cannot be fetched: it is only known when the program runs; fetch a sum or a mean over the rows}}
  %y, %idx = dfg.unique %ids : (tensor<4xi32>) -> (tensor<*xi32>, tensor<*xi32>) loc("unique")
  dfg.return %y : tensor<*xi32>
}

// -----

// Places that are looked up by others have no -1 behind the last.
dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = []} {
  %ids = dfg.placeholder : () -> tensor<4xi64> loc("ids")
  %places = dfg.const dense<1> : tensor<9x2xi64> : tensor<9x2xi64> loc("places")
  %labels = dfg.const dense<1> : tensor<4xi64> : tensor<4xi64> loc("labels")
  %sizes = dfg.const dense<2> : tensor<2xi64> : tensor<2xi64> loc("sizes")
  %axis = dfg.const dense<0> : tensor<i32> : tensor<i32> loc("axis")
  %y, %idx = dfg.unique %ids : (tensor<4xi64>) -> (tensor<*xi64>, tensor<*xi32>) loc("unique")
  %at = dfg.gather_v2 %places, %y, %axis : (tensor<9x2xi64>, tensor<*xi64>, tensor<i32>) -> tensor<*xi64> loc("at")
  // expected-error@unknown {{node 'distance' (edit_distance) needs the true size of 'at', which depends on the data}}
  %e = dfg.edit_distance %at, %y, %sizes, %places, %labels, %sizes
    : (tensor<*xi64>, tensor<*xi64>, tensor<2xi64>, tensor<9x2xi64>, tensor<4xi64>, tensor<2xi64>) -> tensor<*xf32> loc("distance")
  dfg.return
}
