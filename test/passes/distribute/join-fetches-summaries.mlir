// RUN: distc-opt %s --dist-apply-strategy="strategy=AllReduce replicas=2" --dist-replicate --dist-insert-synchronizers --dist-join-fetches 2> %t.errors | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARNING < %t.errors

// A summary that the replicas' values do not give is no reason not to train.
// WARNING: warning: {{.*}}the summary of 'largest:0' of 2 replicas ({{.*}} (it is left out)
// CHECK: dfg.graph attributes {dist.joins = {"loss:0" = "mean"}
// CHECK-SAME: summaries = {"loss:0" = "loss"}
dfg.graph attributes {loss = "loss:0", summaries = {"loss:0" = "loss", "largest:0" = "largest"}} {
  %x = dfg.placeholder : () -> tensor<?xf32> loc("x")
  %axis = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32>
  %loss = dfg.mean %x, %axis : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("loss")
  %largest = dfg.max %x, %axis : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("largest")
}
