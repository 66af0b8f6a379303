//===- PlanPage.h - The plan as a page for a browser -----------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_DISTC_PLANPAGE_H
#define DISTC_TOOLS_DISTC_PLANPAGE_H

#include "tools/distc/Session.h"

namespace distc {

/// Makes the page of a plan: one HTML file with the document of docs/plan-page.md in it and what shows it. Returns the
/// status. `joint`: the plan of the same tasks where they share their memory, if they can (else null); timelines say
/// which of the two ran.
int makePlanPage(Session &session, mlir::ModuleOp module, mlir::ModuleOp joint, const CompileOptions &options,
                 std::string &page);

} // namespace distc

#endif // DISTC_TOOLS_DISTC_PLANPAGE_H
