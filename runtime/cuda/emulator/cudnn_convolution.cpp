//===- cudnn_convolution.cpp - The emulated cuDNN's convolutions ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Of the algorithms each pass has the two that the manual lists for NHWC. The heuristic offers one first that is not
// supported, and among the gradients' one that is not deterministic before the one that is, as the library's may; and
// for a convolution one that does no bias and ReLU with it.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/convolution.h"

#include <cstring>

namespace drt::cuda::emulated {
namespace {
Convolution convolution(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t how,
                        cudnnTensorDescriptor_t y) {
  Convolution made = {tensor(x), tensor(y), described<FilterDescription>(w), described<ConvolutionDescription>(how)};
  made.check();
  return made;
}

// The second algorithm's; the first needs none.
size_t workspaceOf(int algorithm) {
  require(algorithm == 0 || algorithm == 1, CUDA_ERROR_NOT_SUPPORTED, "an algorithm that has no NHWC");
  return algorithm == 0 ? 0 : 8192;
}

// `deterministic`: that algorithm 0 is; algorithm 1 is anyway.
template <class Performance>
cudnnStatus_t offer(int unsupported, bool deterministic, const ConvolutionDescription &how, int requested,
                    int *returned, Performance *results) {
  require(requested > 0 && returned && results, CUDA_ERROR_INVALID_VALUE, "no place for an algorithm");
  int algorithms[] = {unsupported, 0, 1};
  *returned = std::min(requested, 3);
  for (int i = 0; i < *returned; ++i) {
    Performance &result = results[i] = {};
    result.algo = static_cast<decltype(result.algo)>(algorithms[i]);
    result.status = i == 0 ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
    result.time = -1;
    result.memory = i == 0 ? 0 : workspaceOf(algorithms[i]);
    result.determinism = i == 1 && !deterministic ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
    result.mathType = how.math;
  }
  return CUDNN_STATUS_SUCCESS;
}

// result = alpha * computed + beta * result.
void blend(const std::vector<double> &computed, double alpha, double beta, Elements result) {
  for (size_t i = 0; i < computed.size(); ++i) {
    const double value = result.computed(alpha * computed[i]);
    result.set(i, beta == 0 ? value : result.computed(value + beta * result[i]));
  }
}

struct Workspace {
  void *address;
  size_t bytes;

  Workspace(void *address, size_t given, int algorithm) : address(address), bytes(workspaceOf(algorithm)) {
    require(given >= bytes && (bytes == 0 || address), CUDA_ERROR_INVALID_VALUE, "the algorithm needs more workspace");
  }
  // Its contents are the library's while it runs.
  void use(const Memory &memory, int device) const {
    if (bytes > 0)
      std::memset(memory.resolve(device, reinterpret_cast<CUdeviceptr>(address), bytes), 0xff, bytes);
  }
};

void requireData(std::initializer_list<const void *> pointers) {
  for (const void *pointer : pointers)
    require(pointer != nullptr, CUDA_ERROR_INVALID_VALUE, "a tensor without data");
}
} // namespace

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t how,
                                                     cudnnTensorDescriptor_t y, int requested, int *returned,
                                                     cudnnConvolutionFwdAlgoPerf_t *results) {
  return offer(CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, true, convolution(x, w, how, y).how, requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t how,
                                                          cudnnTensorDescriptor_t x, int requested, int *returned,
                                                          cudnnConvolutionBwdDataAlgoPerf_t *results) {
  return offer(CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, false, convolution(x, w, how, y).how, requested, returned,
               results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t how,
                                                            cudnnFilterDescriptor_t w, int requested, int *returned,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t *results) {
  return offer(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD, false, convolution(x, w, how, y).how, requested, returned,
               results);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t how,
                                                      cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algorithm,
                                                      size_t *bytes) {
  convolution(x, w, how, y);
  *bytes = workspaceOf(algorithm);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t y, cudnnConvolutionDescriptor_t how,
                                                           cudnnTensorDescriptor_t x,
                                                           cudnnConvolutionBwdDataAlgo_t algorithm, size_t *bytes) {
  convolution(x, w, how, y);
  *bytes = workspaceOf(algorithm);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, cudnnTensorDescriptor_t x,
                                                             cudnnTensorDescriptor_t y,
                                                             cudnnConvolutionDescriptor_t how,
                                                             cudnnFilterDescriptor_t w,
                                                             cudnnConvolutionBwdFilterAlgo_t algorithm, size_t *bytes) {
  convolution(x, w, how, y);
  *bytes = workspaceOf(algorithm);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x,
                                      const void *image, cudnnFilterDescriptor_t w, const void *filter,
                                      cudnnConvolutionDescriptor_t how, cudnnConvolutionFwdAlgo_t algorithm,
                                      void *workspace, size_t workspaceBytes, const void *beta,
                                      cudnnTensorDescriptor_t y, void *output) {
  Convolution made = convolution(x, w, how, y);
  requireData({image, filter, output});
  Workspace space(workspace, workspaceBytes, algorithm);
  enqueue(streamOf(handle), "cudnnConvolutionForward",
          [=, a = scalar(alpha, made.x.type), b = scalar(beta, made.x.type)](const Memory &memory, int device) {
            space.use(memory, device);
            blend(made.forward(valuesOf(made.x, memory, device, image), valuesOf(made.w, memory, device, filter)), a, b,
                  elementsOf(made.y, memory, device, output));
          });
  return CUDNN_STATUS_SUCCESS;
}

// output = activation(alpha1 * convolution + alpha2 * z + bias)
cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, cudnnTensorDescriptor_t x, const void *image, cudnnFilterDescriptor_t w,
    const void *filter, cudnnConvolutionDescriptor_t how, cudnnConvolutionFwdAlgo_t algorithm, void *workspace,
    size_t workspaceBytes, const void *alpha2, cudnnTensorDescriptor_t zHandle, const void *z,
    cudnnTensorDescriptor_t biasHandle, const void *bias, cudnnActivationDescriptor_t activationHandle,
    cudnnTensorDescriptor_t y, void *output) {
  Convolution made = convolution(x, w, how, y);
  requireData({image, filter, z, bias, output});
  const TensorDescription biases = tensor(biasHandle);
  const auto &activation = described<ActivationDescription>(activationHandle);
  require(tensor(zHandle).sameShape(made.y), CUDA_ERROR_INVALID_VALUE, "z is of another shape than the output");
  require(biases.n == 1 && biases.c == made.y.c && biases.h == 1 && biases.w == 1 && biases.type == made.y.type,
          CUDA_ERROR_INVALID_VALUE, "a bias must be 1 x channels x 1 x 1, of the output's type");
  bool identity = activation.mode == CUDNN_ACTIVATION_IDENTITY;
  require(identity || activation.mode == CUDNN_ACTIVATION_RELU, CUDA_ERROR_NOT_SUPPORTED,
          "the activation must be ReLU or identity");
  // The manual has that for identity; with ReLU it says nothing of other algorithms, which may do it or not.
  require(algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDA_ERROR_NOT_SUPPORTED,
          "bias and activation are for IMPLICIT_PRECOMP_GEMM only");
  require(activation.nan == CUDNN_NOT_PROPAGATE_NAN, CUDA_ERROR_NOT_SUPPORTED, "NaN cannot be propagated");
  require(scalar(alpha2, made.y.type) == 0, CUDA_ERROR_NOT_SUPPORTED, "the emulator adds no z");
  Workspace space(workspace, workspaceBytes, algorithm);
  enqueue(streamOf(handle), "cudnnConvolutionBiasActivationForward",
          [=, a = scalar(alpha1, made.y.type)](const Memory &memory, int device) {
            space.use(memory, device);
            const TensorDescription &out = made.y;
            std::vector<double> sums =
                made.forward(valuesOf(made.x, memory, device, image), valuesOf(made.w, memory, device, filter));
            const std::vector<double> added = valuesOf(biases, memory, device, bias);
            for (int n = 0; n < out.n; ++n)
              for (int c = 0; c < out.c; ++c)
                for (int h = 0; h < out.h; ++h)
                  for (int iw = 0; iw < out.w; ++iw) {
                    double &sum = sums[static_cast<size_t>(out.at(n, c, h, iw))];
                    sum = a * sum + added[static_cast<size_t>(c)];
                    if (!identity && !(sum > 0))
                      sum = 0;
                  }
            blend(sums, 1, 0, elementsOf(out, memory, device, output));
          });
  return CUDNN_STATUS_SUCCESS;
}

// to = alpha * bias + beta * to
cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t biasHandle,
                             const void *bias, const void *beta, cudnnTensorDescriptor_t toHandle, void *to) {
  const TensorDescription biases = tensor(biasHandle), all = tensor(toHandle);
  requireData({bias, to});
  require(biases.n == 1 && biases.c == all.c && biases.h == 1 && biases.w == 1, CUDA_ERROR_NOT_SUPPORTED,
          "the emulator adds what is 1 x channels x 1 x 1");
  enqueue(streamOf(handle), "cudnnAddTensor",
          [=, a = scalar(alpha, all.type), b = scalar(beta, all.type)](const Memory &memory, int device) {
            const std::vector<double> added = valuesOf(biases, memory, device, bias);
            Elements sums = elementsOf(all, memory, device, to);
            for (int n = 0; n < all.n; ++n)
              for (int c = 0; c < all.c; ++c)
                for (int h = 0; h < all.h; ++h)
                  for (int w = 0; w < all.w; ++w) {
                    const auto at = static_cast<size_t>(all.at(n, c, h, w));
                    sums.set(at, sums.computed(a * added[static_cast<size_t>(c)] + b * sums[at]));
                  }
          });
  return CUDNN_STATUS_SUCCESS;
}

// to = alpha * from + beta * to, whatever the order of either
cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x,
                                   const void *source, const void *beta, cudnnTensorDescriptor_t y, void *target) {
  const TensorDescription from = tensor(x), to = tensor(y);
  requireData({source, target});
  require(from.sameShape(to) && from.type == to.type, CUDA_ERROR_INVALID_VALUE, "tensors of different shapes or types");
  require(source != target, CUDA_ERROR_INVALID_VALUE, "a tensor is not transformed in place");
  require(scalar(alpha, from.type) == 1 && scalar(beta, from.type) == 0, CUDA_ERROR_NOT_SUPPORTED,
          "the emulator scales nothing that it transforms");
  enqueue(streamOf(handle), "cudnnTransformTensor", [=](const Memory &memory, int device) {
    const Elements read = elementsOf(from, memory, device, source);
    Elements written = elementsOf(to, memory, device, target);
    for (int n = 0; n < from.n; ++n)
      for (int c = 0; c < from.c; ++c)
        for (int h = 0; h < from.h; ++h)
          for (int w = 0; w < from.w; ++w)
            written.set(static_cast<size_t>(to.at(n, c, h, w)), read[static_cast<size_t>(from.at(n, c, h, w))]);
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t activationHandle,
                                     const void *alpha, cudnnTensorDescriptor_t x, const void *input, const void *beta,
                                     cudnnTensorDescriptor_t y, void *output) {
  const TensorDescription all = tensor(x);
  requireData({input, output});
  require(all.sameShape(tensor(y)), CUDA_ERROR_INVALID_VALUE, "the output is of another shape than the input");
  require(described<ActivationDescription>(activationHandle).mode == CUDNN_ACTIVATION_RELU, CUDA_ERROR_NOT_SUPPORTED,
          "the emulator has ReLU only");
  require(scalar(alpha, all.type) == 1 && scalar(beta, all.type) == 0, CUDA_ERROR_NOT_SUPPORTED,
          "the emulator scales no activation");
  enqueue(streamOf(handle), "cudnnActivationForward", [=](const Memory &memory, int device) {
    const Elements from = elementsOf(all, memory, device, input);
    Elements to = elementsOf(all, memory, device, output);
    for (size_t i = 0; i < all.extent(); ++i)
      to.set(i, from[i] > 0 ? from[i] : 0);
  });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, cudnnFilterDescriptor_t w,
                                           const void *filter, cudnnTensorDescriptor_t y, const void *outputGrad,
                                           cudnnConvolutionDescriptor_t how, cudnnConvolutionBwdDataAlgo_t algorithm,
                                           void *workspace, size_t workspaceBytes, const void *beta,
                                           cudnnTensorDescriptor_t x, void *imageGrad) {
  Convolution made = convolution(x, w, how, y);
  requireData({filter, outputGrad, imageGrad});
  Workspace space(workspace, workspaceBytes, algorithm);
  enqueue(streamOf(handle), "cudnnConvolutionBackwardData",
          [=, a = scalar(alpha, made.x.type), b = scalar(beta, made.x.type)](const Memory &memory, int device) {
            space.use(memory, device);
            blend(
                made.gradImage(valuesOf(made.w, memory, device, filter), valuesOf(made.y, memory, device, outputGrad)),
                a, b, elementsOf(made.x, memory, device, imageGrad));
          });
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x,
                                             const void *image, cudnnTensorDescriptor_t y, const void *outputGrad,
                                             cudnnConvolutionDescriptor_t how,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace,
                                             size_t workspaceBytes, const void *beta, cudnnFilterDescriptor_t w,
                                             void *filterGrad) {
  Convolution made = convolution(x, w, how, y);
  requireData({image, outputGrad, filterGrad});
  Workspace space(workspace, workspaceBytes, algorithm);
  enqueue(streamOf(handle), "cudnnConvolutionBackwardFilter",
          [=, a = scalar(alpha, made.x.type), b = scalar(beta, made.x.type)](const Memory &memory, int device) {
            space.use(memory, device);
            blend(
                made.gradFilter(valuesOf(made.x, memory, device, image), valuesOf(made.y, memory, device, outputGrad)),
                a, b, elementsOf(made.w, memory, device, filterGrad));
          });
  return CUDNN_STATUS_SUCCESS;
}

} // namespace drt::cuda::emulated
