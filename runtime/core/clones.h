//===- clones.h - One function, compiled for several machines -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_CLONES_H
#define DRT_CORE_CLONES_H

// The runtime is compiled for every x86-64 machine; a function marked so has
// wider clones besides, chosen when the program is loaded. Sanitizers instrument
// the choosing functions, which run before their own start-up, so they go without.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DRT_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DRT_SANITIZED
#endif
#if defined(DRT_SANITIZED) || !defined(__GNUC__) || !defined(__x86_64__)
#define DRT_WIDE_CLONES
#else
#define DRT_WIDE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

#endif // DRT_CORE_CLONES_H
