//===- convolution.cpp - Convolutions by their definition -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/convolution.h"

#include "cuda/emulator/product.h"

using namespace drt::cuda::emulated;

namespace {
int64_t outputs(int64_t in, int64_t window, int64_t pad, int64_t stride, int64_t dilation) {
  int64_t rest = in + 2 * pad - ((window - 1) * dilation + 1);
  return rest < 0 ? 0 : rest / stride + 1;
}

} // namespace

void Convolution::round(std::vector<double> &operand) const {
  if (usesTf32())
    for (double &value : operand)
      value = roundToTf32(static_cast<float>(value));
}

void Convolution::check() const {
  auto fits = [](bool condition, const char *detail) { require(condition, CUDA_ERROR_INVALID_VALUE, detail); };
  auto supported = [](bool condition, const char *detail) { require(condition, CUDA_ERROR_NOT_SUPPORTED, detail); };
  fits(x.n == y.n && w.k == y.c, "tensors and filter that do not fit");
  fits(x.c == w.c * how.groups && w.k % how.groups == 0, "channels and groups that do not fit");
  fits(y.h == outputs(x.h, w.h, how.padH, how.strideH, how.dilationH) &&
           y.w == outputs(x.w, w.w, how.padW, how.strideW, how.dilationW),
       "an output of another size than the convolution's");
  const bool narrow = x.type == CUDNN_DATA_BFLOAT16 || x.type == CUDNN_DATA_HALF;
  const bool wide = x.type == CUDNN_DATA_DOUBLE;
  supported((x.type == CUDNN_DATA_FLOAT || narrow || wide) && y.type == x.type && w.type == x.type &&
                how.compute == (wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
            "the emulator convolves float32, float16 and bfloat16, one type in all tensors, and adds in float32; and "
            "float64, which it adds in float64");
  supported(!narrow || how.math != CUDNN_FMA_MATH, "narrow types are multiplied by tensor cores");
  bool nhwc = x.isNhwc() && y.isNhwc() && w.format == CUDNN_TENSOR_NHWC;
  bool nchw = x.isNchw() && y.isNchw() && w.format == CUDNN_TENSOR_NCHW;
  supported(nhwc || nchw, "tensors and filter must all be NHWC or all NCHW, and packed");
  supported(!wide || nchw, "float64 is convolved as NCHW");
}

// visit(image, filter, output) with the offsets of channel 0 of the group in image and filter, and of the output's
// element, for every pair of an output's element and a pixel of its window that lies in the image.
template <class Visit> void Convolution::forEachPair(Visit visit) const {
  int perGroup = w.k / how.groups;
  for (int n = 0; n < y.n; ++n)
    for (int oy = 0; oy < y.h; ++oy)
      for (int ox = 0; ox < y.w; ++ox)
        for (int ky = 0; ky < w.h; ++ky)
          for (int kx = 0; kx < w.w; ++kx) {
            int iy = oy * how.strideH - how.padH + ky * how.dilationH;
            int ix = ox * how.strideW - how.padW + kx * how.dilationW;
            if (iy < 0 || iy >= x.h || ix < 0 || ix >= x.w)
              continue;
            for (int k = 0; k < w.k; ++k)
              visit(x.at(n, k / perGroup * w.c, iy, ix), w.at(k, ky, kx), y.at(n, k, oy, ox));
          }
}

std::vector<double> Convolution::forward(std::vector<double> in, std::vector<double> weights) const {
  std::vector<double> result(y.extent());
  round(in), round(weights);
  int64_t xStep = x.cStride, wStep = w.cStride();
  forEachPair([&](int64_t xAt, int64_t wAt, int64_t yAt) {
    double sum = 0;
    for (int64_t c = 0; c < w.c; ++c)
      sum += in[size_t(xAt + c * xStep)] * weights[size_t(wAt + c * wStep)];
    result[size_t(yAt)] += sum;
  });
  return result;
}

std::vector<double> Convolution::gradImage(std::vector<double> weights, std::vector<double> grad) const {
  std::vector<double> result(x.extent());
  round(grad), round(weights);
  int64_t xStep = x.cStride, wStep = w.cStride();
  forEachPair([&](int64_t xAt, int64_t wAt, int64_t yAt) {
    double factor = grad[size_t(yAt)];
    for (int64_t c = 0; c < w.c; ++c)
      result[size_t(xAt + c * xStep)] += factor * weights[size_t(wAt + c * wStep)];
  });
  return result;
}

std::vector<double> Convolution::gradFilter(std::vector<double> in, std::vector<double> grad) const {
  std::vector<double> result(w.extent());
  round(grad), round(in);
  int64_t xStep = x.cStride, wStep = w.cStride();
  forEachPair([&](int64_t xAt, int64_t wAt, int64_t yAt) {
    double factor = grad[size_t(yAt)];
    for (int64_t c = 0; c < w.c; ++c)
      result[size_t(wAt + c * wStep)] += factor * in[size_t(xAt + c * xStep)];
  });
  return result;
}
