//===- libraries.cpp - drt.h's library calls, but for convolutions===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/guarded.h"
#include "cpu/images.h"
#include "cpu/kernels/attention.h"
#include "cpu/kernels/library_matmul.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/packed_operand.h"
#include "cpu/kernels/pool.h"

using namespace drt;

namespace {

// Which part of what the task's replicas compute together is that of one core of one of them.
Share shareOf(const Replica &replica, int core, int cores) {
  return {replica.local_index * cores + core, replica.local_replicas * cores};
}

// Of what cores pack for joined products, in bytes: whole cache lines.
int64_t bytesOfCore(int64_t bytes, int cores) { return bytes / cores / 64 * 64; }

// Images that are worth a core of their own.
int64_t grainOf(const drt_pool_desc &d) { return drt::grainOf(d.oh * d.ow * d.c * d.kh * d.kw); }

} // namespace

extern "C" {
void drt_pack(drt_replica *replica, const drt_pack_desc *desc, const void *b, void *packed) {
  guarded(replica, [&](Replica &replica) {
    const bool transposed = desc->transpose != 0;
    const int64_t pitch = transposed ? desc->k : desc->n;
    const float *right = static_cast<const float *>(b);
    if (useLibraryThreads) // as in the products
      useLibraryThreads(replica.cores.front().primitives.threads());
    const PackedForm form = PackedOperand::chooseForm(transposed, pitch);
    if (!desc->joined) {
      PackedOperand operand(packed, desc->k, desc->n);
      const int64_t parts = operand.parts(form);
      replica.divide(parts, grainOf(desc->k * desc->n / std::max<int64_t>(parts, 1)), [&](Replica::Core &, Range part) {
        operand.pack(form, right, transposed, pitch, desc->bytes, part);
      });
      return;
    }
    replica.onEachCore([&](int core, int cores) {
      const Range columns = columnsOfShare(desc->n, shareOf(replica, core, cores));
      const int64_t bytes = bytesOfCore(desc->bytes, cores);
      if (columns.empty())
        return;
      PackedOperand operand(static_cast<char *>(packed) + core * bytes, desc->k, columns.size());
      operand.pack(form, right + columns.begin * (transposed ? pitch : 1), transposed, pitch, bytes,
                   {0, operand.parts(form)});
    });
  });
}

void drt_matmul_packed(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, const void *a,
                       const void *b, const void *packed, const void *bias, void *c) {
  guarded(replica, [&](Replica &replica) {
    const MatmulParts parts = matmulParts(*desc);
    replica.divide(parts.count, parts.grain, [&](Replica::Core &core, Range part) {
      matmul(core.primitives, primitive, *desc, part, a, b, bias, c, packed);
    });
  });
}

void drt_matmul(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, const void *a, const void *b,
                const void *bias, void *c) {
  drt_matmul_packed(replica, primitive, desc, a, b, nullptr, bias, c);
}

void drt_matmul_stacked(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, int64_t count,
                        void *const *operands, const void *b, const void *bias) {
  guarded(replica, [&](Replica &replica) {
    const MatmulParts parts = matmulStackedParts(*desc, count);
    replica.divide(parts.count, parts.grain, [&](Replica::Core &core, Range lefts) {
      matmulStacked(core.primitives, primitive, *desc, lefts, count, operands, b, bias);
    });
  });
}

void drt_attention(drt_replica *replica, int32_t primitive, const drt_attention_desc *desc, const float *query,
                   const float *key, const float *value, const float *bias, float *output, float *statistics) {
  guarded(replica, [&](Replica &replica) {
    const MatmulParts parts = attentionParts(*desc);
    replica.divide(parts.count, parts.grain, [&](Replica::Core &core, Range heads) {
      attention(core.primitives, primitive, *desc, heads, {query, key, value, bias}, output, statistics);
    });
  });
}

void drt_attention_gradient(drt_replica *replica, int32_t primitive, const drt_attention_desc *desc,
                            void *const *inputs, float *query_grad, float *key_grad, float *value_grad) {
  guarded(replica, [&](Replica &replica) {
    auto input = [&](int number) { return static_cast<const float *>(inputs[number]); };
    const MatmulParts parts = attentionParts(*desc);
    replica.divide(parts.count, parts.grain, [&](Replica::Core &core, Range heads) {
      attentionGradient(core.primitives, primitive, *desc, heads, {input(0), input(1), input(2), input(3)},
                        {input(4), input(5), input(6)}, {query_grad, key_grad, value_grad});
    });
  });
}

void drt_matmul_sum(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, int64_t terms,
                    void *const *operands, void *c) {
  guarded(replica, [&](Replica &replica) {
    const MatmulParts parts = matmulSumParts(*desc, terms);
    replica.divide(parts.count, parts.grain, [&](Replica::Core &core, Range rows) {
      matmulSum(core.primitives, primitive, *desc, rows, terms, operands, c);
    });
  });
}

void drt_matmul_joined(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, int64_t a_stride,
                       int64_t c_stride, const void *a0, const void *b, const void *packed, int64_t packed_bytes,
                       const void *bias, void *c0) {
  drt_barrier(replica);
  guarded(replica, [&](Replica &replica) {
    replica.onEachCore([&](int core, int cores) {
      matmulJoined(replica.cores[core].primitives, primitive, *desc, shareOf(replica, core, cores),
                   {a0, a_stride, replica.local_replicas}, b, bias, c0, c_stride,
                   packed ? static_cast<const char *>(packed) + core * bytesOfCore(packed_bytes, cores) : nullptr);
    });
  });
  drt_barrier(replica);
}

void drt_matmul_update(drt_replica *replica, int32_t primitive, const drt_matmul_desc *desc, int64_t a_stride,
                       int64_t b_stride, const void *a0, const void *b0, double scale, drt_range_kernel kernel,
                       void *const *arguments, int32_t num_variables) {
  guarded(replica, [&](Replica &replica) {
    replica.onEachCore([&](int core, int cores) {
      matmulUpdate(replica.cores[core].primitives, primitive, *desc, shareOf(replica, core, cores),
                   {a0, a_stride, replica.local_replicas}, {b0, b_stride, replica.local_replicas}, scale, kernel,
                   arguments, num_variables);
    });
  });
}

void drt_pool(drt_replica *replica, int32_t, const drt_pool_desc *desc, const void *input, void *output) {
  guarded(replica, [&](Replica &replica) {
    const Images images(*desc, desc->c);
    replica.divide(images.count(), grainOf(*desc), [&](Replica::Core &, Range part) {
      pool(images.part(part), images.in(input, part), images.out(output, part));
    });
  });
}

void drt_pool_grad(drt_replica *replica, int32_t, const drt_pool_desc *desc, const void *input, const void *output,
                   const void *output_grad, void *input_grad) {
  guarded(replica, [&](Replica &replica) {
    const Images images(*desc, desc->c);
    replica.divide(images.count(), grainOf(*desc), [&](Replica::Core &, Range part) {
      poolGrad(images.part(part), images.in(input, part), images.out(output, part), images.out(output_grad, part),
               images.in(input_grad, part));
    });
  });
}
} // extern "C"
