// drt_matmul by cuBLASLt against the processor's loops.
#include "cpu/kernels/gemm.h"
#include "test/unit/cuda/libraries/calls.h"

using namespace drt;
using namespace drt::cuda::test;

namespace {
template <class T> struct Operands {
  std::vector<T> a, b, bias, c, expected;

  Operands(const drt_matmul_desc &d, Random &random)
      : a(random.tensor<T>(d.batch_stride_a * (d.batch - 1) + d.m * d.k)),
        b(random.tensor<T>(d.batch_stride_b * (d.batch - 1) + d.k * d.n)), bias(random.tensor<T>(d.n)),
        c(random.tensor<T>(d.batch * d.m * d.n)), expected(c) {
    compute(d);
  }

  void compute(const drt_matmul_desc &d) {
    expected = c;
    GemmShape shape = {d.m,
                       d.n,
                       d.k,
                       d.transpose_a != 0,
                       d.transpose_b != 0,
                       d.transpose_a ? d.m : d.k,
                       d.transpose_b ? d.k : d.n,
                       d.n,
                       d.accumulate != 0};
    for (int64_t item = 0; item < d.batch; ++item) {
      T *to = expected.data() + item * d.m * d.n;
      for (int launch = 0; launch < (d.accumulate ? Calls::runs : 1); ++launch) {
        gemm(shape, a.data() + item * d.batch_stride_a, b.data() + item * d.batch_stride_b, to);
        applyEpilogue(d.epilogue, d.has_bias ? bias.data() : nullptr, d.m, d.n, to);
      }
    }
  }
};

template <class T> void check(const drt_matmul_desc &d, Random &random) {
  INFO(d.batch << " x " << d.m << 'x' << d.k << 'x' << d.n << " transposed " << d.transpose_a << d.transpose_b
               << " strides " << d.batch_stride_a << ' ' << d.batch_stride_b << " bias " << d.has_bias << " epilogue "
               << d.epilogue << " accumulate " << d.accumulate);
  Operands<T> operands(d, random);
  Calls calls;
  auto a = calls.array(operands.a), b = calls.array(operands.b), bias = calls.array(operands.bias),
       c = calls.array(operands.c);
  REQUIRE(calls.run([&](drt_replica *replica) {
    drt_matmul(replica, 0, &d, a.data(), b.data(), d.has_bias ? bias.data() : nullptr, c.data());
  }) == "");
  requireSame(c.read(), operands.expected);
}

drt_matmul_desc randomProduct(Random &random) {
  drt_matmul_desc d = {};
  d.dtype = DRT_F32;
  d.m = random.integer(1, 20), d.n = random.integer(1, 20), d.k = random.integer(1, 40), d.batch = 1;
  d.transpose_a = random.integer(0, 1), d.transpose_b = random.integer(0, 1);
  d.batch_stride_a = d.m * d.k, d.batch_stride_b = d.k * d.n;
  d.has_bias = random.integer(0, 1), d.epilogue = random.integer(0, 1);
  d.accumulate = d.epilogue == DRT_EPILOGUE_NONE && random.integer(0, 1);
  return d;
}
} // namespace

TEST_CASE("products of random shapes", "[matmul]") {
  Random random(1);
  for (int trial = 0; trial < 60; ++trial)
    check<float>(randomProduct(random), random);
}

TEST_CASE("batches, with operands that broadcast", "[matmul]") {
  Random random(2);
  for (int trial = 0; trial < 40; ++trial) {
    drt_matmul_desc d = randomProduct(random);
    d.batch = random.integer(2, 5);
    if (random.integer(0, 2) == 0)
      d.batch_stride_a = 0;
    if (random.integer(0, 2) == 0)
      d.batch_stride_b = 0;
    check<float>(d, random);
  }
}

TEST_CASE("products of float64", "[matmul]") {
  Random random(3);
  for (int trial = 0; trial < 20; ++trial) {
    drt_matmul_desc d = randomProduct(random);
    d.dtype = DRT_F64;
    d.has_bias = 0, d.epilogue = DRT_EPILOGUE_NONE;
    check<double>(d, random);
  }
}

TEST_CASE("products of float16 and bfloat16, into float32 or their own type", "[matmul]") {
  Random random(7);
  for (int trial = 0; trial < 40; ++trial) {
    drt_matmul_desc d = randomProduct(random);
    d.dtype = trial % 2 ? DRT_F16 : DRT_BF16, d.widens = random.integer(0, 1), d.accumulate = 0;
    if (random.integer(0, 1))
      d.batch = random.integer(2, 4);
    if (trial < 4)
      d.m = 64, d.n = 128, d.k = 64, d.batch_stride_a = d.m * d.k, d.batch_stride_b = d.k * d.n;
    drt_matmul_desc wide = d;
    wide.dtype = DRT_F32;
    Operands<float> operands(wide, random);
    const Narrow a(d.dtype, operands.a), b(d.dtype, operands.b), bias(d.dtype, operands.bias);
    // What the narrow type holds is multiplied in float32; the result is rounded to it, or not.
    operands.a = a.wide(), operands.b = b.wide();
    if (!d.widens)
      operands.bias = bias.wide();
    operands.compute(wide);
    Calls calls;
    auto deviceA = calls.array(a.elements), deviceB = calls.array(b.elements), narrowBias = calls.array(bias.elements),
         narrowC = calls.array(std::vector<uint16_t>(operands.c.size()));
    auto wideBias = calls.array(operands.bias), wideC = calls.array(operands.c);
    const void *added = d.widens ? wideBias.data() : narrowBias.data();
    void *to = d.widens ? wideC.data() : narrowC.data();
    REQUIRE(calls.run([&](drt_replica *replica) {
      drt_matmul(replica, 0, &d, deviceA.data(), deviceB.data(), d.has_bias ? added : nullptr, to);
    }) == "");
    if (d.widens)
      requireSame(wideC.read(), operands.expected);
    else
      requireSame(a.wide(narrowC.read()), a.round(operands.expected), 1.0 / 128); // sums at the edge between two
  }
}

TEST_CASE("what is added to a product lies elsewhere than the sum, or there", "[matmul]") {
  Random random(9);
  for (int trial = 0; trial < 40; ++trial) {
    drt_matmul_desc d = randomProduct(random);
    d.epilogue = DRT_EPILOGUE_NONE, d.accumulate = 1;
    if (trial % 2)
      d.batch = random.integer(2, 4);
    if (trial % 10 == 0) // the addend alone
      d.k = d.batch_stride_a = d.batch_stride_b = 0, d.has_bias = 0;
    Operands<float> operands(d, random);
    // What each run adds to is the same.
    drt_matmul_desc product = d;
    product.accumulate = 0;
    Operands<float> alone = operands;
    alone.compute(product);
    if (d.k == 0)
      std::fill(alone.expected.begin(), alone.expected.end(), 0.0f);
    for (size_t i = 0; i < alone.expected.size(); ++i)
      alone.expected[i] += operands.c[i];
    operands.a.resize(std::max<size_t>(operands.a.size(), 1)),
        operands.b.resize(std::max<size_t>(operands.b.size(), 1));
    Calls calls;
    auto a = calls.array(operands.a), b = calls.array(operands.b), bias = calls.array(operands.bias),
         addend = calls.array(operands.c), c = calls.array(unwritten(d.batch * d.m * d.n)),
         both = calls.array(operands.c);
    const void *added = d.has_bias ? bias.data() : nullptr;
    REQUIRE(calls.run([&](drt_replica *replica) {
      drt_matmul_add(replica, 0, &d, a.data(), b.data(), added, addend.data(), c.data());
      drt_matmul_add(replica, 1, &d, a.data(), b.data(), added, both.data(), both.data());
    }) == "");
    requireSame(c.read(), alone.expected);
    requireSame(addend.read(), operands.c);
    requireSame(both.read(), operands.expected);
  }
}

TEST_CASE("a bias's gradient beside a product", "[matmul]") {
  Random random(8);
  for (int trial = 0; trial < 24; ++trial) {
    drt_matmul_desc d = {};
    d.dtype = trial % 2 ? DRT_F16 : DRT_BF16, d.widens = 1, d.transpose_a = 1, d.batch = 1;
    // Where n is no multiple of 8 the emulated library has no such epilogue: a product with ones gives the sums.
    d.m = random.integer(1, 20), d.k = random.integer(1, 40), d.n = 8 * random.integer(1, 4) - trial / 2 % 2;
    d.batch_stride_a = d.m * d.k, d.batch_stride_b = d.k * d.n;
    drt_matmul_desc wide = d;
    wide.dtype = DRT_F32;
    Operands<float> operands(wide, random);
    const Narrow a(d.dtype, operands.a), b(d.dtype, operands.b);
    operands.a = a.wide(), operands.b = b.wide();
    operands.compute(wide);
    std::vector<float> sums(static_cast<size_t>(d.n));
    for (int64_t i = 0; i < d.k * d.n; ++i)
      sums[static_cast<size_t>(i % d.n)] += operands.b[static_cast<size_t>(i)];
    Calls calls;
    auto deviceA = calls.array(a.elements), deviceB = calls.array(b.elements);
    auto c = calls.array(unwritten(d.m * d.n)), gradient = calls.array(unwritten(d.n));
    REQUIRE(calls.run([&](drt_replica *replica) {
      drt_matmul_bias_grad(replica, 0, &d, deviceA.data(), deviceB.data(), static_cast<float *>(c.data()),
                           static_cast<float *>(gradient.data()));
    }) == "");
    requireSame(c.read(), operands.expected);
    requireSame(gradient.read(), sums);
  }
}

TEST_CASE("a product over nothing is zero, and one of nothing does nothing", "[matmul]") {
  Random random(4);
  drt_matmul_desc d = randomProduct(random);
  d.k = 0;
  d.has_bias = d.accumulate = 0;
  d.epilogue = DRT_EPILOGUE_NONE;
  Calls calls;
  auto c = calls.array(random.tensor<float>(d.m * d.n));
  REQUIRE(calls.run([&](drt_replica *replica) { drt_matmul(replica, 0, &d, c.data(), c.data(), nullptr, c.data()); }) ==
          "");
  requireSame(c.read(), std::vector<float>(static_cast<size_t>(d.m * d.n)));
  d.m = 0;
  REQUIRE(calls.run([&](drt_replica *replica) { drt_matmul(replica, 1, &d, nullptr, nullptr, nullptr, nullptr); }) ==
          "");
}

TEST_CASE("TF32 where the plan allows it, of float32", "[matmul]") {
  for (auto [precision, expected] :
       {std::pair(DRT_PRECISION_OWN, 4.004f), std::pair(DRT_PRECISION_TF32, 4.00390625f)}) {
    drt_matmul_desc d = {};
    d.dtype = DRT_F32, d.m = 3, d.n = 5, d.k = 4, d.batch = 1, d.precision = precision;
    Calls calls;
    auto a = calls.array(std::vector<float>(12, 1.001f)), b = calls.array(std::vector<float>(20, 1)),
         c = calls.array(unwritten(15));
    REQUIRE(calls.run([&](drt_replica *replica) {
      drt_matmul(replica, 0, &d, a.data(), b.data(), nullptr, c.data());
    }) == "");
    for (float value : c.read())
      REQUIRE(value == expected);
  }
}

TEST_CASE("operands that are aligned to their elements only", "[matmul]") {
  Random random(5);
  drt_matmul_desc d = {};
  d.dtype = DRT_F32, d.m = 3, d.n = 5, d.k = 7, d.batch = 1, d.has_bias = 1;
  Operands<float> operands(d, random);
  auto shifted = [](std::vector<float> values) {
    values.insert(values.begin(), -1);
    return values;
  };
  Calls calls;
  auto a = calls.array(shifted(operands.a)), b = calls.array(shifted(operands.b)),
       bias = calls.array(shifted(operands.bias)), c = calls.array(shifted(operands.c));
  auto inside = [](const Array<float> &array) { return static_cast<void *>(static_cast<float *>(array.data()) + 1); };
  REQUIRE(calls.run([&](drt_replica *replica) {
    drt_matmul(replica, 0, &d, inside(a), inside(b), inside(bias), inside(c));
  }) == "");
  requireSame(c.read(), shifted(operands.expected));
}

TEST_CASE("what cuBLASLt does not have is refused while the entry is prepared", "[matmul]") {
  Random random(6);
  drt_matmul_desc d = randomProduct(random);
  d.dtype = DRT_I32;
  Calls calls;
  auto call = [&](drt_replica *replica) { drt_matmul(replica, 0, &d, nullptr, nullptr, nullptr, nullptr); };
  REQUIRE(calls.run(call).find("cuBLASLt is given no int32") != std::string::npos);
  d.dtype = DRT_F64, d.epilogue = DRT_EPILOGUE_RELU, d.accumulate = 0;
  REQUIRE(calls.run(call).find("no epilogue for float64") != std::string::npos);
}
