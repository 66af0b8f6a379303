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

/// A convolution and its gradients; sums are float64's, and so are operands, whatever their type is in memory.
struct Convolution {
  TensorDescription x, y;
  FilterDescription w;
  ConvolutionDescription how;

  /// Throws CUDA_ERROR_INVALID_VALUE where shapes do not fit, CUDA_ERROR_NOT_SUPPORTED where cuDNN has no such
  /// convolution.
  void check() const;
  /// Tensor cores' inputs, where the descriptor does not forbid them.
  bool usesTf32() const { return how.math != CUDNN_FMA_MATH && x.type == CUDNN_DATA_FLOAT; }

  // In the layouts of the descriptions.
  std::vector<double> forward(std::vector<double> image, std::vector<double> filter) const;
  std::vector<double> gradImage(std::vector<double> filter, std::vector<double> outputGrad) const;
  std::vector<double> gradFilter(std::vector<double> image, std::vector<double> outputGrad) const;

private:
  void round(std::vector<double> &operand) const;
  template <class Visit> void forEachPair(Visit visit) const;
};

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_CONVOLUTION_H
