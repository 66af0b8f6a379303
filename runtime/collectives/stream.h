//===- stream.h - A connection that bytes go over, in order ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_STREAM_H
#define DRT_COLLECTIVES_STREAM_H

#include <cstdint>

namespace drt {

/// Neither call waits. One thread reads, another may write; both may be the same. Errors of the connection are thrown
/// (Error), so is its end.
class Stream {
public:
  virtual ~Stream() = default;

  /// How many bytes were read or written; 0 where none can be at the moment.
  virtual int64_t read(char *data, int64_t bytes) = 0;
  virtual int64_t write(const char *data, int64_t bytes) = 0;

  /// To poll for more.
  virtual int descriptor() const = 0;

  /// Makes both calls fail, here and at the other end. Any thread.
  virtual void shut() noexcept = 0;
};

} // namespace drt

#endif // DRT_COLLECTIVES_STREAM_H
