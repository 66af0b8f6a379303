// What a graph that fixes its batch leaves open.
// RUN: distc-opt %s --split-input-file --verify-diagnostics --dist-couple-replicas

// The root of the number of rows: of a whole sum nothing would show that it is to grow with it. The sum stays a share's.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.graph attributes {fetches = ["rows:0"]} {
    %x = dfg.placeholder : () -> tensor<16xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %root = dfg.const dense<4.0> : tensor<f32> : tensor<f32>
    %sum = dfg.sum %x, %zero : (tensor<16xf32>, tensor<1xi32>) -> tensor<f32> loc("sum")
    %times = dfg.mul %sum, %root : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("times")
    %rows = dfg.real_div %x, %times : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32> loc("rows")
  }
}

// -----

module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @seen : tensor<f32>
  dfg.variable @w : tensor<f32> {trainable}
  // expected-warning@+1 {{the graph fixes its batch to the 8 rows of each replica, and nothing shows whether what it computes with that number counts examples: it is left as it is at 'eight'; where it does, leave the placeholders' first size open (None) and take it of tf.shape}}
  dfg.graph attributes {train_op = "train"} {
    %x = dfg.placeholder : () -> tensor<8xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %eight = dfg.const dense<8.0> : tensor<f32> : tensor<f32> loc("eight")
    %handle = dfg.var_handle @seen : !dfg.ref<tensor<f32>> loc("seen")
    dfg.assign_add %handle, %eight : (!dfg.ref<tensor<f32>>, tensor<f32>) -> () loc("count")
    %mean = dfg.mean %x, %zero : (tensor<8xf32>, tensor<1xi32>) -> tensor<f32> loc("mean")
    %v = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    dfg.apply_gradient_descent %v, %mean, %mean : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("step")
    dfg.group {control = ["count", "step"]} : () -> () loc("train")
  }
}

// -----

// Bessel's correction of the rows of one replica.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable}
  dfg.graph attributes {train_op = "step"} {
    %x = dfg.placeholder : () -> tensor<8xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %seven = dfg.const dense<7.0> : tensor<f32> : tensor<f32> loc("seven")
    %mean = dfg.mean %x, %zero : (tensor<8xf32>, tensor<1xi32>) -> tensor<f32> loc("mean")
    %centered = dfg.sub %x, %mean : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32> loc("centered")
    %root = dfg.sqrt %mean : (tensor<f32>) -> tensor<f32> loc("root")
    %rows = dfg.mul %centered, %root : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32> loc("rows")
    %slope = dfg.mean %rows, %zero : (tensor<8xf32>, tensor<1xi32>) -> tensor<f32> loc("slope")
    // expected-error@unknown {{node 'corrected' combines the number 'seven' with a mean or sum over the batch, which the graph fixes to the 8 rows of each replica: it may be the size of the sample}}
    %corrected = dfg.real_div %root, %seven : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("corrected")
    %v = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    dfg.apply_gradient_descent %v, %corrected, %slope : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("step")
  }
}

// -----

// A condition that was decided by the rows of one replica.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  // expected-error@+1 {{'more' is decided by a number that may be the size of the batch, which the graph fixes to the 8 rows of each replica: in a graph of all replicas' rows it may go the other way}}
  dfg.graph attributes {train_op = "train", decided_by_rows = {more = []}} {
    %x = dfg.placeholder : () -> tensor<8xf32> loc("x")
    dfg.group : () -> () loc("train")
  }
}

// -----

// Loops over all time steps, and over all rows.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  // expected-error@+1 {{'rows' is decided by a number that may be the size of the batch}}
  dfg.graph attributes {train_op = "train", decided_by_rows = {steps = ["turned:0", 0], rows = ["turned:0", 1]}} {
    %x = dfg.placeholder : () -> tensor<8x16xf32> loc("x")
    %turn = dfg.const dense<[1, 0]> : tensor<2xi32> : tensor<2xi32>
    %turned = dfg.transpose %x, %turn : (tensor<8x16xf32>, tensor<2xi32>) -> tensor<16x8xf32> loc("turned")
    dfg.group : () -> () loc("train")
  }
}

// -----

// A choice by what is computed of the rows of a shape.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable}
  dfg.graph attributes {train_op = "step"} {
    %x = dfg.placeholder : () -> tensor<8x3xf32> loc("x")
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    %shape = dfg.const dense<[8, 3]> : tensor<2xi32> : tensor<2xi32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32>
    %few = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
    %many = dfg.const dense<9.0> : tensor<f32> : tensor<f32>
    %rows = dfg.strided_slice %shape, %zero, %one, %one {shrink_axis_mask = 1} : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("rows")
    %count = dfg.cast %rows : (tensor<i32>) -> tensor<f32> loc("count")
    %is_some = dfg.greater %count, %few : (tensor<f32>, tensor<f32>) -> tensor<i1> loc("is_some")
    %is_many = dfg.greater %count, %many : (tensor<f32>, tensor<f32>) -> tensor<i1> loc("is_many")
    %mean = dfg.mean %x, %axes : (tensor<8x3xf32>, tensor<2xi32>) -> tensor<f32> loc("mean")
    %twice = dfg.add_v2 %mean, %mean : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("twice")
    %some = dfg.select_v2 %is_some, %mean, %twice : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32> loc("some")
    // expected-error@unknown {{'many' is decided by a number that may be the size of the batch}}
    %many_of = dfg.select_v2 %is_many, %some, %twice : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32> loc("many")
    %v = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    dfg.apply_gradient_descent %v, %few, %many_of : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("step")
  }
}

// -----

// As often as there are rows: the mean as many times, and copies of it added up.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable}
  dfg.graph attributes {train_op = "step"} {
    %x = dfg.placeholder : () -> tensor<8xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %eight = dfg.const dense<8.0> : tensor<f32> : tensor<f32> loc("eight")
    %mean = dfg.mean %x, %zero : (tensor<8xf32>, tensor<1xi32>) -> tensor<f32> loc("mean")
    // expected-error@unknown {{node 'total' combines a mean over the batch with a number that may be the batch's size, which the graph fixes to the 8 rows of each replica: of all replicas' rows there are more}}
    %total = dfg.mul %mean, %eight : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("total")
    %v = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    dfg.apply_gradient_descent %v, %mean, %total : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("step")
  }
}

// -----

module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable}
  dfg.graph attributes {train_op = "step"} {
    %x = dfg.placeholder : () -> tensor<8xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %ones = dfg.const dense<1.0> : tensor<8xf32> : tensor<8xf32> loc("ones")
    %mean = dfg.mean %x, %zero : (tensor<8xf32>, tensor<1xi32>) -> tensor<f32> loc("mean")
    %copies = dfg.mul %ones, %mean : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32> loc("copies")
    // expected-error@unknown {{node 'total' adds up copies whose number may be the batch's size}}
    %total = dfg.sum %copies, %zero : (tensor<8xf32>, tensor<1xi32>) -> tensor<f32> loc("total")
    %v = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    dfg.apply_gradient_descent %v, %mean, %total : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("step")
  }
}

// -----

// Also of two rows, where the same number is the gradient's of a square.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<f32> {trainable}
  dfg.graph attributes {train_op = "step"} {
    %x = dfg.placeholder : () -> tensor<2xf32> loc("x")
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %two = dfg.const dense<2.0> : tensor<f32> : tensor<f32> loc("two")
    %mean = dfg.mean %x, %zero : (tensor<2xf32>, tensor<1xi32>) -> tensor<f32> loc("mean")
    %slope = dfg.mul %mean, %two : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("slope")
    %square = dfg.square %mean : (tensor<f32>) -> tensor<f32> loc("square")
    %other = dfg.mean %x, %zero : (tensor<2xf32>, tensor<1xi32>) -> tensor<f32> loc("other")
    // expected-error@unknown {{node 'total' combines a mean over the batch with a number that may be the batch's size, which the graph fixes to the 2 rows of each replica}}
    %total = dfg.mul %other, %two : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("total")
    %sum = dfg.add_v2 %slope, %total : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("sum")
    %v = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    dfg.apply_gradient_descent %v, %mean, %sum : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("step")
  }
}

// -----

// Control flow that an export keeps: a condition in the body of a loop, by the rows of a shape that the body has as a constant.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.func @more(%y: tensor<f32>) -> tensor<i1> {
    %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    %more = dfg.greater %y, %one : (tensor<f32>, tensor<f32>) -> tensor<i1> loc("is_more")
    dfg.return %more : tensor<i1>
  }
  dfg.func @halve(%y: tensor<f32>) -> tensor<f32> {
    %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
    %next = dfg.mul %y, %half : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("half")
    dfg.return %next : tensor<f32>
  }
  dfg.func @body(%y: tensor<f32>) -> tensor<f32> {
    %shape = dfg.const dense<[8, 3]> : tensor<2xi32> : tensor<2xi32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32>
    %nine = dfg.const dense<9> : tensor<i32> : tensor<i32>
    %rows = dfg.strided_slice %shape, %zero, %one, %one {shrink_axis_mask = 1} : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("rows")
    %many = dfg.greater %rows, %nine : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("many")
    %next = dfg.opaque "StatelessIf"(%many, %y) {tf = {then_branch = #dfg.func<@halve, {}>, else_branch = #dfg.func<@halve, {}>}} : (tensor<i1>, tensor<f32>) -> tensor<f32> loc("if")
    dfg.return %next : tensor<f32>
  }
  dfg.variable @w : tensor<f32> {trainable}
  dfg.graph attributes {train_op = "step"} {
    %x = dfg.placeholder : () -> tensor<8x3xf32> loc("x")
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    %mean = dfg.mean %x, %axes : (tensor<8x3xf32>, tensor<2xi32>) -> tensor<f32> loc("mean")
    %h = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %w = dfg.read_variable %h : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("read")
    // expected-error@unknown {{'loop' is decided by a number that may be the size of the batch, which the graph fixes to the 8 rows of each replica}}
    %rate = dfg.opaque "StatelessWhile"(%w) {tf = {cond = #dfg.func<@more, {}>, body = #dfg.func<@body, {}>}} : (tensor<f32>) -> tensor<f32> loc("loop")
    dfg.apply_gradient_descent %h, %rate, %mean : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("step")
  }
}

// -----

// A loop that counts to the rows, which it is given; and one that asks of them what holds of any number of replicas.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.func @below(%i: tensor<i32>, %n: tensor<i32>, %y: tensor<f32>) -> tensor<i1> {
    %below = dfg.less %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("below")
    dfg.return %below : tensor<i1>
  }
  dfg.func @some(%i: tensor<i32>, %n: tensor<i32>, %y: tensor<f32>) -> tensor<i1> {
    %one = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    %none = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %more = dfg.greater %y, %one : (tensor<f32>, tensor<f32>) -> tensor<i1> loc("more")
    %any = dfg.greater %n, %none : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("any")
    %both = dfg.logical_and %more, %any : (tensor<i1>, tensor<i1>) -> tensor<i1> loc("both")
    dfg.return %both : tensor<i1>
  }
  dfg.func @body(%i: tensor<i32>, %n: tensor<i32>, %y: tensor<f32>) -> (tensor<i32>, tensor<i32>, tensor<f32>) {
    %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
    %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
    %next = dfg.add_v2 %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32> loc("next")
    %less = dfg.mul %y, %half : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("less")
    dfg.return %next, %n, %less : tensor<i32>, tensor<i32>, tensor<f32>
  }
  dfg.variable @w : tensor<f32> {trainable}
  dfg.graph attributes {train_op = "step"} {
    %x = dfg.placeholder : () -> tensor<8x3xf32> loc("x")
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    %shape = dfg.const dense<[8, 3]> : tensor<2xi32> : tensor<2xi32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %one = dfg.const dense<1> : tensor<1xi32> : tensor<1xi32>
    %begin = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %rows = dfg.strided_slice %shape, %zero, %one, %one {shrink_axis_mask = 1} : (tensor<2xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<i32> loc("rows")
    %mean = dfg.mean %x, %axes : (tensor<8x3xf32>, tensor<2xi32>) -> tensor<f32> loc("mean")
    %h = dfg.var_handle @w : !dfg.ref<tensor<f32>> loc("w")
    %w = dfg.read_variable %h : (!dfg.ref<tensor<f32>>) -> tensor<f32> loc("read")
    %first:3 = dfg.opaque "StatelessWhile"(%begin, %rows, %w) {tf = {cond = #dfg.func<@some, {}>, body = #dfg.func<@body, {}>}} : (tensor<i32>, tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<i32>, tensor<f32>) loc("while_some")
    // expected-error@unknown {{'while_below' is decided by a number that may be the size of the batch}}
    %rate:3 = dfg.opaque "StatelessWhile"(%begin, %rows, %first#2) {tf = {cond = #dfg.func<@below, {}>, body = #dfg.func<@body, {}>}} : (tensor<i32>, tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<i32>, tensor<f32>) loc("while_below")
    dfg.apply_gradient_descent %h, %rate#2, %mean : (!dfg.ref<tensor<f32>>, tensor<f32>, tensor<f32>) -> () loc("step")
  }
}

// -----

// Noise that a generator makes examples of: it meets no example, and its mean over 8 rows is not the one over all replicas' rows. What is drawn for a variable of as many
// rows or for columns, or is a matrix that features are multiplied by, is none of the batch's.
module attributes {dist.strategy = #dist.strategy<"">} {
  dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>]
  dfg.variable @w : tensor<8x3xf32> {trainable}
  dfg.graph attributes {train_op = "step", fetches = ["scores:0"]} {
    %x = dfg.placeholder : () -> tensor<8x8xf32> loc("x")
    %both = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    %shape = dfg.const dense<[8, 3]> : tensor<2xi32> : tensor<2xi32>
    %rate = dfg.const dense<0.1> : tensor<f32> : tensor<f32>
    %v = dfg.var_handle @w : !dfg.ref<tensor<8x3xf32>> loc("v")
    %w = dfg.read_variable %v : (!dfg.ref<tensor<8x3xf32>>) -> tensor<8x3xf32> loc("w")
    %noise = dfg.random_standard_normal %shape {seed = 1 : i64, seed2 = 2 : i64} : (tensor<2xi32>) -> tensor<8x3xf32> loc("noise")
    %scaled = dfg.mul %noise, %rate : (tensor<8x3xf32>, tensor<f32>) -> tensor<8x3xf32> loc("scaled")
    %near = dfg.add_v2 %w, %scaled : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32> loc("near")
    %matrix = dfg.random_standard_normal %shape {seed = 1 : i64, seed2 = 3 : i64} : (tensor<2xi32>) -> tensor<8x3xf32> loc("matrix")
    %projected = dfg.mat_mul %x, %matrix : (tensor<8x8xf32>, tensor<8x3xf32>) -> tensor<8x3xf32> loc("projected")
    %columns = dfg.const dense<8> : tensor<1xi32> : tensor<1xi32>
    %phases = dfg.random_uniform %columns {seed = 1 : i64, seed2 = 5 : i64} : (tensor<1xi32>) -> tensor<8xf32> loc("phases")
    %shifted = dfg.add_v2 %x, %phases : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32> loc("shifted")
    %other = dfg.mean %shifted, %both : (tensor<8x8xf32>, tensor<2xi32>) -> tensor<f32> loc("other")
    %near_real = dfg.mean %projected, %both : (tensor<8x3xf32>, tensor<2xi32>) -> tensor<f32> loc("near_real")
    %real = dfg.add_v2 %near_real, %other : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("real")
    // expected-error@unknown {{node 'latent' draws as many rows of random numbers as the batch has, which the graph fixes to the 8 rows of each replica, and nothing shows whether it draws them for the examples: for those of all replicas there are more; leave the placeholders' first size open (None) and take it of tf.shape, give the graph's number as --batch, or say coupling=replica in the strategy}}
    %latent = dfg.random_standard_normal %shape {seed = 1 : i64, seed2 = 4 : i64} : (tensor<2xi32>) -> tensor<8x3xf32> loc("latent")
    %made = dfg.tanh %latent : (tensor<8x3xf32>) -> tensor<8x3xf32> loc("made")
    %fake = dfg.mean %made, %both : (tensor<8x3xf32>, tensor<2xi32>) -> tensor<f32> loc("fake")
    %scores = dfg.sub %real, %fake : (tensor<f32>, tensor<f32>) -> tensor<f32> loc("scores")
    dfg.apply_gradient_descent %v, %scores, %near : (!dfg.ref<tensor<8x3xf32>>, tensor<f32>, tensor<8x3xf32>) -> () loc("step")
  }
}
