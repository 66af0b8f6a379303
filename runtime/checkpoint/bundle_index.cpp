//===- bundle_index.cpp - The index file of a checkpoint ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/bundle_index.h"

#include "checkpoint/checkpoint.h"
#include "checkpoint/crc32c.h"
#include "checkpoint/output_file.h"
#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <leveldb/table_builder.h>
#include <memory>
#include <sys/stat.h>

namespace drt {
namespace {

// LevelDB's files, in memory.
class MemoryInput : public leveldb::RandomAccessFile {
public:
  explicit MemoryInput(const std::string &bytes) : bytes(bytes) {}
  leveldb::Status Read(uint64_t offset, size_t n, leveldb::Slice *result, char *) const override {
    if (offset > bytes.size())
      return leveldb::Status::Corruption("the file ends early");
    *result = leveldb::Slice(bytes.data() + offset, std::min<size_t>(n, bytes.size() - offset));
    return leveldb::Status::OK();
  }

private:
  const std::string &bytes;
};

class MemoryOutput : public leveldb::WritableFile {
public:
  leveldb::Status Append(const leveldb::Slice &data) override {
    bytes.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

  std::string bytes;
};

std::string readFile(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0)
    throw Error("cannot read checkpoint index " + path + ": " + strerror(errno) +
                "; a checkpoint is named by its prefix, without .index");
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.good() && !file.eof())
    throw Error("cannot read checkpoint index " + path + ": " + strerror(errno));
  return bytes;
}

[[noreturn]] void damaged(const std::string &path, const std::string &why) {
  throw Error("checkpoint index " + path + " is damaged: " + why + "; take an older checkpoint");
}

// LevelDB allocates as many bytes as a block is said to have before it reads it. Where blocks lie is checked by
// checksums, but for those that the footer names (leveldb/doc/table_format.md: two pairs of an offset and a size, as
// varints).
void checkFooter(const std::string &path, const std::string &bytes) {
  constexpr size_t footerBytes = 48, blockTrailer = 5;
  if (bytes.size() < footerBytes)
    return; // LevelDB says so
  const char *at = bytes.data() + bytes.size() - footerBytes;
  const auto readNumber = [&] {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(*at++);
      number |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80)
        break;
    }
    return number;
  };
  for (int block = 0; block < 2; ++block) {
    const uint64_t offset = readNumber(), size = readNumber();
    if (offset > bytes.size() || size > bytes.size() - offset || bytes.size() - offset - size < blockTrailer)
      damaged(path, "a part of it would lie behind its end");
  }
}

void checkHeader(const std::string &path, const bundle::BundleHeaderProto &header) {
  if (header.endianness() != bundle::BundleHeaderProto::LITTLE)
    throw Error("checkpoint " + path + " was written big-endian, which is not supported");
  if (header.version().min_consumer() > 1)
    throw Error("checkpoint " + path + " needs a reader of version " + std::to_string(header.version().min_consumer()) +
                "; this one knows version 1");
  if (header.num_shards() < 1 || header.num_shards() > 99999)
    damaged(path, "it says that it has " + std::to_string(header.num_shards()) + " data files");
}

} // namespace

BundleIndex readBundleIndex(const std::string &path) {
  std::string bytes = readFile(path);
  checkFooter(path, bytes);
  MemoryInput file(bytes);
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::Table *opened = nullptr;
  leveldb::Status status = leveldb::Table::Open(options, &file, bytes.size(), &opened);
  std::unique_ptr<leveldb::Table> table(opened);
  if (!status.ok())
    damaged(path, status.ToString());

  BundleIndex index;
  leveldb::ReadOptions reading;
  reading.verify_checksums = true;
  reading.fill_cache = false;
  std::unique_ptr<leveldb::Iterator> it(table->NewIterator(reading));
  bool hasHeader = false;
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    std::string key = it->key().ToString();
    leveldb::Slice value = it->value();
    bool parsed = key.empty() ? index.header.ParseFromArray(value.data(), int(value.size()))
                              : index.entries[key].ParseFromArray(value.data(), int(value.size()));
    if (!parsed)
      damaged(path, key.empty() ? "its header cannot be parsed" : "the entry '" + key + "' cannot be parsed");
    hasHeader |= key.empty();
  }
  if (!it->status().ok())
    damaged(path, it->status().ToString());
  if (!hasHeader)
    damaged(path, "it has no header");
  checkHeader(path, index.header);
  return index;
}

std::string encodeBundleIndex(const BundleIndex &index) {
  leveldb::Options options;
  options.compression = leveldb::kNoCompression; // as TensorFlow, whose reader may lack Snappy
  MemoryOutput file;
  leveldb::TableBuilder table(options, &file);
  std::string value;
  index.header.SerializeToString(&value);
  table.Add("", value);
  for (const auto &[key, entry] : index.entries) { // a map's order is the table's: by bytes
    entry.SerializeToString(&value);
    table.Add(key, value);
  }
  leveldb::Status status = table.Finish();
  if (!status.ok())
    throw Error("cannot make a checkpoint's index: " + status.ToString(), 70);
  return std::move(file.bytes);
}

uint32_t checkpointDigest(const std::string &prefix) {
  std::ifstream file(indexPath(prefix), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return bytes.empty() ? 0 : std::max(crc32c(0, bytes.data(), bytes.size()), 1u);
}

std::string indexPath(const std::string &prefix) { return prefix + ".index"; }

std::string dataPath(const std::string &prefix, int shard, int shards) {
  char suffix[48];
  snprintf(suffix, sizeof suffix, ".data-%05d-of-%05d", shard, shards);
  return prefix + suffix;
}

void removeDataFiles(const std::string &prefix, const std::string &except) {
  namespace fs = std::filesystem;
  std::string start = fs::path(prefix).filename().string() + ".data-";
  std::error_code ignored;
  for (const auto &file : fs::directory_iterator(folderOf(prefix), ignored)) {
    std::string name = file.path().filename().string();
    std::string shard = name.starts_with(start) ? name.substr(start.size()) : "";
    for (char &c : shard)
      c = c >= '0' && c <= '9' ? '0' : c;
    bool isData = shard == "00000-of-00000";
    if (isData && name != fs::path(except).filename().string())
      fs::remove(file.path(), ignored);
  }
}

} // namespace drt
