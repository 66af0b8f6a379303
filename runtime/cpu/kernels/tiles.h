//===- tiles.h - Tiles for the machine that the program runs on -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_TILES_H
#define DRT_CPU_KERNELS_TILES_H

#include "cpu/kernels/tile.h"

namespace drt {

/// Tiles of up to `rows` x exactly `columns`, for wide vectors.
struct TileKernels {
  int rows, columns, lanes;
  void (*prefetching)(const Tile &tile, int rows, Prefetch &errand);
  void (*packing)(const Tile &tile, int rows, Packing &errand);
  void (*finish)(Packing &errand);
  void (*transpose)(const float *const *from, int count, int64_t depth, float *to, int64_t pitch);
};

/// The widest that this machine has (AVX-512, AVX2 with FMA), or null: oneDNN serves the others.
const TileKernels *tileKernels();

/// All that this machine has, for tests: null at the end.
const TileKernels *const *allTileKernels();

} // namespace drt

#endif // DRT_CPU_KERNELS_TILES_H
