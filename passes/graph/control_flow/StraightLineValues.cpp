//===- StraightLineValues.cpp - Constants, ranges, choices ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeNames.h"
#include "mlir/IR/Matchers.h"
#include "passes/graph/control_flow/StraightLine.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {

Location StraightLine::locate(StringRef name) {
  std::string unique = name.str();
  for (int count = 1; !names.insert(unique).second; ++count)
    unique = name.str() + "_" + std::to_string(count);
  return NameLoc::get(builder.getStringAttr(unique));
}

// ---- Constants ------------------------------------------------------------------------------------------------------

static Value makeConstant(OpBuilder &builder, Location loc, RankedTensorType type, ArrayRef<int64_t> values) {
  SmallVector<APInt> elements;
  for (int64_t value : values)
    elements.emplace_back(type.getElementTypeBitWidth(), value, /*isSigned=*/true, /*implicitTrunc=*/true);
  return dfg::ConstOp::create(builder, loc, type, DenseElementsAttr::get(type, elements));
}

Value StraightLine::getInteger(Type element, int64_t value) {
  auto type = RankedTensorType::get({}, element);
  Attribute key = builder.getI64IntegerAttr(value);
  key = builder.getArrayAttr({TypeAttr::get(type), key});
  Value &known = constants[key];
  if (!known) {
    known = makeConstant(builder, locate("constants/" + std::to_string(value)), type, {value});
    if (failed(infer(known.getDefiningOp())))
      return {};
  }
  return known;
}

Value StraightLine::countElements(const Container &list) {
  const auto count = static_cast<int64_t>(list.elements.size());
  if (fixedRows == 0 || count == 0 || count % fixedRows)
    return getInt32(count);
  // Those of the batch's rows, or others.
  Value number =
      makeConstant(builder, locate("constants/length"), RankedTensorType::get({}, builder.getI32Type()), {count});
  if (failed(infer(number.getDefiningOp())))
    return {};
  rowNumbers[number] = {static_cast<double>(count)};
  return number;
}

Value StraightLine::getVector(Type element, ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, element);
  Attribute key = builder.getArrayAttr({TypeAttr::get(type), builder.getI64ArrayAttr(values)});
  Value &known = constants[key];
  if (!known) {
    known = makeConstant(builder, locate("constants/vector"), type, values);
    if (failed(infer(known.getDefiningOp())))
      return {};
  }
  return known;
}

Value StraightLine::getKnown(Value value) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape() || type.getNumElements() > dfg::ShapeContext::kMaxElements)
    return {};
  auto element = llvm::dyn_cast<IntegerType>(type.getElementType());
  if (!element || element.isUnsigned())
    return {};
  std::optional<SmallVector<int64_t>> elements = shapes.getConstants(value);
  if (!elements || static_cast<int64_t>(elements->size()) != type.getNumElements())
    return {};
  if (type.getRank() == 0)
    return getInteger(element, elements->front());
  if (type.getRank() == 1)
    return getVector(element, *elements);
  return {};
}

std::optional<int64_t> StraightLine::getConstant(const Datum &datum) {
  return datum.value ? shapes.getConstant(datum.value) : std::nullopt;
}

bool StraightLine::isZero(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto constant = llvm::dyn_cast_or_null<dfg::ConstOp>(op)) {
    auto dense = llvm::dyn_cast<DenseElementsAttr>(constant.getValue());
    return dense && dense.isSplat() && (matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero()));
  }
  if (llvm::isa_and_nonnull<dfg::ZerosLikeOp>(op))
    return true;
  if (auto fill = llvm::dyn_cast_or_null<dfg::FillOp>(op))
    return isZero(fill.getValue());
  if (op && (op->hasTrait<dfg::Forwards>() || op->hasTrait<dfg::Reshapes>() || op->hasTrait<dfg::Repeats>()) &&
      dfg::getControl(op).empty())
    return isZero(op->getOperand(0));
  return false;
}

Value StraightLine::zerosLike(Value value, StringRef name) {
  return make<dfg::ZerosLikeOp>(name, llvm::cast<TensorType>(value.getType()).getElementType(), value);
}

// ---- Ranges ---------------------------------------------------------------------------------------------------------

static IntegerRange hull(IntegerRange x, IntegerRange y) {
  IntegerRange all;
  if (x.least && y.least)
    all.least = std::min(*x.least, *y.least);
  if (x.most && y.most)
    all.most = std::max(*x.most, *y.most);
  return all;
}

/// One bound of a sum or a difference.
static std::optional<int64_t> addBounds(std::optional<int64_t> x, std::optional<int64_t> y, bool subtract) {
  int64_t sum;
  if (!x || !y || (subtract ? llvm::SubOverflow(*x, *y, sum) : llvm::AddOverflow(*x, *y, sum)))
    return std::nullopt;
  return sum;
}

IntegerRange StraightLine::inferRange(Operation *op) {
  Value result = op->getResult(0);
  if (std::optional<dfg::Dims> elements = shapes.getElements(result); elements && !elements->empty()) {
    auto rangeOf = [](dfg::Dim size) {
      IntegerRange range;
      // b is at least 1.
      if (size.growsWithBatch())
        range.least = size.getSmallest();
      if (size.shrinksWithBatch())
        range.most = size.getSmallest();
      return range;
    };
    IntegerRange all = rangeOf(elements->front());
    for (dfg::Dim size : *elements)
      all = hull(all, rangeOf(size));
    if (all.least || all.most)
      return all;
  }
  auto at = [&](unsigned operand) { return ranges.lookup(op->getOperand(operand)); };
  return llvm::TypeSwitch<Operation *, IntegerRange>(op)
      .Case<dfg::IdentityOp, dfg::StopGradientOp, dfg::ReshapeOp, dfg::SqueezeOp, dfg::ExpandDimsOp,
            dfg::StridedSliceOp, dfg::SliceOp, dfg::TransposeOp, dfg::TileOp, dfg::GatherV2Op, dfg::MaxOp, dfg::MinOp,
            dfg::ReverseV2Op>([&](auto) { return at(0); })
      .Case<dfg::CastOp>([&](auto) {
        auto from = llvm::dyn_cast<IntegerType>(llvm::cast<TensorType>(op->getOperand(0).getType()).getElementType());
        auto to = llvm::dyn_cast<IntegerType>(llvm::cast<TensorType>(op->getResult(0).getType()).getElementType());
        return from && to && to.getWidth() >= from.getWidth() && from.getWidth() > 1 ? at(0) : IntegerRange();
      })
      .Case<dfg::MinimumOp>([&](auto) {
        IntegerRange x = at(0), y = at(1), range = hull(x, y);
        range.most = !x.most ? y.most : !y.most ? x.most : std::min(*x.most, *y.most);
        return range;
      })
      .Case<dfg::MaximumOp>([&](auto) {
        IntegerRange x = at(0), y = at(1), range = hull(x, y);
        range.least = !x.least ? y.least : !y.least ? x.least : std::max(*x.least, *y.least);
        return range;
      })
      .Case<dfg::AddOp, dfg::AddV2Op>([&](auto) {
        return IntegerRange{addBounds(at(0).least, at(1).least, false), addBounds(at(0).most, at(1).most, false)};
      })
      .Case<dfg::SubOp>([&](auto) {
        return IntegerRange{addBounds(at(0).least, at(1).most, true), addBounds(at(0).most, at(1).least, true)};
      })
      .Case<dfg::SelectOp, dfg::SelectV2Op>([&](auto) { return hull(at(1), at(2)); })
      .Default([](Operation *) { return IntegerRange(); });
}

/// Whether x < y for all values in the ranges (true), or for none (false).
static std::optional<bool> isLess(IntegerRange x, IntegerRange y, bool orEqual) {
  if (x.most && y.least && (orEqual ? *x.most <= *y.least : *x.most < *y.least))
    return true;
  if (x.least && y.most && (orEqual ? *x.least > *y.most : *x.least >= *y.most))
    return false;
  return std::nullopt;
}

std::optional<bool> StraightLine::getTruth(Value value) const {
  if (auto it = truths.find(value); it != truths.end())
    return it->second;
  if (std::optional<SmallVector<int64_t>> elements = shapes.getConstants(value); elements && !elements->empty())
    return llvm::all_equal(*elements) ? std::optional(elements->front() != 0) : std::nullopt;
  auto constant = value.getDefiningOp<dfg::ConstOp>();
  auto dense = constant ? llvm::dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!dense || !dense.isSplat() || !dense.getElementType().isInteger(1))
    return std::nullopt;
  return dense.getSplatValue<bool>();
}

/// Whether there is an element, whatever the batch's size.
bool StraightLine::hasElements(Value value) const {
  std::optional<dfg::Dims> sizes = shapes.getShape(value);
  // b is at least 1.
  return sizes && llvm::all_of(*sizes, [](dfg::Dim size) { return size.growsWithBatch() && size.getSmallest() >= 1; });
}

std::optional<bool> StraightLine::inferTruth(Operation *op) {
  if (llvm::isa<dfg::AllOp, dfg::AnyOp>(op)) {
    auto type = llvm::dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type || type.getRank() != 0)
      return std::nullopt;
    const bool isAll = llvm::isa<dfg::AllOp>(op);
    if (std::optional<SmallVector<int64_t>> elements = shapes.getConstants(op->getOperand(0)))
      return isAll ? !llvm::is_contained(*elements, 0) : llvm::is_contained(*elements, 1);
    std::optional<bool> each = getTruth(op->getOperand(0));
    // What is said of no elements.
    return each == isAll || hasElements(op->getOperand(0)) ? each : std::nullopt;
  }
  if (op->hasTrait<dfg::Forwards>() || op->hasTrait<dfg::Reshapes>() || op->hasTrait<dfg::Permutes>() ||
      op->hasTrait<dfg::Repeats>())
    return getTruth(op->getOperand(0));
  if (auto fill = llvm::dyn_cast<dfg::FillOp>(op))
    return getTruth(fill.getValue());
  if (llvm::isa<dfg::ZerosLikeOp>(op))
    return false;
  if (llvm::isa<dfg::LogicalNotOp>(op)) {
    std::optional<bool> each = getTruth(op->getOperand(0));
    return each ? std::optional(!*each) : each;
  }
  if (op->getNumOperands() != 2)
    return std::nullopt;
  if (llvm::isa<dfg::LogicalAndOp, dfg::LogicalOrOp>(op)) {
    // One operand may decide alone.
    const bool decides = llvm::isa<dfg::LogicalOrOp>(op);
    std::optional<bool> x = getTruth(op->getOperand(0)), y = getTruth(op->getOperand(1));
    if (x == decides || y == decides)
      return decides;
    return x && y ? std::optional(!decides) : std::nullopt;
  }
  auto operand = llvm::dyn_cast<TensorType>(op->getOperand(0).getType());
  if (!operand || !operand.getElementType().isInteger())
    return std::nullopt;
  auto rangeOf = [&](Value value) {
    if (std::optional<int64_t> known = shapes.getConstant(value))
      return IntegerRange{known, known};
    return ranges.lookup(value);
  };
  IntegerRange x = rangeOf(op->getOperand(0)), y = rangeOf(op->getOperand(1));
  if (llvm::isa<dfg::LessOp>(op))
    return isLess(x, y, false);
  if (llvm::isa<dfg::LessEqualOp>(op))
    return isLess(x, y, true);
  if (llvm::isa<dfg::GreaterOp>(op))
    return isLess(y, x, false);
  if (llvm::isa<dfg::GreaterEqualOp>(op))
    return isLess(y, x, true);
  return std::nullopt;
}

// ---- Predicates -----------------------------------------------------------------------------------------------------

Value StraightLine::equal(Value x, int64_t value, StringRef name) {
  Value constant = getInteger(llvm::cast<TensorType>(x.getType()).getElementType(), value);
  // A condition and its gradient ask for the same.
  Value &result = comparisons[{x, constant}];
  if (!result && constant)
    result = make<dfg::EqualOp>(name, builder.getI1Type(), x, constant, true);
  return result;
}

Value StraightLine::logicalAnd(Value x, Value y, StringRef name) {
  if (!x || !y)
    return x ? x : y;
  if (std::optional<int64_t> known = shapes.getConstant(x))
    return *known ? y : x;
  if (std::optional<int64_t> known = shapes.getConstant(y))
    return *known ? x : y;
  if (x == y)
    return x;
  Value &both = conjunctions[{x, y}];
  if (!both)
    both = make<dfg::LogicalAndOp>(name, builder.getI1Type(), x, y);
  return both;
}

Value StraightLine::logicalNot(Value x, StringRef name) {
  if (std::optional<int64_t> known = shapes.getConstant(x))
    return getBool(!*known);
  if (auto negation = x.getDefiningOp<dfg::LogicalNotOp>(); negation && dfg::getControl(negation).empty())
    return negation.getOperand();
  Value &opposite = conjunctions[{x, Value()}];
  if (!opposite)
    opposite = make<dfg::LogicalNotOp>(name, builder.getI1Type(), x);
  return opposite;
}

FailureOr<Value> StraightLine::getPredicate(Node &node, const Datum &datum) {
  auto type = datum.value ? llvm::dyn_cast<TensorType>(datum.value.getType()) : TensorType();
  std::optional<dfg::Dims> shape = type ? shapes.getShape(datum.value) : std::nullopt;
  if (!type || !type.getElementType().isIntOrFloat() || !shape || !shape->empty())
    return fail(node) << "decides by a value that is not known to be a scalar number or a bool", failure();
  if (type.getElementType().isInteger(1)) {
    // A Switch decides by the predicate or by an Identity of it (tf.cond's pred_id); which one must not make two
    // guards.
    Value predicate = datum.value;
    while (auto same = predicate.getDefiningOp<dfg::IdentityOp>()) {
      Value source = same->getOperand(0);
      if (!dfg::getControl(same).empty() || source.getType() != predicate.getType())
        break;
      predicate = source;
    }
    return predicate;
  }
  if (std::optional<int64_t> known = mayBeRows(datum.value) ? std::nullopt : getConstant(datum))
    return getBool(*known != 0);
  Value zero = zerosLike(datum.value, node.name + "/zero");
  if (!zero)
    return failure();
  Value predicate = make<dfg::NotEqualOp>(node.name + "/predicate", builder.getI1Type(), datum.value, zero, true);
  return ifMade(predicate);
}

// ---- Choices and sums -----------------------------------------------------------------------------------------------

FailureOr<Datum> StraightLine::getElement(const Container &list, size_t index, const Node &node) {
  const Datum &element = list.elements[index];
  if (!element.isUnset())
    return element;
  // Zeros, of the shape that others have or that the list was made with.
  for (const Datum &other : list.elements)
    if (other.value) {
      Value zeros = zerosLike(other.value, node.name + "/zeros");
      return datumIfMade(zeros);
    }
  if (list.like) {
    Value zeros = zerosLike(list.like, node.name + "/zeros");
    return datumIfMade(zeros);
  }
  std::optional<dfg::Dims> sizes = list.elementShape ? shapes.getElements(list.elementShape) : std::nullopt;
  auto isSize = [](dfg::Dim size) { return size.growsWithBatch() && size.getSmallest() >= 0; };
  if (!sizes || !llvm::all_of(*sizes, isSize) || !list.elementType ||
      !llvm::isa<IntegerType, FloatType>(list.elementType))
    return fail(node) << "needs element " << index << " of a list that was never written, whose shape is not known",
           failure();
  auto type = RankedTensorType::get({}, list.elementType);
  auto zero = dfg::ConstOp::create(builder, locate(node.name + "/zero"), type,
                                   llvm::cast<DenseElementsAttr>(builder.getZeroAttr(type)));
  if (failed(infer(zero)))
    return failure();
  Value zeros = make<dfg::FillOp>(node.name + "/zeros", list.elementType, list.elementShape, zero.getResult());
  return datumIfMade(zeros);
}

FailureOr<Datum> StraightLine::select(Value predicate, const Datum &chosen, const Datum &otherwise, const Node &node) {
  if (chosen == otherwise)
    return chosen;
  if (std::optional<int64_t> constant = shapes.getConstant(predicate))
    return *constant ? chosen : otherwise;
  if (chosen.value && otherwise.value) {
    Value x = chosen.value, y = otherwise.value;
    // Where nothing but edges keeps an order, what waits for something stays.
    auto replaceKnown = [&](Value &value) {
      if (mayBeRows(value) || (keepsOrder && ordered.contains(value.getDefiningOp())))
        return;
      if (Value known = getKnown(value))
        value = known;
    };
    replaceKnown(x);
    replaceKnown(y);
    // What is chosen by itself: `a and b` in Python is a condition that gives a where it is false.
    auto isItself = [&](Value value) {
      while (auto same = value.getDefiningOp<dfg::IdentityOp>())
        value = same.getX();
      return value == predicate;
    };
    if (isItself(x))
      x = getBool(true);
    if (isItself(y))
      y = getBool(false);
    if (!x || !y)
      return failure();
    if (x == y)
      return Datum(x);
    if (dfg::isHandle(x.getType()) || dfg::isHandle(y.getType()))
      return fail(node) << "gives one of two variables, by a predicate that depends on data", failure();
    auto type = llvm::cast<TensorType>(x.getType()), other = llvm::cast<TensorType>(y.getType());
    if (type.hasRank() && other.hasRank() && failed(verifyCompatibleShape(type, other)))
      return fail(node) << "gives tensors of the shapes " << type << " and " << other
                        << ", by a predicate that depends on data",
             failure();
    Value &result = selected[{predicate, x, y}];
    if (!result)
      result = make<dfg::SelectV2Op>(node.name + "/select", type.getElementType(), predicate, x, y);
    return datumIfMade(result);
  }
  // The gradient of a list begins as zero, which is a list that nothing was written to.
  auto makeUnwritten = [&](const Datum &zero, const Datum &list) {
    if (!zero.value || !list.container || list.container->hasValue || !isZero(zero.value))
      return Datum();
    auto unwritten = std::make_shared<Container>(*list.container);
    llvm::fill(unwritten->elements, Datum());
    return Datum(std::shared_ptr<const Container>(unwritten));
  };
  if (Datum unwritten = makeUnwritten(otherwise, chosen); unwritten.container)
    return select(predicate, chosen, unwritten, node);
  if (Datum unwritten = makeUnwritten(chosen, otherwise); unwritten.container)
    return select(predicate, unwritten, otherwise, node);
  if (!chosen.container || !otherwise.container)
    return fail(node) << "gives a list and something else, by a predicate that depends on data", failure();
  const Container &x = *chosen.container, &y = *otherwise.container;
  if (x.examples || y.examples)
    return selectExamples(predicate, chosen, otherwise, node);
  if (x.hasValue || y.hasValue) {
    if (!x.hasValue || !y.hasValue)
      return fail(node) << "gives a list and an optional, by a predicate that depends on data", failure();
    auto either = std::make_shared<Container>();
    FailureOr<Datum> hasValue = select(predicate, x.hasValue, y.hasValue, node);
    if (failed(hasValue))
      return failure();
    either->hasValue = hasValue->value;
    either->predicate = predicate;
    either->chosen = chosen;
    either->otherwise = otherwise;
    return Datum(std::shared_ptr<const Container>(either));
  }
  auto both = std::make_shared<Container>(x.elements.size() >= y.elements.size() ? x : y);
  both->length = {};
  if (x.arrayOf != y.arrayOf)
    both->arrayOf = nullptr;
  // What only the longer one has is there only where it is chosen.
  for (size_t i = 0, common = std::min(x.elements.size(), y.elements.size()); i < common; ++i) {
    if (x.elements[i] == y.elements[i])
      continue;
    // One that was never written is zeros like the other.
    Datum first = x.elements[i], second = y.elements[i];
    for (auto [unset, set] : {std::pair(&first, &second), std::pair(&second, &first)})
      if (unset->isUnset() && set->value) {
        *unset = Datum(zerosLike(set->value, node.name + "/zeros"));
        if (!unset->value)
          return failure();
      }
    FailureOr<Datum> element = select(predicate, first, second, node);
    if (failed(element))
      return failure();
    both->elements[i] = *element;
  }
  if (x.elements.size() != y.elements.size() || x.length != y.length) {
    auto lengthOf = [&](const Container &list) { return list.length ? list.length : getInt32(list.elements.size()); };
    FailureOr<Datum> length = select(predicate, lengthOf(x), lengthOf(y), node);
    if (failed(length))
      return failure();
    both->length = length->value;
  }
  return Datum(std::shared_ptr<const Container>(both));
}

FailureOr<Datum> StraightLine::add(const Datum &x, const Datum &y, const Node &node) {
  // In a loop over examples, a list of gradients that begins as zero has each example's own alone.
  for (auto [zero, list] : {std::pair(&x, &y), std::pair(&y, &x)})
    if (iteration && zero->value && iteration->zeros.contains(zero->value) && list->container &&
        list->container->examples && list->container->elements[0].isUnset())
      return *list;
  if (x.isUnset() || (x.value && y.container && isZero(x.value)))
    return y;
  if (y.isUnset() || (y.value && x.container && isZero(y.value)))
    return x;
  if (x.value && y.value) {
    if (x.value.getType() == y.value.getType() && isZero(x.value))
      return y;
    if (x.value.getType() == y.value.getType() && isZero(y.value))
      return x;
    Value sum = make<dfg::AddV2Op>(node.name + "/add", llvm::cast<TensorType>(x.value.getType()).getElementType(),
                                   x.value, y.value);
    return datumIfMade(sum);
  }
  if (x.container && y.container && (x.container->examples || y.container->examples))
    return addExamples(x, y, node);
  if (!x.container || !y.container || x.container->elements.size() != y.container->elements.size() ||
      x.container->length != y.container->length)
    return fail(node) << "adds lists that are not known to have the same length", failure();
  auto sum = std::make_shared<Container>(*x.container);
  for (size_t i = 0; i < sum->elements.size(); ++i) {
    FailureOr<Datum> element = add(x.container->elements[i], y.container->elements[i], node);
    if (failed(element))
      return failure();
    sum->elements[i] = *element;
  }
  return Datum(std::shared_ptr<const Container>(sum));
}

} // namespace distc
