// drt_pool and its gradient by cuDNN against the processor's loops.
#include "cpu/kernels/pool.h"
#include "test/unit/cuda/libraries/calls.h"

using namespace drt;
using namespace drt::cuda::test;

namespace {
// `levels`: 0 for random numbers, else so many different ones, so that windows have several largest elements.
template <class T = float> void check(const drt_pool_desc &d, Random &random, int32_t levels, double tolerance = 1e-4) {
  INFO("kind " << d.kind << " image " << d.n << 'x' << d.h << 'x' << d.w << 'x' << d.c << " window " << d.kh << 'x'
               << d.kw << " output " << d.oh << 'x' << d.ow << " strides " << d.stride_h << ' ' << d.stride_w
               << " pads " << d.pad_top << ' ' << d.pad_left << " levels " << levels);
  int64_t inputs = d.n * d.h * d.w * d.c, outputs = d.n * d.oh * d.ow * d.c;
  auto input = random.tensor<T>(inputs), outputGrad = random.tensor<T>(outputs);
  if (levels > 0)
    for (T &value : input)
      value = static_cast<T>(random.integer(0, levels - 1));
  std::vector<T> output = unwritten<T>(outputs), inputGrad = unwritten<T>(inputs);
  pool(d, input.data(), output.data());
  poolGrad(d, input.data(), output.data(), outputGrad.data(), inputGrad.data());

  Calls calls;
  auto x = calls.array(input), y = calls.array(unwritten<T>(outputs)), dy = calls.array(outputGrad),
       dx = calls.array(unwritten<T>(inputs));
  bool given = d.kind == DRT_POOL_MAX;
  REQUIRE(calls.run([&](drt_replica *replica) {
    drt_pool(replica, 0, &d, x.data(), y.data());
    drt_pool_grad(replica, 1, &d, given ? x.data() : nullptr, given ? y.data() : nullptr, dy.data(), dx.data());
  }) == "");
  requireSame(y.read(), output, tolerance);
  requireSame(dx.read(), inputGrad, tolerance);
}

// Padding that leaves something of the image in every window.
drt_pool_desc randomPooling(Random &random, int32_t kind) {
  drt_pool_desc d = {};
  d.dtype = DRT_F32, d.kind = kind;
  d.n = random.integer(1, 3), d.h = random.integer(4, 10), d.w = random.integer(4, 10), d.c = random.integer(1, 9);
  d.kh = random.integer(1, 4), d.kw = random.integer(1, 4);
  d.stride_h = random.integer(1, 3), d.stride_w = random.integer(1, 3);
  d.pad_top = random.integer(0, static_cast<int32_t>(d.kh) - 1);
  d.pad_left = random.integer(0, static_cast<int32_t>(d.kw) - 1);
  int64_t bottom = random.integer(0, static_cast<int32_t>(d.kh) - 1),
          right = random.integer(0, static_cast<int32_t>(d.kw) - 1);
  d.oh = (d.h + d.pad_top + bottom - d.kh) / d.stride_h + 1;
  d.ow = (d.w + d.pad_left + right - d.kw) / d.stride_w + 1;
  return d;
}
} // namespace

TEST_CASE("pooling of random shapes, paddings and strides, and its gradient", "[pool]") {
  Random random(21);
  for (int32_t kind : {DRT_POOL_MAX, DRT_POOL_AVG})
    for (int trial = 0; trial < 50; ++trial)
      check(randomPooling(random, kind), random, trial % 2 ? 3 : 0);
}

TEST_CASE("pooling of float64, as exact as it is", "[pool]") {
  Random random(23);
  for (int trial = 0; trial < 30; ++trial) {
    drt_pool_desc d = randomPooling(random, trial % 2 ? DRT_POOL_MAX : DRT_POOL_AVG);
    d.dtype = DRT_F64;
    check<double>(d, random, trial % 4 == 1 ? 3 : 0, 1e-12);
  }
}

TEST_CASE("what cuDNN does not pool is refused while the entry is prepared", "[pool]") {
  Random random(22);
  drt_pool_desc d = randomPooling(random, DRT_POOL_MAX);
  Calls calls;
  auto call = [&](drt_replica *replica) { drt_pool(replica, 0, &d, nullptr, nullptr); };
  d.pad_top = d.kh;
  REQUIRE(calls.run(call).find("pad the image before the pooling") != std::string::npos);
  d.pad_top = 0, d.dtype = DRT_I32;
  REQUIRE(calls.run(call).find("cuDNN is given no int32") != std::string::npos);
}
