// RUN: distc-opt %s --drt-check-for-gpu --split-input-file --verify-diagnostics

func.func @accepted(%x: tensor<4x4xf32>, %steps: tensor<4xi64>) {
  %0 = drt.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  drt.all_reduce_start %0 {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<4x4xf32>) -> ()
  drt.all_reduce_start %steps {bucket = 1 : i32, mean = false, names = ["n"]} : (tensor<4xi64>) -> ()
  return
}

// -----

// What drt-row-kernels leaves.
func.func @scatter(%indices: tensor<2xi32>, %rows: tensor<2x4xui8>) {
  // expected-error @below {{a scatter of this type has no code for GPUs yet; compile the graph for --target=cpu}}
  %0 = drt.scatter %indices, %rows {kind = 1 : i32, depth = 1 : i64} : (tensor<2xi32>, tensor<2x4xui8>) -> tensor<8x4xui8>
  return
}

// -----

func.func @compressed(%g: tensor<4xf32>) {
  // expected-error @below {{a compressor of gradients has no code for GPUs yet}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"], compression = #dist.compression<fp16>} : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @random() {
  // expected-error @below {{this kind of random numbers has no code for GPUs yet}}
  %0 = drt.random {distribution = 0 : i32, seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<4xf32>
  return
}

// -----

func.func @integers(%x: tensor<4x4xi32>, %h: tensor<4x4xbf16>, %d: tensor<4x4xf64>) {
  // expected-error @below {{'drt.matmul' of i32 has no code for GPUs yet}}
  %0 = drt.matmul %x, %x : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32>
  // What the libraries have.
  %1 = drt.matmul %h, %h : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xf32>
  %2 = drt.matmul %d, %d : (tensor<4x4xf64>, tensor<4x4xf64>) -> tensor<4x4xf64>
  return
}

// -----

// Not so what the host does.
func.func @on_the_host(%x: tensor<2x2xf32>) {
  // expected-remark @unknown {{runs on the host, with copies there and back, since there is no code for GPUs: node 'inverse'}}
  %0 = drt.routine "matrix_inverse" (%x) {parameters = array<i64: 1, 1, 2, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32> loc("inverse")
  return
}

// -----

// One report names everything, with its nodes and the entries that need them.
drt.entry "step" {
  %x = drt.feed {name = "x"} : () -> tensor<4x4xi32>
  // expected-error @unknown {{'drt.matmul' of i32 has no code for GPUs yet}}
  // expected-note @unknown {{'drt.matmul' of i32 has no code for GPUs yet: nodes 'a', 'b'; needed by 'step', 'eval'}}
  // expected-note @unknown {{a scatter of this type has no code for GPUs yet: node 'rows'; needed by 'eval'}}
  %0 = drt.matmul %x, %x : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32> loc("a")
}
drt.entry "eval" {
  %x = drt.feed {name = "x"} : () -> tensor<4x4xi32>
  %indices = drt.feed {name = "indices"} : () -> tensor<2xi32>
  %given = drt.feed {name = "given"} : () -> tensor<2x4xui8>
  %0 = drt.matmul %x, %x : (tensor<4x4xi32>, tensor<4x4xi32>) -> tensor<4x4xi32> loc("b")
  %1 = drt.scatter %indices, %given {kind = 1 : i32, depth = 1 : i64} : (tensor<2xi32>, tensor<2x4xui8>) -> tensor<8x4xui8> loc("rows")
}
