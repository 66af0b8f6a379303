//===- EntryConverter.h - One entry as an LLVM function ----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_ENTRYCONVERTER_H
#define DISTC_PASSES_LOWER_PROGRAM_ENTRYCONVERTER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/lower/program/ProgramTables.h"

namespace distc {

/// Fields of drt_replica, by number.
inline constexpr int32_t kArena = getFieldNumber<drt_replica>(offsetof(drt_replica, arena)),
                         kArenaStride = getFieldNumber<drt_replica>(offsetof(drt_replica, arena_stride)),
                         kArenaBase = getFieldNumber<drt_replica>(offsetof(drt_replica, arena_base)),
                         kVariables = getFieldNumber<drt_replica>(offsetof(drt_replica, variables)),
                         kFeeds = getFieldNumber<drt_replica>(offsetof(drt_replica, feeds)),
                         kLocalIndex = getFieldNumber<drt_replica>(offsetof(drt_replica, local_index)),
                         kGlobalIndex = getFieldNumber<drt_replica>(offsetof(drt_replica, global_index));

/// Says to code generation that the function is a kernel (KernelParts.h).
void markAsKernel(mlir::LLVM::LLVMFuncOp function);

/// What converting every entry shares.
struct ProgramConversion {
  ProgramConversion(mlir::ModuleOp module, drt::ProgramOp program);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  ConstantTables tables;
  CallSites sites;
  int64_t arenaBytes;
  llvm::StringMap<int64_t> variables;      // index in the program's table
  llvm::StringMap<drt::VariableOp> shared; // that the replicas hold in shares
  llvm::StringMap<int32_t> generators;     // of the entries of a step
  // Of a program for devices.
  bool isForDevices;
  int64_t firstOfBlock = 0;               // the variable that lies where a replica's block of variables begins
  llvm::StringMap<int32_t> kernelNumbers; // in the program's table
  llvm::SmallVector<mlir::FunctionOpInterface> kernels;
};

/// Makes `drt_entry_NAME(ptr replica)` of an entry and collects the rows that describe it. A tensor becomes its
/// address.
class EntryConverter {
public:
  EntryConverter(ProgramConversion &program, drt::EntryOp entry);

  /// Fails with a diagnostic at the operation. `entry` stays.
  llvm::LogicalResult convert();

  EntryTables tables;

private:
  using Value = mlir::Value;

  void createFunction();
  llvm::LogicalResult convert(mlir::Operation &op);
  llvm::LogicalResult convertWork(mlir::Operation *op);
  llvm::LogicalResult convertAddress(drt::FeedOp op);
  llvm::LogicalResult convertAddress(drt::ReadOp op);
  llvm::LogicalResult convertFetch(drt::FetchOp op);

  llvm::LogicalResult convertLaunch(drt::LaunchOp op);
  void copyBytes(Value to, Value from, int64_t count);
  /// drt_matmul_joined; `packed` and `bias` may be null.
  llvm::LogicalResult convertJoined(mlir::FlatSymbolRefAttr descriptor, mlir::Value a, mlir::Value b,
                                    mlir::Value packed, mlir::Value bias, mlir::Value result);
  llvm::LogicalResult convertConv2D(mlir::Operation *op);
  llvm::LogicalResult convertPool(mlir::Operation *op);
  llvm::LogicalResult convertRandom(mlir::Operation *op);
  llvm::LogicalResult convertDraw(drt::DrawOp op);
  /// The number of the operation's generator in the program.
  int32_t getRandomState(mlir::Operation *op);
  llvm::LogicalResult convertStart(drt::AllReduceStartOp op);
  llvm::LogicalResult convertResult(drt::AllReduceResultOp op);
  llvm::LogicalResult convertGather(drt::GatherStartOp op);
  llvm::LogicalResult convertPullRows(drt::PullRowsOp op);
  llvm::LogicalResult convertPushRows(drt::PushRowsOp op);
  llvm::LogicalResult convertPull(drt::PullOp op);
  llvm::LogicalResult convertPush(drt::PushOp op);
  llvm::LogicalResult convertAccumulate(drt::AccumulateOp op);
  llvm::LogicalResult convertAccumulated(drt::AccumulatedOp op);
  llvm::LogicalResult convertUpdate(drt::UpdateOp op);
  llvm::LogicalResult convertSparseUpdate(drt::SparseUpdateOp op);
  llvm::LogicalResult convertMatmulUpdate(drt::MatmulUpdateOp op);

  /// The address of a tensor's first element.
  Value address(Value tensor) { return addresses.lookup(tensor); }
  llvm::SmallVector<Value> addressesOf(mlir::ValueRange tensors) {
    return llvm::map_to_vector(tensors, [&](Value tensor) { return address(tensor); });
  }
  Value arenaAddress(int64_t place);
  Value offset(Value base, Value bytes);
  Value offset(Value base, int64_t bytes);
  Value replicaField(int32_t field);
  Value number32(int64_t value);
  Value number64(int64_t value);
  Value null();
  Value symbolAddress(mlir::FlatSymbolRefAttr symbol);
  Value variableAddress(llvm::StringRef name);

  /// A function of drt.h: the replica, then `arguments`.
  Value callRuntime(llvm::StringRef name, llvm::ArrayRef<Value> arguments, mlir::Type result = {});
  mlir::LLVM::LLVMFuncOp declareRuntime(llvm::StringRef name, llvm::ArrayRef<mlir::Type> types, mlir::Type result = {});
  /// On a device: a routine that runs on the host. Of `tensors` the first `inputs` are read, of `bytes` each.
  void callOnHost(mlir::FlatSymbolRefAttr routine, llvm::ArrayRef<int64_t> numbers, llvm::ArrayRef<Value> tensors,
                  llvm::ArrayRef<int64_t> bytes, size_t inputs);
  /// A routine (drt_routine) that calls a kernel of the host's with its tensors.
  mlir::FlatSymbolRefAttr makeRoutine(mlir::LLVM::LLVMFuncOp kernel);
  /// drt_routine_NAME, on a device on the host.
  void callRoutine(llvm::StringRef name, llvm::ArrayRef<int64_t> numbers, llvm::ArrayRef<Value> tensors,
                   llvm::ArrayRef<int64_t> bytes, size_t inputs);
  /// Enqueues a kernel of a program for devices: `addresses`, one an argument. Fails with a diagnostic at `op`.
  llvm::LogicalResult callKernel(mlir::Operation *op, llvm::StringRef kernel, llvm::ArrayRef<Value> addresses);
  /// On a device: the replica's block of variables (drt.variable's `at` says where each lies in it).
  Value variableBlock();
  /// An array of so many pointers. One serves every call of the entry: whoever is given it is done with it when the
  /// call returns.
  Value pointerArray(size_t pointers);
  /// Memory of the entry's own, until it ends.
  Value entryMemory(mlir::Type type);
  /// Range kernel and its array, where the kernel has draws as arguments: the runtime's that draws and calls it.
  std::pair<Value, Value> drawn(drt::UpdateOp op, Value kernel, Value array);
  /// Where the replica's value of a feed is; null where an optional one has none.
  llvm::FailureOr<Value> loadFeed(mlir::Operation *op, llvm::StringRef name, bool batched, bool optional);
  /// The array with these addresses.
  Value storeAddresses(llvm::ArrayRef<Value> tensors);
  /// The array of pointers that a range kernel is given: variables, then arguments. `update`: the update of shares,
  /// else null.
  llvm::FailureOr<Value> argumentArray(mlir::Operation *op, mlir::ArrayAttr variables, mlir::ValueRange arguments,
                                       drt::UpdateOp update = {});
  /// `base` + an index of the replica * bytes.
  Value indexed(Value base, int32_t indexField, int64_t bytes);
  /// The address of the function that unpacks the array and calls `kernel`.
  llvm::FailureOr<Value> rangeKernel(mlir::Operation *op, llvm::StringRef kernel, size_t pointers, bool hasGradient);
  /// Base and stride in bytes of what each replica of the task has at the same place.
  std::pair<Value, Value> replicated(Value tensor);

  llvm::FailureOr<drt::AllReduceStartOp> findBucket(mlir::Operation *op, int32_t bucket);

  ProgramConversion &program;
  llvm::StringMap<int32_t> generators; // by the node that draws, or that several are
  llvm::StringMap<unsigned> drawing;   // operations that each node has become
  drt::EntryOp entry;
  mlir::ImplicitLocOpBuilder builder;
  mlir::LLVM::LLVMFuncOp function;
  Value replica, arena;
  mlir::LLVM::AllocaOp pointers; // of pointerArray
  size_t maxPointers = 0;
  llvm::DenseMap<Value, Value> addresses;
  llvm::StringMap<int64_t> feeds;
  llvm::DenseMap<int32_t, drt::AllReduceStartOp> buckets;
  llvm::DenseSet<int32_t> gathers;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_ENTRYCONVERTER_H
