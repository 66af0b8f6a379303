// What the real libraries refuse, the emulated ones refuse.
#include "test/unit/cuda/emulator/device.h"

using namespace drt::cuda;
using namespace drt::cuda::test;

namespace {
// c[2 x 3] = a[2 x 4] * b[4 x 3], column-major.
struct Product {
  Device device;
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulPreference_t preference;

  explicit Product(cublasComputeType_t compute = CUBLAS_COMPUTE_32F, cudaDataType_t type = CUDA_R_32F) {
    cublasLt().cublasLtCreate(&handle);
    cublasLt().cublasLtMatmulDescCreate(&operation, compute, type);
    cublasLt().cublasLtMatrixLayoutCreate(&a, type, 2, 4, 2);
    cublasLt().cublasLtMatrixLayoutCreate(&b, type, 4, 3, 4);
    cublasLt().cublasLtMatrixLayoutCreate(&c, type, 2, 3, 2);
    cublasLt().cublasLtMatmulPreferenceCreate(&preference);
    setWorkspace(1 << 20);
  }
  ~Product() {
    cublasLt().cublasLtMatmulPreferenceDestroy(preference);
    for (cublasLtMatrixLayout_t layout : {a, b, c})
      cublasLt().cublasLtMatrixLayoutDestroy(layout);
    cublasLt().cublasLtMatmulDescDestroy(operation);
    cublasLt().cublasLtDestroy(handle);
  }
  void setWorkspace(uint64_t bytes) {
    cublasLt().cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
                                                    sizeof bytes);
  }
  void setEpilogue(cublasLtEpilogue_t epilogue) {
    auto value = static_cast<uint32_t>(epilogue);
    cublasLt().cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &value, sizeof value);
  }
  cublasStatus_t choose(cublasLtMatmulHeuristicResult_t &result) {
    int count = 0;
    return cublasLt().cublasLtMatmulAlgoGetHeuristic(handle, operation, a, b, c, c, preference, 1, &result, &count);
  }
};
} // namespace

TEST_CASE("cuBLASLt refuses what its manual does not list") {
  cublasLtMatmulHeuristicResult_t result;
  {
    Product product;
    REQUIRE(product.choose(result) == CUBLAS_STATUS_SUCCESS);
    product.setEpilogue(CUBLASLT_EPILOGUE_GELU);
    REQUIRE(product.choose(result) == CUBLAS_STATUS_NOT_SUPPORTED);
    uint64_t rows = 3;
    cublasLt().cublasLtMatmulDescDestroy(product.operation);
    cublasLt().cublasLtMatmulDescCreate(&product.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLt().cublasLtMatrixLayoutDestroy(product.a);
    cublasLt().cublasLtMatrixLayoutCreate(&product.a, CUDA_R_32F, rows, 4, 3);
    REQUIRE(product.choose(result) == CUBLAS_STATUS_INVALID_VALUE); // does not fit
    char wrong = 0;
    REQUIRE(cublasLt().cublasLtMatmulDescSetAttribute(product.operation, CUBLASLT_MATMUL_DESC_TRANSA, &wrong, 1) ==
            CUBLAS_STATUS_INVALID_VALUE);
  }
  Product product(CUBLAS_COMPUTE_64F, CUDA_R_64F);
  product.setEpilogue(CUBLASLT_EPILOGUE_RELU);
  REQUIRE(product.choose(result) == CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST_CASE("cuBLASLt wants what it was promised: the algorithm's problem, its workspace, its alignment") {
  Product product;
  cublasLtMatmulHeuristicResult_t result;
  REQUIRE(product.choose(result) == CUBLAS_STATUS_SUCCESS);
  Array<float> a(product.device, std::vector<float>(9, 1)), b(product.device, std::vector<float>(12, 1)),
      c(product.device, std::vector<float>(6)), workspace(product.device, std::vector<float>(1 << 18));
  auto run = [&](const void *from, size_t workspaceBytes) {
    float one = 1, zero = 0;
    return cublasLt().cublasLtMatmul(product.handle, product.operation, &one, from, product.a, b.data(), product.b,
                                     &zero, c.data(), product.c, c.data(), product.c, &result.algo, workspace.data(),
                                     workspaceBytes, reinterpret_cast<cudaStream_t>(product.device.stream));
  };
  REQUIRE(run(a.data(), 1 << 20) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(c.read() == std::vector<float>(6, 4));
  REQUIRE(run(static_cast<float *>(a.data()) + 1, 1 << 20) == CUBLAS_STATUS_INVALID_VALUE);
  if (result.workspaceSize > 0)
    REQUIRE(run(a.data(), result.workspaceSize - 1) == CUBLAS_STATUS_INVALID_VALUE);
  product.setEpilogue(CUBLASLT_EPILOGUE_RELU);
  REQUIRE(run(a.data(), 1 << 20) == CUBLAS_STATUS_INVALID_VALUE);
}

TEST_CASE("TF32 is as inexact as it is on a GPU") {
  for (auto [compute, expected] :
       {std::pair(CUBLAS_COMPUTE_32F, 4.004f), std::pair(CUBLAS_COMPUTE_32F_FAST_TF32, 4.00390625f)}) {
    Product product(compute);
    cublasLtMatmulHeuristicResult_t result;
    REQUIRE(product.choose(result) == CUBLAS_STATUS_SUCCESS);
    Array<float> a(product.device, std::vector<float>(8, 1.001f)), b(product.device, std::vector<float>(12, 1)),
        c(product.device, std::vector<float>(6)), workspace(product.device, std::vector<float>(1 << 18));
    float one = 1, zero = 0;
    REQUIRE(cublasLt().cublasLtMatmul(product.handle, product.operation, &one, a.data(), product.a, b.data(), product.b,
                                      &zero, c.data(), product.c, c.data(), product.c, &result.algo, workspace.data(),
                                      1 << 20,
                                      reinterpret_cast<cudaStream_t>(product.device.stream)) == CUBLAS_STATUS_SUCCESS);
    REQUIRE(c.read()[0] == expected);
  }
}

TEST_CASE("cuDNN refuses layouts that do not go together, and outputs of another size") {
  Device device;
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t how;
  cudnn().cudnnCreate(&handle);
  cudnn().cudnnCreateTensorDescriptor(&x);
  cudnn().cudnnCreateTensorDescriptor(&y);
  cudnn().cudnnCreateFilterDescriptor(&w);
  cudnn().cudnnCreateConvolutionDescriptor(&how);
  cudnn().cudnnSetConvolution2dDescriptor(how, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  auto choose = [&](cudnnTensorFormat_t images, cudnnTensorFormat_t filters, int outputs, cudnnDataType_t type) {
    cudnn().cudnnSetTensor4dDescriptor(x, images, type, 2, 3, 5, 5);
    cudnn().cudnnSetTensor4dDescriptor(y, images, type, 2, 4, outputs, 5);
    cudnn().cudnnSetFilter4dDescriptor(w, type, filters, 4, 3, 3, 3);
    cudnnConvolutionFwdAlgoPerf_t found[4];
    int count;
    return cudnn().cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, how, y, 4, &count, found);
  };
  REQUIRE(choose(CUDNN_TENSOR_NHWC, CUDNN_TENSOR_NHWC, 5, CUDNN_DATA_FLOAT) == CUDNN_STATUS_SUCCESS);
  REQUIRE(choose(CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NCHW, 5, CUDNN_DATA_FLOAT) == CUDNN_STATUS_SUCCESS);
  REQUIRE(choose(CUDNN_TENSOR_NHWC, CUDNN_TENSOR_NCHW, 5, CUDNN_DATA_FLOAT) == CUDNN_STATUS_NOT_SUPPORTED);
  REQUIRE(choose(CUDNN_TENSOR_NHWC, CUDNN_TENSOR_NHWC, 6, CUDNN_DATA_FLOAT) == CUDNN_STATUS_BAD_PARAM);
  REQUIRE(choose(CUDNN_TENSOR_NHWC, CUDNN_TENSOR_NHWC, 5, CUDNN_DATA_DOUBLE) == CUDNN_STATUS_NOT_SUPPORTED);
  cudnn().cudnnDestroyConvolutionDescriptor(how);
  cudnn().cudnnDestroyFilterDescriptor(w);
  cudnn().cudnnDestroyTensorDescriptor(x);
  cudnn().cudnnDestroyTensorDescriptor(y);
  cudnn().cudnnDestroy(handle);
}
