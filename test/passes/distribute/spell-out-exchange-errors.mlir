// RUN: distc-opt %s --dist-spell-out-exchange --split-input-file --verify-diagnostics

dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:GPU:0", "localhost:GPU:1"] replicas 2 from 0>]
dfg.func @unknown(%g: tensor<?x2xf32>) -> tensor<?x2xf32> {
  // expected-error @below {{compresses or aggregates a gradient of unknown shape; use none, mean or sum}}
  %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] {compression = #dist.compression<fp16>} : tensor<?x2xf32>
  dfg.return %r : tensor<?x2xf32>
}

// -----

dist.topology @cluster replicas 2 [#dist.task<"worker" 0 on "localhost" devices ["localhost:GPU:0", "localhost:GPU:1"] replicas 2 from 0>]
dfg.func @few(%g: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{has too few gradients, 2, for trimmed_mean with f = 1}}
  %r = dist.all_reduce mean bucket 0 group 0 (%g) variables ["w"] {aggregator = #dist.aggregator<trimmed_mean f 1>} : tensor<2xf32>
  dfg.return %r : tensor<2xf32>
}
