// RUN: distc-opt %s --distribute="replicas=2 ps=1 strategy=PS" | FileCheck %s
// RUN: distc-opt %s --distribute="replicas=2 ps=1 strategy=PS roles=false" | FileCheck %s --check-prefix=ALL

// One task with both replicas is the chief; all other workers, were there any, have one program.
// CHECK: dfg.graph attributes {dist.role = "chief"
// CHECK: dist.push mean "synchronization/w" to <"ps" 0> of 2
// CHECK: dfg.graph attributes {dist.role = "worker"
// CHECK: dfg.graph attributes {dist.place = #dist.place<"ps" 0>, dist.role = "server"
// CHECK: dist.take mean "synchronization/w" from <"ps" 0> of 2
// ALL: dfg.graph attributes {train_op = "train"}
// ALL-NOT: dfg.graph
dfg.variable @w : tensor<4xf32> {trainable}
dfg.graph attributes {train_op = "train"} {
  %lr = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("lr")
  %x = dfg.placeholder : () -> tensor<?x4xf32> loc("x")
  %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("zero")
  %g = dfg.mean %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("g")
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("train")
}
