//===- GatherSlices.cpp - Slices at places that data decide are gathers ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/GraphBuilder.h"
#include "dialects/dfg/SameValues.h"
#include "passes/rewrite/Passes.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc::rewrite {
#define GEN_PASS_DEF_GATHERSLICES
#include "passes/rewrite/Passes.h.inc"

namespace {

/// A whole number: elements of small integer tensors, each some times, and a constant.
struct Sum {
  struct Term {
    Value value;
    int64_t index, times;
  };
  SmallVector<Term> terms;
  int64_t constant = 0;
};

/// Adds an element, `times` times, to a sum, through vectors that are put together and numbers that are added and
/// multiplied by constants: as `x[i : i + 12]`, `x[i * 12 : (i + 1) * 12]` are written.
class Tracer {
public:
  Tracer(Sum &sum, const dfg::ShapeContext &shapes) : sum(sum), shapes(shapes) {}

  void add(Value value, int64_t index, int64_t times, int depth = kMaxDepth) {
    if (std::optional<int64_t> constant = getConstant(value, index)) {
      sum.constant += times * *constant;
      return;
    }
    Operation *op = value.getDefiningOp();
    if (!op || depth == 0 || ++looked > kMostLooked || !addOperands(op, index, times, depth - 1))
      addTerm(value, index, times);
  }

private:
  // Of sums of sums of one number there are as many terms as two to the depth.
  static constexpr int kMaxDepth = 32, kMostLooked = 1000;

  /// Whether the element is one of op's operands', or a sum of such.
  bool addOperands(Operation *op, int64_t index, int64_t times, int depth) {
    if (op->hasTrait<dfg::Forwards>() || llvm::isa<dfg::ReshapeOp, dfg::ExpandDimsOp>(op)) {
      add(op->getOperand(0), index, times, depth);
      return true;
    }
    if (auto pack = llvm::dyn_cast<dfg::PackOp>(op)) {
      if (index >= pack->getNumOperands() || count(pack->getOperand(index)) != 1)
        return false;
      add(pack->getOperand(index), 0, times, depth);
      return true;
    }
    if (auto concat = llvm::dyn_cast<dfg::ConcatV2Op>(op)) {
      for (Value part : concat->getOperands().drop_back()) {
        std::optional<int64_t> size = count(part);
        if (!size)
          return false;
        if (index < *size) {
          add(part, index, times, depth);
          return true;
        }
        index -= *size;
      }
      return false;
    }
    const bool isSum = llvm::isa<dfg::AddOp, dfg::AddV2Op, dfg::SubOp>(op);
    if ((!isSum && !llvm::isa<dfg::MulOp>(op)) || !count(op->getOperand(0)) || !count(op->getOperand(1)))
      return false;
    auto indexIn = [&](Value operand) { return *count(operand) == 1 ? 0 : index; };
    Value x = op->getOperand(0), y = op->getOperand(1);
    if (isSum) {
      add(x, indexIn(x), times, depth);
      add(y, indexIn(y), llvm::isa<dfg::SubOp>(op) ? -times : times, depth);
      return true;
    }
    for (auto [factor, other] : {std::pair(x, y), std::pair(y, x)})
      if (std::optional<int64_t> constant = getConstant(factor, indexIn(factor))) {
        add(other, indexIn(other), times * *constant, depth);
        return true;
      }
    return false;
  }

  void addTerm(Value value, int64_t index, int64_t times) {
    auto *it = llvm::find_if(
        sum.terms, [&](const Sum::Term &term) { return term.index == index && dfg::areSame(term.value, value); });
    if (it == sum.terms.end())
      sum.terms.push_back({value, index, times});
    else
      it->times += times;
  }

  std::optional<int64_t> getConstant(Value value, int64_t index) const {
    auto elements = shapes.getElements(value);
    if (!elements || index >= static_cast<int64_t>(elements->size()) || !(*elements)[index].isConstant())
      return std::nullopt;
    return (*elements)[index].getConstant();
  }

  /// How many elements a scalar or a vector has.
  std::optional<int64_t> count(Value value) const {
    auto sizes = shapes.getShape(value);
    if (!sizes || sizes->size() > 1 || (sizes->size() == 1 && !sizes->front().isConstant()))
      return std::nullopt;
    return sizes->empty() ? 1 : sizes->front().getConstant();
  }

  Sum &sum;
  const dfg::ShapeContext &shapes;
  int looked = 0;
};

/// How much larger one element is than another, where that is a constant whatever the data.
std::optional<int64_t> getDistance(Value from, Value to, int64_t index, const dfg::ShapeContext &shapes) {
  Sum distance;
  Tracer tracer(distance, shapes);
  tracer.add(to, index, 1);
  tracer.add(from, index, -1);
  if (llvm::any_of(distance.terms, [](const Sum::Term &term) { return term.times != 0; }))
    return std::nullopt;
  return distance.constant;
}

/// An entry of a strided slice that begins where data say.
struct Place {
  int64_t entry, axis, count;
  bool shrinks; // of a place of one element, which may be counted from the end
};

class Gatherer {
public:
  Gatherer(Operation *op, dfg::ShapeContext &shapes) : op(op), shapes(shapes), builder(op), g(builder, shapes, op) {}

  /// Along each axis of which less than all is taken: positions from the place on.
  void gather(dfg::SliceOp slice) {
    std::optional<dfg::Dims> from = shapes.getShape(slice.getInput()), to = shapes.getElements(slice.getSize());
    std::optional<dfg::Dims> begin = shapes.getElements(slice.getBegin());
    if (!from || !to || from->size() != to->size() || shapes.getConstants(slice.getBegin()))
      return;
    auto isKnown = [&](size_t axis) { return begin && axis < begin->size() && (*begin)[axis].isConstant(); };
    // -1 is all behind the place.
    for (size_t axis = 0; axis < from->size(); ++axis)
      if ((*to)[axis] == dfg::Dim(-1) && isKnown(axis))
        (*to)[axis] = (*from)[axis] - (*begin)[axis];
    // Of all there is one place alone.
    auto isWhole = [&](size_t axis) { return (*from)[axis] == (*to)[axis] && !(*from)[axis].isBound(); };
    for (size_t axis = 0; axis < from->size(); ++axis)
      if (!isWhole(axis) && (!(*to)[axis].isConstant() || (*to)[axis].getConstant() < 0))
        return;
    Value result = slice.getInput();
    for (size_t axis = 0; axis < from->size(); ++axis) {
      if (isWhole(axis))
        continue;
      const int64_t size = (*to)[axis].getConstant();
      result = isKnown(axis) ? g.slice(result, axis, (*begin)[axis].getConstant(), size)
                             : take(result, g.slice(slice.getBegin(), 0, axis, 1), axis, size);
    }
    finish(result);
  }

  /// The axes whose place is not known first; then the slice, of what they leave.
  void gather(dfg::StridedSliceOp slice) {
    std::optional<dfg::Dims> from = shapes.getShape(slice->getOperand(0));
    std::optional<SmallVector<Place>> places = from ? findPlaces(*from) : std::nullopt;
    if (!places || places->empty())
      return;
    Value result = slice->getOperand(0);
    for (const Place &place : *places)
      result = take(result, getPlace(place, (*from)[place.axis]), place.axis, place.count);
    SmallVector<Value> operands = {result, replaceEntries(slice->getOperand(1), *places, false),
                                   replaceEntries(slice->getOperand(2), *places, true), slice->getOperand(3)};
    finish(g.make<dfg::StridedSliceOp>(operands, getMasks()));
  }

  /// The slice's gradient between zeros, where its place is.
  void gather(dfg::StridedSliceGradOp slice) {
    std::optional<dfg::Dims> sizes = shapes.getElements(slice->getOperand(0));
    std::optional<SmallVector<Place>> places = sizes ? findPlaces(*sizes) : std::nullopt;
    if (!places || places->empty())
      return;
    if (llvm::any_of(*places, [&](const Place &place) { return !(*sizes)[place.axis].isConstant(); }))
      return;
    SmallVector<Place> axes = *places;
    for (Place &place : axes)
      place.entry = place.axis;
    SmallVector<Value> operands = {
        replaceEntries(slice->getOperand(0), axes, true), replaceEntries(slice->getOperand(1), *places, false),
        replaceEntries(slice->getOperand(2), *places, true), slice->getOperand(3), slice->getOperand(4)};
    Value result = g.make<dfg::StridedSliceGradOp>(operands, getMasks(), g.elementOf(slice->getOperand(4)));
    for (const Place &place : *places) {
      const dfg::Dim size = (*sizes)[place.axis];
      result = put(result, getPlace(place, size), place.axis, size.getConstant(), place.count);
    }
    finish(result);
  }

  /// A slice's gradient as TensorFlow writes it: paddings [begin, shape - size - begin].
  void gather(dfg::PadOp pad) {
    auto paddings = pad->getOperand(1).getDefiningOp<dfg::ConcatV2Op>();
    auto given = shapes.getShape(pad->getOperand(0));
    if (!given || !paddings || paddings->getNumOperands() != 3 || shapes.getConstants(paddings))
      return;
    auto behind = unwrap(paddings->getOperand(1)).getDefiningOp<dfg::SubOp>();
    Value begin = unwrap(paddings->getOperand(0));
    if (!behind || unwrap(behind->getOperand(1)) != begin)
      return;
    auto rest = unwrap(behind->getOperand(0)).getDefiningOp<dfg::SubOp>();
    std::optional<dfg::Dims> sizes = rest ? shapes.getElements(rest->getOperand(0)) : std::nullopt;
    std::optional<dfg::Dims> taken = rest ? shapes.getElements(rest->getOperand(1)) : std::nullopt;
    if (!sizes || !taken || sizes->size() != given->size() || taken->size() != given->size())
      return;
    Value result = pad->getOperand(0);
    for (size_t axis = 0; axis < given->size(); ++axis) {
      if (!((*taken)[axis] == (*given)[axis]))
        return;
      if ((*sizes)[axis] == (*given)[axis])
        continue;
      if (!(*sizes)[axis].isConstant() || !(*given)[axis].isConstant())
        return;
      result =
          put(result, g.slice(begin, 0, axis, 1), axis, (*sizes)[axis].getConstant(), (*given)[axis].getConstant());
    }
    finish(result);
  }

private:
  static Value unwrap(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!op->hasTrait<dfg::Forwards>() && !llvm::isa<dfg::ReshapeOp>(op))
        break;
      value = op->getOperand(0);
    }
    return value;
  }

  int64_t getMask(StringRef name) {
    auto mask = op->getAttrOfType<IntegerAttr>(name);
    return mask ? mask.getInt() : 0;
  }

  SmallVector<NamedAttribute> getMasks() {
    return llvm::filter_to_vector(
        op->getAttrs(), [](NamedAttribute attribute) { return attribute.getName().getValue().ends_with("_mask"); });
  }

  /// The entries of a strided slice (operands 1 to 3) whose begin is not known, with how much they take; none where
  /// that is not known, either.
  std::optional<SmallVector<Place>> findPlaces(ArrayRef<dfg::Dim> input) {
    auto begin = shapes.getElements(op->getOperand(1)), strides = shapes.getElements(op->getOperand(3));
    auto entries = shapes.getShape(op->getOperand(1));
    if (!strides || !entries || entries->size() != 1 || !entries->front().isConstant())
      return std::nullopt;
    const int64_t count = entries->front().getConstant(), newAxes = getMask("new_axis_mask"),
                  ellipsis = getMask("ellipsis_mask"), shrinks = getMask("shrink_axis_mask");
    constexpr int64_t kMaxEntries = 32; // a mask has a bit an entry
    if (count > kMaxEntries || static_cast<int64_t>(strides->size()) != count)
      return std::nullopt;
    int64_t taken = 0;
    for (int64_t entry = 0; entry < count; ++entry)
      taken += !(ellipsis >> entry & 1) && !(newAxes >> entry & 1);
    SmallVector<Place> places;
    int64_t axis = 0;
    for (int64_t entry = 0; entry < count; ++entry) {
      if (ellipsis >> entry & 1) {
        axis += static_cast<int64_t>(input.size()) - taken;
        continue;
      }
      if (newAxes >> entry & 1)
        continue;
      const bool shrinksEntry = shrinks >> entry & 1;
      if (axis < 0 || axis >= static_cast<int64_t>(input.size()))
        return std::nullopt;
      if (!(getMask("begin_mask") >> entry & 1) && !(begin && (*begin)[entry].isKnown())) {
        auto distance =
            shrinksEntry ? std::optional<int64_t>(1) : getDistance(op->getOperand(1), op->getOperand(2), entry, shapes);
        const bool endsOpen = !shrinksEntry && (getMask("end_mask") >> entry & 1);
        if (!distance || *distance <= 0 || endsOpen || !((*strides)[entry] == dfg::Dim(1)))
          return std::nullopt;
        places.push_back({entry, axis, *distance, shrinksEntry});
      }
      ++axis;
    }
    return places;
  }

  /// Where an entry begins, as a vector of one.
  Value getPlace(const Place &place, dfg::Dim size) {
    Value begin = g.slice(op->getOperand(1), 0, place.entry, 1);
    if (!place.shrinks || !size.isConstant())
      return begin;
    const bool isWide = g.elementOf(begin).isInteger(64);
    return g.select(g.less(begin, g.integers({0}, isWide)), g.add(begin, g.integers({size.getConstant()}, isWide)),
                    begin);
  }

  /// A vector with other elements for these entries: 0, or how much is taken.
  Value replaceEntries(Value vector, ArrayRef<Place> places, bool byCount) {
    const bool isWide = g.elementOf(vector).isInteger(64);
    SmallVector<Value> parts;
    int64_t done = 0;
    auto copyTo = [&](int64_t entry) {
      if (entry > done)
        parts.push_back(g.slice(vector, 0, done, entry - done));
    };
    for (const Place &place : places) {
      copyTo(place.entry);
      parts.push_back(g.integers({byCount ? place.count : 0}, isWide));
      done = place.entry + 1;
    }
    auto length = g.getStaticShape(vector);
    if (failed(length))
      return {};
    copyTo(length->front());
    return parts.size() == 1 ? parts.front() : g.concat(parts, 0);
  }

  /// 0, 1, ... of as many.
  Value count(int64_t size, bool isWide) { return g.integers(llvm::to_vector(llvm::seq<int64_t>(0, size)), isWide); }

  /// `size` elements of an axis from `place` on.
  Value take(Value x, Value place, int64_t axis, int64_t size) {
    const bool isWide = g.elementOf(place).isInteger(64);
    return g.gather(x, g.add(place, count(size, isWide)), axis);
  }

  /// Zeros along an axis of `size` elements, `given` elements of `x` from `place` on.
  Value put(Value x, Value place, int64_t axis, int64_t size, int64_t given) {
    const bool isWide = g.elementOf(place).isInteger(64);
    Value first = g.integers({0}, isWide), last = g.integers({given - 1}, isWide);
    Value from = g.sub(count(size, isWide), place);
    Value inside = g.both(g.lessEqual(first, from), g.lessEqual(from, last));
    auto shape = g.getShape(x);
    if (failed(shape))
      return {};
    Value laid = g.gather(x, g.minimum(g.maximum(from, first), last), axis);
    dfg::Dims column(shape->size() - axis, dfg::Dim(1));
    column[0] = size;
    return g.select(g.reshape(inside, column), laid, g.scalar(g.elementOf(x), 0.0));
  }

  void finish(Value result) {
    if (g.failed() || !result) {
      g.takeBack();
      return;
    }
    result = g.takeName(result);
    op->getResult(0).replaceAllUsesWith(result);
    shapes.forget(op->getResult(0));
    op->erase();
  }

  Operation *op;
  dfg::ShapeContext &shapes;
  OpBuilder builder;
  dfg::GraphBuilder g;
};

struct GatherSlices : impl::GatherSlicesBase<GatherSlices> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(rewrite(graph.getBody().front())))
        return signalPassFailure();
  }

  LogicalResult rewrite(Block &block) {
    auto isSlice = [](Operation *op) {
      return llvm::isa<dfg::SliceOp, dfg::StridedSliceOp, dfg::StridedSliceGradOp, dfg::PadOp>(op)
                 ? WalkResult::interrupt()
                 : WalkResult::advance();
    };
    if (!block.walk(isSlice).wasInterrupted())
      return success();
    dfg::ShapeContext shapes;
    return rewrite(block, shapes);
  }

  LogicalResult rewrite(Block &block, dfg::ShapeContext &shapes) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(op); node && failed(node.inferShapes(shapes)))
        return failure();
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          if (failed(rewrite(inner, shapes)))
            return failure();
      llvm::TypeSwitch<Operation *, void>(&op)
          .Case<dfg::SliceOp, dfg::StridedSliceOp, dfg::StridedSliceGradOp, dfg::PadOp>(
              [&](auto slice) { Gatherer(slice, shapes).gather(slice); });
    }
    return success();
  }
};

} // namespace
} // namespace distc::rewrite
