// RUN: distc-opt %s --dfg-infer-shapes=batch=4 | FileCheck %s

// What servers take is what replicas push, whatever shape the variable has: the update's own nodes make one of the other.
module {
  dfg.variable @b : tensor<3xf32>
  dfg.variable @table : tensor<9x2xf32>
  // CHECK-LABEL: @update
  dfg.func @update() attributes {dfg.entry = "update", dfg.fetches = [], dfg.joins = []} {
    %three = dfg.const dense<3> : tensor<1xi32> : tensor<1xi32>
    %rate = dfg.const dense<1.0> : tensor<f32> : tensor<f32>
    %b = dfg.var_handle @b : !dfg.ref<tensor<3xf32>>
    %table = dfg.var_handle @table : !dfg.ref<tensor<9x2xf32>>
    // CHECK: dist.take mean "gradients/0/b" {{.*}} : tensor<1x3xf32>
    %taken = dist.take mean "gradients/0/b" from <"worker" 0> of 2 variable "b" : tensor<*xf32>
    // CHECK: dfg.reshape {{.*}} : (tensor<1x3xf32>, tensor<1xi32>) -> tensor<3xf32>
    %g = dfg.reshape %taken, %three : (tensor<*xf32>, tensor<1xi32>) -> tensor<*xf32>
    dfg.apply_gradient_descent %b, %rate, %g : (!dfg.ref<tensor<3xf32>>, tensor<f32>, tensor<*xf32>) -> ()
    // Rows are those of both replicas.
    // CHECK: dist.take sum "gradients/1/table" {{.*}} : tensor<8xi32>, tensor<8x2xf32>
    %ids, %rows = dist.take sum "gradients/1/table" from <"worker" 0> of 2 variable "table" {rows = array<i64: 1, 0>} : tensor<?xi32>, tensor<*xf32>
    dfg.scatter_sub %table, %ids, %rows : (!dfg.ref<tensor<9x2xf32>>, tensor<?xi32>, tensor<*xf32>) -> ()
    dfg.return
  }
  // CHECK-LABEL: @step
  dfg.func @step() attributes {dfg.entry = "step", dfg.fetches = [], dfg.joins = []} {
    %zero = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
    %ids = dfg.placeholder {shape = #dfg.shape<[?]>} : () -> tensor<?xi32> loc("ids")
    %x = dfg.placeholder {shape = #dfg.shape<[?, 3]>} : () -> tensor<?x3xf32> loc("x")
    %y = dfg.placeholder {shape = #dfg.shape<[?, 2]>} : () -> tensor<?x2xf32> loc("y")
    // CHECK: dfg.sum {{.*}} -> tensor<1x3xf32>
    %sum = dfg.sum %x, %zero {keep_dims = true} : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<*xf32>
    dist.push mean "gradients/0/b" to <"worker" 0> of 2 (%sum) variable "b" : tensor<*xf32>
    dist.push sum "gradients/1/table" to <"worker" 0> of 2 (%ids, %y) variable "table" : tensor<?xi32>, tensor<?x2xf32>
    dfg.return
  }
}
