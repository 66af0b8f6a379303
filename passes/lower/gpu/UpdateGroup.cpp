//===- UpdateGroup.cpp - Updates of many variables as one kernel --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/UpdateGroup.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/lower/gpu/DeviceKernel.h"
#include "passes/lower/plan/Addresses.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {
namespace {

constexpr int64_t kMostThreads = 256, kWarp = 32;
/// NVVM's number for constant memory.
constexpr int64_t kConstantMemory = 4;
/// Columns of the table; behind them, the share's elements where a replica updates its share, and the offset of each
/// operand that has one.
enum Column { FirstBlock = 0, Count = 1, NumColumns = 2 };
/// The kernel's arguments behind the bases of arena and variables.
constexpr unsigned kFirstArgument = 2;

bool hasOffset(const UpdateOperand &operand) {
  return operand.kind == UpdateOperand::Arena || operand.kind == UpdateOperand::Variables;
}
/// Elements that a replica updates at most.
int64_t countOf(const UpdateMember &member) {
  drt::UpdateOp op = member.op;
  return op.getShare().value_or(op.getCount());
}

class GroupWriter {
public:
  GroupWriter(const UpdateGroup &group, ModuleOp module, MemorySizes sizes, Location loc)
      : group(group), module(module), sizes(sizes), b(loc, module.getContext()), lanes(chooseLanes()),
        threads(chooseThreads()) {}

  void write(StringRef name, bool constantTable) {
    writeTable((name + "_table").str(), constantTable);
    gpu::GPUFuncOp kernel = createKernel(b, module, name, arguments(), blocks, threads);
    Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x), thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
    table = memref::GetGlobalOp::create(b, tableType, name.str() + "_table");
    row = findMember(block);
    count = entry(row, Count);
    if (group.isOfShares())
      takeShare(kernel.getArgument(kFirstArgument));
    bind(kernel);
    // What a thread updates.
    Value within = arith::SubIOp::create(b, block, entry(row, FirstBlock));
    Value position = arith::AddIOp::create(b, arith::MulIOp::create(b, within, number(threads)), thread);
    Value first = arith::MulIOp::create(b, position, number(lanes)),
          behind = arith::AddIOp::create(b, first, number(lanes));
    auto whole = scf::IfOp::create(b, arith::CmpIOp::create(b, arith::CmpIPredicate::ule, behind, count),
                                   /*withElse=*/lanes > 1);
    b.setInsertionPointToStart(whole.thenBlock());
    updateVector(first);
    if (lanes == 1)
      return;
    b.setInsertionPointToStart(whole.elseBlock());
    auto rest = scf::ForOp::create(b, first, count, number(1));
    b.setInsertionPointToStart(rest.getBody());
    updateElement(rest.getInductionVar());
  }

private:
  ArrayRef<UpdateOperand> operands() const { return group.members.front().operands; }
  /// The table's column of the first offset.
  int64_t firstOffset() const { return NumColumns + group.isOfShares(); }

  /// Elements that a thread updates by one access of 128 bits. What has an address of its own need not be aligned;
  /// bools are bytes, but a vector of them is bits.
  int64_t chooseLanes() const {
    int64_t bytes = 1;
    for (auto [operand, type] : llvm::zip(operands(), group.rule.getTypes())) {
      if (operand.kind == UpdateOperand::Pointer || type.isInteger(1))
        return 1;
      if (hasOffset(operand))
        bytes = std::max(bytes, getElementBytes(type));
    }
    return kVectorBytes / bytes;
  }

  int64_t chooseThreads() const {
    int64_t largest = 1;
    for (const UpdateMember &member : group.members)
      largest = std::max(largest, countOf(member));
    return std::clamp<int64_t>(llvm::PowerOf2Ceil(llvm::divideCeil(largest, lanes)), kWarp, kMostThreads);
  }

  void writeTable(const std::string &name, bool constant) {
    SmallVector<int64_t> numbers;
    for (const UpdateMember &member : group.members) {
      numbers.append({blocks, static_cast<int64_t>(drt::UpdateOp(member.op).getCount())});
      if (group.isOfShares())
        numbers.push_back(countOf(member));
      for (const UpdateOperand &operand : member.operands)
        if (hasOffset(operand))
          numbers.push_back(operand.offset);
      blocks += llvm::divideCeil(countOf(member), threads * lanes);
    }
    int64_t rows = group.members.size(), columns = numbers.size() / rows;
    auto shape = RankedTensorType::get({rows, columns}, b.getI64Type());
    tableType = MemRefType::get(shape.getShape(), b.getI64Type(), MemRefLayoutAttrInterface(),
                                constant ? b.getI64IntegerAttr(kConstantMemory) : Attribute());
    b.setInsertionPointToStart(getKernelModule(module).getBody());
    memref::GlobalOp::create(b, name, b.getStringAttr("private"), tableType, DenseIntElementsAttr::get(shape, numbers),
                             /*constant=*/true, IntegerAttr());
  }

  SmallVector<Type> arguments() {
    SmallVector<Type> types = {MemRefType::get({sizes.arena}, b.getI8Type()),
                               MemRefType::get({sizes.variables}, b.getI8Type())};
    if (group.isOfShares())
      types.push_back(MemRefType::get({1}, b.getI32Type()));
    for (Value tensor : group.getArguments()) {
      auto type = cast<RankedTensorType>(tensor.getType());
      types.push_back(MemRefType::get({type.getNumElements()}, type.getElementType()));
    }
    return types;
  }

  Value number(int64_t value) { return arith::ConstantIndexOp::create(b, value); }

  Value entry(Value row, int64_t column) {
    Value value = memref::LoadOp::create(b, table, ValueRange{row, number(column)});
    return arith::IndexCastOp::create(b, b.getIndexType(), value);
  }

  /// The last member whose first block is not behind `block`.
  Value findMember(Value block) {
    int64_t rows = group.members.size();
    Value found = number(0);
    for (int64_t step = llvm::PowerOf2Ceil(rows) / 2; step > 0; step /= 2) {
      Value candidate = arith::MinUIOp::create(b, arith::AddIOp::create(b, found, number(step)), number(rows - 1));
      Value fits = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, entry(candidate, FirstBlock), block);
      found = arith::SelectOp::create(b, fits, candidate, found);
    }
    return found;
  }

  /// Where the replica's share of the member begins, and how many elements of it there are.
  void takeShare(Value replica) {
    Value index = arith::IndexCastOp::create(b, b.getIndexType(), memref::LoadOp::create(b, replica, number(0)));
    Value share = entry(row, NumColumns);
    begin = arith::MinUIOp::create(b, arith::MulIOp::create(b, index, share), count);
    count = arith::MinUIOp::create(b, arith::SubIOp::create(b, count, begin), share);
  }

  /// The bytes of a share's beginning: a multiple of what a thread accesses, where there is a share.
  Value offsetOf(const UpdateOperand &operand, Type type, int64_t column) {
    Value offset = entry(row, column);
    if (!begin || !operand.isWhole)
      return offset;
    return arith::AddIOp::create(b, offset, arith::MulIOp::create(b, begin, number(getElementBytes(type))));
  }

  /// A buffer, or the only element, for each operand of the rule.
  void bind(gpu::GPUFuncOp kernel) {
    unsigned argument = kFirstArgument + group.isOfShares();
    int64_t column = firstOffset();
    for (auto [operand, type] : llvm::zip(operands(), group.rule.getTypes())) {
      if (hasOffset(operand)) {
        Value base = kernel.getArgument(operand.kind == UpdateOperand::Arena ? 0 : 1);
        bound.push_back(memref::ViewOp::create(b, MemRefType::get({ShapedType::kDynamic}, type), base,
                                               offsetOf(operand, type, column++), ValueRange{count}));
      } else if (operand.kind == UpdateOperand::Pointer) {
        bound.push_back(kernel.getArgument(argument++));
      } else { // Read once a thread.
        bound.push_back(memref::LoadOp::create(b, kernel.getArgument(argument++), ValueRange{number(0)}));
      }
    }
  }

  SmallVector<Value> apply(MutableArrayRef<Value> elements) {
    if (group.scale != 1) {
      Type type = elements.front().getType();
      elements.front() =
          arith::MulFOp::create(b, elements.front(), arith::ConstantOp::create(b, b.getFloatAttr(type, group.scale)));
    }
    return group.rule.write(b, elements);
  }

  /// Of each variable that the rule writes: its operand.
  SmallVector<size_t> written() const {
    const UpdateMember &member = group.members.front();
    drt::UpdateOp op = member.op;
    SmallVector<size_t> numbers;
    for (size_t i = 0; i < op.getVariables().size(); ++i)
      numbers.push_back(op.getBucket().has_value() + i);
    return numbers;
  }

  void updateElement(Value at) {
    SmallVector<Value> elements;
    for (auto [operand, value] : llvm::zip(operands(), bound)) {
      if (operand.kind == UpdateOperand::Scalar) {
        elements.push_back(value);
        continue;
      }
      const bool isPart = begin && operand.isWhole && operand.kind == UpdateOperand::Pointer;
      Value index = isPart ? arith::AddIOp::create(b, begin, at).getResult() : at;
      elements.push_back(memref::LoadOp::create(b, value, ValueRange{index}));
    }
    for (auto [operand, value] : llvm::zip(written(), apply(elements)))
      memref::StoreOp::create(b, value, bound[operand], ValueRange{at});
  }

  void updateVector(Value at) {
    if (lanes == 1)
      return updateElement(at);
    auto vectorOf = [&](Type type) { return VectorType::get({lanes}, type); };
    SmallVector<Value> vectors;
    for (auto [operand, value, type] : llvm::zip(operands(), bound, group.rule.getTypes())) {
      if (operand.kind == UpdateOperand::Scalar) {
        vectors.push_back(value);
        continue;
      }
      auto load = vector::LoadOp::create(b, vectorOf(type), value, ValueRange{at});
      load.setAlignment(lanes * getElementBytes(type));
      vectors.push_back(load);
    }
    SmallVector<SmallVector<Value>> results(written().size());
    for (int64_t lane = 0; lane < lanes; ++lane) {
      SmallVector<Value> elements = llvm::map_to_vector(vectors, [&](Value value) -> Value {
        return isa<VectorType>(value.getType()) ? vector::ExtractOp::create(b, value, lane).getResult() : value;
      });
      for (auto [result, value] : llvm::zip(results, apply(elements)))
        result.push_back(value);
    }
    for (auto [operand, values] : llvm::zip(written(), results)) {
      Type type = group.rule.getTypes()[operand];
      auto store = vector::StoreOp::create(b, vector::FromElementsOp::create(b, vectorOf(type), values), bound[operand],
                                           ValueRange{at});
      store.setAlignment(lanes * getElementBytes(type));
    }
  }

  const UpdateGroup &group;
  ModuleOp module;
  MemorySizes sizes;
  ImplicitLocOpBuilder b;
  int64_t lanes, threads, blocks = 0;
  MemRefType tableType;
  Value table, row, count;
  Value begin;              // of the replica's share; null where it updates all
  SmallVector<Value> bound; // by operand of the rule
};

} // namespace

bool UpdateGroup::isOfShares() const { return drt::UpdateOp(members.front().op).getShare().has_value(); }

SmallVector<int64_t> UpdateGroup::getShares() const { return llvm::map_to_vector(members, countOf); }

SmallVector<Value> UpdateGroup::getArguments() const {
  SmallVector<Value> tensors;
  for (const UpdateOperand &operand : members.front().operands)
    if (!hasOffset(operand))
      tensors.push_back(operand.tensor);
  return tensors;
}

SmallVector<Value> UpdateGroup::getReads() const {
  SmallVector<Value> tensors;
  for (const UpdateMember &member : members)
    for (const UpdateOperand &operand : member.operands)
      if (hasOffset(operand) && operand.tensor)
        tensors.push_back(operand.tensor);
  return tensors;
}

int64_t getTableBytes(const UpdateGroup &group) {
  int64_t columns = NumColumns + group.isOfShares() + llvm::count_if(group.members.front().operands, hasOffset);
  return static_cast<int64_t>(group.members.size() * sizeof(int64_t)) * columns;
}

void writeUpdateKernel(const UpdateGroup &group, ModuleOp module, StringRef name, MemorySizes sizes, bool constantTable,
                       Location loc) {
  GroupWriter(group, module, sizes, loc).write(name, constantTable);
}

} // namespace distc
