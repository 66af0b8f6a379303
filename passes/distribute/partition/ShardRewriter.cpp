//===- ShardRewriter.cpp - One block's uses of split variables ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/partition/ShardRewriter.h"
#include "dialects/dfg/Colocations.h"
#include "dialects/dfg/NodeEdges.h"
#include "dialects/dfg/NodeNames.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc {

static std::string getPartName(llvm::StringRef name, int64_t shard) { return strategies::getShardName(name, shard); }

ShardRewriter::ShardRewriter(Block &block, const Shards &shards, WholeValues &wholeValues)
    : block(block), shards(shards), wholeValues(wholeValues), builder(block.getParent()->getContext()) {}

LogicalResult ShardRewriter::run() {
  SmallVector<Operation *> ops;
  for (Operation &op : block)
    ops.push_back(&op);
  for (Operation *op : ops)
    if (auto handle = llvm::dyn_cast<dfg::VarHandleOp>(op); handle && shards.find(handle.getVariable()))
      handleNames[dfg::getNodeName(op)] = shards.find(handle.getVariable())->getCount();
  if (handleNames.empty())
    return success();
  findInitialAssigns();
  behindUpdates = dfg::findBehind(block, [](Operation *op) { return llvm::isa<dfg::UpdateInterface>(op); });
  for (Operation *op : ops)
    if (auto handle = llvm::dyn_cast<dfg::VarHandleOp>(op); handle && shards.find(handle.getVariable()))
      splitHandle(handle);
  auto forEachOpaque = [&](llvm::StringRef name, auto rewrite) {
    for (Operation *op : ops)
      if (auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op); opaque && opaque.getOp() == name)
        rewrite(opaque);
  };
  // What restores a variable gives its shards by themselves, before the assignments ask for them.
  forEachOpaque("RestoreV2", [&](dfg::OpaqueOp op) { splitRestore(op); });
  for (Operation *op : ops)
    if (!replaced.contains(op) && !wholeValues.isGone(op) &&
        llvm::any_of(op->getOperands(), [&](Value operand) { return find(operand); }) && failed(rewrite(op)))
      return failure();
  llvm::erase_if(ops, [&](Operation *op) { return wholeValues.isGone(op); });
  forEachOpaque("SaveV2", [&](dfg::OpaqueOp op) { splitSave(op); });
  for (Operation *op : replaced)
    op->dropAllReferences();
  for (Operation *op : replaced)
    op->erase();
  rewriteReferences();
  return success();
}

void ShardRewriter::findInitialAssigns() {
  auto graph = llvm::dyn_cast<dfg::GraphOp>(block.getParentOp());
  if (!graph)
    return;
  step = strategies::StepNodes(graph);
  strategies::StepNodes init(graph, graph.getInitOpAttr());
  for (auto assign : block.getOps<dfg::AssignOp>())
    if (const ShardedVariable *variable = init.contains(assign) ? find(assign->getOperand(0)) : nullptr)
      if (StringAttr name = dfg::getNodeNameAttr(assign))
        initialAssigns[variable->name] = name;
}

const ShardedVariable *ShardRewriter::find(Value value) const {
  auto handle = dfg::isHandle(value.getType()) ? dfg::getVariableHandle(value) : dfg::VarHandleOp();
  return handle ? shards.find(handle.getVariable()) : nullptr;
}

Value ShardRewriter::getShardHandle(Value handle, int64_t shard) const {
  return handles.find(dfg::getVariableHandle(handle))->second[shard];
}

LogicalResult ShardRewriter::rewrite(Operation *op) {
  const ShardedVariable *variable = nullptr;
  for (Value operand : op->getOperands())
    variable = variable ? variable : find(operand);
  if (WholeValues::handsOn(op))
    return passWhole(op);
  auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op);
  // Without its definition a saver seems to take references.
  if (opaque && opaque.getOp() == "SaveV2") {
    readReferences(opaque);
    return success();
  }
  // One way of the older condition: it passes the reference on, and its users read it, behind what the switch waits
  // for.
  if (opaque && opaque.getOp() == "RefSwitch" &&
      llvm::all_of(op->getUsers(), [](Operation *user) { return llvm::isa<dfg::IdentityOp>(user); })) {
    builder.setInsertionPoint(op);
    op->setOperand(0, readWhole(op, op->getOperand(0), *variable));
    opaque.setOp("Switch");
    return success();
  }
  builder.setInsertionPointAfter(op);
  replaced.insert(op);
  // A saver says of each variable that it may be read in place.
  if (llvm::isa<dfg::IdentityOp>(op) || (opaque && opaque.getOp() == "DisableCopyOnRead")) {
    // Its users look through it.
    handleNames[dfg::getNodeName(op)] = variable->getCount();
    for (int64_t shard = 0; shard < variable->getCount(); ++shard) {
      Operation *clone = cloneForShard(op, *variable, shard);
      clone->setOperand(0, getShardHandle(op->getOperand(0), shard));
      for (OpResult result : clone->getResults())
        result.setType(clone->getOperand(0).getType());
    }
    return success();
  }
  if (auto read = llvm::dyn_cast<dfg::ReadVariableOp>(op)) {
    splitRead(read, *variable);
    return success();
  }
  if (auto initialized = llvm::dyn_cast<dfg::IsInitializedOp>(op)) {
    splitIsInitialized(initialized, *variable);
    return success();
  }
  if (auto gather = llvm::dyn_cast<dfg::ResourceGatherOp>(op))
    return splitGather(gather, *variable);
  if (auto gather = llvm::dyn_cast<dfg::ResourceGatherNdOp>(op)) {
    gatherWhole(gather, *variable);
    return success();
  }
  if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(op))
    return splitUpdate(update, *variable);
  if (auto shape = llvm::dyn_cast<dfg::VariableShapeOp>(op)) {
    nameShape(shape, *variable);
    return success();
  }
  llvm::StringRef kind = opaque ? opaque.getOp() : op->getName().stripDialect();
  return op->emitError() << "node '" << dfg::getNodeName(op) << "' (op '" << kind << "') uses variable '"
                         << variable->name << "' as a whole, which the strategy splits into " << variable->getCount()
                         << " shards; leave its partitioner out";
}

/// The variable's value where `op` runs: behind what the node waits for, and behind what its operands are computed
/// behind.
Value ShardRewriter::readWhole(Operation *op, Value handle, const ShardedVariable &variable) {
  llvm::SetVector<Attribute> before;
  for (Attribute control : dfg::getControl(op))
    before.insert(control);
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp(); def && behindUpdates.contains(def))
      if (StringAttr name = dfg::getNodeNameAttr(def))
        before.insert(name);
  // Initializers ask whether the variable has a value before they read it; a value that is passed is read first.
  if (!step.isKnown() || !step.contains(op))
    if (StringAttr initial = initialAssigns.lookup(variable.name))
      before.insert(initial);
  const std::string suffix = getUniqueSuffix(variable, "/whole");
  Parts parts;
  for (int64_t shard = 0; shard < variable.getCount(); ++shard) {
    Location loc = NameLoc::get(builder.getStringAttr(variable.getShardName(shard) + suffix));
    auto read = dfg::ReadVariableOp::create(builder, loc, variable.getShardType(shard), getShardHandle(handle, shard),
                                            /*implicit=*/false);
    if (!before.empty())
      read->setAttr(dfg::kControlAttr, builder.getArrayAttr(before.getArrayRef()));
    parts.push_back(read);
  }
  return join(NameLoc::get(builder.getStringAttr(variable.name + suffix)), parts, variable);
}

/// A function that is given the variable is given its value.
LogicalResult ShardRewriter::passWhole(Operation *op) {
  builder.setInsertionPoint(op);
  llvm::MapVector<unsigned, Value> values;
  for (OpOperand &operand : op->getOpOperands())
    if (const ShardedVariable *variable = find(operand.get()))
      values[operand.getOperandNumber()] = readWhole(op, operand.get(), *variable);
  return wholeValues.pass(op, values);
}

/// Elements by several coordinates may be of any shard.
void ShardRewriter::gatherWhole(dfg::ResourceGatherNdOp gather, const ShardedVariable &variable) {
  builder.setInsertionPoint(gather);
  Value whole = readWhole(gather, gather.getHandle(), variable);
  auto elements =
      dfg::GatherNdOp::create(builder, gather.getLoc(), gather->getResult(0).getType(), whole, gather.getIndices());
  if (Attribute control = gather->getAttr(dfg::kControlAttr))
    elements->setAttr(dfg::kControlAttr, control);
  gather->getResult(0).replaceAllUsesWith(elements->getResult(0));
}

void ShardRewriter::splitHandle(dfg::VarHandleOp handle) {
  const ShardedVariable &variable = *shards.find(handle.getVariable());
  builder.setInsertionPointAfter(handle);
  replaced.insert(handle);
  Parts parts;
  for (int64_t shard = 0; shard < variable.getCount(); ++shard) {
    auto clone = llvm::cast<dfg::VarHandleOp>(cloneForShard(handle, variable, shard));
    clone.setVariable(variable.getShardName(shard));
    clone.getHandle().setType(dfg::RefType::get(builder.getContext(), variable.getShardType(shard)));
    parts.push_back(clone.getHandle());
  }
  handles[handle] = std::move(parts);
}

void ShardRewriter::splitRead(dfg::ReadVariableOp read, const ShardedVariable &variable) {
  Parts parts;
  for (int64_t shard = 0; shard < variable.getCount(); ++shard) {
    auto clone = llvm::cast<dfg::ReadVariableOp>(cloneForShard(read, variable, shard));
    clone.getHandleMutable().assign(getShardHandle(read.getHandle(), shard));
    clone.getValue().setType(variable.getShardType(shard));
    parts.push_back(clone.getValue());
  }
  // A read that is no node has no name to keep.
  Value whole =
      read.getImplicit() ? joinUnnamed(read.getHandle(), parts, variable) : join(read.getLoc(), parts, variable);
  splitGathers(read, parts, variable);
  read.getValue().replaceAllUsesWith(whole);
  reads[whole] = {&variable, std::move(parts)};
}

Value ShardRewriter::joinUnnamed(Value handle, ArrayRef<Value> parts, const ShardedVariable &variable) {
  std::string suffix = getUniqueSuffix(variable, "/concat");
  Value joined = join(getSuffixed(dfg::getVariableHandle(handle)->getLoc(), suffix), parts, variable);
  unnamed.insert(joined);
  return joined;
}

std::string ShardRewriter::getUniqueSuffix(const ShardedVariable &variable, llvm::StringRef suffix) {
  const unsigned before = numMade[(variable.name + suffix).str()]++;
  return before == 0 ? suffix.str() : (suffix + "_" + llvm::Twine(before)).str();
}

void ShardRewriter::readReferences(dfg::OpaqueOp op) {
  builder.setInsertionPoint(op);
  for (OpOperand &operand : op->getOpOperands()) {
    const ShardedVariable *variable = find(operand.get());
    if (!variable)
      continue;
    Parts parts;
    for (int64_t shard = 0; shard < variable->getCount(); ++shard)
      parts.push_back(dfg::ReadVariableOp::create(builder, builder.getUnknownLoc(), variable->getShardType(shard),
                                                  getShardHandle(operand.get(), shard), /*implicit=*/true));
    Value whole = joinUnnamed(operand.get(), parts, *variable);
    operand.set(whole);
    reads[whole] = {variable, std::move(parts)};
  }
}

void ShardRewriter::nameShape(dfg::VariableShapeOp op, const ShardedVariable &variable) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  auto type = RankedTensorType::get(variable.type.getRank(), element);
  SmallVector<Attribute> sizes;
  for (int64_t size : variable.type.getShape())
    sizes.push_back(builder.getIntegerAttr(element, size));
  op->getResult(0).replaceAllUsesWith(
      dfg::ConstOp::create(builder, op.getLoc(), type, DenseElementsAttr::get(type, sizes)));
}

void ShardRewriter::splitIsInitialized(dfg::IsInitializedOp op, const ShardedVariable &variable) {
  Value all;
  for (int64_t shard = 0; shard < variable.getCount(); ++shard) {
    auto clone = llvm::cast<dfg::IsInitializedOp>(cloneForShard(op, variable, shard));
    clone.getHandleMutable().assign(getShardHandle(op.getHandle(), shard));
    Location loc = shard == variable.getCount() - 1 ? op.getLoc() : getSuffixed(op.getLoc(), "/and");
    all = all ? dfg::LogicalAndOp::create(builder, loc, op.getResult().getType(), all, clone.getResult()).getResult()
              : clone.getResult();
  }
  op.getResult().replaceAllUsesWith(all);
}

LogicalResult ShardRewriter::splitUpdate(dfg::UpdateInterface update, const ShardedVariable &variable) {
  Operation *op = update;
  int gradient = update.getGradientOperand(), indices = update.getIndicesOperand();
  SmallVector<unsigned> written = update.getWrittenOperands();
  if (llvm::any_of(written, [&](unsigned operand) { return !find(op->getOperand(operand)); }))
    return op->emitError() << "node '" << dfg::getNodeName(op) << "' updates variable '" << variable.name
                           << "' together with one that is not split; leave its partitioner out";
  Parts ownIndices, ownGradients;
  if (indices >= 0) {
    if (failed(splitRows(update, variable, ownIndices, ownGradients)))
      return failure();
  } else if (gradient >= 0) {
    Value value = op->getOperand(gradient);
    auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
    if (type && failed(verifyCompatibleShape(type.getShape(), variable.type.getShape())))
      return op->emitError() << "node '" << dfg::getNodeName(op) << "' updates variable '" << variable.name
                             << "', which the strategy splits, from a value of another shape: " << type << " for "
                             << variable.type << "; leave its partitioner out";
    ownGradients = split(value, variable);
  }
  // Where the gradient was made after the update's place in a graph with cycles, order does not matter.
  builder.setInsertionPointAfter(op);
  Parts updated;
  SmallVector<llvm::StringRef> names;
  for (int64_t shard = 0; shard < variable.getCount(); ++shard) {
    Operation *clone = cloneForShard(op, variable, shard);
    for (unsigned operand : written)
      clone->setOperand(operand, getShardHandle(op->getOperand(operand), shard));
    if (gradient >= 0)
      clone->setOperand(gradient, ownGradients[shard]);
    if (indices >= 0)
      clone->setOperand(indices, ownIndices[shard]);
    names.push_back(dfg::getNodeName(clone));
    for (Value result : clone->getResults()) {
      result.setType(variable.getShardType(shard));
      updated.push_back(result);
    }
  }
  if (op->getNumResults() && !op->getResult(0).use_empty())
    op->getResult(0).replaceAllUsesWith(join(op->getLoc(), updated, variable));
  else if (!dfg::getNodeName(op).empty())
    // Who waits for the update waits for that of every shard.
    dfg::GroupOp::create(builder, op->getLoc())->setAttr(dfg::kControlAttr, builder.getStrArrayAttr(names));
  return success();
}

// ---- Names -------------------------------------------------------------------------------

Location ShardRewriter::getSuffixed(Location loc, const llvm::Twine &suffix) {
  auto name = loc->findInstanceOf<NameLoc>();
  return name ? NameLoc::get(builder.getStringAttr(name.getName().getValue() + suffix)) : loc;
}

Operation *ShardRewriter::cloneForShard(Operation *op, const ShardedVariable &variable, int64_t shard) {
  Operation *clone = builder.clone(*op);
  // As TensorFlow names what belongs to a shard: w/part_1/Assign.
  llvm::StringRef rest = dfg::getNodeName(op);
  if (rest.consume_front(variable.name) && rest.starts_with("/"))
    clone->setLoc(NameLoc::get(builder.getStringAttr(variable.getShardName(shard) + rest)));
  else
    clone->setLoc(getSuffixed(op->getLoc(), "/part_" + llvm::Twine(shard)));
  NamedAttrList attributes(dfg::getSourceAttributes(op));
  if (attributes.empty())
    return clone;
  // The shape of the whole.
  attributes.erase("_output_shapes");
  if (llvm::isa<dfg::VarHandleOp>(op))
    for (llvm::StringRef name : {"shared_name", "debug_name"})
      if (auto text = llvm::dyn_cast_or_null<StringAttr>(attributes.get(name)); text && !text.getValue().empty())
        attributes.set(name, builder.getStringAttr(getPartName(text.getValue().rtrim('/'), shard) +
                                                   (text.getValue().ends_with("/") ? "/" : "")));
  dfg::setSourceAttributes(clone, attributes);
  colocate(clone, shard);
  return clone;
}

/// What is with a split variable is with its shard of that number.
void ShardRewriter::colocate(Operation *op, int64_t shard) {
  dfg::mapColocations(op, [&](llvm::StringRef name) -> SmallVector<std::string> {
    auto known = handleNames.find(name);
    return {known == handleNames.end() ? name.str() : getPartName(name, std::min(shard, known->second - 1))};
  });
}

/// Nodes that stay name the shards where they named the variable: all of them to wait for, the first to be with.
void ShardRewriter::rewriteReferences() {
  for (Operation &op : block) {
    if (auto control = op.getAttrOfType<ArrayAttr>(dfg::kControlAttr)) {
      SmallVector<Attribute> names;
      for (auto name : control.getAsRange<StringAttr>()) {
        auto known = handleNames.find(name.getValue());
        if (known == handleNames.end())
          names.push_back(name);
        else
          for (int64_t shard = 0; shard < known->second; ++shard)
            names.push_back(builder.getStringAttr(getPartName(name.getValue(), shard)));
      }
      if (names.size() != control.size())
        op.setAttr(dfg::kControlAttr, builder.getArrayAttr(names));
    }
    colocate(&op, 0);
  }
}

} // namespace distc
