//===- Target.cpp - The machine that code is generated for ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/program/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

namespace distc {

static constexpr llvm::StringLiteral kHostTriple = "x86_64-unknown-linux-gnu";
static constexpr llvm::StringLiteral kDeviceTriple = "nvptx64-nvidia-cuda";
static constexpr llvm::StringLiteral kDefaultCPU = "x86-64-v3", kDefaultChip = "sm_90";

static const llvm::Target *findTarget(llvm::StringRef triple) {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialized;
  std::string error;
  return llvm::TargetRegistry::lookupTarget(llvm::Triple(triple), error);
}

static std::unique_ptr<llvm::TargetMachine> createMachine(llvm::StringRef triple, llvm::StringRef cpu,
                                                          llvm::StringRef features) {
  const llvm::Target *target = findTarget(triple);
  if (!target)
    return nullptr;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      llvm::Triple(triple), cpu, features, {}, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

std::unique_ptr<llvm::TargetMachine> createHostMachine(const Target &target) {
  return createMachine(kHostTriple, target.cpu, target.features);
}

std::unique_ptr<llvm::TargetMachine> createDeviceMachine(llvm::StringRef chip) {
  // The PTX version is the first that has the chip.
  return createMachine(kDeviceTriple, chip, "");
}

static bool isValid(llvm::StringRef triple, llvm::StringRef cpu) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(triple, "", "");
  return machine && machine->getMCSubtargetInfo()->isCPUStringValid(cpu);
}

static llvm::Error parseCPU(Target &target, llvm::StringRef cpu) {
  target.cpu = kDefaultCPU;
  if (cpu.empty())
    return llvm::Error::success();
  if (cpu == "native") {
    target.cpu = llvm::sys::getHostCPUName().str();
    llvm::SmallVector<std::string> features;
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      features.push_back((feature.second ? "+" : "-") + feature.first().str());
    llvm::sort(features);
    target.features = llvm::join(features, ",");
    // Kernels stream through memory: whole vectors pay where the machine has them.
    if (llvm::is_contained(features, "+avx512f"))
      target.features += ",-prefer-256-bit";
    return llvm::Error::success();
  }
  target.cpu = cpu.str();
  // A name of a processor of 32 bits is known, too.
  llvm::SmallVector<llvm::StringRef> of64Bits;
  llvm::X86::fillValidCPUArchList(of64Bits, /*Only64Bit=*/true);
  if (!isValid(kHostTriple, cpu) || !llvm::is_contained(of64Bits, cpu))
    return llvm::createStringError("unknown CPU '" + cpu + "' in target '" + target.name +
                                   "': name one that LLVM knows (x86-64-v3, znver4, ...) or cpu:native");
  return llvm::Error::success();
}

// 90 of "sm_90" and "sm_90a".
static unsigned getChipNumber(llvm::StringRef chip) {
  unsigned number = 0;
  chip.consume_front("sm_");
  chip.consumeInteger(10, number);
  return number;
}

bool Target::hasMatrixUnits() const {
  return kernels == Kernels::Emulated || (kernels == Kernels::Cuda && getChipNumber(chips.front()) >= 80);
}

static llvm::Error parseChips(Target &target, llvm::StringRef chips) {
  target.cpu = kDefaultCPU;
  if (chips == "emulated") {
    target.kernels = Target::Kernels::Emulated;
    return llvm::Error::success();
  }
  target.kernels = Target::Kernels::Cuda;
  for (llvm::StringRef chip : llvm::split(chips.empty() ? llvm::StringRef(kDefaultChip) : chips, ',')) {
    if (!chip.starts_with("sm_") || !isValid(kDeviceTriple, chip))
      return llvm::createStringError("unknown chip '" + chip + "' in target '" + target.name +
                                     "': name chips that LLVM knows (sm_80, sm_90, sm_100, ...), or cuda:emulated");
    if (!llvm::is_contained(target.chips, chip))
      target.chips.push_back(chip.str());
  }
  llvm::stable_sort(target.chips,
                    [](llvm::StringRef a, llvm::StringRef b) { return getChipNumber(a) < getChipNumber(b); });
  return llvm::Error::success();
}

llvm::Expected<Target> Target::parse(llvm::StringRef text) {
  Target target;
  target.name = text.str();
  auto [kind, machine] = text.split(':');
  if (kind != "cpu" && kind != "cuda")
    return llvm::createStringError(
        "unknown target '" + text +
        "': targets are cpu (x86-64-v3), cpu:native, cpu:NAME, cuda (sm_90), cuda:CHIP,... and "
        "cuda:emulated");
  if (text.ends_with(":"))
    return llvm::createStringError("target '" + text + "' names no machine behind the colon");
  if (llvm::Error error = kind == "cpu" ? parseCPU(target, machine) : parseChips(target, machine))
    return error;
  return target;
}

} // namespace distc
