//===- ConvertDrtToLLVM.cpp - Entries as LLVM functions, and the program's tables ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "passes/lower/Passes.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/PlanText.h"
#include "passes/lower/program/EntryConverter.h"
#include "passes/lower/program/SplitEntry.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_CONVERTDRTTOLLVM
#include "passes/lower/Passes.h.inc"

namespace {

// Of one function: some hundred calls, each with its scope and its addresses.
constexpr unsigned kMaxEntryOperations = 4000;

// Kernels are seen by this program alone. They stay functions of their own, and are compiled each by itself: entries of
// thousands of calls would otherwise be optimized as one function, which takes long and gains nothing.
void hideKernels(ModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal()) {
      function.setLinkage(LLVM::Linkage::Internal);
      function.setNoInline(true);
      markAsKernel(function);
    }
}

struct ConvertDrtToLLVM : impl::ConvertDrtToLLVMBase<ConvertDrtToLLVM> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<drt::ProgramOp> planned = drt::getPlannedProgram(module);
    if (failed(planned))
      return signalPassFailure();
    hideKernels(module);
    ProgramConversion program(module, *planned);
    std::vector<EntryTables> entries;
    std::string plan;
    for (drt::EntryOp entry : getEntries(module)) {
      plan += getPlanText(entry);
      EntryConverter converter(program, entry);
      if (failed(converter.convert()))
        return signalPassFailure();
      splitEntry(module.lookupSymbol<LLVM::LLVMFuncOp>(converter.tables.function), kMaxEntryOperations);
      entries.push_back(std::move(converter.tables));
    }
    if (failed(writeProgram(module, *planned, program.tables, entries, program.sites, plan)))
      return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(module.getOps()))
      if (isa<drt::ProgramOp, drt::VariableOp, drt::EntryOp, drt::ImageOp, gpu::GPUModuleOp>(op))
        op.erase();
  }
};

} // namespace
} // namespace distc
