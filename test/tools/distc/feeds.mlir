// What --feed leaves open is settled: a placeholder without a shape is a scalar, one of other rows than a share's is no batch.
// RUN: distc compile %s --replicas 2 --batch 8 --feed keep=2 --no-init --emit=dist -o - 2>%t.err | FileCheck %s --check-prefix=DIST
// RUN: FileCheck %s --check-prefix=REMARK < %t.err
// RUN: distc compile %s --replicas 2 --batch 8 --feed keep=2 --no-init --emit=drt -o - 2>/dev/null | FileCheck %s --check-prefix=PLAN
// RUN: not distc compile %s --replicas 2 --batch 8 --feed x=8x3 --no-init --emit=drt -o - 2>&1 | FileCheck %s --check-prefix=SHARE
// RUN: not distc compile %s --replicas 2 --batch 8 --feed keep=2 --feed rate=3 --no-init --emit=drt -o - 2>&1 | FileCheck %s --check-prefix=SAID

// REMARK: remark: placeholders without a shape are taken for scalars: 'rate'; --feed NAME=2x3 says another
// DIST-DAG: dfg.placeholder {{.*}}dist.feed = "sharded"{{.*}} tensor<?x3xf32> loc("x")
// DIST-DAG: dfg.placeholder {{.*}}dist.feed = "whole"{{.*}} tensor<2xf32> loc("keep")
// PLAN-DAG: drt.feed {batched, name = "x"} : () -> tensor<4x3xf32>
// PLAN-DAG: drt.feed {name = "rate"} : () -> tensor<f32>
// PLAN-DAG: drt.feed {name = "keep"} : () -> tensor<2xf32>
// SHARE: error: {{.*}}--feed x: each of 2 replicas is fed its share of the batch of 8, 4 rows: say x=4x3, or leave it out where only the first size is open
// SAID-NOT: taken for scalars
// SAID: error
dfg.variable @w : tensor<3xf32>
dfg.graph attributes {loss = "loss:0", train_op = "train"} {
  %x = dfg.placeholder : () -> tensor<?x3xf32> loc("x")
  %keep = dfg.placeholder : () -> tensor<?xf32> loc("keep")
  %rate = dfg.placeholder : () -> tensor<*xf32> loc("rate")
  %handle = dfg.var_handle @w : !dfg.ref<tensor<3xf32>> loc("w")
  %w = dfg.read_variable %handle : (!dfg.ref<tensor<3xf32>>) -> tensor<3xf32> loc("read")
  %rows = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("rows")
  %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
  %first = dfg.max %keep, %rows : (tensor<?xf32>, tensor<1xi32>) -> tensor<f32> loc("first")
  %scaled = dfg.mul %x, %first : (tensor<?x3xf32>, tensor<f32>) -> tensor<?x3xf32> loc("scaled")
  %y = dfg.mul %scaled, %w : (tensor<?x3xf32>, tensor<3xf32>) -> tensor<?x3xf32> loc("y")
  %loss = dfg.mean %y, %all : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  %g = dfg.mean %scaled, %rows : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<3xf32> loc("g")
  dfg.apply_gradient_descent %handle, %rate, %g : (!dfg.ref<tensor<3xf32>>, tensor<*xf32>, tensor<3xf32>) -> () loc("train")
}
