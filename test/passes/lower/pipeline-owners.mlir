// RUN: distc-opt %s --drt-pipeline-owners --drt-verify-order --split-input-file | FileCheck %s

// Each gradient is read by the update of its owner alone; updates go in the order in which gradients come.
drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
// CHECK-LABEL: drt.entry "pipelined"
drt.entry "pipelined" {
  // CHECK: drt.all_reduce_start {{.*}}bucket = 0 : i32{{.*}}pipelined
  // CHECK: drt.all_reduce_start {{.*}}bucket = 1 : i32{{.*}}pipelined
  // CHECK-NEXT: drt.all_reduce_wait 0
  // CHECK-NEXT: drt.update {{.*}}variables = [@w, @m]
  // CHECK-NEXT: drt.all_reduce_wait 1
  // CHECK-NEXT: drt.update {{.*}}variables = [@v]
  // CHECK-NEXT: drt.gather_start {{.*}}pipelined
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.gather_start {bucket = 2 : i32, variables = [@w, @v], owners = array<i64: 0, 0>} : () -> ()
  drt.all_reduce_wait 2
}

// -----

// An update that reads what another one writes keeps its place.
drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
// CHECK-LABEL: drt.entry "ordered"
drt.entry "ordered" {
  // CHECK: drt.all_reduce_wait 1
  // CHECK-NEXT: drt.update {{.*}}variables = [@v]
  // CHECK-NEXT: drt.all_reduce_wait 0
  // CHECK-NEXT: drt.update {{.*}}variables = [@w, @m]
  // CHECK-NEXT: drt.gather_start {{.*}}pipelined
  %m = drt.read @m : tensor<8xf32>
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  drt.all_reduce_wait 1
  drt.update %m {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : (tensor<8xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.gather_start {bucket = 2 : i32, variables = [@w, @v], owners = array<i64: 0, 0>} : () -> ()
  drt.all_reduce_wait 2
}

// -----

// Something reads an old value behind the wait for the gradient. What is gathered with that variable comes whole, too.
drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
// CHECK-LABEL: drt.entry "old_value"
drt.entry "old_value" {
  // CHECK-NOT: pipelined
  // CHECK: drt.all_reduce_wait 2
  %w = drt.read @w : tensor<8xf32>
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  drt.all_reduce_wait 0
  %norm = drt.launch @norm(%w) : (tensor<8xf32>) -> tensor<f32>
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  drt.gather_start {bucket = 2 : i32, variables = [@w, @v], owners = array<i64: 0, 0>} : () -> ()
  drt.all_reduce_wait 2
}

// -----

// A moving average of the variable: the update writes what all tasks hold, or another one reads the new value.
drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
// CHECK-LABEL: drt.entry "average"
drt.entry "average" {
  // CHECK-NOT: pipelined
  // CHECK: drt.all_reduce_wait 2
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  %new = drt.read @w : tensor<8xf32>
  drt.update %new {count = 8 : i64, kernel = @average, owner = 0 : i64, variables = [@m]} : (tensor<8xf32>) -> ()
  drt.gather_start {bucket = 2 : i32, variables = [@w, @v], owners = array<i64: 0, 0>} : () -> ()
  drt.all_reduce_wait 2
}

// -----

// The communication finishes a gather before it goes on, so one that is waited for before another update comes whole.
drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 1 from 0>, #drt.task<"worker" 1 on "b" replicas 1 from 1>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
// CHECK-LABEL: drt.entry "behind"
drt.entry "behind" {
  // CHECK: drt.all_reduce_start {{.*}}names = ["w"]{{.*}}pipelined
  // CHECK-NOT: pipelined
  // CHECK: drt.gather_start {{.*}}bucket = 3 : i32{{.*}}pipelined
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  drt.gather_start {bucket = 2 : i32, variables = [@v], owners = array<i64: 0>} : () -> ()
  drt.all_reduce_wait 2
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.gather_start {bucket = 3 : i32, variables = [@w], owners = array<i64: 0>} : () -> ()
  drt.all_reduce_wait 3
}

// -----

// Within one task nothing travels.
drt.program "g.meta" strategy "PS" target "cpu" batch 0 tasks [#drt.task<"worker" 0 on "a" replicas 2 from 0>]
drt.variable @w : tensor<8xf32>
drt.variable @v : tensor<8xf32>
drt.variable @m : tensor<8xf32> {owner = 0 : i64}
// CHECK-LABEL: drt.entry "one_task"
drt.entry "one_task" {
  // CHECK-NOT: pipelined
  // CHECK: drt.all_reduce_wait 2
  %x = drt.feed {name = "x"} : () -> tensor<8xf32>
  %gw = drt.launch @gradient_w(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gw {bucket = 0 : i32, mean = true, names = ["w"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  %gv = drt.launch @gradient_v(%x) : (tensor<8xf32>) -> tensor<8xf32>
  drt.all_reduce_start %gv {bucket = 1 : i32, mean = true, names = ["v"], scatter, owners = array<i64: 0>} : (tensor<8xf32>) -> ()
  drt.all_reduce_wait 0
  drt.update {bucket = 0 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@w, @m]} : () -> ()
  drt.all_reduce_wait 1
  drt.update {bucket = 1 : i32, member = 0 : i64, count = 8 : i64, kernel = @sgd, owner = 0 : i64, variables = [@v]} : () -> ()
  drt.gather_start {bucket = 2 : i32, variables = [@w, @v], owners = array<i64: 0, 0>} : () -> ()
  drt.all_reduce_wait 2
}
