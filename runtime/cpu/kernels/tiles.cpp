//===- tiles.cpp - Tiles for the machine that the program runs on -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/tiles.h"

using namespace drt;

// The runtime is compiled for every x86-64 machine, these functions for wide ones. Not by
// clones that the loader chooses: sanitizers instrument the choosing functions, which run
// before their own start-up.
#ifdef __x86_64__
namespace {
// 24 accumulators, two vectors of the right operand and a factor, of 32 registers.
template <int rows, bool packedLeft, class Errand>
[[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prfchw")]] void tile512(const Tile &tile, Errand &errand) {
  multiplyTile<16, rows, packedLeft>(tile, errand);
}
[[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prfchw")]] void
transpose512(const float *const *from, int count, int64_t depth, float *to, int64_t pitch) {
  transposeRows<16>(from, count, depth, to, pitch);
}
[[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,prfchw")]] void finish512(Packing &errand) {
  errand.finish<16>();
}
struct Wide512 {
  static constexpr int rows = 12;
  template <int rows, class Errand> static void run(const Tile &tile, Errand &errand) {
    tile.leftPitch == 0 ? tile512<rows, true>(tile, errand) : tile512<rows, false>(tile, errand);
  }
};

// 12 accumulators of 16 registers.
template <int rows, bool packedLeft, class Errand>
[[gnu::target("avx2,fma,prfchw")]] void tile256(const Tile &tile, Errand &errand) {
  multiplyTile<8, rows, packedLeft>(tile, errand);
}
[[gnu::target("avx2,fma,prfchw")]] void transpose256(const float *const *from, int count, int64_t depth, float *to,
                                                     int64_t pitch) {
  transposeRows<8>(from, count, depth, to, pitch);
}
[[gnu::target("avx2,fma,prfchw")]] void finish256(Packing &errand) { errand.finish<8>(); }
struct Wide256 {
  static constexpr int rows = 6;
  template <int rows, class Errand> static void run(const Tile &tile, Errand &errand) {
    tile.leftPitch == 0 ? tile256<rows, true>(tile, errand) : tile256<rows, false>(tile, errand);
  }
};

template <class Machine, class Errand, int rows = Machine::rows>
void dispatch(const Tile &tile, int wanted, Errand &errand) {
  if (wanted == rows)
    return Machine::template run<rows>(tile, errand);
  if constexpr (rows > 1)
    dispatch<Machine, Errand, rows - 1>(tile, wanted, errand);
}

constexpr TileKernels kernels512 = {
    Wide512::rows, 32, 16, dispatch<Wide512, Prefetch>, dispatch<Wide512, Packing>, finish512, transpose512};
constexpr TileKernels kernels256 = {
    Wide256::rows, 16, 8, dispatch<Wide256, Prefetch>, dispatch<Wide256, Packing>, finish256, transpose256};
} // namespace

const TileKernels *const *drt::allTileKernels() {
  static const TileKernels *const both[] = {&kernels512, &kernels256, nullptr}, *const none[] = {nullptr};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return both;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? both + 1 : none;
}
#else
const TileKernels *const *drt::allTileKernels() {
  static const TileKernels *const none[] = {nullptr};
  return none;
}
#endif

const TileKernels *drt::tileKernels() {
  static const TileKernels *const widest = *allTileKernels();
  return widest;
}
