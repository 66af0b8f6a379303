//===- conv2d.cpp - Convolutions and their gradients by cuDNN -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Images are NHWC, filters OHWI, as cuDNN has them together. Algorithms are the heuristic's first that is
// deterministic, and multiply float32 as it is (CUDNN_FMA_MATH), not as TF32.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"
#include "cuda/cudnn_handles.h"
#include "cuda/libraries.h"
#include "cuda/padding.h"

#include <array>

namespace drt::cuda {
namespace {

enum class Pass { Forward, GradInput, GradFilter };

constexpr float one = 1, zero = 0;

void clear(Replica &replica, void *data, int64_t elements) {
  if (elements > 0)
    check(driver().cuMemsetD8Async(addressOf(data), 0, static_cast<size_t>(elements) * sizeof(float), replica.stream),
          "cuMemsetD8Async");
}

// The image as the library is given it: the caller's, or a copy with padding.
struct Image {
  PaddedAxis h, w;

  explicit Image(const drt_conv2d_desc &d)
      : h(PaddedAxis::make(d.h, d.kh, d.oh, d.stride_h, d.dilation_h, d.pad_top)),
        w(PaddedAxis::make(d.w, d.kw, d.ow, d.stride_w, d.dilation_w, d.pad_left)) {}

  bool isCopied() const { return h.copied || w.copied; }
  bool isWhole(const drt_conv2d_desc &d) const { return h.shared == d.h && w.shared == d.w; }
  int64_t elements(const drt_conv2d_desc &d) const { return d.n * h.size * w.size * d.c; }

  /// The copy's part of the image, to the copy or, `back`, from it. The rest of neither is touched.
  void copy(Replica &replica, const drt_conv2d_desc &d, const void *image, const void *copied, bool back) const {
    const auto pixel = static_cast<size_t>(d.c) * sizeof(float);
    CUDA_MEMCPY3D plan = {};
    plan.srcMemoryType = plan.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    plan.WidthInBytes = static_cast<size_t>(w.shared) * pixel;
    plan.Height = static_cast<size_t>(h.shared);
    plan.Depth = static_cast<size_t>(d.n);
    (back ? plan.dstDevice : plan.srcDevice) = addressOf(image);
    (back ? plan.dstPitch : plan.srcPitch) = static_cast<size_t>(d.w) * pixel;
    (back ? plan.dstHeight : plan.srcHeight) = static_cast<size_t>(d.h);
    (back ? plan.srcDevice : plan.dstDevice) = addressOf(copied);
    (back ? plan.srcPitch : plan.dstPitch) = static_cast<size_t>(w.size) * pixel;
    (back ? plan.srcHeight : plan.dstHeight) = static_cast<size_t>(h.size);
    (back ? plan.srcXInBytes : plan.dstXInBytes) = static_cast<size_t>(w.before) * pixel;
    (back ? plan.srcY : plan.dstY) = static_cast<size_t>(h.before);
    if (plan.WidthInBytes * plan.Height > 0)
      check(driver().cuMemcpy3DAsync(&plan, replica.stream), "cuMemcpy3DAsync");
  }
};

template <class Performance> Performance firstDeterministic(const std::array<Performance, 8> &found, int count) {
  for (int i = 0; i < count; ++i) {
    const Performance &algorithm = found[static_cast<size_t>(i)];
    const bool exact = algorithm.mathType == CUDNN_FMA_MATH || algorithm.mathType == CUDNN_DEFAULT_MATH;
    if (algorithm.status == CUDNN_STATUS_SUCCESS && algorithm.determinism == CUDNN_DETERMINISTIC && exact)
      return algorithm;
  }
  throw Error("cuDNN has no deterministic algorithm for this convolution of float32, NHWC");
}

class ConvolutionSite : public Prepared {
public:
  ConvolutionSite(Replica &replica, const drt_conv2d_desc &given, Pass pass) : desc_(given), image_(given) {
    if (desc_.dtype != DRT_F32)
      throw Error("there is no convolution for " + dtypeName(desc_.dtype) +
                  " on a device: cast the image and the filter to float32");
    if (isEmpty())
      return;
    describe();
    WorkspaceParts parts;
    if (image_.isCopied())
      copyAt_ = parts.add(image_.elements(desc_) * static_cast<int64_t>(sizeof(float)));
    if (pass == Pass::Forward)
      describeEpilogue(parts);
    size_t bytes = 0;
    choose(Libraries::of(replica).cudnn(replica.stream), pass, bytes);
    libraryAt_ = parts.add(static_cast<int64_t>(bytes));
    libraryBytes_ = bytes;
    replica.needWorkspace(parts.bytes());
  }

  void forward(Replica &replica, const void *input, const void *filter, const void *bias, void *output) const {
    if (isEmpty())
      return clearEmpty(replica, output, desc_.n * desc_.oh * desc_.ow * desc_.k);
    const void *image = padded(replica, input);
    if (!hasEpilogue())
      return check(cudnn().cudnnConvolutionForward(handle(replica), &one, imageDescriptor_.get(), image, filter_.get(),
                                                   filter, convolution_.get(), forwardAlgorithm_, library(replica),
                                                   libraryBytes_, &zero, output_.get(), output),
                   "cudnnConvolutionForward");
    if (!desc_.has_bias) {
      clear(replica, at(replica, zerosAt_), desc_.k);
      bias = at(replica, zerosAt_);
    }
    check(cudnn().cudnnConvolutionBiasActivationForward(handle(replica), &one, imageDescriptor_.get(), image,
                                                        filter_.get(), filter, convolution_.get(), forwardAlgorithm_,
                                                        library(replica), libraryBytes_, &zero, output_.get(), output,
                                                        bias_.get(), bias, activation_.get(), output_.get(), output),
          "cudnnConvolutionBiasActivationForward");
  }

  void gradInput(Replica &replica, const void *filter, const void *outputGrad, void *inputGrad) const {
    if (isEmpty())
      return clearEmpty(replica, inputGrad, desc_.n * desc_.h * desc_.w * desc_.c);
    void *grad = image_.isCopied() ? at(replica, copyAt_) : inputGrad;
    check(cudnn().cudnnConvolutionBackwardData(handle(replica), &one, filter_.get(), filter, output_.get(), outputGrad,
                                               convolution_.get(), inputAlgorithm_, library(replica), libraryBytes_,
                                               &zero, imageDescriptor_.get(), grad),
          "cudnnConvolutionBackwardData");
    if (!image_.isCopied())
      return;
    if (!image_.isWhole(desc_))
      clear(replica, inputGrad, desc_.n * desc_.h * desc_.w * desc_.c);
    image_.copy(replica, desc_, inputGrad, grad, /*back=*/true);
  }

  void gradFilter(Replica &replica, const void *input, const void *outputGrad, void *filterGrad) const {
    if (isEmpty())
      return clearEmpty(replica, filterGrad, desc_.k * desc_.kh * desc_.kw * (desc_.c / desc_.groups));
    const void *image = padded(replica, input);
    check(cudnn().cudnnConvolutionBackwardFilter(handle(replica), &one, imageDescriptor_.get(), image, output_.get(),
                                                 outputGrad, convolution_.get(), filterAlgorithm_, library(replica),
                                                 libraryBytes_, &zero, filter_.get(), filterGrad),
          "cudnnConvolutionBackwardFilter");
  }

private:
  bool isEmpty() const {
    return desc_.n * desc_.h * desc_.w * desc_.c * desc_.kh * desc_.kw * desc_.k * desc_.oh * desc_.ow == 0;
  }
  bool hasEpilogue() const { return desc_.has_bias || desc_.epilogue != DRT_EPILOGUE_NONE; }

  // A sum of nothing.
  void clearEmpty(Replica &replica, void *result, int64_t elements) const {
    if (elements > 0 && desc_.has_bias)
      throw Error("a convolution of nothing has a bias: leave the layer out");
    clear(replica, result, elements);
  }

  void describe() {
    imageDescriptor_ = imageDescriptor(desc_.n, image_.h.size, image_.w.size, desc_.c);
    output_ = imageDescriptor(desc_.n, desc_.oh, desc_.ow, desc_.k);
    filter_ = makeFilter();
    check(cudnn().cudnnSetFilter4dDescriptor(filter_.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, asInt(desc_.k),
                                             asInt(desc_.c / desc_.groups), asInt(desc_.kh), asInt(desc_.kw)),
          "cudnnSetFilter4dDescriptor");
    convolution_ = makeConvolution();
    cudnnConvolutionDescriptor_t convolution = convolution_.get();
    check(cudnn().cudnnSetConvolution2dDescriptor(convolution, asInt(image_.h.padding), asInt(image_.w.padding),
                                                  asInt(desc_.stride_h), asInt(desc_.stride_w), asInt(desc_.dilation_h),
                                                  asInt(desc_.dilation_w), CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "cudnnSetConvolution2dDescriptor");
    check(cudnn().cudnnSetConvolutionGroupCount(convolution, asInt(desc_.groups)), "cudnnSetConvolutionGroupCount");
    check(cudnn().cudnnSetConvolutionMathType(convolution, CUDNN_FMA_MATH), "cudnnSetConvolutionMathType");
  }

  // The library wants a bias, be it of zeros.
  void describeEpilogue(WorkspaceParts &parts) {
    if (!hasEpilogue())
      return;
    const bool relu = desc_.epilogue == DRT_EPILOGUE_RELU;
    if (!relu && desc_.epilogue != DRT_EPILOGUE_NONE)
      throw Error("cuDNN's convolution has no epilogue but ReLU: an internal error of the compiler", 70);
    bias_ = imageDescriptor(1, 1, 1, desc_.k);
    activation_ = makeActivation();
    check(cudnn().cudnnSetActivationDescriptor(
              activation_.get(), relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY, CUDNN_NOT_PROPAGATE_NAN, 0),
          "cudnnSetActivationDescriptor");
    if (!desc_.has_bias)
      zerosAt_ = parts.add(desc_.k * static_cast<int64_t>(sizeof(float)));
  }

  void choose(cudnnHandle_t handle, Pass pass, size_t &bytes) {
    switch (pass) {
    case Pass::Forward:
      return chooseForward(handle, bytes);
    case Pass::GradInput:
      return chooseGradInput(handle, bytes);
    case Pass::GradFilter:
      return chooseGradFilter(handle, bytes);
    }
  }

  void chooseForward(cudnnHandle_t handle, size_t &bytes) {
    std::array<cudnnConvolutionFwdAlgoPerf_t, 8> found;
    int count = 0;
    // The manual: a bias without ReLU is for this algorithm only. It is deterministic.
    forwardAlgorithm_ = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    if (!hasEpilogue() || desc_.epilogue == DRT_EPILOGUE_RELU) {
      check(cudnn().cudnnGetConvolutionForwardAlgorithm_v7(handle, imageDescriptor_.get(), filter_.get(),
                                                           convolution_.get(), output_.get(), found.size(), &count,
                                                           found.data()),
            "cudnnGetConvolutionForwardAlgorithm_v7");
      forwardAlgorithm_ = firstDeterministic(found, count).algo;
    }
    check(cudnn().cudnnGetConvolutionForwardWorkspaceSize(handle, imageDescriptor_.get(), filter_.get(),
                                                          convolution_.get(), output_.get(), forwardAlgorithm_, &bytes),
          "cudnnGetConvolutionForwardWorkspaceSize");
  }

  void chooseGradInput(cudnnHandle_t handle, size_t &bytes) {
    std::array<cudnnConvolutionBwdDataAlgoPerf_t, 8> found;
    int count = 0;
    check(cudnn().cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, filter_.get(), output_.get(), convolution_.get(),
                                                              imageDescriptor_.get(), found.size(), &count,
                                                              found.data()),
          "cudnnGetConvolutionBackwardDataAlgorithm_v7");
    inputAlgorithm_ = firstDeterministic(found, count).algo;
    check(cudnn().cudnnGetConvolutionBackwardDataWorkspaceSize(handle, filter_.get(), output_.get(), convolution_.get(),
                                                               imageDescriptor_.get(), inputAlgorithm_, &bytes),
          "cudnnGetConvolutionBackwardDataWorkspaceSize");
  }

  void chooseGradFilter(cudnnHandle_t handle, size_t &bytes) {
    std::array<cudnnConvolutionBwdFilterAlgoPerf_t, 8> found;
    int count = 0;
    check(cudnn().cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, imageDescriptor_.get(), output_.get(),
                                                                convolution_.get(), filter_.get(), found.size(), &count,
                                                                found.data()),
          "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
    filterAlgorithm_ = firstDeterministic(found, count).algo;
    check(cudnn().cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, imageDescriptor_.get(), output_.get(),
                                                                 convolution_.get(), filter_.get(), filterAlgorithm_,
                                                                 &bytes),
          "cudnnGetConvolutionBackwardFilterWorkspaceSize");
  }

  const void *padded(Replica &replica, const void *input) const {
    if (!image_.isCopied())
      return input;
    void *copy = at(replica, copyAt_);
    clear(replica, copy, image_.elements(desc_));
    image_.copy(replica, desc_, input, copy, /*back=*/false);
    return copy;
  }

  static cudnnHandle_t handle(Replica &replica) { return Libraries::of(replica).cudnn(replica.stream); }
  static void *at(Replica &replica, int64_t offset) { return static_cast<char *>(replica.workspace) + offset; }
  void *library(Replica &replica) const { return libraryBytes_ > 0 ? at(replica, libraryAt_) : nullptr; }

  drt_conv2d_desc desc_;
  Image image_;
  TensorDescriptor imageDescriptor_, output_, bias_;
  FilterDescriptor filter_;
  ConvolutionDescriptor convolution_;
  ActivationDescriptor activation_;
  cudnnConvolutionFwdAlgo_t forwardAlgorithm_ = {};
  cudnnConvolutionBwdDataAlgo_t inputAlgorithm_ = {};
  cudnnConvolutionBwdFilterAlgo_t filterAlgorithm_ = {};
  // Where the copy of the image, a bias of zeros, and what the library needs begin in the workspace.
  int64_t copyAt_ = 0, zerosAt_ = 0, libraryAt_ = 0;
  size_t libraryBytes_ = 0;
};

template <class Call>
void withSite(drt_replica *replica, int32_t primitive, const drt_conv2d_desc &desc, Pass pass, Call call) {
  guarded(replica, [&](Replica &owner) {
    auto &site = owner.callSites.get<ConvolutionSite>(
        primitive, [&] { return std::make_unique<ConvolutionSite>(owner, desc, pass); });
    if (!owner.preparing)
      call(owner, site);
  });
}

} // namespace
} // namespace drt::cuda

using namespace drt::cuda;

extern "C" {

void drt_conv2d(drt_replica *replica, int32_t primitive, const drt_conv2d_desc *desc, const void *input,
                const void *filter, const void *bias, void *output) {
  withSite(replica, primitive, *desc, Pass::Forward,
           [&](Replica &owner, ConvolutionSite &site) { site.forward(owner, input, filter, bias, output); });
}

void drt_conv2d_grad_input(drt_replica *replica, int32_t primitive, const drt_conv2d_desc *desc, const void *filter,
                           const void *output_grad, void *input_grad) {
  withSite(replica, primitive, *desc, Pass::GradInput,
           [&](Replica &owner, ConvolutionSite &site) { site.gradInput(owner, filter, output_grad, input_grad); });
}

void drt_conv2d_grad_filter(drt_replica *replica, int32_t primitive, const drt_conv2d_desc *desc, const void *input,
                            const void *output_grad, void *filter_grad) {
  withSite(replica, primitive, *desc, Pass::GradFilter,
           [&](Replica &owner, ConvolutionSite &site) { site.gradFilter(owner, input, output_grad, filter_grad); });
}

} // extern "C"
