//===- LowerLoops.cpp - Loops that data end become kernels ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A plan is a list of what runs, once each. A loop of which data say when it ends is
// one entry of that list: a kernel, in which `scf.while` runs what the loop's nodes
// become. Every value inside has memory of its own, of which the launch gives all (so
// that it is planned with the arena); variables are copied from one iteration to the
// next. What only the runtime can do (sorting, factorizations, random numbers of a
// generator) has no code there.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/lower/entries/EntryLowering.h"
#include "passes/lower/kernels/KernelBuffers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace distc::lower {

namespace {

using dfg::ScalarBuilder;

/// Alignment of buffers, in bytes: a cache line.
constexpr int64_t kAlignment = 64;

class LoopLowering : public EntryLowering {
public:
  LoopLowering(EntryLowering &plan, dfg::WhileOp loop, ModuleOp module, const LoweringTable &table, StringRef name)
      : EntryLowering(loop.getContext(), table), plan(plan), outermost(loop), module(module), name(name),
        entry(loop.getContext()), inside(loop.getContext()),
        tensors(func::FuncOp::create(loop.getLoc(), name, entry.getFunctionType({}, {}))) {
    asserts = plan.asserts;
    isForDevices = plan.isForDevices;
    builder.setInsertionPointToStart(tensors->addEntryBlock());
  }

  LogicalResult lower();

  Value get(Value graphValue) override {
    Value value = values.lookup(graphValue);
    assert(value && "nodes are in order");
    return value;
  }

  /// Indices that are outside are found here, and told behind the loop; a gather of them reads no foreign memory.
  LogicalResult checkIndices(Operation *node, unsigned operand, ArrayRef<int64_t> sizes) override;

private:
  /// The loop's first values are in buffers: of what changes, those that its results are to be in.
  LogicalResult lowerLoop(dfg::WhileOp loop, ArrayRef<Value> state);
  LogicalResult lowerNodes(Block &block);
  LogicalResult lowerInner(dfg::WhileOp loop);
  /// Products without a library call.
  LogicalResult lowerProduct(Operation *node);
  /// Writes what was made of tensors since the last time into the kernel.
  LogicalResult write(Operation *node);

  /// A tensor that `buffer` is the memory of.
  Value standFor(Location loc, Value buffer);
  Value getMemory(Value tensor);
  Value allocate(Location loc, RankedTensorType type);
  Value toGlobal(arith::ConstantOp constant);
  void copy(Location loc, Value from, Value to) { linalg::CopyOp::create(inside, loc, from, to); }

  EntryLowering &plan;
  dfg::WhileOp outermost;
  ModuleOp module;
  std::string name;
  drt::KernelOp kernel;
  /// Where the kernel begins, and where it is being written.
  OpBuilder entry, inside;
  /// Operations on tensors, which are written into the kernel one by one.
  OwningOpRef<func::FuncOp> tensors;
  Operation *written = nullptr; // the last of them
  IRMapping memory;
  Value scratch;
  int64_t scratchSize = 0;
  /// A scalar: whether all indices so far were inside.
  Value valid;
  bool checksIndices = false;
  SmallVector<Value> checks; // tensors, not yet written
  llvm::MapVector<Attribute, memref::GlobalOp> globals;
};

LogicalResult LoopLowering::lower() {
  Location loc = outermost.getLoc();
  SmallVector<Value> operands;
  SmallVector<Type> types;
  SmallVector<unsigned> changing;
  for (auto [number, operand] : llvm::enumerate(outermost.getOperands())) {
    if (failed(getStaticType(outermost, number)))
      return failure();
    auto type = llvm::dyn_cast<RankedTensorType>(operand.getType());
    if (!type || !type.hasStaticShape())
      return outermost.emitError() << "node '" << dfg::getNodeName(outermost) << "' has a variable of type "
                                   << operand.getType() << ", and code is generated for static shapes only";
    if (!isEmpty(type))
      operands.push_back(plan.get(operand));
    if (!isEmpty(type) && !outermost.isInvariant(number))
      changing.push_back(number);
  }
  for (Value operand : operands)
    types.push_back(getBufferType(operand.getType()));
  for (unsigned number : changing)
    types.push_back(getBufferType(outermost.getResult(number).getType()));

  OpBuilder outside = OpBuilder::atBlockEnd(module.getBody());
  kernel = drt::KernelOp::create(outside, loc, name, outside.getFunctionType(types, {}));
  Block *block = kernel.addEntryBlock();
  inside.setInsertionPointToStart(block);
  Operation *end = drt::ReturnOp::create(inside, loc);
  inside.setInsertionPoint(end);
  // Buffers are named before anything runs.
  Operation *begin = arith::ConstantIndexOp::create(inside, loc, 0);
  entry.setInsertionPoint(begin);
  valid = block->addArgument(MemRefType::get({}, entry.getI1Type()), loc);
  scratch = block->addArgument(MemRefType::get({1}, entry.getI8Type()), loc);
  memref::StoreOp::create(inside, loc, arith::ConstantOp::create(inside, loc, inside.getBoolAttr(true)), valid);

  SmallVector<Value> state;
  unsigned next = 0, changed = operands.size();
  for (auto [number, operand] : llvm::enumerate(outermost.getOperands())) {
    auto type = llvm::cast<RankedTensorType>(operand.getType());
    if (isEmpty(type)) {
      state.push_back(allocate(loc, type));
      continue;
    }
    Value first = block->getArgument(next++);
    if (outermost.isInvariant(number)) {
      state.push_back(first);
      continue;
    }
    state.push_back(block->getArgument(changed++));
    copy(loc, first, state.back());
  }
  if (failed(lowerLoop(outermost, state))) {
    kernel.erase();
    return failure();
  }
  scratch.setType(MemRefType::get({std::max<int64_t>(scratchSize, 1)}, entry.getI8Type()));
  kernel.setFunctionType(entry.getFunctionType(block->getArgumentTypes(), {}));

  SmallVector<Type> results;
  for (unsigned number : changing)
    results.push_back(outermost.getResult(number).getType());
  results.push_back(RankedTensorType::get({}, entry.getI1Type()));
  results.push_back(RankedTensorType::get({std::max<int64_t>(scratchSize, 1)}, entry.getI8Type()));
  auto launch = drt::LaunchOp::create(plan.builder, loc, results, name, operands, DenseI64ArrayAttr());
  unsigned given = 0;
  for (auto [number, result] : llvm::enumerate(outermost.getResults())) {
    auto type = llvm::cast<RankedTensorType>(result.getType());
    plan.set(result, isEmpty(type)                   ? plan.empty(loc, type)
                     : outermost.isInvariant(number) ? plan.get(outermost.getOperand(number))
                                                     : launch.getResult(given++));
  }
  if (checksIndices)
    drt::AssertOp::create(plan.builder, loc,
                          "loop '" + dfg::getNodeName(outermost).str() +
                              "' takes a row by an index that is outside of what it takes it from",
                          /*summarize=*/0, /*prints=*/false, launch.getResult(given), ValueRange());
  return success();
}

LogicalResult LoopLowering::lowerLoop(dfg::WhileOp loop, ArrayRef<Value> state) {
  Location loc = loop.getLoc();
  for (Region *region : {&loop.getCondition(), &loop.getBody()})
    for (auto [argument, buffer] : llvm::zip(region->getArguments(), state))
      set(argument, standFor(loc, buffer));
  auto runs = scf::WhileOp::create(inside, loc, TypeRange(), ValueRange());
  OpBuilder::InsertionGuard guard(inside);
  inside.createBlock(&runs.getBefore());
  if (failed(lowerNodes(loop.getCondition().front())))
    return failure();
  Value goesOn = getMemory(get(loop.getCondition().front().getTerminator()->getOperand(0)));
  scf::ConditionOp::create(inside, loc, memref::LoadOp::create(inside, loc, goesOn), ValueRange());

  inside.createBlock(&runs.getAfter());
  if (failed(lowerNodes(loop.getBody().front())))
    return failure();
  // A value that is a variable's, before any of them changes.
  SmallVector<std::pair<Value, Value>> copies;
  for (auto [number, value] : llvm::enumerate(loop.getBody().front().getTerminator()->getOperands())) {
    if (loop.isInvariant(number) || isEmpty(llvm::cast<RankedTensorType>(value.getType())))
      continue;
    Value next = getMemory(get(value)), root = next;
    while (Operation *reshape = root.getDefiningOp<memref::ExpandShapeOp>()
                                    ? root.getDefiningOp()
                                    : root.getDefiningOp<memref::CollapseShapeOp>().getOperation())
      root = reshape->getOperand(0);
    if (llvm::is_contained(state, root)) {
      Value kept = allocate(loc, llvm::cast<RankedTensorType>(value.getType()));
      copy(loc, next, kept);
      next = kept;
    }
    copies.emplace_back(next, state[number]);
  }
  for (auto [from, to] : copies)
    copy(loc, from, to);
  scf::YieldOp::create(inside, loc);
  return success();
}

LogicalResult LoopLowering::lowerNodes(Block &block) {
  for (Operation &node : block.without_terminator()) {
    LogicalResult lowered = success();
    if (auto loop = llvm::dyn_cast<dfg::WhileOp>(node))
      lowered = lowerInner(loop);
    else if (node.hasTrait<dfg::MultipliesMatrices>())
      lowered = lowerProduct(&node);
    else
      lowered = lowerComputation(&node);
    if (failed(lowered) || failed(write(&node)))
      return failure();
  }
  return success();
}

LogicalResult LoopLowering::lowerInner(dfg::WhileOp loop) {
  SmallVector<Value> state;
  for (auto [number, operand] : llvm::enumerate(loop.getOperands())) {
    Value first = getMemory(get(operand));
    if (!loop.isInvariant(number)) {
      Value own = allocate(loop.getLoc(), llvm::cast<RankedTensorType>(operand.getType()));
      copy(loop.getLoc(), first, own);
      first = own;
    }
    state.push_back(first);
  }
  if (failed(lowerLoop(loop, state)))
    return failure();
  for (auto [result, buffer] : llvm::zip(loop.getResults(), state))
    set(result, standFor(loop.getLoc(), buffer));
  return success();
}

LogicalResult LoopLowering::lowerProduct(Operation *node) {
  FailureOr<RankedTensorType> type = getStaticType(node);
  if (failed(type))
    return failure();
  auto flag = [&](StringRef attribute) {
    auto attr = node->getAttrOfType<BoolAttr>(attribute);
    return attr && attr.getValue();
  };
  Location loc = node->getLoc();
  const bool transposeA = flag("transpose_a") || flag("adj_x"), transposeB = flag("transpose_b") || flag("adj_y");
  // As the library: narrow floats are multiplied in float32.
  Type element = isNarrowFloat(type->getElementType()) ? Type(builder.getF32Type()) : type->getElementType();
  Value a = cast(loc, get(node->getOperand(0)), element), b = cast(loc, get(node->getOperand(1)), element);
  auto wide = type->clone(element);
  if (isEmpty(typeOf(a)) || isEmpty(typeOf(b))) {
    set(node->getResult(0), constant(loc, *type, 0.0));
    return success();
  }
  const int64_t rank = wide.getRank();
  MLIRContext *context = node->getContext();
  AffineExpr row = getAffineDimExpr(rank - 2, context), column = getAffineDimExpr(rank - 1, context),
             inner = getAffineDimExpr(rank, context);
  auto getMap = [&](Value factor, AffineExpr first, AffineExpr second) {
    RankedTensorType of = typeOf(factor);
    SmallVector<AffineExpr> expressions;
    for (int64_t axis = 0; axis < of.getRank() - 2; ++axis)
      expressions.push_back(of.getDimSize(axis) == 1 ? getAffineConstantExpr(0, context)
                                                     : getAffineDimExpr(rank - of.getRank() + axis, context));
    expressions.push_back(first);
    expressions.push_back(second);
    return AffineMap::get(rank + 1, 0, expressions, context);
  };
  SmallVector<AffineExpr> kept;
  for (int64_t axis = 0; axis < rank; ++axis)
    kept.push_back(getAffineDimExpr(axis, context));
  SmallVector<AffineMap> maps = {transposeA ? getMap(a, inner, row) : getMap(a, row, inner),
                                 transposeB ? getMap(b, column, inner) : getMap(b, inner, column),
                                 AffineMap::get(rank + 1, 0, kept, context)};
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  // Inputs of equal elements are no special case here: their memory is filled.
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element));
  Value output = tensor::EmptyOp::create(builder, loc, wide.getShape(), element);
  Value init = linalg::FillOp::create(builder, loc, ValueRange{zero}, ValueRange{output}).getResult(0);
  auto product = linalg::GenericOp::create(builder, loc, wide, ValueRange{a, b}, init, maps, iterators,
                                           [&](OpBuilder &body, Location bodyLoc, ValueRange arguments) {
                                             ScalarBuilder s(body, bodyLoc);
                                             linalg::YieldOp::create(
                                                 body, bodyLoc, s.add(arguments[2], s.mul(arguments[0], arguments[1])));
                                           });
  set(node->getResult(0), cast(loc, product.getResult(0), type->getElementType()));
  return success();
}

LogicalResult LoopLowering::checkIndices(Operation *node, unsigned operand, ArrayRef<int64_t> sizes) {
  Value indices = get(node->getOperand(operand));
  if (indices.getDefiningOp<arith::ConstantOp>())
    return EntryLowering::checkIndices(node, operand, sizes);
  RankedTensorType type = typeOf(indices);
  if (!asserts || isForDevices || sizes.empty() || isEmpty(type))
    return success();
  Location loc = node->getLoc();
  Value inside = gather(loc, type.clone(builder.getI1Type()), [&](ScalarBuilder &s, ValueRange at) {
    Value size = index(s, sizes.back());
    for (size_t axis = 0; axis + 1 < sizes.size(); ++axis)
      size = s.select(arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::eq, at.back(),
                                            index(s, static_cast<int64_t>(axis))),
                      index(s, sizes[axis]), size);
    Value row = toIndex(s, load(s, indices, at));
    return arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::ult, row, size).getResult();
  });
  checksIndices = true;
  checks.push_back(reduce(
      loc, inside, llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())), builder.getI1Type(),
      [](ScalarBuilder &s) { return arith::ConstantOp::create(s.builder, s.loc, s.builder.getBoolAttr(true)); },
      [](ScalarBuilder &s, Value all, Value element) { return s.bitAnd(all, element); }));
  return success();
}

LogicalResult LoopLowering::write(Operation *node) {
  Block &block = tensors->getBody().front();
  for (Operation *op = written ? written->getNextNode() : (block.empty() ? nullptr : &block.front()); op;
       op = op->getNextNode()) {
    written = op;
    // Memory and constants are there when something takes them.
    if (llvm::isa<arith::ConstantOp, tensor::EmptyOp, linalg::FillOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                  drt::EmptyOp>(op))
      continue;
    auto generic = llvm::dyn_cast<linalg::GenericOp>(op);
    if (!generic)
      return node->emitError() << "node '" << dfg::getNodeName(node) << "' (" << node->getName().stripDialect()
                               << ") is inside of a loop of which data say when it ends, where there is no code for it";
    SetVector<Value> used(generic.getInputs().begin(), generic.getInputs().end());
    getUsedValuesDefinedAbove(generic.getRegion(), used);
    for (Value value : used) {
      if (llvm::isa<TensorType>(value.getType()))
        getMemory(value);
      else // A constant of all iterations.
        memory.map(value, entry.clone(*value.getDefiningOp())->getResult(0));
    }
    for (Value result : generic.getResults())
      memory.map(result, allocate(op->getLoc(), typeOf(result)));
    writeOnBuffers(inside, generic, memory);
  }
  for (Value check : checks) {
    Value both = arith::AndIOp::create(inside, node->getLoc(), memref::LoadOp::create(inside, node->getLoc(), valid),
                                       memref::LoadOp::create(inside, node->getLoc(), getMemory(check)));
    memref::StoreOp::create(inside, node->getLoc(), both, valid);
  }
  checks.clear();
  return success();
}

Value LoopLowering::standFor(Location loc, Value buffer) {
  auto type = llvm::cast<MemRefType>(buffer.getType());
  Value tensor = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  memory.map(tensor, buffer);
  return tensor;
}

Value LoopLowering::getMemory(Value tensor) {
  if (Value buffer = memory.lookupOrNull(tensor))
    return buffer;
  Operation *op = tensor.getDefiningOp();
  if (auto constant = llvm::dyn_cast<arith::ConstantOp>(op))
    memory.map(tensor, toGlobal(constant));
  else if (llvm::isa<drt::EmptyOp, tensor::EmptyOp>(op))
    memory.map(tensor, allocate(op->getLoc(), typeOf(tensor)));
  else
    getMemory(op->getOperand(0));
  // Another shape of memory that is there from the beginning.
  return getBuffer(entry, tensor, memory);
}

Value LoopLowering::allocate(Location loc, RankedTensorType type) {
  const int64_t width = std::max<int64_t>(1, type.getElementTypeBitWidth() / 8);
  Value offset = arith::ConstantIndexOp::create(entry, loc, scratchSize);
  scratchSize = llvm::alignTo(scratchSize + type.getNumElements() * width, kAlignment);
  return memref::ViewOp::create(entry, loc, getBufferType(type), scratch, offset, ValueRange());
}

Value LoopLowering::toGlobal(arith::ConstantOp constant) {
  MemRefType type = getBufferType(constant.getType());
  memref::GlobalOp &global = globals[constant.getValue()];
  if (!global) {
    OpBuilder outside = OpBuilder::atBlockBegin(module.getBody());
    global =
        memref::GlobalOp::create(outside, constant.getLoc(), name + "_constant_" + std::to_string(globals.size() - 1),
                                 outside.getStringAttr("private"), type, constant.getValue(),
                                 /*constant=*/true, IntegerAttr());
  }
  return memref::GetGlobalOp::create(entry, constant.getLoc(), type, global.getSymName());
}

} // namespace

LogicalResult lowerLoop(EntryLowering &plan, dfg::WhileOp loop, ModuleOp module, const LoweringTable &table,
                        StringRef name) {
  return LoopLowering(plan, loop, module, table, name).lower();
}

} // namespace distc::lower
