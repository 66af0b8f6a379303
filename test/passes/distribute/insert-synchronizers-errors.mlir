// RUN: distc-opt %s --split-input-file --dist-apply-strategy="replicas=2" --dist-replicate --dist-insert-synchronizers --verify-diagnostics

module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.placeholder : () -> tensor<f32>
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    // expected-error @below {{variable 'w' cannot be synchronized: its update '' depends on node '' (dfg.max), which takes together rows of the batch that replicas have shares of, of ''; with coupling=replica in the strategy each replica uses its own}}
    %max = dfg.max %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-note @below {{the update is here}}
    dfg.apply_gradient_descent %w, %lr, %max : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

module {
  dfg.variable @table : tensor<9x4xf32> {trainable}
  dfg.graph {
    %g = dfg.placeholder : () -> tensor<?x4xf32>
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %h = dfg.var_handle @table : !dfg.ref<tensor<9x4xf32>>
    // expected-error @below {{does not know the operation, so its sparse gradient cannot be synchronized}}
    dfg.opaque "ResourceScatterSub"(%h, %ids, %g) : (!dfg.ref<tensor<9x4xf32>>, tensor<?xi32>, tensor<?x4xf32>) -> ()
  }
}

// -----

// A weighted mean: the gradient is divided by the sum of a share's weights.
module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %weights = dfg.placeholder : () -> tensor<?x1xf32>
    %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    %axis = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %sum = dfg.sum %weights, %all : (tensor<?x1xf32>, tensor<2xi32>) -> tensor<f32> loc("sum")
    // expected-error @below {{depends on node '' (dfg.real_div), which in each replica sees its own share's part of the sum or mean 'sum' over the batch}}
    %share = dfg.real_div %weights, %sum : (tensor<?x1xf32>, tensor<f32>) -> tensor<?x1xf32>
    %rows = dfg.mul %x, %share : (tensor<?x4xf32>, tensor<?x1xf32>) -> tensor<?x4xf32>
    %g = dfg.sum %rows, %axis : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-note @below {{the update is here}}
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

// A function that updates a variable, given a share of the batch: a call that was not inlined, a condition.
module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-error @unknown {{node 'call' runs a function whose node 'inner' updates a variable, and is given a share of the batch: inline calls first (dfg-inline-calls)}}
    dfg.call @apply(%g, %w) {stateful} : (tensor<4xf32>, !dfg.ref<tensor<4xf32>>) -> () loc("call")
  }
  dfg.func @apply(%g: tensor<4xf32>, %w: tensor<*x!dfg.resource>) {
    dfg.assign_sub %w, %g : (tensor<*x!dfg.resource>, tensor<4xf32>) -> () loc("inner")
    dfg.return
  }
}

// -----

module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %x = dfg.placeholder : () -> tensor<?x4xf32>
    %yes = dfg.placeholder : () -> tensor<i1>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-error @unknown {{node 'if' runs a function whose node 'inner' updates a variable, and is given a share of the batch: updates in conditions and loops cannot be synchronized}}
    dfg.opaque "If"(%yes, %g, %w) {tf = {then_branch = #dfg.func<@then, {}>, else_branch = #dfg.func<@else, {}>}} : (tensor<i1>, tensor<4xf32>, !dfg.ref<tensor<4xf32>>) -> () loc("if")
  }
  dfg.func @then(%g: tensor<4xf32>, %w: tensor<*x!dfg.resource>) {
    dfg.assign_sub %w, %g : (tensor<*x!dfg.resource>, tensor<4xf32>) -> () loc("inner")
    dfg.return
  }
  dfg.func @else(%g: tensor<4xf32>, %w: tensor<*x!dfg.resource>) {
    dfg.return
  }
}

// -----

// A sparse gradient in the graph does not let a number of the share's size pass: n / (n - 1) of the whole batch is another one.
module {
  dfg.variable @table : tensor<9xf32> {trainable}
  dfg.variable @variance : tensor<f32>
  dfg.graph {
    %ids = dfg.placeholder : () -> tensor<?xi32>
    %less = dfg.const dense<1> : tensor<i32> : tensor<i32>
    %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %table = dfg.var_handle @table : !dfg.ref<tensor<9xf32>>
    %variance = dfg.var_handle @variance : !dfg.ref<tensor<f32>>
    %x = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<9xf32>>, tensor<?xi32>) -> tensor<?xf32>
    %size = dfg.size %ids : (tensor<?xi32>) -> tensor<i32>
    %others = dfg.sub %size, %less : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %n = dfg.cast %size : (tensor<i32>) -> tensor<f32>
    // expected-note @below {{the value is made here by 'dfg.cast'}}
    %rest = dfg.cast %others : (tensor<i32>) -> tensor<f32>
    %mean = dfg.mean %x, %zero : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32>
    %ratio = dfg.real_div %n, %rest : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %unbiased = dfg.mul %mean, %ratio : (tensor<f32>, tensor<f32>) -> tensor<f32>
    dfg.scatter_sub %table, %ids, %x : (!dfg.ref<tensor<9xf32>>, tensor<?xi32>, tensor<?xf32>) -> ()
    // expected-error @below {{variable 'variance' cannot be synchronized: the value of node '' (replicated * ?)}}
    dfg.assign %variance, %unbiased : (!dfg.ref<tensor<f32>>, tensor<f32>) -> ()
  }
}

// -----

// In a graph that fixes its batch, positions in it are others in each replica's share.
module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    %x = dfg.placeholder : () -> tensor<6x4xf32>
    %zero = dfg.const dense<0> : tensor<i32> : tensor<i32>
    %one = dfg.const dense<1> : tensor<i32> : tensor<i32>
    %size = dfg.const dense<6> : tensor<i32> : tensor<i32>
    %axis = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %range = dfg.range %zero, %size, %one : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<6xi32>
    %numbers = dfg.cast %range : (tensor<6xi32>) -> tensor<6xf32>
    %positions = dfg.expand_dims %numbers, %one : (tensor<6xf32>, tensor<i32>) -> tensor<6x1xf32>
    // expected-error @below {{variable 'w' cannot be synchronized: its update '' depends on node '' (dfg.mul)}}
    %rows = dfg.mul %x, %positions : (tensor<6x4xf32>, tensor<6x1xf32>) -> tensor<6x4xf32>
    %mean = dfg.mean %rows, %axis : (tensor<6x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-note @below {{the update is here}}
    dfg.apply_gradient_descent %w, %lr, %mean : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

// In a graph that fixes its batch no number beside this sum is seen to count its terms: 7 is no multiple of the rows.
module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    %x = dfg.placeholder : () -> tensor<6x4xf32>
    %axis = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %seven = dfg.const dense<7.0> : tensor<f32> : tensor<f32>
    %total = dfg.sum %x, %axis : (tensor<6x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    // expected-note @below {{the value is made here by 'dfg.real_div'}}
    %g = dfg.real_div %total, %seven : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-error @below {{variable 'w' cannot be synchronized: the value of node '' (partial sum), which its update '' depends on, is a sum over the batch, which the graph fixes to the 6 rows of each replica: of such a sum no number is seen to be that of its terms}}
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

// As many classes as twice the examples: 8 may count either.
module {
  dfg.variable @w : tensor<1xf32> {trainable}
  dfg.graph {
    %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    %x = dfg.placeholder : () -> tensor<4x8x1xf32>
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    %eight = dfg.const dense<8.0> : tensor<f32> : tensor<f32>
    %total = dfg.sum %x, %axes : (tensor<4x8x1xf32>, tensor<2xi32>) -> tensor<1xf32>
    // expected-note @below {{the value is made here by 'dfg.real_div'}}
    %g = dfg.real_div %total, %eight : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<1xf32>>
    // expected-error @below {{is a sum over the batch, which the graph fixes to the 4 rows of each replica: of such a sum no number is seen to be that of its terms}}
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<1xf32>>, tensor<f32>, tensor<1xf32>) -> ()
  }
}

// -----

// Of column sums the columns are no examples, however many they are.
module {
  dfg.variable @w : tensor<1xf32> {trainable}
  dfg.graph {
    %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    %x = dfg.placeholder : () -> tensor<4x8x1xf32>
    %axis = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %eight = dfg.const dense<8.0> : tensor<f32> : tensor<f32>
    %columns = dfg.sum %x, %axis : (tensor<4x8x1xf32>, tensor<1xi32>) -> tensor<8x1xf32>
    %total = dfg.sum %columns, %axis : (tensor<8x1xf32>, tensor<1xi32>) -> tensor<1xf32>
    // expected-note @below {{the value is made here by 'dfg.real_div'}}
    %g = dfg.real_div %total, %eight : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<1xf32>>
    // expected-error @below {{is a sum over the batch, which the graph fixes to the 4 rows of each replica: of such a sum no number is seen to be that of its terms}}
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<1xf32>>, tensor<f32>, tensor<1xf32>) -> ()
  }
}

// -----

// All 32 terms are counted, and so are ones that are a row for each example.
module {
  dfg.variable @w : tensor<1xf32> {trainable}
  dfg.variable @v : tensor<1xf32> {trainable}
  dfg.graph {
    %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    %x = dfg.placeholder : () -> tensor<4x8x1xf32>
    %axes = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32>
    %all = dfg.const dense<32.0> : tensor<f32> : tensor<f32>
    %total = dfg.sum %x, %axes : (tensor<4x8x1xf32>, tensor<2xi32>) -> tensor<1xf32>
    %g = dfg.real_div %total, %all : (tensor<1xf32>, tensor<f32>) -> tensor<1xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<1xf32>>
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<1xf32>>, tensor<f32>, tensor<1xf32>) -> ()
    %ones = dfg.const dense<1.0> : tensor<4x1xf32> : tensor<4x1xf32>
    %axis = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %present = dfg.sum %ones, %axis : (tensor<4x1xf32>, tensor<1xi32>) -> tensor<1xf32>
    %h = dfg.div_no_nan %total, %present : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    %v = dfg.var_handle @v : !dfg.ref<tensor<1xf32>>
    dfg.apply_gradient_descent %v, %lr, %h : (!dfg.ref<tensor<1xf32>>, tensor<f32>, tensor<1xf32>) -> ()
  }
}

// -----

// One that divides it by the number of terms, or multiplies it with one by that, makes it a mean; of a mean they are numbers.
module {
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    %x = dfg.placeholder : () -> tensor<6x4xf32>
    %axis = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
    %total = dfg.sum %x, %axis : (tensor<6x4xf32>, tensor<1xi32>) -> tensor<4xf32>
    %count = dfg.const dense<6.0> : tensor<f32> : tensor<f32>
    %quotient = dfg.real_div %total, %count : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %sixth = dfg.const dense<0.166666672> : tensor<f32> : tensor<f32>
    %product = dfg.mul %sixth, %total : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
    %sum = dfg.add_v2 %quotient, %product : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %twelve = dfg.const dense<12.0> : tensor<f32> : tensor<f32>
    %g = dfg.real_div %sum, %twelve : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}

// -----

// Rows of a variable of which nothing says how many axes it has.
module {
  dfg.variable @table : tensor<*xf32> {kind = "captured"}
  dfg.variable @w : tensor<4xf32> {trainable}
  dfg.graph {
    %lr = dfg.placeholder : () -> tensor<f32>
    %ids = dfg.placeholder : () -> tensor<?xi32> loc("ids")
    %table = dfg.var_handle @table : !dfg.ref<tensor<*xf32>> loc("table")
    // expected-error @below {{depends on node '' (dfg.resource_gather), which takes rows of the batch that replicas have shares of, of 'ids', beside variable 'table', whose shape the graph does not say: give the SavedModel}}
    %rows = dfg.resource_gather %table, %ids : (!dfg.ref<tensor<*xf32>>, tensor<?xi32>) -> tensor<*xf32>
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %g = dfg.sum %rows, %zero : (tensor<*xf32>, tensor<1xi32>) -> tensor<4xf32>
    %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
    // expected-note @below {{the update is here}}
    dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  }
}
