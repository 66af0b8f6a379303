//===- KernelParts.cpp - Kernels that are compiled each by itself ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/program/KernelParts.h"
#include "passes/lower/program/ObjectCache.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

using namespace llvm;

namespace distc {

using Globals = SetVector<GlobalValue *>;

static void addGlobals(const Constant &constant, Globals &globals) {
  if (auto *global = dyn_cast<GlobalValue>(&constant)) {
    globals.insert(const_cast<GlobalValue *>(global));
    return;
  }
  for (const Use &operand : constant.operands())
    if (auto *inner = dyn_cast<Constant>(operand))
      addGlobals(*inner, globals);
}

// What a definition names.
static void addNamed(const GlobalValue &value, Globals &globals) {
  if (auto *variable = dyn_cast<GlobalVariable>(&value); variable && variable->hasInitializer())
    addGlobals(*variable->getInitializer(), globals);
  if (auto *function = dyn_cast<Function>(&value))
    for (const Instruction &instruction : instructions(*function))
      for (const Use &operand : instruction.operands())
        if (auto *constant = dyn_cast<Constant>(operand))
          addGlobals(*constant, globals);
}

static bool isKernel(const GlobalValue &value) {
  auto *function = dyn_cast<Function>(&value);
  return function && !function->isDeclaration() && function->hasFnAttribute(kKernelFunctionAttr);
}

// Kernels that others than kernels name, in an order that follows from the module.
static Globals findKernels(const Module &module) {
  Globals named;
  for (const GlobalValue &value : module.global_values())
    if (!isKernel(value))
      addNamed(value, named);
  named.remove_if([](const GlobalValue *value) { return !isKernel(*value); });
  return named;
}

// Names say nothing: a program numbers its kernels, and an equal one of another program has another number.
static std::unique_ptr<Module> copyPart(Function &kernel) {
  Globals globals;
  globals.insert(&kernel);
  for (size_t i = 0; i < globals.size(); ++i) // it grows
    addNamed(*globals[i], globals);

  auto part = std::make_unique<Module>("", kernel.getContext());
  ValueToValueMapTy copies;
  for (auto [i, value] : enumerate(globals)) {
    // Memory that is visible outside is one for all parts.
    const bool isCommon = isa<GlobalVariable>(value) && !value->isDeclaration() && !value->hasLocalLinkage();
    const bool keepsName = isCommon || value->isDeclaration();
    const std::string name = keepsName ? value->getName().str() : "part." + std::to_string(i);
    const auto linkage = isCommon                 ? GlobalValue::WeakAnyLinkage
                         : value->isDeclaration() ? value->getLinkage()
                                                  : GlobalValue::InternalLinkage;
    if (auto *function = dyn_cast<Function>(value)) {
      Function *copy = Function::Create(function->getFunctionType(), linkage, name, *part);
      copy->copyAttributesFrom(function);
      copies[value] = copy;
    } else {
      auto *variable = cast<GlobalVariable>(value);
      auto *copy = new GlobalVariable(*part, variable->getValueType(), variable->isConstant(), linkage,
                                      /*Initializer=*/nullptr, name, /*InsertBefore=*/nullptr,
                                      variable->getThreadLocalMode(), variable->getAddressSpace());
      copy->copyAttributesFrom(variable);
      copies[value] = copy;
    }
  }
  for (GlobalValue *value : globals) {
    if (value->isDeclaration())
      continue;
    if (auto *function = dyn_cast<Function>(value)) {
      auto *copy = cast<Function>(copies[value]);
      for (auto [argument, ofCopy] : zip(function->args(), copy->args()))
        copies[&argument] = &ofCopy;
      SmallVector<ReturnInst *> returns;
      CloneFunctionInto(copy, function, copies, CloneFunctionChangeType::DifferentModule, returns);
    } else {
      auto *variable = cast<GlobalVariable>(value);
      cast<GlobalVariable>(copies[value])->setInitializer(MapValue(variable->getInitializer(), copies));
    }
  }
  // Cloning leaves an empty list of compile units, of which readers of bitcode warn.
  if (NamedMDNode *units = part->getNamedMetadata("llvm.dbg.cu"); units && units->getNumOperands() == 0)
    part->eraseNamedMetadata(units);
  auto *root = cast<Function>(copies[&kernel]);
  root->setLinkage(GlobalValue::ExternalLinkage);
  root->setVisibility(GlobalValue::HiddenVisibility);
  return part;
}

Bitcode writeBitcode(const Module &module) {
  Bitcode code;
  raw_svector_ostream os(code);
  WriteBitcodeToFile(module, os);
  return code;
}

std::vector<Bitcode> takeKernels(Module &module) {
  std::vector<Bitcode> parts;
  for (GlobalValue *value : findKernels(module)) {
    auto *kernel = cast<Function>(value);
    std::unique_ptr<Module> part = copyPart(*kernel);
    const Bitcode unnamed = writeBitcode(*part);
    std::string name = "kernel_" + nameContent(StringRef(unnamed.data(), unnamed.size()));
    if (Function *same = module.getFunction(name)) {
      kernel->replaceAllUsesWith(same);
      kernel->deleteBody();
      kernel->eraseFromParent();
      continue;
    }
    part->getFunction("part.0")->setName(name);
    parts.push_back(writeBitcode(*part));
    kernel->deleteBody(); // of external linkage now
    kernel->setVisibility(GlobalValue::HiddenVisibility);
    kernel->setName(name);
  }
  return parts;
}

} // namespace distc
