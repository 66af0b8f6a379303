//===- FeedInputs.cpp - What a graph reads of files is fed ---------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Frames.h"
#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"
#include "passes/graph/EndpointNodes.h"
#include "passes/graph/Passes.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_FEEDINPUTS
#include "passes/graph/Passes.h.inc"

namespace {

int64_t getInteger(dfg::OpaqueOp op, StringRef name) {
  auto value = dfg::getSourceAttribute<IntegerAttr>(op, name);
  return value ? value.getInt() : 0;
}

/// The strings of a constant; nothing where it is none.
std::optional<ArrayRef<StringRef>> getStrings(Value value) {
  auto constant = value.getDefiningOp<dfg::ConstOp>();
  auto strings = constant ? llvm::dyn_cast<DenseStringElementsAttr>(constant.getValue()) : DenseStringElementsAttr();
  if (!strings)
    return std::nullopt;
  return strings.getRawStringData();
}

class InputFeeder {
public:
  explicit InputFeeder(dfg::GraphOp graph) : block(graph.getBody().front()), builder(graph.getContext()) {
    for (Operation &op : block)
      names.insert(dfg::getNodeName(&op));
  }

  /// Whether anything is fed.
  bool run() {
    SmallVector<dfg::OpaqueOp> iterators, parsers;
    for (auto op : block.getOps<dfg::OpaqueOp>())
      if (StringRef kind = op.getOp(); kind == "IteratorGetNext" || kind == "IteratorGetNextSync")
        iterators.push_back(op);
      else if (kind == "ParseExample" || kind == "ParseExampleV2")
        parsers.push_back(op);
    bool fed = false;
    for (dfg::OpaqueOp op : iterators)
      fed |= feedIterator(op);
    leaveInitializersOut();
    for (dfg::OpaqueOp op : parsers)
      fed |= feedFeatures(op);
    return fed;
  }

private:
  static bool isNumeric(Value value) {
    auto type = llvm::dyn_cast<TensorType>(value.getType());
    return type && type.getElementType().isIntOrFloat();
  }

  /// `value`, of the shape `sizes` (-1: unknown), is fed under a name.
  void feed(Value value, StringRef name, ArrayRef<int64_t> sizes) {
    SmallVector<int64_t> shape(sizes);
    for (int64_t &size : shape)
      size = size < 0 ? ShapedType::kDynamic : size;
    builder.setInsertionPoint(value.getDefiningOp());
    Type element = llvm::cast<TensorType>(value.getType()).getElementType();
    auto placeholder =
        dfg::PlaceholderOp::create(builder, locate(name), RankedTensorType::get(shape, element),
                                   dfg::TensorShapeAttr::get(builder.getContext(), /*unknownRank=*/false, sizes));
    value.replaceAllUsesWith(placeholder.getResult());
    names.insert(name);
  }

  Location locate(const llvm::Twine &name) { return NameLoc::get(builder.getStringAttr(name)); }

  /// Components of a dataset's elements, named as the iterator's outputs.
  bool feedIterator(dfg::OpaqueOp op) {
    auto shapes = dfg::getSourceAttribute<ArrayAttr>(op, "output_shapes");
    auto getShape = [&](Value result) -> dfg::TensorShapeAttr {
      const unsigned i = llvm::cast<OpResult>(result).getResultNumber();
      return shapes && i < shapes.size() && isNumeric(result) ? llvm::dyn_cast<dfg::TensorShapeAttr>(shapes[i])
                                                              : nullptr;
    };
    // The first one takes the iterator's own name, so all of them are fed or none.
    for (Value result : op.getResults())
      if (auto shape = getShape(result); !result.use_empty() && (!shape || shape.getUnknownRank()))
        return false;
    const std::string node = dfg::getNodeName(op).str();
    for (auto [i, result] : llvm::enumerate(op.getResults()))
      // The first one also unused: other nodes may have to run behind the node of that name.
      if (auto shape = getShape(result); shape && !shape.getUnknownRank() && (i == 0 || !result.use_empty()))
        feed(result, i == 0 ? node : node + ":" + std::to_string(i), shape.getSizes());
    op.erase();
    return true;
  }

  /// Nothing is left to begin of an iterator that nothing takes elements from: what initializes it
  /// (make_initializable_iterator beside the variables' initializers) does nothing.
  void leaveInitializersOut() {
    auto initializes = [](Operation *op) { return dfg::getKind(op) == "MakeIterator"; };
    // Its name as a string, which TensorFlow makes with the iterator.
    auto names = [](Operation *op) { return dfg::getKind(op) == "IteratorToStringHandle" && op->use_empty(); };
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!initializes(&op) || op.getNumOperands() != 2 ||
          !llvm::all_of(op.getOperand(1).getUsers(), [&](Operation *user) { return initializes(user) || names(user); }))
        continue;
      builder.setInsertionPoint(&op);
      auto group = dfg::GroupOp::create(builder, op.getLoc());
      if (Attribute control = op.getAttr(dfg::kControlAttr))
        group->setAttr(dfg::kControlAttr, control);
      op.erase();
    }
  }

  /// Features of fixed length of a batch of serialized examples, named as in the examples.
  bool feedFeatures(dfg::OpaqueOp op) {
    const bool isSecond = op.getOp() == "ParseExampleV2";
    auto shapes = dfg::getSourceAttribute<ArrayAttr>(op, "dense_shapes");
    const int64_t sparse = getInteger(op, isSecond ? "num_sparse" : "Nsparse");
    if (!shapes || op->getNumOperands() < 5 * isSecond + 2)
      return false;
    // Version 2 takes a single example as well.
    auto serialized = llvm::dyn_cast<RankedTensorType>(op->getOperand(0).getType());
    if (isSecond && (!serialized || serialized.getRank() != 1))
      return false;
    SmallVector<StringRef> keys;
    for (unsigned i = 0; i < (isSecond ? 1 : shapes.size()); ++i) {
      const unsigned operand = isSecond ? 3 : 2 + sparse + i;
      std::optional<ArrayRef<StringRef>> strings =
          operand < op->getNumOperands() ? getStrings(op->getOperand(operand)) : std::nullopt;
      if (!strings)
        return false;
      llvm::append_range(keys, *strings);
    }
    if (keys.size() != shapes.size() || op->getNumResults() < 3 * sparse + shapes.size())
      return false;
    bool fed = false;
    for (auto [i, key] : llvm::enumerate(keys)) {
      auto shape = llvm::dyn_cast<dfg::TensorShapeAttr>(shapes[i]);
      Value result = op->getResult(3 * sparse + i);
      // Features whose length differs are padded, to what a batch has.
      if (!shape || shape.getUnknownRank() || llvm::is_contained(shape.getSizes(), -1) || result.use_empty())
        continue;
      SmallVector<int64_t> sizes = {-1};
      llvm::append_range(sizes, shape.getSizes());
      if (isNumeric(result)) {
        feed(result, getFeedName(op, key, 3 * sparse + i), sizes);
        fed = true;
      } else if (sizes.size() == 1) {
        fed |= feedDecoded(op, result, key, 3 * sparse + i);
      }
    }
    if (fed && op.use_empty())
      op.erase();
    return fed;
  }

  /// A feature that is one string of raw numbers: what decoding gives is fed, where a reshape behind it tells how many
  /// numbers an example has.
  bool feedDecoded(dfg::OpaqueOp op, Value strings, StringRef key, unsigned result) {
    if (!strings.hasOneUse())
      return false;
    auto decode = llvm::dyn_cast<dfg::OpaqueOp>(*strings.user_begin());
    if (!decode || decode.getOp() != "DecodeRaw" || decode->getNumOperands() != 1 || !isNumeric(decode->getResult(0)))
      return false;
    if (auto little = dfg::getSourceAttribute<BoolAttr>(decode, "little_endian"); little && !little.getValue())
      return false;
    Operation *user = decode;
    do {
      if (!user->hasOneUse())
        return false;
      user = *user->user_begin();
    } while (llvm::isa<dfg::CastOp>(user));
    auto reshape = llvm::dyn_cast<dfg::ReshapeOp>(user);
    auto shape = reshape ? reshape.getDimensions().getDefiningOp<dfg::ConstOp>() : dfg::ConstOp();
    auto sizes = shape ? llvm::dyn_cast<DenseIntElementsAttr>(shape.getValue()) : DenseIntElementsAttr();
    if (!sizes || sizes.empty())
      return false;
    // The rows are the examples if nothing but their number is open: that an example has as many numbers as a row is
    // checked when it is read.
    int64_t count = 1;
    for (auto [i, size] : llvm::enumerate(sizes.getValues<APInt>())) {
      const int64_t wanted = size.getSExtValue();
      if (i == 0 ? wanted != -1 : wanted < 1 || llvm::MulOverflow(count, wanted, count))
        return false;
    }
    feed(decode->getResult(0), getFeedName(op, key, result), {-1, count});
    decode->erase();
    return true;
  }

  /// The feature's name, or the tensor's where a node has that one.
  std::string getFeedName(dfg::OpaqueOp op, StringRef key, unsigned result) {
    if (!names.contains(key))
      return key.str();
    std::string name = (dfg::getNodeName(op) + ":" + llvm::Twine(result)).str();
    emitRemark(op->getLoc()) << "the feature '" << key << "' is fed under the name '" << name
                             << "', since a node is named '" << key << "': of TFRecords it is taken with --feature '"
                             << name << "=" << key << "'";
    return name;
  }

  Block &block;
  OpBuilder builder;
  llvm::StringSet<> names;
};

/// Features that are still parsed in the graph, where an endpoint needs them: what is made of them is of no use to
/// know.
LogicalResult refuseOpenFeatures(dfg::GraphOp graph) {
  EndpointNodes nodes(graph);
  FailureOr<DenseSet<Operation *>> needed = nodes.collect(nodes.findEndpoints());
  if (failed(needed))
    return failure();
  for (auto op : graph.getBody().getOps<dfg::OpaqueOp>()) {
    const bool isSecond = op.getOp() == "ParseExampleV2";
    if (!needed->contains(op) || (!isSecond && op.getOp() != "ParseExample"))
      continue;
    const int64_t sparse = getInteger(op, isSecond ? "num_sparse" : "Nsparse");
    SmallVector<StringRef> keys;
    for (unsigned i = 0; i < (isSecond ? 1 : sparse); ++i)
      if (2 + i < op->getNumOperands())
        llvm::append_range(keys, getStrings(op->getOperand(2 + i)).value_or(ArrayRef<StringRef>()));
    InFlightDiagnostic error = op.emitError() << "node '" << dfg::getNodeName(op) << "' parses ";
    if (static_cast<int64_t>(keys.size()) == sparse && sparse > 0) {
      error << (sparse == 1 ? "the feature" : "features")
            << " of a length that each example has its own of (VarLenFeature): ";
      llvm::interleaveComma(keys, error, [&](StringRef key) { error << "'" << key << "'"; });
    } else {
      error << "features that are no numbers of a fixed length";
    }
    return error << "; an executable reads features of a fixed length: pad them (FixedLenFeature), or have the graph "
                    "begin behind the parsing, with placeholders";
  }
  return success();
}

struct FeedInputs : impl::FeedInputsBase<FeedInputs> {
  void runOnOperation() override {
    bool fed = false;
    for (auto graph : getOperation().getOps<dfg::GraphOp>()) {
      fed |= InputFeeder(graph).run();
      if (failed(refuseOpenFeatures(graph)))
        return signalPassFailure();
    }
    if (!fed)
      return;
    // What follows from the inputs' shapes was not known before.
    OpPassManager infer(ModuleOp::getOperationName());
    infer.addPass(createInferShapes());
    if (failed(runPipeline(infer, getOperation())))
      signalPassFailure();
  }
};

} // namespace
} // namespace distc
