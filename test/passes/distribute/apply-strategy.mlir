// RUN: split-file %s %t
// RUN: distc-opt %t/graph.mlir --dist-apply-strategy="strategy=%t/strategy.pbtxt replicas=2 ps=2" | FileCheck %s
// RUN: distc-opt %t/graph.mlir --dist-apply-strategy="strategy=%t/devices.pbtxt resources=%t/resources.yml" | FileCheck %s --check-prefix=DEVICES

// Servers come after the workers, and have no replicas. A variable's slots are where it is.
// CHECK: dist.topology @cluster replicas 2 [
// CHECK-SAME: #dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0", "localhost:CPU:1"] replicas 2 from 0>
// CHECK-SAME: #dist.task<"ps" 0 on "localhost" devices [] replicas 0 from 2>
// CHECK-SAME: #dist.task<"ps" 1 on "localhost" devices [] replicas 0 from 2>
// CHECK: dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 1>, dist.sync = #dist.sync<server at "ps:1">, trainable}
// CHECK: dfg.variable @"w/Momentum" : tensor<4xf32> {dist.place = #dist.place<"ps" 1>}
// CHECK: dfg.variable @b : tensor<4xf32> {dist.sync = #dist.sync<all_reduce>, trainable}

// A host that holds variables has a server, beside its worker where it has one.
// DEVICES: #dist.task<"worker" 0 on "11.0.0.1" devices ["11.0.0.1:GPU:0"] replicas 1 from 0>
// DEVICES-SAME: #dist.task<"ps" 0 on "11.0.0.2" devices [] replicas 0 from 1>
// DEVICES-SAME: #dist.task<"ps" 1 on "11.0.0.1" devices [] replicas 0 from 1>
// DEVICES: dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, dist.sync = #dist.sync<server at "11.0.0.2:CPU:0">, trainable}
// DEVICES: dfg.variable @"w/Momentum" : tensor<4xf32> {dist.place = #dist.place<"ps" 0>}
// DEVICES: dfg.variable @b : tensor<4xf32> {dist.place = #dist.place<"ps" 1>, dist.sync = #dist.sync<server at "11.0.0.1:CPU:0">, trainable}

//--- strategy.pbtxt
node_config { var_name: "w" PSSynchronizer { reduction_destination: "ps:1" sync: true } }
node_config { var_name: "b" AllReduceSynchronizer { group: 0 } }
//--- devices.pbtxt
node_config { var_name: "w" PSSynchronizer { reduction_destination: "11.0.0.2:CPU:0" sync: true } }
node_config { var_name: "b" PSSynchronizer { reduction_destination: "11.0.0.1:CPU:0" sync: true } }
graph_config { replicas: "11.0.0.1:GPU:0" }
//--- resources.yml
nodes:
  - address: 11.0.0.1
    chief: true
    cpus: [0]
    gpus: [0]
  - address: 11.0.0.2
    cpus: [0]
    gpus: [0]
//--- graph.mlir
dfg.variable @w : tensor<4xf32> {trainable}
dfg.variable @"w/Momentum" : tensor<4xf32>
dfg.variable @b : tensor<4xf32> {trainable}
dfg.graph {
  %lr = dfg.placeholder : () -> tensor<f32>
  %g = dfg.placeholder : () -> tensor<4xf32>
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>>
  %m = dfg.var_handle @"w/Momentum" : !dfg.ref<tensor<4xf32>>
  %b = dfg.var_handle @b : !dfg.ref<tensor<4xf32>>
  dfg.apply_momentum %w, %m, %lr, %g, %lr : (!dfg.ref<tensor<4xf32>>, !dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>, tensor<f32>) -> ()
  dfg.apply_gradient_descent %b, %lr, %g : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> ()
}
