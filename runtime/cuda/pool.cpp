//===- pool.cpp - Pooling by cuDNN ----------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// cuDNN is told of the padding before an image only: what a window has behind the image it leaves out, so that the size
// of the output, which is the caller's, says how much that is. TensorFlow does the same for its padding SAME.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"
#include "cuda/cudnn_handles.h"
#include "cuda/libraries.h"

namespace drt::cuda {
namespace {

class PoolSite : public Prepared {
public:
  PoolSite(Replica &replica, const drt_pool_desc &desc) : one_(desc.dtype, 1), zero_(desc.dtype, 0), desc_(desc) {
    if (desc.pad_top >= desc.kh || desc.pad_left >= desc.kw)
      throw Error("cuDNN takes no padding as large as the window: pad the image before the pooling");
    if (isEmpty())
      return;
    input_ = imageDescriptor(desc.dtype, desc.n, desc.h, desc.w, desc.c);
    output_ = imageDescriptor(desc.dtype, desc.n, desc.oh, desc.ow, desc.c);
    pooling_ = makePooling();
    check(cudnn().cudnnSetPooling2dDescriptor(
              pooling_.get(),
              desc.kind == DRT_POOL_MAX ? CUDNN_POOLING_MAX_DETERMINISTIC : CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
              CUDNN_NOT_PROPAGATE_NAN, asInt(desc.kh), asInt(desc.kw), asInt(desc.pad_top), asInt(desc.pad_left),
              asInt(desc.stride_h), asInt(desc.stride_w)),
          "cudnnSetPooling2dDescriptor");
    Libraries::of(replica).cudnn(replica.stream);
  }

  void forward(Replica &replica, const void *input, void *output) const {
    if (isEmpty())
      return;
    check(cudnn().cudnnPoolingForward(Libraries::of(replica).cudnn(replica.stream), pooling_.get(), one_.get(),
                                      input_.get(), input, zero_.get(), output_.get(), output),
          "cudnnPoolingForward");
  }

  void backward(Replica &replica, const void *input, const void *output, const void *outputGrad,
                void *inputGrad) const {
    if (isEmpty()) {
      const int64_t count = desc_.n * desc_.h * desc_.w * desc_.c;
      if (count > 0)
        check(driver().cuMemsetD8Async(addressOf(inputGrad), 0, static_cast<size_t>(count * dtypeSize(desc_.dtype)),
                                       replica.stream),
              "cuMemsetD8Async");
      return;
    }
    // The average's gradient reads neither, and the library wants some of their size.
    check(cudnn().cudnnPoolingBackward(Libraries::of(replica).cudnn(replica.stream), pooling_.get(), one_.get(),
                                       output_.get(), output ? output : outputGrad, output_.get(), outputGrad,
                                       input_.get(), input ? input : inputGrad, zero_.get(), input_.get(), inputGrad),
          "cudnnPoolingBackward");
  }

private:
  bool isEmpty() const { return desc_.n * desc_.h * desc_.w * desc_.c * desc_.oh * desc_.ow == 0; }

  Scalar one_, zero_;
  drt_pool_desc desc_;
  TensorDescriptor input_, output_;
  PoolingDescriptor pooling_;
};

// The call site, prepared; null while the entry runs to prepare.
template <class Call> void withSite(drt_replica *replica, int32_t primitive, const drt_pool_desc &desc, Call call) {
  guarded(replica, [&](Replica &owner) {
    auto &site = owner.callSites.get<PoolSite>(primitive, [&] { return std::make_unique<PoolSite>(owner, desc); });
    if (!owner.preparing)
      call(owner, site);
  });
}

} // namespace
} // namespace drt::cuda

using namespace drt::cuda;

extern "C" void drt_pool(drt_replica *replica, int32_t primitive, const drt_pool_desc *desc, const void *input,
                         void *output) {
  withSite(replica, primitive, *desc, [&](Replica &owner, PoolSite &site) { site.forward(owner, input, output); });
}

extern "C" void drt_pool_grad(drt_replica *replica, int32_t primitive, const drt_pool_desc *desc, const void *input,
                              const void *output, const void *output_grad, void *input_grad) {
  withSite(replica, primitive, *desc,
           [&](Replica &owner, PoolSite &site) { site.backward(owner, input, output, output_grad, input_grad); });
}
