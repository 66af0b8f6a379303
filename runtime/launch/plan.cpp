//===- plan.cpp - What --plan prints --------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/all_reduce_algorithms.h"
#include "core/counted.h"
#include "core/device_memory.h"
#include "core/dtype.h"
#include "core/memory.h"
#include "core/row_buckets.h"
#include "data/dataset.h"
#include "data/feeder.h"
#include "launch/program.h"
#include "launch/variables.h"

#include <algorithm>
#include <dlfcn.h>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace drt {
namespace {

// Rows of cells; columns as wide as they need to be.
class Table {
public:
  explicit Table(std::vector<std::string> header) { add(std::move(header)); }
  void add(std::vector<std::string> row) {
    if (widths_.size() < row.size())
      widths_.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i)
      widths_[i] = std::max(widths_[i], row[i].size());
    rows_.push_back(std::move(row));
  }
  std::string text() const {
    std::string out;
    for (const std::vector<std::string> &row : rows_) {
      out += " ";
      for (size_t i = 0; i < row.size(); ++i)
        out += " " + row[i] + (i + 1 < row.size() ? std::string(widths_[i] - row[i].size() + 1, ' ') : "");
      out += "\n";
    }
    return out;
  }

private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> widths_;
};

std::string sliceText(const drt_variable &variable) {
  if (variable.shares)
    return "a share of " + std::to_string(variable.shares) + " of " +
           shapeName(variable.full_shape, variable.full_rank);
  if (!variable.full_shape)
    return "whole";
  std::string text;
  for (int32_t i = 0; i < variable.type.rank; ++i)
    text += (i ? "," : "[") + std::to_string(variable.slice_begin[i]) + ":" +
            std::to_string(variable.slice_begin[i] + variable.type.shape[i]);
  return text + "] of " + shapeName(variable.full_shape, variable.type.rank);
}

std::string shardText(const drt_program &program, const drt_variable &variable) {
  if (!variable.owner)
    return sliceText(variable);
  const drt_task &owner = program.tasks[variable.owner - 1];
  return sliceText(variable) + ", in " + owner.job + ":" + std::to_string(owner.index) + " alone";
}

// Who has what of a bucket that is not everyone's.
std::string ownersText(const drt_program &program, const drt_bucket &bucket) {
  std::set<int64_t> owners;
  for (int32_t m = 0; m < bucket.num_members; ++m)
    if (bucket.members[m].owner > 0)
      owners.insert(bucket.members[m].owner - 1);
  std::string text;
  for (const int64_t owner : owners)
    text += (text.empty() ? "" : ", ") + std::string(program.tasks[owner].job) + ":" +
            std::to_string(program.tasks[owner].index);
  return text;
}

// How tasks reach each other if they run where the plan says (connected_group.cpp).
std::string betweenText(const drt_program &program) {
  std::map<std::string, int32_t> tasks; // of each host, servers without replicas excepted
  int32_t all = 0;
  for (int32_t i = 0; i < program.num_tasks; ++i)
    if (program.tasks[i].num_replicas > 0)
      ++tasks[program.tasks[i].host], ++all;
  if (all <= 1 || program.device) // devices have NCCL
    return "";
  const bool several = std::any_of(tasks.begin(), tasks.end(), [](const auto &host) { return host.second > 1; });
  if (isJoint(program))
    return "The tasks have variables and arenas in common: each updates a part, from all gradients where they lie.\n"
           "Where they can have none in common another plan runs: --plan --collectives=network.\n";
  const std::string network = "the network (recursive doubling up to 32 kB, rings above)";
  return "Between tasks: " +
         (tasks.size() == 1 ? "memory that they share"
          : several         ? "memory that those of a host share; between hosts " + network
                            : network) +
         "\n";
}

std::string tasksText(const drt_program &program) {
  Table table({"task", "host", "replicas"});
  for (int32_t i = 0; i < program.num_tasks; ++i) {
    const drt_task &task = program.tasks[i];
    const int32_t last = task.first_replica + task.num_replicas - 1;
    table.add({std::string(task.job) + ":" + std::to_string(task.index), task.host,
               std::to_string(task.first_replica) + (task.num_replicas > 1 ? "-" + std::to_string(last) : "")});
  }
  const std::string sizes =
      programsOf(program).size() == 1 ? std::string() : "Compiled for " + workersText(program) + ": --workers W.\n";
  return "\nTasks\n" + table.text() + betweenText(program) + sizes;
}

std::string compressorText(const drt_exchange &exchange) {
  switch (exchange.compressor) {
  case DRT_COMPRESS_F16:
    return "float16";
  case DRT_COMPRESS_F16_EF:
    return "float16 with error feedback";
  case DRT_COMPRESS_BF16:
    return "bfloat16";
  case DRT_COMPRESS_BF16_EF:
    return "bfloat16 with error feedback";
  case DRT_COMPRESS_POWER_SGD:
    return "PowerSGD of rank " + std::to_string(exchange.rank);
  case DRT_COMPRESS_TOP_K:
    return "top-k";
  default:
    return "";
  }
}

std::string aggregatorText(const drt_exchange &exchange) {
  const std::string f = " with f = " + std::to_string(exchange.f);
  switch (exchange.aggregator) {
  case DRT_AGGREGATE_MEDIAN:
    return "median";
  case DRT_AGGREGATE_TRIMMED_MEAN:
    return "trimmed mean" + f;
  case DRT_AGGREGATE_KRUM:
    return "Krum" + f;
  case DRT_AGGREGATE_MULTI_KRUM:
    return "multi-Krum" + f + ", m = " + std::to_string(exchange.m);
  case DRT_AGGREGATE_GEOMETRIC_MEDIAN:
    return "geometric median";
  default:
    return "";
  }
}

size_t countHosts(const drt_program &program) {
  std::set<std::string> hosts;
  for (int32_t i = 0; i < program.num_tasks; ++i)
    hosts.insert(program.tasks[i].host);
  return hosts.size();
}

// What carries a sum between tasks: they share memory on a host, and one of each host speaks for it.
std::string algorithmText(const drt_program &program, const drt_bucket &bucket) {
  if (program.num_tasks < 2 || program.device || bucket.exchange || bucket.kind != DRT_BUCKET_ALL_REDUCE)
    return "";
  const size_t hosts = countHosts(program);
  if (hosts < 2)
    return ", in shared memory";
  const int64_t bytes = bucket.count * dtypeSize(bucket.dtype);
  return std::string(", by ") + allReduceName(chooseAllReduce(bucket.algorithm, bytes, static_cast<int32_t>(hosts)));
}

std::string wayText(const drt_program &program, const drt_bucket &bucket) {
  // Where a task has its host for itself, so that all goes over the network.
  const bool inPieces = bucket.pipelined && countHosts(program) == static_cast<size_t>(program.num_tasks);
  const std::string owners = ownersText(program, bucket) + (inPieces ? ", in pieces" : "");
  if (bucket.kind == DRT_BUCKET_PULL_ROWS)
    return "rows pulled from " + owners;
  if (bucket.kind == DRT_BUCKET_PUSH_ROWS)
    return "rows pushed to " + owners;
  if (bucket.kind == DRT_BUCKET_GATHER)
    return owners.empty() ? "gather" : "pulled from " + owners;
  std::string text = bucket.reduction == DRT_REDUCE_MEAN ? "mean" : "sum";
  if (bucket.exchange) {
    const std::string aggregator = aggregatorText(*bucket.exchange), compressor = compressorText(*bucket.exchange);
    text = (aggregator.empty() ? text : aggregator) + (compressor.empty() ? "" : ", " + compressor);
  }
  if (!owners.empty())
    return text + ", pushed to " + owners;
  return text + (bucket.kind == DRT_BUCKET_REDUCE_SCATTER ? ", a share each" : algorithmText(program, bucket));
}

// Of a replica; of rows that are pulled all, which are fewer where some are equal; of those that are pushed each goes
// to one task.
int64_t bytesOf(const drt_program &program, const drt_bucket &bucket) {
  if (bucket.kind == DRT_BUCKET_PUSH_ROWS) {
    int64_t bytes = bucket.count * dtypeSize(bucket.dtype);
    for (int32_t i = 0; i < bucket.num_members; ++i)
      if (isFirstShard(bucket, i))
        bytes += bucket.members[i].kept * bucket.members[i].columns;
    return bytes;
  }
  if (bucket.kind != DRT_BUCKET_PULL_ROWS)
    return bucket.count * dtypeSize(bucket.dtype);
  int64_t bytes = 0;
  for (int32_t i = 0; i < bucket.num_members; ++i) {
    const drt_member &table = bucket.members[i];
    bytes += countPulled(bucket, i) * table.columns * dtypeSize(program.variables[table.variable].type.dtype);
  }
  return bytes;
}

// What compressors keep from step to step, a replica.
int64_t errorBytes(const drt_program &program) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < program.num_entries; ++i)
    for (int32_t b = 0; b < program.entries[i].num_buckets; ++b) {
      const drt_bucket &bucket = program.entries[i].buckets[b];
      const int32_t compressor = bucket.exchange && bucket.dtype == DRT_F32 ? bucket.exchange->compressor : 0;
      if (compressor != DRT_COMPRESS_NONE && compressor != DRT_COMPRESS_F16 && compressor != DRT_COMPRESS_BF16)
        bytes += bucket.count * dtypeSize(bucket.dtype);
    }
  return bytes;
}

std::string bucketsText(const drt_program &program, const drt_entry &entry) {
  if (entry.num_buckets == 0)
    return "";
  Table table({"bucket", "reduced", "type", "bytes", "of"});
  for (int32_t i = 0; i < entry.num_buckets; ++i) {
    const drt_bucket &bucket = entry.buckets[i];
    std::string members;
    // Shards of one table have its name.
    for (int32_t m = 0; m < bucket.num_members; ++m)
      if (bucket.kind != DRT_BUCKET_PUSH_ROWS || isFirstShard(bucket, m))
        members += (m ? ", " : "") + std::string(bucket.members[m].name);
    const bool isOfVariables =
        bucket.kind == DRT_BUCKET_GATHER || bucket.kind == DRT_BUCKET_PULL_ROWS || bucket.kind == DRT_BUCKET_PUSH_ROWS;
    table.add({bucket.name, wayText(program, bucket), isOfVariables ? "" : dtypeName(bucket.dtype),
               bytesText(bytesOf(program, bucket)), members});
  }
  return std::string("\nSynchronized in ") + entry.name + ", in this order\n" + table.text();
}

// What is particular to programs for devices.
std::string deviceText(const drt_program &program) {
  if (!program.device)
    return "";
  const drt_device_code &device = *program.device;
  Table images({"code", "bytes"});
  for (int32_t i = 0; i < device.num_images; ++i)
    images.add({device.images[i].arch, bytesText(device.images[i].bytes)});
  return "\nKernels of a device: " + std::to_string(device.num_kernels) + "\n" + images.text() +
         "\nStreams of a device\n"
         "  compute        what the schedule lists, in its order; a step is one CUDA graph\n"
         "  communication  each bucket, from its start on; its wait holds compute up\n"
         "  copies         the next step's feeds, into the other of two sets of buffers\n";
}

std::string deviceMemoryText(const drt_program &program) {
  const DeviceMemoryPlan plan = deviceMemoryPlan(program);
  return "\nMemory of a device\n  variables  " + bytesText(plan.variables) + "\n  arena      " + bytesText(plan.arena) +
         "\n  feeds      " + bytesText(feedSets * plan.feeds) + ", " + std::to_string(feedSets) + " sets\n" +
         (program.num_primitives > 0 ? "  workspace  as much as cuBLASLt and cuDNN ask for when the program starts\n"
                                     : "");
}

} // namespace

std::string bytesText(int64_t bytes) {
  const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1000 && unit < 4; ++unit)
    value /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

// What an update is made of, and when a replica goes on, where servers serve on their own.
static std::string serversText(const drt_program &program) {
  if (!program.servers)
    return "";
  const drt_servers &servers = *program.servers;
  const std::string staleness = std::to_string(servers.staleness);
  // A sparse gradient is two of them, indices and rows.
  const auto joined = std::count_if(servers.gradients, servers.gradients + servers.num_gradients,
                                    [](const drt_gradient &gradient) { return gradient.reduction == DRT_REDUCE_JOIN; });
  const std::string where = program.num_tasks == 1 ? "in the replicas' process"
                                                   : std::string("in ") + program.tasks[0].job + ":" +
                                                         std::to_string(program.tasks[0].index) +
                                                         ", which the replicas of other tasks ask";
  std::string text = "\nServers\n  " + where + "; " + std::to_string(servers.num_pulled) + " variables are pulled" +
                     (servers.num_tables > 0 ? ", rows of " + std::to_string(servers.num_tables) + " tables, " : ", ") +
                     std::to_string(servers.num_gradients - joined / 2) + " gradients pushed a step\n";
  switch (servers.policy) {
  case DRT_SERVE_ASYNC:
    return text + "  every gradient is an update of its own, and no replica waits\n";
  case DRT_SERVE_BOUNDED:
    return text + "  update k takes the k-th gradient of each of " + std::to_string(program.num_replicas) +
           " replicas, which may be " + staleness + " steps ahead of the slowest\n";
  default:
    return text + "  an update takes the first " + std::to_string(servers.required) + " gradients of " +
           std::to_string(program.num_replicas) + " replicas that are at most " + staleness +
           " updates late; others are dropped\n";
  }
}

// oneDNN makes the code of its matmuls when the first one of a form is asked for: each is, so that the process has it
// when it is measured.
static void callLibrary() {
  using Sgemm = int (*)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t,
                        float, float *, int64_t);                                // dnnl_sgemm of dnnl.h
  const auto sgemm = reinterpret_cast<Sgemm>(dlsym(RTLD_DEFAULT, "dnnl_sgemm")); // null: the program does without
  if (!sgemm)
    return;
  constexpr int64_t size = 256; // for smaller ones it has other code
  const std::vector<float> factor(size * size);
  std::vector<float> product(size * size);
  for (const char transposeA : {'N', 'T'})
    for (const char transposeB : {'N', 'T'})
      sgemm(transposeA, transposeB, size, size, size, 1, factor.data(), size, factor.data(), size, 0, product.data(),
            size);
}

// What a process has more when the data are open and the first batch is made.
static int64_t dataBytes(const drt_program &program, const Options &options) {
  const drt_entry *step = findEntry(program, "step");
  if (options.data.empty() || !step)
    return 0;
  const int64_t before = residentBytes();
  const Dataset data = Dataset::open(options.data);
  FeederConfig config = feedingOf(options);
  config.localReplicas = program.tasks[0].num_replicas;
  config.numReplicas = program.num_replicas;
  if (options.shuffle)
    config.shuffleSeed = 0; // any
  Feeder feeder(&data, *step, std::move(config));
  feeder.feed(0, [](int32_t, const void *, int64_t) {});
  return residentBytes() - before;
}

// Of the variables, what a task has memory for.
static int64_t variableBytes(const drt_program &program, int32_t task) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < program.num_variables; ++i) {
    const drt_variable &variable = program.variables[i];
    const bool isElsewhere = variable.owner > 0 && variable.owner - 1 != task;
    bytes += isElsewhere ? 0 : variable.bytes * (variable.shares ? program.tasks[task].num_replicas : 1);
  }
  return bytes;
}

static std::string errorsText(const drt_program &program) {
  const int64_t bytes = errorBytes(program);
  return bytes > 0 ? "  errors     " + bytesText(bytes) + " a replica, kept by compressors\n" : "";
}

// What a checkpoint is written of beside the steps, in the task that writes most.
static int64_t copyBytes(const drt_program &program) {
  if (!hasSpread(program))
    return VariablesCopy::bytesOf(program);
  int64_t most = 0;
  if (const std::optional<SavedParts> parts = SavedParts::of(program))
    for (int part = 0; part < parts->parts(); ++part)
      most = std::max(most, VariablesCopy::bytesOf(program, &*parts, part));
  return most;
}

// Of a replica: what matmuls and convolutions of a core pack operands into and add results up in, as they need it. No
// more than what is packed, and else about so much, by the peaks of the models in docs/benchmarks.md.
static int64_t workSpaceBytes(const drt_program &program) {
  constexpr int64_t ofCore = int64_t{2} << 20;
  if (program.num_primitives == 0)
    return 0;
  return std::min(ofCore, program.arena_bytes) * std::max(1, program.cores_per_replica);
}

static std::string taskMemoryText(const drt_program &program, const Options *options) {
  std::map<int64_t, std::string> holders; // tasks by what they hold
  int64_t replicas = 0;                   // of one task, at most
  for (int32_t i = 0; i < program.num_tasks; ++i) {
    std::string &names = holders[variableBytes(program, i)];
    names +=
        (names.empty() ? "" : ", ") + std::string(program.tasks[i].job) + ":" + std::to_string(program.tasks[i].index);
    replicas = std::max<int64_t>(replicas, program.tasks[i].num_replicas);
  }
  callLibrary();
  const int64_t code = residentBytes(), data = options ? dataBytes(program, *options) : 0;
  std::string out = "\nMemory of a task\n  program    " + bytesText(code) + "\n";
  for (const auto &[bytes, names] : holders)
    out += "  variables  " + bytesText(bytes) + (holders.size() > 1 ? " in " + names : "") + "\n";
  out += "  arenas     " + bytesText(program.arena_bytes) + " a replica\n";
  if (data > 0)
    out += "  data       " + bytesText(data) + "\n";
  const int64_t copy = options && options->saveEvery > 0 ? copyBytes(program) : 0;
  if (copy > 0)
    out += "  checkpoint " + bytesText(copy) + ", a copy while it is written\n";
  out += errorsText(program);
  const int64_t work = workSpaceBytes(program);
  if (work > 0)
    out += "  work space " + bytesText(work) + " a replica, about\n";
  const int64_t all =
      code + holders.rbegin()->first + replicas * (program.arena_bytes + errorBytes(program) + work) + data + copy;
  return out + "  in all     " + bytesText(all) + " at most" + (data > 0 ? "" : ", and the data") + "\n";
}

std::string planText(const drt_program &program, bool schedule, const Options *options) {
  std::string out =
      std::string(program.graph) + ": strategy " + program.strategy + ", " + countOf(program.num_replicas, "replica") +
      " in " + countOf(program.num_tasks, "task") + ", " +
      (program.global_batch ? "global batch " + std::to_string(program.global_batch) : "no batched feed") +
      ", target " + program.target + ", distc " + program.distc_version + "\n" + tasksText(program);

  if (program.cores_per_replica > 0)
    out += "\nA replica's step is computed by " + std::to_string(program.cores_per_replica) + " cores.\n";
  if (program.accumulate_steps > 1)
    out += "\nAn update takes " + std::to_string(program.accumulate_steps) + " batches.\n";
  out += serversText(program);
  Table variables({"variable", "type", "shape", "bytes", "part", ""});
  for (int32_t i = 0; i < program.num_variables; ++i) {
    const drt_variable &variable = program.variables[i];
    variables.add({variable.name, dtypeName(variable.type.dtype), shapeName(variable.type), bytesText(variable.bytes),
                   shardText(program, variable), variable.flags & DRT_VARIABLE_TRAINABLE ? "trained" : ""});
  }
  out += "\nVariables\n" + variables.text();
  for (int32_t i = 0; i < program.num_entries; ++i)
    out += bucketsText(program, program.entries[i]);
  out += deviceText(program);
  out += program.device ? deviceMemoryText(program) + errorsText(program) : taskMemoryText(program, options);
  if (schedule && program.plan && *program.plan)
    out += "\nSchedule\n" + std::string(program.plan);
  return out;
}

} // namespace drt
