// RUN: distc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{attribute 'drt.schedule' is not a string}}
func.func private @kernel() attributes {drt.schedule}

// -----

// expected-error @below {{attribute 'drt.kernel' is none of the dialect 'drt'}}
func.func private @kernel() attributes {drt.kernel}

// -----

// expected-error @below {{attribute 'drt.grid' stands on a kernel only}}
module attributes {drt.grid = array<i64: 1, 1, 1>} {
}
