// RUN: distc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{attribute 'drt.kernel' is not a unit}}
func.func private @kernel() attributes {drt.kernel = "yes"}

// -----

// expected-error @below {{attribute 'drt.range_kernal' is none of the dialect 'drt'}}
func.func private @kernel() attributes {drt.range_kernal}

// -----

// expected-error @below {{attribute 'drt.grid' stands on a kernel only}}
module attributes {drt.grid = array<i64: 1, 1, 1>} {
}
