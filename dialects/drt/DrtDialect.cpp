//===- DrtDialect.cpp - The runtime's dialect ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Servers.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

#include "dialects/drt/DrtDialect.cpp.inc"
#include "dialects/drt/DrtInterfaces.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/drt/DrtOps.cpp.inc"

void distc::drt::DRTDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/drt/DrtOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/drt/ServerOps.cpp.inc"
      >();
}

namespace distc::drt {

llvm::SmallVector<int64_t> getTaskReplicas(ModuleOp module) {
  llvm::SmallVector<int64_t> replicas;
  if (auto program = module->getAttrOfType<DictionaryAttr>(kProgramAttr))
    if (auto tasks = program.getAs<ArrayAttr>("tasks"))
      for (auto task : tasks.getAsRange<DictionaryAttr>())
        replicas.push_back(task.getAs<IntegerAttr>("num_replicas").getInt());
  return replicas;
}

int64_t getNumReplicas(ModuleOp module) {
  auto program = module->getAttrOfType<DictionaryAttr>(kProgramAttr);
  auto number = program ? program.getAs<IntegerAttr>("num_replicas") : IntegerAttr();
  return number ? number.getInt() : 1;
}

} // namespace distc::drt
