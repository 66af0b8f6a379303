//===- ObjectCache.h - Objects that were compiled before --------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_OBJECTCACHE_H
#define DISTC_PASSES_LOWER_PROGRAM_OBJECTCACHE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace distc {

/// An ELF object, as bytes.
using ObjectCode = llvm::SmallVector<char, 0>;

/// Names 128 bits of what `bytes` say, as 32 hexadecimal digits.
std::string nameContent(llvm::StringRef bytes);

/// A folder of objects, each by a name of what it was compiled from (nameContent). It saves time and nothing else: what
/// cannot be read is compiled again, what cannot be written is not kept, and a damaged file is as good as none. Several
/// processes may use one folder; functions may be called by several threads.
class ObjectCache {
public:
  /// Keeps nothing.
  ObjectCache() = default;
  /// In `folder`, which is made, for its user alone, when the first object is kept.
  explicit ObjectCache(std::string folder) : folder(std::move(folder)) {}
  /// Where programs keep such files of a user: $XDG_CACHE_HOME/distc, else ~/.cache/distc; of what this very compiler
  /// made. Keeps nothing where there is no such place.
  static ObjectCache ofUser();

  std::optional<ObjectCode> find(llvm::StringRef name) const;
  void keep(llvm::StringRef name, llvm::ArrayRef<char> object) const;
  /// Removes what was not used for longest where all of it is more than a gigabyte, and what nobody used for a month.
  void prune() const;

private:
  std::string getPath(llvm::StringRef name) const;

  std::string folder;   // "": none
  std::string compiler; // objects of another one have other names
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_OBJECTCACHE_H
