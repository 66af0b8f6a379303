// RUN: distc-opt %s --dist-colocate-servers | FileCheck %s

// The servers of a host go round its workers, and leave the topology. A server that holds nothing may be anywhere.
module attributes {dist.strategy = #dist.strategy<"">} {
  // CHECK: dist.topology @cluster replicas 3
  // CHECK-SAME: [#dist.task<"worker" 0 {{.*}}>, #dist.task<"worker" 1 {{.*}}>, #dist.task<"worker" 2 {{[^>]*}}>]{{$}}
  dist.topology @cluster replicas 3 [
    #dist.task<"worker" 0 on "a" devices ["a:CPU:0"] replicas 1 from 0>, #dist.task<"worker" 1 on "b" devices ["b:CPU:0"] replicas 1 from 1>,
    #dist.task<"worker" 2 on "b" devices ["b:CPU:1"] replicas 1 from 2>, #dist.task<"ps" 0 on "b" devices [] replicas 0 from 3>,
    #dist.task<"ps" 1 on "b" devices [] replicas 0 from 3>, #dist.task<"ps" 2 on "b" devices [] replicas 0 from 3>,
    #dist.task<"ps" 3 on "elsewhere" devices [] replicas 0 from 3>]
  // CHECK: dfg.variable @u : tensor<4xf32> {dist.place = #dist.place<"worker" 1>, dist.sync = #dist.sync<server at "ps:0">, trainable}
  // CHECK: dfg.variable @v : tensor<4xf32> {dist.place = #dist.place<"worker" 2>, dist.sync = #dist.sync<server at "ps:1">, trainable}
  // CHECK: dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"worker" 1>, dist.sync = #dist.sync<server at "ps:2">, trainable}
  // CHECK: dfg.variable @slot : tensor<4xf32> {dist.place = #dist.place<"worker" 1>}
  // CHECK: dfg.variable @statistics : tensor<4xf32>{{$}}
  dfg.variable @u : tensor<4xf32> {dist.place = #dist.place<"ps" 0>, trainable, dist.sync = #dist.sync<server at "ps:0">}
  dfg.variable @v : tensor<4xf32> {dist.place = #dist.place<"ps" 1>, trainable, dist.sync = #dist.sync<server at "ps:1">}
  dfg.variable @w : tensor<4xf32> {dist.place = #dist.place<"ps" 2>, trainable, dist.sync = #dist.sync<server at "ps:2">}
  dfg.variable @slot : tensor<4xf32> {dist.place = #dist.place<"ps" 2>}
  dfg.variable @statistics : tensor<4xf32>
}
