//===- cublaslt.cpp - The emulated cuBLASLt -------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// D = epilogue(alpha * op(A) * op(B) + beta * C + bias), column-major, as cuBLASLt's manual has it, for float32,
// float64, and float16 and bfloat16 that are multiplied in float32. What the manual does not list is refused. An
// algorithm remembers the problem it was chosen for, its workspace and the alignments it was promised; the product
// insists on them, and fills the workspace, which is its own while it runs.
//
//===----------------------------------------------------------------------===//
#include "cuda/api/tables.h"

#include "cuda/emulator/machine.h"
#include "cuda/emulator/product.h"
#include "cuda/emulator/table.h"

#include <algorithm>
#include <cstring>

namespace drt::cuda::emulated {

template <> cublasStatus_t statusOf(const Failure &failure) {
  switch (failure.code) {
  case CUDA_ERROR_INVALID_VALUE:
  case CUDA_ERROR_INVALID_HANDLE:
    return CUBLAS_STATUS_INVALID_VALUE;
  case CUDA_ERROR_NOT_SUPPORTED:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  case CUDA_ERROR_NOT_INITIALIZED:
  case CUDA_ERROR_INVALID_CONTEXT:
    return CUBLAS_STATUS_NOT_INITIALIZED;
  default:
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

namespace {
struct MatmulDescription {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transA = CUBLAS_OP_N, transB = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void *bias = nullptr;
  int64_t biasBatchStride = 0;
};

struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

// What an algorithm holds in its 64 bytes.
struct Algorithm {
  uint64_t problem, workspace;
  uint32_t alignment[4];
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

void requireSupported(bool condition, const char *detail) { require(condition, CUDA_ERROR_NOT_SUPPORTED, detail); }

// Descriptors are opaque to callers; these are as large as CUDA's or smaller.
template <class Inside, class Handle> Inside &inside(Handle handle) {
  require(handle != nullptr, CUDA_ERROR_INVALID_VALUE, "a descriptor is missing");
  return *reinterpret_cast<Inside *>(handle);
}

template <class Value> Value read(const void *from, size_t bytes) {
  require(from != nullptr && bytes == sizeof(Value), CUDA_ERROR_INVALID_VALUE, "an attribute of another size");
  Value value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

struct Operands {
  const MatmulDescription &operation;
  const MatrixLayout &a, &b, &c, &d;

  Operands(cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
           cublasLtMatrixLayout_t d)
      : operation(inside<MatmulDescription>(operation)), a(inside<MatrixLayout>(a)), b(inside<MatrixLayout>(b)),
        c(inside<MatrixLayout>(c)), d(inside<MatrixLayout>(d)) {
    check();
  }

  bool hasBias() const { return (operation.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0; }
  bool hasRelu() const { return (operation.epilogue & CUBLASLT_EPILOGUE_RELU) != 0; }
  bool sumsA() const { return operation.epilogue == CUBLASLT_EPILOGUE_BGRADA; }
  bool usesTf32() const { return operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32; }
  uint64_t inner() const { return operation.transA == CUBLAS_OP_N ? a.columns : a.rows; }

  // What was chosen for one problem is not for another.
  uint64_t problem() const {
    uint64_t hash = 1469598103934665603u;
    auto mix = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211u; };
    for (const MatrixLayout *layout : {&a, &b, &c, &d})
      for (uint64_t value : {uint64_t(layout->type), layout->rows, layout->columns, uint64_t(layout->leading),
                             uint64_t(layout->batch), uint64_t(layout->batchStride)})
        mix(value);
    mix(operation.compute), mix(operation.transA), mix(operation.transB), mix(operation.epilogue);
    return hash;
  }

private:
  void check() const {
    bool f32 = (operation.compute == CUBLAS_COMPUTE_32F || operation.compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
                operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32) &&
               operation.scale == CUDA_R_32F;
    bool f64 = (operation.compute == CUBLAS_COMPUTE_64F || operation.compute == CUBLAS_COMPUTE_64F_PEDANTIC) &&
               operation.scale == CUDA_R_64F;
    requireSupported(f32 || f64, "the emulator computes in float32 and float64");
    requireSupported(f32 || operation.epilogue == CUBLASLT_EPILOGUE_DEFAULT, "float64 has no epilogues");
    // The manual's table: A and B alike; C and D alike, of that type or, where it is a narrow one, of float32.
    const bool narrow = f32 && (a.type == CUDA_R_16BF || a.type == CUDA_R_16F);
    requireSupported(a.type == b.type && (narrow || a.type == operation.scale) && c.type == d.type &&
                         (d.type == a.type || (narrow && d.type == CUDA_R_32F)),
                     "operands of types that have no product");
    requireSupported(!narrow || operation.compute != CUBLAS_COMPUTE_32F_FAST_TF32, "TF32 is of float32");
    for (const MatrixLayout *layout : {&a, &b, &c, &d}) {
      requireSupported(layout->rows > 0 && layout->columns > 0, "an empty matrix");
      require(layout->leading >= static_cast<int64_t>(layout->rows), CUDA_ERROR_INVALID_VALUE,
              "a leading dimension less than the rows");
      require(layout->batch == d.batch, CUDA_ERROR_INVALID_VALUE, "operands of different batch counts");
    }
    uint64_t m = operation.transA == CUBLAS_OP_N ? a.rows : a.columns;
    uint64_t n = operation.transB == CUBLAS_OP_N ? b.columns : b.rows;
    uint64_t k = operation.transB == CUBLAS_OP_N ? b.rows : b.columns;
    require(d.rows == m && d.columns == n && k == inner() && c.rows == m && c.columns == n, CUDA_ERROR_INVALID_VALUE,
            "matrices that do not fit");
    requireSupported(d.batch == 1 || std::abs(d.batchStride) >= d.leading * static_cast<int64_t>(d.columns),
                     "results of a batch that overlap");
    switch (operation.epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
      return;
    case CUBLASLT_EPILOGUE_BGRADA:
      // The manual leaves open for which sizes there are algorithms: here not for all.
      requireSupported(d.batch == 1 && d.rows % 8 == 0, "no bias gradient of these sizes");
      return;
    default:
      requireSupported(false, "the emulator has the epilogues bias, ReLU and bias gradients");
    }
  }
};

// Some problems need workspace, as some of the library's algorithms do.
uint64_t workspaceOf(const Operands &operands) { return operands.problem() % 3 == 0 ? 0 : 4096; }

template <class T>
Product<T> productOf(const Operands &operands, const void *alpha, const void *beta, const void *a, const void *b,
                     const void *c, void *d) {
  Product<T> product;
  product.a = {a, operands.a, operands.operation.transA != CUBLAS_OP_N};
  product.b = {b, operands.b, operands.operation.transB != CUBLAS_OP_N};
  product.c = {c, operands.c, false};
  product.d = {d, operands.d, false};
  product.bias = operands.hasBias() ? operands.operation.bias : nullptr;
  product.sums = operands.sumsA() ? operands.operation.bias : nullptr;
  product.biasBatchStride = operands.operation.biasBatchStride;
  product.relu = operands.hasRelu();
  product.tf32 = operands.usesTf32();
  product.inner = static_cast<int64_t>(operands.inner());
  product.alpha = *static_cast<const T *>(alpha);
  product.beta = *static_cast<const T *>(beta);
  return product;
}
} // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  Lock lock(Machine::get().mutex);
  Machine::get().device();
  require(handle != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the handle");
  *handle = reinterpret_cast<cublasLtHandle_t>(new char);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  Machine::get().requireContext("cublasLtDestroy");
  delete reinterpret_cast<char *>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return "CUBLAS_STATUS_SUCCESS";
  case CUBLAS_STATUS_NOT_INITIALIZED:
    return "CUBLAS_STATUS_NOT_INITIALIZED";
  case CUBLAS_STATUS_INVALID_VALUE:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case CUBLAS_STATUS_NOT_SUPPORTED:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  case CUBLAS_STATUS_EXECUTION_FAILED:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  default:
    return "<unknown>";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *made, cublasComputeType_t compute, cudaDataType_t scale) {
  require(made != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the descriptor");
  *made = reinterpret_cast<cublasLtMatmulDesc_t>(new MatmulDescription{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation) {
  delete &inside<MatmulDescription>(operation);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
                                              const void *from, size_t bytes) {
  auto &description = inside<MatmulDescription>(operation);
  switch (attribute) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
  case CUBLASLT_MATMUL_DESC_TRANSB: {
    auto value = static_cast<cublasOperation_t>(read<int32_t>(from, bytes));
    require(value == CUBLAS_OP_N || value == CUBLAS_OP_T, CUDA_ERROR_INVALID_VALUE, "an unknown transposition");
    (attribute == CUBLASLT_MATMUL_DESC_TRANSA ? description.transA : description.transB) = value;
    break;
  }
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    description.epilogue = static_cast<cublasLtEpilogue_t>(read<uint32_t>(from, bytes));
    break;
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    description.bias = read<const void *>(from, bytes);
    break;
  case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
    description.biasBatchStride = read<int64_t>(from, bytes);
    break;
  default:
    requireSupported(false, "an attribute that the emulator does not have");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *made, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  require(made != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the layout");
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new MatrixLayout{type, rows, columns, leading});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &inside<MatrixLayout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void *from,
                                                size_t bytes) {
  auto &layout = inside<MatrixLayout>(handle);
  switch (attribute) {
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    layout.batch = read<int32_t>(from, bytes);
    require(layout.batch > 0, CUDA_ERROR_INVALID_VALUE, "an empty batch");
    break;
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    layout.batchStride = read<int64_t>(from, bytes);
    break;
  case CUBLASLT_MATRIX_LAYOUT_ORDER:
    requireSupported(read<int32_t>(from, bytes) == CUBLASLT_ORDER_COL, "the emulator's matrices are column-major");
    break;
  default:
    requireSupported(false, "an attribute that the emulator does not have");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *made) {
  require(made != nullptr, CUDA_ERROR_INVALID_VALUE, "no place for the preference");
  *made = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &inside<Preference>(preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *from,
                                                    size_t bytes) {
  auto &preference = inside<Preference>(handle);
  switch (attribute) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    preference.workspace = read<uint64_t>(from, bytes);
    break;
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    preference.alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] = read<uint32_t>(from, bytes);
    break;
  default:
    requireSupported(false, "a preference that the emulator does not have");
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t wanted, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *returned) {
  require(handle && requested > 0 && results && returned, CUDA_ERROR_INVALID_VALUE, "no place for an algorithm");
  Operands operands(operation, a, b, c, d);
  auto &preference = inside<Preference>(wanted);
  *returned = 0;
  Algorithm algorithm = {operands.problem(), workspaceOf(operands), {}};
  requireSupported(algorithm.workspace <= preference.workspace, "no algorithm with so little workspace");
  for (int i = 0; i < 4; ++i) // vector accesses are 16 bytes at most
    algorithm.alignment[i] = std::min<uint32_t>(16, preference.alignment[i]);
  // They compute the same, with more and more workspace; the last one is not for this problem.
  constexpr int mostAlgorithms = 3;
  for (int i = 0; i < std::min(requested, mostAlgorithms); ++i) {
    cublasLtMatmulHeuristicResult_t &result = results[i] = {};
    std::memcpy(&result.algo, &algorithm, sizeof(algorithm));
    result.workspaceSize = algorithm.workspace;
    result.state = i + 1 < mostAlgorithms ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    ++*returned;
    algorithm.workspace += 4096;
    if (algorithm.workspace > preference.workspace)
      break;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                       cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result) {
  require(handle && algo && result, CUDA_ERROR_INVALID_VALUE, "an argument is missing");
  Operands operands(operation, a, b, c, d);
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof(algorithm));
  requireSupported(algorithm.problem == operands.problem(), "an algorithm of another problem");
  *result = {};
  result->algo = *algo;
  result->workspaceSize = algorithm.workspace;
  result->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t a, const void *B, cublasLtMatrixLayout_t b, const void *beta,
                              const void *C, cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspaceBytes,
                              cudaStream_t stream) {
  require(handle && alpha && beta, CUDA_ERROR_INVALID_VALUE, "an argument is missing");
  Operands operands(operation, a, b, c, d);
  requireSupported(algo != nullptr, "the emulator wants an algorithm");
  Algorithm algorithm;
  std::memcpy(&algorithm, algo, sizeof(algorithm));
  require(algorithm.problem == operands.problem(), CUDA_ERROR_INVALID_VALUE, "an algorithm of another problem");
  require(algorithm.workspace <= workspaceBytes, CUDA_ERROR_INVALID_VALUE, "the algorithm needs more workspace");
  require(reinterpret_cast<uintptr_t>(workspace) % 256 == 0, CUDA_ERROR_INVALID_VALUE, "a misaligned workspace");
  const void *pointers[] = {A, B, C, D};
  for (int i = 0; i < 4; ++i)
    require(reinterpret_cast<uintptr_t>(pointers[i]) % algorithm.alignment[i] == 0, CUDA_ERROR_INVALID_VALUE,
            "an operand that is less aligned than was promised");
  require(!(operands.hasBias() || operands.sumsA()) || operands.operation.bias, CUDA_ERROR_INVALID_VALUE, "no bias");
  auto run = [=, bytes = algorithm.workspace](auto product) {
    enqueue(reinterpret_cast<CUstream>(stream), "cublasLtMatmul", [=](const Memory &memory, int device) {
      if (bytes > 0)
        std::memset(memory.resolve(device, reinterpret_cast<CUdeviceptr>(workspace), bytes), 0xff, bytes);
      product.run(memory, device);
    });
  };
  if (operands.operation.scale == CUDA_R_32F)
    run(productOf<float>(operands, alpha, beta, A, B, C, D));
  else
    run(productOf<double>(operands, alpha, beta, A, B, C, D));
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace drt::cuda::emulated

const drt::cuda::CublasLtTable &drt::cuda::cublasLt() {
  static const CublasLtTable made = [] {
    using namespace emulated;
    CublasLtTable table;
    DRT_CUBLASLT_FUNCTIONS(DRT_EMULATED_ENTRY)
    return table;
  }();
  return made;
}
