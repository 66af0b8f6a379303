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
