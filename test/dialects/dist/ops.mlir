// RUN: distc-opt %s | distc-opt | FileCheck %s

// CHECK: dist.topology @cluster replicas 3
// CHECK-SAME: #dist.task<"worker" 0 on "11.0.0.1" devices ["11.0.0.1:CPU:0", "11.0.0.1:CPU:1"] replicas 2 from 0>
// CHECK-SAME: #dist.task<"worker" 1 on "11.0.0.2" devices ["11.0.0.2:CPU:0"] replicas 1 from 2>
dist.topology @cluster replicas 3 [
  #dist.task<"worker" 0 on "11.0.0.1" devices ["11.0.0.1:CPU:0", "11.0.0.1:CPU:1"] replicas 2 from 0>,
  #dist.task<"worker" 1 on "11.0.0.2" devices ["11.0.0.2:CPU:0"] replicas 1 from 2>]

dfg.graph {
  %a = dfg.placeholder {dist.share = "whole"} : () -> tensor<2xf32>
  %b = dfg.placeholder {dist.share = "sharded"} : () -> tensor<?x3xf32>
  // CHECK: dist.all_reduce mean bucket 0 group 3 (%{{.*}}, %{{.*}}) variables ["a", "b"] : tensor<2xf32>, tensor<?x3xf32>
  %r:2 = dist.all_reduce mean bucket 0 group 3 (%a, %b) variables ["a", "b"] : tensor<2xf32>, tensor<?x3xf32>
  // CHECK: dist.all_reduce sum {{.*}} {spec = #dist.spec<ring>}
  %s = dist.all_reduce sum bucket 1 group 4 (%a) variables ["a"] {spec = #dist.spec<ring>} : tensor<2xf32>
}
