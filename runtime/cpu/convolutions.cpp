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
#include "core/dtype.h"
#include "cpu/guarded.h"
#include "cpu/kernels/conv2d.h"

using namespace drt;

namespace {

struct Images {
  explicit Images(const drt_conv2d_desc &desc)
      : desc(desc), size(dtypeSize(desc.dtype)), input(desc.h * desc.w * desc.c * size),
        output(desc.oh * desc.ow * desc.k * size) {}

  drt_conv2d_desc part(Range images) const {
    drt_conv2d_desc of = desc;
    of.n = images.size();
    return of;
  }
  const void *in(const void *data, Range images) const {
    return static_cast<const char *>(data) + images.begin * input;
  }
  void *in(void *data, Range images) const { return static_cast<char *>(data) + images.begin * input; }
  const void *out(const void *data, Range images) const {
    return static_cast<const char *>(data) + images.begin * output;
  }
  void *out(void *data, Range images) const { return static_cast<char *>(data) + images.begin * output; }

  int64_t count() const { return desc.n; }
  int64_t grain() const { return grainOf(desc.oh * desc.ow * desc.k * desc.kh * desc.kw * (desc.c / desc.groups)); }
  int64_t filterElements() const { return desc.kh * desc.kw * (desc.c / desc.groups) * desc.k; }

  const drt_conv2d_desc &desc;
  int64_t size, input, output; // of an element and of an image, in bytes
};

template <class T> void add(T *to, const void *from, Range part) {
  for (int64_t i = part.begin; i < part.end; ++i)
    to[i] += static_cast<const T *>(from)[i];
}

// The cores' gradients of the filter but the first, which lies where the sum is to be.
void addPartials(Replica &replica, const Images &images, int64_t parts, void *filterGrad) {
  replica.divide(images.filterElements(), 1 << 14, [&](Replica::Core &, Range part) {
    for (int64_t core = 1; core < parts; ++core) {
      const void *partial = replica.cores[core].partial.data();
      images.desc.dtype == DRT_F64 ? add(static_cast<double *>(filterGrad), partial, part)
                                   : add(static_cast<float *>(filterGrad), partial, part);
    }
  });
}

} // namespace

extern "C" {
void drt_conv2d(drt_replica *replica, int32_t primitive, const drt_conv2d_desc *desc, const void *input,
                const void *filter, const void *bias, void *output) {
  guarded(replica, [&](Replica &replica) {
    const Images images(*desc);
    replica.divide(images.count(), images.grain(), [&](Replica::Core &core, Range part) {
      conv2d(core.primitives, primitive, images.part(part), images.in(input, part), filter, bias,
             images.out(output, part));
    });
  });
}

void drt_conv2d_grad_input(drt_replica *replica, int32_t primitive, const drt_conv2d_desc *desc, const void *filter,
                           const void *output_grad, void *input_grad) {
  guarded(replica, [&](Replica &replica) {
    const Images images(*desc);
    replica.divide(images.count(), images.grain(), [&](Replica::Core &core, Range part) {
      conv2dGradInput(core.primitives, primitive, images.part(part), filter, images.out(output_grad, part),
                      images.in(input_grad, part));
    });
  });
}

void drt_conv2d_grad_filter(drt_replica *replica, int32_t primitive, const drt_conv2d_desc *desc, const void *input,
                            const void *output_grad, void *filter_grad) {
  guarded(replica, [&](Replica &replica) {
    const Images images(*desc);
    std::atomic<int64_t> parts = 0;
    replica.divide(images.count(), images.grain(), [&](Replica::Core &core, Range part) {
      void *to = filter_grad;
      if (part.begin > 0) {
        if (core.partial.bytes() < images.filterElements() * images.size)
          core.partial = Memory(images.filterElements() * images.size);
        to = core.partial.data();
      }
      conv2dGradFilter(core.primitives, primitive, images.part(part), images.in(input, part),
                       images.out(output_grad, part), to);
      parts.fetch_add(1);
    });
    if (parts.load() > 1)
      addPartials(replica, images, parts.load(), filter_grad);
  });
}
} // extern "C"
