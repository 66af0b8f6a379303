//===- PhiloxWriter.h - TensorFlow's random numbers in arith and math -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Writes what runtime/random computes: Philox 4x32-10, and from the four words of
// a position the numbers of one group of a distribution.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_PHILOXWRITER_H
#define DISTC_PASSES_LOWER_GPU_PHILOXWRITER_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "runtime/include/drt/drt.h"
#include <array>

namespace distc::philox {

enum class Distribution : int32_t {
  Uniform = DRT_RANDOM_UNIFORM,
  Normal = DRT_RANDOM_NORMAL,
  TruncatedNormal = DRT_RANDOM_TRUNCATED_NORMAL,
  UniformInt = DRT_RANDOM_UNIFORM_INT
};

/// A position in the stream of a key.
struct Generator {
  mlir::Value low, high;  // i64: the counter
  mlir::Value key0, key1; // i32
};

class PhiloxWriter {
public:
  using Value = mlir::Value;
  using Words = std::array<Value, 4>;
  using Group = llvm::SmallVector<Value, 4>;

  explicit PhiloxWriter(mlir::ImplicitLocOpBuilder &builder) : b(builder) {}

  /// From a state of drt_random_state (memref<7xi32>).
  Generator load(Value state);
  /// Writes the counter back.
  void store(Generator generator, Value state);
  /// A stateless operation's, from its seed (memref<2xi64>).
  Generator scramble(Value seed);
  /// From a key and the two words of a counter (memref<3xi64>).
  Generator loadKeyed(Value words);
  /// Further on by `positions` (i64, taken as unsigned).
  Generator skip(Generator from, Value positions);
  Words draw(Generator generator);

  /// Elements that four words give: 4 of 32 bits, 2 of 64.
  static int64_t getGroupSize(mlir::Type element) { return 128 / element.getIntOrFloatBitWidth(); }
  /// Positions from one group to the next.
  static int64_t getGroupPositions(Distribution distribution, mlir::Type element) {
    return distribution == Distribution::TruncatedNormal ? getGroupSize(element) * 64 : 1;
  }
  /// The group of `element`s whose first position `generator` is. `low`, `high`: bounds of integers, else null, as
  /// where all integers may come.
  Group drawGroup(Generator generator, Distribution distribution, mlir::Type element, Value low, Value high);

private:
  Value number(mlir::Type type, int64_t value);
  Value join(Value lower, Value upper);
  Group uniform(const Words &words, mlir::Type element);
  /// Box-Muller, from all four words.
  Group normal(const Words &words, mlir::Type element);
  Group integers(const Words &words, mlir::Type element, Value low, Value high);
  Group truncatedNormal(Generator generator, mlir::Type element);

  mlir::ImplicitLocOpBuilder &b;
};

} // namespace distc::philox

#endif // DISTC_PASSES_LOWER_GPU_PHILOXWRITER_H
