//===- call_sites.h - What library call sites keep between steps ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A call site of drt_matmul, drt_conv2d or drt_pool prepares what its library wants (primitives, descriptors, an
// algorithm, scratch memory) at its first execution and keeps it here, so that later steps allocate nothing.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_CALL_SITES_H
#define DRT_CORE_CALL_SITES_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace drt {

/// What one call site keeps. Each kind of call derives its own.
class Prepared {
public:
  virtual ~Prepared();
};

/// The call sites of one replica: one slot a number in drt_program's num_primitives. Belongs to the replica; used by
/// its thread alone.
class CallSites {
public:
  explicit CallSites(int32_t count) : slots(static_cast<size_t>(count)) {}

  /// The slot of a call site, made by `make` (returning std::unique_ptr<Site>) at the first call. A call site is
  /// always of one kind, so the type is known.
  template <class Site, class Make> Site &get(int32_t site, Make &&make) {
    std::unique_ptr<Prepared> &slot = slots[static_cast<size_t>(site)];
    if (!slot) [[unlikely]]
      slot = std::forward<Make>(make)();
    return static_cast<Site &>(*slot);
  }

private:
  std::vector<std::unique_ptr<Prepared>> slots;
};

} // namespace drt

#endif // DRT_CORE_CALL_SITES_H
