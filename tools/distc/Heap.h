//===- Heap.h - Memory for large graphs -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_DISTC_HEAP_H
#define DISTC_TOOLS_DISTC_HEAP_H

#include <string>

namespace distc {

/// Takes address space for what will be made of the graph in `file`, and asks for huge pages in it: passes go through
/// all of a large graph again and again, and miss the translation of addresses as often as caches. Call it once, before
/// the graph is read. Does nothing for small graphs and where the system refuses.
void reserveHeap(const std::string &file);

} // namespace distc

#endif // DISTC_TOOLS_DISTC_HEAP_H
