//===- RuntimeStructs.h - The structures of drt.h, as the compiler writes them ---*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A list of its fields for each structure of drt.h that generated objects have.
// The C++ compiler checks each list against the structure: a field that is
// missing, in another place or of another size does not build. A change of drt.h
// that old executables do not understand is a change of DRT_ABI_VERSION, too.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_RUNTIMESTRUCTS_H
#define DISTC_PASSES_LOWER_PROGRAM_RUNTIMESTRUCTS_H

#include "passes/lower/program/ConstantTables.h"
#include "runtime/include/drt/checkpoint_keys.h"
#include "runtime/include/drt/drt.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstddef>

namespace distc {

/// `fields` of a structure of drt.h, in order.
template <typename Struct> struct RuntimeLayout;

/// A structure of drt.h as a type of the LLVM dialect; an array in it is so many fields.
template <typename Struct> mlir::Type getRuntimeType(ConstantTables &tables);

struct RuntimeField {
  size_t offset, bytes, alignment;
  size_t count; // elements of an array; 1 for others
  mlir::Type (*getType)(ConstantTables &tables);

  template <typename T> static constexpr RuntimeField of(size_t offset) {
    using Element = std::remove_all_extents_t<T>;
    return {offset, sizeof(T), alignof(T), sizeof(T) / sizeof(Element), [](ConstantTables &tables) -> mlir::Type {
              if constexpr (std::is_pointer_v<Element>)
                return tables.ptr;
              else if constexpr (std::is_class_v<Element>)
                return getRuntimeType<Element>(tables);
              else
                return sizeof(Element) == 8 ? tables.int64 : tables.int32;
            }};
  }
};

/// Whether the fields are all there are, each where C puts the next one.
template <typename Struct> constexpr bool isWhole() {
  auto alignTo = [](size_t bytes, size_t alignment) { return (bytes + alignment - 1) / alignment * alignment; };
  size_t end = 0;
  for (const RuntimeField &field : RuntimeLayout<Struct>::fields) {
    if (field.offset != alignTo(end, field.alignment) || field.bytes / field.count % 4 != 0)
      return false;
    end = field.offset + field.bytes;
  }
  return alignTo(end, alignof(Struct)) == sizeof(Struct);
}

/// The number of a field among those of its structure.
template <typename Struct> consteval int32_t getFieldNumber(size_t offset) {
  int32_t number = 0;
  for (const RuntimeField &field : RuntimeLayout<Struct>::fields) {
    if (field.offset == offset)
      return number;
    number += field.count;
  }
  llvm_unreachable("no field begins there");
}

// clang-format off
#define DRT_FIELD(MEMBER) RuntimeField::of<decltype(Struct::MEMBER)>(offsetof(Struct, MEMBER))
#define DRT_LAYOUT(STRUCT, ...)                                                                                                  \
  template <> struct RuntimeLayout<STRUCT> {                                                                                     \
    using Struct = STRUCT;                                                                                                       \
    static constexpr RuntimeField fields[] = {__VA_ARGS__};                                                                      \
  };                                                                                                                             \
  static_assert(isWhole<STRUCT>())

DRT_LAYOUT(drt_type, DRT_FIELD(dtype), DRT_FIELD(rank), DRT_FIELD(shape));
DRT_LAYOUT(drt_variable, DRT_FIELD(name), DRT_FIELD(type), DRT_FIELD(bytes), DRT_FIELD(flags), DRT_FIELD(full_shape),
           DRT_FIELD(slice_begin), DRT_FIELD(shares), DRT_FIELD(full_rank), DRT_FIELD(offset), DRT_FIELD(owner));
DRT_LAYOUT(drt_feed, DRT_FIELD(name), DRT_FIELD(type), DRT_FIELD(batched), DRT_FIELD(optional), DRT_FIELD(validity));
DRT_LAYOUT(drt_fetch, DRT_FIELD(name), DRT_FIELD(type), DRT_FIELD(join), DRT_FIELD(axis), DRT_FIELD(arena_offset), DRT_FIELD(summary));
DRT_LAYOUT(drt_scope, DRT_FIELD(name), DRT_FIELD(category));
DRT_LAYOUT(drt_exchange, DRT_FIELD(compressor), DRT_FIELD(rank), DRT_FIELD(aggregator), DRT_FIELD(f), DRT_FIELD(m));
DRT_LAYOUT(drt_member, DRT_FIELD(name), DRT_FIELD(offset), DRT_FIELD(count), DRT_FIELD(columns), DRT_FIELD(kept), DRT_FIELD(owner), DRT_FIELD(room),
           DRT_FIELD(variable));
DRT_LAYOUT(drt_bucket, DRT_FIELD(name), DRT_FIELD(kind), DRT_FIELD(dtype), DRT_FIELD(reduction), DRT_FIELD(arena_offset), DRT_FIELD(count),
           DRT_FIELD(num_members), DRT_FIELD(members), DRT_FIELD(exchange), DRT_FIELD(algorithm), DRT_FIELD(pipelined));
DRT_LAYOUT(drt_entry, DRT_FIELD(name), DRT_FIELD(run), DRT_FIELD(num_feeds), DRT_FIELD(feeds), DRT_FIELD(num_fetches), DRT_FIELD(fetches),
           DRT_FIELD(num_scopes), DRT_FIELD(scopes), DRT_FIELD(num_buckets), DRT_FIELD(buckets));
DRT_LAYOUT(drt_task, DRT_FIELD(job), DRT_FIELD(index), DRT_FIELD(host), DRT_FIELD(first_replica), DRT_FIELD(num_replicas));
DRT_LAYOUT(drt_kernel, DRT_FIELD(name), DRT_FIELD(grid), DRT_FIELD(block), DRT_FIELD(num_arguments));
DRT_LAYOUT(drt_image, DRT_FIELD(arch), DRT_FIELD(data), DRT_FIELD(bytes));
DRT_LAYOUT(drt_device_code, DRT_FIELD(num_images), DRT_FIELD(images), DRT_FIELD(num_kernels), DRT_FIELD(kernels), DRT_FIELD(variable_bytes));
DRT_LAYOUT(drt_gradient, DRT_FIELD(name), DRT_FIELD(dtype), DRT_FIELD(reduction), DRT_FIELD(count), DRT_FIELD(exchange));
DRT_LAYOUT(drt_pulled_rows, DRT_FIELD(variable), DRT_FIELD(rows), DRT_FIELD(row_bytes), DRT_FIELD(count), DRT_FIELD(index_dtype));
DRT_LAYOUT(drt_servers, DRT_FIELD(policy), DRT_FIELD(required), DRT_FIELD(staleness), DRT_FIELD(num_gradients), DRT_FIELD(gradients),
           DRT_FIELD(num_pulled), DRT_FIELD(pulled), DRT_FIELD(num_tables), DRT_FIELD(tables));
DRT_LAYOUT(drt_program, DRT_FIELD(abi_version), DRT_FIELD(distc_version), DRT_FIELD(graph), DRT_FIELD(strategy), DRT_FIELD(target),
           DRT_FIELD(global_batch), DRT_FIELD(num_replicas), DRT_FIELD(arena_bytes), DRT_FIELD(num_tasks), DRT_FIELD(tasks),
           DRT_FIELD(num_variables), DRT_FIELD(variables), DRT_FIELD(global_step), DRT_FIELD(num_entries), DRT_FIELD(entries),
           DRT_FIELD(num_primitives), DRT_FIELD(num_rng_states), DRT_FIELD(accumulate_steps), DRT_FIELD(num_accumulators), DRT_FIELD(plan),
           DRT_FIELD(device), DRT_FIELD(num_placeholders), DRT_FIELD(placeholders), DRT_FIELD(servers), DRT_FIELD(cores_per_replica));
DRT_LAYOUT(drt_checkpoint_key, DRT_FIELD(variable), DRT_FIELD(key), DRT_FIELD(rank), DRT_FIELD(full_shape), DRT_FIELD(slice_begin));
DRT_LAYOUT(drt_checkpoint_keys, DRT_FIELD(num_keys), DRT_FIELD(keys), DRT_FIELD(graph_bytes), DRT_FIELD(graph));
DRT_LAYOUT(drt_replica, DRT_FIELD(arena), DRT_FIELD(arena_stride), DRT_FIELD(arena_base), DRT_FIELD(variables), DRT_FIELD(feeds),
           DRT_FIELD(local_index), DRT_FIELD(local_replicas), DRT_FIELD(global_index), DRT_FIELD(num_replicas), DRT_FIELD(step));

DRT_LAYOUT(drt_matmul_desc, DRT_FIELD(dtype), DRT_FIELD(transpose_a), DRT_FIELD(transpose_b), DRT_FIELD(has_bias), DRT_FIELD(epilogue),
           DRT_FIELD(accumulate), DRT_FIELD(batch), DRT_FIELD(m), DRT_FIELD(n), DRT_FIELD(k), DRT_FIELD(batch_stride_a),
           DRT_FIELD(batch_stride_b), DRT_FIELD(precision), DRT_FIELD(widens));
DRT_LAYOUT(drt_attention_desc, DRT_FIELD(batch), DRT_FIELD(heads), DRT_FIELD(queries), DRT_FIELD(keys), DRT_FIELD(size),
           DRT_FIELD(bias_batch), DRT_FIELD(bias_heads), DRT_FIELD(bias_queries), DRT_FIELD(bias_keys),
           DRT_FIELD(scale));
DRT_LAYOUT(drt_pack_desc, DRT_FIELD(transpose), DRT_FIELD(joined), DRT_FIELD(n), DRT_FIELD(k), DRT_FIELD(bytes));
DRT_LAYOUT(drt_conv2d_desc, DRT_FIELD(dtype), DRT_FIELD(has_bias), DRT_FIELD(epilogue), DRT_FIELD(n), DRT_FIELD(h), DRT_FIELD(w), DRT_FIELD(c),
           DRT_FIELD(kh), DRT_FIELD(kw), DRT_FIELD(k), DRT_FIELD(oh), DRT_FIELD(ow), DRT_FIELD(stride_h), DRT_FIELD(stride_w),
           DRT_FIELD(dilation_h), DRT_FIELD(dilation_w), DRT_FIELD(pad_top), DRT_FIELD(pad_left), DRT_FIELD(pad_bottom), DRT_FIELD(pad_right),
           DRT_FIELD(groups), DRT_FIELD(precision), DRT_FIELD(filter_layout), DRT_FIELD(widens));
DRT_LAYOUT(drt_pool_desc, DRT_FIELD(dtype), DRT_FIELD(kind), DRT_FIELD(n), DRT_FIELD(h), DRT_FIELD(w), DRT_FIELD(c), DRT_FIELD(oh), DRT_FIELD(ow),
           DRT_FIELD(kh), DRT_FIELD(kw), DRT_FIELD(stride_h), DRT_FIELD(stride_w), DRT_FIELD(pad_top), DRT_FIELD(pad_left),
           DRT_FIELD(pad_bottom), DRT_FIELD(pad_right));
DRT_LAYOUT(drt_unique_desc, DRT_FIELD(dtype), DRT_FIELD(index_dtype), DRT_FIELD(count));
DRT_LAYOUT(drt_rows_desc, DRT_FIELD(index_dtype), DRT_FIELD(depth), DRT_FIELD(count), DRT_FIELD(row), DRT_FIELD(sizes));
DRT_LAYOUT(drt_scatter_desc, DRT_FIELD(dtype), DRT_FIELD(kind), DRT_FIELD(elements), DRT_FIELD(rows));
DRT_LAYOUT(drt_indices_desc, DRT_FIELD(padded), DRT_FIELD(reserved), DRT_FIELD(per_row), DRT_FIELD(rows));
DRT_LAYOUT(drt_random_desc, DRT_FIELD(dtype), DRT_FIELD(distribution), DRT_FIELD(seed), DRT_FIELD(seed2), DRT_FIELD(count),
           DRT_FIELD(per_replica), DRT_FIELD(reserved), DRT_FIELD(whole), DRT_FIELD(first));
DRT_LAYOUT(drt_draw, DRT_FIELD(generator), DRT_FIELD(dtype), DRT_FIELD(distribution), DRT_FIELD(first), DRT_FIELD(bounded), DRT_FIELD(minval),
           DRT_FIELD(maxval));
DRT_LAYOUT(drt_drawn_update, DRT_FIELD(kernel), DRT_FIELD(arguments), DRT_FIELD(num_arguments), DRT_FIELD(drawn), DRT_FIELD(first));
DRT_LAYOUT(drt_accumulate_desc, DRT_FIELD(dtype), DRT_FIELD(concat), DRT_FIELD(count));
DRT_LAYOUT(drt_sparse_update_desc, DRT_FIELD(dtype), DRT_FIELD(tables), DRT_FIELD(rows), DRT_FIELD(owner));

#undef DRT_LAYOUT
#undef DRT_FIELD
// clang-format on

template <typename Struct> mlir::Type getRuntimeType(ConstantTables &tables) {
  llvm::SmallVector<mlir::Type> types;
  for (const RuntimeField &field : RuntimeLayout<Struct>::fields)
    types.append(field.count, field.getType(tables));
  return tables.structType(types);
}

/// The address of a descriptor; equal ones are one.
template <typename Struct>
mlir::FlatSymbolRefAttr describe(ConstantTables &tables, llvm::ArrayRef<mlir::Attribute> fields) {
  return tables.descriptor(getRuntimeType<Struct>(tables), tables.structure(fields));
}

/// A descriptor of numbers alone, each of its field's width.
template <typename Struct> mlir::FlatSymbolRefAttr describe(ConstantTables &tables, llvm::ArrayRef<int64_t> numbers) {
  auto type = llvm::cast<mlir::LLVM::LLVMStructType>(getRuntimeType<Struct>(tables));
  // A structure whose end is padded may have a field there that its layout does not name.
  if (type.getBody().size() != numbers.size())
    llvm::report_fatal_error("a descriptor of other fields than its layout has");
  llvm::SmallVector<mlir::Attribute> fields;
  for (auto [field, number] : llvm::zip_equal(type.getBody(), numbers))
    fields.push_back(mlir::IntegerAttr::get(field, number));
  return tables.descriptor(type, tables.structure(fields));
}

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_RUNTIMESTRUCTS_H
