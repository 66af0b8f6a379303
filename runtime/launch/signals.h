//===- signals.h - A wish to stop -----------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_SIGNALS_H
#define DRT_LAUNCH_SIGNALS_H

namespace drt {

/// From now on INT and TERM only note that they came; the second one ends the
/// process at once. A broken pipe and a file-size limit become errors of the write.
void catchSignals();

/// The signal that came, 0 for none.
int caughtSignal();

} // namespace drt

#endif // DRT_LAUNCH_SIGNALS_H
