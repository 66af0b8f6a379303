//===- Target.h - The machine that code is generated for --------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_TARGET_H
#define DISTC_PASSES_LOWER_PROGRAM_TARGET_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>
#include <string>

namespace distc {

/// What --target says. Entries are code of the CPU; kernels are too, or are code of NVIDIA's GPUs.
struct Target {
  enum class Kernels {
    Host,     // kernels are functions that the entries call
    Cuda,     // kernels run on the chips
    Emulated, // CUDA's plan with kernels of the host, for the emulated driver
  };

  std::string name;     // as --target says it
  std::string cpu;      // LLVM's name: "x86-64-v3", "sapphirerapids"
  std::string features; // "+avx512f,..."
  Kernels kernels = Kernels::Host;
  /// Of Kernels::Cuda: "sm_90"; each once, by rising number.
  llvm::SmallVector<std::string> chips;

  /// "cpu": x86-64-v3, runs on any server since 2015. "cpu:native": this machine. "cpu:NAME": LLVM's name of a CPU.
  /// "cuda": sm_90. "cuda:sm_80,sm_90": images for each. "cuda:emulated". The CPU of the last three is that of "cpu".
  /// Fails with a message that lists what there is.
  static llvm::Expected<Target> parse(llvm::StringRef text);

  /// Whether a replica is a device with memory of its own.
  bool isDevice() const { return kernels != Kernels::Host; }
  /// Whether all chips have matrix units for bfloat16, which are there since sm_80; the emulated one has.
  bool hasMatrixUnits() const;
};

/// Generates code of the CPU; null where this LLVM has none.
std::unique_ptr<llvm::TargetMachine> createHostMachine(const Target &target);
/// Generates PTX; null where this LLVM has none.
std::unique_ptr<llvm::TargetMachine> createDeviceMachine(llvm::StringRef chip);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_TARGET_H
