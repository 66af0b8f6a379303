//===- matmul.cpp - Matrix products by cuBLASLt ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// cuBLASLt's matrices are column-major: what lies in memory as c[m, n] is, column-major, its transpose. So the call
// computes c^T[n, m] = op(b)^T * op(a)^T, with b as its first operand; an operand that drt_matmul takes as it lies, it
// takes as it lies, too. drt_matmul's bias, an element a column of c, is one a row of c^T, as the library's epilogue
// has it.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"
#include "core/error.h"
#include "cuda/libraries.h"
#include "cuda/tuning.h"

#include <algorithm>
#include <memory>
#include <sstream>
#include <vector>

namespace drt::cuda {
namespace {

void freeOperation(cublasLtMatmulDesc_t operation) { cublasLt().cublasLtMatmulDescDestroy(operation); }
void freeLayout(cublasLtMatrixLayout_t layout) { cublasLt().cublasLtMatrixLayoutDestroy(layout); }
void freePreference(cublasLtMatmulPreference_t preference) { cublasLt().cublasLtMatmulPreferenceDestroy(preference); }
using Operation = Owned<cublasLtMatmulDesc_t, freeOperation>;
using MatrixLayout = Owned<cublasLtMatrixLayout_t, freeLayout>;
using Preference = Owned<cublasLtMatmulPreference_t, freePreference>;

// What NVIDIA recommends for its larger devices; the heuristic takes less where less does.
constexpr uint64_t mostWorkspace = 32 << 20;

template <class Value> void set(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t attribute, Value value) {
  check(cublasLt().cublasLtMatmulDescSetAttribute(to, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
}
template <class Value> void set(cublasLtMatrixLayout_t to, cublasLtMatrixLayoutAttribute_t attribute, Value value) {
  check(cublasLt().cublasLtMatrixLayoutSetAttribute(to, attribute, &value, sizeof value),
        "cublasLtMatrixLayoutSetAttribute");
}
template <class Value>
void set(cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
  check(cublasLt().cublasLtMatmulPreferenceSetAttribute(to, attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
}

// The largest power of two up to 256 that divides the address: algorithms may read as many bytes at once.
uint32_t alignmentOf(const void *address) {
  const auto bits = reinterpret_cast<uintptr_t>(address) | 256;
  return static_cast<uint32_t>(bits & -bits);
}

cudaDataType_t typeOf(int32_t dtype) {
  switch (dtype) {
  case DRT_F32:
    return CUDA_R_32F;
  case DRT_F64:
    return CUDA_R_64F;
  case DRT_F16:
    return CUDA_R_16F;
  case DRT_BF16:
    return CUDA_R_16BF;
  default:
    throw Error("cuBLASLt is given no " + dtypeName(dtype) + ": an internal error of the compiler", 70);
  }
}

void requireSupported(const drt_matmul_desc &desc) {
  const bool relu = desc.epilogue == DRT_EPILOGUE_RELU;
  if (!relu && desc.epilogue != DRT_EPILOGUE_NONE)
    throw Error("cuBLASLt has no epilogue but ReLU: an internal error of the compiler", 70);
  if (relu && desc.accumulate)
    throw Error("cuBLASLt adds before ReLU: an internal error of the compiler", 70);
  if (desc.dtype == DRT_F64 && (relu || desc.has_bias))
    throw Error("cuBLASLt has no epilogue for float64: an internal error of the compiler", 70);
}

// A dense left operand that meets one right operand is one tall matrix.
drt_matmul_desc normalized(drt_matmul_desc desc) {
  if (desc.batch > 1 && desc.batch_stride_b == 0 && !desc.transpose_a && desc.batch_stride_a == desc.m * desc.k) {
    desc.m *= desc.batch;
    desc.batch = 1;
  }
  return desc;
}

// What is added to the product lies at `addend`, with `accumulate`; elsewhere that is c.
struct Operands {
  const void *a, *b, *addend;
  void *c;
};

class MatmulSite : public Prepared {
public:
  /// `bias`: of the product, or where the sums of b's columns go (`sumsColumns`).
  MatmulSite(Replica &replica, const drt_matmul_desc &given, const Operands &operands, const void *bias,
             bool sumsColumns = false)
      : desc_(normalized(given)), sumsColumns_(sumsColumns) {
    requireSupported(desc_);
    if (isEmpty())
      return;
    cublasLtMatmulDesc_t operation = nullptr;
    // CUBLAS_COMPUTE_32F multiplies float32 as it is, without TF32, and adds narrower types up in float32.
    const bool tf32 = desc_.dtype == DRT_F32 && desc_.precision == DRT_PRECISION_TF32;
    const cublasComputeType_t single = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    check(cublasLt().cublasLtMatmulDescCreate(&operation, isDouble() ? CUBLAS_COMPUTE_64F : single,
                                              isDouble() ? CUDA_R_64F : CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    operation_ = Operation(operation);
    set(operation, CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(desc_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(operation, CUBLASLT_MATMUL_DESC_TRANSB, static_cast<int32_t>(desc_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N));
    set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(epilogue()));
    if (hasBiasPointer()) // the heuristic reads how it is aligned
      set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    b_ = layout(desc_.dtype, desc_.n, desc_.k, desc_.transpose_b, desc_.batch_stride_b);
    a_ = layout(desc_.dtype, desc_.k, desc_.m, desc_.transpose_a, desc_.batch_stride_a);
    c_ = layout(resultType(), desc_.n, desc_.m, false, desc_.m * desc_.n);
    if (choose(replica, operands))
      return;
    if (!sumsColumns_)
      throw Error("cuBLASLt has no algorithm for a product of " + std::to_string(desc_.m) + " x " +
                  std::to_string(desc_.k) + " and " + std::to_string(desc_.k) + " x " + std::to_string(desc_.n));
    sumApart(replica, operands, bias);
  }

  void run(Replica &replica, const Operands &operands, const void *bias) {
    if (isEmpty())
      return makeOfNothing(replica, operands);
    if (workspaceBytes_ > replica.workspaceBytes)
      throw Error("a matrix product was not prepared: an internal error of the runtime", 70);
    if (hasBiasPointer())
      set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (!candidates_.empty())
      chooseFastest(replica, operands);
    multiply(replica, operands);
    if (sums_) {
      void *ones = static_cast<char *>(replica.workspace) + onesAt_;
      check(driver().cuMemsetD16Async(addressOf(ones), one16(), static_cast<size_t>(desc_.k), replica.stream),
            "cuMemsetD16Async");
      void *sums = const_cast<void *>(bias);
      sums_->run(replica, {ones, operands.b, sums, sums}, nullptr);
    }
  }

private:
  void multiply(Replica &replica, const Operands &operands) {
    const float one = 1, added = desc_.accumulate ? 1 : 0;
    const double one64 = 1, added64 = added;
    check(cublasLt().cublasLtMatmul(Libraries::of(replica).cublasLt(), operation_.get(),
                                    isDouble() ? static_cast<const void *>(&one64) : &one, operands.b, b_.get(),
                                    operands.a, a_.get(), isDouble() ? static_cast<const void *>(&added64) : &added,
                                    operands.addend, c_.get(), operands.c, c_.get(), &algorithm_, replica.workspace,
                                    static_cast<size_t>(workspaceBytes_),
                                    reinterpret_cast<cudaStream_t>(replica.stream)),
          "cublasLtMatmul");
  }

  bool hasBiasPointer() const { return desc_.has_bias || (sumsColumns_ && !sums_); }
  uint16_t one16() const { return desc_.dtype == DRT_BF16 ? 0x3f80 : 0x3c00; }

  // Where the library does not sum beside a product: a row of ones times b.
  void sumApart(Replica &replica, const Operands &operands, const void *bias) {
    drt_matmul_desc desc = desc_;
    desc.transpose_a = 0;
    desc.m = 1;
    // The workspace is aligned for whatever lies in it.
    const void *aligned = reinterpret_cast<const void *>(uintptr_t(256));
    void *sums = const_cast<void *>(bias);
    sums_ = std::make_unique<MatmulSite>(replica, desc, Operands{aligned, operands.b, sums, sums}, nullptr);
    set(operation_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<uint32_t>(epilogue()));
    const void *none = nullptr;
    set(operation_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, none);
    if (!choose(replica, operands))
      throw Error("cuBLASLt has no algorithm for a product of " + std::to_string(desc_.m) + " x " +
                  std::to_string(desc_.k) + " and " + std::to_string(desc_.k) + " x " + std::to_string(desc_.n));
    onesAt_ = (std::max(mostTaken_, sums_->mostTaken_) + 255) / 256 * 256;
    replica.needWorkspace(onesAt_ + desc_.k * dtypeSize(desc_.dtype));
  }

  int32_t resultType() const { return desc_.widens ? DRT_F32 : desc_.dtype; }
  bool isDouble() const { return desc_.dtype == DRT_F64; }
  bool isEmpty() const { return desc_.batch * desc_.m * desc_.n * desc_.k == 0; }

  // A sum of nothing, and what is added to it.
  void makeOfNothing(Replica &replica, const Operands &operands) const {
    const int64_t count = desc_.batch * desc_.m * desc_.n;
    const auto bytes = static_cast<size_t>(count * dtypeSize(resultType()));
    if (count == 0)
      return;
    if (desc_.has_bias)
      throw Error("a product over an axis of size 0 has a bias: leave the layer out");
    if (!desc_.accumulate)
      check(driver().cuMemsetD8Async(addressOf(operands.c), 0, bytes, replica.stream), "cuMemsetD8Async");
    else if (operands.addend != operands.c)
      check(driver().cuMemcpyDtoDAsync(addressOf(operands.c), addressOf(operands.addend), bytes, replica.stream),
            "cuMemcpyDtoDAsync");
  }

  cublasLtEpilogue_t epilogue() const {
    const bool relu = desc_.epilogue == DRT_EPILOGUE_RELU;
    if (sumsColumns_ && !sums_) // b is the library's first operand
      return CUBLASLT_EPILOGUE_BGRADA;
    if (desc_.has_bias)
      return relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    return relu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_DEFAULT;
  }

  // op(x) is rows x columns, column-major; x lies dense.
  MatrixLayout layout(int32_t dtype, int64_t rows, int64_t columns, bool transposed, int64_t batchStride) const {
    if (transposed)
      std::swap(rows, columns);
    cublasLtMatrixLayout_t made = nullptr;
    check(cublasLt().cublasLtMatrixLayoutCreate(&made, typeOf(dtype), static_cast<uint64_t>(rows),
                                                static_cast<uint64_t>(columns), rows),
          "cublasLtMatrixLayoutCreate");
    MatrixLayout layout(made);
    if (desc_.batch > 1) {
      set(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(desc_.batch));
      set(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batchStride);
    }
    return layout;
  }

  // The heuristic's first, or with a tuning the fastest of the first few: each of its algorithms adds in one order.
  // False where it has none.
  bool choose(Replica &replica, const Operands &operands) {
    if (replica.tuning && takeTuned(replica, operands))
      return true;
    cublasLtMatmulPreference_t made = nullptr;
    check(cublasLt().cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate");
    const Preference preference(made);
    set(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, mostWorkspace);
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignmentOf(operands.b));
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignmentOf(operands.a));
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignmentOf(operands.addend));
    set(made, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignmentOf(operands.c));
    constexpr int mostCandidates = 8;
    cublasLtMatmulHeuristicResult_t all[mostCandidates] = {};
    int count = 0;
    const cublasStatus_t status = cublasLt().cublasLtMatmulAlgoGetHeuristic(
        Libraries::of(replica).cublasLt(), operation_.get(), b_.get(), a_.get(), c_.get(), c_.get(), made,
        replica.tuning ? mostCandidates : 1, all, &count);
    if (sumsColumns_ && status == CUBLAS_STATUS_NOT_SUPPORTED)
      return false;
    check(status, "cublasLtMatmulAlgoGetHeuristic");
    if (count == 0)
      return false;
    check(all[0].state, "cublasLtMatmulAlgoGetHeuristic");
    take(replica, all[0].algo, static_cast<int64_t>(all[0].workspaceSize));
    for (int i = 0; replica.tuning && i < count; ++i)
      if (all[i].state == CUBLAS_STATUS_SUCCESS) {
        candidates_.push_back({all[i].algo, static_cast<int64_t>(all[i].workspaceSize)});
        mostTaken_ = std::max(mostTaken_, candidates_.back().workspace);
      }
    replica.needWorkspace(mostTaken_);
    return true;
  }

  void take(Replica &replica, const cublasLtMatmulAlgo_t &algorithm, int64_t workspace) {
    algorithm_ = algorithm;
    workspaceBytes_ = workspace;
    mostTaken_ = std::max(mostTaken_, workspace);
    replica.needWorkspace(workspace);
  }

  /// What an algorithm was chosen for: chip and library, and all that the library is told.
  std::string keyOf(const Replica &replica, const Operands &operands) const {
    std::ostringstream key;
    key << replica.chip << ", cuBLASLt " << cuda::cublasLt().cublasLtGetVersion() << ": " << dtypeName(desc_.dtype)
        << ' ' << desc_.batch << " x " << desc_.m << " x " << desc_.k << " x " << desc_.n;
    for (const auto &[what, holds] :
         {std::pair(" a^T", desc_.transpose_a != 0), std::pair(" b^T", desc_.transpose_b != 0),
          std::pair(" bias", desc_.has_bias != 0), std::pair(" sums", epilogue() == CUBLASLT_EPILOGUE_BGRADA),
          std::pair(" relu", desc_.epilogue == DRT_EPILOGUE_RELU), std::pair(" added", desc_.accumulate != 0),
          std::pair(" float32", desc_.widens != 0),
          std::pair(" tf32", desc_.dtype == DRT_F32 && desc_.precision == DRT_PRECISION_TF32)})
      key << (holds ? what : "");
    key << " strides " << desc_.batch_stride_a << ' ' << desc_.batch_stride_b << " aligned " << alignmentOf(operands.a)
        << ' ' << alignmentOf(operands.b) << ' ' << std::min(alignmentOf(operands.addend), alignmentOf(operands.c));
    return key.str();
  }

  /// Whether an earlier run has chosen, and the library still takes it.
  bool takeTuned(Replica &replica, const Operands &operands) {
    const std::optional<TunedMatmul> kept = replica.tuning->find(keyOf(replica, operands));
    cublasLtMatmulHeuristicResult_t result = {};
    if (!kept ||
        cublasLt().cublasLtMatmulAlgoCheck(Libraries::of(replica).cublasLt(), operation_.get(), b_.get(), a_.get(),
                                           c_.get(), c_.get(), &kept->algorithm, &result) != CUBLAS_STATUS_SUCCESS ||
        result.workspaceSize > mostWorkspace)
      return false;
    take(replica, kept->algorithm, static_cast<int64_t>(result.workspaceSize));
    return true;
  }

  /// In the rehearsal: what is computed there is not kept.
  void chooseFastest(Replica &replica, const Operands &operands) {
    constexpr int times = 5;
    const Event begin = Event::make(/*timing=*/true), end = Event::make(/*timing=*/true);
    TunedMatmul best;
    float heuristicUs = 0;
    for (const Candidate &candidate : candidates_) {
      take(replica, candidate.algorithm, candidate.workspace);
      multiply(replica, operands); // loads its kernels
      record(begin, replica.stream);
      for (int i = 0; i < times; ++i)
        multiply(replica, operands);
      record(end, replica.stream);
      check(driver().cuEventSynchronize(end.get()), "cuEventSynchronize");
      float ms = 0;
      check(driver().cuEventElapsedTime(&ms, begin.get(), end.get()), "cuEventElapsedTime");
      const float us = ms * 1000 / times;
      const bool isFirst = &candidate == &candidates_.front();
      if (isFirst)
        heuristicUs = us;
      if (isFirst || us < best.us)
        best = {candidate.algorithm, candidate.workspace, us, 0};
    }
    best.heuristicUs = heuristicUs;
    candidates_.clear();
    take(replica, best.algorithm, best.workspace);
    replica.tuning->keep(keyOf(replica, operands), best);
  }

  struct Candidate {
    cublasLtMatmulAlgo_t algorithm;
    int64_t workspace;
  };

  drt_matmul_desc desc_;
  bool sumsColumns_;
  Operation operation_;
  MatrixLayout a_, b_, c_;
  cublasLtMatmulAlgo_t algorithm_ = {};
  int64_t workspaceBytes_ = 0;
  int64_t mostTaken_ = 0;             // workspace of the algorithm, or of those that the rehearsal tries
  std::unique_ptr<MatmulSite> sums_;  // of b's columns, where the product does not make them
  int64_t onesAt_ = 0;                // in the workspace
  std::vector<Candidate> candidates_; // that the rehearsal times; none: the algorithm is chosen
};

} // namespace
} // namespace drt::cuda

using namespace drt::cuda;

namespace {

void runSite(Replica &replica, int32_t primitive, const drt_matmul_desc &desc, const Operands &operands,
             const void *bias, bool sumsColumns = false) {
  auto &site = replica.callSites.get<MatmulSite>(
      primitive, [&] { return std::make_unique<MatmulSite>(replica, desc, operands, bias, sumsColumns); });
  if (!replica.preparing)
    site.run(replica, operands, bias);
}

} // namespace

extern "C" void drt_matmul(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, const void *a,
                           const void *b, const void *bias, void *c) {
  guarded(replica, [&](Replica &owner) { runSite(owner, primitive, *desc, {a, b, c, c}, bias); });
}

extern "C" void drt_matmul_add(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, const void *a,
                               const void *b, const void *bias, const void *addend, void *c) {
  guarded(replica, [&](Replica &owner) {
    if (!desc->accumulate)
      throw drt::Error("a product that nothing is added to: an internal error of the compiler", 70);
    runSite(owner, primitive, *desc, {a, b, addend, c}, bias);
  });
}

extern "C" void drt_matmul_bias_grad(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc,
                                     const void *a, const void *b, float *c, float *bias_grad) {
  guarded(replica, [&](Replica &owner) {
    const bool narrow = desc->dtype == DRT_F16 || desc->dtype == DRT_BF16;
    if (!narrow || !desc->widens || desc->batch != 1 || desc->m * desc->n * desc->k == 0)
      throw drt::Error("a bias's gradient beside a product of this kind: an internal error of the compiler", 70);
    runSite(owner, primitive, *desc, {a, b, c, c}, bias_grad, /*sumsColumns=*/true);
  });
}
