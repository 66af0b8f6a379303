// RUN: distc-opt %s --drt-random-kernels --split-input-file --verify-diagnostics

drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>]
#noise = loc("noise")
drt.entry "half" {
  // expected-error@unknown {{node 'noise' draws random numbers of type 'f16'; there are such of float32 and float64}}
  %x = drt.random {distribution = 1 : i32, seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<6xf16> loc(#noise)
}

// -----

drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>]
#pick = loc("pick")
drt.entry "small" {
  %low = drt.feed {name = "low"} : () -> tensor<i16>
  // expected-error@unknown {{node 'pick' draws random integers of type 'i16'; there are such of int32 and int64}}
  %x = drt.random %low, %low {distribution = 3 : i32, seed = 1 : i64, seed2 = 2 : i64} : (tensor<i16>, tensor<i16>) -> tensor<6xi16> loc(#pick)
}

// -----

drt.program "g.meta" strategy "AllReduce" target "cuda" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>]
#pick = loc("pick")
drt.entry "empty" {
  %low = arith.constant dense<5> : tensor<i32>
  // expected-error@unknown {{node 'pick': random integers need minval < maxval, got 5 >= 5}}
  %x = drt.random %low, %low {distribution = 3 : i32, seed = 1 : i64, seed2 = 2 : i64} : (tensor<i32>, tensor<i32>) -> tensor<6xi32> loc(#pick)
}
