// RUN: distc-opt %s --convert-dfg-to-drt --split-input-file | FileCheck %s

// How gradients are compressed, and become one, goes with their bucket.
dfg.variable @w : tensor<4xf32>
// CHECK-LABEL: drt.entry "step"
dfg.func @step() -> () attributes {dfg.fetches = []} {
  %g = dfg.placeholder : () -> tensor<4xf32> loc("g")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  %rate = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  // CHECK: drt.all_reduce_start {{.*}}aggregator = #dist.aggregator<krum f 1>, bucket = 0 : i32, compression = #dist.compression<bf16>
  %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] {compression = #dist.compression<bf16>, aggregator = #dist.aggregator<krum f 1>} : tensor<4xf32>
  dfg.apply_gradient_descent %w, %rate, %r : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  dfg.return
}

// -----

// What tasks add up by is the strategy's to say, to processors.
dfg.variable @w : tensor<4xf32>
// CHECK-LABEL: drt.entry "step"
dfg.func @step() -> () attributes {dfg.fetches = []} {
  %g = dfg.placeholder : () -> tensor<4xf32> loc("g")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  %rate = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  // CHECK: drt.all_reduce_start {{.*}}{algorithm = 3 : i32, bucket = 0 : i32,
  %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] {spec = #dist.spec<halving>} : tensor<4xf32>
  dfg.apply_gradient_descent %w, %rate, %r : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  dfg.return
}

// -----

// The last batch of an update takes the gradients that were kept, those before it keep theirs.
dfg.variable @w : tensor<4xf32>
// CHECK-LABEL: drt.entry "step"
// CHECK: %[[G:.*]] = drt.feed
// CHECK: %[[SUM:.*]] = drt.accumulated %[[G]] {first = 0 : i32, scale = 2.500000e-01 : f64, steps = 4 : i64}
// CHECK: drt.all_reduce_start %[[SUM]]
dfg.func @step() -> () attributes {dfg.entry = "step", dfg.fetches = []} {
  %g = dfg.placeholder : () -> tensor<4xf32> loc("g")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  %rate = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  %a = dist.accumulate mean of 4 (%g) variables ["w"] : tensor<4xf32> -> tensor<4xf32>
  %r = dist.all_reduce mean bucket 0 group 0 (%a) variables ["w"] : tensor<4xf32>
  dfg.apply_gradient_descent %w, %rate, %r : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
  dfg.return
}
// CHECK-LABEL: drt.entry "accumulate"
// CHECK: %[[G:.*]] = drt.feed
// CHECK-NEXT: drt.accumulate %[[G]] {first = 0 : i32, steps = 4 : i64}
// CHECK-NEXT: }
dfg.func @accumulate() -> () attributes {dfg.entry = "accumulate", dfg.fetches = []} {
  %g = dfg.placeholder : () -> tensor<4xf32> loc("g")
  %a = dist.accumulate mean of 4 (%g) variables ["w"] : tensor<4xf32> -> tensor<4xf32>
  dfg.return
}

// -----

// Each replica updates its share of a variable from the bucket, with its own share of the slot; then all shares are gathered.
dfg.variable @w : tensor<5x2xf32> {trainable}
dfg.variable @m : tensor<5xf32> {dist.shares = 2 : i64, dist.slice = #dist.slice<"m" [5, 2] at [0, 0]>}
// CHECK: drt.variable @m : tensor<5xf32> {full_shape = array<i64: 5, 2>, saved, shares = 2 : i64, whole = "m"}
// CHECK-LABEL: drt.entry "init"
// CHECK: drt.update {count = 10 : i64, {{.*}}share = 5 : i64, variables = [@m]}
dfg.func @init() -> () attributes {dfg.fetches = []} {
  %m = dfg.var_handle @m : !dfg.ref<tensor<5xf32>>
  %zeros = dfg.const dense<0.0> : tensor<5x2xf32> : tensor<5x2xf32>
  %share = dist.take_share %zeros : tensor<5x2xf32> -> tensor<5xf32>
  dfg.assign %m, %share : (!dfg.ref<tensor<5xf32>>, tensor<5xf32>) -> ()
  dfg.return
}
// CHECK-LABEL: drt.entry "step"
// CHECK: drt.all_reduce_start %{{.*}} {bucket = 0 : i32, mean = true, names = ["w"], scatter}
// CHECK: drt.all_reduce_wait 0
// CHECK: drt.update {bucket = 0 : i32, count = 10 : i64, {{.*}}share = 5 : i64, variables = [@w, @m]}
// CHECK: drt.gather_start {bucket = 1 : i32, variables = [@w]}
// CHECK: drt.all_reduce_wait 1
dfg.func @step() -> () attributes {dfg.fetches = []} {
  %g = dfg.placeholder : () -> tensor<5x2xf32> loc("g")
  %w = dfg.var_handle @w : !dfg.ref<tensor<5x2xf32>>
  %m = dfg.var_handle @m : !dfg.ref<tensor<5xf32>>
  %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  %r = dist.reduce_scatter mean bucket 0 group 0 (%g) variables ["w"] : (tensor<5x2xf32>) -> tensor<5xf32>
  %own = dist.share_handle %w : !dfg.ref<tensor<5x2xf32>> -> !dfg.ref<tensor<5xf32>>
  dfg.apply_momentum %own, %m, %half, %r, %half : (!dfg.ref<tensor<5xf32>>, !dfg.ref<tensor<5xf32>>, tensor<f32>, tensor<5xf32>, tensor<f32>) -> ()
  dist.all_gather_variables bucket 0 (%w) variables ["w"] : !dfg.ref<tensor<5x2xf32>>
  dfg.return
}

// -----

// The owner alone updates, with a slot that it alone has memory for; then the others are given the value.
drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
dfg.variable @w : tensor<5x2xf32> {trainable}
dfg.variable @m : tensor<5x2xf32> {dist.place = #dist.place<"worker" 1>}
// CHECK: drt.variable @w : tensor<5x2xf32> {saved, trainable}
// CHECK: drt.variable @m : tensor<5x2xf32> {owner = 1 : i64, saved}
// CHECK-LABEL: drt.entry "init"
// CHECK: drt.update {count = 10 : i64, {{.*}}owner = 1 : i64, variables = [@m]}
dfg.func @init() -> () attributes {dfg.fetches = []} {
  %m = dfg.var_handle @m : !dfg.ref<tensor<5x2xf32>>
  %zeros = dfg.const dense<0.0> : tensor<5x2xf32> : tensor<5x2xf32>
  dfg.assign %m, %zeros : (!dfg.ref<tensor<5x2xf32>>, tensor<5x2xf32>) -> ()
  dfg.return
}
// CHECK-LABEL: drt.entry "step"
// CHECK: drt.all_reduce_start %{{.*}} {bucket = 0 : i32, mean = true, names = ["w"], owners = array<i64: 1>, scatter}
// CHECK: drt.all_reduce_wait 0
// CHECK: drt.update {bucket = 0 : i32, count = 10 : i64, {{.*}}owner = 1 : i64, variables = [@w, @m]}
// CHECK: drt.gather_start {bucket = 1 : i32, owners = array<i64: 1>, variables = [@w]}
// CHECK: drt.all_reduce_wait 1
dfg.func @step() -> () attributes {dfg.fetches = []} {
  %g = dfg.placeholder : () -> tensor<5x2xf32> loc("g")
  %w = dfg.var_handle @w : !dfg.ref<tensor<5x2xf32>>
  %m = dfg.var_handle @m : !dfg.ref<tensor<5x2xf32>>
  %half = dfg.const dense<0.5> : tensor<f32> : tensor<f32>
  %r = dist.reduce_scatter mean bucket 0 group 0 (%g) variables ["w"] {owners = array<i64: 1>} : (tensor<5x2xf32>) -> tensor<5x2xf32>
  dfg.apply_momentum %w, %m, %half, %r, %half {dist.place = #dist.place<"worker" 1>} : (!dfg.ref<tensor<5x2xf32>>, !dfg.ref<tensor<5x2xf32>>, tensor<f32>, tensor<5x2xf32>, tensor<f32>) -> ()
  dist.all_gather_variables bucket 1 (%w) variables ["w"] {owners = array<i64: 1>} : !dfg.ref<tensor<5x2xf32>>
  dfg.return
}

// -----

// Something else that was updated is read between an update and its gather: the gather is for what reads the variable all the same.
drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
dfg.variable @w : tensor<5x20xf32> {trainable}
dfg.variable @count : tensor<20xf32>
// CHECK-LABEL: drt.entry "step"
// CHECK: drt.update {{.*}}owner = 1 : i64, variables = [@w]
// CHECK: drt.update {{.*}}variables = [@count]
// CHECK: drt.read @count
// CHECK: drt.gather_start {bucket = 0 : i32, owners = array<i64: 1>, variables = [@w]}
// CHECK: drt.all_reduce_wait 0
// CHECK: drt.read @w
dfg.func @step() -> (tensor<5x20xf32>, tensor<20xf32>) attributes {dfg.fetches = ["new", "twice"]} {
  %g = dfg.placeholder : () -> tensor<5x20xf32> loc("g")
  %h = dfg.placeholder : () -> tensor<20xf32> loc("h")
  %w = dfg.var_handle @w : !dfg.ref<tensor<5x20xf32>>
  %step = dfg.var_handle @count : !dfg.ref<tensor<20xf32>>
  dfg.assign_sub %w, %g {dist.place = #dist.place<"worker" 1>} : (!dfg.ref<tensor<5x20xf32>>, tensor<5x20xf32>) -> () loc("update")
  dfg.assign_sub %step, %h : (!dfg.ref<tensor<20xf32>>, tensor<20xf32>) -> () loc("count")
  %steps = dfg.read_variable %step : (!dfg.ref<tensor<20xf32>>) -> tensor<20xf32> loc("steps")
  %twice = dfg.add %steps, %steps : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xf32> loc("twice")
  dist.all_gather_variables bucket 0 (%w) variables ["w"] {owners = array<i64: 1>} : !dfg.ref<tensor<5x20xf32>>
  %new = dfg.read_variable %w : (!dfg.ref<tensor<5x20xf32>>) -> tensor<5x20xf32> loc("new")
  dfg.return %new, %twice : tensor<5x20xf32>, tensor<20xf32>
}
