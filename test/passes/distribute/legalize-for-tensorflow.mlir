// RUN: distc-opt %s --dist-legalize-for-tensorflow="worker=1 batch=8" --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

dist.topology @cluster replicas 2 [
  #dist.task<"worker" 0 on "localhost" devices ["localhost:CPU:0"] replicas 1 from 0>,
  #dist.task<"worker" 1 on "localhost" devices ["localhost:CPU:1"] replicas 1 from 1>]
dfg.variable @w : tensor<4xf32> {trainable}
dfg.variable @b : tensor<2xf32> {trainable}
// The program that feeds the graph is told which rows: of 2 replicas number 1, 1 of them, of a batch of 8.
// CHECK: more_collections = {distc_feeds_by_rows = ["x:0"], distc_loss_is_sum = [0], distc_share = [2, 1, 1, 8, 0]}
dfg.graph attributes {loss = "loss:0", train_op = "train"} {
  // CHECK: %[[X:.*]] = dfg.placeholder {{.*}}device = "/job:worker/task:1"{{.*}} loc("x")
  %x = dfg.placeholder {dist.feed = "sharded"} : () -> tensor<?x4xf32> loc("x")
  %lr = dfg.const dense<1.0> : tensor<f32> : tensor<f32> loc("lr")
  %axis = dfg.const dense<[0]> : tensor<1xi32> : tensor<1xi32> loc("axis")
  // What an author asked for within a task is kept.
  // The shapes that Python noted on a node are the results' of a share.
  // CHECK: %[[GW:.*]] = dfg.mean {{.*}}device = "/job:worker/task:1/device:CPU:0"{{.*}}_output_shapes = [#dfg.shape<[4]>]
  %gw = dfg.mean %x, %axis {device = "/job:worker/replica:0/task:0/device:CPU:0", tf = {_output_shapes = [#dfg.shape<[8]>]}} : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<4xf32> loc("gw")
  %gb = dfg.const dense<1.0> : tensor<2xf32> : tensor<2xf32> loc("gb")
  // A bucket is one collective of one flat tensor.
  // CHECK: %[[FW:.*]] = dfg.reshape %[[GW]]
  // CHECK: %[[FB:.*]] = dfg.reshape
  // CHECK: %[[FLAT:.*]] = dfg.concat_v2 %[[FW]], %[[FB]]
  // CHECK: %[[SIZE:.*]] = dfg.const dense<2> {{.*}}loc("all_reduce/0/group_size")
  // CHECK: %[[KEY:.*]] = dfg.const dense<1> {{.*}}loc("all_reduce/0/instance_key")
  // CHECK: %[[SUM:.*]] = dfg.opaque "CollectiveReduceV2"(%[[FLAT]], %[[SIZE]], %{{.*}}, %[[KEY]]) {{.*}}final_op = "Id", merge_op = "Add"{{.*}} -> tensor<6xf32> loc("all_reduce/0/collective")
  // CHECK: %[[PARTS:.*]]:2 = dfg.opaque "SplitV"(%[[SUM]]
  // CHECK: %[[W:.*]] = dfg.reshape %[[PARTS]]#0
  // CHECK: dfg.const dense<5.000000e-01>
  // CHECK: %[[MEAN:.*]] = dfg.mul %[[W]]
  %rw, %rb = dist.all_reduce mean bucket 0 group 0 (%gw, %gb) variables ["w", "b"] : tensor<4xf32>, tensor<2xf32> loc("all_reduce/0")
  // All workers issue collectives in one order.
  // CHECK: dfg.opaque "CollectiveReduceV2"{{.*}}control = ["all_reduce/0/collective"]{{.*}} loc("all_reduce/1/collective")
  // CHECK-NOT: dfg.mul
  %s = dist.all_reduce sum bucket 1 group -1 (%gb) variables ["b"] : tensor<2xf32> loc("all_reduce/1")
  // CHECK: %[[HW:.*]] = dfg.var_handle @w
  %w = dfg.var_handle @w : !dfg.ref<tensor<4xf32>> loc("w")
  // CHECK: dfg.apply_gradient_descent %[[HW]], %{{.*}}, %[[MEAN]] {device = "/job:worker/task:1"}
  dfg.apply_gradient_descent %w, %lr, %rw : (!dfg.ref<tensor<4xf32>>, tensor<f32>, tensor<4xf32>) -> () loc("update")
  // Rows of a sparse gradient are joined.
  %i = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("i")
  // CHECK: dfg.opaque "CollectiveGatherV2"{{.*}}control = ["all_reduce/1/collective"]{{.*}} -> tensor<4xi32> loc("all_gather/2/collective")
  // CHECK: dfg.opaque "CollectiveGatherV2"{{.*}}control = ["all_gather/2/collective"]{{.*}} -> tensor<4xf32> loc("all_gather/2/collective_1")
  %ii, %vv = dist.all_gather_slices mean bucket 2 group 0 (%i, %gb) variable "w" : (tensor<2xi32>, tensor<2xf32>) -> (tensor<?xi32>, tensor<?xf32>) loc("all_gather/2")
  // TensorFlow keeps an instance's shape: each number of rows is an instance of its own, of a group without others.
  // CHECK: %[[SHAPE:.*]] = dfg.opaque "Shape"(%[[ROWS:[a-z]+]]) {{.*}} loc("all_reduce/3/shape")
  // CHECK: %[[FLAT:.*]] = dfg.reshape %[[ROWS]]
  // CHECK: %[[NUMBER:.*]] = dfg.opaque "Size"(%[[FLAT]]) {{.*}} loc("all_reduce/3/size")
  // CHECK: %[[GROUP:.*]] = dfg.const dense<6> {{.*}} loc("all_reduce/3/group_key")
  // CHECK: %[[FLATSUM:.*]] = dfg.opaque "CollectiveReduceV2"(%[[FLAT]], %{{[^ ]*}}, %[[GROUP]], %[[NUMBER]]) {{.*}}control = ["all_gather/2/collective_1"]
  // CHECK: dfg.opaque "Reshape"(%[[FLATSUM]], %[[SHAPE]]) {{.*}} -> tensor<?x?xf32> loc("all_reduce/3/shaped")
  %rows = dfg.placeholder : () -> tensor<?x?xf32> loc("rows")
  %all = dist.all_reduce sum bucket 3 group 0 (%rows) variables ["w"] : tensor<?x?xf32> loc("all_reduce/3")
  // Where nothing but their number is open, TensorFlow sees the other sizes.
  // CHECK: %[[SIZES:.*]] = dfg.const dense<[-1, 4]> : tensor<2xi32> {{.*}} loc("all_reduce/4/sizes")
  // CHECK: dfg.opaque "Reshape"(%{{[^ ]*}}, %[[SIZES]]) {{.*}} -> tensor<?x4xf32> loc("all_reduce/4/shaped")
  %wide = dfg.placeholder : () -> tensor<?x4xf32> loc("wide")
  %sum = dist.all_reduce sum bucket 4 group 0 (%wide) variables ["w"] : tensor<?x4xf32> loc("all_reduce/4")
  dfg.group {control = ["update"]} : () -> () loc("train")
}
