//===- convolutions.cpp - drt.h's convolutions, which need oneDNN ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The cores of a replica divide the images. Each has a gradient of the filter of its own
// images, which are then added in the order of the cores.
//
//===----------------------------------------------------------------------===//
#include "cpu/guarded.h"
#include "cpu/images.h"
#include "cpu/kernels/conv2d.h"

using namespace drt;

namespace {

int64_t filterElements(const drt_conv2d_desc &d) { return d.kh * d.kw * (d.c / d.groups) * d.k; }

// Images that are worth a core of their own.
int64_t grainOf(const drt_conv2d_desc &desc) { return drt::grainOf(desc.oh * desc.ow * filterElements(desc)); }

// Of the filter's gradient.
int32_t gradType(const drt_conv2d_desc &desc) { return desc.widens ? DRT_F32 : desc.dtype; }

template <class T> void add(T *to, const void *from, Range part) {
  for (int64_t i = part.begin; i < part.end; ++i)
    to[i] += static_cast<const T *>(from)[i];
}

// The cores' gradients of the filter but the first, which lies where the sum is to be.
void addPartials(Replica &replica, const drt_conv2d_desc &desc, int64_t parts, void *filterGrad) {
  replica.divide(filterElements(desc), 1 << 14, [&](Replica::Core &, Range part) {
    for (int64_t core = 1; core < parts; ++core) {
      const void *partial = replica.cores[core].partial.data();
      desc.dtype == DRT_F64 ? add(static_cast<double *>(filterGrad), partial, part)
                            : add(static_cast<float *>(filterGrad), partial, part);
    }
  });
}

} // namespace

extern "C" {
void drt_conv2d(drt_replica *replica, int32_t primitive, const drt_conv2d_desc *desc, const void *input,
                const void *filter, const void *bias, void *output) {
  guarded(replica, [&](Replica &replica) {
    const Images images(*desc, desc->k);
    replica.divide(images.count(), grainOf(*desc), [&](Replica::Core &core, Range part) {
      conv2d(core.primitives, primitive, images.part(part), images.in(input, part), filter, bias,
             images.out(output, part));
    });
  });
}

void drt_conv2d_grad_input(drt_replica *replica, int32_t primitive, const drt_conv2d_desc *desc, const void *filter,
                           const void *output_grad, void *input_grad) {
  guarded(replica, [&](Replica &replica) {
    const Images images(*desc, desc->k);
    replica.divide(images.count(), grainOf(*desc), [&](Replica::Core &core, Range part) {
      conv2dGradInput(core.primitives, primitive, images.part(part), filter, images.out(output_grad, part),
                      images.in(input_grad, part));
    });
  });
}

void drt_conv2d_grad_filter(drt_replica *replica, int32_t primitive, const drt_conv2d_desc *desc, const void *input,
                            const void *output_grad, void *filter_grad) {
  guarded(replica, [&](Replica &replica) {
    const Images images(*desc, desc->k);
    std::atomic<int64_t> parts = 0;
    replica.divide(images.count(), grainOf(*desc), [&](Replica::Core &core, Range part) {
      void *to = filter_grad;
      if (part.begin > 0) {
        if (const int64_t bytes = filterElements(*desc) * dtypeSize(gradType(*desc)); core.partial.bytes() < bytes)
          core.partial = Memory(bytes);
        to = core.partial.data();
      }
      conv2dGradFilter(core.primitives, primitive, images.part(part), images.in(input, part),
                       images.out(output_grad, part), to);
      parts.fetch_add(1);
    });
    if (parts.load() > 1)
      addPartials(replica, *desc, parts.load(), filter_grad);
  });
}
} // extern "C"
