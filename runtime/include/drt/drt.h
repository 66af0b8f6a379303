//===- drt.h - What generated code and the runtime promise each other -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The one header that both sides of the interface include: passes/lower emits
// objects that define `drt_program` and call the functions below; runtime/
// implements them and owns main(). Plain C, no allocation by the callee is
// ever freed by the caller, no exception crosses it.
//
// Words used here
//   task     one process. A plan has one or more, on one or more hosts.
//   replica  one copy of the model's step, on its share of the batch. The
//            replicas of a task are threads that share the task's variables.
//   entry    one compiled function of the graph: init, step, eval.
//   arena    one replica's memory for the intermediate values of an entry.
//   bucket   gradients that are synchronized together; they lie side by side
//            in the arena, at the same offset in every replica.
//
// Memory model of a step, on which the generated code and the runtime rely
//   1. Before an entry runs, the runtime has set `feeds`, and every earlier
//      update of a variable is visible to every replica of the task.
//   2. A replica writes only to its own arena, except through
//      drt_all_reduce_* and inside range kernels (drt_update).
//   3. drt_all_reduce_start says: this replica has written its part of the
//      bucket, and neither reads nor writes it from here on: the bucket is
//      reduced in place. It does not block.
//   4. drt_all_reduce_wait blocks until every replica of every task started:
//      what they did before their start is done. It and drt_barrier are where
//      replicas meet. What several replicas of a task access, and one writes,
//      has a meeting between, unless all of them take parts of it that are cut
//      alike (drt_update's ranges, drt_sparse_update's rows). The generated code
//      sees to it, not the runtime (drt-insert-barriers, drt-verify-order).
//   5. The runtime joins all replicas of the task at the end of each entry.
//   6. Where a variable's slots lie in shares, drt_update_share writes this
//      replica's share of the variable. The others' shares are there after the
//      wait for a bucket of kind DRT_BUCKET_GATHER, which is started after the
//      replica's last update of the bucket's variables. On devices kernels do the
//      same: each replica has the whole variable, and writes its share of it. A variable that one task
//      owns is updated there (drt_update_owned), and comes to the others the same way.
//
// Errors: a function that fails reports through the runtime (drt_fail), which
// ends the task with a message that names the scope; generated code never
// checks return values.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DRT_H
#define DRT_DRT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DRT_ABI_VERSION 11u

// ---- Types ------------------------------------------------------------------

// TensorFlow's DataType numbers (types.proto), so that checkpoints, graphs and
// plans agree.
typedef enum drt_dtype {
  DRT_F32 = 1,
  DRT_F64 = 2,
  DRT_I32 = 3,
  DRT_U8 = 4,
  DRT_I16 = 5,
  DRT_I8 = 6,
  DRT_I64 = 9,
  DRT_BOOL = 10, // one byte, 0 or 1
  DRT_BF16 = 14,
  DRT_F16 = 19
} drt_dtype;

typedef struct drt_type {
  int32_t dtype;        // drt_dtype
  int32_t rank;         // 0 for a scalar
  const int64_t *shape; // rank extents, row-major and dense
} drt_type;

// ---- What a program says of itself (constant data in the executable) ---------

// Carried: not saved, and what it holds a step leaves to the next one. Others that are not saved are written before
// they are read wherever a run resumes.
enum { DRT_VARIABLE_TRAINABLE = 1, DRT_VARIABLE_SAVED = 2, DRT_VARIABLE_CARRIED = 4 };

typedef struct drt_variable {
  const char *name; // in the original graph; the checkpoint's key
  drt_type type;    // of this shard
  int64_t bytes;
  int32_t flags; // DRT_VARIABLE_*
  // A shard of a larger variable says where it lies in the whole; both null for
  // a variable that is not partitioned. rank extents each.
  const int64_t *full_shape;
  const int64_t *slice_begin;
  // A slot that the replicas hold in shares: `shares` of them, one a replica; 0 for
  // every other variable. `type` and `bytes` are those of a share, ceil(n / shares) of the
  // whole's n elements, flat, the last one padded; full_shape is the whole's, with
  // full_rank extents, and slice_begin is null. A task has its replicas' shares side by side.
  // On devices a share is longer, up to the next multiple of 16 bytes, and lies in its replica's memory.
  int32_t shares;
  int32_t full_rank; // of full_shape, with shares
  // In a program for devices: where it lies in the replica's block of variables, in bytes, 256-byte aligned. Else 0.
  int64_t offset;
  // The task that alone has memory for it, counted from 1: slots of a variable that a parameter server updates. 0:
  // every task has it.
  int32_t owner;
} drt_variable;

typedef struct drt_feed {
  const char *name; // the placeholder's node name; the array's name in --data
  drt_type type;    // what one replica is given
  int32_t batched;  // 1: axis 0 is split over the replicas; 0: given whole
  int32_t
      optional; // 1: a placeholder with a default, which is taken where the feed's pointer is null; it is never batched
  int32_t validity; // 1: a bool a row of the batch, whether the data have an example for it: the runtime's own
} drt_feed;

// How the replicas' values of a fetch become the whole batch's: parts along an axis, in the order of replicas; means
// over each share; equal values, which no data change; sums over each share; equal values of the batch as a whole,
// which are no sum or mean over its examples.
enum { DRT_JOIN_CONCAT = 0, DRT_JOIN_MEAN = 1, DRT_JOIN_FIRST = 2, DRT_JOIN_SUM = 3, DRT_JOIN_BATCH = 4 };

typedef struct drt_fetch {
  const char *name;     // tensor name, "loss:0"
  drt_type type;        // of one replica's value
  int32_t join;         // DRT_JOIN_*
  int32_t axis;         // of DRT_JOIN_CONCAT
  int64_t arena_offset; // where the entry leaves it, in bytes
  const char *summary;  // the tag of the graph's scalar summary of it; null: there is none
} drt_fetch;

// What a row of the timeline, a stall warning and an error call a piece of
// generated code.
typedef struct drt_scope {
  const char *name;     // original node name(s), "hidden1/MatMul+BiasAdd+Relu"
  const char *category; // "kernel", "matmul", "conv", "copy", "all_reduce", "update", "random"
} drt_scope;

// DRT_REDUCE_JOIN, of what servers take: not added, but one behind the other in the order of replicas.
enum { DRT_REDUCE_SUM = 0, DRT_REDUCE_MEAN = 1, DRT_REDUCE_JOIN = 2 };

// How gradients are compressed on their way. Numbers are those of strategy.proto.
enum {
  DRT_COMPRESS_NONE = 0,
  DRT_COMPRESS_F16 = 1,
  DRT_COMPRESS_F16_EF = 2,
  DRT_COMPRESS_POWER_SGD = 3,
  DRT_COMPRESS_BF16 = 100,
  DRT_COMPRESS_BF16_EF = 101,
  DRT_COMPRESS_TOP_K = 102
};

// What tasks add up by over a network; those that share memory, and GPUs, have ways of their own.
enum {
  DRT_ALL_REDUCE_AUTO = 0,     // by the number of bytes and tasks (collectives/all_reduce_algorithms.h)
  DRT_ALL_REDUCE_RING = 1,     // least bytes, each to one neighbour
  DRT_ALL_REDUCE_DOUBLING = 2, // recursive doubling: least messages
  DRT_ALL_REDUCE_HALVING = 3   // recursive halving and doubling: few messages and least bytes
};

// How the replicas' gradients become one. Numbers are those of the compiler's AggregatorKind.
enum {
  DRT_AGGREGATE_NONE = 0, // the sum or the mean
  DRT_AGGREGATE_MEDIAN = 4,
  DRT_AGGREGATE_TRIMMED_MEAN = 5,
  DRT_AGGREGATE_KRUM = 6,
  DRT_AGGREGATE_MULTI_KRUM = 7,
  DRT_AGGREGATE_GEOMETRIC_MEDIAN = 8
};

// Of a bucket whose gradients are not just summed; see runtime/cpu/exchange.h.
typedef struct drt_exchange {
  int32_t compressor; // DRT_COMPRESS_*
  int32_t rank;       // of PowerSGD
  int32_t aggregator; // DRT_AGGREGATE_*
  int32_t f, m;       // of the aggregator
} drt_exchange;

typedef struct drt_member {
  const char *name; // of the gradient's variable
  int64_t offset;   // of its first element in the bucket, in elements; 0 in DRT_BUCKET_GATHER
  int64_t count;    // elements
  int64_t columns;  // of the matrix that PowerSGD takes it for: the last extent; 1 below rank 2
  int64_t kept;     // elements that top-k sends
  // The task, counted from 1, to which DRT_BUCKET_REDUCE_SCATTER sends all of it, and from which DRT_BUCKET_GATHER
  // takes it. 0: shares.
  int64_t owner;
  // On devices, of what is scattered or gathered in shares: elements that it has room for, a multiple of num_replicas.
  // Replica r's share begins at r * room / num_replicas, which is 16-byte aligned. 0: it is not in shares.
  int64_t room;
  // Index in the program's table, in DRT_BUCKET_GATHER and DRT_BUCKET_PULL_ROWS and where drt_bucket.pipelined; else
  // -1.
  int64_t variable;
} drt_member;

enum {
  DRT_BUCKET_ALL_REDUCE = 0,
  DRT_BUCKET_REDUCE_SCATTER = 1, // a task needs its replicas' shares of each member only, or the members that it owns
  // The replicas' contributions, rows of one length, are joined in the order of replicas. One member of `count`
  // elements; behind it, aligned to 64 bytes, is room for those of all replicas.
  DRT_BUCKET_GATHER_ROWS = 3,
  DRT_BUCKET_GATHER = 2, // shares of variables that the tasks have updated; no gradients
  // Rows of variables that one task holds each, its owner, for replicas of all tasks (drt_pull_rows): the bucket has
  // the `count` indices of a replica, `dtype`; each member is a variable of `count` elements, in rows of `columns`, and
  // its indices are those from `offset` on, up to the next member's.
  DRT_BUCKET_PULL_ROWS = 4,
  // Rows of all replicas go to the tasks that own them (drt_push_rows): the bucket has the `count` indices of a
  // replica, `dtype`; each member is a shard, `count` rows from row `offset` on, of `owner`, and its `columns` are the
  // bytes of a row of values. `variable` numbers its table among the bucket's, in whose order members are, and `kept`
  // is how many of the indices are that table's.
  DRT_BUCKET_PUSH_ROWS = 5
};

typedef struct drt_bucket {
  const char *name;     // "group 3"
  int32_t kind;         // DRT_BUCKET_*
  int32_t dtype;        // one type a bucket
  int32_t reduction;    // DRT_REDUCE_*: what drt_all_reduce_result and drt_update deliver, over ALL replicas
  int64_t arena_offset; // of this replica's contribution, in bytes, 64-byte aligned
  int64_t count;        // elements, padding between members included (its contents are undefined)
  int32_t num_members;
  const drt_member *members;    // in the order in which they lie
  const drt_exchange *exchange; // null: plain sums
  int32_t algorithm;            // DRT_ALL_REDUCE_*, of plain sums that every task gets
  // 1, of DRT_BUCKET_REDUCE_SCATTER: owners may update a member from its first elements on, while others still come,
  // and a task that does not own a variable lets its new value come from the wait for the bucket on, at which nothing
  // of the entry reads it any more; of DRT_BUCKET_GATHER: all of its variables come so. See cpu/pipeline.h.
  int32_t pipelined;
} drt_bucket;

struct drt_replica;

typedef struct drt_entry {
  const char *name; // "init", "step", "eval"
  void (*run)(struct drt_replica *replica);
  int32_t num_feeds;
  const drt_feed *feeds; // replica->feeds[i] belongs to feeds[i]
  int32_t num_fetches;
  const drt_fetch *fetches; // step: fetches[0] is the loss where there is one; scalar summaries come last
  int32_t num_scopes;
  const drt_scope *scopes;
  int32_t num_buckets;
  const drt_bucket *buckets; // in the order in which every replica starts them
} drt_entry;

typedef struct drt_task {
  const char *job;       // "worker", "ps", "chief"
  int32_t index;         // within the job
  const char *host;      // address from the resource file, or "localhost"
  int32_t first_replica; // global number of its first replica
  int32_t num_replicas;
} drt_task;

// ---- Parameter servers that serve on their own (constant data in the executable) -------

// When a gradient counts, and when a replica goes on. An update is `required` gradients; "version" is the number of
// updates that variables had seen when a replica pulled them. A replica's gradients of one step count together.
enum {
  // Whoever pushes first counts (TensorFlow's SyncReplicasOptimizer): fewer gradients than replicas make backup
  // workers,
  // more an update of several batches. A gradient is dropped where its version is more than `staleness` updates behind
  // the one that it
  // comes to. Every step but a replica's first takes a token; an update gives max(required, replicas) of them, and
  // max(required - replicas, 0) + staleness * replicas are there from the beginning.
  DRT_SERVE_COUNTED = 0,
  // Update k is made of the k-th gradient of every replica; a replica waits where its next step would be more than
  // `staleness` ahead of the updates, and so of the slowest replica (stale synchronous parallel). None is dropped.
  DRT_SERVE_BOUNDED = 1,
  // Every gradient is an update of its own (required is 1), in the order in which they come; nobody waits.
  DRT_SERVE_ASYNC = 2
};

typedef struct drt_gradient {
  const char *name; // of its variable
  int32_t dtype;
  int32_t reduction;            // DRT_REDUCE_*: over the gradients of an update
  int64_t count;                // elements; of DRT_REDUCE_JOIN an update gets `required` times as many
  const drt_exchange *exchange; // the aggregator that makes one of an update's; null: plain sums
} drt_gradient;

// A table of which replicas read rows alone: they have no copy of it.
typedef struct drt_pulled_rows {
  int64_t variable;  // its index among the program's
  int64_t rows;      // that it has
  int64_t row_bytes; // of each
  int64_t count;     // a replica's indices
  int32_t index_dtype;
} drt_pulled_rows;

typedef struct drt_servers {
  int32_t policy;   // DRT_SERVE_*
  int32_t required; // gradients that make an update
  int64_t staleness;
  int32_t num_gradients;
  const drt_gradient *gradients;
  int32_t num_pulled;
  const int64_t *pulled; // indices of the variables that replicas read whole
  int32_t num_tables;
  const drt_pulled_rows *tables;
} drt_servers;

// ---- Code for devices (constant data in the executable; see docs/gpu.md) -------

// A kernel's launch, in the order of CUDA's x, y, z. Its arguments are pointers, one a tensor.
typedef struct drt_kernel {
  const char *name; // the symbol in every image
  int32_t grid[3], block[3];
  int32_t num_arguments;
} drt_kernel;

typedef struct drt_image {
  const char *arch; // "sm_90": a cubin; "compute_90": PTX, ends with a zero; "host": a shared object for the emulator
  const void *data;
  int64_t bytes;
} drt_image;

typedef struct drt_device_code {
  int32_t num_images;
  const drt_image *images; // cubins first
  int32_t num_kernels;
  const drt_kernel *kernels;
  int64_t variable_bytes; // of a replica's block of variables
} drt_device_code;

typedef struct drt_program {
  uint32_t abi_version; // DRT_ABI_VERSION
  const char *distc_version;
  const char *graph;    // file the graph came from, for messages
  const char *strategy; // "AllReduce"
  const char *target;   // "x86-64-v3"
  int64_t global_batch; // 0 where the graph has no batched feed
  int32_t num_replicas; // over all tasks
  int64_t arena_bytes;  // a replica; the largest entry's need
  int32_t num_tasks;
  const drt_task *tasks;
  int32_t num_variables;
  const drt_variable *variables;
  int32_t global_step; // index in variables, or -1
  int32_t num_entries;
  const drt_entry *entries;
  int32_t num_primitives;   // library call sites, over all entries
  int32_t num_rng_states;   // stateful random operations, over all entries
  int32_t accumulate_steps; // batches an update: the entry "accumulate" runs for all but the last of them, which is
                            // "step"'s
  int32_t num_accumulators; // gradients that are accumulated
  const char *plan;         // what --plan prints after the runtime's own tables: the schedule, readable
  const drt_device_code *device; // null: the program is the CPU's
  int32_t num_placeholders;      // of the graph, also those that no entry reads: data may have arrays for them
  const char *const *placeholders;
  // Null: every replica's step is in step with the others'. Else replicas run the entry "step" each at its own pace,
  // and the entry "update" runs once for every update, by one replica alone (local_replicas is 1).
  const drt_servers *servers;
  // Cores that compute a replica's step together. 0: one, but library calls use as many as the replicas leave them.
  int32_t cores_per_replica;
} drt_program;

// Defined by the generated object.
extern const drt_program drt_the_program;

// The same program for tasks of one host, a replica each, that have arenas and variables in common: its entries are
// those of one task with all replicas (local_replicas, arena_base), and each runs in its task's process. Absent where
// there is none such.
extern const drt_program drt_the_joint_program __attribute__((weak));

// What one graph is compiled to for several numbers of workers, tasks of one replica each: fewest workers first, the
// last is drt_the_program. Global batch and variables are the same in all, so one goes on from a checkpoint of another.
typedef struct drt_programs {
  int32_t num_programs;
  const drt_program *const *programs;
} drt_programs;

// Absent where there is one number.
extern const drt_programs drt_the_programs __attribute__((weak));

// ---- What a replica is given ---------------------------------------------------

// The head of the runtime's own replica object. Generated code reads these
// fields at these offsets and nothing behind them.
typedef struct drt_replica {
  char *arena;              // 64-byte aligned, program->arena_bytes long
  int64_t arena_stride;     // the task's arenas lie at arena_base + i * stride
  char *arena_base;         // the task's replica 0
  void *const *variables;   // one pointer a variable, shared in the task, 64-byte aligned
  const void *const *feeds; // one pointer a feed. Element-aligned only. The shares of the task's replicas of a batched
                            // feed are contiguous
  int32_t local_index;      // in the task
  int32_t local_replicas;   // of the task
  int32_t global_index;     // over all tasks
  int32_t num_replicas;     // over all tasks
  int64_t step;             // steps done before this one
} drt_replica;

// ---- Scopes -----------------------------------------------------------------------

// Every piece of work is between these two. Cheap unless a timeline is written.
void drt_scope_begin(drt_replica *replica, int32_t scope);
void drt_scope_end(drt_replica *replica, int32_t scope);

// kernel(begin, end, null, arguments) for parts of [0, count), which together are all of it, on the replica's cores at
// once. A core takes `grain` at least. Returns when all is done.
typedef void (*drt_range_kernel)(int64_t begin, int64_t end, const void *gradient, void *const *arguments);
void drt_parallel_for(drt_replica *replica, int64_t count, int64_t grain, drt_range_kernel kernel,
                      void *const *arguments);

// Ends the task: `message` says what is wrong and the way out. Does not return.
void drt_fail(drt_replica *replica, const char *message);

// ---- Devices -----------------------------------------------------------------------
// Only in programs with drt_program.device. Addresses are the device's; everything is enqueued on the replica's stream,
// in order.

// `arguments`: the kernel's num_arguments addresses, read before the call returns.
void drt_launch(drt_replica *, int32_t kernel, void *const *arguments);
void drt_copy(drt_replica *, void *to, const void *from, int64_t bytes);

// The state of stateful random operation `state` (of num_rng_states), in the replica's device memory: seven uint32,
// Philox's counter (4, the lowest first), key (2) and the replica's number over all tasks (drt_replica.global_index:
// kernels draw this replica's part of what all draw together). The first call for a state sets it up from the seeds as
// drt_random does (both 0: from --seed or entropy). Generated kernels draw from it and advance the counter, at the end
// of the entry.
void *drt_random_state(drt_replica *, int32_t state, int64_t seed, int64_t seed2);

// drt_replica.global_index, an int32 in the replica's device memory: kernels that update its share find it by that.
void *drt_replica_index(drt_replica *);

// ---- Library calls ----------------------------------------------------------------
// `primitive` numbers the call site; the runtime keeps what the library
// prepares for it, a copy a replica. Descriptors are constant data. Pointers are
// element-aligned. `scratch` belongs to the runtime.

enum { DRT_EPILOGUE_NONE = 0, DRT_EPILOGUE_RELU = 1, DRT_EPILOGUE_TANH = 2, DRT_EPILOGUE_SIGMOID = 3 };

// How products of DRT_F32 are made on devices: of the elements as they are, or of ten bits of each one's mantissa.
enum { DRT_PRECISION_OWN = 0, DRT_PRECISION_TF32 = 1 };

// c[b,m,n] = epilogue(op(a)[b,m,k] * op(b)[b,k,n] + bias[n]), row-major, dense.
typedef struct drt_matmul_desc {
  int32_t dtype; // of a and b. F32, F64, F16, BF16; on CPUs integers by a plain loop, too
  int32_t transpose_a, transpose_b;
  int32_t has_bias;
  int32_t epilogue;   // DRT_EPILOGUE_*
  int32_t accumulate; // 1: c += ...
  int64_t batch, m, n, k;
  int64_t batch_stride_a, batch_stride_b; // elements; 0 broadcasts
  int32_t precision;                      // DRT_PRECISION_*
  int32_t widens;                         // 1: c and the bias are float32, a and b of a narrower type
} drt_matmul_desc;
void drt_matmul(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, const void *a, const void *b,
                const void *bias, void *c);

// On devices: c = op(a) * op(b) + addend + bias, where the addend is of c's type and shape, and may lie where c does.
// desc: `accumulate`, without epilogue.
void drt_matmul_add(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, const void *a, const void *b,
                    const void *bias, const void *addend, void *c);

// On devices: c = a^T * b, and bias_grad[n] the sums of b's columns, both float32: the gradients of a layer's matrix
// and of its bias. desc: F16 or BF16, a transposed and b not, `widens`, without bias, epilogue, accumulation or a batch
// axis.
void drt_matmul_bias_grad(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, const void *a,
                          const void *b, float *c, float *bias_grad);

// The right operand of several matmuls of float32, op(b)[k,n], in the form in which this machine's products take it, so
// that they need not make it each: on matrix units three bfloat16 an element, elsewhere what is copied of b, or
// nothing. Only the calls that are given `packed`, and the same b, know what is there; which form it is, is said there.
typedef struct drt_pack_desc {
  int32_t transpose; // of b
  int32_t joined;    // for drt_matmul_joined: each core of the task's replicas packs the columns that it will compute
  int64_t n, k;
  int64_t bytes; // of `packed`: drt_packed_bytes; where joined, of most columns that are a core's, times the cores
} drt_pack_desc;
void drt_pack(drt_replica *replica, const drt_pack_desc *desc, const void *b, void *packed);

// What holds op(b)[k,n] in any form: six bytes an element of whole panels of 32 columns and groups of 32 steps, which
// of them are of use, and which form it is.
static inline int64_t drt_packed_bytes(int64_t k, int64_t n) {
  const int64_t blocks = (k + 31) / 32 * ((n + 31) / 32);
  return 64 + (blocks + 63) / 64 * 64 + blocks * (32 * 32 * 6);
}

// drt_matmul, on CPUs, with b as drt_pack left it in `packed`.
void drt_matmul_packed(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, const void *a,
                       const void *b, const void *packed, const void *bias, void *c);

// c_i = epilogue(a_i * op(b) + bias) for each of `count` a_i, on CPUs: matmuls of few rows that read (and pack) one b
// once for all of them. `operands`: the a_i, then the c_i. desc, of one of them: float32, a not transposed, without
// accumulation or a batch axis.
void drt_matmul_stacked(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, int64_t count,
                        void *const *operands, const void *b, const void *bias);

// On CPUs: softmax(scale * query key^T + bias) value of each head, without its scores in memory. Tensors of float32 are
// [batch, tokens, heads, size]; `statistics`, [2, batch, heads, queries], are each row's largest score and the sum of
// the exponentials of what its scores are below it. The bias's sizes are those of the scores, or 1; `bias` is null
// where there is none.
typedef struct drt_attention_desc {
  int64_t batch, heads, queries, keys, size;
  int64_t bias_batch, bias_heads, bias_queries, bias_keys;
  double scale;
} drt_attention_desc;
void drt_attention(drt_replica *replica, int32_t primitive, const drt_attention_desc *desc, const float *query,
                   const float *key, const float *value, const float *bias, float *output, float *statistics);

// The gradients of query, key and value. `inputs`: query, key, value, bias, statistics, output_grad, output.
void drt_attention_gradient(drt_replica *replica, int32_t primitive, const drt_attention_desc *desc,
                            void *const *inputs, float *query_grad, float *key_grad, float *value_grad);

// c = the sum over all terms of a_i^T * b_i: a gradient of a matrix that a step uses several times. `operands`: the
// a_i, then the b_i. desc, of one term: a is transposed and b is not, without bias, epilogue, accumulation or a batch
// axis.
void drt_matmul_sum(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, int64_t terms,
                    void *const *operands, void *c);

// The products of all the task's replicas with one b, together: c_r = epilogue(a_r * op(b) + bias). Each replica
// computes some columns for all of them, so that b is read once and not once a replica. a and c lie at a0 and c0 of
// the task's replica 0 and `a_stride`, `c_stride` bytes further in each next one. desc->m is one replica's rows; a is
// not transposed. Joins the replicas before and after. `packed`: null, or drt_pack's, joined, of `packed_bytes`.
void drt_matmul_joined(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, int64_t a_stride,
                       int64_t c_stride, const void *a0, const void *b, const void *packed, int64_t packed_bytes,
                       const void *bias, void *c0);

// The order of a filter's axes, and of its gradient's: height, width, input channels (c / groups) and output channels
// (k). TensorFlow has HWIO, PyTorch OIHW, the libraries of GPUs OHWI; programs for devices have OHWI alone.
enum { DRT_FILTER_HWIO = 0, DRT_FILTER_OHWI = 1, DRT_FILTER_OIHW = 2 };

// 2-D convolution and its gradients. Images are NHWC. Padding is explicit, dilation 1 = none.
typedef struct drt_conv2d_desc {
  int32_t dtype; // of images. On CPUs DRT_F32, DRT_BF16 or DRT_F64; on devices DRT_F32, DRT_F16, DRT_BF16 or DRT_F64
  int32_t has_bias, epilogue; // forward only
  int64_t n, h, w, c;         // input
  int64_t kh, kw, k;          // filter, output channels
  int64_t oh, ow;             // output
  int64_t stride_h, stride_w, dilation_h, dilation_w;
  int64_t pad_top, pad_left, pad_bottom, pad_right;
  int64_t groups;        // c for a depthwise convolution with multiplier k / c
  int32_t precision;     // DRT_PRECISION_*
  int32_t filter_layout; // DRT_FILTER_*
  int32_t widens;        // 1, on CPUs: the filter's gradient is float32, images are of a narrower type
} drt_conv2d_desc;
void drt_conv2d(drt_replica *, int32_t primitive, const drt_conv2d_desc *, const void *input, const void *filter,
                const void *bias, void *output);
void drt_conv2d_grad_input(drt_replica *, int32_t primitive, const drt_conv2d_desc *, const void *filter,
                           const void *output_grad, void *input_grad);
void drt_conv2d_grad_filter(drt_replica *, int32_t primitive, const drt_conv2d_desc *, const void *input,
                            const void *output_grad, void *filter_grad);

enum { DRT_POOL_MAX = 0, DRT_POOL_AVG = 1 }; // average leaves padding out, as TensorFlow does
typedef struct drt_pool_desc {
  int32_t dtype, kind;
  int64_t n, h, w, c, oh, ow, kh, kw, stride_h, stride_w, pad_top, pad_left, pad_bottom, pad_right;
} drt_pool_desc;
void drt_pool(drt_replica *, int32_t primitive, const drt_pool_desc *, const void *input, void *output);
// Maximum: the gradient goes to the first largest element of the window. input and output may be null for the average.
void drt_pool_grad(drt_replica *, int32_t primitive, const drt_pool_desc *, const void *input, const void *output,
                   const void *output_grad, void *input_grad);

// ---- Rows by index -----------------------------------------------------------------------
// Where a size depends on data, what is longer than the data is padding: the index -1 names no row and is passed over.
// An index past the end ends the task. Equal indices are taken in the order of their positions.

// Distinct values of integers, in the order in which they are met: y[idx[i]] = x[i]. y has `count` elements as x does;
// behind the distinct ones it is -1. counts (may be null, else `count` elements): how often each occurs, 0 behind them.
typedef struct drt_unique_desc {
  int32_t dtype, index_dtype; // of x and y; of idx and counts: DRT_I32 or DRT_I64
  int64_t count;
} drt_unique_desc;
void drt_unique(drt_replica *, const drt_unique_desc *, const void *x, void *y, void *idx, void *counts);

enum { DRT_MAX_INDEX_DEPTH = 8 };
typedef struct drt_rows_desc {
  int32_t index_dtype;                // DRT_I32 or DRT_I64
  int32_t depth;                      // numbers an index has: it names the first `depth` axes
  int64_t count;                      // indices
  int64_t row;                        // elements of the slice that an index names
  int64_t sizes[DRT_MAX_INDEX_DEPTH]; // of those axes
} drt_rows_desc;

// out starts as `initial`, or where that is null as what changes nothing (0 for a sum, 1 for a product, the lowest
// number for a maximum), and slice indices[i] of it is combined with row i of updates.
enum {
  DRT_SCATTER_UPDATE = 0,
  DRT_SCATTER_ADD = 1,
  DRT_SCATTER_SUB = 2,
  DRT_SCATTER_MUL = 3,
  DRT_SCATTER_MIN = 4,
  DRT_SCATTER_MAX = 5
};
typedef struct drt_scatter_desc {
  int32_t dtype, kind; // DRT_SCATTER_*
  int64_t elements;    // of out
  drt_rows_desc rows;
} drt_scatter_desc;
void drt_scatter(drt_replica *, const drt_scatter_desc *, const void *initial, const void *indices, const void *updates,
                 void *out);

// Ends the task where an index is not from 0 to below its axis' size. `name` says where indices come from, for the
// message.
typedef struct drt_indices_desc {
  int32_t padded; // 1: an index of -1 is padding, and passes
  int32_t reserved;
  int64_t per_row; // indices (of `depth` numbers each) that belong to one row of the replica's share of the batch; 0:
                   // none do
  drt_rows_desc rows;
} drt_indices_desc;
void drt_check_indices(drt_replica *, const drt_indices_desc *, const void *indices, const char *name);

// Ends the task with `message` where an element is infinite or NaN.
void drt_check_numerics(drt_replica *, int32_t dtype, int64_t count, const void *x, const char *message);

// ---- Routines on whole tensors -------------------------------------------------------------------
// Each has its numbers in `p`, and its tensors: what it reads, then what it writes. dtype, where there is one, is that
// of the first.

typedef void (*drt_routine)(drt_replica *, const int64_t *p, void *const *tensors);

// On devices: the routine runs on the host, in the order of the replica's work. Of the `count` tensors the first
// `inputs` are copied to the host's memory before, `bytes[i]` each, and the others to the device behind it; of 0 bytes
// a tensor is the host's own.
void drt_call_on_host(drt_replica *, drt_routine, const int64_t *p, void *const *tensors, const int64_t *bytes,
                      int32_t inputs, int32_t count);

// p: summarize, prints, how many tensors, then of each its dtype and the number of its elements. A condition (a bool),
// the tensors, the message (text). Ends the task with the message where the condition does not hold; where it has a
// byte 1, the first `summarize` elements of the next tensor are put (-1: all). With `prints` the task goes on, and the
// message is a line of stderr where the condition holds.
void drt_routine_assert(drt_replica *, const int64_t *p, void *const *tensors);
// p: dtype, rows, columns, k, type of the indices. x; values, indices. The k largest of a row, the first of equal ones
// first; NaN is less than all.
void drt_routine_top_k(drt_replica *, const int64_t *p, void *const *tensors);
// Matrices of DRT_F32 or DRT_F64, row-major, one behind the other; p: dtype, matrices, then
//   cholesky: n. x; l, whose upper part is zero. Ends the task where a matrix is not positive definite.
//   matrix_inverse: n, adjoint. x; its inverse. Ends the task where there is none.
//   matrix_determinant: n. x; the determinants.
//   log_matrix_determinant: n. x; signs, logarithms of absolute values.
//   matrix_solve: n, columns, adjoint. a, b; x with a x = b. Ends the task where there is none.
//   matrix_triangular_solve: n, columns, lower, adjoint. The same, looking at one triangle of a.
//   tridiagonal_solve: n, columns. The diagonals above, on and below that of a, a row each (what is outside is not
//     looked at), b; x with a x = b. Ends the task where there is none.
//   matrix_solve_ls: rows, columns, sides, fast. a, b, a number (float64); x of least |a x - b|^2 + number |x|^2: with
//     `fast` by a Cholesky factor, which ends the task where there is none, else of least |x|, whatever the number.
//   matrix_square_root: n. x; the principal root, or NaN.
//   qr: rows, columns, full. x; q, r (Householder).
//   householder_factors: rows, columns. x; as LAPACK's geqrf, r with the reflections below, and their scales.
//   householder_product: rows, columns, reflections. These, scales; the first columns of q.
//   self_adjoint_eig: n, vectors. x, of which the lower triangle is read; eigenvalues, ascending; with `vectors` these,
//   a
//     column each. NaN where x has other than numbers.
//   svd: rows, columns, vectors, full. x; singular values, descending; with `vectors` u, v. NaN as before.
//   lu: rows, columns, type of the indices. x; both triangles; where each row of their product comes from.
//   lu_pivots: the same, with the row, from 1, that each step exchanged with its own.
void drt_routine_cholesky(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_matrix_inverse(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_matrix_determinant(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_log_matrix_determinant(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_matrix_solve(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_matrix_triangular_solve(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_tridiagonal_solve(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_matrix_solve_ls(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_matrix_square_root(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_householder_factors(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_householder_product(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_self_adjoint_eig(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_svd(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_lu(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_lu_pivots(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_qr(drt_replica *, const int64_t *p, void *const *tensors);
// p: dtype (DRT_F32, DRT_F64), examples, steps, classes, labels a row at most, whether repeated labels are collapsed
// before, repeated outputs merged, examples with more labels than steps ignored (else they end the task). Logits
// [example, step, class], labels (int32, behind the last of a row -1), steps of each example (int32); losses, gradients
// with respect to the logits. The last class is the blank.
void drt_routine_ctc_loss(drt_replica *, const int64_t *p, void *const *tensors);
// p: boxes, the most that are selected, whether overlaps are given, whether 0 (else -1) is behind the last index. Boxes
// (two corners, [n, 4]) or overlaps ([n, n]), scores, the overlap and the score that are needed, sigma (float); indices
// of those selected (int32), the best first, their scores (float), how many they are (int32). As TensorFlow's: with a
// sigma other than 0 boxes that overlap lose score (Bodla et al., Soft-NMS, 2017), else they are left out.
void drt_routine_non_max_suppression(drt_replica *, const int64_t *p, void *const *tensors);
// p: examples, boxes, classes of boxes (1: those of all), classes, the most of a class, the most of all, whether boxes
// are cut to [0, 1]. Boxes [example, box, class, 4], scores [example, box, class], the overlap and the score that are
// needed (float); the best boxes of each example, their scores, their classes (float), behind the last 0, and how many
// they are (int32). As TensorFlow's: a class at a time, as non_max_suppression without sigma.
void drt_routine_combined_non_max_suppression(drt_replica *, const int64_t *p, void *const *tensors);
// p: dtype (DRT_F32, DRT_F64), steps, examples, classes, whether repeated classes are one, the blank. Scores [step,
// example, class], steps of each example (int32); places [step * example, 2] of labels, behind the last -1, labels,
// behind the last 0, the sizes of the sparse tensor (int64), the negated sum of the best scores of each example.
void drt_routine_ctc_greedy_decoder(drt_replica *, const int64_t *p, void *const *tensors);
// p: axes of the result, values of the hypothesis and of the truth, whether distances are divided by the truth's
// length, the result's sizes.
// Places, an axis more than the result has, and values of each (int64), where a place of -1 is none; distances (float).
void drt_routine_edit_distance(drt_replica *, const int64_t *p, void *const *tensors);
// p: dtype (DRT_F32, DRT_F64), rows, columns. Rows; the nearest rows that do not increase, which piece of equal
// elements each is of (int32).
void drt_routine_isotonic_regression(drt_replica *, const int64_t *p, void *const *tensors);
// p: places, axes. Places, where a block begins, its size (int64); the rows of the places in the block, in order, and
// these places in the block (int64); behind the last -1.
void drt_routine_sparse_block(drt_replica *, const int64_t *p, void *const *tensors);
// p: places, axes, places in the block at most. Places, where the block begins, places in it as sparse_block gives
// them; which of these each place is, or -1 (int64).
void drt_routine_sparse_block_rows(drt_replica *, const int64_t *p, void *const *tensors);
// p: how many. Words (int32); 0, 1, ... (int32) in the order of random_permutation, whose numbers they are.
void drt_routine_shuffled_rows(drt_replica *, const int64_t *p, void *const *tensors);
// Pools of windows of several sizes (Graham, Fractional max-pooling, 2014).
//   fractional_sequences: p: rows and columns of images, of windows, pseudo-random, positions of the rows' numbers. A
//     generator (random_state.h); where rows and columns of windows begin, behind the last the size (int64). As
//     TensorFlow's.
//   Others: p: dtype (DRT_F32, DRT_F64), images, rows, columns, channels, rows and columns of windows, whether windows
//   have the first element of the next as well.
//     fractional_max, fractional_avg: images, sequences; results of windows.
//     fractional_avg_grad: the results' gradient, sequences; that of the images.
//     fractional_max_pool_grad: images, the results' gradient, sequences; the same. It goes to the first of the
//     largest.
void drt_routine_fractional_sequences(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_fractional_max(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_fractional_avg(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_fractional_avg_grad(drt_replica *, const int64_t *p, void *const *tensors);
void drt_routine_fractional_max_pool_grad(drt_replica *, const int64_t *p, void *const *tensors);
// p: distribution (0 uniform, 1 log-uniform, 2 by weights), true classes, candidates, range, whether they are distinct.
// A generator (random_state.h), true classes (int64), with 2 the weight of each class (float); candidates (int64), how
// often each true class, and each candidate, is expected (float). The numbers are TensorFlow's.
void drt_routine_sample_candidates(drt_replica *, const int64_t *p, void *const *tensors);
// p: how many. A generator (random_state.h); 0, 1, ... (int32) in an order that is TensorFlow's (RandomShuffle).
void drt_routine_random_permutation(drt_replica *, const int64_t *p, void *const *tensors);
// p: rows, true classes a row, candidates, the most hits. True classes, candidates (int64); of each candidate that is a
// true class its row (int32), its position (int64) and -FLT_MAX (float). Behind the last: -1, -1, 0.
void drt_routine_accidental_hits(drt_replica *, const int64_t *p, void *const *tensors);

// ---- Special functions ------------------------------------------------------------------------
// What kernels call for one element; exact to float64's last digits or so. Domains are TensorFlow's; outside of them:
// NaN.
double drt_special_bessel_i0(double x);
double drt_special_bessel_i0e(double x);
double drt_special_bessel_i1(double x);
double drt_special_bessel_i1e(double x);
double drt_special_bessel_j0(double x);
double drt_special_bessel_j1(double x);
double drt_special_bessel_k0(double x);
double drt_special_bessel_k0e(double x);
double drt_special_bessel_k1(double x);
double drt_special_bessel_k1e(double x);
double drt_special_bessel_y0(double x);
double drt_special_bessel_y1(double x);
double drt_special_dawsn(double x);
double drt_special_expint(double x);
double drt_special_fresnel_cos(double x);
double drt_special_fresnel_sin(double x);
double drt_special_spence(double x);
double drt_special_polygamma(double n, double x);
double drt_special_zeta(double x, double q);
double drt_special_igamma(double a, double x);
double drt_special_igammac(double a, double x);
double drt_special_igamma_grad_a(double a, double x);
// By how much a number that was drawn from the gamma distribution of shape `a`, `x`, grows with `a`.
double drt_special_random_gamma_grad(double a, double x);
double drt_special_betainc(double a, double b, double x);
// Drawn from the gamma distribution of shape `alpha` (Marsaglia and Tsang, 2000), the Poisson distribution of mean
// `rate` (Hörmann, 1993): by numbers that follow from the bits of u, which is from [0, 1).
double drt_special_draw_gamma(double alpha, double u);
double drt_special_draw_poisson(double rate, double u);
// Of `count` tries, each of which succeeds with `probability`: by inversion, or Hörmann, 1993.
double drt_special_draw_binomial(double count, double probability, double u);

// ---- Random numbers -----------------------------------------------------------------
// TensorFlow's own: Philox 4x32-10 keyed by (seed, seed2) as GuardedPhiloxRandom
// does, consumed in the order of its CPU kernels' fill. Stateful calls advance
// `state` (one of num_rng_states a replica) as TensorFlow's op does between runs;
// both seeds 0: drawn from --seed or entropy.
enum { DRT_RANDOM_UNIFORM = 0, DRT_RANDOM_NORMAL = 1, DRT_RANDOM_TRUNCATED_NORMAL = 2, DRT_RANDOM_UNIFORM_INT = 3 };
typedef struct drt_random_desc {
  int32_t dtype, distribution;
  int64_t seed, seed2;
  int64_t count;
  // 1: the result is this replica's part of a tensor of num_replicas times as many elements, which all replicas draw
  // together as one replica would alone: the parts lie in it in the order of replicas.
  int64_t per_replica;
  // Positions (four words each) that a run of a stateful operation moves its generator on by for this result; 0: 256 an
  // element.
  int64_t reserved;
  // Not 0: the result is the elements from `first` on of a tensor of so many, other parts of which are drawn in the
  // same run from the same state: the part with the last element moves the generator on, by what goes with the whole
  // tensor.
  int64_t whole, first;
} drt_random_desc;
// minval, maxval: for DRT_RANDOM_UNIFORM_INT, elements of dtype, or null where all of dtype's numbers may come; else
// null.
void drt_random(drt_replica *, int32_t state, const drt_random_desc *, const void *minval, const void *maxval,
                void *out);
// Stateless: `seed` points to two int64. (StatelessRandomUniform, -Normal, -TruncatedNormal, version 1: key and counter
// scrambled from the seed.)
void drt_random_stateless(drt_replica *, const drt_random_desc *, const int64_t *seed, const void *minval,
                          const void *maxval, void *out);
// The same from a generator's key and the two words of its counter, the lower first: three int64.
void drt_random_keyed(drt_replica *, const drt_random_desc *, const int64_t *key_and_counter, const void *minval,
                      const void *maxval, void *out);

// Random numbers that an update draws where it needs them: what drt_random, drt_random_stateless and drt_random_keyed
// would write, of which nothing is written here but where in the generator's stream they begin. The bounds are copied.
typedef struct drt_draw {
  uint32_t generator[6]; // Philox's counter and key
  int32_t dtype, distribution;
  int64_t first;                   // of the elements that all replicas draw together, this replica's first
  int64_t bounded, minval, maxval; // of DRT_RANDOM_UNIFORM_INT: the bits of an element of dtype, where there are bounds
} drt_draw;
void drt_draw_random(drt_replica *, int32_t state, const drt_random_desc *, const void *minval, const void *maxval,
                     drt_draw *draw);
void drt_draw_stateless(drt_replica *, const drt_random_desc *, const int64_t *seed, const void *minval,
                        const void *maxval, drt_draw *draw);
void drt_draw_keyed(drt_replica *, const drt_random_desc *, const int64_t *key_and_counter, const void *minval,
                    const void *maxval, drt_draw *draw);

// ---- Synchronization ------------------------------------------------------------------

// See the memory model above. Every replica starts the buckets of an entry in the
// order of entry->buckets. Starting lets the network work while the replica goes on.
void drt_all_reduce_start(drt_replica *, int32_t bucket);
void drt_all_reduce_wait(drt_replica *, int32_t bucket);

// For consumers that are not updates: the whole reduced (or gathered) bucket, shared in the task,
// read-only, valid until the end of the entry. Call after drt_all_reduce_wait; every
// replica of the task calls it (it reduces a range each and joins). The result takes the place
// of a contribution: where updates of the bucket came before, a barrier lies between.
const void *drt_all_reduce_result(drt_replica *, int32_t bucket);

// An update that reads a reduced gradient and writes variables, element by element:
// kernel(begin, end, gradient, arguments) handles elements [begin, end) of the
// variables; gradient points to the reduced value of element `begin` (mean or sum over
// all replicas already taken). The runtime gives each replica of the task its own
// range of [0, count) and cuts it into blocks that stay in cache, reducing the
// replicas' contributions block by block: one pass over memory, nothing gathered.
// `offset` is that of the gradient's first element in the bucket, in elements. arguments
// is passed through.
void drt_update(drt_replica *, int32_t bucket, int64_t offset, int64_t count, drt_range_kernel kernel,
                void *const *arguments);

// An update without a bucket (global step, or a gradient that is already reduced):
// the same ranges, gradient = null.
void drt_update_local(drt_replica *, int64_t count, drt_range_kernel kernel, void *const *arguments);

// An update of variables whose slots lie in shares: kernel handles this replica's share,
// elements [i * share, (i + 1) * share) of `count`, i = global_index, as elements [0, ...)
// of what `arguments` point to. The gradient is that of the bucket from `offset` on, or
// null with bucket = -1.
void drt_update_share(drt_replica *, int32_t bucket, int64_t offset, int64_t count, int64_t share,
                      drt_range_kernel kernel, void *const *arguments);

// An update of variables that one task owns, counted from 0: there as drt_update, or with bucket = -1 as
// drt_update_local; elsewhere nothing is done.
void drt_update_owned(drt_replica *, int32_t owner, int32_t bucket, int64_t offset, int64_t count,
                      drt_range_kernel kernel, void *const *arguments);

// The range kernel of an update some of whose arguments are draws: `update` points to a drt_drawn_update. Calls its
// kernel for parts of the range, with the numbers of each part where the draws stand in its arguments.
enum { DRT_MAX_DRAWS = 4 }; // of an update
typedef struct drt_drawn_update {
  drt_range_kernel kernel;
  void *const *arguments; // num_arguments of them
  int64_t num_arguments;
  int64_t drawn; // bit i: argument i is a drt_draw with an element for each of the update's; DRT_MAX_DRAWS at most
  int64_t first; // the element of the draws that is the update's element 0
} drt_drawn_update;
void drt_update_drawn(int64_t begin, int64_t end, const void *gradient, void *const *update);

// ---- Several batches an update --------------------------------------------------------
// The replica's own sum of gradients over the batches of an update. `accumulator` numbers
// it over all entries. drt_accumulate keeps one more batch's; drt_accumulated writes
// the sum of those kept and of `gradient`, times scale, to `out` and forgets them.
// A sparse gradient's rows are joined instead, in the order of batches: concat = 1; `out`
// then holds accumulate_steps * count elements.
typedef struct drt_accumulate_desc {
  int32_t dtype, concat;
  int64_t count;
} drt_accumulate_desc;
void drt_accumulate(drt_replica *, int32_t accumulator, const drt_accumulate_desc *, const void *gradient);
void drt_accumulated(drt_replica *, int32_t accumulator, const drt_accumulate_desc *, double scale,
                     const void *gradient, void *out);

// An update of the rows that `indices` names; others are not touched. Every replica of the task is given the same
// indices and values (its own copy, or a shared one) and updates some of the rows. kernel is a range kernel as above,
// called for each row of the replica's: elements [slice * row, (slice + 1) * row) from the row of values.
typedef struct drt_sparse_update_desc {
  int32_t dtype;  // of the values and of the tables
  int32_t tables; // the variable and its slots, which `arguments` begins with
  drt_rows_desc rows;
  int64_t owner; // the task, counted from 1, whose replicas update; 0: those of every task
} drt_sparse_update_desc;
void drt_sparse_update(drt_replica *, const drt_sparse_update_desc *, const void *indices, const void *values,
                       drt_range_kernel kernel, void *const *arguments);

// Joins the replicas of the task: what each wrote before is visible to all after.
void drt_barrier(drt_replica *);

// Rows of variables that one task alone holds each, whichever replica asks for them: starts the bucket,
// DRT_BUCKET_PULL_ROWS, with the replica's indices, and returns when there is a row for each. `tensors` are the indices
// of each member, then the rows of each. An index that names no row gives zeros. Joins the replicas of the task as
// drt_barrier does. A row that a task's replicas name several times comes once.
void drt_pull_rows(drt_replica *, int32_t bucket, void *const *tensors);

// Rows of sparse gradients, of all replicas in their order: starts the bucket, DRT_BUCKET_PUSH_ROWS, with the replica's
// indices and rows, and returns when all replicas' are there, of the shards that its task owns. The places of others
// have the index -1, and zeros. `tensors` are the indices of each table, the rows of each, the indices of all replicas
// of each, and the rows of all replicas of each. Joins the replicas of the task as drt_barrier does.
void drt_push_rows(drt_replica *, int32_t bucket, void *const *tensors);

// ---- Parameter servers --------------------------------------------------------------------
// Arrays are in the order of program->servers' tables, read before the call returns. In the entry "step", once each and
// in this order: drt_pull copies the variables, and of each table the row of each of its indices (zeros where an index
// names no row), all as one update left them: `tensors` are the variables' values, the rows of each table, and the
// indices of each; drt_push gives the replica's gradients, when every fetch of the entry is computed, and may run the
// entry "update"; drt_take_token waits until the replica may go on. In the entry "update", first: drt_take writes the
// reduced gradients of the update's replicas.
void drt_pull(drt_replica *, void *const *tensors);
void drt_push(drt_replica *, void *const *gradients);
void drt_take_token(drt_replica *);
void drt_take(drt_replica *, void *const *results);

// ---- Contraction over the joined batch ---------------------------------------------------
// The sum over the task's replicas of op(a_r) * op(b_r), where both operands carry the
// batch on the contracted axis, is one product over the joined batch: each replica
// computes its own rows of it from all replicas' operands and updates from them while
// they are in cache. Replaces a bucket where the plan has one task. a and b lie at the same arena
// offset in every replica (or are feeds). Call between drt_all_reduce_start and the end; after drt_all_reduce_wait.
// desc->k is one replica's share. scale is applied to the product (1/N for a mean).
// The first num_variables arguments are variables of the product's shape; they are fetched ahead.
void drt_matmul_update(drt_replica *, int32_t primitive, const drt_matmul_desc *desc, int64_t a_stride,
                       int64_t b_stride, const void *a0, const void *b0, double scale, drt_range_kernel kernel,
                       void *const *arguments, int32_t num_variables);

#ifdef __cplusplus
}
#endif
#endif // DRT_DRT_H
