//===- call_sites.cpp - What library call sites keep between steps --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/call_sites.h"

drt::Prepared::~Prepared() = default;
