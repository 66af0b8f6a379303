//===- functions.h - What the runtime calls of CUDA's libraries -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// One line a function. Nothing of CUDA is linked: a table of pointers (tables.h)
// has a member for each line, filled from the shared libraries of the machine or
// by the emulator. The headers of the toolkit give types and, through their
// macros, the versioned names (cuMemAlloc is cuMemAlloc_v2).
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_API_FUNCTIONS_H
#define DRT_CUDA_API_FUNCTIONS_H

// libcuda.so.1, part of the GPU's driver.
#define DRT_DRIVER_FUNCTIONS(F)                                                                                        \
  F(cuInit)                                                                                                            \
  F(cuDriverGetVersion)                                                                                                \
  F(cuGetErrorName)                                                                                                    \
  F(cuGetErrorString)                                                                                                  \
  F(cuDeviceGetCount)                                                                                                  \
  F(cuDeviceGet)                                                                                                       \
  F(cuDeviceGetName)                                                                                                   \
  F(cuDeviceGetAttribute)                                                                                              \
  F(cuDevicePrimaryCtxRetain)                                                                                          \
  F(cuDevicePrimaryCtxRelease)                                                                                         \
  F(cuCtxSetCurrent)                                                                                                   \
  F(cuMemGetInfo)                                                                                                      \
  F(cuMemAlloc)                                                                                                        \
  F(cuMemFree)                                                                                                         \
  F(cuMemHostAlloc)                                                                                                    \
  F(cuMemFreeHost)                                                                                                     \
  F(cuMemcpyHtoDAsync)                                                                                                 \
  F(cuMemcpyDtoHAsync)                                                                                                 \
  F(cuMemcpyDtoDAsync)                                                                                                 \
  F(cuMemcpy3DAsync)                                                                                                   \
  F(cuMemsetD16Async)                                                                                                  \
  F(cuMemsetD8Async)                                                                                                   \
  F(cuStreamCreateWithPriority)                                                                                        \
  F(cuStreamDestroy)                                                                                                   \
  F(cuStreamSynchronize)                                                                                               \
  F(cuStreamQuery)                                                                                                     \
  F(cuStreamWaitEvent)                                                                                                 \
  F(cuStreamBeginCapture)                                                                                              \
  F(cuStreamEndCapture)                                                                                                \
  F(cuEventCreate)                                                                                                     \
  F(cuEventDestroy)                                                                                                    \
  F(cuEventRecord)                                                                                                     \
  F(cuEventRecordWithFlags)                                                                                            \
  F(cuEventQuery)                                                                                                      \
  F(cuEventSynchronize)                                                                                                \
  F(cuEventElapsedTime)                                                                                                \
  F(cuGraphInstantiateWithFlags)                                                                                       \
  F(cuGraphLaunch)                                                                                                     \
  F(cuGraphExecDestroy)                                                                                                \
  F(cuGraphDestroy)                                                                                                    \
  F(cuGraphGetNodes)                                                                                                   \
  F(cuModuleLoadDataEx)                                                                                                \
  F(cuModuleGetFunction)                                                                                               \
  F(cuModuleUnload)                                                                                                    \
  F(cuLaunchKernel)                                                                                                    \
  F(cuLaunchHostFunc)

// libcublasLt.so
#define DRT_CUBLASLT_FUNCTIONS(F)                                                                                      \
  F(cublasLtCreate)                                                                                                    \
  F(cublasLtDestroy)                                                                                                   \
  F(cublasLtGetStatusString)                                                                                           \
  F(cublasLtGetVersion)                                                                                                \
  F(cublasLtMatmul)                                                                                                    \
  F(cublasLtMatmulDescCreate)                                                                                          \
  F(cublasLtMatmulDescDestroy)                                                                                         \
  F(cublasLtMatmulDescSetAttribute)                                                                                    \
  F(cublasLtMatrixLayoutCreate)                                                                                        \
  F(cublasLtMatrixLayoutDestroy)                                                                                       \
  F(cublasLtMatrixLayoutSetAttribute)                                                                                  \
  F(cublasLtMatmulPreferenceCreate)                                                                                    \
  F(cublasLtMatmulPreferenceDestroy)                                                                                   \
  F(cublasLtMatmulPreferenceSetAttribute)                                                                              \
  F(cublasLtMatmulAlgoGetHeuristic)                                                                                    \
  F(cublasLtMatmulAlgoCheck)

// libcudnn.so.9
#define DRT_CUDNN_FUNCTIONS(F)                                                                                         \
  F(cudnnCreate)                                                                                                       \
  F(cudnnDestroy)                                                                                                      \
  F(cudnnSetStream)                                                                                                    \
  F(cudnnGetVersion)                                                                                                   \
  F(cudnnGetCudartVersion)                                                                                             \
  F(cudnnGetErrorString)                                                                                               \
  F(cudnnCreateTensorDescriptor)                                                                                       \
  F(cudnnDestroyTensorDescriptor)                                                                                      \
  F(cudnnSetTensor4dDescriptor)                                                                                        \
  F(cudnnSetTensor4dDescriptorEx)                                                                                      \
  F(cudnnTransformTensor)                                                                                              \
  F(cudnnCreateFilterDescriptor)                                                                                       \
  F(cudnnDestroyFilterDescriptor)                                                                                      \
  F(cudnnSetFilter4dDescriptor)                                                                                        \
  F(cudnnCreateConvolutionDescriptor)                                                                                  \
  F(cudnnDestroyConvolutionDescriptor)                                                                                 \
  F(cudnnSetConvolution2dDescriptor)                                                                                   \
  F(cudnnSetConvolutionGroupCount)                                                                                     \
  F(cudnnSetConvolutionMathType)                                                                                       \
  F(cudnnCreateActivationDescriptor)                                                                                   \
  F(cudnnDestroyActivationDescriptor)                                                                                  \
  F(cudnnSetActivationDescriptor)                                                                                      \
  F(cudnnGetConvolutionForwardAlgorithm_v7)                                                                            \
  F(cudnnGetConvolutionBackwardDataAlgorithm_v7)                                                                       \
  F(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                                                                     \
  F(cudnnGetConvolutionForwardWorkspaceSize)                                                                           \
  F(cudnnGetConvolutionBackwardDataWorkspaceSize)                                                                      \
  F(cudnnGetConvolutionBackwardFilterWorkspaceSize)                                                                    \
  F(cudnnConvolutionForward)                                                                                           \
  F(cudnnConvolutionBiasActivationForward)                                                                             \
  F(cudnnAddTensor)                                                                                                    \
  F(cudnnActivationForward)                                                                                            \
  F(cudnnConvolutionBackwardData)                                                                                      \
  F(cudnnConvolutionBackwardFilter)                                                                                    \
  F(cudnnCreatePoolingDescriptor)                                                                                      \
  F(cudnnDestroyPoolingDescriptor)                                                                                     \
  F(cudnnSetPooling2dDescriptor)                                                                                       \
  F(cudnnPoolingForward)                                                                                               \
  F(cudnnPoolingBackward)

// libnccl.so.2
#define DRT_NCCL_FUNCTIONS(F)                                                                                          \
  F(ncclGetVersion)                                                                                                    \
  F(ncclGetErrorString)                                                                                                \
  F(ncclGetLastError)                                                                                                  \
  F(ncclGetUniqueId)                                                                                                   \
  F(ncclCommInitRank)                                                                                                  \
  F(ncclCommInitRankConfig)                                                                                            \
  F(ncclCommFinalize)                                                                                                  \
  F(ncclCommDestroy)                                                                                                   \
  F(ncclCommAbort)                                                                                                     \
  F(ncclCommGetAsyncError)                                                                                             \
  F(ncclGroupStart)                                                                                                    \
  F(ncclGroupEnd)                                                                                                      \
  F(ncclBroadcast)                                                                                                     \
  F(ncclAllReduce)                                                                                                     \
  F(ncclReduceScatter)                                                                                                 \
  F(ncclAllGather)

#endif // DRT_CUDA_API_FUNCTIONS_H
