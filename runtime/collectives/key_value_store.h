//===- key_value_store.h - Where tasks leave words for each other -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_KEY_VALUE_STORE_H
#define DRT_COLLECTIVES_KEY_VALUE_STORE_H

#include <string>

namespace drt {

/// How tasks that are not connected yet find each other. Only the tasks of the plan read and write it.
class KeyValueStore {
public:
  virtual ~KeyValueStore() = default;
  virtual void set(const std::string &key, const std::string &value) = 0;
  /// Blocks until the key is set; throws Error where that will not happen.
  virtual std::string get(const std::string &key) = 0;
};

} // namespace drt

#endif // DRT_COLLECTIVES_KEY_VALUE_STORE_H
