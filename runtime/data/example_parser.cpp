//===- example_parser.cpp - Features of a tf.Example ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Protocol Buffers' wire format, read in place: a generated parser would copy every list twice.
//
//===----------------------------------------------------------------------===//
#include "data/example_parser.h"

#include "core/dtype.h"
#include "core/error.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace drt {
namespace {

enum WireType { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

// A message's fields, one after the other.
class Message {
public:
  Message(std::string_view bytes, const std::string &what) : rest_(bytes), what_(what) {}

  bool atEnd() const { return rest_.empty(); }

  // The next field's number; its wire type is in type().
  uint64_t next() {
    const uint64_t key = varint();
    type_ = static_cast<int>(key & 7);
    if (key >> 3 == 0)
      fail();
    return key >> 3;
  }
  int type() const { return type_; }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty())
        fail();
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80)
        return value;
    }
    fail();
  }

  std::string_view fixed(size_t bytes) {
    if (rest_.size() < bytes)
      fail();
    const std::string_view value = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return value;
  }

  std::string_view bytes() {
    const uint64_t length = varint();
    if (length > rest_.size())
      fail();
    return fixed(length);
  }

  void skip() {
    if (type_ == Varint)
      varint();
    else if (type_ == Bytes)
      bytes();
    else if (type_ == Fixed64 || type_ == Fixed32)
      fixed(type_ == Fixed64 ? 8 : 4);
    else
      fail();
  }

  [[noreturn]] void fail() const { throw Error(what_ + " is no tf.Example: it cannot be parsed"); }

private:
  std::string_view rest_;
  const std::string &what_;
  int type_ = 0;
};

// The fields of a Feature: which list it holds. An empty list may be written as nothing.
enum ListKind { NoList = 0, BytesList = 1, FloatList = 2, Int64List = 3 };

struct List {
  uint64_t kind = NoList;
  std::string_view bytes;
};

List listOf(std::string_view feature, const std::string &what) {
  List list;
  for (Message message(feature, what); !message.atEnd();) {
    const uint64_t field = message.next();
    if (field >= BytesList && field <= Int64List && message.type() == Bytes)
      list = {field, message.bytes()};
    else
      message.skip();
  }
  return list;
}

class Reader {
public:
  Reader(const Feature &feature, char *row, const std::string &what) : feature_(feature), row_(row), what_(what) {}

  void read(const List &list) {
    if (list.kind == BytesList)
      readBytes(list.bytes);
    else if (list.kind == FloatList)
      readFloats(list.bytes);
    else if (list.kind == Int64List)
      readIntegers(list.bytes);
    else
      refuse("holds nothing");
  }

private:
  [[noreturn]] void refuse(const std::string &why) const {
    throw Error(what_ + ": the feature '" + feature_.name + "' " + why + ", but the feed '" + feature_.feed +
                "' takes " + std::to_string(feature_.count) + " " + dtypeName(feature_.dtype) + " of each example");
  }

  void readBytes(std::string_view list) const {
    int64_t values = 0;
    std::string_view value;
    for (Message message(list, what_); !message.atEnd();) {
      if (message.next() != 1 || message.type() != Bytes) {
        message.skip();
        continue;
      }
      value = message.bytes();
      ++values;
    }
    if (values != 1)
      refuse("holds " + std::to_string(values) + " strings");
    if (static_cast<int64_t>(value.size()) != feature_.bytes)
      refuse("holds a string of " + std::to_string(value.size()) + " bytes, not the " + std::to_string(feature_.bytes) +
             " of its raw numbers (text and encoded images have to be decoded when the data are made)");
    if (feature_.dtype == DRT_BOOL && std::any_of(value.begin(), value.end(), [](char c) { return c & ~1; }))
      refuse("holds a byte that is neither 0 nor 1");
    std::memcpy(row_, value.data(), value.size());
  }

  void readFloats(std::string_view list) const {
    if (feature_.dtype != DRT_F32 && feature_.dtype != DRT_F64)
      refuse("holds floats");
    int64_t count = 0;
    const auto add = [&](std::string_view bytes) {
      const auto more = static_cast<int64_t>(bytes.size() / sizeof(float));
      if (more <= feature_.count - count) {
        if (feature_.dtype == DRT_F32)
          std::memcpy(row_ + count * sizeof(float), bytes.data(), more * sizeof(float));
        for (int64_t i = 0; feature_.dtype == DRT_F64 && i < more; ++i) {
          float value;
          std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
          const double wide = value;
          std::memcpy(row_ + (count + i) * sizeof wide, &wide, sizeof wide);
        }
      }
      count += more;
    };
    for (Message message(list, what_); !message.atEnd();) {
      const uint64_t field = message.next();
      if (field == 1 && message.type() == Bytes) { // packed
        const std::string_view values = message.bytes();
        if (values.size() % sizeof(float) != 0)
          message.fail();
        add(values);
      } else if (field == 1 && message.type() == Fixed32) {
        add(message.fixed(sizeof(float)));
      } else {
        message.skip();
      }
    }
    if (count != feature_.count)
      refuse("holds " + std::to_string(count) + " floats");
  }

  void readIntegers(std::string_view list) const {
    int64_t count = 0;
    const auto add = [&](uint64_t value) {
      if (count < feature_.count)
        store(count, static_cast<int64_t>(value));
      ++count;
    };
    for (Message message(list, what_); !message.atEnd();) {
      const uint64_t field = message.next();
      if (field == 1 && message.type() == Bytes) { // packed
        for (Message values(message.bytes(), what_); !values.atEnd();)
          add(values.varint());
      } else if (field == 1 && message.type() == Varint) {
        add(message.varint());
      } else {
        message.skip();
      }
    }
    if (count != feature_.count)
      refuse("holds " + std::to_string(count) + " integers");
  }

  template <typename T> void storeAs(int64_t at, int64_t value) const {
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
      refuse("holds the integer " + std::to_string(value));
    const T narrow = static_cast<T>(value);
    std::memcpy(row_ + at * sizeof narrow, &narrow, sizeof narrow);
  }

  void store(int64_t at, int64_t value) const {
    switch (feature_.dtype) {
    case DRT_I64:
      return storeAs<int64_t>(at, value);
    case DRT_I32:
      return storeAs<int32_t>(at, value);
    case DRT_I16:
      return storeAs<int16_t>(at, value);
    case DRT_I8:
      return storeAs<int8_t>(at, value);
    case DRT_U8:
      return storeAs<uint8_t>(at, value);
    case DRT_BOOL:
      return storeAs<bool>(at, value);
    default:
      refuse("holds integers");
    }
  }

  const Feature &feature_;
  char *row_;
  const std::string &what_;
};

// The entries of an example's map from names to features.
template <typename Visit> void forEachFeature(std::string_view example, const std::string &what, Visit visit) {
  for (Message message(example, what); !message.atEnd();) {
    if (message.next() != 1 || message.type() != Bytes) {
      message.skip();
      continue;
    }
    for (Message features(message.bytes(), what); !features.atEnd();) {
      if (features.next() != 1 || features.type() != Bytes) {
        features.skip();
        continue;
      }
      std::string_view key, value;
      for (Message entry(features.bytes(), what); !entry.atEnd();) {
        const uint64_t field = entry.next();
        if ((field == 1 || field == 2) && entry.type() == Bytes)
          (field == 1 ? key : value) = entry.bytes();
        else
          entry.skip();
      }
      visit(key, value);
    }
  }
}

} // namespace

void parseExample(std::string_view bytes, const std::vector<Feature> &features, char *const *rows,
                  const std::string &what) {
  std::vector<List> lists(features.size());
  std::vector<bool> found(features.size());
  forEachFeature(bytes, what, [&](std::string_view key, std::string_view value) {
    for (size_t i = 0; i < features.size(); ++i)
      if (key == features[i].name) {
        lists[i] = listOf(value, what);
        found[i] = true;
      }
  });
  for (size_t i = 0; i < features.size(); ++i) {
    if (!found[i]) {
      std::string there;
      forEachFeature(bytes, what, [&](std::string_view key, std::string_view) {
        there += (there.empty() ? "" : ", ") + std::string(key);
      });
      throw Error(what + " has no feature '" + features[i].name + "' for the feed '" + features[i].feed + "'; it has " +
                  (there.empty() ? "none" : there) + "; --feature " + features[i].feed +
                  "=NAME says which one the feed takes");
    }
    Reader(features[i], rows[i], what).read(lists[i]);
  }
}

} // namespace drt
