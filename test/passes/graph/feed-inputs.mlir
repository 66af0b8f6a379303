// RUN: distc-opt %s --dfg-feed-inputs --split-input-file --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// An iterator's outputs are feeds of their tensors' names; sizes that follow are known then.
// CHECK-LABEL: dfg.graph
// CHECK-NOT: dfg.opaque "IteratorGetNext"
// CHECK: %[[X:.*]] = dfg.placeholder {shape = #dfg.shape<[?, 3]>} : () -> tensor<?x3xf32> loc("next")
// CHECK: %[[Y:.*]] = dfg.placeholder {shape = #dfg.shape<[?]>} : () -> tensor<?xi64> loc("next:1")
// CHECK: dfg.square %[[X]] : (tensor<?x3xf32>) -> tensor<?x3xf32>
// CHECK: dfg.identity %[[Y]] : (tensor<?xi64>) -> tensor<?xi64>
dfg.graph attributes {loss = "loss"} {
  %i = dfg.opaque "IteratorV2"() : () -> tensor<!dfg.resource> loc("iterator")
  %x, %y = dfg.opaque "IteratorGetNext"(%i) {tf = {output_shapes = [#dfg.shape<[?, 3]>, #dfg.shape<[?]>]}} : (tensor<!dfg.resource>) -> (tensor<*xf32>, tensor<*xi64>) loc("next")
  %loss = dfg.square %x : (tensor<*xf32>) -> tensor<*xf32> loc("loss")
  %label = dfg.identity %y : (tensor<*xi64>) -> tensor<*xi64> loc("label")
}

// -----

// What initializes an iterator that is fed does nothing: initializers of variables may be run with it. Of one that gives something
// that is no number it stays.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.group {control = ["before"]} : () -> () loc("make")
// CHECK: dfg.placeholder {{.*}} loc("next")
// CHECK: dfg.opaque "MakeIterator"{{.*}} loc("make/words")
dfg.graph attributes {init_op = "init", loss = "loss"} {
  dfg.group : () -> () loc("before")
  %d = dfg.opaque "TensorSliceDataset"() : () -> tensor<!dfg.variant> loc("dataset")
  %i = dfg.opaque "IteratorV2"() : () -> tensor<!dfg.resource> loc("iterator")
  %name = dfg.opaque "IteratorToStringHandle"(%i) : (tensor<!dfg.resource>) -> tensor<!dfg.string> loc("name")
  dfg.opaque "MakeIterator"(%d, %i) {control = ["before"]} : (tensor<!dfg.variant>, tensor<!dfg.resource>) -> () loc("make")
  %x = dfg.opaque "IteratorGetNext"(%i) {tf = {output_shapes = [#dfg.shape<[?, 3]>]}} : (tensor<!dfg.resource>) -> tensor<*xf32> loc("next")
  %j = dfg.opaque "IteratorV2"() : () -> tensor<!dfg.resource> loc("iterator/words")
  dfg.opaque "MakeIterator"(%d, %j) : (tensor<!dfg.variant>, tensor<!dfg.resource>) -> () loc("make/words")
  %w = dfg.opaque "IteratorGetNext"(%j) {tf = {output_shapes = [#dfg.shape<[?]>]}} : (tensor<!dfg.resource>) -> tensor<*x!dfg.string> loc("next/words")
  %loss = dfg.square %x : (tensor<*xf32>) -> tensor<*xf32> loc("loss")
  %words = dfg.identity %w : (tensor<*x!dfg.string>) -> tensor<*x!dfg.string> loc("words")
  dfg.group {control = ["make"]} : () -> () loc("init")
}

// -----

// Features of fixed length are feeds of their own names, or of the tensor's where a node has that name; so are raw numbers behind
// their decoding. What is sparse or padded stays.
// CHECK-LABEL: dfg.graph
// CHECK: %[[LABEL:.*]] = dfg.placeholder {shape = #dfg.shape<[?]>} : () -> tensor<?xi64> loc("label")
// CHECK: %[[TAKEN:.*]] = dfg.placeholder {shape = #dfg.shape<[?, 2]>} : () -> tensor<?x2xf32> loc("parse:4")
// CHECK: %[[PARSED:.*]]:7 = dfg.opaque "ParseExampleV2"
// CHECK: %[[IMAGE:.*]] = dfg.placeholder {shape = #dfg.shape<[?, 6]>} : () -> tensor<?x6xui8> loc("image")
// CHECK-NOT: DecodeRaw
// CHECK: %[[PIXELS:.*]] = dfg.cast %[[IMAGE]] : (tensor<?x6xui8>) -> tensor<?x6xf32>
// CHECK: dfg.reshape %[[PIXELS]], %{{.*}} -> tensor<?x3x2xf32>
// CHECK: dfg.identity %[[LABEL]] : (tensor<?xi64>) -> tensor<?xi64>
// CHECK: dfg.identity %[[TAKEN]] : (tensor<?x2xf32>) -> tensor<?x2xf32>
// CHECK: dfg.identity %[[PARSED]]#6
// CHECK: dfg.identity %[[PARSED]]#1
dfg.graph attributes {loss = "loss"} {
  %serialized = dfg.placeholder {shape = #dfg.shape<[?]>} : () -> tensor<?x!dfg.string> loc("serialized")
  %names = dfg.const dense<""> : tensor<0x!dfg.string> : tensor<0x!dfg.string> loc("names")
  %sparse = dfg.const dense<"words"> : tensor<1x!dfg.string> : tensor<1x!dfg.string> loc("sparse")
  %dense = dfg.const dense<["label", "taken", "image", "padded"]> : tensor<4x!dfg.string> : tensor<4x!dfg.string> loc("dense")
  %none = dfg.const dense<0> : tensor<i64> : tensor<i64> loc("none")
  %size = dfg.const dense<[-1, 3, 2]> : tensor<3xi32> : tensor<3xi32> loc("size")
  %p:7 = dfg.opaque "ParseExampleV2"(%serialized, %names, %sparse, %dense, %names, %none, %none, %none, %none) {tf = {num_sparse = 1 : i64, dense_shapes = [#dfg.shape<[]>, #dfg.shape<[2]>, #dfg.shape<[]>, #dfg.shape<[?]>]}} : (tensor<?x!dfg.string>, tensor<0x!dfg.string>, tensor<1x!dfg.string>, tensor<4x!dfg.string>, tensor<0x!dfg.string>, tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) -> (tensor<*xi64>, tensor<*xi64>, tensor<*xi64>, tensor<*xi64>, tensor<*xf32>, tensor<*x!dfg.string>, tensor<*xi64>) loc("parse")
  %bytes = dfg.opaque "DecodeRaw"(%p#5) {tf = {little_endian = true}} : (tensor<*x!dfg.string>) -> tensor<*xui8> loc("decode")
  %floats = dfg.cast %bytes : (tensor<*xui8>) -> tensor<*xf32> loc("floats")
  %pixels = dfg.reshape %floats, %size : (tensor<*xf32>, tensor<3xi32>) -> tensor<*xf32> loc("pixels")
  %label = dfg.identity %p#3 : (tensor<*xi64>) -> tensor<*xi64> loc("use/label")
  %taken = dfg.identity %p#4 : (tensor<*xf32>) -> tensor<*xf32> loc("taken")
  %padded = dfg.identity %p#6 : (tensor<*xi64>) -> tensor<*xi64> loc("use/padded")
  %words = dfg.identity %p#1 : (tensor<*xi64>) -> tensor<*xi64> loc("use/words")
}

// -----

// Version 1 has a constant for each key, and takes batches only. An example whose bytes' number nothing tells stays.
// CHECK-LABEL: dfg.graph
// CHECK: dfg.placeholder {{.*}} -> tensor<?x4xf32> loc("x")
// CHECK: dfg.opaque "ParseExample"
// CHECK: dfg.opaque "DecodeRaw"
dfg.graph attributes {loss = "loss"} {
  %serialized = dfg.placeholder : () -> tensor<*x!dfg.string> loc("serialized")
  %names = dfg.const dense<""> : tensor<0x!dfg.string> : tensor<0x!dfg.string> loc("names")
  %a = dfg.const dense<"x"> : tensor<!dfg.string> : tensor<!dfg.string> loc("keys/0")
  %b = dfg.const dense<"raw"> : tensor<!dfg.string> : tensor<!dfg.string> loc("keys/1")
  %none = dfg.const dense<0> : tensor<i64> : tensor<i64> loc("none")
  %p:2 = dfg.opaque "ParseExample"(%serialized, %names, %a, %b, %none, %none) {tf = {Nsparse = 0 : i64, Ndense = 2 : i64, dense_shapes = [#dfg.shape<[4]>, #dfg.shape<[]>]}} : (tensor<*x!dfg.string>, tensor<0x!dfg.string>, tensor<!dfg.string>, tensor<!dfg.string>, tensor<i64>, tensor<i64>) -> (tensor<*xf32>, tensor<*x!dfg.string>) loc("parse")
  %loss = dfg.square %p#0 : (tensor<*xf32>) -> tensor<*xf32> loc("loss")
  %bytes = dfg.opaque "DecodeRaw"(%p#1) {tf = {}} : (tensor<*x!dfg.string>) -> tensor<*xui8> loc("decode")
  %other = dfg.identity %bytes : (tensor<*xui8>) -> tensor<*xui8> loc("other")
}
