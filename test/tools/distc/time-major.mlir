// Examples are counted along the first axis: of feeds with that of time in front, it is said what to do.
// RUN: not distc compile %s --no-init --batch 12 --emit=llvm -o %t 2>&1 | FileCheck %s
// CHECK: error: placeholder 'x' has 5 rows, and its second size is open: examples are counted along the first axis of what is fed, which is here that of time; feed it with the batch's axis first ([None, 5, …]) and have the graph transpose it (tf.transpose(x, [1, 0, 2]))
dfg.graph attributes {loss = "loss:0"} {
  %x = dfg.placeholder : () -> tensor<5x?x3xf32> loc("x")
  %all = dfg.const dense<[0, 1, 2]> : tensor<3xi32> : tensor<3xi32> loc("all")
  %loss = dfg.mean %x, %all : (tensor<5x?x3xf32>, tensor<3xi32>) -> tensor<f32> loc("loss")
}
