//===- packed_operand_test.cpp - Right operands that are packed once -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/packed_operand.h"

#include "core/memory.h"
#include "cpu/kernels/library_matmul.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/sgemm.h"
#include "random_tensor.h"

#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <limits>
#include <vector>

using namespace drt;

namespace {
/// op(b) of a product in a form, packed in several pieces as cores do.
struct Packing {
  Packing(PackedForm form, int64_t k, int64_t n, const float *b, bool transposed, int64_t pitch)
      : memory(drt_packed_bytes(k, n)), operand(memory.data(), k, n) {
    const int64_t parts = operand.parts(form), middle = parts / 2;
    for (Range range : {Range{middle, parts}, Range{0, middle}})
      if (!range.empty())
        operand.pack(form, b, transposed, pitch, memory.bytes(), range);
  }
  Memory memory;
  PackedOperand operand;
};

bool sameBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// A special element of b, or none.
struct Special {
  float value = 0;
  int64_t at = -1;
};
} // namespace

TEST_CASE("a packed operand gives the bits of one that each product packs", "[packed]") {
  if (!matrixUnits()) {
    WARN("this machine has no matrix units");
    return;
  }
  Random random(1);
  for (auto [m, n, k] :
       {std::array<int64_t, 3>{64, 512, 256}, {1, 1, 1}, {17, 48, 33}, {33, 70, 100}, {300, 33, 1600}, {48, 4200, 40}})
    for (bool transposeB : {false, true})
      for (Special special : {Special{}, Special{std::numeric_limits<float>::infinity(), n * k - 1},
                              Special{std::numeric_limits<float>::quiet_NaN(), n * k / 2}}) {
        INFO("m " << m << " n " << n << " k " << k << " tb " << transposeB << " at " << special.at);
        const GemmShape s = {m, n, k, false, transposeB, k, transposeB ? k : n, n, false};
        auto a = random.tensor<float>(2 * m * k), b = random.tensor<float>(k * n);
        if (special.at >= 0)
          b[static_cast<size_t>(special.at)] = special.value;
        const Packing packed(PackedForm::Split, k, n, b.data(), transposeB, s.ldb);
        std::vector<float> c(static_cast<size_t>(2 * m * n)), expected(c.size());
        const std::array<LeftOperand, 2> lefts = {{{a.data(), c.data()}, {a.data() + m * k, c.data() + m * n}}};
        splitMatmul(s, 0.5f, lefts, b.data(), &packed.operand);
        const std::array<LeftOperand, 2> same = {
            {{a.data(), expected.data()}, {a.data() + m * k, expected.data() + m * n}}};
        splitMatmul(s, 0.5f, same, b.data());
        CHECK(sameBits(c, expected));
      }
}

TEST_CASE("blocks that were copied before give the bits of those that a product copies", "[packed]") {
  if (!librarySgemm)
    return;
  Random random(2);
  for (auto [n, k] : {std::array<int64_t, 2>{256, 256}, {512, 600}, {768, 31}, {300, 257}, {16, 1000}}) {
    INFO("n " << n << " k " << k);
    const GemmShape s = {40, n, k, false, false, k, n, n, false};
    auto a = random.tensor<float>(s.m * k), b = random.tensor<float>(k * n);
    const Packing packed(PackedForm::Blocks, k, n, b.data(), false, n);
    REQUIRE(packed.operand.form() == PackedForm::Blocks);
    for (int64_t step = 0; step < k; ++step)
      for (int64_t column = 0; column < n; ++column) {
        const int64_t row = step % PackedOperand::blockSize, inBlock = column % PackedOperand::blockSize;
        REQUIRE(packed.operand.block(step, column)[row * packed.operand.blockPitch(column) + inBlock] ==
                b[static_cast<size_t>(step * n + column)]);
      }
    std::vector<float> c(static_cast<size_t>(s.m * n)), expected(c.size());
    blockSgemm(s, 0.5f, a.data(), b.data(), c.data(), &packed.operand);
    blockSgemm(s, 0.5f, a.data(), b.data(), expected.data(), nullptr);
    CHECK(sameBits(c, expected));
  }
}

TEST_CASE("what has no room is not packed, and what says so is multiplied as it lies", "[packed]") {
  Random random(3);
  const int64_t m = 64, n = 128, k = 128;
  auto a = random.tensor<float>(m * k), b = random.tensor<float>(k * n);
  std::vector<float> c(static_cast<size_t>(m * n)), expected(c.size());
  Memory memory(64);
  PackedOperand operand(memory.data(), k, n);
  operand.pack(PackedForm::Split, b.data(), false, n, memory.bytes(), {0, operand.parts(PackedForm::Split)});
  CHECK(operand.form() == PackedForm::AsItLies);
  const GemmShape s = {m, n, k, false, false, k, n, n, false};
  sgemm(s, 1.0f, a.data(), b.data(), c.data(), &operand);
  sgemm(s, 1.0f, a.data(), b.data(), expected.data());
  CHECK(sameBits(c, expected));
}

TEST_CASE("matmuls take a packed operand or leave it, in all of their ways", "[packed]") {
  Random random(4);
  for (int trial = 0; trial < 60; ++trial) {
    drt_matmul_desc d = {};
    d.dtype = DRT_F32;
    d.batch = 1, d.m = random.integer(1, 100), d.n = random.integer(1, 300), d.k = random.integer(1, 300);
    if (random.integer(0, 1)) // where rows collide
      d.n = 256 * random.integer(1, 2);
    d.transpose_a = random.integer(0, 3) == 0, d.transpose_b = random.integer(0, 1), d.has_bias = random.integer(0, 1);
    d.epilogue = random.integer(0, 3);
    INFO("m " << d.m << " n " << d.n << " k " << d.k << " ta " << d.transpose_a << " tb " << d.transpose_b
              << " epilogue " << d.epilogue);
    auto a = random.tensor<float>(2 * d.m * d.k), b = random.tensor<float>(d.k * d.n), bias = random.tensor<float>(d.n);
    const int64_t pitch = d.transpose_b ? d.k : d.n;
    const PackedForm form = PackedOperand::chooseForm(d.transpose_b != 0, pitch);
    const Packing packed(form, d.k, d.n, b.data(), d.transpose_b != 0, pitch);
    std::vector<float> c(static_cast<size_t>(d.m * d.n)), expected(c.size());
    PrimitiveCache cache(3);
    const Range rows = {d.m / 3, d.m};
    matmul(cache, 0, d, rows, a.data(), b.data(), bias.data(), c.data(), packed.memory.data());
    matmul(cache, 1, d, rows, a.data(), b.data(), bias.data(), expected.data());
    CHECK(sameBits(c, expected));
    if (d.transpose_a)
      continue;
    // Of two replicas, the columns of each.
    std::vector<float> both(static_cast<size_t>(2 * d.m * d.n)), bothExpected(both.size());
    for (int part : {0, 1}) {
      const Range columns = columnsOfShare(d.n, {part, 2});
      if (columns.empty())
        continue;
      const Packing own(form, d.k, columns.size(), b.data() + columns.begin * (d.transpose_b ? pitch : 1),
                        d.transpose_b != 0, pitch);
      const ReplicatedOperand lefts = {a.data(), d.m * d.k * 4, 2};
      PrimitiveCache joined(2);
      matmulJoined(joined, 0, d, {part, 2}, lefts, b.data(), bias.data(), both.data(), d.m * d.n * 4,
                   own.memory.data());
      matmulJoined(joined, 1, d, {part, 2}, lefts, b.data(), bias.data(), bothExpected.data(), d.m * d.n * 4);
    }
    CHECK(sameBits(both, bothExpected));
  }
}
