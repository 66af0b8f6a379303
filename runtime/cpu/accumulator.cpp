//===- accumulator.cpp - A replica's gradient of several batches ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/accumulator.h"
#include "collectives/reduce.h"
#include "core/dtype.h"

#include <cmath>
#include <cstring>

namespace drt {
namespace {

// out = a + b; out may be a.
void add(const drt_accumulate_desc &desc, const void *a, const void *b, void *out) {
  const char *first = static_cast<const char *>(a), *second = static_cast<const char *>(b);
  reduce(static_cast<drt_dtype>(desc.dtype), out, {first, second - first, 2}, desc.count, 1);
}

// Values of a joined gradient; its indices come with scale 1.
void multiply(int32_t dtype, void *values, int64_t count, double scale) {
  if (scale != 1)
    reduce(static_cast<drt_dtype>(dtype), values, {static_cast<const char *>(values), 0, 1}, count,
           std::llround(1 / scale));
}

} // namespace

void Accumulator::keep(const drt_accumulate_desc &desc, const void *gradient) {
  const int64_t bytes = desc.count * dtypeSize(desc.dtype);
  const int64_t needed = desc.concat ? bytes * (batches_ + 1) : bytes;
  if (kept_.bytes() < needed) {
    Memory larger(needed);
    if (batches_ > 0)
      std::memcpy(larger.data(), kept_.data(), bytes * batches_);
    kept_ = std::move(larger);
  }
  if (batches_ == 0 || desc.concat)
    std::memcpy(kept_.data() + (desc.concat ? bytes * batches_ : 0), gradient, bytes);
  else
    add(desc, kept_.data(), gradient, kept_.data());
  ++batches_;
}

void Accumulator::take(const drt_accumulate_desc &desc, double scale, const void *gradient, void *out) {
  const int64_t bytes = desc.count * dtypeSize(desc.dtype);
  int64_t count = desc.count;
  if (desc.concat) {
    std::memcpy(out, kept_.data(), bytes * batches_);
    std::memcpy(static_cast<char *>(out) + bytes * batches_, gradient, bytes);
    count *= batches_ + 1;
  } else if (batches_ == 0) {
    std::memcpy(out, gradient, bytes);
  } else {
    add(desc, kept_.data(), gradient, out);
  }
  multiply(desc.dtype, out, count, scale);
  batches_ = 0;
}

} // namespace drt
