//===- checkpoint.h - TensorFlow's V2 checkpoints, read and written -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A checkpoint ("tensor bundle", tensorflow/core/util/tensor_bundle) is
//   PREFIX.index                  a LevelDB table: name -> where and how
//   PREFIX.data-00000-of-00001    the tensors' bytes, one after the other; of
//                                 several writers a file each
// A tensor is stored whole, or in slices that lie anywhere in the whole; who
// reads need not know. Shapes are row-major and dense, types are drt_dtype's
// (TensorFlow's) numbers. Everything throws drt::Error.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CHECKPOINT_CHECKPOINT_H
#define DRT_CHECKPOINT_CHECKPOINT_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace drt {

using Shape = std::vector<int64_t>;

struct CheckpointTensor {
  std::string name;
  int32_t dtype = 0;
  Shape shape;
  int64_t bytes = 0;  // of the whole; of what is stored for types without a fixed size
  int32_t slices = 0; // 0: stored whole
};

// Reads one checkpoint. const members may be called from several threads.
class CheckpointReader {
public:
  // Opens the index and checks that the data files are there and long enough.
  explicit CheckpointReader(const std::string &prefix);
  ~CheckpointReader();
  CheckpointReader(CheckpointReader &&) noexcept;
  CheckpointReader &operator=(CheckpointReader &&) noexcept;

  const std::string &prefix() const;

  // In the order of names.
  const std::vector<CheckpointTensor> &tensors() const;
  // Null where there is none. Valid as long as the reader.
  const CheckpointTensor *find(std::string_view name) const;
  // Throws where there is none, and names the nearest ones.
  const CheckpointTensor &at(std::string_view name) const;

  // Fills `destination` with the whole tensor. Type and shape are what the
  // reader wants; where the checkpoint has others, the error says both.
  void read(std::string_view name, int32_t dtype, const Shape &shape, void *destination) const;

  // Fills `destination`, dense, with [begin, begin + extent) of a tensor whose
  // whole shape is `fullShape`, from whatever pieces are stored. Every piece that
  // is touched is read to its end, and its checksum verified.
  void readSlice(std::string_view name, int32_t dtype, const Shape &fullShape, const Shape &begin, const Shape &extent,
                 void *destination) const;

  // The same, part after part, as it is read: take(data, at, bytes) is given bytes of the slice from byte `at` on,
  // every byte once, in no particular order. Needs memory for a part alone. What is given comes before its checksum is
  // known: where it is wrong, this throws in the end.
  using Take = std::function<void(const char *data, int64_t at, int64_t bytes)>;
  void readSliceInParts(std::string_view name, int32_t dtype, const Shape &fullShape, const Shape &begin,
                        const Shape &extent, const Take &take) const;

  // The bytes of a scalar string.
  std::string readString(std::string_view name) const;

  // Reads a tensor only to verify its checksum; strings and types without a
  // drt_dtype, too.
  void verify(std::string_view name) const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

// One of several writers of one checkpoint, each with what it holds, in one
// folder. `run` is a number that they share, and no other run has.
struct CheckpointPart {
  int part = 0, parts = 1;
  uint64_t run = 0;
};

// Writes one checkpoint, in one sequential pass, into files beside the target
// (PREFIX.tempstate…), which finish() renames. One thread at a time.
class CheckpointWriter {
public:
  // Creates the folder of the prefix where it is missing.
  explicit CheckpointWriter(const std::string &prefix, const CheckpointPart &part = {});
  // Without finish(): removes what was written.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter &) = delete;
  CheckpointWriter &operator=(const CheckpointWriter &) = delete;

  // Fills `chunk` with `bytes` bytes of the tensor, from byte `at` on: for one after the other, kChunk at a time.
  using Source = std::function<void(char *chunk, int64_t at, int64_t bytes)>;
  static constexpr int64_t kChunk = int64_t(4) << 20;

  void add(const std::string &name, int32_t dtype, const Shape &shape, const void *data);
  void add(const std::string &name, int32_t dtype, const Shape &shape, const Source &source);

  // A scalar string.
  void addString(const std::string &name, std::string_view text);

  // One slice of a tensor. All of the whole must have been added by finish(),
  // nothing twice. A slice that is the whole is stored as the whole. TensorFlow
  // reads no slices of float16: add such a tensor whole.
  void addSlice(const std::string &name, int32_t dtype, const Shape &fullShape, const Shape &begin, const Shape &extent,
                const void *data);
  void addSlice(const std::string &name, int32_t dtype, const Shape &fullShape, const Shape &begin, const Shape &extent,
                const Source &source);

  // Makes the checkpoint readable: data to disk and renamed first, the index
  // last. An older checkpoint of that prefix is replaced; between its removal
  // and the last rename there is none of that name, never a mixed one.
  // Of several parts the first one's: `wait` is called as long as another one is
  // not there, and throws where it will not come.
  void finish(const std::function<void()> &wait = {});

  // Of the other parts: what was added is on the disk, for the first one's
  // finish().
  void finishPart();

  // Removes what finishPart() has left of one of the other parts, where the first one's finish() has not taken it. In
  // the midst of that it makes it throw: there is the whole checkpoint then, or none.
  static void removePart(const std::string &prefix, const CheckpointPart &part);

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

// The checkpoints of a run: D/ckpt-STEP.* and the state file D/checkpoint, as
// tf.train.latest_checkpoint reads it. One process saves in a folder.
class CheckpointManager {
public:
  // keep: how many checkpoints stay; 0 keeps all. Touches nothing until save().
  explicit CheckpointManager(const std::string &directory, int keep = 5);

  // Writes D/ckpt-STEP by calling `write`, then the state file, then deletes those
  // D/ckpt-N that are older than `keep`; whatever else the state file names stays. Where there are more than `keep`
  // already, those go before. Where it throws (a full disk), the others and the state file are as they were. Returns
  // the prefix. `input`: what D/ckpt-STEP.input is to hold; "": there is none.
  std::string save(int64_t step, const std::function<void(CheckpointWriter &)> &write, const std::string &input = "");

  // The same as the first of several parts, which wait() waits for (CheckpointWriter::finish), and as another one.
  std::string savePart(int64_t step, const CheckpointPart &part, const std::function<void(CheckpointWriter &)> &write,
                       const std::function<void()> &wait, const std::string &input = "");
  static void saveOtherPart(const std::string &directory, int64_t step, const CheckpointPart &part,
                            const std::function<void(CheckpointWriter &)> &write);
  // Of a run that has failed (CheckpointWriter::removePart).
  static void removeOtherPart(const std::string &directory, int64_t step, const CheckpointPart &part);

  // A file for writers of other parts to look for, which then know that the folder is theirs too. leaveMark() says
  // whether it could be made.
  bool leaveMark(uint64_t run) const;
  void removeMark(uint64_t run) const;
  static bool seesMark(const std::string &directory, uint64_t run);

  // PREFIX.input anew, of a checkpoint that is there.
  static void writeInput(const std::string &prefix, const std::string &input);

  // The newest complete checkpoint's prefix, "" where there is none. `isSound`: asked of one after the other, from the
  // newest on, instead of whether it can be opened.
  std::string latest(const std::function<bool(const std::string &prefix)> &isSound = {}) const;

  // Removes what a process that was killed while it saved has left. Not while one saves, but for parts of `run`.
  void removeTemporaries(uint64_t run = 0) const;

  // Removes every D/ckpt-STEP, and what the state file says of them.
  void clear();

private:
  void removeSurplus() const;

  std::string directory;
  int keep;
};

// Tells a checkpoint from others: a checksum of its index, which has those of all
// tensors. 0 where there is none.
uint32_t checkpointDigest(const std::string &prefix);

// The file beside a checkpoint that says where its run stood in the data (launch/input_position.h).
inline std::string inputPath(const std::string &prefix) { return prefix + ".input"; }

// The step of a prefix that ends in -STEP; -1 otherwise.
int64_t checkpointStep(std::string_view prefix);

} // namespace drt
#endif // DRT_CHECKPOINT_CHECKPOINT_H
