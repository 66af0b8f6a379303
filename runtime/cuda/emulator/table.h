//===- table.h - The emulator's functions as the tables want them ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A function of the emulator has CUDA's name and signature, in namespace drt::cuda::emulated. Entry is what goes into
// the table: it asks whether a test wants the call to fail, and makes a status of what is thrown.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_TABLE_H
#define DRT_CUDA_EMULATOR_TABLE_H

#include "cuda/emulator/failure.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>

namespace drt::cuda::emulated {

/// A string as a template's argument.
template <size_t N> struct Name {
  char text[N];
  constexpr Name(const char (&given)[N]) { std::copy_n(given, N, text); }
};

/// The status that a test wants of this call.
std::optional<int> injected(const char *function);
/// Likewise of a kernel that runs now.
std::optional<int> injectedInKernel(const std::string &kernel);

/// What a library's status is where the driver failed. Specialized beside each library.
template <class Status> Status statusOf(const Failure &failure);
template <> inline CUresult statusOf(const Failure &failure) { return failure.code; }

template <auto function, Name name> struct Entry;
template <class Result, class... Arguments, Result (*function)(Arguments...), Name name> struct Entry<function, name> {
  static Result call(Arguments... arguments) {
    // The few that return no status: a version, words.
    if constexpr (!std::is_enum_v<Result>) {
      return function(arguments...);
    } else {
      if (std::optional<int> status = injected(name.text))
        return static_cast<Result>(*status);
      try {
        return function(arguments...);
      } catch (const Failure &failure) {
        remember(failure);
        return statusOf<Result>(failure);
      } catch (const std::exception &error) {
        Failure failure(CUDA_ERROR_UNKNOWN, error.what());
        remember(failure);
        return statusOf<Result>(failure);
      }
    }
  }
};

/// For the function lists of api/functions.h: members in their order. Macro arguments are expanded, so names are the
/// versioned ones here as in the tables.
#define DRT_EMULATED_STRING(name) #name
#define DRT_EMULATED_ENTRY(function) table.function = &Entry<&emulated::function, DRT_EMULATED_STRING(function)>::call;

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_TABLE_H
