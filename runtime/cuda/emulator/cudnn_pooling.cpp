//===- cudnn_pooling.cpp - The emulated cuDNN's pooling -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The size of the output is the caller's: a window that goes beyond the image, at any side, is what lies in the image.
// TensorFlow relies on it for its padding SAME, which is not symmetric.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/cudnn_descriptors.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace drt::cuda::emulated {
namespace {
struct Pooling {
  PoolingDescription how;
  TensorDescription x, y;

  bool isMaximum() const { return how.mode == CUDNN_POOLING_MAX || how.mode == CUDNN_POOLING_MAX_DETERMINISTIC; }

  void check() const {
    require(x.n == y.n && x.c == y.c, CUDA_ERROR_INVALID_VALUE, "input and output of different batch or channels");
    require(x.type == y.type, CUDA_ERROR_NOT_SUPPORTED, "the emulator pools into the input's type");
  }

  // visit(window's output element, offsets of the input's elements in it)
  template <class Visit> void forEachWindow(Visit visit) const {
    std::vector<size_t> inputs;
    for (int n = 0; n < y.n; ++n)
      for (int c = 0; c < y.c; ++c)
        for (int oh = 0; oh < y.h; ++oh)
          for (int ow = 0; ow < y.w; ++ow) {
            inputs.clear();
            int top = oh * how.strideH - how.padH, left = ow * how.strideW - how.padW;
            for (int h = std::max(0, top); h < std::min(x.h, top + how.h); ++h)
              for (int w = std::max(0, left); w < std::min(x.w, left + how.w); ++w)
                inputs.push_back(static_cast<size_t>(x.at(n, c, h, w)));
            visit(static_cast<size_t>(y.at(n, c, oh, ow)), inputs);
          }
  }

  size_t divisor(size_t inImage) const {
    return how.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? size_t(how.h) * size_t(how.w) : inImage;
  }

  double pooled(const std::vector<double> &input, const std::vector<size_t> &window) const {
    if (isMaximum()) {
      double largest = std::numeric_limits<double>::lowest();
      for (size_t at : window)
        if (input[at] > largest || (input[at] != input[at] && how.nan == CUDNN_PROPAGATE_NAN))
          largest = input[at];
      return largest;
    }
    double sum = 0;
    for (size_t at : window)
      sum += input[at];
    return window.empty() ? 0 : sum / static_cast<double>(divisor(window.size()));
  }

  // Of equal largest elements one gets all; the manual does not say which. The deterministic mode's is the first here.
  void giveToLargest(const std::vector<double> &input, double largest, double gradient,
                     const std::vector<size_t> &window, std::vector<double> &sums) const {
    auto isLargest = [&](size_t at) { return input[at] == largest; };
    auto first = std::find_if(window.begin(), window.end(), isLargest);
    if (first == window.end())
      return;
    size_t chosen = how.mode == CUDNN_POOLING_MAX ? *std::find_if(window.rbegin(), window.rend(), isLargest) : *first;
    sums[chosen] += gradient;
  }
};

void requireScalars(const void *alpha, const void *beta, cudnnDataType_t type) {
  require(scalar(alpha, type) == 1 && scalar(beta, type) == 0, CUDA_ERROR_NOT_SUPPORTED,
          "the emulator pools with alpha 1 and beta 0");
}
} // namespace

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t how, const void *alpha,
                                  cudnnTensorDescriptor_t x, const void *input, const void *beta,
                                  cudnnTensorDescriptor_t y, void *output) {
  Pooling made = {described<PoolingDescription>(how), tensor(x), tensor(y)};
  made.check();
  requireScalars(alpha, beta, made.x.type);
  require(input && output, CUDA_ERROR_INVALID_VALUE, "a tensor without data");
  enqueue(streamOf(handle), "cudnnPoolingForward", [=](const Memory &memory, int device) {
    const std::vector<double> in = valuesOf(made.x, memory, device, input);
    Elements out = elementsOf(made.y, memory, device, output);
    made.forEachWindow(
        [&](size_t at, const std::vector<size_t> &window) { out.set(at, out.computed(made.pooled(in, window))); });
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t how, const void *alpha,
                                   cudnnTensorDescriptor_t y, const void *output, cudnnTensorDescriptor_t dy,
                                   const void *outputGrad, cudnnTensorDescriptor_t x, const void *input,
                                   const void *beta, cudnnTensorDescriptor_t dx, void *inputGrad) {
  Pooling made = {described<PoolingDescription>(how), tensor(x), tensor(y)};
  made.check();
  requireScalars(alpha, beta, made.x.type);
  require(input && output && outputGrad && inputGrad, CUDA_ERROR_INVALID_VALUE, "a tensor without data");
  require(tensor(dy).sameShape(made.y) && tensor(dx).sameShape(made.x), CUDA_ERROR_INVALID_VALUE,
          "gradients of other shapes than their tensors");
  for (auto [one, other] : {std::pair(tensor(dy), made.y), std::pair(tensor(dx), made.x)})
    require(one.nStride == other.nStride && one.cStride == other.cStride && one.hStride == other.hStride &&
                one.wStride == other.wStride,
            CUDA_ERROR_NOT_SUPPORTED, "gradients must lie as their tensors do");
  enqueue(streamOf(handle), "cudnnPoolingBackward", [=](const Memory &memory, int device) {
    const std::vector<double> in = valuesOf(made.x, memory, device, input);
    const std::vector<double> out = valuesOf(made.y, memory, device, output);
    const std::vector<double> grad = valuesOf(made.y, memory, device, outputGrad);
    Elements result = elementsOf(made.x, memory, device, inputGrad);
    std::vector<double> sums(made.x.extent());
    made.forEachWindow([&](size_t at, const std::vector<size_t> &window) {
      if (made.isMaximum())
        return made.giveToLargest(in, out[at], grad[at], window, sums);
      for (size_t element : window)
        sums[element] += grad[at] / static_cast<double>(made.divisor(window.size()));
    });
    for (size_t i = 0; i < sums.size(); ++i)
      result.set(i, sums[i]);
  });
  return CUDNN_STATUS_SUCCESS;
}

} // namespace drt::cuda::emulated
