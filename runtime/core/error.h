//===- error.h - What the runtime throws ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The runtime's one exception. The message names the thing that is wrong and
// the way out; main() prints it and ends with the status. It never crosses
// the C API.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_ERROR_H
#define DRT_CORE_ERROR_H

#include <stdexcept>
#include <string>

namespace drt {

class Error : public std::runtime_error {
public:
  explicit Error(const std::string &message, int exitStatus = 1)
      : std::runtime_error(message), exitStatus_(exitStatus) {}

  // What the process ends with: 1 the input is wrong, 2 the command line is.
  int exitStatus() const { return exitStatus_; }

private:
  int exitStatus_;
};

} // namespace drt
#endif // DRT_CORE_ERROR_H
