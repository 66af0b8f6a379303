//===- conv2d.cpp - Convolutions of a replica and their gradients -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Images stay NHWC, filters take the layout that oneDNN prefers, and are reordered at
// each call: they are small, and change at each step. oneDNN 2.6.3, one AVX-512
// core, GFLOP/s with images NHWC against images in the preferred layout, reorders
// included (forward, gradient of the input, gradient of the filter):
//
//   image          filter            NHWC           preferred
//   64x28x28x1     5x5x1x32       119  10 138      87   9  82
//   64x14x14x32    5x5x32x64      196 169 190     166 167 161
//   16x56x56x64    3x3x64x64      157 136 146     134 116 109
//   16x14x14x256   3x3x256x256    170 146 158     147 149 152
//   16x56x56x64    1x1x64x256     129  96  89      78  55  52
//   16x28x28x128   3x3x128x128/2  170 143 126     132 124 116
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/conv2d.h"

#include "cpu/kernels/direct_conv2d.h"
#include "cpu/kernels/gemm.h"
#include "cpu/kernels/library_matmul.h"
#include "cpu/kernels/onednn.h"

#include <stdexcept>
#include <string>

using namespace drt;
using dnnl::memory;

namespace {
enum class Pass { Forward, GradInput, GradFilter };

constexpr auto algorithm = dnnl::algorithm::convolution_direct;

struct Geometry {
  memory::desc image, filter, anyFilter, output, bias;
  memory::dims strides, dilations, padBegin, padEnd;

  explicit Geometry(const drt_conv2d_desc &d)
      : strides{d.stride_h, d.stride_w}, dilations{d.dilation_h - 1, d.dilation_w - 1}, padBegin{d.pad_top, d.pad_left},
        padEnd{d.pad_bottom, d.pad_right} {
    auto f32 = memory::data_type::f32;
    image = memory::desc({d.n, d.c, d.h, d.w}, f32, memory::format_tag::nhwc);
    output = memory::desc({d.n, d.k, d.oh, d.ow}, f32, memory::format_tag::nhwc);
    bias = memory::desc({d.k}, f32, memory::format_tag::a);
    int64_t inputs = d.c / d.groups, outputs = d.k / d.groups;
    const FilterSteps at = getFilterSteps(d);
    memory::dims dims = {outputs, inputs, d.kh, d.kw}, steps = {at.output, at.input, at.row, at.column};
    if (d.groups > 1) {
      dims.insert(dims.begin(), d.groups);
      steps.insert(steps.begin(), outputs * at.output);
    }
    filter = memory::desc(dims, f32, steps);
    anyFilter = memory::desc(dims, f32, memory::format_tag::any);
  }

  dnnl::convolution_forward::primitive_desc forward(const drt_conv2d_desc &d) const {
    auto kind = dnnl::prop_kind::forward_training;
    dnnl::primitive_attr attributes = callAttributes(d.epilogue);
    if (d.has_bias)
      return {dnnl::convolution_forward::desc(kind, algorithm, image, anyFilter, bias, output, strides, dilations,
                                              padBegin, padEnd),
              attributes, cpuEngine()};
    return {dnnl::convolution_forward::desc(kind, algorithm, image, anyFilter, output, strides, dilations, padBegin,
                                            padEnd),
            attributes, cpuEngine()};
  }
};

class ConvolutionSite : public Prepared {
public:
  ConvolutionSite(const drt_conv2d_desc &desc, Pass pass, Scratch &scratch) {
    bool empty = desc.n * desc.c * desc.k * desc.oh * desc.ow * desc.h * desc.w == 0;
    if (desc.dtype != DRT_F32 || empty) {
      if (desc.dtype != DRT_F32 && desc.dtype != DRT_F64)
        throw std::runtime_error("there is no convolution for data type " + std::to_string(desc.dtype) +
                                 ": cast the image and the filter to float32 or float64");
      return;
    }
    Geometry g(desc);
    switch (pass) {
    case Pass::Forward: {
      auto forward = g.forward(desc);
      adoptFilter(g.filter, forward.weights_desc(), true, scratch);
      std::vector<LibraryCall::Argument> arguments = {
          {DNNL_ARG_SRC, g.image}, {DNNL_ARG_WEIGHTS, forward.weights_desc()}, {DNNL_ARG_DST, g.output}};
      if (desc.has_bias)
        arguments.push_back({DNNL_ARG_BIAS, g.bias});
      call = LibraryCall(scratch, dnnl::convolution_forward(forward), arguments, forward.scratchpad_desc());
      return;
    }
    case Pass::GradInput: {
      dnnl::convolution_backward_data::primitive_desc backward(
          dnnl::convolution_backward_data::desc(algorithm, g.image, g.anyFilter, g.output, g.strides, g.dilations,
                                                g.padBegin, g.padEnd),
          callAttributes(), cpuEngine(), g.forward(plain(desc)));
      adoptFilter(g.filter, backward.weights_desc(), true, scratch);
      call = LibraryCall(
          scratch, dnnl::convolution_backward_data(backward),
          {{DNNL_ARG_DIFF_DST, g.output}, {DNNL_ARG_WEIGHTS, backward.weights_desc()}, {DNNL_ARG_DIFF_SRC, g.image}},
          backward.scratchpad_desc());
      return;
    }
    case Pass::GradFilter: {
      dnnl::convolution_backward_weights::primitive_desc backward(
          dnnl::convolution_backward_weights::desc(algorithm, g.image, g.anyFilter, g.output, g.strides, g.dilations,
                                                   g.padBegin, g.padEnd),
          callAttributes(), cpuEngine(), g.forward(plain(desc)));
      adoptFilter(g.filter, backward.diff_weights_desc(), false, scratch);
      call = LibraryCall(scratch, dnnl::convolution_backward_weights(backward),
                         {{DNNL_ARG_SRC, g.image},
                          {DNNL_ARG_DIFF_WEIGHTS, backward.diff_weights_desc()},
                          {DNNL_ARG_DIFF_DST, g.output}},
                         backward.scratchpad_desc());
      return;
    }
    }
  }

  bool usesLibrary() const { return static_cast<bool>(call); }

  /// `filter` in the library's layout.
  const void *reordered(const void *filter) {
    if (!reorder)
      return filter;
    reorder(filter, libraryFilter.data());
    return libraryFilter.data();
  }
  /// Where the library is to write the filter's gradient, and its way to the caller.
  void *target(void *filterGrad) { return reorder ? libraryFilter.data() : filterGrad; }
  void deliver(void *filterGrad) {
    if (reorder)
      reorder(libraryFilter.data(), filterGrad);
  }

  LibraryCall call;

private:
  // The gradients are made of the convolution alone.
  static drt_conv2d_desc plain(drt_conv2d_desc desc) {
    desc.has_bias = 0;
    desc.epilogue = DRT_EPILOGUE_NONE;
    return desc;
  }

  void adoptFilter(const memory::desc &ours, const memory::desc &theirs, bool read, Scratch &scratch) {
    if (ours == theirs)
      return;
    libraryFilter = Buffer(scratch, theirs.get_size());
    reorder = read ? makeReorder(scratch, ours, theirs) : makeReorder(scratch, theirs, ours);
  }

  LibraryCall reorder;
  Buffer libraryFilter;
};

ConvolutionSite &prepare(PrimitiveCache &cache, int32_t site, const drt_conv2d_desc &desc, Pass pass) {
  useLibraryThreads(cache.threads());
  return cache.get<ConvolutionSite>(
      site, [&] { return std::make_unique<ConvolutionSite>(desc, pass, cache.scratchOfNewSite()); });
}

// Calls run with a null pointer of the data type that the descriptor names.
template <class Run> void withType(int32_t dtype, Run run) {
  dtype == DRT_F32 ? run(static_cast<float *>(nullptr)) : run(static_cast<double *>(nullptr));
}
} // namespace

void drt::conv2d(PrimitiveCache &cache, int32_t site, const drt_conv2d_desc &desc, const void *input,
                 const void *filter, const void *bias, void *output) {
  ConvolutionSite &prepared = prepare(cache, site, desc, Pass::Forward);
  if (prepared.usesLibrary()) {
    const void *theirs = prepared.reordered(filter);
    return desc.has_bias ? prepared.call(input, theirs, output, bias) : prepared.call(input, theirs, output);
  }
  withType(desc.dtype, [&]<class T>(T *) {
    directConv2d(desc, static_cast<const T *>(input), static_cast<const T *>(filter), static_cast<T *>(output));
    applyEpilogue(desc.epilogue, desc.has_bias ? static_cast<const T *>(bias) : nullptr, desc.n * desc.oh * desc.ow,
                  desc.k, static_cast<T *>(output));
  });
}

void drt::conv2dGradInput(PrimitiveCache &cache, int32_t site, const drt_conv2d_desc &desc, const void *filter,
                          const void *outputGrad, void *inputGrad) {
  ConvolutionSite &prepared = prepare(cache, site, desc, Pass::GradInput);
  if (prepared.usesLibrary())
    return prepared.call(outputGrad, prepared.reordered(filter), inputGrad);
  withType(desc.dtype, [&]<class T>(T *) {
    directConv2dGradInput(desc, static_cast<const T *>(filter), static_cast<const T *>(outputGrad),
                          static_cast<T *>(inputGrad));
  });
}

void drt::conv2dGradFilter(PrimitiveCache &cache, int32_t site, const drt_conv2d_desc &desc, const void *input,
                           const void *outputGrad, void *filterGrad) {
  ConvolutionSite &prepared = prepare(cache, site, desc, Pass::GradFilter);
  if (prepared.usesLibrary()) {
    prepared.call(input, prepared.target(filterGrad), outputGrad);
    return prepared.deliver(filterGrad);
  }
  withType(desc.dtype, [&]<class T>(T *) {
    directConv2dGradFilter(desc, static_cast<const T *>(input), static_cast<const T *>(outputGrad),
                           static_cast<T *>(filterGrad));
  });
}
