// RUN: distc-opt %s --drt-plan-memory --split-input-file --verify-diagnostics

// expected-error @below {{needs to know the program's tasks; run drt-describe-program}}
module {
}

// -----

// Copies are made before: a bucket is reduced in place.
drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>]
drt.entry "feed_in_bucket" {
  %x = drt.feed {name = "x"} : () -> tensor<4xf32>
  // expected-error @+1 {{needs a tensor in the arena that no other bucket has; run drt-insert-copies}}
  drt.all_reduce_start %x {bucket = 0 : i32, mean = true, names = ["a"]} : (tensor<4xf32>) -> ()
}
