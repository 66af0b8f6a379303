//===- fractional_pools.cpp - drt.h's routines for pools of windows of several sizes --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "drt/drt.h"

#include <algorithm>
#include <vector>

namespace {

/// What drt.h says of `p`, and where windows are.
struct Windows {
  int64_t images, rows, columns, channels, windowRows, windowColumns;
  bool overlapping;
  const int64_t *rowBegins, *columnBegins;

  Windows(const int64_t *p, const void *rowBegins, const void *columnBegins)
      : images(p[1]), rows(p[2]), columns(p[3]), channels(p[4]), windowRows(p[5]), windowColumns(p[6]),
        overlapping(p[7] != 0), rowBegins(static_cast<const int64_t *>(rowBegins)),
        columnBegins(static_cast<const int64_t *>(columnBegins)) {}

  struct Range {
    int64_t begin, end;
  };
  /// Of a window of an axis; whatever the sequence says, of the image.
  Range rangeOf(const int64_t *begins, int64_t window, int64_t size) const {
    const int64_t begin = std::clamp<int64_t>(begins[window], 0, size);
    return {begin, std::clamp<int64_t>(begins[window + 1] + overlapping, begin, size)};
  }
  /// Calls `visit` with the number of a result and the numbers of the window's pixels, in order.
  template <typename Visit> void forEach(Visit visit) const {
    std::vector<int64_t> pixels;
    for (int64_t image = 0, result = 0; image < images; ++image)
      for (int64_t windowRow = 0; windowRow < windowRows; ++windowRow)
        for (int64_t windowColumn = 0; windowColumn < windowColumns; ++windowColumn, ++result) {
          const Range down = rangeOf(rowBegins, windowRow, rows), across = rangeOf(columnBegins, windowColumn, columns);
          pixels.clear();
          for (int64_t row = down.begin; row < down.end; ++row)
            for (int64_t column = across.begin; column < across.end; ++column)
              pixels.push_back((image * rows + row) * columns + column);
          if (!pixels.empty())
            visit(result, pixels);
        }
  }
};

template <typename T> void pool(const int64_t *p, void *const *tensors, bool isMax) {
  const Windows windows(p, tensors[1], tensors[2]);
  const T *images = static_cast<const T *>(tensors[0]);
  T *results = static_cast<T *>(tensors[3]);
  const int64_t channels = windows.channels;
  std::fill_n(results, windows.images * windows.windowRows * windows.windowColumns * channels, T(0));
  windows.forEach([&](int64_t result, const std::vector<int64_t> &pixels) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      T found = images[pixels[0] * channels + channel];
      for (size_t i = 1; i < pixels.size(); ++i) {
        const T next = images[pixels[i] * channels + channel];
        found = isMax ? std::max(found, next) : found + next;
      }
      results[result * channels + channel] = isMax ? found : found / static_cast<T>(pixels.size());
    }
  });
}

template <typename T> void averageGradient(const int64_t *p, void *const *tensors) {
  const Windows windows(p, tensors[1], tensors[2]);
  const T *gradient = static_cast<const T *>(tensors[0]);
  T *images = static_cast<T *>(tensors[3]);
  const int64_t channels = windows.channels, count = windows.images * windows.rows * windows.columns * channels;
  std::vector<double> sums(static_cast<size_t>(count), 0.0);
  windows.forEach([&](int64_t result, const std::vector<int64_t> &pixels) {
    for (int64_t pixel : pixels)
      for (int64_t channel = 0; channel < channels; ++channel)
        sums[pixel * channels + channel] +=
            static_cast<double>(gradient[result * channels + channel]) / static_cast<double>(pixels.size());
  });
  std::transform(sums.begin(), sums.end(), images, [](double sum) { return static_cast<T>(sum); });
}

template <typename T> void maximumGradient(const int64_t *p, void *const *tensors) {
  const Windows windows(p, tensors[2], tensors[3]);
  const T *images = static_cast<const T *>(tensors[0]), *gradient = static_cast<const T *>(tensors[1]);
  T *results = static_cast<T *>(tensors[4]);
  const int64_t channels = windows.channels;
  std::fill_n(results, windows.images * windows.rows * windows.columns * channels, T(0));
  windows.forEach([&](int64_t result, const std::vector<int64_t> &pixels) {
    for (int64_t channel = 0; channel < channels; ++channel) {
      int64_t largest = pixels[0] * channels + channel;
      for (int64_t pixel : pixels)
        if (images[largest] < images[pixel * channels + channel])
          largest = pixel * channels + channel;
      results[largest] += gradient[result * channels + channel];
    }
  });
}

} // namespace

void drt_routine_fractional_max(drt_replica *, const int64_t *p, void *const *tensors) {
  p[0] == DRT_F32 ? pool<float>(p, tensors, true) : pool<double>(p, tensors, true);
}

void drt_routine_fractional_avg(drt_replica *, const int64_t *p, void *const *tensors) {
  p[0] == DRT_F32 ? pool<float>(p, tensors, false) : pool<double>(p, tensors, false);
}

void drt_routine_fractional_avg_grad(drt_replica *, const int64_t *p, void *const *tensors) {
  p[0] == DRT_F32 ? averageGradient<float>(p, tensors) : averageGradient<double>(p, tensors);
}

void drt_routine_fractional_max_pool_grad(drt_replica *, const int64_t *p, void *const *tensors) {
  p[0] == DRT_F32 ? maximumGradient<float>(p, tensors) : maximumGradient<double>(p, tensors);
}
