//===- SplitEntry.cpp - Large entries as several functions ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/program/SplitEntry.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace distc {
namespace {

constexpr int64_t kSlotBytes = 8; // of a pointer and of any number

class Splitter {
public:
  Splitter(LLVM::LLVMFuncOp entry, unsigned maxOperations)
      : entry(entry), block(entry.getBody().front()), maxOperations(maxOperations),
        builder(entry.getLoc(), entry.getContext()), pointer(LLVM::LLVMPointerType::get(entry.getContext())) {}

  void run() {
    SmallVector<SmallVector<Operation *>> parts(1);
    // Memory of the entry stays there, and how much it is.
    for (auto alloca : block.getOps<LLVM::AllocaOp>())
      partOf[alloca] = partOf[alloca.getArraySize().getDefiningOp()] = kEntry;
    for (Operation &op : block.without_terminator()) {
      if (isAddress(&op))
        operands[&op] = SmallVector<Value>(op.getOperands());
      if (partOf.contains(&op))
        continue;
      if (parts.back().size() == maxOperations)
        parts.emplace_back();
      partOf[&op] = parts.size() - 1;
      parts.back().push_back(&op);
    }
    if (parts.size() == 1)
      return;
    for (Operation &op : block.without_terminator())
      for (Value operand : op.getOperands())
        noteUse(operand, partOf.at(&op));
    makeFrame();
    for (auto [number, part] : llvm::enumerate(parts))
      movePart(number, part);
  }

private:
  static constexpr size_t kEntry = ~size_t(0);

  /// What is as cheap to compute again as to load. An entry loads where its feeds and variables are, and no data.
  static bool isAddress(Operation *op) {
    return llvm::isa<LLVM::ConstantOp, LLVM::ZeroOp, LLVM::AddressOfOp, LLVM::GEPOp, LLVM::LoadOp, LLVM::SExtOp,
                     LLVM::MulOp>(op);
  }

  void noteUse(Value value, size_t user) {
    Operation *op = value.getDefiningOp();
    if (!op || partOf.at(op) == user)
      return;
    if (isAddress(op)) {
      for (Value operand : op->getOperands())
        noteUse(operand, user);
      return;
    }
    slots.insert({value, slots.size()});
  }

  Value getSlot(Value frame, Value value) {
    return LLVM::GEPOp::create(builder, pointer, builder.getI8Type(), frame,
                               ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(kSlotBytes * slots.lookup(value))});
  }

  /// In front of everything: where the entry's own memory is, is known at once.
  void makeFrame() {
    builder.setInsertionPoint(&block, block.begin());
    Value count = LLVM::ConstantOp::create(builder, builder.getI64Type(),
                                           builder.getI64IntegerAttr(std::max<size_t>(slots.size(), 1)));
    frame = LLVM::AllocaOp::create(builder, pointer, builder.getI64Type(), count);
    for (auto [value, slot] : slots)
      if (Operation *op = value.getDefiningOp(); partOf.at(op) == kEntry) {
        builder.setInsertionPointAfter(op);
        LLVM::StoreOp::create(builder, value, getSlot(frame, value));
      }
  }

  void movePart(size_t number, ArrayRef<Operation *> operations) {
    builder.setInsertionPoint(entry);
    std::string name = (entry.getSymName() + "." + Twine(number)).str();
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(entry.getContext()), {pointer, pointer});
    auto function = LLVM::LLVMFuncOp::create(builder, name, type, LLVM::Linkage::Internal);
    function.setNoInline(true);
    Block *body = function.addEntryBlock(builder);
    builder.setInsertionPointToEnd(body);
    Operation *end = LLVM::ReturnOp::create(builder, ValueRange());
    llvm::DenseMap<Value, Value> here = {{block.getArgument(0), body->getArgument(0)}};
    for (Operation *op : operations) {
      op->moveBefore(end);
      builder.setInsertionPoint(op);
      for (OpOperand &operand : op->getOpOperands())
        operand.set(getHere(operand.get(), number, here, body->getArgument(1)));
      builder.setInsertionPointAfter(op);
      for (Value result : op->getResults())
        if (slots.contains(result))
          LLVM::StoreOp::create(builder, result, getSlot(body->getArgument(1), result));
    }
    builder.setInsertionPoint(block.getTerminator());
    LLVM::CallOp::create(builder, function, ValueRange{block.getArgument(0), frame});
  }

  Value getHere(Value value, size_t part, llvm::DenseMap<Value, Value> &here, Value frameHere) {
    if (Value known = here.lookup(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (partOf.at(op) == part)
      return value;
    Value made;
    if (isAddress(op)) {
      SmallVector<Value> inputs =
          llvm::map_to_vector(operands[op], [&](Value operand) { return getHere(operand, part, here, frameHere); });
      Operation *copy = builder.clone(*op);
      copy->setOperands(inputs);
      made = copy->getResult(0);
    } else {
      made = LLVM::LoadOp::create(builder, value.getType(), getSlot(frameHere, value));
    }
    return here[value] = made;
  }

  LLVM::LLVMFuncOp entry;
  Block &block;
  unsigned maxOperations;
  ImplicitLocOpBuilder builder;
  Type pointer;
  llvm::DenseMap<Operation *, size_t> partOf;
  llvm::DenseMap<Operation *, SmallVector<Value>> operands; // of addresses, before they are moved
  llvm::MapVector<Value, size_t> slots;
  Value frame;
};

} // namespace

void splitEntry(LLVM::LLVMFuncOp entry, unsigned maxOperations) { Splitter(entry, maxOperations).run(); }

} // namespace distc
