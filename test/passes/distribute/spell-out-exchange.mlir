// RUN: distc-opt %s --dist-spell-out-exchange --split-input-file | FileCheck %s

// Halves travel; what they lose is a variable of the replica's own. The sum stands where it is read first.
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:GPU:0", "localhost:GPU:1"] replicas 2 from 0>]
// CHECK-LABEL: dfg.func @fed_back
dfg.func @fed_back(%g: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // CHECK: %[[FLAT:.*]] = dfg.reshape %arg0
  // CHECK: %[[ERROR:.*]] = dfg.var_handle @"all_reduce/0/error" : !dfg.ref<tensor<8xf32>>
  // CHECK: %[[OLD:.*]] = dfg.read_variable %[[ERROR]]
  // CHECK: %[[WHOLE:.*]] = dfg.add_v2 %[[FLAT]], %[[OLD]]
  // CHECK: dfg.maximum %[[WHOLE]]
  // CHECK: %[[HALF:.*]] = dfg.cast {{.*}} : (tensor<8xf32>) -> tensor<8xf16>
  // CHECK: %[[SEEN:.*]] = dfg.cast %[[HALF]] : (tensor<8xf16>) -> tensor<8xf32>
  // CHECK: dfg.sub %[[WHOLE]], %[[SEEN]]
  // CHECK: dfg.assign %[[ERROR]]
  // CHECK: %[[ROW:.*]] = dfg.reshape %[[HALF]], {{.*}} -> tensor<1x8xf16>
  // CHECK: %[[ALL:.*]] = dist.all_gather bucket 0 (%[[ROW]]) name "w" : (tensor<1x8xf16>) -> tensor<2x8xf16>
  // CHECK: %n = dfg.neg
  // CHECK: %[[ROWS:.*]]:2 = dfg.split {{.*}}, %[[ALL]]
  // CHECK: %[[FIRST:.*]] = dfg.cast %[[ROWS]]#0 : (tensor<1x8xf16>) -> tensor<1x8xf32>
  // CHECK: %[[SECOND:.*]] = dfg.cast %[[ROWS]]#1
  // CHECK: dfg.add_v2 %[[FIRST]], %[[SECOND]]
  // CHECK: dfg.cast {{.*}} : (tensor<8xf32>) -> tensor<8xf16>
  %r = dist.all_reduce mean bucket 3 group 0 (%g) variables ["w"] {compression = #dist.compression<fp16_ef>} : tensor<4x2xf32> loc("all_reduce/0")
  %n = dfg.neg %g : (tensor<4x2xf32>) -> tensor<4x2xf32> loc("n")
  %s = dfg.add_v2 %r, %n : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32> loc("s")
  dfg.return %s : tensor<4x2xf32>
}
// CHECK: dfg.variable @"all_reduce/0/error" : tensor<8xf32> {kind = "local"}

// -----

// Indices and values of the largest elements; the bucket in between has its number in the order of the block.
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:GPU:0", "localhost:GPU:1"] replicas 2 from 0>]
// CHECK-LABEL: dfg.func @largest
dfg.func @largest(%g: tensor<100xf32>, %h: tensor<4xf32>) -> (tensor<100xf32>, tensor<4xf32>) {
  // CHECK: dfg.top_k_v2
  // CHECK: dfg.tensor_scatter_update
  // CHECK: dist.all_gather bucket 0 {{.*}} : (tensor<10x1xi32>) -> tensor<20x1xi32>
  // CHECK: dist.all_gather bucket 1 {{.*}} : (tensor<10xf32>) -> tensor<20xf32>
  // CHECK: dist.all_reduce sum bucket 2 group 1 (%arg1)
  // CHECK: dfg.scatter_nd
  %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] {compression = #dist.compression<top_k ratio 1.0e-01 : f64>} : tensor<100xf32> loc("all_reduce/0")
  %s = dist.all_reduce sum bucket 1 group 1 (%h) variables ["b"] : tensor<4xf32> loc("all_reduce/1")
  dfg.return %r, %s : tensor<100xf32>, tensor<4xf32>
}

// -----

// Q begins with numbers that are no zeros: those of the first step. Factors are added up.
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:GPU:0", "localhost:GPU:1"] replicas 2 from 0>]
// CHECK-LABEL: dfg.func @low_rank
dfg.func @low_rank(%g: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: %[[BEGUN:.*]] = dfg.read_variable %all_reduce.0.begun
  // CHECK: %[[FIRST:.*]] = dfg.equal %[[BEGUN]]
  // CHECK: dfg.assign %all_reduce.0.begun
  // CHECK: %[[Q:.*]] = dfg.select_v2 %[[FIRST]]
  // CHECK: dfg.mat_mul %{{.*}}, %[[Q]]
  // CHECK: dist.all_reduce sum bucket 0 group -1
  // CHECK: dist.all_reduce sum bucket 1 group -1
  %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] {compression = #dist.compression<power_sgd rank 1>} : tensor<8x4xf32> loc("all_reduce/0")
  dfg.return %r : tensor<8x4xf32>
}

// -----

// A rule sees every replica's gradients, as halves leave them.
dist.topology @cluster replicas 3 [#dist.task<"worker" 0 on "localhost" devices ["localhost:GPU:0", "localhost:GPU:1", "localhost:GPU:2"] replicas 3 from 0>]
// CHECK-LABEL: dfg.func @voted
dfg.func @voted(%g: tensor<4xf32>, %h: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  // CHECK: %[[HALF:.*]] = dfg.cast {{.*}} -> tensor<6xbf16>
  // CHECK: %[[WIDE:.*]] = dfg.cast %[[HALF]] : (tensor<6xbf16>) -> tensor<6xf32>
  // CHECK: %[[ROW:.*]] = dfg.pack %[[WIDE]]
  // CHECK: dist.all_gather bucket 0 (%[[ROW]]) name "w, b" : (tensor<1x6xf32>) -> tensor<3x6xf32>
  // CHECK: dfg.top_k_v2
  // CHECK: dfg.split_v
  %r:2 = dist.all_reduce mean bucket 0 group 0 (%g, %h) variables ["w", "b"] {aggregator = #dist.aggregator<median>, compression = #dist.compression<bf16>}
    : tensor<4xf32>, tensor<2xf32> loc("all_reduce/0")
  dfg.return %r#0, %r#1 : tensor<4xf32>, tensor<2xf32>
}

// -----

// Float64 is not compressed. Halves of the graph's own are added up in float32, as compressed ones are, and rounded once.
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:GPU:0", "localhost:GPU:1"] replicas 2 from 0>]
// CHECK-LABEL: dfg.func @others
dfg.func @others(%g: tensor<4xf64>, %h: tensor<4xf16>) -> (tensor<4xf64>, tensor<4xf16>) {
  // CHECK: dist.all_reduce mean bucket 0 group 0 (%arg0) variables ["w"] : tensor<4xf64>
  // CHECK: dist.all_gather bucket 1 {{.*}} : (tensor<1x4xf16>) -> tensor<2x4xf16>
  // CHECK: dfg.add_v2 {{.*}} : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
  // CHECK: dfg.cast {{.*}} : (tensor<4xf32>) -> tensor<4xf16>
  %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] {compression = #dist.compression<fp16>} : tensor<4xf64> loc("all_reduce/0")
  %s = dist.all_reduce mean bucket 1 group 0 (%h) variables ["b"] {compression = #dist.compression<power_sgd rank 1>} : tensor<4xf16> loc("all_reduce/1")
  dfg.return %r, %s : tensor<4xf64>, tensor<4xf16>
}

// -----

// One replica has nobody to send anything to.
dist.topology @cluster replicas 1 [#dist.task<"worker" 0 on "localhost" devices ["localhost:GPU:0"] replicas 1 from 0>]
// CHECK-LABEL: dfg.func @alone
dfg.func @alone(%g: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK-NOT: dist.all
  // CHECK: dfg.cast {{.*}} -> tensor<4xf16>
  // CHECK-NOT: dist.all
  %r = dist.all_reduce sum bucket 0 group 0 (%g) variables ["w"] {compression = #dist.compression<fp16>} : tensor<4xf32> loc("all_reduce/0")
  dfg.return %r : tensor<4xf32>
}

// -----

// Shares of halves are taken from the sum, which is float32's, rounded once.
dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:GPU:0", "localhost:GPU:1"] replicas 2 from 0>]
// CHECK-LABEL: dfg.func @scattered
dfg.func @scattered(%g: tensor<4x2xbf16>) -> tensor<4xbf16> {
  // CHECK: dist.all_gather bucket 0 {{.*}} : (tensor<1x8xbf16>) -> tensor<2x8xbf16>
  // CHECK: dfg.add_v2 {{.*}} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
  // CHECK: dfg.cast {{.*}} : (tensor<8xf32>) -> tensor<8xbf16>
  // CHECK: %[[SUM:.*]] = dfg.reshape {{.*}} -> tensor<4x2xbf16>
  // CHECK: %[[SHARE:.*]] = dist.take_share %[[SUM]] : tensor<4x2xbf16> -> tensor<4xbf16>
  // CHECK: dfg.return %[[SHARE]]
  %s = dist.reduce_scatter mean bucket 0 group 0 (%g) variables ["g"] : (tensor<4x2xbf16>) -> tensor<4xbf16> loc("reduce_scatter/0")
  dfg.return %s : tensor<4xbf16>
}
