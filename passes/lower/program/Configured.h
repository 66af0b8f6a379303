//===- Configured.h - What the build's configuration says ------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_CONFIGURED_H
#define DISTC_PASSES_LOWER_PROGRAM_CONFIGURED_H

namespace distc {

/// distc's own.
const char *getVersion();

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_CONFIGURED_H
