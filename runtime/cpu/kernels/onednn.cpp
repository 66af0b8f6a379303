//===- onednn.cpp - A oneDNN primitive with everything it needs to run -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/onednn.h"
#include "cpu/kernels/library_matmul.h"

/// OpenMP's own, of the library that dnnl is linked with; its header belongs to one compiler.
extern "C" void omp_set_num_threads(int threads);

using namespace drt;

dnnl::engine &drt::cpuEngine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

static thread_local int usedThreads = 0;

void drt::useLibraryThreads(int threads) {
  if (usedThreads == threads)
    return;
  omp_set_num_threads(threads);
  usedThreads = threads;
}

int drt::usedLibraryThreads() { return usedThreads; }

dnnl::primitive_attr drt::callAttributes(int32_t epilogue, bool accumulate) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops operations;
  if (epilogue == DRT_EPILOGUE_RELU)
    operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0.0f, 0.0f);
  else if (epilogue == DRT_EPILOGUE_TANH)
    operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_tanh, 0.0f, 0.0f);
  else if (epilogue == DRT_EPILOGUE_SIGMOID)
    operations.append_eltwise(1.0f, dnnl::algorithm::eltwise_logistic, 0.0f, 0.0f);
  if (accumulate)
    operations.append_sum(1.0f);
  attributes.set_post_ops(operations);
  return attributes;
}

LibraryCall::LibraryCall(Scratch &memory, dnnl::primitive primitive, const std::vector<Argument> &arguments,
                         const dnnl::memory::desc &scratchpad)
    : primitive(std::move(primitive)), stream(cpuEngine()), scratch(memory, scratchpad.get_size()) {
  for (const Argument &argument : arguments) {
    memories.emplace_back(argument.desc, cpuEngine(), nullptr);
    exec.push_back({argument.name, memories.back().get()});
  }
  if (scratch.data()) {
    memories.emplace_back(scratchpad, cpuEngine(), nullptr);
    exec.push_back({DNNL_ARG_SCRATCHPAD, memories.back().get()});
  }
}

void LibraryCall::bind(size_t argument, const void *data) {
  // The library's memory objects carry inputs and outputs alike.
  memories[argument].set_data_handle(const_cast<void *>(data));
}

void LibraryCall::run() {
  if (scratch.data())
    memories.back().set_data_handle(scratch.data());
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(exec.size()), exec.data()),
      "oneDNN could not execute a prepared primitive");
}

LibraryCall drt::makeReorder(Scratch &memory, const dnnl::memory::desc &from, const dnnl::memory::desc &to) {
  dnnl::reorder::primitive_desc description(cpuEngine(), from, cpuEngine(), to, callAttributes());
  return LibraryCall(memory, dnnl::reorder(description), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}},
                     description.scratchpad_desc());
}
