//===- ShardSavers.cpp - A split variable's entry in a graph's savers -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A saver lists names, and for each the slice of it that a tensor is, "" for all of it. Shards are slices under the
// name of the whole, so that the original graph restores what is saved, and the other way round. What is a slice
// already (a part of a table that the graph itself splits) is split into smaller ones.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/SavedSlices.h"
#include "passes/distribute/partition/ShardRewriter.h"

using namespace mlir;

namespace distc {
namespace {

/// Operands of SaveV2 and RestoreV2.
enum { kNames = 1, kSlices = 2, kTensors = 3 };

/// The lists of a saver with entries of shards put in.
class Lists {
public:
  explicit Lists(dfg::OpaqueOp saver) : saver(saver) {
    types = dfg::getSourceAttribute<ArrayAttr>(saver, "dtypes");
    known = saver->getNumOperands() >= kTensors && types && read(kNames, names) && read(kSlices, slices);
  }

  bool isKnown() const { return known; }
  /// Whether entry `i` is what shards of `variable` are slices of.
  bool canSplit(size_t i, const ShardedVariable &variable) const {
    std::optional<tf::SavedSlice> slice = i < slices.size() ? getSlice(i, variable) : std::nullopt;
    return slice && ArrayRef(slice->sizes) == variable.type.getShape();
  }

  void keep(size_t i) { add(i, slices[i].str()); }
  void split(size_t i, const ShardedVariable &variable) {
    tf::SavedSlice whole = *getSlice(i, variable);
    for (int64_t shard = 0; shard < variable.getCount(); ++shard)
      add(i, whole.getPart(variable.getOffsets(shard), variable.getShardType(shard).getShape()).toText());
  }

  /// Gives `saver`, or what stands for it, the new lists.
  void write(OpBuilder &builder, Operation *op) {
    for (auto [operand, list] : {std::pair(kNames, &newNames), std::pair(kSlices, &newSlices)}) {
      auto old = op->getOperand(operand).getDefiningOp<dfg::ConstOp>();
      auto type = RankedTensorType::get(list->size(), dfg::StringType::get(op->getContext()));
      SmallVector<llvm::StringRef> strings(list->begin(), list->end());
      auto constant = llvm::cast<dfg::ConstOp>(builder.clone(*old));
      constant.setValueAttr(DenseStringElementsAttr::get(type, strings));
      constant.getResult().setType(type);
      dfg::removeNotedShapes(constant);
      constant->setLoc(NameLoc::get(builder.getStringAttr(dfg::getNodeName(old) + "/sliced")));
      op->setOperand(operand, constant.getResult());
    }
    dfg::removeNotedShapes(op);
    dfg::setSourceAttribute(op, "dtypes", builder.getArrayAttr(newTypes));
  }

private:
  std::optional<tf::SavedSlice> getSlice(size_t i, const ShardedVariable &variable) const {
    ArrayRef<int64_t> shape = variable.type.getShape();
    return slices[i].empty()
               ? tf::SavedSlice{"", llvm::to_vector(shape), SmallVector<int64_t>(shape.size()), llvm::to_vector(shape)}
               : tf::SavedSlice::parse(slices[i]);
  }

  /// False where there is not one string for each tensor: a constant may say that it has any number of the same one.
  bool read(unsigned operand, SmallVectorImpl<llvm::StringRef> &into) {
    auto constant = saver->getOperand(operand).getDefiningOp<dfg::ConstOp>();
    auto strings = constant ? llvm::dyn_cast<DenseStringElementsAttr>(constant.getValue()) : DenseStringElementsAttr();
    if (!strings || strings.getNumElements() != static_cast<int64_t>(types.size()))
      return false;
    llvm::append_range(into, strings.getValues<llvm::StringRef>());
    return true;
  }

  void add(size_t i, std::string slice) {
    newNames.push_back(names[i].str());
    newSlices.push_back(std::move(slice));
    newTypes.push_back(types[i]);
  }

  dfg::OpaqueOp saver;
  bool known = false;
  SmallVector<llvm::StringRef> names, slices;
  ArrayAttr types;
  std::vector<std::string> newNames, newSlices;
  SmallVector<Attribute> newTypes;
};

} // namespace

void ShardRewriter::splitSave(dfg::OpaqueOp save) {
  Lists lists(save);
  if (!lists.isKnown())
    return; // It saves what the reads join.
  SmallVector<Value> operands(save->getOperands().take_front(kTensors));
  bool changed = false;
  for (auto [i, tensor] : llvm::enumerate(save->getOperands().drop_front(kTensors))) {
    Value value = tensor;
    while (auto identity = value.getDefiningOp<dfg::IdentityOp>())
      value = identity.getX();
    auto read = reads.find(value);
    if (read == reads.end() || !lists.canSplit(i, *read->second.variable)) {
      lists.keep(i);
      operands.push_back(tensor);
      continue;
    }
    changed = true;
    lists.split(i, *read->second.variable);
    llvm::append_range(operands, read->second.parts);
  }
  if (!changed)
    return;
  SmallVector<Value> joined(save->getOperands().drop_front(kTensors));
  save->setOperands(operands);
  // What was joined for the saver alone.
  for (Value value : joined)
    if (reads.contains(value) && value.use_empty() && unnamed.erase(value)) {
      reads.erase(value);
      value.getDefiningOp()->erase();
    }
  builder.setInsertionPoint(save);
  lists.write(builder, save);
}

/// The split variable that a restored value is assigned to and nothing else, by way of `identities`; null where there
/// is none.
const ShardedVariable *ShardRewriter::findRestored(Value value, SmallVectorImpl<Operation *> &identities) const {
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (auto assign = llvm::dyn_cast<dfg::AssignOp>(user))
      return assign.getValue() == value ? find(assign.getHandle()) : nullptr;
    if (!llvm::isa<dfg::IdentityOp>(user))
      return nullptr;
    identities.push_back(user);
    value = user->getResult(0);
  }
  return nullptr;
}

void ShardRewriter::splitRestore(dfg::OpaqueOp restore) {
  Lists lists(restore);
  if (!lists.isKnown())
    return;
  SmallVector<const ShardedVariable *> variables;
  SmallVector<SmallVector<Operation *>> identities(restore.getNumResults());
  SmallVector<Type> types;
  for (auto [i, result] : llvm::enumerate(restore.getResults())) {
    const ShardedVariable *variable = findRestored(result, identities[i]);
    if (variable && !lists.canSplit(i, *variable))
      variable = nullptr;
    variables.push_back(variable);
    if (!variable) {
      lists.keep(i);
      types.push_back(result.getType());
      continue;
    }
    lists.split(i, *variable);
    for (int64_t shard = 0; shard < variable->getCount(); ++shard)
      types.push_back(variable->getShardType(shard));
  }
  if (types.size() == restore.getNumResults())
    return;
  builder.setInsertionPoint(restore);
  OperationState state(restore.getLoc(), restore->getName(), restore->getOperands(), types, restore->getAttrs());
  Operation *sliced = builder.create(state);
  builder.setInsertionPoint(sliced);
  lists.write(builder, sliced);
  replaced.insert(restore);

  size_t next = 0;
  for (auto [i, result] : llvm::enumerate(restore.getResults())) {
    if (!variables[i]) {
      result.replaceAllUsesWith(sliced->getResult(next++));
      continue;
    }
    Parts parts(sliced->getResults().slice(next, variables[i]->getCount()));
    next += parts.size();
    Value restored = result;
    for (Operation *identity : identities[i]) {
      builder.setInsertionPointAfter(identity);
      for (auto [shard, part] : llvm::enumerate(parts)) {
        Operation *clone = cloneForShard(identity, *variables[i], shard);
        clone->setOperand(0, part);
        clone->getResult(0).setType(part.getType());
        part = clone->getResult(0);
      }
      replaced.insert(identity);
      restored = identity->getResult(0);
    }
    splits[restored].push_back({variables[i]->partition.axis, &variables[i]->partition, std::move(parts)});
  }
}

} // namespace distc
