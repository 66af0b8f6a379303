// drt_conv2d and its gradients by cuDNN against the processor's loops.
#include "cpu/kernels/direct_conv2d.h"
#include "cpu/kernels/gemm.h"
#include "cuda/emulator/testing.h"
#include "test/unit/cuda/libraries/calls.h"

using namespace drt;
using namespace drt::cuda;
using namespace drt::cuda::test;

namespace {
// HWIO, as the processor's loops have it, to OHWI.
template <class T> std::vector<T> asOhwi(const drt_conv2d_desc &d, const std::vector<T> &hwio) {
  std::vector<T> ohwi(hwio.size());
  int64_t rest = d.kh * d.kw * (d.c / d.groups);
  for (int64_t i = 0; i < rest; ++i)
    for (int64_t k = 0; k < d.k; ++k)
      ohwi[static_cast<size_t>(k * rest + i)] = hwio[static_cast<size_t>(i * d.k + k)];
  return ohwi;
}

// … and to OIHW, which float64 has.
template <class T> std::vector<T> asOihw(const drt_conv2d_desc &d, const std::vector<T> &hwio) {
  std::vector<T> oihw(hwio.size());
  const int64_t inputs = d.c / d.groups, window = d.kh * d.kw;
  for (int64_t at = 0; at < window; ++at)
    for (int64_t i = 0; i < inputs; ++i)
      for (int64_t k = 0; k < d.k; ++k)
        oihw[static_cast<size_t>((k * inputs + i) * window + at)] =
            hwio[static_cast<size_t>((at * inputs + i) * d.k + k)];
  return oihw;
}
template <class T> std::vector<T> onDevice(const drt_conv2d_desc &d, const std::vector<T> &hwio) {
  return d.dtype == DRT_F64 ? asOihw(d, hwio) : asOhwi(d, hwio);
}

template <class T = float> void check(const drt_conv2d_desc &d, Random &random, double tolerance = 1e-4) {
  INFO("image " << d.n << 'x' << d.h << 'x' << d.w << 'x' << d.c << " filter " << d.kh << 'x' << d.kw << 'x' << d.k
                << " output " << d.oh << 'x' << d.ow << " strides " << d.stride_h << ' ' << d.stride_w << " dilations "
                << d.dilation_h << ' ' << d.dilation_w << " pads " << d.pad_top << ' ' << d.pad_left << ' '
                << d.pad_bottom << ' ' << d.pad_right << " groups " << d.groups << " bias " << d.has_bias
                << " epilogue " << d.epilogue);
  int64_t inputs = d.n * d.h * d.w * d.c, filters = d.kh * d.kw * d.c / d.groups * d.k,
          outputs = d.n * d.oh * d.ow * d.k;
  auto input = random.tensor<T>(inputs), filter = random.tensor<T>(filters), bias = random.tensor<T>(d.k),
       outputGrad = random.tensor<T>(outputs);
  std::vector<T> output = unwritten<T>(outputs), inputGrad = unwritten<T>(inputs), filterGrad = unwritten<T>(filters);
  directConv2d(d, input.data(), filter.data(), output.data());
  applyEpilogue(d.epilogue, d.has_bias ? bias.data() : nullptr, d.n * d.oh * d.ow, d.k, output.data());
  directConv2dGradInput(d, filter.data(), outputGrad.data(), inputGrad.data());
  directConv2dGradFilter(d, input.data(), outputGrad.data(), filterGrad.data());

  Calls calls;
  auto x = calls.array(input), w = calls.array(onDevice(d, filter)), b = calls.array(bias),
       dy = calls.array(outputGrad), y = calls.array(unwritten<T>(outputs)), dx = calls.array(unwritten<T>(inputs)),
       dw = calls.array(unwritten<T>(filters));
  REQUIRE(calls.run([&](drt_replica *replica) {
    drt_conv2d(replica, 0, &d, x.data(), w.data(), d.has_bias ? b.data() : nullptr, y.data());
    drt_conv2d_grad_input(replica, 1, &d, w.data(), dy.data(), dx.data());
    drt_conv2d_grad_filter(replica, 2, &d, x.data(), dy.data(), dw.data());
  }) == "");
  requireSame(y.read(), output, tolerance);
  requireSame(dx.read(), inputGrad, tolerance);
  requireSame(dw.read(), onDevice(d, filterGrad), tolerance);
}

int64_t outputSize(int64_t image, int64_t window, int64_t pads, int64_t stride, int64_t dilation) {
  return (image + pads - (window - 1) * dilation - 1) / stride + 1;
}

drt_conv2d_desc randomConvolution(Random &random, int64_t groups, int64_t inputs, int64_t outputs) {
  drt_conv2d_desc d = {};
  d.dtype = DRT_F32;
  d.n = random.integer(1, 3), d.h = random.integer(5, 12), d.w = random.integer(5, 12);
  d.groups = groups, d.c = groups * inputs, d.k = groups * outputs;
  d.kh = random.integer(1, 4), d.kw = random.integer(1, 4);
  d.stride_h = random.integer(1, 3), d.stride_w = random.integer(1, 3);
  d.dilation_h = d.kh < 4 ? random.integer(1, 2) : 1, d.dilation_w = d.kw < 4 ? random.integer(1, 2) : 1;
  d.pad_top = random.integer(0, static_cast<int32_t>(d.kh)), d.pad_left = random.integer(0, static_cast<int32_t>(d.kw));
  d.pad_bottom = random.integer(0, static_cast<int32_t>(d.kh)),
  d.pad_right = random.integer(0, static_cast<int32_t>(d.kw));
  d.oh = outputSize(d.h, d.kh, d.pad_top + d.pad_bottom, d.stride_h, d.dilation_h);
  d.ow = outputSize(d.w, d.kw, d.pad_left + d.pad_right, d.stride_w, d.dilation_w);
  d.has_bias = random.integer(0, 1), d.epilogue = random.integer(0, 1);
  return d;
}
} // namespace

TEST_CASE("convolutions of random shapes, paddings, strides and dilations", "[conv2d]") {
  Random random(11);
  for (int trial = 0; trial < 80; ++trial)
    check(randomConvolution(random, 1, random.integer(1, 6), random.integer(1, 6)), random);
}

TEST_CASE("grouped and depthwise convolutions", "[conv2d]") {
  Random random(12);
  for (int trial = 0; trial < 30; ++trial)
    check(randomConvolution(random, random.integer(2, 6), trial % 2 ? 1 : random.integer(2, 4), random.integer(1, 3)),
          random);
}

TEST_CASE("TensorFlow's SAME, which pads more behind the image than before", "[conv2d]") {
  Random random(13);
  for (int64_t size = 4; size <= 9; ++size)
    for (int64_t window = 1; window <= 5; ++window)
      for (int64_t stride = 1; stride <= 3; ++stride) {
        drt_conv2d_desc d = {};
        d.dtype = DRT_F32, d.groups = 1, d.n = 2, d.c = 3, d.k = 2, d.dilation_h = d.dilation_w = 1;
        d.h = d.w = size, d.kh = d.kw = window, d.stride_h = d.stride_w = stride;
        d.oh = d.ow = (size + stride - 1) / stride;
        int64_t pads = std::max<int64_t>(0, (d.oh - 1) * stride + window - size);
        d.pad_top = d.pad_left = pads / 2;
        d.pad_bottom = d.pad_right = pads - pads / 2;
        check(d, random);
      }
}

TEST_CASE("convolutions take TF32 where the plan allows it", "[conv2d]") {
  for (auto [precision, expected] :
       {std::pair(DRT_PRECISION_OWN, 4.004f), std::pair(DRT_PRECISION_TF32, 4.00390625f)}) {
    drt_conv2d_desc d = {};
    d.dtype = DRT_F32, d.groups = 1, d.n = d.c = d.k = 1, d.h = d.w = d.kh = d.kw = 2, d.oh = d.ow = 1;
    d.stride_h = d.stride_w = d.dilation_h = d.dilation_w = 1, d.precision = precision;
    Calls calls;
    auto x = calls.array(std::vector<float>(4, 1.001f)), w = calls.array(std::vector<float>(4, 1)),
         y = calls.array(unwritten(1));
    REQUIRE(calls.run([&](drt_replica *replica) {
      drt_conv2d(replica, 0, &d, x.data(), w.data(), nullptr, y.data());
    }) == "");
    REQUIRE(y.read()[0] == expected);
  }
}

TEST_CASE("convolutions of float16 and bfloat16, which are added in float32", "[conv2d]") {
  Random random(17);
  for (int trial = 0; trial < 24; ++trial) {
    drt_conv2d_desc d = randomConvolution(random, trial % 3 ? 1 : 2, random.integer(1, 4), random.integer(1, 4));
    d.dtype = trial % 2 ? DRT_F16 : DRT_BF16;
    int64_t inputs = d.n * d.h * d.w * d.c, filters = d.kh * d.kw * d.c / d.groups * d.k,
            outputs = d.n * d.oh * d.ow * d.k;
    const Narrow input(d.dtype, random.tensor<float>(inputs)), filter(d.dtype, random.tensor<float>(filters)),
        bias(d.dtype, random.tensor<float>(d.k)), outputGrad(d.dtype, random.tensor<float>(outputs));
    std::vector<float> output = unwritten(outputs), inputGrad = unwritten(inputs), filterGrad = unwritten(filters);
    directConv2d(d, input.wide().data(), filter.wide().data(), output.data());
    applyEpilogue(d.epilogue, d.has_bias ? bias.wide().data() : nullptr, d.n * d.oh * d.ow, d.k, output.data());
    directConv2dGradInput(d, filter.wide().data(), outputGrad.wide().data(), inputGrad.data());
    directConv2dGradFilter(d, input.wide().data(), outputGrad.wide().data(), filterGrad.data());

    const Narrow ohwi(d.dtype, asOhwi(d, filter.wide()));
    auto unset = [](int64_t count) { return std::vector<uint16_t>(static_cast<size_t>(count), 0xffff); };
    Calls calls;
    auto x = calls.array(input.elements), w = calls.array(ohwi.elements), b = calls.array(bias.elements),
         dy = calls.array(outputGrad.elements), y = calls.array(unset(outputs)), dx = calls.array(unset(inputs)),
         dw = calls.array(unset(filters));
    REQUIRE(calls.run([&](drt_replica *replica) {
      drt_conv2d(replica, 0, &d, x.data(), w.data(), d.has_bias ? b.data() : nullptr, y.data());
      drt_conv2d_grad_input(replica, 1, &d, w.data(), dy.data(), dx.data());
      drt_conv2d_grad_filter(replica, 2, &d, x.data(), dy.data(), dw.data());
    }) == "");
    requireSame(input.wide(y.read()), input.round(output), 1.0 / 64);
    requireSame(input.wide(dx.read()), input.round(inputGrad), 1.0 / 64);
    requireSame(input.wide(dw.read()), input.round(asOhwi(d, filterGrad)), 1.0 / 64);
  }
}

TEST_CASE("the rehearsal takes what the library does not refuse", "[conv2d]") {
  Random random(16);
  drt_conv2d_desc d = randomConvolution(random, 1, 3, 4);
  for (int32_t epilogue : {DRT_EPILOGUE_NONE, DRT_EPILOGUE_RELU})
    for (int32_t hasBias : {0, 1}) {
      d.epilogue = epilogue, d.has_bias = hasBias;
      // No algorithm takes bias and ReLU with it: they are calls of their own. The first is refused anyway.
      emulated::failCall("cudnnConvolutionBiasActivationForward", CUDNN_STATUS_NOT_SUPPORTED, epilogue ? 1 : 0);
      check(d, random);
      // The first candidate.
      emulated::failCall("cudnnConvolutionForward", CUDNN_STATUS_NOT_SUPPORTED);
      emulated::failCall("cudnnConvolutionBiasActivationForward", CUDNN_STATUS_NOT_SUPPORTED, 100);
      d.has_bias = 0, d.epilogue = DRT_EPILOGUE_NONE;
      check(d, random);
    }
  emulated::failCall("cudnnConvolutionBiasActivationForward", CUDNN_STATUS_NOT_SUPPORTED, 1 << 30);
  emulated::failCall("cudnnConvolutionBackwardFilter", CUDNN_STATUS_NOT_SUPPORTED);
  Calls calls;
  auto x = calls.array(random.tensor<float>(d.n * d.h * d.w * d.c)),
       dy = calls.array(random.tensor<float>(d.n * d.oh * d.ow * d.k)),
       dw = calls.array(unwritten(d.kh * d.kw * d.c * d.k));
  REQUIRE(
      calls.run([&](drt_replica *replica) { drt_conv2d_grad_filter(replica, 0, &d, x.data(), dy.data(), dw.data()); })
          .find("cudnnConvolutionBackwardFilter") != std::string::npos);
}

TEST_CASE("an empty batch has a filter gradient of zero", "[conv2d]") {
  Random random(14);
  drt_conv2d_desc d = randomConvolution(random, 1, 3, 4);
  d.n = 0;
  int64_t filters = d.kh * d.kw * d.c * d.k;
  Calls calls;
  auto dw = calls.array(unwritten(filters));
  REQUIRE(calls.run([&](drt_replica *replica) {
    drt_conv2d_grad_filter(replica, 0, &d, nullptr, nullptr, dw.data());
  }) == "");
  requireSame(dw.read(), std::vector<float>(static_cast<size_t>(filters)));
}

TEST_CASE("convolutions of float64, as exact as it is", "[conv2d]") {
  Random random(15);
  for (int trial = 0; trial < 40; ++trial) {
    drt_conv2d_desc d = randomConvolution(random, trial % 3 ? 1 : 2, random.integer(1, 4), random.integer(1, 4));
    d.dtype = DRT_F64;
    check<double>(d, random, 1e-12);
  }
}

TEST_CASE("what cuDNN does not have is refused while the entry is prepared", "[conv2d]") {
  Random random(15);
  drt_conv2d_desc d = randomConvolution(random, 1, 3, 4);
  d.dtype = DRT_I32;
  Calls calls;
  REQUIRE(calls.run([&](drt_replica *replica) { drt_conv2d(replica, 0, &d, nullptr, nullptr, nullptr, nullptr); })
              .find("cuDNN is given no int32") != std::string::npos);
}
