//===- conv2d.cpp - Convolutions and their gradients by cuDNN -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Images are NHWC, filters OHWI, as cuDNN has them together. Algorithms multiply float32 as it is (CUDNN_FMA_MATH),
// unless the plan allows TF32; bfloat16 and float16 are tensor cores', and added in float32. Candidates are the
// heuristic's that are deterministic, in its order, with a workspace up to a cap, and the one that the manual says is
// deterministic and there for NHWC. The heuristic does not try them, and is asked for a convolution without bias and
// ReLU: the rehearsal takes the first that the library does not refuse, and where none takes bias and ReLU with it,
// they follow it by calls of their own.
//
// float64 is there for NCHW and filters OIHW only, by the manual: the workspace has images and outputs so.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"
#include "cuda/cudnn_handles.h"
#include "cuda/libraries.h"
#include "cuda/padding.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace drt::cuda {
namespace {

enum class Pass { Forward, GradInput, GradFilter };

void clear(Replica &replica, int32_t dtype, void *data, int64_t elements) {
  if (elements > 0)
    check(
        driver().cuMemsetD8Async(addressOf(data), 0, static_cast<size_t>(elements * dtypeSize(dtype)), replica.stream),
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
    const auto pixel = static_cast<size_t>(d.c * dtypeSize(d.dtype));
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

/// Of a pass: an algorithm, and what it needs of the workspace.
struct Candidate {
  int algorithm;
  size_t workspace;
};

// cuDNN 9 has statuses that say why it does not support something, in classes of thousands.
bool isOf(cudnnStatus_t status, cudnnStatus_t category) { return CUDNN_STATUS_CATEGORY(status) == category; }
bool isUnsupported(cudnnStatus_t status) { return isOf(status, CUDNN_STATUS_NOT_SUPPORTED); }

/// `bytes`, or none where the library refuses the algorithm. Throws where it is the library that fails.
std::optional<size_t> sizeIf(cudnnStatus_t status, const size_t &bytes, const char *function) {
  if (isUnsupported(status) || isOf(status, CUDNN_STATUS_BAD_PARAM))
    return std::nullopt;
  check(status, function);
  return bytes;
}

// A faster algorithm is not worth so much of the device's memory.
constexpr size_t workspaceCap = size_t(1) << 30;

/// `always`: deterministic, and there for the layout, by the manual. `exact`: float32 is multiplied as it is.
/// `workspaceOf`: bytes, or none where the library refuses it.
template <class Performance, class WorkspaceOf>
std::vector<Candidate> candidatesOf(const std::array<Performance, 8> &found, int count, int always, bool exact,
                                    WorkspaceOf workspaceOf) {
  std::vector<Candidate> candidates;
  const auto add = [&](int algorithm, bool anySize) {
    const auto isSame = [&](const Candidate &other) { return other.algorithm == algorithm; };
    if (std::any_of(candidates.begin(), candidates.end(), isSame))
      return;
    const std::optional<size_t> workspace = workspaceOf(algorithm);
    if (workspace && (anySize || *workspace <= workspaceCap))
      candidates.push_back({algorithm, *workspace});
  };
  for (int i = 0; i < count; ++i) {
    const Performance &offered = found[static_cast<size_t>(i)];
    // The descriptor's type says what the default may do.
    const bool allowed = !exact || offered.mathType == CUDNN_FMA_MATH || offered.mathType == CUDNN_DEFAULT_MATH;
    if (offered.status == CUDNN_STATUS_SUCCESS && offered.determinism == CUDNN_DETERMINISTIC && allowed)
      add(offered.algo, false);
  }
  add(always, true);
  if (candidates.empty())
    throw Error("cuDNN has no deterministic algorithm for this convolution");
  return candidates;
}

class ConvolutionSite : public Prepared {
public:
  ConvolutionSite(Replica &replica, const drt_conv2d_desc &given, Pass pass)
      : one_(given.dtype, 1), zero_(given.dtype, 0), desc_(given), image_(given) {
    if (isEmpty())
      return;
    describe();
    WorkspaceParts parts;
    if (image_.isCopied())
      copyAt_ = parts.add(image_.elements(desc_) * dtypeSize(desc_.dtype));
    if (isPlanar()) {
      planarImageAt_ = parts.add(image_.elements(desc_) * dtypeSize(desc_.dtype));
      planarOutputAt_ = parts.add(desc_.n * desc_.oh * desc_.ow * desc_.k * dtypeSize(desc_.dtype));
    }
    if (pass == Pass::Forward)
      describeEpilogue(parts);
    choose(Libraries::of(replica).cudnn(replica.stream), pass);
    for (const Candidate &candidate : candidates_)
      libraryBytes_ = std::max(libraryBytes_, candidate.workspace);
    libraryAt_ = parts.add(static_cast<int64_t>(libraryBytes_));
    replica.needWorkspace(parts.bytes());
  }

  void forward(Replica &replica, const void *input, const void *filter, const void *bias, void *output) {
    if (isEmpty())
      return clearEmpty(replica, output, desc_.n * desc_.oh * desc_.ow * desc_.k);
    const void *image = planarImage(replica, padded(replica, input));
    void *const result = output;
    if (isPlanar())
      output = at(replica, planarOutputAt_);
    convolve(replica, image, filter, bias, output);
    if (isPlanar())
      transform(replica, output_, output, packedOutput_, result);
  }

  void gradInput(Replica &replica, const void *filter, const void *outputGrad, void *inputGrad) {
    if (isEmpty())
      return clearEmpty(replica, inputGrad, desc_.n * desc_.h * desc_.w * desc_.c);
    outputGrad = planarOutput(replica, outputGrad);
    void *const whole = image_.isCopied() ? at(replica, copyAt_) : inputGrad;
    void *const grad = isPlanar() ? at(replica, planarImageAt_) : whole;
    check(attempt([&](int algorithm) {
            return cudnn().cudnnConvolutionBackwardData(
                handle(replica), one_.get(), filter_.get(), filter, output_.get(), outputGrad, convolution_.get(),
                static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm), library(replica), libraryBytes_, zero_.get(),
                imageDescriptor_.get(), grad);
          }),
          "cudnnConvolutionBackwardData");
    if (isPlanar())
      transform(replica, imageDescriptor_, grad, packedImage_, whole);
    if (!image_.isCopied())
      return;
    if (!image_.isWhole(desc_))
      clear(replica, desc_.dtype, inputGrad, desc_.n * desc_.h * desc_.w * desc_.c);
    image_.copy(replica, desc_, inputGrad, whole, /*back=*/true);
  }

  void gradFilter(Replica &replica, const void *input, const void *outputGrad, void *filterGrad) {
    if (isEmpty())
      return clearEmpty(replica, filterGrad, desc_.k * desc_.kh * desc_.kw * (desc_.c / desc_.groups));
    const void *image = planarImage(replica, padded(replica, input));
    outputGrad = planarOutput(replica, outputGrad);
    check(attempt([&](int algorithm) {
            return cudnn().cudnnConvolutionBackwardFilter(
                handle(replica), one_.get(), imageDescriptor_.get(), image, output_.get(), outputGrad,
                convolution_.get(), static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm), library(replica),
                libraryBytes_, zero_.get(), filter_.get(), filterGrad);
          }),
          "cudnnConvolutionBackwardFilter");
  }

private:
  void convolve(Replica &replica, const void *image, const void *filter, const void *bias, void *output) {
    if (!desc_.has_bias && hasEpilogue()) {
      clear(replica, desc_.dtype, at(replica, zerosAt_), desc_.k);
      bias = at(replica, zerosAt_);
    }
    if (hasEpilogue() && !apart_) {
      const cudnnStatus_t status = attempt([&](int algorithm) {
        return cudnn().cudnnConvolutionBiasActivationForward(
            handle(replica), one_.get(), imageDescriptor_.get(), image, filter_.get(), filter, convolution_.get(),
            static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), library(replica), libraryBytes_, zero_.get(),
            output_.get(), output, bias_.get(), bias, activation_.get(), output_.get(), output);
      });
      if (!isUnsupported(status) || chosen_)
        return check(status, "cudnnConvolutionBiasActivationForward");
      apart_ = true;
    }
    check(attempt([&](int algorithm) {
            return cudnn().cudnnConvolutionForward(handle(replica), one_.get(), imageDescriptor_.get(), image,
                                                   filter_.get(), filter, convolution_.get(),
                                                   static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), library(replica),
                                                   libraryBytes_, zero_.get(), output_.get(), output);
          }),
          "cudnnConvolutionForward");
    if (!hasEpilogue())
      return;
    check(cudnn().cudnnAddTensor(handle(replica), one_.get(), bias_.get(), bias, one_.get(), output_.get(), output),
          "cudnnAddTensor");
    if (desc_.epilogue == DRT_EPILOGUE_RELU)
      check(cudnn().cudnnActivationForward(handle(replica), activation_.get(), one_.get(), output_.get(), output,
                                           zero_.get(), output_.get(), output),
            "cudnnActivationForward");
  }

  /// Calls with the algorithm that was chosen; the first time, with each candidate until one is not refused.
  template <class Call> cudnnStatus_t attempt(Call call) {
    if (chosen_)
      return call(*chosen_);
    for (const Candidate &candidate : candidates_) {
      const cudnnStatus_t status = call(candidate.algorithm);
      if (isUnsupported(status))
        continue;
      chosen_ = candidate.algorithm;
      return status;
    }
    return CUDNN_STATUS_NOT_SUPPORTED;
  }

  bool isEmpty() const {
    return desc_.n * desc_.h * desc_.w * desc_.c * desc_.kh * desc_.kw * desc_.k * desc_.oh * desc_.ow == 0;
  }
  bool isPlanar() const { return desc_.dtype == DRT_F64; }
  bool isNarrow() const { return desc_.dtype == DRT_F16 || desc_.dtype == DRT_BF16; }
  // With float32 the default allows TF32; FMA does not.
  cudnnMathType_t math() const {
    if (isNarrow())
      return CUDNN_TENSOR_OP_MATH;
    return isExact() && !isPlanar() ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
  }
  bool isExact() const { return !isNarrow() && desc_.precision != DRT_PRECISION_TF32; }
  bool hasEpilogue() const { return desc_.has_bias || desc_.epilogue != DRT_EPILOGUE_NONE; }

  // A sum of nothing.
  void clearEmpty(Replica &replica, void *result, int64_t elements) const {
    if (elements > 0 && desc_.has_bias)
      throw Error("a convolution of nothing has a bias: leave the layer out");
    clear(replica, desc_.dtype, result, elements);
  }

  void describe() {
    const cudnnTensorFormat_t format = isPlanar() ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC;
    imageDescriptor_ = imageDescriptor(desc_.dtype, desc_.n, image_.h.size, image_.w.size, desc_.c, format);
    output_ = imageDescriptor(desc_.dtype, desc_.n, desc_.oh, desc_.ow, desc_.k, format);
    if (isPlanar()) {
      packedImage_ = imageDescriptor(desc_.dtype, desc_.n, image_.h.size, image_.w.size, desc_.c);
      packedOutput_ = imageDescriptor(desc_.dtype, desc_.n, desc_.oh, desc_.ow, desc_.k);
    }
    filter_ = makeFilter();
    check(cudnn().cudnnSetFilter4dDescriptor(filter_.get(), cudnnTypeOf(desc_.dtype), format, asInt(desc_.k),
                                             asInt(desc_.c / desc_.groups), asInt(desc_.kh), asInt(desc_.kw)),
          "cudnnSetFilter4dDescriptor");
    convolution_ = makeConvolution();
    cudnnConvolutionDescriptor_t convolution = convolution_.get();
    check(cudnn().cudnnSetConvolution2dDescriptor(convolution, asInt(image_.h.padding), asInt(image_.w.padding),
                                                  asInt(desc_.stride_h), asInt(desc_.stride_w), asInt(desc_.dilation_h),
                                                  asInt(desc_.dilation_w), CUDNN_CROSS_CORRELATION,
                                                  isPlanar() ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
          "cudnnSetConvolution2dDescriptor");
    check(cudnn().cudnnSetConvolutionGroupCount(convolution, asInt(desc_.groups)), "cudnnSetConvolutionGroupCount");
    check(cudnn().cudnnSetConvolutionMathType(convolution, math()), "cudnnSetConvolutionMathType");
  }

  // The library wants a bias, be it of zeros.
  void describeEpilogue(WorkspaceParts &parts) {
    if (!hasEpilogue())
      return;
    const bool relu = desc_.epilogue == DRT_EPILOGUE_RELU;
    if (!relu && desc_.epilogue != DRT_EPILOGUE_NONE)
      throw Error("cuDNN's convolution has no epilogue but ReLU: an internal error of the compiler", 70);
    bias_ = imageDescriptor(desc_.dtype, 1, 1, 1, desc_.k);
    activation_ = makeActivation();
    check(cudnn().cudnnSetActivationDescriptor(
              activation_.get(), relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY, CUDNN_NOT_PROPAGATE_NAN, 0),
          "cudnnSetActivationDescriptor");
    if (!desc_.has_bias)
      zerosAt_ = parts.add(desc_.k * dtypeSize(desc_.dtype));
  }

  void choose(cudnnHandle_t handle, Pass pass) {
    switch (pass) {
    case Pass::Forward:
      return chooseForward(handle);
    case Pass::GradInput:
      return chooseGradInput(handle);
    case Pass::GradFilter:
      return chooseGradFilter(handle);
    }
  }

  void chooseForward(cudnnHandle_t handle) {
    std::array<cudnnConvolutionFwdAlgoPerf_t, 8> found;
    int count = 0;
    // The manual: a bias without ReLU is for this algorithm only. It is deterministic.
    constexpr auto always = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    if (!hasEpilogue() || desc_.epilogue == DRT_EPILOGUE_RELU)
      check(cudnn().cudnnGetConvolutionForwardAlgorithm_v7(handle, imageDescriptor_.get(), filter_.get(),
                                                           convolution_.get(), output_.get(), found.size(), &count,
                                                           found.data()),
            "cudnnGetConvolutionForwardAlgorithm_v7");
    candidates_ = candidatesOf(found, count, always, isExact(), [&](int algorithm) {
      size_t bytes = 0;
      return sizeIf(cudnn().cudnnGetConvolutionForwardWorkspaceSize(
                        handle, imageDescriptor_.get(), filter_.get(), convolution_.get(), output_.get(),
                        static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), &bytes),
                    bytes, "cudnnGetConvolutionForwardWorkspaceSize");
    });
  }

  void chooseGradInput(cudnnHandle_t handle) {
    std::array<cudnnConvolutionBwdDataAlgoPerf_t, 8> found;
    int count = 0;
    check(cudnn().cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, filter_.get(), output_.get(), convolution_.get(),
                                                              imageDescriptor_.get(), found.size(), &count,
                                                              found.data()),
          "cudnnGetConvolutionBackwardDataAlgorithm_v7");
    candidates_ = candidatesOf(found, count, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, isExact(), [&](int algorithm) {
      size_t bytes = 0;
      return sizeIf(cudnn().cudnnGetConvolutionBackwardDataWorkspaceSize(
                        handle, filter_.get(), output_.get(), convolution_.get(), imageDescriptor_.get(),
                        static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm), &bytes),
                    bytes, "cudnnGetConvolutionBackwardDataWorkspaceSize");
    });
  }

  void chooseGradFilter(cudnnHandle_t handle) {
    std::array<cudnnConvolutionBwdFilterAlgoPerf_t, 8> found;
    int count = 0;
    check(cudnn().cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, imageDescriptor_.get(), output_.get(),
                                                                convolution_.get(), filter_.get(), found.size(), &count,
                                                                found.data()),
          "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
    candidates_ = candidatesOf(found, count, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, isExact(), [&](int algorithm) {
      size_t bytes = 0;
      return sizeIf(cudnn().cudnnGetConvolutionBackwardFilterWorkspaceSize(
                        handle, imageDescriptor_.get(), output_.get(), convolution_.get(), filter_.get(),
                        static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm), &bytes),
                    bytes, "cudnnGetConvolutionBackwardFilterWorkspaceSize");
    });
  }

  const void *padded(Replica &replica, const void *input) const {
    if (!image_.isCopied())
      return input;
    void *copy = at(replica, copyAt_);
    clear(replica, desc_.dtype, copy, image_.elements(desc_));
    image_.copy(replica, desc_, input, copy, /*back=*/false);
    return copy;
  }

  /// The same elements in another order.
  void transform(Replica &replica, const TensorDescriptor &from, const void *source, const TensorDescriptor &to,
                 void *target) const {
    check(cudnn().cudnnTransformTensor(handle(replica), one_.get(), from.get(), source, zero_.get(), to.get(), target),
          "cudnnTransformTensor");
  }
  const void *planarImage(Replica &replica, const void *image) const {
    if (!isPlanar())
      return image;
    transform(replica, packedImage_, image, imageDescriptor_, at(replica, planarImageAt_));
    return at(replica, planarImageAt_);
  }
  const void *planarOutput(Replica &replica, const void *output) const {
    if (!isPlanar())
      return output;
    transform(replica, packedOutput_, output, output_, at(replica, planarOutputAt_));
    return at(replica, planarOutputAt_);
  }

  static cudnnHandle_t handle(Replica &replica) { return Libraries::of(replica).cudnn(replica.stream); }
  static void *at(Replica &replica, int64_t offset) { return static_cast<char *>(replica.workspace) + offset; }
  void *library(Replica &replica) const { return libraryBytes_ > 0 ? at(replica, libraryAt_) : nullptr; }

  Scalar one_, zero_;
  drt_conv2d_desc desc_;
  Image image_;
  TensorDescriptor imageDescriptor_, output_, bias_; // as the library is given them
  TensorDescriptor packedImage_, packedOutput_;      // NHWC, where that is not what the library is given
  FilterDescriptor filter_;
  ConvolutionDescriptor convolution_;
  ActivationDescriptor activation_;
  std::vector<Candidate> candidates_; // of the pass, the best first
  std::optional<int> chosen_;         // that the library took in the rehearsal
  bool apart_ = false;                // bias and ReLU are calls of their own
  // Where the copy of the image, image and output as NCHW, a bias of zeros, and what the library needs begin in the
  // workspace.
  int64_t copyAt_ = 0, planarImageAt_ = 0, planarOutputAt_ = 0, zerosAt_ = 0, libraryAt_ = 0;
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
