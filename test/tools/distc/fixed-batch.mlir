// A graph that fixes its batch says how many rows all replicas have together (--batch 8), or each of them (16): another
// global batch is an error.
// RUN: distc compile %s --replicas 2 --no-init --emit=dist -o - | FileCheck %s --check-prefix=DIST
// RUN: distc compile %s --replicas 2 --no-init --batch 16 --emit=llvm -o %t
// RUN: distc compile %s --replicas 2 --no-init --batch 8 --emit=dist -o - | FileCheck %s --check-prefix=PARTS
// RUN: not distc compile %s --replicas 2 --no-init --batch 12 --emit=llvm -o %t 2>&1 | FileCheck %s
// RUN: not distc compile %s --no-init --batch 16 --emit=llvm -o %t 2>&1 | FileCheck %s --check-prefix=ONE

// DIST: dfg.placeholder {{.*}}dist.feed = "sharded"
// PARTS: dfg.placeholder {{.*}}dist.feed = "sharded"{{.*}} -> tensor<?x3xf32>
// CHECK: error: the graph fixes its batch: placeholder 'x' has 8 rows, which each replica is given, so that the global batch of 2 replicas is 16 and not 12 (or 8, of which each replica has a part, with a synchronous strategy and coupling=whole): leave --batch out, or leave the placeholders' first size open (None)
// ONE: error: {{.*}}the global batch of 1 replica is 8 and not 16
dfg.variable @w : tensor<3xf32>
dfg.graph attributes {loss = "loss:0", train_op = "train"} {
  %x = dfg.placeholder : () -> tensor<8x3xf32> loc("x")
  %handle = dfg.var_handle @w : !dfg.ref<tensor<3xf32>> loc("w")
  %w = dfg.read_variable %handle : (!dfg.ref<tensor<3xf32>>) -> tensor<3xf32> loc("read")
  %rows = dfg.const dense<0> : tensor<1xi32> : tensor<1xi32> loc("rows")
  %all = dfg.const dense<[0, 1]> : tensor<2xi32> : tensor<2xi32> loc("all")
  %y = dfg.mul %x, %w : (tensor<8x3xf32>, tensor<3xf32>) -> tensor<8x3xf32> loc("y")
  %loss = dfg.mean %y, %all : (tensor<8x3xf32>, tensor<2xi32>) -> tensor<f32> loc("loss")
  %g = dfg.mean %x, %rows : (tensor<8x3xf32>, tensor<1xi32>) -> tensor<3xf32> loc("g")
  %rate = dfg.const dense<0.1> : tensor<f32> : tensor<f32> loc("rate")
  dfg.apply_gradient_descent %handle, %rate, %g : (!dfg.ref<tensor<3xf32>>, tensor<f32>, tensor<3xf32>) -> () loc("train")
}
