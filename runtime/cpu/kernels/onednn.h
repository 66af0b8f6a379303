//===- onednn.h - A oneDNN primitive with everything it needs to run -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_ONEDNN_H
#define DRT_CPU_KERNELS_ONEDNN_H

#include "cpu/kernels/scratch.h"

#include "drt/drt.h"

#include <cstddef>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace drt {

/// The one CPU engine of the process. Any thread.
dnnl::engine &cpuEngine();

/// Attributes whose scratchpad is the caller's, and the fused epilogue of drt.h.
dnnl::primitive_attr callAttributes(int32_t epilogue = DRT_EPILOGUE_NONE, bool accumulate = false);

/// A primitive, its memory objects and its scratchpad, made once and executed with
/// other pointers each time. Used by one thread.
class LibraryCall {
public:
  struct Argument {
    int name; // DNNL_ARG_*
    dnnl::memory::desc desc;
  };

  LibraryCall() = default;
  LibraryCall(Scratch &memory, dnnl::primitive primitive, const std::vector<Argument> &arguments,
              const dnnl::memory::desc &scratchpad = {});

  explicit operator bool() const { return !exec.empty(); }

  /// Runs with one pointer an argument, in the order given to the constructor.
  template <class... Pointers> void operator()(Pointers... pointers) {
    size_t at = 0;
    (bind(at++, pointers), ...);
    run();
  }

private:
  void bind(size_t argument, const void *data);
  void run();

  dnnl::primitive primitive;
  dnnl::stream stream;
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> exec;
  Buffer scratch;
};

/// Not the library's reference implementation, a scalar loop.
template <class Description> bool isFast(const Description &description) {
  return !std::string_view(description.impl_info_str()).starts_with("ref");
}

/// What `make` makes, or an empty call where the library has nothing for these types on this machine: bfloat16 before
/// AVX-512.
template <class Make> LibraryCall makeWhereThereIs(Make make) {
  try {
    return make();
  } catch (const dnnl::error &error) {
    if (error.status != dnnl_unimplemented)
      throw;
    return {};
  }
}

/// A copy from one layout to another.
LibraryCall makeReorder(Scratch &memory, const dnnl::memory::desc &from, const dnnl::memory::desc &to);

} // namespace drt

#endif // DRT_CPU_KERNELS_ONEDNN_H
