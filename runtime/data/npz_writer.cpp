//===- npz_writer.cpp - Writing NumPy's .npz files ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The zip format: PKWARE's APPNOTE.TXT; sections are named below.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/output_file.h"
#include "checkpoint/tensor_type.h"
#include "core/error.h"
#include "data/npz.h"
#include "data/npz_header.h"

#include <algorithm>
#include <zlib.h>

namespace drt {
namespace {

template <typename T> void append(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

struct Member {
  std::string name; // with .npy
  uint32_t crc = 0;
  uint64_t bytes = 0, offset = 0;

  bool largeSize = false; // the sizes may not fit 32 bits
  bool largeOffset() const { return offset >= UINT32_MAX; }
};

// What the headers of 4.3.7 and 4.3.12 have in common.
void appendCommon(std::string &header, const Member &member, size_t extraBytes) {
  append(header, uint16_t(extraBytes ? 45 : 20)); // version that is needed to read
  append(header, uint16_t(0x800));                // names are UTF-8
  append(header, uint16_t(0));                    // stored
  append(header, uint16_t(0));                    // time and
  append(header, uint16_t(0x21));                 // day, always the first one: equal arrays give equal files
  append(header, member.crc);
  append(header, member.largeSize ? UINT32_MAX : uint32_t(member.bytes));
  append(header, member.largeSize ? UINT32_MAX : uint32_t(member.bytes));
  append(header, uint16_t(member.name.size()));
  append(header, uint16_t(extraBytes));
}

// 4.5.3
std::string zip64Extra(const Member &member, bool withOffset) {
  std::string values;
  if (member.largeSize) {
    append(values, member.bytes);
    append(values, member.bytes);
  }
  if (withOffset && member.largeOffset())
    append(values, member.offset);
  std::string extra;
  if (!values.empty()) {
    append(extra, uint16_t(1));
    append(extra, uint16_t(values.size()));
  }
  return extra + values;
}

std::string localHeader(const Member &member) {
  std::string extra = zip64Extra(member, false), header = "PK\3\4";
  appendCommon(header, member, extra.size());
  return header + member.name + extra;
}

std::string directoryEntry(const Member &member) {
  std::string extra = zip64Extra(member, true), header = "PK\1\2";
  append(header, uint16_t(45));
  appendCommon(header, member, extra.size());
  append(header, uint16_t(0)); // comment
  append(header, uint16_t(0)); // disk
  append(header, uint16_t(0));
  append(header, uint32_t(0)); // attributes
  append(header, uint32_t(std::min<uint64_t>(member.offset, UINT32_MAX)));
  return header + member.name + extra;
}

// 4.3.14 to 4.3.16
std::string endOfDirectory(uint64_t count, uint64_t offset, uint64_t bytes) {
  std::string end;
  if (count >= UINT16_MAX || offset >= UINT32_MAX || bytes >= UINT32_MAX) {
    end += "PK\6\6";
    append(end, uint64_t(44));
    append(end, uint16_t(45));
    append(end, uint16_t(45));
    append(end, uint64_t(0)); // disks
    append(end, count);
    append(end, count);
    append(end, bytes);
    append(end, offset);
    end += "PK\6\7";
    append(end, uint32_t(0));
    append(end, offset + bytes);
    append(end, uint32_t(1));
  }
  end += "PK\5\6";
  append(end, uint32_t(0)); // disks
  append(end, uint16_t(std::min<uint64_t>(count, UINT16_MAX)));
  append(end, uint16_t(std::min<uint64_t>(count, UINT16_MAX)));
  append(end, uint32_t(std::min<uint64_t>(bytes, UINT32_MAX)));
  append(end, uint32_t(std::min<uint64_t>(offset, UINT32_MAX)));
  append(end, uint16_t(0)); // comment
  return end;
}

uint32_t crcOf(uint32_t crc, const void *data, size_t bytes) {
  return bytes ? uint32_t(crc32_z(crc, static_cast<const Bytef *>(data), bytes)) : crc;
}

} // namespace

struct NpzWriter::Impl {
  std::string path;
  OutputFile file;
  std::vector<Member> members;

  explicit Impl(const std::string &path) : path(path), file(path) {}
};

NpzWriter::NpzWriter(const std::string &path) : impl(new Impl(path)) {}
NpzWriter::~NpzWriter() = default;

void NpzWriter::add(const std::string &name, int32_t dtype, const std::vector<int64_t> &shape, const void *data) {
  Member member;
  member.name = name + ".npy";
  member.offset = uint64_t(impl->file.position());
  auto same = [&](const Member &other) { return other.name == member.name; };
  if (std::any_of(impl->members.begin(), impl->members.end(), same))
    throw Error("array '" + name + "' is written twice to " + impl->path);
  int64_t count = shapeElements(shape);
  if (count < 0 || member.name.size() > UINT16_MAX)
    throw Error("array '" + name + "' " + shapeText(shape) + " cannot be written to " + impl->path);
  auto bytes = size_t(count * elementSize(dtype));

  // Decided before the .npy header is made, which begins where the zip header ends.
  member.largeSize = bytes >= UINT32_MAX - 65600;
  int64_t position = impl->file.position() + int64_t(localHeader(member).size());
  std::string npy = formatNpyHeader(dtype, shape, position, impl->path + ": array '" + name + "'");
  member.bytes = npy.size() + bytes;
  member.crc = crcOf(crcOf(0, npy.data(), npy.size()), data, bytes);
  std::string local = localHeader(member);
  impl->file.write(local.data(), local.size());
  impl->file.write(npy.data(), npy.size());
  impl->file.write(data, bytes);
  impl->members.push_back(std::move(member));
}

void NpzWriter::finish() {
  auto offset = uint64_t(impl->file.position());
  for (const Member &member : impl->members) {
    std::string entry = directoryEntry(member);
    impl->file.write(entry.data(), entry.size());
  }
  std::string end = endOfDirectory(impl->members.size(), offset, uint64_t(impl->file.position()) - offset);
  impl->file.write(end.data(), end.size());
  impl->file.publish();
  syncFolder(impl->path);
}

} // namespace drt
