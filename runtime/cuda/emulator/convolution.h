//===- convolution.h - Convolutions by their definition -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_CONVOLUTION_H
#define DRT_CUDA_EMULATOR_CONVOLUTION_H

#include "cuda/emulator/cudnn_descriptors.h"

#include <vector>

namespace drt::cuda::emulated {

/// A convolution of float32 and its gradients; sums are float64's.
struct Convolution {
  TensorDescription x, y;
  FilterDescription w;
  ConvolutionDescription how;

  /// Throws CUDA_ERROR_INVALID_VALUE where shapes do not fit, CUDA_ERROR_NOT_SUPPORTED where cuDNN has no such
  /// convolution.
  void check() const;
  /// Tensor cores' inputs, where the descriptor does not forbid them.
  bool usesTf32() const { return how.math != CUDNN_FMA_MATH; }

  // In the layouts of the descriptions.
  std::vector<double> forward(const float *image, const float *filter) const;
  std::vector<double> gradImage(const float *filter, const float *outputGrad) const;
  std::vector<double> gradFilter(const float *image, const float *outputGrad) const;

private:
  template <class Visit> void forEachPair(Visit visit) const;
};

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_CONVOLUTION_H
