// RUN: distc-opt %s --drt-verify-stream-order --split-input-file --verify-diagnostics

// A gradient is read raw while it is reduced.
drt.entry "read_during_reduction" {
  %g = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
  // expected-note @below {{the reduction starts here}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a"], at = array<i64: 0>} : (tensor<16xf32>) -> ()
  // expected-error @below {{'launch' reads bytes [0, 64) of the arena while the communication stream reduces bucket 0 there: drt.all_reduce_wait has to stand between}}
  %norm = drt.launch @kernel_1(%g) {at = array<i64: 64>} : (tensor<16xf32>) -> tensor<f32>
  drt.all_reduce_wait 0
}

// -----

// ... or behind it, where the reduced one lies.
drt.entry "read_behind_reduction" {
  %g = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
  // expected-note @below {{is written here}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a"], at = array<i64: 0>} : (tensor<16xf32>) -> ()
  drt.all_reduce_wait 0
  // expected-error @below {{'launch' reads bytes [0, 64) of the arena for what 'launch' writes, behind their reduction in place; what it reads has to be copied in front of that}}
  %norm = drt.launch @kernel_1(%g) {at = array<i64: 64>} : (tensor<16xf32>) -> tensor<f32>
}

// -----

drt.entry "result_without_wait" {
  %g = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
  // expected-note @below {{the reduction starts here}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a"], at = array<i64: 0>} : (tensor<16xf32>) -> ()
  %mean = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<16xf32>
  // expected-error @below {{'launch' reads bytes [0, 64) of the arena while the communication stream reduces bucket 0 there}}
  %norm = drt.launch @kernel_1(%mean) {at = array<i64: 64>} : (tensor<16xf32>) -> tensor<f32>
}

// -----

drt.variable @b : tensor<16xf32>
drt.entry "update_without_wait" {
  %g:2 = drt.launch @kernel_0() {at = array<i64: 0, 64>} : () -> (tensor<16xf32>, tensor<16xf32>)
  drt.all_reduce_start %g#0 {bucket = 0 : i32, mean = true, names = ["a"], at = array<i64: 0>} : (tensor<16xf32>) -> ()
  // expected-note @below {{the reduction starts here}}
  drt.all_reduce_start %g#1 {bucket = 1 : i32, mean = true, names = ["b"], at = array<i64: 64>} : (tensor<16xf32>) -> ()
  // The wait for the first does not wait for the second.
  drt.all_reduce_wait 0
  // expected-error @below {{'update_group' reads bytes [64, 128) of the arena while the communication stream reduces bucket 1 there}}
  drt.update_group {bucket = 1 : i32, members = array<i64: 0>, kernel = @update_group_0, variables = [[@b]]} : () -> ()
}

// -----

// The memory's planner gave the place away while the communication stream reduces there.
drt.entry "place_taken_during_reduction" {
  %g = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
  // expected-note @below {{the reduction starts here}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a"], at = array<i64: 0>} : (tensor<16xf32>) -> ()
  // expected-error @below {{'launch' writes bytes [32, 96) of the arena while the communication stream reduces bucket 0 there}}
  %other = drt.launch @kernel_0() {at = array<i64: 32>} : () -> tensor<16xf32>
  drt.all_reduce_wait 0
}

// -----

drt.entry "buckets_overlap" {
  %g:2 = drt.launch @kernel_0() {at = array<i64: 0, 64>} : () -> (tensor<16xf32>, tensor<16xf32>)
  // expected-note @below {{the reduction starts here}}
  drt.all_reduce_start %g#0, %g#1 {bucket = 0 : i32, mean = true, names = ["a", "b"], at = array<i64: 0>} : (tensor<16xf32>, tensor<16xf32>) -> ()
  // expected-error @below {{'start bucket 1' reads bytes [64, 128) of the arena while the communication stream reduces bucket 0 there}}
  drt.all_reduce_start %g#1 {bucket = 1 : i32, mean = true, names = ["b"], at = array<i64: 64>} : (tensor<16xf32>) -> ()
}

// -----

// A launch's result lies over its operand.
drt.entry "result_over_operand" {
  %x = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
  // expected-error @below {{'launch' reads bytes [0, 64) of the arena for what 'launch' writes, and writes a result there itself}}
  // expected-note @below {{is written here}}
  %y = drt.launch @kernel_1(%x) {at = array<i64: 0>} : (tensor<16xf32>) -> tensor<16xf32>
}

// -----

// Part of it.
drt.entry "overwritten" {
  %x = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
  // expected-note @below {{is written here}}
  %y = drt.launch @kernel_0() {at = array<i64: 60>} : () -> tensor<16xf32>
  // expected-error @below {{'launch' reads bytes [0, 64) of the arena for what 'launch' writes, but 'launch' has written there since}}
  %z = drt.launch @kernel_1(%x) {at = array<i64: 256>} : (tensor<16xf32>) -> tensor<16xf32>
}

// -----

// What is fetched is copied at the end.
drt.entry "fetch_overwritten" {
  %loss = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<f32>
  // expected-error @below {{'fetch' reads bytes [0, 4) of the arena for what 'launch' writes, but 'launch' has written there since}}
  drt.fetch %loss {join = 1 : i32, name = "loss:0"} : (tensor<f32>) -> ()
  // expected-note @below {{is written here}}
  %y = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
}

// -----

// The wait at a run's end stands behind the fetches' copies.
drt.entry "fetch_during_reduction" {
  %g = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
  // expected-note @below {{the reduction starts here}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a"], at = array<i64: 0>} : (tensor<16xf32>) -> ()
  %mean = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<16xf32>
  // expected-error @below {{'fetch' reads bytes [0, 64) of the arena while the communication stream reduces bucket 0 there}}
  drt.fetch %mean {join = 2 : i32, name = "g:0"} : (tensor<16xf32>) -> ()
}

// -----

drt.variable @w : tensor<16xf32>
drt.entry "old_value" {
  %w = drt.read @w : tensor<16xf32>
  drt.update_group {kernel = @update_group_0, variables = [[@w]]} : () -> ()
  // expected-error @below {{'launch' reads variable 'w' behind its update, for the value from before: that has to be copied in front of the update}}
  %norm = drt.launch @kernel_1(%w) {at = array<i64: 0>} : (tensor<16xf32>) -> tensor<f32>
}

// -----

drt.variable @a : tensor<16xf32>
drt.variable @b : tensor<16xf32>
// a, b = b, a
drt.entry "swapped" {
  %a = drt.read @a : tensor<16xf32>
  %b = drt.read @b : tensor<16xf32>
  drt.update_group reads(%b : tensor<16xf32>) {kernel = @update_group_0, variables = [[@a]]} : () -> ()
  // expected-error @below {{'update_group' reads variable 'a' behind its update, for the value from before}}
  drt.update_group reads(%a : tensor<16xf32>) {kernel = @update_group_1, variables = [[@b]]} : () -> ()
}

// -----

drt.variable @a : tensor<16xf32>
drt.variable @b : tensor<16xf32>
drt.entry "swapped_in_one_launch" {
  %a = drt.read @a : tensor<16xf32>
  %b = drt.read @b : tensor<16xf32>
  // expected-error @below {{'update_group' reads variable 'b', which another member of the same launch updates}}
  drt.update_group reads(%b, %a : tensor<16xf32>, tensor<16xf32>) {kernel = @update_group_0, variables = [[@a], [@b]]} : () -> ()
}

// -----

drt.variable @rate : tensor<f32>
drt.variable @b : tensor<16xf32>
drt.entry "rate_of_others" {
  %rate = drt.read @rate : tensor<f32>
  // expected-error @below {{'update_group' reads variable 'rate', which another member of the same launch updates}}
  drt.update_group %rate {kernel = @update_group_0, variables = [[@rate], [@b]]} : (tensor<f32>) -> ()
}

// -----

drt.variable @a : tensor<16xf32>
drt.entry "updated_twice" {
  // expected-error @below {{'update_group' updates variable 'a' twice in one launch, which has no order}}
  drt.update_group {kernel = @update_group_0, variables = [[@a], [@a]]} : () -> ()
}

// -----

drt.entry "results_overlap" {
  // expected-error @below {{'launch' reads bytes [0, 64) of the arena for what 'launch' writes, and writes a result there itself}}
  // expected-note @below {{is written here}}
  %x:2 = drt.launch @kernel_0() {at = array<i64: 0, 32>} : () -> (tensor<16xf32>, tensor<16xf32>)
}

// -----

drt.entry "never_started" {
  // expected-error @below {{names bucket 3, which was not started before}}
  drt.all_reduce_wait 3
}

// -----

drt.entry "started_twice" {
  %g = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a"], at = array<i64: 0>} : (tensor<16xf32>) -> ()
  drt.all_reduce_wait 0
  // expected-error @below {{starts bucket 0 a second time}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a"], at = array<i64: 0>} : (tensor<16xf32>) -> ()
}

// -----

drt.entry "elsewhere" {
  %g = drt.launch @kernel_0() {at = array<i64: 64>} : () -> tensor<16xf32>
  // expected-error @below {{reduces member 0 at [0, 64) of the arena, but its gradient lies at [64, 128)}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["a"], at = array<i64: 0>} : (tensor<16xf32>) -> ()
}

// -----

drt.entry "state_behind_advance" {
  %state = drt.random_state {seed = 1 : i64, seed2 = 2 : i64} : () -> tensor<7xi32>
  drt.random_advance @random_advance_0(%state) : tensor<7xi32>
  // expected-error @below {{'launch' draws from a state behind drt.random_advance}}
  %x = drt.launch @random_0(%state) {at = array<i64: 0>} : (tensor<7xi32>) -> tensor<16xf32>
}

// -----

drt.entry "unplanned" {
  // expected-error @below {{has no place in the arena; run drt-plan-memory}}
  %x = drt.launch @kernel_0() : () -> tensor<16xf32>
}

// -----

drt.entry "unknown" {
  // expected-error @below {{has no known place in the order of a device's streams}}
  drt.barrier
}

// -----

drt.variable @w : tensor<16xf32>
// Of what is scattered a replica has its share.
drt.entry "all_of_a_share" {
  %g = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
  drt.all_reduce_start %g {bucket = 0 : i32, mean = false, names = ["w"], at = array<i64: 0>, scatter, room = array<i64: 16>} : (tensor<16xf32>) -> ()
  drt.all_reduce_wait 0
  // expected-error @below {{'update_group' takes all of the gradients of bucket 0, of which this replica has its share alone}}
  drt.update_group {bucket = 0 : i32, members = array<i64: 0>, kernel = @update_group_0, variables = [[@w]]} : () -> ()
}

// -----

drt.entry "result_of_a_share" {
  %g = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
  drt.all_reduce_start %g {bucket = 0 : i32, mean = false, names = ["w"], at = array<i64: 0>, scatter, room = array<i64: 16>} : (tensor<16xf32>) -> ()
  drt.all_reduce_wait 0
  // expected-error @below {{takes all of the gradients of bucket 0, of which this replica has its share alone}}
  %mean = drt.all_reduce_result {bucket = 0 : i32} : () -> tensor<16xf32>
}

// -----

// The room of a member is reduced with it.
drt.entry "room_during_scatter" {
  %g = drt.launch @kernel_0() {at = array<i64: 0>} : () -> tensor<16xf32>
  // expected-note @below {{the reduction starts here}}
  drt.all_reduce_start %g {bucket = 0 : i32, mean = false, names = ["w"], at = array<i64: 0>, scatter, room = array<i64: 24>} : (tensor<16xf32>) -> ()
  // expected-error @below {{'launch' writes bytes [64, 128) of the arena while the communication stream reduces bucket 0 there}}
  %x = drt.launch @kernel_1() {at = array<i64: 64>} : () -> tensor<16xf32>
}

// -----

drt.variable @w : tensor<16xf32>
drt.entry "read_before_gather" {
  %index = drt.replica_index : () -> tensor<i32>
  // expected-note @below {{is updated here}}
  drt.update_group %index {kernel = @update_group_0, shares = array<i64: 8>, variables = [[@w]]} : (tensor<i32>) -> ()
  %w = drt.read @w : tensor<16xf32>
  // expected-error @below {{'copy' reads variable 'w', of which this replica has updated its share alone: drt.gather_start and drt.all_reduce_wait have to stand between}}
  %copy = drt.copy %w {at = array<i64: 0>} : (tensor<16xf32>) -> tensor<16xf32>
}

// -----

drt.variable @w : tensor<16xf32>
drt.entry "read_during_gather" {
  %index = drt.replica_index : () -> tensor<i32>
  drt.update_group %index {kernel = @update_group_0, shares = array<i64: 8>, variables = [[@w]]} : (tensor<i32>) -> ()
  // expected-note @below {{the gather starts here}}
  drt.gather_start {bucket = 0 : i32, variables = [@w], room = array<i64: 16>} : () -> ()
  %w = drt.read @w : tensor<16xf32>
  // expected-error @below {{'copy' reads variable 'w' while the communication stream gathers its shares: drt.all_reduce_wait has to stand between}}
  %copy = drt.copy %w {at = array<i64: 0>} : (tensor<16xf32>) -> tensor<16xf32>
}

// -----

drt.variable @w : tensor<16xf32>
drt.entry "update_during_gather" {
  %index = drt.replica_index : () -> tensor<i32>
  // expected-note @below {{the gather starts here}}
  drt.gather_start {bucket = 0 : i32, variables = [@w], room = array<i64: 16>} : () -> ()
  // expected-error @below {{'update_group' updates variable 'w' while the communication stream gathers its shares}}
  drt.update_group %index {kernel = @update_group_0, shares = array<i64: 8>, variables = [[@w]]} : (tensor<i32>) -> ()
}

// -----

drt.variable @w : tensor<16xf32>
// A value that was read before others' shares came.
drt.entry "old_value_behind_gather" {
  %index = drt.replica_index : () -> tensor<i32>
  %w = drt.read @w : tensor<16xf32>
  drt.gather_start {bucket = 0 : i32, variables = [@w], room = array<i64: 16>} : () -> ()
  drt.all_reduce_wait 0
  // expected-error @below {{'copy' reads variable 'w' behind its update, for the value from before}}
  %copy = drt.copy %w {at = array<i64: 0>} : (tensor<16xf32>) -> tensor<16xf32>
}

// -----

drt.variable @w : tensor<16xf32>
drt.entry "never_gathered" {
  %index = drt.replica_index : () -> tensor<i32>
  // expected-error @below {{'update_group' updates this replica's share of variable 'w', and nothing gathers the others'}}
  drt.update_group %index {kernel = @update_group_0, shares = array<i64: 8>, variables = [[@w]]} : (tensor<i32>) -> ()
}

// -----

// A slot is each replica's own.
drt.variable @slot : tensor<8xf32> {full_shape = array<i64: 16>, shares = 2 : i64, whole = "slot"}
drt.entry "gather_of_a_slot" {
  // expected-error @below {{gathers variable 'slot', of which each replica holds its share alone}}
  drt.gather_start {bucket = 0 : i32, variables = [@slot], room = array<i64: 16>} : () -> ()
}
