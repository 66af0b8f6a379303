// RUN: distc-opt %s --dfg-feed-inputs --split-input-file --verify-diagnostics

// What an endpoint needs of features whose length is open is refused where they are parsed.
dfg.graph attributes {loss = "loss"} {
  %serialized = dfg.placeholder {shape = #dfg.shape<[?]>} : () -> tensor<?x!dfg.string> loc("serialized")
  %names = dfg.const dense<""> : tensor<0x!dfg.string> : tensor<0x!dfg.string> loc("names")
  %sparse = dfg.const dense<["words", "tags"]> : tensor<2x!dfg.string> : tensor<2x!dfg.string> loc("sparse")
  %dense = dfg.const dense<"label"> : tensor<1x!dfg.string> : tensor<1x!dfg.string> loc("dense")
  %none = dfg.const dense<0> : tensor<i64> : tensor<i64> loc("none")
  // expected-error @unknown {{node 'parse' parses features of a length that each example has its own of (VarLenFeature): 'words', 'tags'; an executable reads features of a fixed length: pad them (FixedLenFeature), or have the graph begin behind the parsing, with placeholders}}
  %p:7 = dfg.opaque "ParseExampleV2"(%serialized, %names, %sparse, %dense, %names, %none) {tf = {num_sparse = 2 : i64, dense_shapes = [#dfg.shape<[]>]}} : (tensor<?x!dfg.string>, tensor<0x!dfg.string>, tensor<2x!dfg.string>, tensor<1x!dfg.string>, tensor<0x!dfg.string>, tensor<i64>) -> (tensor<*xi64>, tensor<*xi64>, tensor<*xi64>, tensor<*xi64>, tensor<*xi64>, tensor<*xi64>, tensor<*xf32>) loc("parse")
  %loss = dfg.add_v2 %p#2, %p#3 : (tensor<*xi64>, tensor<*xi64>) -> tensor<*xi64> loc("loss")
}

// -----

// A length that the parsing pads to the longest of the batch.
dfg.graph attributes {loss = "loss"} {
  %serialized = dfg.placeholder {shape = #dfg.shape<[?]>} : () -> tensor<?x!dfg.string> loc("serialized")
  %names = dfg.const dense<""> : tensor<0x!dfg.string> : tensor<0x!dfg.string> loc("names")
  %a = dfg.const dense<"x"> : tensor<!dfg.string> : tensor<!dfg.string> loc("keys/0")
  %none = dfg.const dense<0> : tensor<i64> : tensor<i64> loc("none")
  // expected-error @unknown {{node 'parse' parses features that are no numbers of a fixed length; an executable reads}}
  %p = dfg.opaque "ParseExample"(%serialized, %names, %a, %none) {tf = {Nsparse = 0 : i64, Ndense = 1 : i64, dense_shapes = [#dfg.shape<[?]>]}} : (tensor<?x!dfg.string>, tensor<0x!dfg.string>, tensor<!dfg.string>, tensor<i64>) -> tensor<*xf32> loc("parse")
  %loss = dfg.square %p : (tensor<*xf32>) -> tensor<*xf32> loc("loss")
}
