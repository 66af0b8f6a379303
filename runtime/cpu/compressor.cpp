//===- compressor.cpp - Gradients made small for their way ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/compressor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace drt {
namespace {

constexpr float largestHalf = 65504;

struct F16 {
  static uint16_t narrow(float value) {
    // Not a number stays one; what is too large must not become infinite, or nothing could be fed back.
    const _Float16 half = static_cast<_Float16>(value > largestHalf    ? largestHalf
                                                : value < -largestHalf ? -largestHalf
                                                                       : value);
    uint16_t bits;
    std::memcpy(&bits, &half, sizeof bits);
    return bits;
  }
  static float widen(uint16_t bits) {
    _Float16 half;
    std::memcpy(&half, &bits, sizeof half);
    return static_cast<float>(half);
  }
};

struct BF16 {
  static uint16_t narrow(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    // Not a number, or rounded up to infinity.
    const bool special = (rounded & 0x7f80) == 0x7f80;
    return static_cast<uint16_t>(!special ? rounded : value != value ? (bits >> 16 | 0x40) : bits >> 16);
  }
  static float widen(uint16_t bits) {
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
};

template <class Half> class HalfCompressor final : public Compressor {
public:
  HalfCompressor(const drt_bucket &bucket, int32_t localReplicas, bool feedback) : bucket_(bucket) {
    if (feedback)
      errors_.assign(localReplicas, std::vector<float>(bucket.count));
  }

  void encode(int32_t replica, float *contribution, char *wire) override {
    uint16_t *halves = reinterpret_cast<uint16_t *>(wire);
    for (int32_t m = 0; m < bucket_.num_members; ++m) {
      const int64_t begin = bucket_.members[m].offset, end = begin + bucket_.members[m].count;
      if (errors_.empty())
        cast(contribution, begin, end);
      else
        castKeeping(contribution, errors_[replica].data(), begin, end);
      if (halves)
        for (int64_t i = begin; i < end; ++i)
          halves[i] = Half::narrow(contribution[i]);
    }
  }

  int64_t wireBytes() const override { return bucket_.count * static_cast<int64_t>(sizeof(uint16_t)); }

  void addTo(const char *wire, float *sum) const override {
    const uint16_t *halves = reinterpret_cast<const uint16_t *>(wire);
    for (int32_t m = 0; m < bucket_.num_members; ++m) {
      const int64_t begin = bucket_.members[m].offset, end = begin + bucket_.members[m].count;
      for (int64_t i = begin; i < end; ++i)
        sum[i] += Half::widen(halves[i]);
    }
  }

  void roundResult(float *values, int64_t count) const override { cast(values, 0, count); }

private:
  static void cast(float *values, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      values[i] = Half::widen(Half::narrow(values[i]));
  }

  static void castKeeping(float *values, float *errors, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float whole = values[i] + errors[i];
      values[i] = Half::widen(Half::narrow(whole));
      const float left = whole - values[i];
      errors[i] = std::abs(left) <= std::abs(whole) ? left : 0; // what was not finite is not kept
    }
  }

  const drt_bucket &bucket_;
  std::vector<std::vector<float>> errors_; // a replica; empty without feedback
};

// On the wire: the indices in the bucket, then the values, of each member `kept` of them.
class TopKCompressor final : public Compressor {
public:
  TopKCompressor(const drt_bucket &bucket, int32_t localReplicas) : bucket_(bucket), replicas_(localReplicas) {
    int64_t largest = 0;
    for (int32_t m = 0; m < bucket.num_members; ++m) {
      kept_ += bucket.members[m].kept;
      largest = std::max(largest, bucket.members[m].count);
    }
    for (PerReplica &replica : replicas_) {
      replica.errors.resize(bucket.count);
      replica.magnitudes.resize(largest);
    }
  }

  void encode(int32_t replica, float *contribution, char *wire) override {
    int32_t *indices = reinterpret_cast<int32_t *>(wire);
    float *values = reinterpret_cast<float *>(wire) + (wire ? kept_ : 0);
    for (int32_t m = 0; m < bucket_.num_members; ++m) {
      encodeMember(bucket_.members[m], replicas_[replica], contribution, indices, values);
      if (wire) {
        indices += bucket_.members[m].kept;
        values += bucket_.members[m].kept;
      }
    }
  }

  int64_t wireBytes() const override { return kept_ * static_cast<int64_t>(sizeof(int32_t) + sizeof(float)); }

  void addTo(const char *wire, float *sum) const override {
    const int32_t *indices = reinterpret_cast<const int32_t *>(wire);
    const float *values = reinterpret_cast<const float *>(wire) + kept_;
    for (int64_t i = 0; i < kept_; ++i)
      sum[indices[i]] += values[i];
  }

private:
  struct PerReplica {
    std::vector<float> errors, magnitudes;
  };

  // Not a number counts as larger than everything: it must show in the result.
  static float magnitudeOf(float value) { return value == value ? std::abs(value) : HUGE_VALF; }

  void encodeMember(const drt_member &member, PerReplica &own, float *contribution, int32_t *indices, float *values) {
    float *whole = contribution + member.offset, *errors = own.errors.data() + member.offset;
    float *magnitudes = own.magnitudes.data();
    for (int64_t i = 0; i < member.count; ++i) {
      whole[i] += errors[i];
      magnitudes[i] = magnitudeOf(whole[i]);
    }
    if (member.kept == 0)
      return;
    std::nth_element(magnitudes, magnitudes + (member.kept - 1), magnitudes + member.count, std::greater<float>());
    const float least = magnitudes[member.kept - 1];
    int64_t ties = member.kept;
    for (int64_t i = 0; i < member.count; ++i)
      ties -= magnitudeOf(whole[i]) > least;
    int64_t sent = 0;
    for (int64_t i = 0; i < member.count; ++i) {
      const float magnitude = magnitudeOf(whole[i]);
      const bool keep = magnitude > least || (magnitude == least && ties-- > 0);
      errors[i] = keep ? 0 : whole[i];
      whole[i] = keep ? whole[i] : 0;
      if (keep && indices) {
        indices[sent] = static_cast<int32_t>(member.offset + i);
        values[sent++] = whole[i];
      }
    }
  }

  const drt_bucket &bucket_;
  std::vector<PerReplica> replicas_;
  int64_t kept_ = 0;
};

} // namespace

int32_t halfOf(int32_t compressor) {
  switch (compressor) {
  case DRT_COMPRESS_F16:
  case DRT_COMPRESS_F16_EF:
    return DRT_F16;
  case DRT_COMPRESS_BF16:
  case DRT_COMPRESS_BF16_EF:
    return DRT_BF16;
  default:
    return 0;
  }
}

std::unique_ptr<Compressor> Compressor::make(const drt_bucket &bucket, int32_t localReplicas) {
  switch (bucket.exchange->compressor) {
  case DRT_COMPRESS_F16:
    return std::make_unique<HalfCompressor<F16>>(bucket, localReplicas, false);
  case DRT_COMPRESS_F16_EF:
    return std::make_unique<HalfCompressor<F16>>(bucket, localReplicas, true);
  case DRT_COMPRESS_BF16:
    return std::make_unique<HalfCompressor<BF16>>(bucket, localReplicas, false);
  case DRT_COMPRESS_BF16_EF:
    return std::make_unique<HalfCompressor<BF16>>(bucket, localReplicas, true);
  case DRT_COMPRESS_TOP_K:
    return std::make_unique<TopKCompressor>(bucket, localReplicas);
  default:
    return nullptr;
  }
}

void toHalf(drt_dtype half, const float *in, uint16_t *out, int64_t count) {
  if (half == DRT_F16)
    std::transform(in, in + count, out, F16::narrow);
  else
    std::transform(in, in + count, out, BF16::narrow);
}

void fromHalf(drt_dtype half, const uint16_t *in, float *out, int64_t count) {
  if (half == DRT_F16)
    std::transform(in, in + count, out, F16::widen);
  else
    std::transform(in, in + count, out, BF16::widen);
}

} // namespace drt
