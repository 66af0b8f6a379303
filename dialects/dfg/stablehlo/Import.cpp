//===- Import.cpp - A training step in StableHLO as a graph -------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Import.h"
#include "dialects/dfg/BatchMultiple.h"
#include "dialects/dfg/IrText.h"
#include "dialects/dfg/NodeNames.h"
#include "dialects/dfg/stablehlo/Converter.h"
#include "dialects/dfg/stablehlo/Signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace distc::stablehlo {
namespace {

constexpr StringRef kTrain = "train", kInit = "init", kLoss = "loss";

// ---- Names ---------------------------------------------------------------------------------------------------------

/// "jit(step)/transpose(jvp(layer))/dot_general" as a name that TensorFlow takes.
std::string makeName(StringRef text) {
  std::string name;
  for (char c : text) {
    if (llvm::isAlnum(c) || c == '_' || c == '.' || c == '-')
      name += c;
    else if (c == '/' ? !name.empty() && name.back() != '/' : c == '(' && !name.empty())
      name += c == '/' ? '/' : '_';
  }
  StringRef trimmed = StringRef(name).ltrim("_-/").rtrim("_/");
  return trimmed.str();
}

/// Every operation gets its name as its location, so that nodes made of it, and what is said of it, have it.
void nameOperations(ModuleOp module) {
  module->walk([&](Operation *op) {
    std::string name;
    if (auto given = op->getLoc()->findInstanceOf<NameLoc>())
      name = makeName(given.getName());
    if (name.empty())
      name = op->getName().stripDialect().str();
    op->setLoc(NameLoc::get(StringAttr::get(op->getContext(), name)));
  });
}

/// Names that no other node has.
void makeNamesUnique(Block &block) {
  llvm::StringMap<int64_t> taken;
  for (Operation &op : block)
    if (op.hasAttr("distc.named"))
      taken[dfg::getNodeName(&op)] = 0;
  for (Operation &op : block) {
    if (op.removeAttr("distc.named"))
      continue;
    StringRef name = dfg::getNodeName(&op);
    auto [entry, isNew] = taken.try_emplace(name, 0);
    if (isNew)
      continue;
    std::string other;
    do
      other = (name + "_" + Twine(++entry->second)).str();
    while (!taken.try_emplace(other, 0).second);
    op.setLoc(NameLoc::get(StringAttr::get(op.getContext(), other)));
  }
}

// ---- The graph -----------------------------------------------------------------------------------------------------

class Importer {
public:
  Importer(ModuleOp source, const Signature &signature, StringRef path, ModuleOp module)
      : source(source), signature(signature), path(path), module(module), context(module.getContext()),
        builder(context) {}

  LogicalResult run(ReadTensors read) {
    FailureOr<Operation *> function = findFunction();
    if (failed(function) || failed(checkSignature(*function)))
      return failure();
    nameOperations(source);
    Converter converter(source, builder, shapes);
    if (failed(converter.check(*function)))
      return failure();
    builder.setInsertionPointToStart(module.getBody());
    if (signature.batchMultiple > 1)
      module->setAttr(dfg::kBatchMultipleAttr, builder.getI64IntegerAttr(signature.batchMultiple));
    auto graph = dfg::GraphOp::create(builder, module.getLoc());
    body = &graph.getBody().front();
    converter.needExamples(graph, signature.smallestBatch);
    Block &source = (*function)->getRegion(0).front();
    SmallVector<Value> arguments;
    for (auto [argument, parameter] : llvm::zip(signature.arguments, source.getArguments())) {
      FailureOr<Value> value = addArgument(argument, llvm::cast<RankedTensorType>(parameter.getType()));
      if (failed(value))
        return failure();
      arguments.push_back(*value);
    }
    builder.setInsertionPointToEnd(body);
    FailureOr<SmallVector<Value>> results = converter.convert(*function, arguments);
    if (failed(results))
      return failure();
    OpBuilder atEnd(context);
    atEnd.setInsertionPointToEnd(module.getBody());
    for (Operation *added : converter.takeFunctions()) {
      atEnd.insert(added);
      makeNamesUnique(added->getRegion(0).front());
    }
    if (failed(addEndpoints(graph, *results, converter, source.getTerminator())) ||
        (read && failed(addInitializers(graph, read))))
      return failure();
    markTrainable((*results)[signature.loss]);
    removeUnused();
    makeNamesUnique(*body);
    return success();
  }

private:
  InFlightDiagnostic fail() { return emitError(FileLineColLoc::get(context, path, 0, 0)); }

  FailureOr<Operation *> findFunction() {
    Operation *found = nullptr;
    for (auto function : source.getOps<func::FuncOp>()) {
      if (function.isExternal())
        return fail() << "function '" << function.getSymName() << "' has no body", failure();
      if (function.getSymName() == "main")
        return function.getOperation();
      if (function.isPublic())
        found = found ? source.getOperation() : function;
    }
    if (!found || found == source)
      return fail() << "has no function 'main', which the step should be", failure();
    return found;
  }

  LogicalResult checkSignature(Operation *function) {
    auto type = llvm::cast<func::FuncOp>(function).getFunctionType();
    if (type.getNumInputs() != signature.arguments.size())
      return fail() << "the signature names " << signature.arguments.size() << " arguments, but the step takes "
                    << type.getNumInputs();
    for (Type each : llvm::concat<const Type>(type.getInputs(), type.getResults())) {
      auto tensor = llvm::dyn_cast<RankedTensorType>(each);
      if (!tensor || !getElementType(tensor.getElementType()) || llvm::isa<ComplexType>(tensor.getElementType()) ||
          tensor.getEncoding())
        return fail() << "there is no code for a step that takes or gives a value of type " << each;
    }
    auto checkResult = [&](int64_t result, const Twine &what) -> LogicalResult {
      if (result < 0 || result >= static_cast<int64_t>(type.getNumResults()))
        return fail() << "the signature says that " << what << " is result " << result << ", but the step has "
                      << type.getNumResults();
      return success();
    };
    for (auto [argument, input] : llvm::zip(signature.arguments, type.getInputs())) {
      auto tensor = llvm::cast<RankedTensorType>(input);
      bool isBatch = argument.role == Signature::Role::Batch;
      for (int64_t axis = 0; axis < tensor.getRank(); ++axis)
        if (tensor.isDynamicDim(axis) != (isBatch && axis == 0))
          return fail() << "argument '" << argument.name << "' has type " << input << ", but "
                        << (isBatch ? "the batch is the first axis, of unknown size, and no other's size is unknown"
                                    : "only arguments of role batch have an axis of unknown size");
      if (isBatch && tensor.getRank() == 0)
        return fail() << "argument '" << argument.name << "' has no axis, so it cannot have role batch";
      if (!argument.result)
        continue;
      if (failed(checkResult(*argument.result, "what replaces '" + argument.name + "'")))
        return failure();
      if (type.getResult(*argument.result) != input)
        return fail() << "argument '" << argument.name << "' has type " << input << ", but what replaces it has type "
                      << type.getResult(*argument.result);
    }
    for (const Signature::Fetch &fetch : signature.fetches)
      if (failed(checkResult(fetch.result, "'" + fetch.name + "'")))
        return failure();
    if (failed(checkResult(signature.loss, "the loss")))
      return failure();
    auto loss = llvm::cast<RankedTensorType>(type.getResult(signature.loss));
    if (loss.getRank() != 0 || !llvm::isa<FloatType>(loss.getElementType()))
      return fail() << "the loss has type " << loss << ", but must be one number; take the mean or the sum of it";
    return success();
  }

  Location nameLoc(const Twine &name) { return NameLoc::get(builder.getStringAttr(name)); }

  /// Makes a node of a name that it keeps.
  template <typename Op, typename... Args> Op add(const Twine &name, Args &&...args) {
    auto op = Op::create(builder, nameLoc(name), std::forward<Args>(args)...);
    op->setAttr("distc.named", builder.getUnitAttr());
    if (auto inferred = llvm::dyn_cast<dfg::ShapeInterface>(op.getOperation()))
      (void)inferred.inferShapes(shapes);
    return op;
  }

  FailureOr<Value> addArgument(const Signature::Argument &argument, RankedTensorType given) {
    auto type = RankedTensorType::get(given.getShape(), getElementType(given.getElementType()));
    builder.setInsertionPointToEnd(body);
    if (argument.role != Signature::Role::State) {
      SmallVector<int64_t> sizes =
          llvm::map_to_vector(given.getShape(), [](int64_t size) { return ShapedType::isDynamic(size) ? -1 : size; });
      auto shape = dfg::TensorShapeAttr::get(context, false, sizes);
      return add<dfg::PlaceholderOp>(argument.name, type, shape).getResult();
    }
    builder.setInsertionPoint(body->getParentOp());
    dfg::VariableOp::create(builder, nameLoc(argument.name), argument.name, type);
    builder.setInsertionPointToEnd(body);
    Value handle = add<dfg::VarHandleOp>(argument.name, dfg::RefType::get(context, type),
                                         FlatSymbolRefAttr::get(context, argument.name));
    handles.push_back(handle);
    return add<dfg::ReadVariableOp>(argument.name + "/read", type, handle).getValue();
  }

  /// `end`: what gives the results in the module, with the types that they have there.
  LogicalResult addEndpoints(dfg::GraphOp graph, ArrayRef<Value> results, Converter &converter, Operation *end) {
    builder.setInsertionPointToEnd(body);
    auto isTaken = [&](StringRef name) {
      return llvm::any_of(signature.arguments, [&](auto &argument) { return argument.name == name; });
    };
    for (StringRef name : {kTrain, kInit, kLoss})
      if (isTaken(name) || llvm::any_of(signature.fetches, [&](auto &fetch) { return fetch.name == name; }))
        return fail() << "the signature names something '" << name << "', which is the name of an endpoint";
    Value loss = results[signature.loss];
    add<dfg::IdentityOp>(kLoss, loss.getType(), loss);
    graph.setLossAttr(builder.getStringAttr(kLoss + ":0"));
    SmallVector<Attribute> fetches, updates;
    for (const Signature::Fetch &fetch : signature.fetches) {
      // The runtime knows integers with a sign.
      FailureOr<Value> value = converter.withSign(end, fetch.result, results[fetch.result]);
      if (failed(value))
        return failure();
      add<dfg::IdentityOp>(fetch.name, value->getType(), *value);
      fetches.push_back(builder.getStringAttr(fetch.name + ":0"));
    }
    if (!fetches.empty())
      graph.setFetchesAttr(builder.getArrayAttr(fetches));
    // Behind all reads: what a step computes, it computes from the state before it.
    size_t number = 0;
    for (const Signature::Argument &argument : signature.arguments) {
      if (argument.role != Signature::Role::State)
        continue;
      Value handle = handles[number++];
      if (!argument.result)
        continue;
      Value value = results[*argument.result];
      auto read = value.getDefiningOp<dfg::ReadVariableOp>();
      if (read && read.getHandle() == handle)
        continue;
      add<dfg::AssignOp>(argument.name + "/assign", TypeRange(), handle, value);
      updates.push_back(builder.getStringAttr(argument.name + "/assign"));
      updated.insert(argument.name);
    }
    auto train = add<dfg::GroupOp>(kTrain);
    train->setAttr(dfg::kControlAttr, builder.getArrayAttr(updates));
    graph.setTrainOp(kTrain);
    return success();
  }

  /// Assigns what the file says.
  LogicalResult addInitializers(dfg::GraphOp graph, ReadTensors read) {
    if (signature.initial.empty())
      return success();
    llvm::SmallString<256> file(signature.initial);
    if (!llvm::sys::path::is_absolute(file)) {
      file = llvm::sys::path::parent_path(path);
      llvm::sys::path::append(file, signature.initial);
    }
    llvm::StringMap<RankedTensorType> wanted;
    for (auto variable : module.getOps<dfg::VariableOp>())
      wanted[variable.getSymName()] = llvm::cast<RankedTensorType>(variable.getType());
    llvm::StringMap<DenseElementsAttr> values;
    LogicalResult fits = success();
    llvm::Error error =
        read(file, context, [&](StringRef name, Type element, ArrayRef<int64_t> shape, ArrayRef<char> bytes) {
          auto it = wanted.find(name);
          if (it == wanted.end() || failed(fits))
            return;
          RankedTensorType type = it->second;
          Type known = element ? getElementType(element) : Type();
          if (known != type.getElementType() || shape != type.getShape())
            fits = fail() << "'" << file << "' has a value of another type or shape for the state '" << name
                          << "', which is " << type;
          else
            values[name] = makeElements(type, bytes);
        });
    if (error)
      return fail() << llvm::toString(std::move(error));
    if (failed(fits))
      return failure();
    builder.setInsertionPointToEnd(body);
    SmallVector<Attribute> assignments;
    for (Value handle : handles) {
      StringRef name = llvm::cast<dfg::VarHandleOp>(handle.getDefiningOp()).getVariable();
      DenseElementsAttr value = values.lookup(name);
      if (!value)
        return fail() << "'" << file << "' has no value for the state '" << name << "'";
      auto constant = add<dfg::ConstOp>(name + "/initial", value.getType(), value);
      add<dfg::AssignOp>(name + "/initialize", TypeRange(), handle, constant);
      assignments.push_back(builder.getStringAttr(name + "/initialize"));
    }
    auto init = add<dfg::GroupOp>(kInit);
    init->setAttr(dfg::kControlAttr, builder.getArrayAttr(assignments));
    graph.setInitOp(kInit);
    return success();
  }

  static DenseElementsAttr makeElements(RankedTensorType type, ArrayRef<char> bytes) {
    if (type.getElementType().isInteger(1))
      return DenseElementsAttr::get(type, llvm::map_to_vector(bytes, [](char c) { return c != 0; }));
    size_t size = type.getElementTypeBitWidth() / 8;
    // One element says it where all are equal: zeros of slots.
    bool isSplat = bytes.size() > size && std::equal(bytes.begin() + size, bytes.end(), bytes.begin());
    return DenseElementsAttr::getFromRawBuffer(type, isSplat ? bytes.take_front(size) : bytes);
  }

  /// State that the loss is a function of, and that the step replaces, is trained. Slots, counters and averages are
  /// not.
  void markTrainable(Value loss) {
    llvm::SmallPtrSet<Operation *, 32> seen;
    SmallVector<Operation *> pending = {loss.getDefiningOp()};
    llvm::StringSet<> read;
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val();
      if (!op || !seen.insert(op).second)
        continue;
      if (auto handle = llvm::dyn_cast<dfg::VarHandleOp>(op))
        read.insert(handle.getVariable());
      for (Value operand : op->getOperands())
        pending.push_back(operand.getDefiningOp());
    }
    for (auto variable : module.getOps<dfg::VariableOp>())
      if (updated.contains(variable.getSymName()) && read.contains(variable.getSymName()) &&
          llvm::isa<FloatType>(getElementTypeOrSelf(variable.getType())))
        variable.setTrainable(true);
  }

  /// What nothing needs: the wide form of what was taken narrow, assertions of shapes.
  void removeUnused() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body)))
      if (op.use_empty() && !op.hasAttr("distc.named") && (isPure(&op) || llvm::isa<dfg::OpaqueOp>(op)))
        op.erase();
  }

  ModuleOp source;
  const Signature &signature;
  StringRef path;
  ModuleOp module;
  MLIRContext *context;
  OpBuilder builder;
  dfg::ShapeContext shapes;
  Block *body = nullptr;
  /// Of the state, in order.
  SmallVector<Value> handles;
  llvm::StringSet<> updated;
};

// ---- Files ---------------------------------------------------------------------------------------------------------

constexpr StringRef kWayOut =
    "; write it as text in generic form: distc.jax.export does, and 'python -m distc convert FILE "
    "STEP.mlir' of distc's package where JAX is installed";

std::unique_ptr<llvm::MemoryBuffer> readFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/true);
  return buffer ? std::move(*buffer) : nullptr;
}

bool isBytecode(StringRef text) { return text.starts_with("ML\xefR"); }

/// Dialects of which a module of StableHLO has operations; `vhlo` is that of the portable form.
constexpr StringRef kDialects[] = {"stablehlo", "chlo", "vhlo", "mhlo", "sdy"};

/// Whether a word of the text, after a quote or a space, is an operation of one of the dialects.
bool namesOperation(StringRef text) {
  return llvm::any_of(kDialects, [&](StringRef dialect) {
    for (size_t at = text.find(dialect); at != StringRef::npos; at = text.find(dialect, at + dialect.size())) {
      StringRef behind = text.drop_front(at + dialect.size());
      if (at > 0 && StringRef("\" \n=").contains(text[at - 1]) && behind.starts_with(".") && behind.size() > 1 &&
          llvm::isAlpha(behind[1]))
        return true;
    }
    return false;
  });
}

/// The number of elements that `tensor<3x4xi1>` has, where `type` begins with such a type of truth values.
std::optional<uint64_t> countTruthValues(StringRef type) {
  uint64_t count = 1, size = 0;
  if (!type.consume_front("tensor<"))
    return std::nullopt;
  while (!type.consumeInteger(10, size)) {
    count = llvm::SaturatingMultiply(count, size);
    if (!type.consume_front("x"))
      return std::nullopt;
  }
  return type.starts_with("i1>") ? std::optional(count) : std::nullopt;
}

/// The text with truth values in hexadecimal as this MLIR has them, eight in a byte, the first in its lowest bit. Newer
/// ones (jaxlib's) print a byte for each.
std::string packTruthValues(StringRef text) {
  constexpr StringRef kBegin = "dense<\"0x", kEnd = "\"> : ";
  std::string packed;
  for (size_t at = text.find(kBegin); at != StringRef::npos; at = text.find(kBegin)) {
    packed += text.take_front(at + kBegin.size());
    text = text.drop_front(at + kBegin.size());
    StringRef digits = text.take_while(llvm::isHexDigit);
    text = text.drop_front(digits.size());
    auto count = text.starts_with(kEnd) ? countTruthValues(text.drop_front(kEnd.size())) : std::nullopt;
    if (!count || *count < 2 || digits.size() / 2 != *count || digits.size() % 2) {
      packed += digits;
      continue;
    }
    for (size_t first = 0; first < *count; first += 8) {
      unsigned byte = 0;
      for (size_t i = first; i < std::min<size_t>(first + 8, *count); ++i)
        byte |= (digits[2 * i] != '0' || digits[2 * i + 1] != '0') << (i - first);
      packed += llvm::hexdigit(byte >> 4, /*LowerCase=*/false);
      packed += llvm::hexdigit(byte & 15, /*LowerCase=*/false);
    }
  }
  packed += text;
  return packed;
}

} // namespace

bool isStableHlo(StringRef path) {
  std::unique_ptr<llvm::MemoryBuffer> buffer = readFile(path);
  if (!buffer)
    return false;
  StringRef text = buffer->getBuffer();
  // The producer stands at the front.
  if (isBytecode(text))
    return text.take_front(64).contains("StableHLO");
  // What distc prints has no such operations; what is binary is no text.
  return !text.take_front(4096).contains('\0') && namesOperation(text);
}

OwningOpRef<ModuleOp> importStep(StringRef path, MLIRContext *context, ReadTensors read) {
  auto fail = [&](StringRef file) { return emitError(FileLineColLoc::get(context, file, 0, 0)); };
  context->loadDialect<dfg::DFGDialect, func::FuncDialect>();
  std::unique_ptr<llvm::MemoryBuffer> buffer = readFile(path);
  if (!buffer)
    return fail(path) << "cannot read '" << path << "'", nullptr;
  if (isBytecode(buffer->getBuffer()))
    return fail(path) << "is StableHLO's portable bytecode, which distc does not read" << kWayOut, nullptr;
  StringRef text = buffer->getBuffer();
  if (!text.contains("\"builtin.module\"(") && !text.contains("\"func.func\"("))
    return fail(path) << (text.contains("func.func")
                              ? "is StableHLO in the form for people, which distc does not read"
                              : "is StableHLO without a function, or in a form that distc does not read")
                      << kWayOut,
           nullptr;
  llvm::SmallString<256> file(path);
  llvm::sys::path::replace_extension(file, ".json");
  std::unique_ptr<llvm::MemoryBuffer> json = readFile(file);
  if (!json)
    return fail(path) << "there is no signature '" << file
                      << "' beside the module: it says what the arguments and results are (distc.jax.export writes it)",
           nullptr;
  llvm::Expected<Signature> signature = Signature::parse(json->getMemBufferRef());
  if (!signature)
    return fail(file) << "signature '" << file << "': " << llvm::toString(signature.takeError()), nullptr;

  // StableHLO's dialects are known by the names of their operations alone.
  OwningOpRef<ModuleOp> source;
  if (failed(dfg::checkIrText(buffer->getBuffer(), path, context)))
    return nullptr;
  {
    llvm::scope_exit restore(
        [&, before = context->allowsUnregisteredDialects()] { context->allowUnregisteredDialects(before); });
    context->allowUnregisteredDialects();
    source = parseSourceString<ModuleOp>(packTruthValues(buffer->getBuffer()), ParserConfig(context), path);
    if (!source)
      return nullptr;
    OwningOpRef<ModuleOp> module = ModuleOp::create(FileLineColLoc::get(context, path, 0, 0));
    if (failed(Importer(*source, *signature, path, *module).run(read)) || failed(verify(*module)))
      return nullptr;
    return module;
  }
}

} // namespace distc::stablehlo
