//===- images.h - Some of the images of a call ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_IMAGES_H
#define DRT_CPU_IMAGES_H

#include "core/dtype.h"
#include "core/ranges.h"

#include <type_traits>

namespace drt {

/// A convolution or a pooling, of which each core computes some images. `Desc`: drt_conv2d_desc or drt_pool_desc.
template <class Desc> class Images {
public:
  /// `channels`: of an output's pixel.
  Images(const Desc &desc, int64_t channels)
      : desc(desc), input(desc.h * desc.w * desc.c * dtypeSize(desc.dtype)),
        output(desc.oh * desc.ow * channels * dtypeSize(desc.dtype)) {}

  int64_t count() const { return desc.n; }

  /// The call on `images` alone, and where their pixels begin in all inputs or outputs. Null stays null.
  Desc part(Range images) const {
    Desc part = desc;
    part.n = images.size();
    return part;
  }
  template <class T> T *in(T *data, Range images) const { return at(data, images.begin * input); }
  template <class T> T *out(T *data, Range images) const { return at(data, images.begin * output); }

private:
  template <class T> static T *at(T *data, int64_t bytes) {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return data ? static_cast<Byte *>(data) + bytes : nullptr;
  }

  const Desc &desc;
  int64_t input, output; // of an image, in bytes
};

} // namespace drt

#endif // DRT_CPU_IMAGES_H
