//===- ReadTables.cpp - Tables of integers that are looked up ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "passes/rewrite/Passes.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;

namespace distc::rewrite {
#define GEN_PASS_DEF_READTABLES
#include "passes/rewrite/Passes.h.inc"

namespace {

/// As many keys as are put into the program.
constexpr int64_t kMaxKeys = 1 << 22;

/// A hash table that one operation fills, with keys that are known, and others look up.
class Table {
public:
  explicit Table(dfg::OpaqueOp op) : op(op) {}

  /// Whether it is such a table.
  bool read() {
    for (Operation *user : op->getUsers()) {
      auto use = llvm::dyn_cast<dfg::OpaqueOp>(user);
      StringRef kind = use ? use.getOp() : "";
      if (kind == "LookupTableFindV2" && use->getNumOperands() == 3)
        lookups.push_back(use);
      else if (kind == "LookupTableSizeV2" && use->getNumResults() == 1)
        sizes.push_back(use);
      else if ((kind == "LookupTableImportV2" || kind == "InitializeTableV2") && use->getNumOperands() == 3 && !filled)
        filled = use;
      else
        return false;
    }
    DenseIntElementsAttr elements = filled ? getKeys() : DenseIntElementsAttr();
    if (lookups.empty() || !elements || elements.getType().getRank() != 1 || elements.getNumElements() == 0 ||
        elements.getNumElements() > kMaxKeys)
      return false;
    element = getElementTypeOrSelf(filled->getOperand(1));
    for (auto [place, key] : llvm::enumerate(elements.getValues<APInt>()))
      keys.emplace_back(key.getSExtValue(), static_cast<int64_t>(place));
    auto values = llvm::dyn_cast<RankedTensorType>(filled->getOperand(2).getType());
    if (!values || values.getRank() != 1 || !values.getElementType().isIntOrFloat() ||
        !canCopy(filled->getOperand(2), 0) || !llvm::all_of(lookups, [&](dfg::OpaqueOp lookup) {
          auto x = llvm::dyn_cast<TensorType>(lookup->getOperand(1).getType());
          auto otherwise = llvm::dyn_cast<RankedTensorType>(lookup->getOperand(2).getType());
          return x && x.getElementType() == element && otherwise && otherwise.getRank() == 0;
        }))
      return false;
    llvm::sort(keys);
    // Of a key that is there twice both have the same value, or TensorFlow refuses it.
    keys.erase(llvm::unique(keys, [](auto x, auto y) { return x.first == y.first; }), keys.end());
    return true;
  }

  void replace() {
    for (dfg::OpaqueOp lookup : lookups)
      replaceLookup(lookup);
    for (dfg::OpaqueOp size : sizes) {
      OpBuilder builder(size);
      auto type = RankedTensorType::get({}, builder.getI64Type());
      Value count = dfg::ConstOp::create(builder, size.getLoc(), type,
                                         DenseElementsAttr::get(type, builder.getI64IntegerAttr(keys.size())))
                        .getResult();
      size->replaceAllUsesWith(ValueRange{count});
      size.erase();
    }
    // Who initializes waits for nothing there, nor does what a function that captured the table runs behind it.
    for (dfg::OpaqueOp node : {filled, op}) {
      OpBuilder builder(node);
      auto group = dfg::GroupOp::create(builder, node.getLoc());
      if (auto control = node->getDiscardableAttr(dfg::kControlAttr))
        group->setAttr(dfg::kControlAttr, control);
      node.erase();
    }
  }

private:
  /// What the table is filled with, before casts to wider integers: vocabularies of feature columns are int32 first.
  DenseIntElementsAttr getKeys() {
    auto isInteger = [](Value value) {
      Type element = getElementTypeOrSelf(value);
      return element.isSignlessInteger() && !element.isInteger(1);
    };
    Value keys = filled->getOperand(1);
    while (llvm::isa_and_nonnull<dfg::CastOp, dfg::IdentityOp>(keys.getDefiningOp())) {
      Value before = keys.getDefiningOp()->getOperand(0);
      auto bits = [](Value value) { return getElementTypeOrSelf(value).getIntOrFloatBitWidth(); };
      if (!isInteger(keys) || !isInteger(before) || bits(before) > bits(keys))
        return {};
      keys = before;
    }
    auto constant = isInteger(keys) ? keys.getDefiningOp<dfg::ConstOp>() : dfg::ConstOp();
    return constant ? llvm::dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
  }

  /// Whether what makes `value` can be made again before a lookup.
  static bool canCopy(Value value, int depth) {
    constexpr int kMaxDepth = 8;
    Operation *def = value.getDefiningOp();
    return def && depth < kMaxDepth && llvm::isa<dfg::NodeInterface>(def) && isMemoryEffectFree(def) &&
           def->getNumRegions() == 0 && !llvm::isa<dfg::PlaceholderOp, dfg::PlaceholderWithDefaultOp>(def) &&
           llvm::all_of(def->getOperands(), [&](Value operand) { return canCopy(operand, depth + 1); });
  }

  static Value copy(OpBuilder &builder, Value value, StringRef scope) {
    Operation *made = builder.clone(*value.getDefiningOp());
    made->removeDiscardableAttr(dfg::kControlAttr);
    made->setLoc(
        NameLoc::get(builder.getStringAttr(scope + "/" + llvm::Twine(dfg::getNodeName(value.getDefiningOp())))));
    builder.setInsertionPoint(made);
    for (OpOperand &operand : made->getOpOperands())
      operand.set(copy(builder, operand.get(), scope));
    builder.setInsertionPointAfter(made);
    return made->getResult(llvm::cast<OpResult>(value).getResultNumber());
  }

  /// The place of each element among the sorted keys, found by halves: as many of them as are less. Behind the last key
  /// are as many more as a power of two leaves, larger than all.
  void replaceLookup(dfg::OpaqueOp lookup) {
    OpBuilder builder(lookup);
    const std::string name = dfg::getNodeName(lookup).str();
    unsigned count = 0;
    auto locate = [&](StringRef what) {
      return NameLoc::get(builder.getStringAttr(name + "/" + what + (count ? "_" + llvm::Twine(count) : "")));
    };
    auto make = [&](StringRef what, StringRef kind, ValueRange operands, Type type) {
      OperationState state(locate(what), kind, operands, type);
      return builder.create(state)->getResult(0);
    };
    auto constant = [&](StringRef what, ArrayRef<int64_t> numbers, Type of, bool isScalar) {
      SmallVector<APInt> elements;
      for (int64_t number : numbers)
        elements.emplace_back(of.getIntOrFloatBitWidth(), number, /*isSigned=*/true);
      SmallVector<int64_t> shape;
      if (!isScalar)
        shape.push_back(static_cast<int64_t>(numbers.size()));
      auto type = RankedTensorType::get(shape, of);
      return dfg::ConstOp::create(builder, locate(what), type, DenseElementsAttr::get(type, elements)).getResult();
    };
    Value x = lookup->getOperand(1);
    auto keyType = llvm::cast<TensorType>(x.getType());
    Type i32 = builder.getI32Type();
    auto placeType = keyType.clone(i32), truthType = keyType.clone(builder.getI1Type());
    const auto size = static_cast<int64_t>(keys.size());
    const auto padded = static_cast<int64_t>(llvm::PowerOf2Ceil(size + 1));
    SmallVector<int64_t> sorted, places;
    for (auto [key, place] : keys) {
      sorted.push_back(key);
      places.push_back(place);
    }
    const int64_t largest =
        element.isInteger(64) ? std::numeric_limits<int64_t>::max() : llvm::maxIntN(element.getIntOrFloatBitWidth());
    sorted.resize(padded, largest);
    places.resize(padded, 0);
    Value table = constant("keys", sorted, element, false), axis = constant("axis", {0}, i32, true);
    auto gather = [&](StringRef what, Value from, Value at, Type of) {
      return make(what, dfg::GatherV2Op::getOperationName(), {from, at, axis}, keyType.clone(of));
    };
    Value at = make("begin", dfg::ZerosLikeOp::getOperationName(),
                    make("places", dfg::CastOp::getOperationName(), x, placeType), placeType);
    for (int64_t half = padded / 2; half > 0; half /= 2) {
      ++count;
      Value before =
          make("before", dfg::AddV2Op::getOperationName(), {at, constant("last", {half - 1}, i32, true)}, placeType);
      Value behind =
          make("behind", dfg::AddV2Op::getOperationName(), {at, constant("half", {half}, i32, true)}, placeType);
      Value isLess =
          make("is_less", dfg::LessOp::getOperationName(), {gather("key", table, before, element), x}, truthType);
      at = make("place", dfg::SelectV2Op::getOperationName(), {isLess, behind, at}, placeType);
    }
    count = 0;
    Value isEqual =
        make("is_equal", dfg::EqualOp::getOperationName(), {gather("found", table, at, element), x}, truthType);
    Value isKey = make("is_key", dfg::LessOp::getOperationName(), {at, constant("size", {size}, i32, true)}, truthType);
    Value isThere = make("is_there", dfg::LogicalAndOp::getOperationName(), {isEqual, isKey}, truthType);
    Value values = copy(builder, filled->getOperand(2), name);
    Type valueElement = llvm::cast<TensorType>(values.getType()).getElementType();
    Value value =
        gather("value", values, gather("order", constant("order_of_keys", places, i32, false), at, i32), valueElement);
    OperationState select(lookup.getLoc(), dfg::SelectV2Op::getOperationName(), {isThere, value, lookup->getOperand(2)},
                          keyType.clone(valueElement));
    Operation *result = builder.create(select);
    if (auto control = lookup->getDiscardableAttr(dfg::kControlAttr))
      result->setAttr(dfg::kControlAttr, control);
    lookup->replaceAllUsesWith(result->getResults());
    lookup.erase();
  }

  dfg::OpaqueOp op, filled;
  SmallVector<dfg::OpaqueOp> lookups, sizes;
  SmallVector<std::pair<int64_t, int64_t>> keys; // with their places among the values
  Type element;
};

struct ReadTables : impl::ReadTablesBase<ReadTables> {
  void runOnOperation() override {
    SmallVector<dfg::OpaqueOp> tables;
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      for (auto op : graph.getBody().getOps<dfg::OpaqueOp>())
        if (op.getOp() == "HashTableV2")
          tables.push_back(op);
    for (dfg::OpaqueOp op : tables)
      if (Table table(op); table.read())
        table.replace();
  }
};

} // namespace
} // namespace distc::rewrite
