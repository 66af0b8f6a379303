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

#include "cpu/compressor.h"
#include "cpu/kernels/direct_conv2d.h"
#include "cpu/kernels/filter_gradient.h"
#include "cpu/kernels/gemm.h"
#include "cpu/kernels/library_matmul.h"
#include "cpu/kernels/onednn.h"
#include "cpu/kernels/sgemm.h"
#include "cpu/kernels/split_conv2d.h"

#include <memory>
#include <stdexcept>
#include <string>

using namespace drt;
using dnnl::memory;

namespace {
using Pass = ConvolutionPass;

constexpr auto algorithm = dnnl::algorithm::convolution_direct;

struct Geometry {
  memory::desc image, filter, anyFilter, filterGrad, anyFilterGrad, output, bias;
  memory::dims strides, dilations, padBegin, padEnd;

  explicit Geometry(const drt_conv2d_desc &d)
      : strides{d.stride_h, d.stride_w}, dilations{d.dilation_h - 1, d.dilation_w - 1}, padBegin{d.pad_top, d.pad_left},
        padEnd{d.pad_bottom, d.pad_right} {
    const auto elements = d.dtype == DRT_BF16 ? memory::data_type::bf16 : memory::data_type::f32;
    const auto gradElements = memory::data_type::f32;
    image = memory::desc({d.n, d.c, d.h, d.w}, elements, memory::format_tag::nhwc);
    output = memory::desc({d.n, d.k, d.oh, d.ow}, elements, memory::format_tag::nhwc);
    bias = memory::desc({d.k}, elements, memory::format_tag::a);
    int64_t inputs = d.c / d.groups, outputs = d.k / d.groups;
    const FilterSteps at = getFilterSteps(d);
    memory::dims dims = {outputs, inputs, d.kh, d.kw}, steps = {at.output, at.input, at.row, at.column};
    if (d.groups > 1) {
      dims.insert(dims.begin(), d.groups);
      steps.insert(steps.begin(), outputs * at.output);
    }
    filter = memory::desc(dims, elements, steps);
    anyFilter = memory::desc(dims, elements, memory::format_tag::any);
    filterGrad = memory::desc(dims, gradElements, steps);
    anyFilterGrad = memory::desc(dims, gradElements, memory::format_tag::any);
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

// The library's part of a site: the primitive, and the filter's way to the layout that it prefers.
class LibraryConvolution {
public:
  LibraryConvolution() = default;
  LibraryConvolution(const drt_conv2d_desc &desc, Pass pass, Scratch &scratch) {
    Geometry g(desc);
    call = makeWhereThereIs([&] {
      switch (pass) {
      case Pass::Forward:
        return makeForward(g, desc, scratch);
      case Pass::GradInput:
        return makeGradInput(g, desc, scratch);
      case Pass::GradFilter:
        break;
      }
      return makeGradFilter(g, desc, scratch);
    });
  }

  explicit operator bool() const { return static_cast<bool>(call); }

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
  // Empty where there is only a scalar loop for bfloat16; of float32 there is none better.
  template <class Primitive, class Description>
  LibraryCall finish(const Description &description, const std::vector<LibraryCall::Argument> &arguments,
                     const drt_conv2d_desc &desc, Scratch &scratch) {
    if (desc.dtype == DRT_BF16 && !isFast(description))
      return {};
    return LibraryCall(scratch, Primitive(description), arguments, description.scratchpad_desc());
  }

  LibraryCall makeForward(const Geometry &g, const drt_conv2d_desc &desc, Scratch &scratch) {
    auto forward = g.forward(desc);
    adoptFilter(g.filter, forward.weights_desc(), true, scratch);
    std::vector<LibraryCall::Argument> arguments = {
        {DNNL_ARG_SRC, g.image}, {DNNL_ARG_WEIGHTS, forward.weights_desc()}, {DNNL_ARG_DST, g.output}};
    if (desc.has_bias)
      arguments.push_back({DNNL_ARG_BIAS, g.bias});
    return finish<dnnl::convolution_forward>(forward, arguments, desc, scratch);
  }

  LibraryCall makeGradInput(const Geometry &g, const drt_conv2d_desc &desc, Scratch &scratch) {
    dnnl::convolution_backward_data::primitive_desc backward(
        dnnl::convolution_backward_data::desc(algorithm, g.image, g.anyFilter, g.output, g.strides, g.dilations,
                                              g.padBegin, g.padEnd),
        callAttributes(), cpuEngine(), g.forward(plain(desc)));
    adoptFilter(g.filter, backward.weights_desc(), true, scratch);
    return finish<dnnl::convolution_backward_data>(
        backward,
        {{DNNL_ARG_DIFF_DST, g.output}, {DNNL_ARG_WEIGHTS, backward.weights_desc()}, {DNNL_ARG_DIFF_SRC, g.image}},
        desc, scratch);
  }

  LibraryCall makeGradFilter(const Geometry &g, const drt_conv2d_desc &desc, Scratch &scratch) {
    dnnl::convolution_backward_weights::primitive_desc backward(
        dnnl::convolution_backward_weights::desc(algorithm, g.image, g.anyFilterGrad, g.output, g.strides, g.dilations,
                                                 g.padBegin, g.padEnd),
        callAttributes(), cpuEngine(), g.forward(plain(desc)));
    adoptFilter(g.filterGrad, backward.diff_weights_desc(), false, scratch);
    return finish<dnnl::convolution_backward_weights>(
        backward,
        {{DNNL_ARG_SRC, g.image}, {DNNL_ARG_DIFF_WEIGHTS, backward.diff_weights_desc()}, {DNNL_ARG_DIFF_DST, g.output}},
        desc, scratch);
  }

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

// What images or a filter of bfloat16 are in float32.
class WideOperand {
public:
  WideOperand() = default;
  WideOperand(Scratch &scratch, int64_t count) : buffer(scratch, static_cast<size_t>(count) * 4), count(count) {}

  const void *load(const void *narrow) const {
    fromHalf(DRT_BF16, static_cast<const uint16_t *>(narrow), buffer.as<float>(), count);
    return buffer.data();
  }
  void *target() const { return buffer.data(); }
  void store(void *narrow) const { toHalf(DRT_BF16, buffer.as<float>(), static_cast<uint16_t *>(narrow), count); }

private:
  Buffer buffer;
  int64_t count = 0;
};

// A call site. Matrix units take what they suit. With vectors of 256 bits gradients of filters are own tiles'. Types
// that the library has no convolution of are computed by own loops (float64), or in float32 (bfloat16 before AVX-512).
class ConvolutionSite : public Prepared {
public:
  ConvolutionSite(const drt_conv2d_desc &given, Pass pass, Scratch &scratch)
      : desc(given), units(suitsMatrixUnits(given, pass)) {
    if (desc.dtype != DRT_F32 && desc.dtype != DRT_F64 && desc.dtype != DRT_BF16)
      throw std::runtime_error("there is no convolution for data type " + std::to_string(desc.dtype) +
                               ": cast the image and the filter to float32, bfloat16 or float64");
    if (pass == Pass::GradFilter && desc.dtype == DRT_BF16 && !desc.widens)
      throw std::runtime_error("the gradient of a filter is float32 on processors, and drt_conv2d_desc.widens 1");
    if (pass == Pass::GradFilter && feedsByBlocks() && FilterGradient::suits(desc)) {
      tiles = std::make_unique<FilterGradient>(*tileKernels(), desc, scratch);
      return;
    }
    const bool empty = desc.n * desc.c * desc.k * desc.oh * desc.ow * desc.h * desc.w == 0;
    if (desc.dtype != DRT_F64 && !empty)
      library = LibraryConvolution(desc, pass, scratch);
    if (library || desc.dtype != DRT_BF16)
      return;
    drt_conv2d_desc wideDesc = desc;
    wideDesc.dtype = DRT_F32;
    wideDesc.widens = 0;
    wide = std::make_unique<ConvolutionSite>(wideDesc, pass, scratch);
    image = WideOperand(scratch, desc.n * desc.h * desc.w * desc.c);
    filter = WideOperand(scratch, desc.kh * desc.kw * (desc.c / desc.groups) * desc.k);
    output = WideOperand(scratch, desc.n * desc.oh * desc.ow * desc.k);
    wideBias = WideOperand(scratch, desc.has_bias ? desc.k : 0);
  }

  void forward(const void *input, const void *weights, const void *bias, void *result) {
    if (units && splitConv2d(desc, static_cast<const float *>(input), static_cast<const float *>(weights),
                             static_cast<float *>(result)))
      return applyEpilogue(desc.epilogue, desc.has_bias ? static_cast<const float *>(bias) : nullptr,
                           desc.n * desc.oh * desc.ow, desc.k, static_cast<float *>(result));
    if (wide) {
      wide->forward(image.load(input), filter.load(weights), desc.has_bias ? wideBias.load(bias) : nullptr,
                    output.target());
      return output.store(result);
    }
    if (library) {
      const void *theirs = library.reordered(weights);
      return desc.has_bias ? library.call(input, theirs, result, bias) : library.call(input, theirs, result);
    }
    withType([&]<class T>(T *) {
      directConv2d(desc, static_cast<const T *>(input), static_cast<const T *>(weights), static_cast<T *>(result));
      applyEpilogue(desc.epilogue, desc.has_bias ? static_cast<const T *>(bias) : nullptr, desc.n * desc.oh * desc.ow,
                    desc.k, static_cast<T *>(result));
    });
  }

  void gradInput(const void *weights, const void *outputGrad, void *inputGrad) {
    if (units && splitConv2dGradInput(desc, static_cast<const float *>(weights), static_cast<const float *>(outputGrad),
                                      static_cast<float *>(inputGrad)))
      return;
    if (wide) {
      wide->gradInput(filter.load(weights), output.load(outputGrad), image.target());
      return image.store(inputGrad);
    }
    if (library)
      return library.call(outputGrad, library.reordered(weights), inputGrad);
    withType([&]<class T>(T *) {
      directConv2dGradInput(desc, static_cast<const T *>(weights), static_cast<const T *>(outputGrad),
                            static_cast<T *>(inputGrad));
    });
  }

  void gradFilter(const void *input, const void *outputGrad, void *filterGrad) {
    if (units && splitConv2dGradFilter(desc, static_cast<const float *>(input), static_cast<const float *>(outputGrad),
                                       static_cast<float *>(filterGrad)))
      return;
    if (tiles)
      return tiles->run(static_cast<const float *>(input), static_cast<const float *>(outputGrad),
                        static_cast<float *>(filterGrad));
    if (wide)
      return wide->gradFilter(image.load(input), output.load(outputGrad), filterGrad);
    if (library) {
      library.call(input, library.target(filterGrad), outputGrad);
      return library.deliver(filterGrad);
    }
    withType([&]<class T>(T *) {
      directConv2dGradFilter(desc, static_cast<const T *>(input), static_cast<const T *>(outputGrad),
                             static_cast<T *>(filterGrad));
    });
  }

private:
  // Runs with a null pointer of the elements' type.
  template <class Run> void withType(Run run) {
    desc.dtype == DRT_F32 ? run(static_cast<float *>(nullptr)) : run(static_cast<double *>(nullptr));
  }

  drt_conv2d_desc desc;
  bool units; // by matrix units, unless an element has no parts there
  std::unique_ptr<FilterGradient> tiles;
  LibraryConvolution library;
  std::unique_ptr<ConvolutionSite> wide;
  WideOperand image, filter, output, wideBias;
};

ConvolutionSite &prepare(PrimitiveCache &cache, int32_t site, const drt_conv2d_desc &desc, Pass pass) {
  useLibraryThreads(cache.threads());
  return cache.get<ConvolutionSite>(
      site, [&] { return std::make_unique<ConvolutionSite>(desc, pass, cache.scratchOfNewSite()); });
}
} // namespace

void drt::conv2d(PrimitiveCache &cache, int32_t site, const drt_conv2d_desc &desc, const void *input,
                 const void *filter, const void *bias, void *output) {
  prepare(cache, site, desc, Pass::Forward).forward(input, filter, bias, output);
}

void drt::conv2dGradInput(PrimitiveCache &cache, int32_t site, const drt_conv2d_desc &desc, const void *filter,
                          const void *outputGrad, void *inputGrad) {
  prepare(cache, site, desc, Pass::GradInput).gradInput(filter, outputGrad, inputGrad);
}

void drt::conv2dGradFilter(PrimitiveCache &cache, int32_t site, const drt_conv2d_desc &desc, const void *input,
                           const void *outputGrad, void *filterGrad) {
  prepare(cache, site, desc, Pass::GradFilter).gradFilter(input, outputGrad, filterGrad);
}
