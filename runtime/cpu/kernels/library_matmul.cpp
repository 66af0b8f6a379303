//===- library_matmul.cpp - oneDNN's matrix products ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/library_matmul.h"
#include "cpu/kernels/onednn.h"

using namespace drt;
using dnnl::memory;

namespace {
memory::desc operandDesc(const drt_matmul_desc &desc, memory::data_type type, int64_t stride, int64_t rows,
                         int64_t columns, bool transpose) {
  memory::dims dims = {rows, columns}, strides = {columns, 1};
  if (transpose)
    strides = {1, rows};
  if (desc.batch != 1) {
    dims.insert(dims.begin(), stride == 0 ? 1 : desc.batch);
    strides.insert(strides.begin(), stride == 0 ? rows * columns : stride);
  }
  return memory::desc(dims, type, strides);
}

// The library's reference implementation is a scalar loop: sgemm, item by item, is better.
LibraryCall makeFastCall(Scratch &scratch, const dnnl::matmul::primitive_desc &description,
                         const std::vector<LibraryCall::Argument> &arguments) {
  if (!isFast(description))
    return {};
  return LibraryCall(scratch, dnnl::matmul(description), arguments, description.scratchpad_desc());
}

// Empty where the library has no fast primitive.
LibraryCall makeCall(const drt_matmul_desc &desc, Scratch &scratch) {
  const auto type = desc.dtype == DRT_BF16 ? memory::data_type::bf16 : memory::data_type::f32;
  const auto resultType = desc.widens ? memory::data_type::f32 : type;
  memory::desc a = operandDesc(desc, type, desc.batch_stride_a, desc.m, desc.k, desc.transpose_a);
  memory::desc b = operandDesc(desc, type, desc.batch_stride_b, desc.k, desc.n, desc.transpose_b);
  memory::desc c = operandDesc(desc, resultType, desc.m * desc.n, desc.m, desc.n, false);
  dnnl::primitive_attr attributes = callAttributes(desc.epilogue, desc.accumulate);
  std::vector<LibraryCall::Argument> arguments = {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}};
  if (!desc.has_bias) {
    return makeFastCall(scratch, {dnnl::matmul::desc(a, b, c), attributes, cpuEngine()}, arguments);
  }
  memory::dims dims(desc.batch == 1 ? 2 : 3, 1), strides(dims.size(), desc.n);
  dims.back() = desc.n;
  strides.back() = 1;
  memory::desc bias(dims, resultType, strides);
  arguments.push_back({DNNL_ARG_BIAS, bias});
  return makeFastCall(scratch, {dnnl::matmul::desc(a, b, bias, c), attributes, cpuEngine()}, arguments);
}

class PreparedMatmul final : public LibraryMatmul {
public:
  PreparedMatmul(LibraryCall prepared, bool hasBias) : call(std::move(prepared)), hasBias(hasBias) {}
  void run(const void *a, const void *b, const void *bias, void *c) override {
    if (hasBias)
      call(a, b, c, bias);
    else
      call(a, b, c);
  }

private:
  LibraryCall call;
  bool hasBias;
};
} // namespace

// What the linker is asked for, to take this file.
extern "C" void drt_use_onednn() {}

std::unique_ptr<LibraryMatmul> drt::makeLibraryMatmul(const drt_matmul_desc &desc, Scratch &scratch) {
  LibraryCall call = makeWhereThereIs([&] { return makeCall(desc, scratch); });
  return call ? std::make_unique<PreparedMatmul>(std::move(call), desc.has_bias != 0) : nullptr;
}

void drt::librarySgemm(const GemmShape &s, int64_t depth, float scale, const float *a, const float *b, float keep,
                       float *c) {
  dnnl::error::wrap_c_api(dnnl_sgemm(s.transposeA ? 'T' : 'N', s.transposeB ? 'T' : 'N', s.m, s.n, depth, scale, a,
                                     s.lda, b, s.ldb, keep, c, s.ldc),
                          "oneDNN could not multiply matrices");
}
