//===- accumulator.h - A replica's gradient of several batches ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_ACCUMULATOR_H
#define DRT_CPU_ACCUMULATOR_H

#include "core/memory.h"
#include "drt/drt.h"

namespace drt {

/// Used by the replica's own thread alone. Its memory is there from the first batch on.
class Accumulator {
public:
  /// Adds a batch's gradient, or joins its rows to those kept.
  void keep(const drt_accumulate_desc &desc, const void *gradient);

  /// out = (what was kept + gradient) * scale, in the order of batches; forgets what was kept.
  void take(const drt_accumulate_desc &desc, double scale, const void *gradient, void *out);

private:
  Memory kept_;
  int32_t batches_ = 0;
};

} // namespace drt

#endif // DRT_CPU_ACCUMULATOR_H
