// RUN: distc-opt %s --drt-plan-memory --verify-diagnostics

func.func @unknown_size() attributes {drt.entry = "step"} {
  // expected-error @below {{has a tensor of unknown size, 'tensor<?xf32>'; no memory can be planned for it}}
  %x = drt.feed {name = "x"} : () -> tensor<?xf32>
  return
}
