//===- DistDialect.cpp - The dialect of distribution plans ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/AttachedAttributes.h"
#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

/// A fact that its word alone says: `async` of a `#dist.sync`.
static OptionalParseResult parseWord(AsmParser &parser, StringRef word, bool &isSaid) {
  isSaid = succeeded(parser.parseOptionalKeyword(word));
  return isSaid ? OptionalParseResult(success()) : OptionalParseResult();
}
static OptionalParseResult parseAsyncWord(AsmParser &parser, bool &async) { return parseWord(parser, "async", async); }
static OptionalParseResult parseProxyWord(AsmParser &parser, bool &proxy) { return parseWord(parser, "proxy", proxy); }
static void printAsyncWord(AsmPrinter &printer, bool) { printer << "async"; }
static void printProxyWord(AsmPrinter &printer, bool) { printer << "proxy"; }

#include "dialects/dist/DistDialect.cpp.inc"
#include "dialects/dist/DistEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"

namespace distc::dist {

namespace {
/// Sizes that the batch says, of values that are no gradients of variables. Attached, as its results' types are
/// inferred by MLIR's own interface.
struct AllReduceShapes : dfg::ShapeInterface::ExternalModel<AllReduceShapes, AllReduceOp> {
  llvm::LogicalResult inferShapes(Operation *op, dfg::ShapeContext &context) const {
    for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults()))
      if (auto sizes = context.getShape(operand))
        context.setShape(result, std::move(*sizes));
    return success();
  }
};
} // namespace

void DISTDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistOps.cpp.inc"
      >();
  AllReduceOp::attachInterface<AllReduceShapes>(*getContext());
}

void DISTDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/DistAttrs.cpp.inc"
      >();
}

namespace {

using dfg::isA;
using dfg::isAtLeast;
using dfg::isOn;
using dfg::isOneOf;
using dfg::isOnNode;

bool isOnGraphOrNode(Operation *op) { return !llvm::isa<ModuleOp>(op); }

/// How the log joins the replicas' values of a tensor: "concat:1" along that axis.
bool isJoin(Attribute value) {
  auto text = llvm::dyn_cast<StringAttr>(value);
  if (!text || isOneOf(value, {"mean", "sum", "first", "batch"}))
    return text != nullptr;
  StringRef axis = text.getValue();
  unsigned number = 0;
  return axis.consume_front("concat:") && !axis.getAsInteger(10, number);
}

/// What stands on operations that are not this dialect's.
const dfg::AttachedAttribute kAttached[] = {
    {kStrategyAttr, isOn<ModuleOp>, "the module", isA<StrategyAttr>, "a #dist.strategy"},
    {kSyncAttr, isOn<dfg::VariableOp>, "a variable", isA<SyncAttr>, "a #dist.sync"},
    {kPartsAttr, isOn<dfg::VariableOp>, "a variable", isA<PartsAttr>, "a #dist.parts"},
    {kCouplingAttr, isOn<ModuleOp>, "the module", [](Attribute value) { return isOneOf(value, {"replica"}); },
     "\"replica\""},
    {kJoinsAttr, isOn<dfg::GraphOp>, "a graph",
     [](Attribute value) {
       auto joins = llvm::dyn_cast<DictionaryAttr>(value);
       return joins && llvm::all_of(joins, [](NamedAttribute join) { return isJoin(join.getValue()); });
     },
     "a dictionary of \"mean\", \"sum\", \"first\", \"batch\" or \"concat:AXIS\" by tensors' names"},
    {kRoleAttr, isOn<dfg::GraphOp>, "a graph",
     [](Attribute value) { return isOneOf(value, {"chief", "worker", "server"}); },
     "\"chief\" or \"worker\" or \"server\""},
    {kPlaceAttr, isOnGraphOrNode, "a graph, a variable or a node",
     [](Attribute value) {
       auto place = llvm::dyn_cast<PlaceAttr>(value);
       return place && place.getIndex() >= 0;
     },
     "a #dist.place whose index is not negative"},
    {kSliceAttr, isOn<dfg::VariableOp>, "a variable", isA<SliceAttr>, "a #dist.slice"},
    {kSharesAttr, isOn<dfg::VariableOp>, "a variable", [](Attribute value) { return isAtLeast(value, 1); },
     "a positive 64-bit integer"},
    {kFeedAttr, isOn<dfg::PlaceholderOp, dfg::PlaceholderWithDefaultOp>, "a placeholder",
     [](Attribute value) { return isOneOf(value, {kSharded, kWhole}); }, "\"sharded\" or \"whole\""},
    {kSeedAttr, isOnNode, "a node", [](Attribute value) { return isOneOf(value, {"replica"}); }, "\"replica\""},
    {kEachBatchAttr, [](Operation *op) { return llvm::isa<dfg::UpdateInterface>(op); }, "an update", isA<UnitAttr>,
     "a unit"},
    {kReplicaAttr, isOnNode, "a node", [](Attribute value) { return isAtLeast(value, 0); },
     "a 64-bit integer that is not negative"},
};

/// The part lies within the whole. A share of a slot is flat: its whole variable's axes are none of its own.
LogicalResult verifySlice(dfg::VariableOp variable, SliceAttr slice) {
  ArrayRef<int64_t> whole = slice.getShape().asArrayRef(), begin = slice.getOffsets().asArrayRef();
  auto part = llvm::dyn_cast<RankedTensorType>(variable.getType());
  const bool isFlat = variable->hasAttr(kSharesAttr);
  if (whole.size() != begin.size() || (part && !isFlat && part.getRank() != static_cast<int64_t>(whole.size())))
    return variable->emitOpError() << "is " << variable.getType() << ", a part at " << begin.size()
                                   << " offsets of a variable of rank " << whole.size();
  for (auto [axis, offset] : llvm::enumerate(begin)) {
    const int64_t size = part && !isFlat ? part.getDimSize(axis) : 0;
    if (offset < 0 || offset > whole[axis] || (size != ShapedType::kDynamic && size > whole[axis] - offset))
      return variable->emitOpError() << "is " << variable.getType() << " at " << offset << " of axis " << axis
                                     << ", where '" << slice.getWhole().getValue() << "' has " << whole[axis];
  }
  return success();
}

} // namespace

LogicalResult DISTDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (failed(dfg::verifyAttached(op, attribute, kAttached, getNamespace())))
    return failure();
  if (auto slice = llvm::dyn_cast<SliceAttr>(attribute.getValue()))
    return verifySlice(llvm::cast<dfg::VariableOp>(op), slice);
  return success();
}

FailureOr<TopologyOp> getTopology(ModuleOp module) {
  if (auto topology = module.lookupSymbol<TopologyOp>(kCluster))
    return topology;
  return module.emitError("has no topology; run dist-apply-strategy first");
}

LogicalResult SyncAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, SyncKind kind, int64_t group,
                               Spec spec, CompressionAttr compression, int64_t shardedStage, StringAttr destination,
                               bool async, bool proxy, int64_t staleness, ReductionAttr, AggregatorAttr) {
  if (group < 0 || staleness < 0 || shardedStage < 0 || shardedStage > 2)
    return emitError() << "a group or a staleness is not negative, and `sharded` is 0, 1 or 2";
  if (kind == SyncKind::AllReduce && (destination || async || proxy || staleness))
    return emitError() << "`at`, `async`, `proxy` and `staleness` are of servers";
  if (kind == SyncKind::Server && (group || spec != Spec::Auto || compression || shardedStage))
    return emitError() << "`group`, `spec`, `compression` and `sharded` are of all-reduces";
  return success();
}

LogicalResult PartsAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, DenseI64ArrayAttr counts,
                                ArrayAttr syncs) {
  if (llvm::any_of(counts.asArrayRef(), [](int64_t count) { return count < 1; }))
    return emitError() << "an axis is split into at least one part";
  if (syncs && !llvm::all_of(syncs, llvm::IsaPred<SyncAttr>))
    return emitError() << "each part is synchronized as a #dist.sync says";
  return success();
}

LogicalResult StrategyAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringAttr, StringAttr,
                                   StringAttr, ArrayAttr replicas, StringAttr coupling, int64_t accumulate,
                                   int64_t required, FloatAttr averagesDecay) {
  if (replicas && !llvm::all_of(replicas, llvm::IsaPred<StringAttr>))
    return emitError() << "`replicas` are the names of devices";
  if (coupling && !isOneOf(coupling, {"replica", "whole"}))
    return emitError() << "`coupling` is \"replica\" or \"whole\"";
  if (accumulate < 0 || accumulate > INT32_MAX || required < 0 || required > INT32_MAX)
    return emitError() << "`accumulate` and `required` are numbers of batches and of gradients";
  if (averagesDecay && !averagesDecay.getType().isF32())
    return emitError() << "`averages` is of type f32";
  return success();
}

int64_t CompressionAttr::getMatrixRank() const { return getRank() > 0 ? getRank() : 1; }

int64_t CompressionAttr::getKept(int64_t count) const {
  double ratio = getRatio() ? getRatio().getValueAsDouble() : 0;
  auto kept = static_cast<int64_t>(std::ceil((ratio > 0 ? ratio : 0.01) * static_cast<double>(count)));
  return std::clamp<int64_t>(kept, std::min<int64_t>(1, count), count);
}

bool isCollective(Operation *op) {
  if (auto pull = llvm::dyn_cast<PullRowsOp>(op))
    return pull.getBucket().has_value();
  return op->hasTrait<Collective>();
}

int64_t getReplicas(ModuleOp module) {
  auto topology = module.lookupSymbol<TopologyOp>(kCluster);
  return topology ? topology.getReplicas() : 1;
}

LogicalResult TopologyOp::verify() {
  int64_t next = 0;
  for (auto task : getTasks().getAsRange<TaskAttr>()) {
    if (task.getNumReplicas() == 0)
      continue;
    if (task.getFirstReplica() != next)
      return emitOpError() << "task " << task.getJob() << ":" << task.getIndex() << " begins with replica "
                           << task.getFirstReplica() << " where " << next << " is next";
    if (task.getNumReplicas() != static_cast<int64_t>(task.getDevices().size()))
      return emitOpError() << "task " << task.getJob() << ":" << task.getIndex() << " has " << task.getNumReplicas()
                           << " replicas on " << task.getDevices().size() << " devices";
    next += task.getNumReplicas();
  }
  if (next != static_cast<int64_t>(getReplicas()))
    return emitOpError() << "has tasks for " << next << " replicas of " << getReplicas();
  return success();
}

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  llvm::append_range(results, operands.getTypes());
  return success();
}

/// What the buckets' operations have in common: values of one element type, each for a variable.
static LogicalResult verifyBucket(Operation *op, OperandRange gradients, ArrayAttr variables) {
  if (gradients.empty())
    return op->emitOpError("reduces nothing");
  if (variables.size() != gradients.size())
    return op->emitOpError() << "has " << gradients.size() << " values for " << variables.size() << " variables";
  Type elementType = getElementTypeOrSelf(gradients.front().getType());
  for (auto [index, gradient] : llvm::enumerate(gradients))
    if (getElementTypeOrSelf(gradient.getType()) != elementType)
      return op->emitOpError() << "value " << index << " has element type " << getElementTypeOrSelf(gradient.getType())
                               << " in a bucket of " << elementType << "; it needs a bucket of its own";
  return success();
}

/// A sparse gradient: indices of rank 1, or what they are computed from element by element, and as many rows of values.
static LogicalResult verifySlices(Operation *op, Type indices, Type values) {
  auto indexType = llvm::dyn_cast<RankedTensorType>(indices), valueType = llvm::dyn_cast<RankedTensorType>(values);
  if (!indexType || !valueType)
    return success();
  if (indexType.getRank() != 1 || !indexType.getElementType().isIntOrFloat())
    return op->emitOpError() << "has indices " << indexType << "; a sparse gradient's are numbers of rank 1";
  if (valueType.getRank() == 0 ||
      failed(verifyCompatibleShape(indexType.getShape(), valueType.getShape().take_front())))
    return op->emitOpError() << "has values " << valueType << " for indices " << indexType
                             << "; there must be a row for each";
  return success();
}

LogicalResult AllReduceOp::verify() { return verifyBucket(*this, getGradients(), getVariables()); }

static LogicalResult verifyOwners(Operation *op, std::optional<ArrayRef<int64_t>> owners, size_t members) {
  if (!owners)
    return success();
  if (owners->size() != members)
    return op->emitOpError() << "has " << owners->size() << " owners of " << members << " members";
  for (int64_t owner : *owners)
    if (owner < 0)
      return op->emitOpError() << "names worker " << owner << " as an owner; workers are numbered from 0 on";
  return success();
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(verifyBucket(*this, getGradients(), getVariables())) ||
      failed(verifyOwners(*this, getOwners(), getGradients().size())))
    return failure();
  if (getShares().size() != getGradients().size())
    return emitOpError() << "has " << getShares().size() << " shares of " << getGradients().size() << " values";
  if (getOwners())
    for (auto [index, gradient, owned] : llvm::enumerate(getGradients(), getShares()))
      // Of an update it is known that its gradient has the variable's shape, which that of the gradient need not say.
      if (failed(verifyCompatibleShape(gradient.getType(), owned.getType())) ||
          getElementTypeOrSelf(gradient.getType()) != getElementTypeOrSelf(owned.getType()))
        return emitOpError() << "gives " << owned.getType() << " of value " << index
                             << ", but its owner has it whole: " << gradient.getType();
  return success();
}

// ---- Updates that are spelled out
// ------------------------------------------------------------------------------------

unsigned UpdateOp::getNumWritten() {
  return llvm::count_if(getInputs(), [](Value input) { return dfg::isHandle(input.getType()); });
}

SmallVector<unsigned> UpdateOp::getWrittenOperands() {
  return llvm::to_vector(llvm::seq<unsigned>(0, getNumWritten()));
}

int UpdateOp::getGradientOperand() { return getHasGradient() ? static_cast<int>(getNumWritten()) : -1; }

int UpdateOp::getIndicesOperand() { return getHasIndices() ? getGradientOperand() + 1 : -1; }

SmallVector<Value> UpdateOp::emitUpdate(dfg::ScalarBuilder &s, ValueRange operands) {
  IRMapping mapping;
  Block &rule = getRule().front();
  SmallVector<Value> args(operands);
  if (getHasIndices())
    args.erase(args.begin() + getIndicesOperand());
  mapping.map(rule.getArguments(), args);
  for (Operation &op : rule.without_terminator())
    s.builder.clone(op, mapping);
  return llvm::map_to_vector(rule.getTerminator()->getOperands(), [&](Value value) { return mapping.lookup(value); });
}

void UpdateOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  for (OpOperand &input : getInputsMutable())
    if (dfg::isHandle(input.get().getType())) {
      effects.emplace_back(MemoryEffects::Read::get(), &input);
      effects.emplace_back(MemoryEffects::Write::get(), &input);
    }
}

/// The type of an element of a tensor, or of what is behind a handle.
static Type getInputElement(Type type) {
  auto ref = llvm::dyn_cast<dfg::RefType>(type);
  return getElementTypeOrSelf(ref ? ref.getValueType() : type);
}

LogicalResult UpdateOp::verify() {
  const unsigned written = getNumWritten();
  if (written == 0 ||
      !llvm::all_of(getInputs().take_front(written), [](Value input) { return dfg::isHandle(input.getType()); }))
    return emitOpError("takes handles first, that of the variable and those of its slots");
  if (getHasGradient() && getInputs().size() == written)
    return emitOpError("has no operand that is the gradient");
  if (getHasGradient() && getInputElement(getInputs()[written].getType()) != getInputElement(getInputs()[0].getType()))
    return emitOpError() << "has a gradient of " << getInputs()[written].getType() << " for "
                         << getInputs()[0].getType();
  SmallVector<Value> elements(getInputs());
  if (getHasIndices()) {
    if (!getHasGradient() || getInputs().size() < written + 2 ||
        !getElementTypeOrSelf(getInputs()[written + 1].getType()).isSignlessInteger())
      return emitOpError("has no operand behind the gradient that gives the numbers of its rows");
    elements.erase(elements.begin() + written + 1);
  }
  Block &rule = getRule().front();
  if (rule.getNumArguments() != elements.size())
    return emitOpError() << "has a rule of " << rule.getNumArguments() << " elements for " << elements.size()
                         << " operands";
  for (auto [input, argument] : llvm::zip(elements, rule.getArguments()))
    if (getInputElement(input.getType()) != argument.getType())
      return emitOpError() << "has a rule that takes " << argument.getType() << " for an element of "
                           << input.getType();
  Operation *yield = rule.empty() ? nullptr : &rule.back();
  if (!llvm::isa_and_nonnull<YieldOp>(yield) || yield->getNumOperands() != written)
    return emitOpError() << "has a rule that does not give a new element of each of its " << written << " variables";
  for (auto [input, value] : llvm::zip(getInputs(), yield->getOperands()))
    if (getInputElement(input.getType()) != value.getType())
      return emitOpError() << "has a rule that gives " << value.getType() << " for an element of " << input.getType();
  return success();
}

LogicalResult AllGatherVariablesOp::verify() { return verifyOwners(*this, getOwners(), getHandles().size()); }

LogicalResult AccumulateOp::inferShapes(dfg::ShapeContext &context) {
  for (auto [operand, result] : llvm::zip(getGradients(), getAccumulated()))
    if (auto sizes = context.getShape(operand)) {
      // Rows of all batches lie one behind the other.
      if (getSlices() && !sizes->empty())
        sizes->front() = sizes->front() * dfg::Dim(getSteps());
      context.setShape(result, std::move(*sizes));
    }
  return success();
}

/// One replica's share is the whole batch: b and B are the same, in AllGatherOp, TakeRowsOp and WholeSizeOp.
static bool hasShares(const dfg::ShapeContext &context) { return context.getReplicas() > 1; }

LogicalResult AllGatherOp::inferShapes(dfg::ShapeContext &context) {
  if (auto sizes = context.getShape(getRows()); sizes && !sizes->empty()) {
    if (hasShares(context))
      sizes->front() = context.joinReplicas(sizes->front());
    context.setShape(getAllRows(), std::move(*sizes));
  }
  return success();
}

LogicalResult TakeRowsOp::inferShapes(dfg::ShapeContext &context) {
  auto sizes = context.getShape(getAllRows());
  if (!sizes || sizes->empty())
    return success();
  if (sizes->front().isConstant() && sizes->front().getConstant() % context.getReplicas())
    return emitOpError() << "takes a replica's part of " << sizes->front().getConstant() << " rows, which "
                         << context.getReplicas() << " replicas do not divide";
  if (hasShares(context))
    sizes->front() = context.shareOf(sizes->front());
  context.setShape(getRows(), std::move(*sizes));
  return success();
}

LogicalResult WholeSizeOp::inferShapes(dfg::ShapeContext &context) {
  if (auto sizes = context.getShape(getShare()))
    context.setShape(getWhole(), std::move(*sizes));
  auto elements = context.getElements(getShare());
  if (!elements)
    return success();
  if (elements->size() != getFactors().size())
    return emitOpError() << "has " << getFactors().size() << " factors for " << elements->size() << " sizes";
  for (auto [element, factor] : llvm::zip(*elements, getFactors()))
    if (factor != 1 && hasShares(context))
      element = element.isMultipleOfBatch() ? dfg::Dim::wholeBatch(element.getScale()) : element * dfg::Dim(factor);
  context.setElements(getWhole(), std::move(*elements));
  return success();
}

LogicalResult RescaleOp::inferShapes(dfg::ShapeContext &context) {
  if (auto sizes = context.getShape(getShare()))
    context.setShape(getWhole(), std::move(*sizes));
  return success();
}

/// Of one replica's share and all replicas' rows neither is known without their number. Entries have left the graph;
/// where they are lowered, the program says it.
static LogicalResult verifyReplicasKnown(Operation *op) {
  if (!op->getParentOfType<dfg::GraphOp>() || op->getParentOfType<ModuleOp>().lookupSymbol<TopologyOp>(kCluster))
    return success();
  return op->emitOpError(
      "is of several replicas, and the module does not say how many: it has no topology; run dist-apply-strategy");
}

/// Both have an axis of rows, and what lies behind it is alike.
static LogicalResult verifyRows(Operation *op) {
  auto from = llvm::dyn_cast<RankedTensorType>(op->getOperand(0).getType()),
       to = llvm::dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!from || !to)
    return success();
  if (from.getRank() == 0 || from.getRank() != to.getRank() || from.getElementType() != to.getElementType() ||
      failed(verifyCompatibleShape(from.getShape().drop_front(), to.getShape().drop_front())))
    return op->emitOpError() << "makes " << to << " of " << from << "; they differ in their numbers of rows alone";
  return success();
}

LogicalResult AllGatherOp::verify() { return failed(verifyRows(*this)) ? failure() : verifyReplicasKnown(*this); }
LogicalResult TakeRowsOp::verify() { return failed(verifyRows(*this)) ? failure() : verifyReplicasKnown(*this); }

LogicalResult AllGatherSlicesOp::inferShapes(dfg::ShapeContext &context) {
  for (auto [operand, result] : llvm::zip(getOperands(), getResults()))
    if (auto sizes = context.getShape(operand); sizes && !sizes->empty()) {
      sizes->front() = sizes->front() * dfg::Dim(context.getReplicas());
      context.setShape(result, std::move(*sizes));
    }
  return success();
}

LogicalResult AllGatherSlicesOp::verify() {
  if (getShards() && getShards()->size() % 3 != 0)
    return emitOpError() << "has " << getShards()->size() << " numbers of shards; three are one";
  if (failed(verifySlices(*this, getIndices().getType(), getValues().getType())))
    return failure();
  return failed(verifySlices(*this, getAllIndices().getType(), getAllValues().getType())) ? failure()
                                                                                          : verifyReplicasKnown(*this);
}

LogicalResult OwnRowsOp::inferShapes(dfg::ShapeContext &context) {
  for (auto [operand, result] : llvm::zip(getOperands(), getResults()))
    if (auto sizes = context.getShape(operand); sizes && !sizes->empty()) {
      sizes->front() = context.getBoundedSize(sizes->front());
      context.setShape(result, std::move(*sizes));
    }
  return success();
}

LogicalResult OwnRowsOp::verify() {
  if (failed(verifySlices(*this, getIndices().getType(), getValues().getType())))
    return failure();
  return verifySlices(*this, getOwnIndices().getType(), getOwnValues().getType());
}

LogicalResult TakeOp::inferShapes(dfg::ShapeContext &context) {
  if (!getRows())
    return success();
  const dfg::Dim pushed = context.getBatch() * dfg::Dim((*getRows())[0]) + dfg::Dim((*getRows())[1]);
  const dfg::Dim joined = pushed * dfg::Dim(static_cast<int64_t>(getRequired()));
  for (Value part : getGradient())
    if (auto sizes = context.getShape(part); sizes && !sizes->empty()) {
      // Where code is generated, the batch is in the types already.
      const dfg::Dim size = sizes->front().isKnown() ? sizes->front() : joined;
      sizes->front() = getPadded() ? context.getBoundedSize(size) : size;
      context.setShape(part, std::move(*sizes));
    }
  return success();
}

LogicalResult TakeOp::verify() {
  if (!getRows())
    return getPadded() ? emitOpError("has padding, but no rows") : success();
  if (getRows()->size() != 2 || getGradient().size() != 2)
    return emitOpError() << "has " << getRows()->size() << " numbers of rows and " << getGradient().size()
                         << " values; rows are said by two numbers, of indices and values";
  return verifySlices(*this, getGradient()[0].getType(), getGradient()[1].getType());
}

LogicalResult PushOp::verify() {
  if (getGradient().empty() || getGradient().size() > 2)
    return emitOpError() << "has " << getGradient().size() << " values; a gradient is one value, or indices and values";
  if (static_cast<int64_t>(getRequired()) < 1)
    return emitOpError() << "waits for " << static_cast<int64_t>(getRequired()) << " gradients; at least one is needed";
  if (getApart() && (getGradient().size() != 2 || getAsync()))
    return emitOpError("keeps rows apart, but has none: a gradient that servers add up is (indices, values)");
  return getGradient().size() == 2 ? verifySlices(*this, getGradient()[0].getType(), getGradient()[1].getType())
                                   : success();
}

/// The value behind a handle; of what is none the type itself.
static Type getHeld(Type type) {
  auto ref = llvm::dyn_cast<dfg::RefType>(type);
  return ref ? ref.getValueType() : type;
}

static LogicalResult verifyElements(Operation *op, Type from, Type to) {
  if (Type held = getHeld(from), given = getHeld(to); getElementTypeOrSelf(held) != getElementTypeOrSelf(given))
    return op->emitOpError() << "makes " << given << " of " << held << "; elements stay what they are";
  return success();
}

LogicalResult TakeShareOp::verify() { return verifyElements(*this, getValue().getType(), getShare().getType()); }
LogicalResult ShareHandleOp::verify() { return verifyElements(*this, getHandle().getType(), getShare().getType()); }

LogicalResult WholeSizeOp::verify() {
  if (failed(verifyElements(*this, getShare().getType(), getWhole().getType())))
    return failure();
  if (!getElementTypeOrSelf(getShare().getType()).isInteger())
    return emitOpError() << "is of " << getShare().getType() << "; sizes are integers";
  if (auto sizes = llvm::dyn_cast<RankedTensorType>(getShare().getType());
      sizes && sizes.hasStaticShape() && sizes.getNumElements() != static_cast<int64_t>(getFactors().size()))
    return emitOpError() << "has " << getFactors().size() << " factors for " << sizes.getNumElements() << " sizes";
  for (int64_t factor : getFactors())
    if (factor < 1)
      return emitOpError() << "has the factor " << factor << "; a factor is a number of replicas, or 1";
  return success();
}

LogicalResult RescaleOp::verify() {
  if (getPower() == 0)
    return emitOpError("has the power 0, which changes nothing");
  return verifyReplicasKnown(*this);
}

LogicalResult AccumulateOp::verify() {
  if (static_cast<int64_t>(getSteps()) < 1)
    return emitOpError() << "is of " << static_cast<int64_t>(getSteps()) << " batches; at least one is needed";
  if (getAccumulated().size() != getGradients().size())
    return emitOpError() << "has " << getAccumulated().size() << " results of " << getGradients().size()
                         << " gradients";
  for (auto [gradient, accumulated] : llvm::zip(getGradients(), getAccumulated())) {
    if (failed(verifyElements(*this, gradient.getType(), accumulated.getType())))
      return failure();
    auto from = llvm::dyn_cast<RankedTensorType>(gradient.getType()),
         to = llvm::dyn_cast<RankedTensorType>(accumulated.getType());
    // Rows of all batches lie one behind the other.
    const size_t rows = getSlices() ? 1 : 0;
    if (from && to &&
        (from.getRank() != to.getRank() || from.getRank() < static_cast<int64_t>(rows) ||
         failed(verifyCompatibleShape(from.getShape().drop_front(rows), to.getShape().drop_front(rows)))))
      return emitOpError() << "makes " << to << " of " << from;
  }
  return success();
}

LogicalResult PullOp::verify() {
  if (!dfg::isHandle(getHandle().getType()))
    return emitOpError() << "pulls " << getHandle().getType() << ", which is no variable";
  return verifyElements(*this, getHandle().getType(), getValue().getType());
}

LogicalResult PullRowsOp::inferShapes(dfg::ShapeContext &context) {
  auto ref = llvm::dyn_cast<dfg::RefType>(getHandle().getType());
  auto table = ref ? llvm::dyn_cast<RankedTensorType>(ref.getValueType()) : RankedTensorType();
  auto sizes = context.getShape(getIndices());
  if (!table || table.getRank() == 0 || !sizes)
    return success();
  for (int64_t size : table.getShape().drop_front())
    sizes->push_back(ShapedType::isDynamic(size) ? dfg::Dim() : dfg::Dim(size));
  context.setShape(getRows(), std::move(*sizes));
  return success();
}

LogicalResult PullRowsOp::verify() {
  if (!dfg::isHandle(getHandle().getType()))
    return emitOpError() << "pulls rows of " << getHandle().getType() << ", which is no variable";
  if (!getElementTypeOrSelf(getIndices().getType()).isInteger())
    return emitOpError() << "has the indices " << getIndices().getType() << "; rows are chosen by integers";
  return verifyElements(*this, getHandle().getType(), getRows().getType());
}

LogicalResult TokensOp::verify() {
  if (static_cast<int64_t>(getReplicas()) < 1 || static_cast<int64_t>(getStaleness()) < 0)
    return emitOpError() << "is of " << static_cast<int64_t>(getReplicas()) << " replicas and "
                         << static_cast<int64_t>(getStaleness())
                         << " steps of staleness; there is a replica, and no fewer than 0 steps";
  return success();
}

} // namespace distc::dist
