// RUN: distc-opt %s --convert-drt-to-llvm --split-input-file --verify-diagnostics

// expected-error @below {{needs to know the program's tasks; run drt-describe-program}}
module {
  drt.entry "empty" {}
}

// -----

module {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena 0
  drt.entry "unplanned" {
    %x = drt.feed {name = "x"} : () -> tensor<4xf32>
    // expected-error @below {{has no place in the arena; run drt-plan-memory}}
    %y = drt.copy %x : (tensor<4xf32>) -> tensor<4xf32>
  }
}

// -----

module {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena 64
  drt.entry "no_kernel" {
    // expected-error @below {{calls a kernel that is no LLVM function: @relu}}
    %y = drt.launch @relu() {at = array<i64: 0>} : () -> tensor<4xf32>
  }
}

// -----

module {
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] arena 64
  drt.entry "order" {
    // expected-error @below {{starts bucket 1 as number 0; buckets are numbered in the order in which they start}}
    drt.all_reduce_start {bucket = 1 : i32, mean = true, names = []} : () -> ()
  }
}

// -----

module {
  dfg.variable @step : tensor<i64>
  // expected-error @below {{names the global step @step, which is no variable of the program}}
  drt.program "g.meta" strategy "AllReduce" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "localhost" replicas 1 from 0>] global_step @step arena 64
  drt.entry "not_lowered" {}
}
