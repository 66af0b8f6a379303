// RUN: distc-opt %s --distribute="replicas=2 strategy=AllReduce" | FileCheck %s
// RUN: distc-opt %s --distribute="replicas=1" | FileCheck %s --check-prefix=ONE

// CHECK: dist.topology @cluster replicas 2
// CHECK: dist.all_reduce sum bucket 0
// One replica's gradient is the whole batch's.
// ONE: dist.topology @cluster replicas 1
// ONE-NOT: dist.all_reduce
dfg.variable @w : tensor<4xf32> {trainable}
dfg.graph {
  %lr = dfg.placeholder : () -> tensor<f32>
  %x = dfg.placeholder : () -> tensor<?x4xf32>
  %zero = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32>
  %g = dfg.sum %x, %zero : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32>
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  dfg.apply_gradient_descent %w, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
}
