//===- Examples.cpp - What is computed for one example, for all of them -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/control_flow/Examples.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>

using namespace mlir;

namespace distc {

using dfg::Dim;
using dfg::Dims;

/// `op` with other operands; its own attributes but for those in `changed`.
static dfg::GraphBuilder::Values copy(dfg::GraphBuilder &g, Operation *op, ValueRange operands,
                                      ArrayRef<NamedAttribute> changed = {}) {
  if (g.failed() || llvm::is_contained(operands, Value()))
    return dfg::GraphBuilder::Values(op->getNumResults());
  OperationState state(NameLoc::get(g.builder.getStringAttr(dfg::getNodeName(op) + "/examples")), op->getName());
  state.addOperands(operands);
  state.addAttributes(changed);
  for (StringAttr name : op->getName().getAttributeNames())
    if (Attribute value = op->getAttr(name);
        value && llvm::none_of(changed, [&](NamedAttribute other) { return other.getName() == name; }))
      state.addAttribute(name, value);
  for (Value result : op->getResults())
    state.addTypes(UnrankedTensorType::get(dfg::GraphBuilder::elementOf(result)));
  Operation *made = g.builder.create(state);
  g.made.push_back(made);
  auto node = llvm::dyn_cast<dfg::ShapeInterface>(made);
  if (node && failed(node.inferShapes(g.shapes)))
    return (void)g.fail("does not fit"), dfg::GraphBuilder::Values(op->getNumResults());
  for (Value result : made->getResults())
    if (auto sizes = g.shapes.getShape(result))
      result.setType(dfg::getTensorType(*sizes, dfg::GraphBuilder::elementOf(result)));
  return dfg::GraphBuilder::Values(made->getResults());
}

Examples::Examples(OpBuilder &builder, dfg::ShapeContext &shapes, ArrayRef<Operation *> nodes, mlir::Value number,
                   mlir::Value numbers)
    : builder(builder), shapes(shapes), numbers(numbers) {
  if (std::optional<Dims> sizes = shapes.getShape(numbers); sizes && sizes->size() == 1)
    count = sizes->front();
  all[number] = {numbers, true};
  touched.insert(number);
  for (Operation *op : nodes) {
    // Numbers that are drawn are others for each example.
    const bool draws = op->hasTrait<dfg::DrawsNumbers>() && !isMemoryEffectFree(op);
    if (!draws && llvm::none_of(op->getOperands(), [&](mlir::Value operand) { return touched.contains(operand); }))
      continue;
    order[op] = order.size();
    touched.insert(op->result_begin(), op->result_end());
  }
}

bool Examples::fail(Operation *op, const Twine &why) {
  if (reason.empty())
    reason = ("node '" + dfg::getNodeName(op) + "' (" + op->getName().stripDialect() + ") " + why).str();
  return false;
}

// ---- What is asked for ----------------------------------------------------------------------------------------------

/// In order, each node behind those that it takes from.
bool Examples::makeAll(mlir::Value value) {
  SmallVector<Operation *> needed;
  SmallVector<mlir::Value> pending = {value};
  llvm::DenseSet<Operation *> seen;
  while (!pending.empty()) {
    mlir::Value next = pending.pop_back_val();
    if (!touched.contains(next) || all.contains(next) || !seen.insert(next.getDefiningOp()).second)
      continue;
    needed.push_back(next.getDefiningOp());
    pending.append(needed.back()->operand_begin(), needed.back()->operand_end());
  }
  llvm::sort(needed, [&](Operation *x, Operation *y) { return order.lookup(x) < order.lookup(y); });
  return llvm::all_of(needed, [&](Operation *op) { return vectorize(op); });
}

mlir::Value Examples::getAll(mlir::Value value) {
  if (!makeAll(value))
    return {};
  Operation *op = touched.contains(value) ? value.getDefiningOp() : numbers.getDefiningOp();
  Builder g(builder, shapes, op ? op : numbers.getDefiningOp());
  mlir::Value result = each(g, value);
  llvm::append_range(made, g.made);
  if (!result || g.failed())
    return fail(g.node, g.getReason()), mlir::Value();
  return result;
}

mlir::Value Examples::getSame(mlir::Value value) {
  return makeAll(value) && !get(value).varies ? get(value).value : mlir::Value();
}

mlir::Value Examples::getSum(mlir::Value value) {
  Operation *op = touched.contains(value) ? value.getDefiningOp() : nullptr;
  Builder g(builder, shapes, op ? op : numbers.getDefiningOp());
  mlir::Value sum = op ? sumOf(op, g) : mlir::Value();
  if (!sum && reason.empty() && !g.failed()) {
    if (!makeAll(value))
      return {};
    Value found = get(value);
    if (found.varies)
      sum = g.sum(found.value, {0});
    else
      sum = g.mul(found.value, g.cast(g.sizeOf(numbers, 0, builder.getI32Type()), Builder::elementOf(found.value)));
  }
  llvm::append_range(made, g.made);
  if (!sum || g.failed())
    return fail(g.node, g.getReason()), mlir::Value();
  return sum;
}

/// Sums over the examples that are one operation on all of their rows, such as the gradient of a matrix. Null for
/// others.
mlir::Value Examples::sumOf(Operation *op, Builder &g) {
  auto both = [&](mlir::Value x, mlir::Value y) { return touched.contains(x) && touched.contains(y); };
  auto makeOperands = [&] {
    return llvm::all_of(op->getOperands(), [&](mlir::Value operand) { return makeAll(operand); });
  };
  auto ofAllRows = [&](ArrayRef<unsigned> joined) {
    return makeOperands() ? copyJoined(op, g, joined)[0] : mlir::Value();
  };
  if (auto product = llvm::dyn_cast<dfg::MatMulOp>(op); product && both(product.getA(), product.getB())) {
    if (!makeOperands() || !get(product.getA()).varies || !get(product.getB()).varies)
      return {};
    // [examples, n, k] and [examples, n, m], of which n is what is summed over.
    auto rowsOf = [&](mlir::Value operand, bool areColumns) {
      mlir::Value value = get(operand).value;
      return join(g, areColumns ? g.transpose(value, {0, 2, 1}) : value);
    };
    return g.matMul(rowsOf(product.getA(), !product.getTransposeA()), rowsOf(product.getB(), product.getTransposeB()),
                    /*transposeA=*/true);
  }
  if (llvm::isa<dfg::Conv2DBackpropFilterOp, dfg::DepthwiseConv2dNativeBackpropFilterOp>(op) &&
      !touched.contains(op->getOperand(1)))
    return ofAllRows({0, 2});
  if (auto segment = llvm::dyn_cast<dfg::UnsortedSegmentSumOp>(op);
      segment && both(segment.getData(), segment.getSegmentIds()) && !touched.contains(segment.getNumSegments()) &&
      rankOf(g, segment.getSegmentIds()) > 0)
    return ofAllRows({0, 1});
  if (auto scatter = llvm::dyn_cast<dfg::ScatterNdOp>(op);
      scatter && !touched.contains(scatter.getDimensions()) && rankOf(g, scatter.getIndices()) > 1)
    return ofAllRows({0, 1});
  // Each one's own row of as many as there are examples.
  if (auto rows = llvm::dyn_cast<dfg::StridedSliceGradOp>(op);
      rows && rows.getShrinkAxisMask() == 1 && !rows.getBeginMask() && !rows.getEllipsisMask() &&
      !rows.getNewAxisMask() && touched.contains(rows.getBegin()) && touched.contains(rows.getDy())) {
    FailureOr<Dims> shape = shapeOf(g, op->getResult(0));
    if (succeeded(shape) && (*shape)[0] == count && makeOperands() && get(rows.getBegin()).varies &&
        placeOf(g, rows.getBegin()) == numbers)
      return each(g, rows.getDy());
    return {};
  }
  // Sums of other layouts are those of the sum.
  const bool isLayout =
      op->hasTrait<dfg::Reshapes>() || op->hasTrait<dfg::Forwards>() || llvm::isa<dfg::TransposeOp>(op);
  if (isLayout &&
      llvm::none_of(op->getOperands().drop_front(), [&](mlir::Value operand) { return touched.contains(operand); })) {
    mlir::Value sum = getSum(op->getOperand(0));
    if (!sum)
      return {};
    SmallVector<mlir::Value> operands(op->getOperands());
    operands[0] = sum;
    return copy(g, op, operands)[0];
  }
  return {};
}

// ---- Values ---------------------------------------------------------------------------------------------------------

Examples::Value Examples::get(mlir::Value value) const {
  auto it = all.find(value);
  return it == all.end() ? Value{value, false} : it->second;
}

FailureOr<Dims> Examples::shapeOf(Builder &g, mlir::Value value) const { return g.getShape(value); }

int64_t Examples::rankOf(Builder &g, mlir::Value value) const {
  FailureOr<Dims> shape = g.getShape(value);
  return succeeded(shape) ? shape->size() : 0;
}

mlir::Value Examples::each(Builder &g, mlir::Value value) const {
  Value found = get(value);
  if (found.varies)
    return found.value;
  FailureOr<Dims> shape = shapeOf(g, found.value);
  if (failed(shape))
    return {};
  // As many of it as there are examples, of which the numbers say how many.
  Dims sizes = {count};
  llvm::append_range(sizes, *shape);
  return g.broadcastTo(found.value, g.sizes(sizes, numbers));
}

mlir::Value Examples::lift(Builder &g, mlir::Value value, int64_t rank) const {
  Value found = get(value);
  if (!found.varies)
    return found.value;
  mlir::Value lifted = found.value;
  for (int64_t axes = rankOf(g, value); axes < rank; ++axes)
    lifted = g.expandDims(lifted, 1);
  return lifted;
}

mlir::Value Examples::join(Builder &g, mlir::Value value) const {
  FailureOr<Dims> shape = shapeOf(g, value);
  if (failed(shape) || shape->size() < 2)
    return (void)g.fail("has no axis to join the examples with"), mlir::Value();
  Dims joined(shape->begin() + 1, shape->end());
  joined[0] = (*shape)[0] * (*shape)[1];
  return reshape(g, value, joined);
}

Examples::Values Examples::copyJoined(Operation *op, Builder &g, ArrayRef<unsigned> joined) const {
  Values operands(op->getOperands());
  for (unsigned number : joined)
    operands[number] = join(g, each(g, operands[number]));
  return copy(g, op, operands);
}

/// Axes of size 1 come and go one by one where the sizes of several depend on the batch.
mlir::Value Examples::reshape(Builder &g, mlir::Value value, ArrayRef<Dim> to) const {
  FailureOr<Dims> from = g.getShape(value);
  auto isOpen = [](Dim size) { return !size.isConstant() || size.isBound(); };
  if (failed(from) || llvm::count_if(to, isOpen) < 2)
    return g.reshape(value, to);
  SmallVector<int64_t> ones;
  Dims rest, others;
  for (auto [axis, size] : llvm::enumerate(*from))
    if (size == Dim(1))
      ones.push_back(axis);
    else
      rest.push_back(size);
  llvm::copy_if(to, std::back_inserter(others), [](Dim size) { return !(size == Dim(1)); });
  if (!llvm::equal(rest, others))
    return (void)g.fail("two of its sizes depend on the batch"), mlir::Value();
  if (!ones.empty())
    value = g.make<dfg::SqueezeOp>(value, g.attribute("squeeze_dims", builder.getI64ArrayAttr(ones)));
  for (auto [axis, size] : llvm::enumerate(to))
    if (size == Dim(1))
      value = g.expandDims(value, axis);
  return value;
}

mlir::Value Examples::divide(Builder &g, mlir::Value joined, mlir::Value like) const {
  FailureOr<Dims> shape = shapeOf(g, like);
  if (failed(shape))
    return {};
  Dims sizes = {count};
  llvm::append_range(sizes, *shape);
  return reshape(g, joined, sizes);
}

mlir::Value Examples::prepend(Builder &g, int64_t first, mlir::Value vector) const {
  if (std::optional<SmallVector<int64_t>> known = shapes.getConstants(vector)) {
    known->insert(known->begin(), first);
    return g.integers(*known, Builder::elementOf(vector).isInteger(64));
  }
  return g.concat({g.integers({first}, Builder::elementOf(vector).isInteger(64)), vector}, 0);
}

mlir::Value Examples::prependCount(Builder &g, mlir::Value sizes) const {
  mlir::Value examples = g.pack({g.sizeOf(numbers, 0, Builder::elementOf(sizes))}, 0);
  return g.concat({examples, sizes}, 0);
}

std::optional<int64_t> Examples::axisOf(Builder &g, mlir::Value axis, int64_t rank) const {
  FailureOr<int64_t> known = g.getConstant(axis);
  if (failed(known))
    return std::nullopt;
  return *known < 0 ? *known + rank : *known;
}

// ---- Nodes ----------------------------------------------------------------------------------------------------------

bool Examples::vectorize(Operation *op) {
  Builder g(builder, shapes, op);
  bool varies = true;
  Values results = rewrite(op, g, varies);
  llvm::append_range(made, g.made);
  if (!reason.empty())
    return false;
  if (results.size() != op->getNumResults() || llvm::is_contained(results, mlir::Value()) || g.failed())
    return fail(op, g.getReason().empty() ? "has no form for all examples" : g.getReason());
  for (auto [result, value] : llvm::zip(op->getResults(), results))
    all[result] = {value, varies};
  return true;
}

Examples::Values Examples::rewriteComposite(Operation *op, Builder &g) {
  // What it is made of for one example, and each of that for all.
  Builder one(builder, shapes, op);
  FailureOr<SmallVector<mlir::Value>> results = llvm::cast<dfg::CompositeInterface>(op).decompose(one);
  llvm::append_range(made, one.made);
  if (failed(results) || one.failed())
    return (void)g.fail(one.getReason()), Values();
  for (Operation *part : one.made)
    if (llvm::any_of(part->getOperands(), [&](mlir::Value operand) { return touched.contains(operand); })) {
      order[part] = order.size();
      touched.insert(part->result_begin(), part->result_end());
    }
  for (mlir::Value result : *results)
    if (!makeAll(result))
      return {};
  return llvm::map_to_vector<6>(*results, [&](mlir::Value result) { return each(g, result); });
}

Examples::Values Examples::elementwise(Operation *op, Builder &g) {
  const int64_t rank = rankOf(g, op->getResult(0));
  Values operands;
  // Gradients (linear in one operand) and sums of many take no operands of other shapes.
  const dfg::Linearity linearity = llvm::cast<dfg::NodeInterface>(op).getLinearity();
  const bool isOfOneShape =
      llvm::isa<dfg::AddNOp>(op) ||
      (op->getNumOperands() > 1 && (linearity == dfg::Linearity::First || linearity == dfg::Linearity::Last));
  for (mlir::Value operand : op->getOperands())
    operands.push_back(isOfOneShape && rankOf(g, operand) == rank ? each(g, operand) : lift(g, operand, rank));
  if (llvm::isa<dfg::BitcastOp>(op) && rankOf(g, op->getOperand(0)) != rank)
    return {};
  if (!llvm::isa<dfg::SelectOp>(op))
    return copy(g, op, operands);
  // Its condition is of the first axis of what it chooses from, where it has one axis.
  Value condition = get(op->getOperand(0));
  mlir::Value chosen = condition.value;
  for (int64_t axes = rankOf(g, op->getOperand(0)); axes > 0 && axes < rank; ++axes)
    chosen = g.expandDims(chosen, axes + (condition.varies ? 1 : 0));
  if (rankOf(g, op->getOperand(0)) == 0)
    chosen = operands[0];
  return {g.select(chosen, operands[1], operands[2])};
}

/// A product with one matrix for all is one of all rows.
/// The examples are one more axis in front; a scalar is for all of them.
Examples::Values Examples::matrices(Operation *op, Builder &g) {
  for (mlir::Value result : op->getResults())
    if (FailureOr<Dims> shape = shapeOf(g, result); failed(shape) || (*shape == Dims{Dim(0)} && !result.use_empty()))
      return {};
  Values operands;
  for (mlir::Value operand : op->getOperands()) {
    const bool isScalar = rankOf(g, operand) == 0;
    if (isScalar && get(operand).varies)
      return {};
    operands.push_back(isScalar ? get(operand).value : each(g, operand));
  }
  return copy(g, op, operands);
}

Examples::Values Examples::product(Operation *op, Builder &g) {
  auto matMul = llvm::dyn_cast<dfg::MatMulOp>(op);
  if (!matMul) {
    const int64_t rank = std::max(rankOf(g, op->getOperand(0)), rankOf(g, op->getOperand(1)));
    return copy(g, op, {lift(g, op->getOperand(0), rank), lift(g, op->getOperand(1), rank)});
  }
  Value a = get(matMul.getA()), b = get(matMul.getB());
  if (a.varies && b.varies)
    return {g.batchMatMul(a.value, b.value, matMul.getTransposeA(), matMul.getTransposeB())};
  if (a.varies) {
    mlir::Value rows = matMul.getTransposeA() ? g.transpose(a.value, {0, 2, 1}) : a.value;
    return {divide(g, g.matMul(join(g, rows), b.value, false, matMul.getTransposeB()), op->getResult(0))};
  }
  // (a b)' = b' a'
  mlir::Value columns = matMul.getTransposeB() ? b.value : g.transpose(b.value, {0, 2, 1});
  mlir::Value found = g.matMul(join(g, columns), a.value, false, !matMul.getTransposeA());
  FailureOr<Dims> shape = shapeOf(g, op->getResult(0));
  if (failed(shape))
    return {};
  return {g.transpose(reshape(g, found, {count, (*shape)[1], (*shape)[0]}), {0, 2, 1})};
}

Examples::Values Examples::gather(Operation *op, Builder &g) {
  Value params = get(op->getOperand(0)), indices = get(op->getOperand(1));
  auto gather = llvm::dyn_cast<dfg::GatherV2Op>(op);
  const int64_t rank = llvm::isa<dfg::ResourceGatherOp>(op) ? 0 : rankOf(g, op->getOperand(0));
  std::optional<int64_t> axis = gather ? axisOf(g, gather.getAxis(), rank) : 0;
  auto batchDims = op->getAttrOfType<IntegerAttr>("batch_dims");
  const int64_t shared = batchDims ? batchDims.getInt() : 0;
  if (!axis || shared < 0)
    return {};
  if (!params.varies) {
    if (shared != 0)
      return {};
    if (!gather)
      return copy(g, op, {params.value, indices.value});
    // Each example's own element is its part of the whole.
    if (areNumbers(indices.value) && *axis == 0 && rank > 0 && (*shapes.getShape(params.value))[0] == count)
      return {params.value};
    mlir::Value found = g.gather(params.value, indices.value, *axis);
    SmallVector<int64_t> permutation(rankOf(g, op->getResult(0)) + 1);
    std::iota(permutation.begin(), permutation.end(), 0);
    std::rotate(permutation.begin(), permutation.begin() + *axis, permutation.begin() + *axis + 1);
    return {g.transpose(found, permutation)};
  }
  if (!indices.varies && shared == 0)
    return {g.gather(params.value, indices.value, *axis + 1)};
  return {g.gather(params.value, each(g, op->getOperand(1)), *axis + 1, shared + 1)};
}

/// Whether `value` is 0, 1, ..., one for each example.
bool Examples::areNumbers(mlir::Value value) const {
  auto range = value.getDefiningOp<dfg::RangeOp>();
  std::optional<Dims> limit = range ? shapes.getElements(range.getLimit()) : std::nullopt;
  return limit && limit->size() == 1 && limit->front() == count && shapes.getConstant(range.getStart()) == 0 &&
         shapes.getConstant(range.getDelta()) == 1;
}

/// The only element of `begin`, for all examples.
mlir::Value Examples::placeOf(Builder &g, mlir::Value begin) const {
  if (auto pack = get(begin).value.getDefiningOp<dfg::PackOp>(); pack && pack->getNumOperands() == 1)
    return areNumbers(pack->getOperand(0)) ? numbers : pack->getOperand(0);
  return g.make<dfg::SqueezeOp>(get(begin).value, g.attribute("squeeze_dims", builder.getI64ArrayAttr({1})));
}

Examples::Values Examples::strided(Operation *op, Builder &g) {
  auto slice = llvm::dyn_cast<dfg::StridedSliceOp>(op);
  auto gradient = llvm::dyn_cast<dfg::StridedSliceGradOp>(op);
  mlir::Value begin = slice ? slice.getBegin() : gradient.getBegin(), end = slice ? slice.getEnd() : gradient.getEnd();
  mlir::Value strides = slice ? slice.getStrides() : gradient.getStrides();
  auto mask = [&](StringRef name) {
    return op->getAttrOfType<IntegerAttr>(name) ? op->getAttrOfType<IntegerAttr>(name).getInt() : 0;
  };
  if (get(strides).varies)
    return {};
  if (get(begin).varies) {
    // One element along the first axis, by a place of each example's own.
    if (mask("shrink_axis_mask") != 1 || mask("begin_mask") || mask("ellipsis_mask") || mask("new_axis_mask") ||
        shapes.getConstants(strides) != SmallVector<int64_t>{1})
      return {};
    mlir::Value source = slice ? mlir::Value(slice.getInput()) : mlir::Value(op->getResult(0));
    FailureOr<Dims> shape = shapeOf(g, source);
    if (failed(shape))
      return {};
    mlir::Value place = placeOf(g, begin);
    const bool isOwn = place == numbers && (*shape)[0] == count;
    if (slice && isOwn && !get(source).varies)
      return {get(source).value};
    Type element = Builder::elementOf(place);
    mlir::Value size = slice ? g.sizeOf(get(source).value, get(source).varies ? 1 : 0, element)
                             : g.scalar(element, (*shape)[0].getConstant());
    // Counted from the end where it is negative.
    if (place != numbers)
      place = g.select(g.less(place, g.scalar(element, 0)), g.add(place, size), place);
    if (slice)
      return {get(source).varies ? g.gather(get(source).value, place, 1, 1) : g.gather(get(source).value, place, 0)};
    if (!(*shape)[0].isConstant())
      return {};
    mlir::Value dy = each(g, gradient.getDy()), yes = g.scalar(builder.getI1Type(), 1),
                no = g.scalar(builder.getI1Type(), 0);
    mlir::Value here =
        g.make<dfg::OneHotOp>({place, g.cast(size, builder.getI32Type()), yes, no}, {}, builder.getI1Type());
    for (size_t axis = 1; axis < shape->size(); ++axis)
      here = g.expandDims(here, axis + 1);
    return {g.select(here, g.expandDims(dy, 1), g.scalar(Builder::elementOf(dy), 0))};
  }
  if (get(end).varies)
    return {};
  SmallVector<NamedAttribute> masks;
  for (auto [name, first] : {std::pair<StringRef, int64_t>("begin_mask", 1),
                             {"end_mask", 1},
                             {"ellipsis_mask", 0},
                             {"new_axis_mask", 0},
                             {"shrink_axis_mask", 0}})
    masks.push_back(g.attribute(name, builder.getI64IntegerAttr(mask(name) << 1 | first)));
  mlir::Value places[] = {prepend(g, 0, get(begin).value), prepend(g, 0, get(end).value),
                          prepend(g, 1, get(strides).value)};
  if (slice)
    return copy(g, op, {each(g, slice.getInput()), places[0], places[1], places[2]}, masks);
  return copy(g, op,
              {prependCount(g, get(gradient.getDimensions()).value), places[0], places[1], places[2],
               each(g, gradient.getDy())},
              masks);
}

/// Operations on a batch of images: that of one example is part of a larger one.
Examples::Values Examples::image(Operation *op, Builder &g) {
  Values operands;
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    Value found = get(operand);
    if (rankOf(g, operand) == 4 && !(llvm::isa<dfg::Conv2DOp, dfg::DepthwiseConv2dNativeOp, dfg::Conv2DBackpropInputOp,
                                               dfg::DepthwiseConv2dNativeBackpropInputOp>(op) &&
                                     number == 1)) {
      operands.push_back(join(g, each(g, operand)));
      continue;
    }
    // Filters, and sizes, of which the first is how many images there are.
    if (found.varies)
      return {};
    if (rankOf(g, operand) == 4) {
      operands.push_back(found.value);
      continue;
    }
    FailureOr<SmallVector<int64_t>> sizes = g.getConstants(found.value);
    if (failed(sizes) || sizes->size() != 4)
      return {};
    Dims joined = {count * Dim(sizes->front())};
    joined.append(sizes->begin() + 1, sizes->end());
    operands.push_back(g.sizes(joined, numbers));
  }
  return {divide(g, copy(g, op, operands)[0], op->getResult(0))};
}

/// Sums of each example's rows by their numbers, as products with ones where a row has a number.
mlir::Value Examples::addRows(Builder &g, mlir::Value ids, mlir::Value data, int64_t number) const {
  Type element = Builder::elementOf(data);
  if (!llvm::isa_and_nonnull<FloatType>(element))
    return (void)g.fail("adds up rows of integers"), mlir::Value();
  mlir::Value hot =
      g.make<dfg::OneHotOp>({ids, g.integer(number), g.scalar(element, 1), g.scalar(element, 0)}, {}, element);
  return g.batchMatMul(hot, data, /*transposeA=*/true);
}

Examples::Values Examples::segments(Operation *op, Builder &g) {
  auto segment = llvm::cast<dfg::UnsortedSegmentSumOp>(op);
  FailureOr<Dims> shape = shapeOf(g, segment.getData()), ids = shapeOf(g, segment.getSegmentIds());
  FailureOr<int64_t> number = g.getConstant(segment.getNumSegments());
  if (failed(shape) || failed(ids) || failed(number))
    return {};
  Dim rows(1), rest(1);
  for (auto [axis, size] : llvm::enumerate(*shape))
    (axis < ids->size() ? rows : rest) = (axis < ids->size() ? rows : rest) * size;
  mlir::Value sums = addRows(g, g.reshape(each(g, segment.getSegmentIds()), {count, rows}),
                             g.reshape(each(g, segment.getData()), {count, rows, rest}), *number);
  return {divide(g, sums, op->getResult(0))};
}

/// Places along the first axes of a tensor of `shape` as the numbers of its rows; `rows` is how many of them there are.
mlir::Value Examples::numberPlaces(Builder &g, mlir::Value indices, ArrayRef<Dim> shape, int64_t &rows) const {
  FailureOr<Dims> sizes = shapeOf(g, indices);
  if (failed(sizes) || sizes->empty() || !sizes->back().isConstant())
    return {};
  const int64_t axes = sizes->back().getConstant(), rank = sizes->size();
  mlir::Value places = each(g, indices), number;
  Type element = Builder::elementOf(places);
  rows = 1;
  for (int64_t axis = 0; axis < axes; ++axis) {
    if (!shape[axis].isConstant() || shape[axis].isBound())
      return (void)g.fail("takes places along an axis whose size is not known"), mlir::Value();
    const int64_t size = shape[axis].getConstant();
    rows *= size;
    mlir::Value place = g.make<dfg::SqueezeOp>(g.slice(places, rank, axis, 1),
                                               g.attribute("squeeze_dims", builder.getI64ArrayAttr({rank})));
    number = number ? g.add(g.mul(number, g.scalar(element, size)), place) : place;
  }
  return number;
}

Examples::Values Examples::places(Operation *op, Builder &g) {
  const bool isGather = llvm::isa<dfg::GatherNdOp>(op), isAdded = llvm::isa<dfg::TensorScatterAddOp>(op);
  mlir::Value indices = op->getOperand(isGather || isAdded ? 1 : 0);
  FailureOr<Dims> shape = shapeOf(g, isGather ? op->getOperand(0) : op->getResult(0)), at = shapeOf(g, indices);
  int64_t rows = 0;
  mlir::Value numbers = failed(shape) ? mlir::Value() : numberPlaces(g, indices, *shape, rows);
  if (!numbers || failed(at))
    return {};
  Dim rest(1), taken(1);
  for (Dim size : ArrayRef(*shape).drop_front(at->back().getConstant()))
    rest = rest * size;
  for (Dim size : ArrayRef(*at).drop_back())
    taken = taken * size;
  numbers = g.reshape(numbers, {count, taken});
  if (isGather)
    return {divide(g, g.gather(g.reshape(each(g, op->getOperand(0)), {count, Dim(rows), rest}), numbers, 1, 1),
                   op->getResult(0))};
  mlir::Value updates = g.reshape(each(g, op->getOperand(isAdded ? 2 : 1)), {count, taken, rest});
  mlir::Value sums = divide(g, addRows(g, numbers, updates, rows), op->getResult(0));
  return {isAdded ? g.add(each(g, op->getOperand(0)), sums) : sums};
}

Examples::Values Examples::crossEntropy(Operation *op, Builder &g) {
  Values results = copyJoined(op, g, {0, 1});
  for (auto [result, value] : llvm::zip(op->getResults(), results))
    value = divide(g, value, result);
  return results;
}

Examples::Values Examples::rewrite(Operation *op, Builder &g, bool &varies) {
  auto operand = [&](unsigned number) { return get(op->getOperand(number)); };
  auto rank = [&](unsigned number) { return rankOf(g, op->getOperand(number)); };
  const bool draws = op->hasTrait<dfg::DrawsNumbers>() && !isMemoryEffectFree(op);
  if (draws) {
    if (op->hasAttr("generator") || operand(0).varies || op->getNumOperands() != 1)
      return (void)g.fail("draws random numbers in a loop over the examples of a batch: draw those of all examples in "
                          "front of it"),
             Values();
    return copy(g, op, {prependCount(g, operand(0).value)});
  }
  if (!isMemoryEffectFree(op) && !op->hasTrait<dfg::ReadsVariable>())
    return (void)g.fail("has effects"), Values();
  // Sizes are the same for all.
  if (op->hasTrait<dfg::AsksShapes>()) {
    varies = false;
    Values results;
    for (auto [given, result] : llvm::zip(op->getOperands(), op->getResults())) {
      FailureOr<Dims> shape = shapeOf(g, given);
      if (failed(shape))
        return {};
      Type element = Builder::elementOf(result);
      if (llvm::isa<dfg::RankOp>(op)) {
        results.push_back(g.scalar(element, shape->size()));
      } else if (llvm::isa<dfg::SizeOp>(op)) {
        int64_t size = 1;
        for (Dim extent : *shape)
          size = extent.isConstant() && !extent.isBound() ? size * extent.getConstant() : -1;
        if (size < 0)
          return {};
        results.push_back(g.scalar(element, size));
      } else if (llvm::all_of(*shape, [](Dim size) { return size.isConstant() && !size.isBound(); })) {
        results.push_back(g.integers(llvm::map_to_vector(*shape, [](Dim size) { return size.getConstant(); }),
                                     element.isInteger(64)));
      } else {
        mlir::Value sizes = g.make<dfg::ShapeOp>(each(g, given), {}, element);
        results.push_back(g.slice(sizes, 0, 1, shape->size()));
      }
    }
    return results;
  }
  if (llvm::none_of(op->getOperands(), [&](mlir::Value value) { return get(value).varies; })) {
    varies = false;
    return copy(g, op, llvm::map_to_vector(op->getOperands(), [&](mlir::Value value) { return get(value).value; }));
  }
  // All operands with the examples in front, and nothing else of the node changes: what works on the last axes.
  auto copyEach = [&] {
    return copy(g, op, llvm::map_to_vector(op->getOperands(), [&](mlir::Value value) { return each(g, value); }));
  };
  // What says something of axes is the same for all examples.
  auto isSame = [&](unsigned from) {
    return llvm::none_of(op->getOperands().drop_front(from), [&](mlir::Value value) { return get(value).varies; });
  };
  auto withAxis = [&](unsigned number, int64_t axes) -> Values {
    std::optional<int64_t> axis = axisOf(g, op->getOperand(number), axes);
    Values operands;
    for (auto [index, value] : llvm::enumerate(op->getOperands()))
      operands.push_back(index == number ? mlir::Value() : each(g, value));
    if (!axis)
      return {};
    operands[number] = g.integer(*axis + 1, Builder::elementOf(op->getOperand(number)).isInteger(64));
    return copy(g, op, operands);
  };
  using Result = Values;
  if (op->hasTrait<dfg::Gathers>() && !llvm::isa<dfg::GatherNdOp, dfg::ResourceGatherNdOp>(op))
    return gather(op, g);
  if (op->hasTrait<dfg::Reduces>()) {
    FailureOr<SmallVector<int64_t>> axes = g.getConstants(op->getOperand(1));
    if (failed(axes))
      return {};
    for (int64_t &axis : *axes)
      axis = axis < 0 ? axis + rank(0) + 1 : axis + 1;
    return copy(g, op, {operand(0).value, g.integers(*axes)});
  }
  // What is told by an Identity is told by its operand.
  if (op->hasTrait<dfg::Forwards>())
    return {operand(0).value};
  if (op->hasTrait<dfg::Reshapes>())
    return isSame(1) ? Values{divide(g, operand(0).value, op->getResult(0))} : Values();
  if (op->hasTrait<dfg::OfMatrices>())
    return matrices(op, g);
  if (llvm::isa<dfg::CompositeInterface>(op))
    return rewriteComposite(op, g);
  if (llvm::isa<dfg::ScalarInterface>(op))
    return elementwise(op, g);
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<dfg::MatMulOp, dfg::BatchMatMulOp, dfg::BatchMatMulV2Op, dfg::BatchMatMulV3Op>(
          [&](auto) { return product(op, g); })
      .Case<dfg::L2LossOp>([&](auto) {
        SmallVector<int64_t> axes(rank(0));
        std::iota(axes.begin(), axes.end(), 1);
        mlir::Value sum = g.sum(g.mul(operand(0).value, operand(0).value), axes);
        return Values{g.mul(sum, g.scalar(Builder::elementOf(sum), 0.5))};
      })
      .Case<dfg::GatherNdOp>(
          [&](auto) { return operand(0).varies ? places(op, g) : copy(g, op, {operand(0).value, operand(1).value}); })
      .Case<dfg::ScatterNdOp>([&](auto) { return operand(2).varies ? Values() : places(op, g); })
      .Case<dfg::TensorScatterAddOp>([&](auto) { return places(op, g); })
      .Case<dfg::ResourceGatherNdOp>([&](auto) { return copy(g, op, {operand(0).value, operand(1).value}); })
      .Case<dfg::TransposeOp>([&](auto) -> Result {
        FailureOr<SmallVector<int64_t>> permutation = g.getConstants(op->getOperand(1));
        if (failed(permutation))
          return {};
        SmallVector<int64_t> axes = {0};
        for (int64_t axis : *permutation)
          axes.push_back(axis + 1);
        return {g.transpose(operand(0).value, axes)};
      })
      .Case<dfg::ConcatV2Op>([&](auto) { return withAxis(op->getNumOperands() - 1, rank(0)); })
      .Case<dfg::ConcatOp>([&](auto) { return withAxis(0, rank(1)); })
      .Case<dfg::SplitOp>([&](auto) { return withAxis(0, rank(1)); })
      .Case<dfg::SplitVOp>([&](auto) -> Result {
        std::optional<int64_t> axis = axisOf(g, op->getOperand(2), rank(0));
        if (!isSame(1) || !axis)
          return {};
        return copy(g, op, {operand(0).value, operand(1).value, g.integer(*axis + 1)});
      })
      .Case<dfg::CumsumOp, dfg::CumprodOp, dfg::CumulativeLogsumexpOp, dfg::ArgMaxOp, dfg::ArgMinOp>(
          [&](auto) { return isSame(1) ? withAxis(1, rank(0)) : Result(); })
      .Case<dfg::ReverseV2Op>([&](auto) -> Result {
        FailureOr<SmallVector<int64_t>> axes = g.getConstants(op->getOperand(1));
        if (failed(axes))
          return {};
        for (int64_t &axis : *axes)
          axis = axis < 0 ? axis + rank(0) + 1 : axis + 1;
        return copy(g, op, {operand(0).value, g.integers(*axes)});
      })
      .Case<dfg::PackOp, dfg::UnpackOp>([&](auto node) {
        const int64_t axis = node.getAxis(), axes = rank(0) + (llvm::isa<dfg::PackOp>(op) ? 1 : 0);
        SmallVector<mlir::Value> operands =
            llvm::map_to_vector(op->getOperands(), [&](mlir::Value value) { return each(g, value); });
        return copy(g, op, operands,
                    g.attribute("axis", builder.getI64IntegerAttr((axis < 0 ? axis + axes : axis) + 1)));
      })
      .Case<dfg::StridedSliceOp, dfg::StridedSliceGradOp>([&](auto) { return strided(op, g); })
      .Case<dfg::SliceOp>([&](auto) -> Result {
        if (!isSame(1))
          return {};
        return copy(g, op, {operand(0).value, prepend(g, 0, operand(1).value), prepend(g, -1, operand(2).value)});
      })
      .Case<dfg::PadOp, dfg::PadV2Op>([&](auto) -> Result {
        FailureOr<SmallVector<int64_t>> paddings = g.getConstants(op->getOperand(1));
        if (failed(paddings) || !isSame(1))
          return {};
        paddings->insert(paddings->begin(), {0, 0});
        return {g.pad(operand(0).value, *paddings, op->getNumOperands() == 3 ? operand(2).value : mlir::Value())};
      })
      .Case<dfg::TileOp>([&](auto) -> Result {
        return isSame(1) ? copy(g, op, {operand(0).value, prepend(g, 1, operand(1).value)}) : Result();
      })
      .Case<dfg::BroadcastToOp>([&](auto) -> Result {
        if (!isSame(1))
          return {};
        return {
            g.broadcastTo(lift(g, op->getOperand(0), rankOf(g, op->getResult(0))), prependCount(g, operand(1).value))};
      })
      .Case<dfg::FillOp>([&](auto) -> Result {
        if (operand(0).varies)
          return {};
        return {
            g.broadcastTo(lift(g, op->getOperand(1), rankOf(g, op->getResult(0))), prependCount(g, operand(0).value))};
      })
      .Case<dfg::OneHotOp>([&](auto node) -> Result {
        const int64_t axis = node.getAxis();
        return isSame(1) ? copy(g, op, {operand(0).value, operand(1).value, operand(2).value, operand(3).value},
                                g.attribute("axis", builder.getI64IntegerAttr(axis < 0 ? axis : axis + 1)))
                         : Result();
      })
      .Case<dfg::TopKOp, dfg::TopKV2Op>([&](auto) -> Result {
        if (!isSame(1))
          return {};
        Values operands = {operand(0).value};
        if (op->getNumOperands() == 2)
          operands.push_back(operand(1).value);
        return copy(g, op, operands);
      })
      .Case<dfg::SoftmaxOp, dfg::LogSoftmaxOp, dfg::CheckNumericsOp>([&](auto) { return copyEach(); })
      .Case<dfg::EnsureShapeOp>([&](auto) { return Result{operand(0).value}; })
      .Case<dfg::SoftmaxCrossEntropyWithLogitsOp, dfg::SparseSoftmaxCrossEntropyWithLogitsOp>(
          [&](auto) { return crossEntropy(op, g); })
      .Case<dfg::BiasAddOp, dfg::BiasAddV1Op>([&](auto) -> Result {
        auto format = op->getAttrOfType<StringAttr>("data_format");
        if (format && format.getValue() != "NHWC")
          return {};
        return {g.add(lift(g, op->getOperand(0), rank(0)), lift(g, op->getOperand(1), rank(0)))};
      })
      .Case<dfg::BiasAddGradOp>([&](auto node) -> Result {
        if (node.getDataFormat() != "NHWC")
          return {};
        SmallVector<int64_t> axes(rank(0) - 1);
        std::iota(axes.begin(), axes.end(), 1);
        return {g.sum(operand(0).value, axes)};
      })
      .Case<dfg::Conv2DOp, dfg::Conv2DBackpropInputOp, dfg::DepthwiseConv2dNativeOp,
            dfg::DepthwiseConv2dNativeBackpropInputOp, dfg::MaxPoolOp, dfg::AvgPoolOp, dfg::MaxPoolGradOp,
            dfg::AvgPoolGradOp>([&](auto) { return image(op, g); })
      .Case<dfg::UnsortedSegmentSumOp>([&](auto) { return segments(op, g); })
      .Default([](Operation *) { return Result(); });
}

} // namespace distc
