//===- SpellOutOperations.cpp - Assignments of slices, counters and the like in other operations ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "passes/rewrite/Passes.h"
#include "llvm/ADT/StringSwitch.h"
#include <limits>

using namespace mlir;

namespace distc::rewrite {
#define GEN_PASS_DEF_SPELLOUTOPERATIONS
#include "passes/rewrite/Passes.h.inc"

namespace {

class Speller {
public:
  Speller(dfg::OpaqueOp op, RankedTensorType type) : op(op), type(type), builder(op) {}

  /// `v[begin:end:strides] = value`: all elements are assigned, those outside of the slice what they are.
  void assignSlice() {
    Value handle = op->getOperand(0), old = read();
    auto indices = llvm::dyn_cast<TensorType>(op->getOperand(1).getType());
    SmallVector<NamedAttribute> masks;
    for (StringRef name : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
      if (auto mask = getAttr<IntegerAttr>(name))
        masks.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(mask.getInt())));
    auto sizesType = RankedTensorType::get({type.getRank()}, indices.getElementType());
    SmallVector<APInt> sizes;
    for (int64_t size : type.getShape())
      sizes.emplace_back(indices.getElementTypeBitWidth(), size);
    Value dimensions = constant("sizes", DenseElementsAttr::get(sizesType, sizes));
    auto put = [&](StringRef name, Value slice) -> Value {
      SmallVector<Value> operands = {dimensions};
      llvm::append_range(operands, op->getOperands().slice(1, 3));
      operands.push_back(slice);
      auto element = llvm::cast<TensorType>(slice.getType()).getElementType();
      return make(name, dfg::StridedSliceGradOp::getOperationName(), operands, type.clone(element), masks);
    };
    // Which elements the slice has: ones, of its shape.
    Value value = op->getOperand(4);
    Value shape = make("shape", dfg::ShapeOp::getOperationName(), value, UnrankedTensorType::get(builder.getI32Type()));
    Value one = constant(
        "one", DenseElementsAttr::get(RankedTensorType::get({}, builder.getI32Type()), builder.getI32IntegerAttr(1)));
    Value ones =
        make("ones", dfg::FillOp::getOperationName(), {shape, one}, UnrankedTensorType::get(builder.getI32Type()));
    Value inside =
        make("inside", dfg::EqualOp::getOperationName(), {put("places", ones), one}, type.clone(builder.getI1Type()));
    Value all = make("new", dfg::SelectV2Op::getOperationName(), {inside, put("padded", value), old}, type);
    OperationState assign(op->getLoc(), dfg::AssignOp::getOperationName());
    assign.addOperands({handle, all});
    assign.addTypes(op->getResultTypes());
    if (auto control = op->getDiscardableAttr(dfg::kControlAttr))
      assign.addAttribute(dfg::kControlAttr, control);
    op->replaceAllUsesWith(builder.create(assign)->getResults());
    op->erase();
  }

  /// Adds 1, and gives what was there before; the run ends at the limit.
  void countUp() {
    auto limit = getAttr<IntegerAttr>("limit");
    Value handle = op->getOperand(0), old = read();
    Type element = type.getElementType();
    auto number = [&](StringRef name, int64_t value) {
      return constant(name, DenseElementsAttr::get(type, builder.getIntegerAttr(element, value)));
    };
    Value below = make("below", dfg::LessOp::getOperationName(), {old, number("limit", limit ? limit.getInt() : 0)},
                       type.clone(builder.getI1Type()));
    OperationState assertion(locate("reached_limit"), dfg::AssertOp::getOperationName());
    assertion.addOperands({below, old});
    Operation *asserted = builder.create(assertion);
    auto before = builder.getStrArrayAttr({dfg::getNodeName(asserted)});
    asserted->setAttr("summarize", builder.getI64IntegerAttr(3));
    dfg::setSourceAttribute(asserted, "T", builder.getTypeArrayAttr({type.getElementType()}));
    OperationState add(locate("add"), dfg::AssignAddOp::getOperationName());
    add.addOperands({handle, number("one", 1)});
    add.addAttribute(dfg::kControlAttr, before);
    builder.create(add);
    Value counted = make("", dfg::IdentityOp::getOperationName(), old, type);
    counted.getDefiningOp()->setAttr(dfg::kControlAttr, builder.getStrArrayAttr({(name() + "/add").str()}));
    op->replaceAllUsesWith(ValueRange{counted});
    op->erase();
  }

  /// A generator's state, [counter's low word, its high word, key], goes on by 256 positions for each of `delta`
  /// numbers, and the node gives what it was: Philox's counter has 128 bits.
  void skipNumbers() {
    Value handle = op->getOperand(0), old = read();
    Type word = builder.getI64Type();
    auto scalar = RankedTensorType::get({}, word);
    auto number = [&](StringRef name, int64_t value) {
      return constant(name, DenseElementsAttr::get(scalar, builder.getIntegerAttr(word, value)));
    };
    auto add = [&](StringRef name, Value a, Value b) {
      return make(name, dfg::AddV2Op::getOperationName(), {a, b}, scalar);
    };
    OperationState parts(locate("words"), dfg::UnpackOp::getOperationName(), old, {scalar, scalar, scalar});
    auto words = builder.create(parts)->getResults();
    Value delta = make("delta", dfg::CastOp::getOperationName(), op->getOperand(2), scalar);
    Value positions = make("positions", dfg::MulOp::getOperationName(), {delta, number("per_number", 256)}, scalar);
    Value low = add("low", words[0], positions);
    // Less as unsigned numbers: signed ones are in that order when half of all is added to each.
    Value half = number("half", std::numeric_limits<int64_t>::min());
    Value wraps =
        make("wraps", dfg::LessOp::getOperationName(), {add("moved_low", low, half), add("moved_by", positions, half)},
             scalar.clone(builder.getI1Type()));
    Value high = add("high", words[1], make("carry", dfg::CastOp::getOperationName(), wraps, scalar));
    Value moved = make("moved", dfg::PackOp::getOperationName(), {low, high, words[2]}, type);
    OperationState assign(locate("assign"), dfg::AssignOp::getOperationName());
    assign.addOperands({handle, moved});
    builder.create(assign);
    Value given = make("", dfg::IdentityOp::getOperationName(), old, type);
    given.getDefiningOp()->setAttr(dfg::kControlAttr, builder.getStrArrayAttr({(name() + "/assign").str()}));
    op->replaceAllUsesWith(ValueRange{given});
    op->erase();
  }

  /// Whether `op` moves a generator of TensorFlow's algorithm 1, Philox, or of what is chosen on CPUs and GPUs (3), the
  /// same.
  static bool isPhilox(dfg::OpaqueOp op, RankedTensorType state) {
    DenseIntElementsAttr algorithm;
    return state.getShape() == ArrayRef<int64_t>{3} && state.getElementType().isInteger(64) &&
           matchPattern(op->getOperand(1), m_Constant(&algorithm)) && algorithm.getNumElements() == 1 &&
           llvm::is_contained({1, 3}, (*algorithm.value_begin<APInt>()).getSExtValue());
  }

private:
  StringRef name() { return dfg::getNodeName(op); }
  Location locate(StringRef suffix) {
    return suffix.empty() ? op->getLoc() : Location(NameLoc::get(builder.getStringAttr(name() + "/" + suffix)));
  }
  template <typename T> T getAttr(StringRef attribute) { return dfg::getSourceAttribute<T>(op, attribute); }
  Value constant(StringRef suffix, DenseElementsAttr value) {
    return dfg::ConstOp::create(builder, locate(suffix), value.getType(), value).getResult();
  }
  Value make(StringRef suffix, StringRef kind, ValueRange operands, Type result,
             ArrayRef<NamedAttribute> attributes = {}) {
    OperationState state(locate(suffix), kind, operands, result, attributes);
    return builder.create(state)->getResult(0);
  }
  /// What the variable has where the node runs: behind what the node waits for.
  Value read() {
    auto old = dfg::ReadVariableOp::create(builder, locate("old"), type, op->getOperand(0), /*implicit=*/false);
    if (auto control = op->getDiscardableAttr(dfg::kControlAttr))
      old->setAttr(dfg::kControlAttr, control);
    return old.getValue();
  }

  dfg::OpaqueOp op;
  RankedTensorType type; // the variable's
  OpBuilder builder;
};

struct SpellOutOperations : impl::SpellOutOperationsBase<SpellOutOperations> {
  using SpellOutOperationsBase::SpellOutOperationsBase;

  void runOnOperation() override {
    SmallVector<dfg::OpaqueOp> empties;
    getOperation().walk([&](dfg::OpaqueOp op) {
      if (op.getOp() == "Empty" && op->getNumOperands() == 1)
        empties.push_back(op);
    });
    llvm::for_each(empties, fillWithZeros);
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      spellOut(graph.getBody().front());
    if (!keepsOrder)
      for (auto function : getOperation().getOps<dfg::FuncOp>())
        spellOut(function.getBody().front());
    if (!keepsOrder)
      getOperation().walk([](Operation *op) {
        if (op->hasTrait<dfg::DrawsByKey>())
          takeSignedWords(op);
      });
  }

  void spellOut(Block &block) {
    SmallVector<std::pair<dfg::OpaqueOp, void (Speller::*)()>> found;
    for (auto op : block.getOps<dfg::OpaqueOp>()) {
      auto spell = llvm::StringSwitch<void (Speller::*)()>(op.getOp())
                       .Cases("StridedSliceAssign", "ResourceStridedSliceAssign", &Speller::assignSlice)
                       .Cases("CountUpTo", "ResourceCountUpTo", &Speller::countUp)
                       .Case("RngReadAndSkip", &Speller::skipNumbers)
                       .Default(nullptr);
      auto variable = spell ? getVariableType(op) : RankedTensorType();
      if (variable && (spell != &Speller::skipNumbers || Speller::isPhilox(op, variable)) &&
          (!keepsOrder || (spell == &Speller::assignSlice && !isUpdatedElsewhere(block, op))))
        found.emplace_back(op, spell);
    }
    for (auto [op, spell] : found)
      (Speller(op, getVariableType(op)).*spell)();
  }

  /// Whether anything but `op` and plain assignments changes the variable, or may do so.
  static bool isUpdatedElsewhere(Block &block, dfg::OpaqueOp op) {
    StringRef variable = dfg::getVariableHandle(op->getOperand(0)).getVariable();
    return llvm::any_of(block.getOps<dfg::VarHandleOp>(), [&](dfg::VarHandleOp handle) {
      return handle.getVariable() == variable && llvm::any_of(handle->getUsers(), [&](Operation *user) {
               return user != op && !llvm::isa<dfg::ReadVariableOp, dfg::IsInitializedOp, dfg::AssignOp>(user);
             });
    });
  }

  /// Key and counter as the generator's state has them: a bitcast of int64 to uint64 changes nothing about a draw.
  static void takeSignedWords(Operation *draw) {
    for (OpOperand &words : draw->getOpOperands().slice(1, 2)) {
      auto bitcast = words.get().getDefiningOp<dfg::BitcastOp>();
      if (bitcast && llvm::cast<TensorType>(bitcast->getOperand(0).getType()).getElementType().isInteger(64))
        words.set(bitcast->getOperand(0));
    }
  }

  static void fillWithZeros(dfg::OpaqueOp op) {
    auto type = llvm::dyn_cast<TensorType>(op->getResult(0).getType());
    if (!type || !type.getElementType().isIntOrFloat())
      return;
    OpBuilder builder(op);
    auto scalar = RankedTensorType::get({}, type.getElementType());
    auto zero =
        dfg::ConstOp::create(builder, NameLoc::get(builder.getStringAttr(dfg::getNodeName(op) + "/zero")), scalar,
                             DenseElementsAttr::get(scalar, builder.getZeroAttr(type.getElementType())));
    auto fill = dfg::FillOp::create(builder, op.getLoc(), type, op->getOperand(0), zero.getResult());
    if (auto control = op->getDiscardableAttr(dfg::kControlAttr))
      fill->setAttr(dfg::kControlAttr, control);
    op->replaceAllUsesWith(fill->getResults());
    op.erase();
  }

  /// Of a variable of the graph, of a shape that is known. What a function is given as a generator's state has three
  /// words, where the algorithm is Philox.
  RankedTensorType getVariableType(dfg::OpaqueOp op) {
    Value handle = op->getOperand(0);
    if (op.getOp() == "RngReadAndSkip" && llvm::isa<BlockArgument>(handle))
      return RankedTensorType::get({3}, IntegerType::get(op.getContext(), 64));
    auto node = dfg::getVariableHandle(handle);
    auto variable = node ? SymbolTable::lookupNearestSymbolFrom<dfg::VariableOp>(getOperation(), node.getVariableAttr())
                         : dfg::VariableOp();
    auto type = variable ? llvm::dyn_cast<RankedTensorType>(variable.getType()) : RankedTensorType();
    return type && type.hasStaticShape() ? type : RankedTensorType();
  }
};

} // namespace
} // namespace distc::rewrite
