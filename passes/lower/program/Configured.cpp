//===- Configured.cpp - What the build's configuration says ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/program/Configured.h"

namespace distc {

const char *getVersion() { return DISTC_VERSION; }

} // namespace distc
