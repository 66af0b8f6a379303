//===- GroupUpdates.cpp - One launch updates many variables ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/lower/Passes.h"
#include "passes/lower/SymbolNames.h"
#include "passes/lower/gpu/RowUpdate.h"
#include "passes/lower/gpu/UpdateOperands.h"
#include "passes/lower/kernels/RangeKernel.h"
#include "passes/lower/plan/Addresses.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_GROUPUPDATES
#include "passes/lower/Passes.h.inc"

namespace {

/// Constant memory that the tables of all kernels may take; a GPU has 64 KiB, and the kernels' own constants need some.
constexpr int64_t kMostTableBytes = 48 * 1024;

using Names = llvm::DenseSet<StringRef>;

/// Variables that an update writes and reads.
struct Effects {
  Names writes, reads;

  explicit Effects(drt::UpdateOp op) {
    for (auto variable : op.getVariables().getAsRange<FlatSymbolRefAttr>())
      writes.insert(variable.getValue());
    for (Value argument : op.getArguments())
      if (auto read = getStorage(argument).getDefiningOp<drt::ReadOp>())
        reads.insert(read.getVariable());
  }
  bool conflictsWith(const Effects &other) const {
    auto meet = [](const Names &x, const Names &y) {
      return llvm::any_of(x, [&](StringRef name) { return y.contains(name); });
    };
    return meet(writes, other.writes) || meet(writes, other.reads) || meet(reads, other.writes);
  }
};

/// The updates of one entry.
class EntryGroups {
public:
  struct Group {
    UpdateGroup group;
    std::string key;
    Operation *place; // where the launch will be
    SmallVector<Effects> effects;
  };

  EntryGroups(drt::EntryOp entry, UpdateOperands &operands, const SymbolTable &symbols)
      : entry(entry), operands(operands), symbols(symbols) {}

  /// Finds the groups, in the order of their launches.
  LogicalResult collect() {
    for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
      // A replica has its own memory, and does its work in one order.
      if (isa<drt::BarrierOp>(op)) {
        op.erase();
        continue;
      }
      if (auto update = dyn_cast<drt::UpdateOp>(op)) {
        if (failed(add(update)))
          return failure();
      } else if (auto sparse = dyn_cast<drt::SparseUpdateOp>(op)) {
        FailureOr<RowUpdate> update = RowUpdate::get(sparse, symbols);
        if (failed(update))
          return failure();
        rows.push_back(std::move(*update));
        firstOpen = groups.size();
      } else if (!movesNothing(&op)) {
        firstOpen = groups.size(); // It may read what was updated; updates stay on their sides of it.
      }
      operands.pass(&op);
    }
    return success();
  }

  SmallVector<Group> groups;
  SmallVector<RowUpdate> rows;

private:
  static bool movesNothing(Operation *op) {
    return drt::isView(op) ||
           isa<drt::ReadOp, drt::FeedOp, drt::AllReduceWaitOp, drt::RandomStateOp, drt::ReplicaIndexOp>(op);
  }

  LogicalResult add(drt::UpdateOp op) {
    if (op.getCount() == 0) {
      op.erase();
      return success();
    }
    auto kernel = symbols.lookup<drt::KernelOp>(op.getKernel());
    if (!kernel)
      return op.emitOpError("has no range kernel ") << op.getKernelAttr();
    FailureOr<UpdateRule> rule = UpdateRule::get(kernel, op.getBucket().has_value(), op.getVariables().size());
    if (failed(rule))
      return failure();
    UpdateMember member{op, {}};
    if (failed(operands.get(op, member.operands)))
      return failure();
    std::string key = operands.getKey(op, member.operands) + rule->getText().str();
    Effects effects(op);
    if (Group *group = find(key, effects)) {
      for (const UpdateOperand &operand : member.operands)
        hoist(operand.tensor, group->place);
      group->group.members.push_back(std::move(member));
      group->effects.push_back(std::move(effects));
      return success();
    }
    Group group{{std::move(*rule), op.getBucket() ? operands.getScale(*op.getBucket()) : 1.0, {}},
                std::move(key),
                op,
                {std::move(effects)}};
    group.group.members.push_back(std::move(member));
    groups.push_back(std::move(group));
    return success();
  }

  /// The open group that an update may join: it is then done before all groups behind that one.
  Group *find(StringRef key, const Effects &effects) {
    for (size_t i = groups.size(); i > firstOpen; --i) {
      Group &group = groups[i - 1];
      if (llvm::any_of(group.effects, [&](const Effects &other) { return effects.conflictsWith(other); }))
        return nullptr;
      if (group.key == key)
        return &group;
    }
    return nullptr;
  }

  /// An address may be taken earlier.
  static void hoist(Value tensor, Operation *place) {
    Operation *op = tensor ? tensor.getDefiningOp() : nullptr;
    if (!op || op->isBeforeInBlock(place))
      return;
    for (Value operand : op->getOperands())
      hoist(operand, place);
    op->moveBefore(place);
  }

  drt::EntryOp entry;
  UpdateOperands &operands;
  const SymbolTable &symbols;
  size_t firstOpen = 0;
};

struct GroupUpdates : impl::GroupUpdatesBase<GroupUpdates> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    names.emplace(module);
    FailureOr<drt::ProgramOp> program = drt::getProgram(module);
    if (failed(program))
      return signalPassFailure();
    if (!program->isForDevices()) {
      program->emitError("has no places for tensors and variables of a device; run drt-plan-memory{device}");
      return signalPassFailure();
    }
    sizes = {static_cast<int64_t>(*program->getArenaBytes()), static_cast<int64_t>(*program->getVariableBytes())};
    for (drt::EntryOp entry : getEntries(module)) {
      UpdateOperands operands(entry, symbols, program->getNumReplicas());
      EntryGroups groups(entry, operands, symbols);
      if (failed(groups.collect()))
        return signalPassFailure();
      operands.takeMeans();
      for (EntryGroups::Group &group : groups.groups)
        replace(group);
      for (const RowUpdate &update : groups.rows)
        replace(update);
    }
    lower::eraseUnusedRangeKernels(getOperation());
  }

private:
  void replace(EntryGroups::Group &found) {
    const UpdateGroup &group = found.group;
    OpBuilder b(found.place);
    SmallVector<Location> locations;
    SmallVector<Attribute> variables;
    SmallVector<int64_t> members;
    for (const UpdateMember &member : group.members) {
      drt::UpdateOp op = member.op;
      locations.push_back(op.getLoc());
      variables.push_back(op.getVariablesAttr());
      if (op.getBucket())
        members.push_back(op.getMember().value_or(0));
    }
    Location loc = FusedLoc::get(&getContext(), locations);
    std::string name = names->make("update_group_", count);
    bool fits = tableBytes + getTableBytes(group) <= kMostTableBytes;
    tableBytes += fits ? getTableBytes(group) : 0;
    writeUpdateKernel(group, getOperation(), name, sizes, fits, loc);
    auto bucket = drt::UpdateOp(group.members.front().op).getBucketAttr();
    SmallVector<Value> arguments = group.getArguments();
    if (group.isOfShares())
      arguments.insert(arguments.begin(),
                       drt::ReplicaIndexOp::create(b, loc, RankedTensorType::get({}, b.getI32Type())));
    drt::UpdateGroupOp::create(b, loc, FlatSymbolRefAttr::get(&getContext(), name), b.getArrayAttr(variables), bucket,
                               bucket ? b.getDenseI64ArrayAttr(members) : DenseI64ArrayAttr(),
                               b.getF64FloatAttr(group.scale), arguments, group.getReads(),
                               group.isOfShares() ? b.getDenseI64ArrayAttr(group.getShares()) : DenseI64ArrayAttr());
    for (const UpdateMember &member : group.members)
      drt::UpdateOp(member.op).erase();
  }

  void replace(const RowUpdate &update) {
    drt::SparseUpdateOp op = update.op;
    OpBuilder b(op);
    std::string name = names->make("update_rows_", count);
    writeRowUpdateKernel(update, getOperation(), name, sizes);
    drt::UpdateGroupOp::create(b, op.getLoc(), FlatSymbolRefAttr::get(&getContext(), name),
                               b.getArrayAttr({op.getVariablesAttr()}), IntegerAttr(), DenseI64ArrayAttr(),
                               b.getF64FloatAttr(1), update.getArguments(), update.getReads(), DenseI64ArrayAttr());
    op.erase();
  }

  MemorySizes sizes{};
  int64_t tableBytes = 0;
  unsigned count = 0;
  std::optional<lower::SymbolNames> names;
};

} // namespace
} // namespace distc
