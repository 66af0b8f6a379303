//===- DrtVerifiers.cpp - What a plan's operations are held to -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The runtime trusts the plan: a descriptor or an attribute that does not fit the
// tensors would read or write memory that is not theirs. A plan may have been read
// from a file.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "runtime/include/drt/drt.h"
#include "runtime/include/drt/random_state.h"

using namespace mlir;

namespace distc::drt {

bool isView(Operation *op) { return isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(op); }

std::optional<int32_t> getFilterLayout(Operation *op) {
  auto layout = op->getAttrOfType<StringAttr>("filter_layout");
  return llvm::StringSwitch<std::optional<int32_t>>(layout ? layout.getValue() : "HWIO")
      .Case("HWIO", DRT_FILTER_HWIO)
      .Case("OHWI", DRT_FILTER_OHWI)
      .Case("OIHW", DRT_FILTER_OIHW)
      .Default(std::nullopt);
}

namespace {

RankedTensorType typeOf(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }
int64_t countOf(Value value) { return typeOf(value).getNumElements(); }

int64_t product(ArrayRef<int64_t> sizes) {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

LogicalResult expectSame(Operation *op, Value x, Value y) {
  if (x.getType() != y.getType())
    return op->emitOpError() << "has " << x.getType() << " where " << y.getType() << " is needed";
  return success();
}

LogicalResult expectCount(Operation *op, StringRef what, Value value, int64_t count) {
  if (countOf(value) != count)
    return op->emitOpError() << "has " << what << " " << value.getType() << "; it needs " << count << " elements";
  return success();
}

LogicalResult expectBetween(Operation *op, StringRef what, int64_t number, int64_t least, int64_t most) {
  if (number < least || number > most)
    return op->emitOpError() << "has " << what << " " << number << ", which is not from " << least << " to " << most;
  return success();
}

/// `rows` is one of equal parts of `whole` along the first axis.
LogicalResult expectRows(Operation *op, Value rows, Value whole) {
  auto part = typeOf(rows), all = typeOf(whole);
  if (part.getRank() == 0 || part.getRank() != all.getRank() || part.getElementType() != all.getElementType() ||
      part.getShape().drop_front() != all.getShape().drop_front() ||
      (part.getDimSize(0) == 0 ? all.getDimSize(0) != 0 : all.getDimSize(0) % part.getDimSize(0) != 0))
    return op->emitOpError() << "takes rows " << part << " of " << all << ", which are no equal part of it";
  return success();
}

/// Indices of `depth` numbers each, which name the first axes of `shape`.
LogicalResult expectIndices(Operation *op, Value indices, int64_t depth, ArrayRef<int64_t> shape) {
  Type element = typeOf(indices).getElementType();
  if (!element.isInteger(32) && !element.isInteger(64))
    return op->emitOpError() << "has indices " << indices.getType() << "; they are of 32 or 64 bits";
  if (failed(expectBetween(op, "depth", depth, 1, DRT_MAX_INDEX_DEPTH)))
    return failure();
  if (depth > static_cast<int64_t>(shape.size()))
    return op->emitOpError() << "has indices of " << depth << " numbers into " << shape.size() << " axes";
  if (countOf(indices) % depth)
    return op->emitOpError() << "has " << indices.getType() << " for indices of " << depth << " numbers";
  return success();
}

LogicalResult expectOwners(Operation *op, std::optional<ArrayRef<int64_t>> owners, size_t members) {
  if (!owners)
    return success();
  if (owners->size() != members)
    return op->emitOpError() << "has " << owners->size() << " owners of " << members << " members";
  for (int64_t owner : *owners)
    if (owner < 0)
      return op->emitOpError() << "names task " << owner << " as an owner; tasks are numbered from 0 on";
  return success();
}

/// One number a member, none of them negative.
LogicalResult expectNumbers(Operation *op, StringRef what, std::optional<ArrayRef<int64_t>> numbers, size_t members) {
  if (!numbers)
    return success();
  if (numbers->size() != members)
    return op->emitOpError() << "has " << what << " for " << numbers->size() << " of " << members << " members";
  if (llvm::any_of(*numbers, [](int64_t number) { return number < 0; }))
    return op->emitOpError() << "has " << what << " for a member that is negative";
  return success();
}

/// What names a distribution, and its bounds: of integers two of them, of the result's type; of a generator's state
/// what is reserved.
LogicalResult expectDistribution(Operation *op, int32_t distribution, OperandRange bounds, Value result) {
  const int32_t last = isa<RandomOp>(op) ? int32_t(DRT_RANDOM_STATE) : int32_t(DRT_RANDOM_UNIFORM_INT);
  if (failed(expectBetween(op, "distribution", distribution, DRT_RANDOM_UNIFORM, last)))
    return failure();
  if (distribution == DRT_RANDOM_STATE &&
      (!typeOf(result).getElementType().isInteger(32) || typeOf(result).getNumElements() != 6))
    return op->emitOpError() << "gives a generator's state, six int32, not " << result.getType();
  const size_t needed = distribution == DRT_RANDOM_UNIFORM_INT ? 2 : distribution == DRT_RANDOM_STATE ? 1 : 0;
  // All of a type's integers.
  auto draw = dyn_cast<DrawOp>(op);
  const bool isUnbounded = (isa<RandomStatelessOp>(op) || (draw && draw.getKey())) &&
                           distribution == DRT_RANDOM_UNIFORM_INT && bounds.empty();
  if (bounds.size() != needed && !isUnbounded)
    return op->emitOpError() << "has " << bounds.size() << " bounds; its distribution has " << needed;
  for (Value bound : bounds) {
    if (distribution != DRT_RANDOM_STATE && typeOf(bound).getElementType() != typeOf(result).getElementType())
      return op->emitOpError() << "has a bound " << bound.getType() << " of numbers " << result.getType();
    if (failed(expectCount(op, "a bound", bound, 1)))
      return failure();
  }
  return success();
}

LogicalResult expectContraction(Operation *op, RankedTensorType a, RankedTensorType b, bool transposeA, bool transposeB,
                                ArrayRef<int64_t> result) {
  ArrayRef<int64_t> x = a.getShape().take_back(2), y = b.getShape().take_back(2);
  if (x[transposeA ? 0 : 1] != y[transposeB ? 1 : 0] || x[transposeA ? 1 : 0] != result[0] ||
      y[transposeB ? 0 : 1] != result[1])
    return op->emitOpError() << "makes " << result[0] << " x " << result[1] << " of " << a
                             << (transposeA ? " transposed" : "") << " and " << b << (transposeB ? " transposed" : "");
  return success();
}

/// Query, key and value of one attention, a number for each row of scores, and the bias of scores.
template <typename Attention> LogicalResult expectAttention(Attention op) {
  const RankedTensorType query = typeOf(op.getQuery()), key = typeOf(op.getKey()), value = typeOf(op.getValue()),
                         statistics = typeOf(op.getStatistics());
  const Value bias = op.getBias();
  for (RankedTensorType type : {query, key, value})
    if (type.getRank() != 4 || type.getElementType() != query.getElementType() ||
        !(type.getElementType().isBF16() || type.getElementType().isF32()))
      return op.emitOpError() << "attends to " << type
                              << ", which is not bfloat16 or float32 [batch, tokens, heads, size]";
  const int64_t batch = query.getDimSize(0), heads = query.getDimSize(2), size = query.getDimSize(3);
  if (key != value || key.getDimSize(0) != batch || key.getDimSize(2) != heads || key.getDimSize(3) != size)
    return op.emitOpError() << "has a query " << query << " for keys " << key << " and values " << value;
  if (query.getElementType().isBF16() && (size % 16 != 0 || size < 16 || size > 128))
    return op.emitOpError() << "has heads of size " << size << ", which is not a multiple of 16 up to 128";
  const SmallVector<int64_t> scores = {batch, heads, query.getDimSize(1), key.getDimSize(1)};
  if (!statistics.getElementType().isF32() ||
      statistics.getShape() != ArrayRef<int64_t>{2, batch, heads, query.getDimSize(1)})
    return op.emitOpError() << "has " << statistics << " for the rows of its scores";
  if (!bias)
    return success();
  RankedTensorType added = typeOf(bias);
  if (added.getRank() != 4 || !added.getElementType().isF32() ||
      llvm::any_of(llvm::zip(added.getShape(), scores),
                   [](auto sizes) { return std::get<0>(sizes) != 1 && std::get<0>(sizes) != std::get<1>(sizes); }))
    return op.emitOpError() << "adds a bias " << added << " to scores that are not of its shape";
  return success();
}

/// Of `products` of all queries with all keys.
int64_t countAttention(Value query, Value key, int64_t products) {
  return 2 * products * countOf(query) * typeOf(key).getDimSize(1);
}

/// A number for each row of scores.
LogicalResult expectDots(Operation *op, Value dots, Value statistics) {
  const RankedTensorType rows = typeOf(statistics);
  if (rows.getRank() == 4 && typeOf(dots) != rows.clone(rows.getShape().drop_front()))
    return op->emitOpError() << "has dots " << dots.getType() << " beside statistics " << rows;
  return success();
}

LogicalResult expectSame(Operation *op, StringRef what, Value value, Value like) {
  if (value.getType() != like.getType())
    return op->emitOpError() << "has " << what << " " << value.getType() << ", which is not of the type "
                             << like.getType();
  return success();
}

/// A convolution's numbers, against its tensors: input, filter, output (or their gradients).
LogicalResult expectConvolution(Operation *op, ArrayRef<int64_t> numbers, Value input, Value filter, Value output) {
  if (numbers.size() != 18)
    return op->emitOpError() << "needs a descriptor of 18 numbers, not " << numbers.size();
  auto [n, h, w, c] = std::tuple(numbers[0], numbers[1], numbers[2], numbers[3]);
  auto [kh, kw, k, oh, ow] = std::tuple(numbers[4], numbers[5], numbers[6], numbers[7], numbers[8]);
  const int64_t groups = numbers[17];
  if (!getFilterLayout(op))
    return op->emitOpError() << "has a filter in layout " << op->getAttr("filter_layout")
                             << "; there are HWIO (which it is without one), OHWI and OIHW";
  for (int64_t number : numbers.take_front(13))
    if (number < 1)
      return op->emitOpError() << "has " << number << " in its descriptor, where sizes, strides and dilations are";
  const Type element = typeOf(output).getElementType(), ofFilter = typeOf(filter).getElementType();
  // The gradient of a filter may be float32, where images are narrower.
  const bool widens = isa<Conv2DGradFilterOp>(op) && (element.isBF16() || element.isF16()) && ofFilter.isF32();
  if (typeOf(input).getElementType() != element || (ofFilter != element && !widens))
    return op->emitOpError() << "convolves " << input.getType() << ", " << filter.getType() << " and "
                             << output.getType();
  if (groups < 1 || c % groups || k % groups)
    return op->emitOpError() << "has " << groups << " groups of " << c << " channels into " << k;
  if (failed(expectCount(op, "an input", input, n * h * w * c)) ||
      failed(expectCount(op, "a filter", filter, kh * kw * (c / groups) * k)))
    return failure();
  return expectCount(op, "an output", output, n * oh * ow * k);
}

LogicalResult expectPool(Operation *op, int32_t kind, ArrayRef<int64_t> numbers, Value input, Value output) {
  if (failed(expectBetween(op, "kind", kind, DRT_POOL_MAX, DRT_POOL_AVG)))
    return failure();
  if (numbers.size() != 14)
    return op->emitOpError() << "needs a descriptor of 14 numbers, not " << numbers.size();
  for (int64_t number : numbers.take_front(10))
    if (number < 1)
      return op->emitOpError() << "has " << number << " in its descriptor, where sizes and strides are";
  const int64_t n = numbers[0], c = numbers[3];
  if (failed(expectCount(op, "an input", input, n * numbers[1] * numbers[2] * c)))
    return failure();
  return expectCount(op, "an output", output, n * numbers[4] * numbers[5] * c);
}

} // namespace

LogicalResult verifyPlaces(Operation *op) {
  auto places = op->getAttrOfType<DenseI64ArrayAttr>("at");
  if (!places)
    return success();
  if (places.size() != static_cast<int64_t>(op->getNumResults()))
    return op->emitOpError() << "has " << places.size() << " places in the arena for " << op->getNumResults()
                             << " results";
  for (auto [result, place] : llvm::zip(op->getResults(), places.asArrayRef())) {
    if (place < 0)
      return op->emitOpError() << "has place " << place << " in the arena";
    Type element = getElementTypeOrSelf(result.getType());
    const int64_t bytes = element.isIntOrFloat() ? (element.getIntOrFloatBitWidth() + 7) / 8 : 1;
    if (place % bytes != 0)
      return op->emitOpError() << "has place " << place << " in the arena, where no " << element << " can lie";
  }
  return success();
}

// ---- The program ----------------------------------------------------------------------------------------

LogicalResult ProgramOp::verify() {
  if (findProgram((*this)->getParentOfType<ModuleOp>()) != *this)
    return emitOpError("is the module's second");
  int64_t next = 0;
  for (auto task : getTasks().getAsRange<TaskAttr>()) {
    if (task.getIndex() < 0 || task.getNumReplicas() < 0 || task.getFirstReplica() != next)
      return emitOpError() << "has " << task << " where the next replica is " << next;
    next += task.getNumReplicas();
  }
  if (next == 0)
    return emitOpError("has tasks for no replica");
  if (getJoint() && next != static_cast<int64_t>(getTasks().size()))
    return emitOpError("is joint, and its tasks have not one replica each");
  const auto batch = static_cast<int64_t>(getBatch());
  if (batch < 0 || batch % next != 0)
    return emitOpError() << "has a batch of " << batch << ", which " << next << " replicas do not divide";
  if (static_cast<int64_t>(getArenaBytes().value_or(0)) < 0 || static_cast<int64_t>(getVariableBytes().value_or(0)) < 0)
    return emitOpError("has memory of a negative size");
  // Of a process, and several of them fit into 64 bits.
  constexpr int64_t kAddresses = int64_t(1) << 47;
  if (static_cast<int64_t>(getArenaBytes().value_or(0)) > kAddresses ||
      static_cast<int64_t>(getVariableBytes().value_or(0)) > kAddresses)
    return emitOpError("has more memory than there are addresses");
  if (getVariableBytes() && !getArenaBytes())
    return emitOpError("has a block of variables and no arena");
  return success();
}

LogicalResult ImageOp::verify() { return getData().empty() ? emitOpError("has no data") : LogicalResult(success()); }

LogicalResult EntryOp::verify() {
  Block &body = getBody().front();
  if (body.getNumArguments() != 0)
    return emitOpError("takes values; an entry's are feeds and variables");
  for (Operation *before = (*this)->getPrevNode(); before; before = before->getPrevNode())
    if (auto other = llvm::dyn_cast<EntryOp>(before); other && other.getNameAttr() == getNameAttr())
      return (emitOpError() << "is the second of the name " << getNameAttr()).attachNote(other.getLoc()) << "the first";
  return success();
}

// ---- Variables and addresses ----------------------------------------------------------------------------

LogicalResult VariableOp::verify() {
  auto type = llvm::dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError() << "is " << getType() << "; a variable's memory has a size";
  if (static_cast<int64_t>(getAt().value_or(0)) < 0 || static_cast<int64_t>(getOwner().value_or(0)) < 0)
    return emitOpError("has a negative place or owner");
  if (getShares()) {
    if (static_cast<int64_t>(*getShares()) < 1 || type.getRank() != 1 || !getFullShape())
      return emitOpError() << "holds a share that is no flat part of a whole";
    const int64_t whole = product(*getFullShape()), shares = *getShares();
    if (type.getNumElements() * shares < whole)
      return emitOpError() << "is " << type << ", which is no one of " << shares << " shares of " << whole
                           << " elements";
    return success();
  }
  if (getFullShape().has_value() != getSliceBegin().has_value())
    return emitOpError("has the shape of a whole or where it begins in it, and not both");
  if (!getFullShape())
    return success();
  ArrayRef<int64_t> whole = *getFullShape(), begin = *getSliceBegin();
  if (whole.size() != begin.size() || static_cast<int64_t>(whole.size()) != type.getRank())
    return emitOpError() << "is " << type << ", a part of a variable of rank " << whole.size();
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (begin[axis] < 0 || type.getDimSize(axis) > whole[axis] - begin[axis])
      return emitOpError() << "is " << type << " at " << begin[axis] << " of axis " << axis << " of " << whole[axis];
  return success();
}

LogicalResult FeedOrOp::verify() { return expectSame(*this, getDefaultValue(), getResult()); }
LogicalResult CopyOp::verify() { return expectSame(*this, getInput(), getResult()); }
LogicalResult TakeRowsOp::verify() { return expectRows(*this, getResult(), getInput()); }
LogicalResult EmptyOp::verify() { return expectCount(*this, "a result", getResult(), 0); }

// ---- Work -----------------------------------------------------------------------------------------------

/// What drt.matmul and drt.matmul_add say of their operands and their result.
template <class Matmul> static LogicalResult expectMatmul(Matmul op) {
  RankedTensorType a = typeOf(op.getA()), b = typeOf(op.getB()), c = typeOf(op.getResult());
  if (a.getRank() < 2 || b.getRank() < 2 || c.getRank() < 2)
    return op.emitOpError("needs matrices");
  const Type element = a.getElementType();
  const bool widens = (element.isBF16() || element.isF16()) && c.getElementType().isF32();
  if (b.getElementType() != element || (c.getElementType() != element && !widens))
    return op.emitOpError() << "makes " << c << " of " << a << " and " << b;
  if (op.getBias() && typeOf(op.getBias()).getElementType() != c.getElementType())
    return op.emitOpError() << "adds a bias " << op.getBias().getType() << " to " << c;
  if (failed(expectContraction(op, a, b, op.getTransposeA(), op.getTransposeB(), c.getShape().take_back(2))))
    return failure();
  const int64_t batch = product(c.getShape().drop_back(2));
  for (RankedTensorType operand : {a, b})
    if (int64_t own = product(operand.getShape().drop_back(2)); own != 1 && own != batch)
      return op.emitOpError("broadcasts some axes of its batch and not others: ") << operand;
  return op.getBias() ? expectCount(op, "a bias", op.getBias(), c.getShape().back()) : success();
}

/// And what drt.matmul and drt.matmul_packed say of how it is computed.
template <class Matmul> static LogicalResult expectWholeMatmul(Matmul op) {
  if (failed(expectMatmul(op)))
    return failure();
  if (op.getJoined() && (op.getTransposeA() || typeOf(op.getA()).getRank() != 2))
    return op.emitOpError("joins replicas' rows, which are those of a matrix that is not transposed");
  return expectBetween(op, "epilogue", op.getEpilogue(), DRT_EPILOGUE_NONE, DRT_EPILOGUE_SIGMOID);
}

LogicalResult MatmulOp::verify() { return expectWholeMatmul(*this); }

LogicalResult PackOp::verify() {
  RankedTensorType b = typeOf(getB()), packed = typeOf(getPacked());
  if (b.getRank() != 2 || !b.getElementType().isF32())
    return emitOpError() << "packs a matrix of float32, not " << b;
  const int64_t k = b.getDimSize(getTransposeB() ? 1 : 0), n = b.getDimSize(getTransposeB() ? 0 : 1);
  // What is joined are parts, of which the runtime looks whether they have room.
  const int64_t least = getJoined() ? drt_packed_bytes(0, 0) : drt_packed_bytes(k, n);
  if (!packed.getElementType().isInteger(8) || packed.getRank() != 1 || packed.getNumElements() < least)
    return emitOpError() << "gives " << packed << "; it needs a row of " << least << " bytes";
  return success();
}

LogicalResult MatmulPackedOp::verify() {
  if (failed(expectWholeMatmul(*this)))
    return failure();
  auto pack = getPacked().getDefiningOp<PackOp>();
  if (!pack || pack.getB().getType() != getB().getType() || pack.getTransposeB() != getTransposeB() ||
      pack.getJoined() != getJoined())
    return emitOpError("needs what drt.pack made of an operand like its own");
  return success();
}

LogicalResult MatmulAddOp::verify() {
  if (failed(expectMatmul(*this)))
    return failure();
  return expectSame(*this, getAddend(), getResult());
}

LogicalResult MatmulBiasGradOp::verify() {
  RankedTensorType a = typeOf(getA()), b = typeOf(getB()), c = typeOf(getResult()), sums = typeOf(getBiasGrad());
  if (a.getRank() != 2 || b.getRank() != 2 || c.getRank() != 2)
    return emitOpError("needs matrices");
  const Type element = a.getElementType();
  if ((!element.isBF16() && !element.isF16()) || b.getElementType() != element || !c.getElementType().isF32() ||
      !sums.getElementType().isF32())
    return emitOpError() << "makes " << c << " and " << sums << " of " << a << " and " << b;
  if (failed(expectContraction(*this, a, b, /*transposeA=*/true, /*transposeB=*/false, c.getShape())))
    return failure();
  return expectCount(*this, "a bias's gradient", getBiasGrad(), c.getDimSize(1));
}

LogicalResult MatmulStackedOp::verify() {
  if (getA().empty() || getA().size() != getResults().size())
    return emitOpError() << "needs matrices on its left, and a result for each; it has " << getA().size() << " and "
                         << getResults().size();
  RankedTensorType a = typeOf(getA().front()), b = typeOf(getB()), c = typeOf(getResults().front());
  if (a.getRank() != 2 || b.getRank() != 2 || c.getRank() != 2)
    return emitOpError("needs matrices");
  for (RankedTensorType type : {a, b, c})
    if (!type.getElementType().isF32())
      return emitOpError() << "multiplies float32, not " << type;
  for (auto [left, result] : llvm::zip(getA(), getResults()))
    if (left.getType() != a || result.getType() != c)
      return emitOpError() << "makes " << c << " of " << a << ", and " << result.getType() << " of " << left.getType();
  if (failed(expectContraction(*this, a, b, /*transposeA=*/false, getTransposeB(), c.getShape())) ||
      failed(expectBetween(*this, "epilogue", getEpilogue(), DRT_EPILOGUE_NONE, DRT_EPILOGUE_SIGMOID)))
    return failure();
  return getBias() ? expectCount(*this, "a bias", getBias(), c.getDimSize(1)) : success();
}

LogicalResult MatmulSumOp::verify() {
  if (getA().empty())
    return emitOpError("needs a pair of matrices");
  RankedTensorType a = typeOf(getA().front()), b = typeOf(getB().front()), c = typeOf(getResult());
  if (a.getRank() != 2 || b.getRank() != 2 || c.getRank() != 2)
    return emitOpError("needs matrices");
  if (a.getElementType() != c.getElementType() || b.getElementType() != c.getElementType())
    return emitOpError() << "makes " << c << " of " << a << " and " << b;
  for (auto [left, right] : llvm::zip(getA(), getB()))
    if (left.getType() != a || right.getType() != b)
      return emitOpError() << "adds up products of " << a << " and " << b << ", and one of " << left.getType()
                           << " and " << right.getType();
  return expectContraction(*this, a, b, /*transposeA=*/true, /*transposeB=*/false, c.getShape());
}

LogicalResult AttentionOp::verify() {
  if (failed(expectSame(*this, "an output", getOutput(), getQuery())))
    return failure();
  return expectAttention(*this);
}
int64_t AttentionOp::getProductOperations() { return countAttention(getQuery(), getKey(), 2); }

LogicalResult AttentionQueryGradientOp::verify() {
  if (failed(expectSame(*this, "an output", getOutput(), getQuery())) ||
      failed(expectSame(*this, "an output's gradient", getOutputGrad(), getQuery())) ||
      failed(expectSame(*this, "a query's gradient", getQueryGrad(), getQuery())) ||
      failed(expectDots(*this, getDots(), getStatistics())))
    return failure();
  return expectAttention(*this);
}
/// Scores and their gradients, and the query's.
int64_t AttentionQueryGradientOp::getProductOperations() { return countAttention(getQuery(), getKey(), 3); }

LogicalResult AttentionKeyValueGradientOp::verify() {
  if (failed(expectSame(*this, "an output's gradient", getOutputGrad(), getQuery())) ||
      failed(expectSame(*this, "a key's gradient", getKeyGrad(), getKey())) ||
      failed(expectSame(*this, "a value's gradient", getValueGrad(), getValue())) ||
      failed(expectDots(*this, getDots(), getStatistics())))
    return failure();
  return expectAttention(*this);
}
/// Scores and their gradients, the key's and the value's.
int64_t AttentionKeyValueGradientOp::getProductOperations() { return countAttention(getQuery(), getKey(), 4); }

LogicalResult AttentionGradientOp::verify() {
  for (auto [what, value, like] : {std::tuple("an output", getOutput(), getQuery()),
                                   std::tuple("an output's gradient", getOutputGrad(), getQuery()),
                                   std::tuple("a query's gradient", getQueryGrad(), getQuery()),
                                   std::tuple("a key's gradient", getKeyGrad(), getKey()),
                                   std::tuple("a value's gradient", getValueGrad(), getValue())})
    if (failed(expectSame(*this, what, value, like)))
      return failure();
  return expectAttention(*this);
}
/// Scores and their gradients, the query's, the key's and the value's.
int64_t AttentionGradientOp::getProductOperations() { return countAttention(getQuery(), getKey(), 5); }

LogicalResult Conv2DOp::verify() {
  if (failed(expectConvolution(*this, getDescriptor(), getInput(), getFilter(), getResult())) ||
      (getBias() && failed(expectCount(*this, "a bias", getBias(), getDescriptor()[6]))))
    return failure();
  return expectBetween(*this, "epilogue", getEpilogue(), DRT_EPILOGUE_NONE, DRT_EPILOGUE_SIGMOID);
}
LogicalResult Conv2DGradInputOp::verify() {
  return expectConvolution(*this, getDescriptor(), getResult(), getFilter(), getOutputGrad());
}
LogicalResult Conv2DGradFilterOp::verify() {
  return expectConvolution(*this, getDescriptor(), getInput(), getResult(), getOutputGrad());
}

LogicalResult PoolOp::verify() { return expectPool(*this, getKind(), getDescriptor(), getInput(), getResult()); }

LogicalResult PoolGradOp::verify() {
  if (failed(expectPool(*this, getKind(), getDescriptor(), getResult(), getOutputGrad())))
    return failure();
  const size_t needed = getKind() == DRT_POOL_MAX ? 2 : 0;
  if (getInputAndOutput().size() != needed)
    return emitOpError() << "has " << getInputAndOutput().size() << " tensors of the pool; its kind needs " << needed;
  if (needed && (failed(expectSame(*this, getInputAndOutput()[0], getResult())) ||
                 failed(expectSame(*this, getInputAndOutput()[1], getOutputGrad()))))
    return failure();
  return success();
}

LogicalResult RandomOp::verify() { return expectDistribution(*this, getDistribution(), getBounds(), getResult()); }

LogicalResult RandomStatelessOp::verify() {
  if (!typeOf(getSeed()).getElementType().isInteger(64))
    return emitOpError() << "has a seed " << getSeed().getType() << "; it is of 64-bit integers";
  if (failed(expectCount(*this, "a seed", getSeed(), getKeyed() ? 3 : 2)))
    return failure();
  return expectDistribution(*this, getDistribution(), getBounds(), getResult());
}

LogicalResult DrawOp::verify() {
  if (getKey() ? getSeed().has_value() || getSeed2().has_value() : !getSeed() || !getSeed2())
    return emitOpError("begins at a key or at two seeds");
  if (getKey() && !typeOf(getKey()).getElementType().isInteger(64))
    return emitOpError() << "has a key " << getKey().getType() << "; it is of 64-bit integers";
  if (getKey() && failed(expectCount(*this, "a key", getKey(), getKeyed() ? 3 : 2)))
    return failure();
  if (failed(expectDistribution(*this, getDistribution(), getBounds(), getResult())))
    return failure();
  SmallVector<Value> drawn = {getResult()};
  while (!drawn.empty()) {
    Value value = drawn.pop_back_val();
    for (Operation *user : value.getUsers()) {
      if (isView(user)) {
        drawn.push_back(user->getResult(0));
        continue;
      }
      auto update = dyn_cast<UpdateOp>(user);
      // What the update lacks itself, its own verifier says, which comes behind this one.
      if (update && !update.getCountAttr())
        continue;
      if (!update || update.getBucket() || countOf(value) != static_cast<int64_t>(update.getCount()))
        return emitOpError("is drawn by updates alone, without a bucket and of as many elements")
                   .attachNote(user->getLoc())
               << "this operation reads it (" << user->getName() << ")";
    }
  }
  return success();
}

LogicalResult RandomStateOp::verify() {
  if (!typeOf(getState()).getElementType().isInteger(32))
    return emitOpError() << "has a state " << getState().getType() << "; it is of 32-bit words";
  return expectCount(*this, "a state", getState(), kRandomStateWords);
}

LogicalResult RandomAdvanceOp::verify() {
  for (Value state : getStates())
    if (!typeOf(state).getElementType().isInteger(32) || countOf(state) != kRandomStateWords)
      return emitOpError() << "advances " << state.getType() << ", which is no state of " << kRandomStateWords
                           << " 32-bit words";
  return success();
}

LogicalResult ReplicaIndexOp::verify() {
  if (!typeOf(getResult()).getElementType().isInteger(32))
    return emitOpError() << "has a number " << getResult().getType() << "; it is of 32 bits";
  return expectCount(*this, "a number", getResult(), 1);
}

LogicalResult CheckNumericsOp::verify() {
  if (!llvm::isa<FloatType>(typeOf(getInput()).getElementType()))
    return emitOpError() << "looks for NaN in " << getInput().getType();
  return success();
}

LogicalResult UniqueOp::verify() {
  if (failed(expectSame(*this, getY(), getX())) || failed(expectCount(*this, "positions", getIdx(), countOf(getX()))) ||
      failed(expectCount(*this, "counts", getCount(), countOf(getX()))))
    return failure();
  return expectSame(*this, getIdx(), getCount());
}

LogicalResult ScatterOp::verify() {
  ArrayRef<int64_t> shape = typeOf(getResult()).getShape();
  const auto depth = static_cast<int64_t>(getDepth());
  if (failed(expectBetween(*this, "kind", getKind(), DRT_SCATTER_UPDATE, DRT_SCATTER_MAX)) ||
      failed(expectIndices(*this, getIndices(), depth, shape)) ||
      (getInitial() && failed(expectSame(*this, getInitial(), getResult()))))
    return failure();
  if (typeOf(getUpdates()).getElementType() != typeOf(getResult()).getElementType())
    return emitOpError() << "scatters " << getUpdates().getType() << " into " << getResult().getType();
  return expectCount(*this, "updates", getUpdates(), countOf(getIndices()) / depth * product(shape.drop_front(depth)));
}

LogicalResult AssertOp::verify() {
  if (!typeOf(getCondition()).getElementType().isInteger(1))
    return emitOpError() << "has a condition " << getCondition().getType();
  if (size_t places = getMessage().count('\x01'); places != getData().size())
    return emitOpError() << "has " << getData().size() << " tensors for " << places << " places in its message";
  return expectCount(*this, "a condition", getCondition(), 1);
}

LogicalResult CheckIndicesOp::verify() {
  ArrayRef<int64_t> sizes = getSizes();
  for (int64_t size : sizes)
    if (size < 0)
      return emitOpError() << "has an axis of " << size;
  return expectIndices(*this, getIndices(), sizes.size(), sizes);
}

// ---- Synchronization ------------------------------------------------------------------------------------

LogicalResult AllReduceStartOp::verify() {
  if (getNames().size() != getGradients().size())
    return emitOpError() << "has " << getNames().size() << " names of " << getGradients().size() << " gradients";
  if (getAt() && (getAt()->size() != 1 || getAt()->front() < 0))
    return emitOpError("needs one place in the arena for all of its gradients");
  const auto gather = static_cast<int64_t>(getGather());
  if (gather < 0 || (gather && getGradients().size() != 1))
    return emitOpError() << "joins the rows of " << gather << " replicas of " << getGradients().size()
                         << " gradients; it is one";
  if (getRoom() && (!getScatter() || getOwners()))
    return emitOpError("has room for shares of gradients that are not scattered in shares");
  if (getPipelined() && (!getScatter() || !getOwners() || getCompression() || getAggregator()))
    return emitOpError("is pipelined; plain sums that go to owners are");
  if (failed(expectNumbers(*this, "room", getRoom(), getGradients().size())) ||
      failed(expectOwners(*this, getOwners(), getGradients().size())))
    return failure();
  for (auto [gradient, room] : llvm::zip(getGradients(), getRoom().value_or(ArrayRef<int64_t>())))
    if (room < countOf(gradient))
      return emitOpError() << "has room for " << room << " elements of " << gradient.getType();
  return success();
}

LogicalResult GatherStartOp::verify() {
  if (getPipelined() && !getOwners())
    return emitOpError("is pipelined; values that come from owners are");
  return success(succeeded(expectNumbers(*this, "room", getRoom(), getVariables().size())) &&
                 succeeded(expectOwners(*this, getOwners(), getVariables().size())));
}

ArrayRef<Type> KernelOp::getBufferTypes() { return getArgumentTypes().drop_front(getRange() || getDivided() ? 2 : 0); }

LogicalResult KernelOp::verify() {
  if (!getResultTypes().empty())
    return emitOpError("has results; it writes what it computes into its arguments");
  if (getRange() && getDivided())
    return emitOpError("works on a range of elements and is divided; the cores share ranges anyway");
  const bool isPart = getRange() || getDivided();
  if (getDivided() && (getDivided()->size() != 2 || llvm::any_of(*getDivided(), [](int64_t of) { return of < 1; })))
    return emitOpError("has another `divided` than how long a loop is, and how much of it is worth a core");
  if (isPart && (getArgumentTypes().size() < 2 ||
                 llvm::any_of(getArgumentTypes().take_front(2), [](Type type) { return !type.isInteger(64); })))
    return emitOpError("computes a part, and its first two arguments are no i64, where that begins and ends");
  for (Type type : getBufferTypes()) {
    auto buffer = llvm::dyn_cast<MemRefType>(type);
    if (!buffer || !buffer.hasStaticShape() || !buffer.getLayout().isIdentity())
      return emitOpError() << "takes " << type << ", which is no tensor's memory";
    if (getRange() && buffer.getRank() != 1)
      return emitOpError() << "works on a range of elements and takes " << type << ", which is not flat";
  }
  return success();
}

LogicalResult UpdateGroupOp::verify() {
  if (getShares() && getArguments().empty())
    return emitOpError("updates shares and is not given the replica's number");
  return expectNumbers(*this, "shares", getShares(), getVariables().size());
}

LogicalResult UpdateOp::verify() {
  if (static_cast<int64_t>(getCount()) < 0 || static_cast<int64_t>(getShare().value_or(1)) < 0 ||
      static_cast<int64_t>(getOwner().value_or(0)) < 0)
    return emitOpError("has a negative count, share or owner");
  if (getBucket().has_value() != getMember().has_value())
    return emitOpError("names a bucket or a member of one, and not both");
  return success();
}

int64_t SparseUpdateOp::getNumRows() {
  return countOf(getIndices()) / (getSorted() ? 2 : static_cast<int64_t>(getDepth()));
}

/// Indices of rows of several tables are of one type.
static LogicalResult expectIndices(Operation *op, ValueRange tables) {
  Type element = typeOf(tables.front()).getElementType();
  for (Value indices : tables)
    if ((!element.isInteger(32) && !element.isInteger(64)) || typeOf(indices).getElementType() != element)
      return op->emitOpError() << "has indices " << indices.getType() << "; they are all of 32 or all of 64 bits";
  return success();
}

LogicalResult PushRowsOp::verify() {
  const size_t tables = getNames().size();
  if (getIndices().size() != tables || getShards().size() != tables || getAllIndices().size() != tables)
    return emitOpError() << "has " << tables << " names, " << getIndices().size() << " tensors of indices, "
                         << getShards().size() << " tables' shards and " << getAllIndices().size()
                         << " results; they are equally many";
  if (failed(expectIndices(*this, getIndices())))
    return failure();
  Type element = typeOf(getIndices().front()).getElementType();
  for (auto shards : getShards().getAsRange<DenseI64ArrayAttr>())
    if (shards.empty() || shards.size() % 3 != 0 || static_cast<int32_t>(getBucket()) < 0 ||
        llvm::any_of(shards.asArrayRef(), [](int64_t number) { return number < 0; }))
      return emitOpError("has a negative bucket, or shards that are not three numbers each, from 0 on");
  for (auto [indices, values, allIndices, allValues] :
       llvm::zip(getIndices(), getValues(), getAllIndices(), getAllValues())) {
    const int64_t rows = countOf(indices);
    if (rows == 0 || countOf(values) % rows != 0 || countOf(allIndices) % rows != 0 ||
        countOf(allValues) * rows != countOf(values) * countOf(allIndices) ||
        typeOf(allIndices).getElementType() != element ||
        typeOf(allValues).getElementType() != typeOf(values).getElementType())
      return emitOpError() << "joins " << indices.getType() << " and " << values.getType() << " to "
                           << allIndices.getType() << " and " << allValues.getType()
                           << "; they are rows of one length, of several replicas";
  }
  return success();
}

LogicalResult PullRowsOp::verify() {
  const size_t tables = getVariables().size();
  if (getIndices().size() != tables || getOwners().size() != tables || getRows().size() != tables)
    return emitOpError() << "has " << tables << " variables, " << getIndices().size() << " tensors of indices, "
                         << getOwners().size() << " owners and " << getRows().size()
                         << " results; they are equally many";
  if (failed(expectIndices(*this, getIndices())))
    return failure();
  if (llvm::any_of(getOwners(), [](int64_t owner) { return owner < 0; }) || static_cast<int32_t>(getBucket()) < 0)
    return emitOpError("has a negative owner or bucket");
  return success();
}

LogicalResult SparseUpdateOp::verify() {
  const auto depth = static_cast<int64_t>(getDepth());
  if (failed(expectBetween(*this, "depth", depth, 1, DRT_MAX_INDEX_DEPTH)))
    return failure();
  Type element = typeOf(getIndices()).getElementType();
  if (!element.isInteger(32) && !element.isInteger(64))
    return emitOpError() << "has indices " << getIndices().getType() << "; they are of 32 or 64 bits";
  if (static_cast<int64_t>(getOwner().value_or(0)) < 0)
    return emitOpError("has a negative owner");
  if (getSorted() && getDistinct())
    return emitOpError("has indices that are sorted and distinct; it is one of both");
  if (getSorted() && (typeOf(getIndices()).getRank() != 2 || typeOf(getIndices()).getDimSize(0) != 2))
    return emitOpError() << "has sorted indices " << getIndices().getType()
                         << "; they are rows' numbers, and then positions";
  const int64_t rows = getNumRows();
  if ((!getSorted() && countOf(getIndices()) % depth) ||
      (rows ? countOf(getValues()) % rows : countOf(getValues())) != 0)
    return emitOpError() << "has " << getValues().getType() << " for indices " << getIndices().getType() << " of depth "
                         << depth;
  return success();
}

LogicalResult MatmulUpdateOp::verify() {
  RankedTensorType a = typeOf(getA()), b = typeOf(getB());
  if (a.getRank() != 2 || b.getRank() != 2)
    return emitOpError("needs matrices");
  const int64_t result[] = {a.getDimSize(getTransposeA() ? 1 : 0), b.getDimSize(getTransposeB() ? 0 : 1)};
  return expectContraction(*this, a, b, getTransposeA(), getTransposeB(), result);
}

LogicalResult AccumulateOp::verify() { return expectBetween(*this, "batches an update:", getSteps(), 2, INT32_MAX); }

LogicalResult AccumulatedOp::verify() {
  if (getAccumulated().size() != getGradients().size())
    return emitOpError() << "has " << getAccumulated().size() << " sums of " << getGradients().size() << " gradients";
  for (auto [gradient, sum] : llvm::zip(getGradients(), getAccumulated()))
    if (failed(
            expectCount(*this, "a sum", sum, countOf(gradient) * (getSlices() ? static_cast<int64_t>(getSteps()) : 1))))
      return failure();
  return expectBetween(*this, "batches an update:", getSteps(), 2, INT32_MAX);
}

LogicalResult FetchOp::verify() {
  if (failed(expectBetween(*this, "join", getJoin(), DRT_JOIN_CONCAT, DRT_JOIN_BATCH)))
    return failure();
  if (getJoin() == DRT_JOIN_CONCAT && (getAxis() < 0 || getAxis() >= typeOf(getValue()).getRank()))
    return emitOpError() << "joins " << getValue().getType() << " along axis " << getAxis();
  return success();
}

} // namespace distc::drt
