//===- npz_reader.cpp - Reading NumPy's .npz and .npy files ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The zip format: PKWARE's APPNOTE.TXT; sections are named below.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/tensor_type.h"
#include "core/error.h"
#include "data/mapped_file.h"
#include "data/npz.h"
#include "data/npz_header.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <zlib.h>

namespace drt {
namespace {

std::shared_ptr<char> allocate(size_t bytes, const std::string &what) {
  auto *memory = static_cast<char *>(aligned_alloc(64, (bytes + 64) / 64 * 64));
  if (!memory)
    throw Error(what + " needs " + std::to_string(bytes) + " bytes of memory, which are not there");
  return std::shared_ptr<char>(memory, free);
}

// Column-major to row-major.
std::shared_ptr<char> transpose(const char *from, const NpyHeader &header, const std::string &what) {
  auto size = size_t(elementSize(header.dtype));
  std::shared_ptr<char> result = allocate(size_t(header.dataBytes), what);
  size_t rank = header.shape.size();
  std::vector<int64_t> stride(rank, 1), index(rank, 0);
  for (size_t axis = 1; axis < rank; ++axis)
    stride[axis] = stride[axis - 1] * header.shape[axis - 1];
  int64_t offset = 0;
  char *to = result.get(), *end = to + header.dataBytes;
  for (; to < end; to += size) {
    memcpy(to, from + size_t(offset) * size, size);
    for (size_t axis = rank; axis-- > 0;) {
      offset += stride[axis];
      if (++index[axis] < header.shape[axis])
        break;
      offset -= stride[axis] * header.shape[axis];
      index[axis] = 0;
    }
  }
  return result;
}

NpyArray makeArray(const Contents &contents, const std::string &what) {
  NpyHeader header = parseNpyHeader(contents.bytes, what);
  NpyArray array;
  array.dtype = header.dtype;
  array.shape = header.shape;
  array.bytes = header.dataBytes;
  array.data = contents.bytes.data() + header.bytes;
  array.storage = contents.storage;
  array.mapped = contents.mapped;
  if (header.fortranOrder && header.shape.size() > 1) {
    array.storage = transpose(static_cast<const char *>(array.data), header, what);
    array.data = array.storage.get();
    array.mapped = false;
  }
  array.aligned = reinterpret_cast<uintptr_t>(array.data) % uintptr_t(elementSize(header.dtype)) == 0;
  return array;
}

// Little-endian fields, whose bounds the caller has checked.
template <typename T> T field(std::string_view bytes, size_t offset) {
  T value;
  memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// A part at a time: a file may be larger than the memory that is left.
uint32_t checksum(const Contents &contents) {
  constexpr size_t part = size_t(16) << 20;
  auto crc = uint32_t(crc32_z(0, nullptr, 0));
  for (size_t done = 0; done < contents.bytes.size(); done += part) {
    const std::string_view bytes = contents.bytes.substr(done, part);
    crc = uint32_t(crc32_z(crc, reinterpret_cast<const Bytef *>(bytes.data()), bytes.size()));
    if (contents.mapped && contents.bytes.size() > 4 * part)
      forgetPages(bytes.data(), bytes.size());
  }
  return crc;
}

struct Member {
  std::string name; // without .npy
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0, unpacked = 0, offset = 0;
};

} // namespace

struct NpzReader::Impl {
  std::string path;
  bool verify = true;
  Contents file;
  std::vector<Member> members;
  std::vector<std::string> names;

  [[noreturn]] void damaged(const std::string &why) const {
    throw Error(path + " is not a whole .npz file: " + why + "; was it copied or downloaded to its end?");
  }
  std::string_view at(uint64_t offset, uint64_t bytes, const char *what) const {
    if (offset > file.bytes.size() || bytes > file.bytes.size() - offset)
      damaged(std::string(what) + " lies behind its end");
    return file.bytes.substr(offset, bytes);
  }
  std::string_view directory(uint64_t &count) const;
  void readDirectory();
  std::string_view stored(const Member &member, const std::string &what) const;
  Contents unpack(const Member &member, std::string_view packed, const std::string &what) const;
};

// 4.3.16, and 4.3.14 and 4.3.15 for zip64.
std::string_view NpzReader::Impl::directory(uint64_t &count) const {
  constexpr size_t kEnd = 22, kLocator = 20, kEnd64 = 56;
  size_t end = file.bytes.rfind(std::string_view("PK\5\6", 4));
  if (end == std::string_view::npos || file.bytes.size() - end < kEnd)
    damaged(file.bytes.starts_with("PK") ? "its directory is missing" : "it is not a zip file");
  if (file.bytes.size() - end - kEnd != field<uint16_t>(file.bytes, end + 20))
    damaged("something follows its directory");
  count = field<uint16_t>(file.bytes, end + 10);
  uint64_t bytes = field<uint32_t>(file.bytes, end + 12), offset = field<uint32_t>(file.bytes, end + 16);
  if (end >= kLocator && file.bytes.substr(end - kLocator, 4) == std::string_view("PK\6\7", 4)) {
    std::string_view end64 = at(field<uint64_t>(file.bytes, end - kLocator + 8), kEnd64, "its zip64 directory");
    if (!end64.starts_with("PK\6\6"))
      damaged("its zip64 directory is missing");
    count = field<uint64_t>(end64, 32);
    bytes = field<uint64_t>(end64, 40);
    offset = field<uint64_t>(end64, 48);
  }
  return at(offset, bytes, "its directory");
}

// 4.3.12, and 4.5.3 for the sizes that do not fit 32 bits.
void NpzReader::Impl::readDirectory() {
  constexpr size_t kEntry = 46;
  uint64_t count = 0;
  std::string_view rest = directory(count);
  for (uint64_t i = 0; i < count; ++i) {
    if (rest.size() < kEntry || !rest.starts_with("PK\1\2"))
      damaged("its directory breaks off");
    Member member;
    member.flags = field<uint16_t>(rest, 8);
    member.method = field<uint16_t>(rest, 10);
    member.crc = field<uint32_t>(rest, 16);
    member.packed = field<uint32_t>(rest, 20);
    member.unpacked = field<uint32_t>(rest, 24);
    size_t nameBytes = field<uint16_t>(rest, 28), extraBytes = field<uint16_t>(rest, 30);
    size_t entryBytes = kEntry + nameBytes + extraBytes + field<uint16_t>(rest, 32);
    member.offset = field<uint32_t>(rest, 42);
    if (rest.size() < entryBytes)
      damaged("its directory breaks off");
    member.name = rest.substr(kEntry, nameBytes);
    std::string_view extra = rest.substr(kEntry + nameBytes, extraBytes);
    while (extra.size() >= 4) {
      size_t id = field<uint16_t>(extra, 0), bytes = field<uint16_t>(extra, 2), next = 4;
      std::string_view body = extra.substr(0, std::min(extra.size(), 4 + bytes));
      for (uint64_t *value : {&member.unpacked, &member.packed, &member.offset})
        if (id == 1 && *value == UINT32_MAX && next + 8 <= body.size()) {
          *value = field<uint64_t>(body, next);
          next += 8;
        }
      extra.remove_prefix(body.size());
    }
    rest.remove_prefix(entryBytes);
    if (!member.name.ends_with(".npy"))
      continue;
    member.name.resize(member.name.size() - 4);
    if (std::find(names.begin(), names.end(), member.name) != names.end())
      damaged("it has two arrays of the name '" + member.name + "'");
    names.push_back(member.name);
    members.push_back(std::move(member));
  }
}

// 4.3.7: the local header has extra fields of its own, so only it says where the data begin.
std::string_view NpzReader::Impl::stored(const Member &member, const std::string &what) const {
  constexpr size_t kLocal = 30;
  std::string_view local = at(member.offset, kLocal, what.c_str());
  if (!local.starts_with("PK\3\4"))
    throw Error(what + " is damaged: its zip header is not where the directory says");
  if (member.flags & 1)
    throw Error(what + " is encrypted; save it without a password");
  uint64_t start = member.offset + kLocal + field<uint16_t>(local, 26) + field<uint16_t>(local, 28);
  return at(start, member.packed, what.c_str());
}

Contents NpzReader::Impl::unpack(const Member &member, std::string_view packed, const std::string &what) const {
  if (member.method == 0) {
    if (member.packed != member.unpacked)
      throw Error(what + " is damaged: stored, but of two sizes");
    return {file.storage, packed, file.mapped};
  }
  if (member.method != Z_DEFLATED)
    throw Error(what + " is packed by method " + std::to_string(member.method) +
                "; save it with numpy.savez or numpy.savez_compressed");
  if (member.unpacked / 1100 > member.packed) // deflate packs to no less than 1/1032
    throw Error(what + " is damaged: its sizes cannot be");

  std::shared_ptr<char> buffer = allocate(member.unpacked, what);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    throw Error(what + ": zlib cannot start");
  // zlib counts in 32 bits.
  constexpr uint64_t kStep = uint64_t(1) << 30;
  uint64_t taken = 0, made = 0;
  int status = Z_OK;
  while (status == Z_OK && (taken < member.packed || made < member.unpacked)) {
    uInt in = stream.avail_in = uInt(std::min(kStep, member.packed - taken));
    uInt out = stream.avail_out = uInt(std::min(kStep, member.unpacked - made));
    stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(packed.data() + taken));
    stream.next_out = reinterpret_cast<Bytef *>(buffer.get() + made);
    status = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    made += out - stream.avail_out;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || made != member.unpacked)
    throw Error(what + " is damaged: it cannot be unpacked");
  return {buffer, std::string_view(buffer.get(), member.unpacked), false};
}

NpzReader::NpzReader(const std::string &path, bool verify) : impl(new Impl) {
  impl->path = path;
  impl->verify = verify;
  impl->file = mapFile(path);
  impl->readDirectory();
}
NpzReader::~NpzReader() = default;
NpzReader::NpzReader(NpzReader &&) noexcept = default;
NpzReader &NpzReader::operator=(NpzReader &&) noexcept = default;

const std::string &NpzReader::path() const { return impl->path; }
const std::vector<std::string> &NpzReader::names() const { return impl->names; }

bool NpzReader::has(std::string_view name) const {
  return std::find(impl->names.begin(), impl->names.end(), name) != impl->names.end();
}

NpyArray NpzReader::read(std::string_view name) const {
  auto found = std::find(impl->names.begin(), impl->names.end(), name);
  if (found == impl->names.end()) {
    std::string list;
    for (const std::string &other : impl->names)
      list += (list.empty() ? "'" : ", '") + other + "'";
    throw Error(impl->path + " has no array '" + std::string(name) + "'; it has " + (list.empty() ? "none" : list));
  }
  const Member &member = impl->members[size_t(found - impl->names.begin())];
  std::string what = impl->path + ": member '" + member.name + ".npy'";
  Contents contents = impl->unpack(member, impl->stored(member, what), what);
  if (impl->verify && checksum(contents) != member.crc)
    throw Error(what + " is damaged: wrong checksum");
  return makeArray(contents, what);
}

NpyArray readNpy(const std::string &path) { return makeArray(mapFile(path), path); }

} // namespace drt
