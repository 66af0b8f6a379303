//===- RandomKernels.cpp - Random numbers drawn by kernels --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/dfg/Generators.h"
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/DeviceKernel.h"
#include "passes/lower/gpu/PhiloxWriter.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/program/ScopeNames.h"
#include "runtime/include/drt/random_state.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_RANDOMKERNELS
#include "passes/lower/Passes.h.inc"

namespace {

using philox::Distribution;
using philox::Generator;
using philox::PhiloxWriter;

/// States that one kernel moves on: its arguments are limited.
constexpr size_t kStatesAKernel = 128;

/// What a kernel draws: equal ones are one kernel.
struct Draw {
  Distribution distribution;
  Type element;
  int64_t count;
  bool stateless, keyed, perReplica;
  Attribute low, high; // of integers, where they are constant
  bool all = false;    // integers without bounds

  int64_t groupSize() const { return PhiloxWriter::getGroupSize(element); }
  /// Whether a replica's part may begin within a group.
  bool beginsWithin() const { return perReplica && count % groupSize() != 0; }
  int64_t groups() const { return llvm::divideCeil(count, groupSize()) + beginsWithin(); }
  bool takesBounds() const { return distribution == Distribution::UniformInt && !low && !all; }

  std::string key() const {
    std::string text;
    llvm::raw_string_ostream(text) << static_cast<int>(distribution) << ' ' << element << ' ' << count << ' '
                                   << stateless << keyed << perReplica << ' ' << low << ' ' << high << all;
    return text;
  }
};

/// Writes the kernel of a draw: a thread a group. Arguments: the seed of a stateless one, the state (of a stateless one
/// where it needs the replica's number), bounds that are not constant, the result.
class DrawWriter {
public:
  DrawWriter(const Draw &draw, ModuleOp module, StringRef name, Location loc)
      : draw(draw), b(loc, module.getContext()), philox(b),
        kernel(createKernel(b, module, name, arguments(), blocks(), kThreads)) {}

  void write() {
    unsigned at = 0;
    Type wide = b.getI64Type();
    Value seed = draw.stateless ? kernel.getArgument(at++) : Value();
    Value state = !draw.stateless || draw.perReplica ? kernel.getArgument(at++) : Value();
    Value low = bound(draw.low, at), high = bound(draw.high, at);
    Value out = kernel.getArgument(at);

    Value thread = arith::IndexCastOp::create(b, wide, getThread(b, kThreads));
    auto mine = scf::IfOp::create(b, arith::CmpIOp::create(b, arith::CmpIPredicate::ult, thread, number(draw.groups())),
                                  /*withElse=*/false);
    b.setInsertionPointToStart(mine.thenBlock());
    Value group = thread, begin = arith::MulIOp::create(b, thread, number(draw.groupSize()));
    if (draw.perReplica) {
      Value word =
          memref::LoadOp::create(b, state, ValueRange{arith::ConstantIndexOp::create(b, drt::kRandomStateWords - 1)});
      Value first = arith::MulIOp::create(b, arith::ExtUIOp::create(b, wide, word), number(draw.count));
      group = arith::AddIOp::create(b, thread, arith::DivUIOp::create(b, first, number(draw.groupSize())));
      begin = arith::SubIOp::create(b, begin, arith::RemUIOp::create(b, first, number(draw.groupSize())));
    }
    Generator generator = draw.keyed       ? philox.loadKeyed(seed)
                          : draw.stateless ? philox.scramble(seed)
                                           : philox.load(state);
    int64_t positions = PhiloxWriter::getGroupPositions(draw.distribution, draw.element);
    generator = philox.skip(generator, arith::MulIOp::create(b, group, number(positions)));
    store(philox.drawGroup(generator, draw.distribution, draw.element, low, high), begin, out);
  }

private:
  SmallVector<Type> arguments() const {
    auto *context = draw.element.getContext();
    auto buffer = [](int64_t elements, Type type) { return MemRefType::get({elements}, type); };
    SmallVector<Type> types;
    if (draw.stateless)
      types.push_back(buffer(draw.keyed ? 3 : 2, IntegerType::get(context, 64)));
    if (!draw.stateless || draw.perReplica)
      types.push_back(buffer(drt::kRandomStateWords, IntegerType::get(context, 32)));
    if (draw.takesBounds())
      types.append(2, buffer(1, draw.element));
    types.push_back(buffer(draw.count, draw.element));
    return types;
  }

  int64_t blocks() const { return std::max<int64_t>(llvm::divideCeil(draw.groups(), kThreads), 1); }

  Value number(int64_t value) { return arith::ConstantOp::create(b, b.getI64IntegerAttr(value)); }

  Value bound(Attribute constant, unsigned &at) {
    if (draw.distribution != Distribution::UniformInt || draw.all)
      return {};
    if (constant)
      return arith::ConstantOp::create(b, llvm::cast<TypedAttr>(constant));
    return memref::LoadOp::create(b, kernel.getArgument(at++), ValueRange{arith::ConstantIndexOp::create(b, 0)});
  }

  /// Elements [begin, begin + the group's size), those of them that are the result's.
  void store(ArrayRef<Value> group, Value begin, Value out) {
    if (!draw.beginsWithin()) {
      Value behind = arith::AddIOp::create(b, begin, number(draw.groupSize()));
      auto whole = scf::IfOp::create(b, arith::CmpIOp::create(b, arith::CmpIPredicate::ule, behind, number(draw.count)),
                                     /*withElse=*/true);
      auto rest = b.saveInsertionPoint();
      b.setInsertionPointToStart(whole.thenBlock());
      Value vector = vector::FromElementsOp::create(b, VectorType::get({draw.groupSize()}, draw.element), group);
      auto stored = vector::StoreOp::create(b, vector, out, ValueRange{index(begin)});
      stored.setAlignment(kVectorBytes);
      b.setInsertionPointToStart(whole.elseBlock());
      if (draw.count % draw.groupSize() != 0)
        storeEach(group.take_front(draw.count % draw.groupSize()), begin, out);
      b.restoreInsertionPoint(rest);
      return;
    }
    storeEach(group, begin, out);
  }

  void storeEach(ArrayRef<Value> group, Value begin, Value out) {
    for (auto [i, value] : llvm::enumerate(group)) {
      // Before the result's first element the position is negative: as unsigned, too large.
      Value at = arith::AddIOp::create(b, begin, number(i));
      auto inside = scf::IfOp::create(b, arith::CmpIOp::create(b, arith::CmpIPredicate::ult, at, number(draw.count)),
                                      /*withElse=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(inside.thenBlock());
      memref::StoreOp::create(b, value, out, ValueRange{index(at)});
    }
  }

  Value index(Value value) { return arith::IndexCastOp::create(b, b.getIndexType(), value); }

  const Draw &draw;
  ImplicitLocOpBuilder b;
  PhiloxWriter philox;
  gpu::GPUFuncOp kernel;
};

/// Writes the kernel of a permutation: one thread, as each swap follows from those before. Arguments: the state, the
/// result.
void writePermutation(ModuleOp module, StringRef name, Location loc, int64_t count) {
  ImplicitLocOpBuilder b(loc, module.getContext());
  PhiloxWriter philox(b);
  const Type arguments[] = {MemRefType::get({drt::kRandomStateWords}, b.getI32Type()),
                            MemRefType::get({count}, b.getI32Type())};
  gpu::GPUFuncOp kernel = createKernel(b, module, name, arguments, /*blocks=*/1, /*threads=*/1);
  Value order = kernel.getArgument(1);
  auto index = [&](int64_t value) { return arith::ConstantIndexOp::create(b, value).getResult(); };
  auto toIndex = [&](Value value) { return arith::IndexCastUIOp::create(b, b.getIndexType(), value).getResult(); };
  auto toWord = [&](Value value) { return arith::IndexCastUIOp::create(b, b.getI32Type(), value).getResult(); };
  Generator generator = philox.load(kernel.getArgument(0));
  {
    auto rows = scf::ForOp::create(b, index(0), index(count), index(1));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(rows.getBody());
    memref::StoreOp::create(b, toWord(rows.getInductionVar()), order, rows.getInductionVar());
  }
  constexpr int64_t kWords = 4;
  auto positions = scf::ForOp::create(b, index(0), index(llvm::divideCeil(count - 1, kWords)), index(1));
  b.setInsertionPointToStart(positions.getBody());
  Value position = positions.getInductionVar();
  const PhiloxWriter::Words words =
      philox.draw(philox.skip(generator, arith::IndexCastUIOp::create(b, b.getI64Type(), position)));
  for (auto [number, word] : llvm::enumerate(words)) {
    Value row = arith::AddIOp::create(b, arith::MulIOp::create(b, position, index(kWords)), index(number));
    Value isRow = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, row, index(count - 1));
    auto swap = scf::IfOp::create(b, isRow, /*withElse=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(swap.thenBlock());
    Value left = toWord(arith::SubIOp::create(b, index(count), row));
    Value other = arith::AddIOp::create(b, row, toIndex(arith::RemUIOp::create(b, word, left)));
    Value first = memref::LoadOp::create(b, order, row), second = memref::LoadOp::create(b, order, other);
    memref::StoreOp::create(b, second, order, row);
    memref::StoreOp::create(b, first, order, other);
  }
}

/// The element that a bound is everywhere, null where that is not known.
Attribute getConstantBound(Value bound) {
  DenseElementsAttr elements;
  if (matchPattern(getStorage(bound), m_Constant(&elements)) && elements.isSplat())
    return elements.getSplatValue<Attribute>();
  return {};
}

struct RandomKernels : impl::RandomKernelsBase<RandomKernels> {
  void runOnOperation() override {
    FailureOr<drt::ProgramOp> program = drt::getProgram(getOperation());
    if (failed(program))
      return signalPassFailure();
    replicas = program->getNumReplicas();
    for (drt::EntryOp entry : getEntries(getOperation()))
      if (failed(convert(entry)))
        return signalPassFailure();
  }

private:
  struct Advanced {
    Value state;
    int64_t positions;
  };

  LogicalResult convert(drt::EntryOp entry) {
    SmallVector<Advanced> advanced;
    // What draws numbers of its own from a state.
    for (auto routine : llvm::make_early_inc_range(entry.getBody().front().getOps<drt::RoutineOp>())) {
      const bool permutes = routine.getName() == "random_permutation"; // such a routine is erased
      if (permutes && failed(convertPermutation(routine, advanced)))
        return failure();
      if (!permutes && takesState(routine) && failed(giveState(routine, advanced)))
        return failure();
    }
    for (Operation &op : llvm::make_early_inc_range(entry.getBody().front()))
      if (auto random = llvm::dyn_cast<drt::RandomOp>(op); random && random.getDistribution() == DRT_RANDOM_STATE)
        continue;
      else if (llvm::isa<drt::RandomOp, drt::RandomStatelessOp>(op) && failed(convert(&op, advanced)))
        return failure();
    auto builder = OpBuilder::atBlockEnd(&entry.getBody().front());
    for (ArrayRef<Advanced> rest = advanced; !rest.empty();
         rest = rest.drop_front(std::min(rest.size(), kStatesAKernel))) {
      ArrayRef<Advanced> states = rest.take_front(kStatesAKernel);
      drt::RandomAdvanceOp::create(builder, entry.getLoc(), writeAdvance(states, entry.getLoc()),
                                   llvm::map_to_vector(states, [](const Advanced &state) { return state.state; }));
    }
    return success();
  }

  static bool takesState(drt::RoutineOp routine) {
    auto random =
        routine.getOperands().empty() ? drt::RandomOp() : routine.getOperands().front().getDefiningOp<drt::RandomOp>();
    return random && random.getDistribution() == DRT_RANDOM_STATE;
  }

  /// The routine's state lies on the device.
  LogicalResult giveState(drt::RoutineOp routine, SmallVectorImpl<Advanced> &advanced) {
    auto state = routine.getOperands().front().getDefiningOp<drt::RandomOp>();
    DenseIntElementsAttr positions;
    if (!state || !matchPattern(state.getBounds().front(), m_Constant(&positions)))
      return routine.emitError("internal error: a routine without the state that it draws from");
    if (failed(checkGenerator(state)))
      return failure();
    OpBuilder builder(routine);
    Value onDevice = createState(builder, routine.getLoc(), state.getSeed(), state.getSeed2());
    advanced.push_back({onDevice, *positions.value_begin<int64_t>()});
    routine->setOperand(0, onDevice);
    state.erase();
    return success();
  }

  LogicalResult convertPermutation(drt::RoutineOp routine, SmallVectorImpl<Advanced> &advanced) {
    if (failed(giveState(routine, advanced)))
      return failure();
    OpBuilder builder(routine);
    auto type = llvm::cast<RankedTensorType>(routine->getResult(0).getType());
    Value onDevice = routine->getOperand(0);
    StringRef kernel = getKernel("permutation " + std::to_string(type.getNumElements()), [&](StringRef name) {
      writePermutation(getOperation(), name, routine.getLoc(), type.getNumElements());
    });
    routine->replaceAllUsesWith(drt::LaunchOp::create(builder, routine.getLoc(), TypeRange{type}, kernel,
                                                      ValueRange{onDevice}, DenseI64ArrayAttr()));
    routine.erase();
    return success();
  }

  static LogicalResult checkGenerator(Operation *op) {
    if (!op->hasAttr(dfg::kGeneratorAttr))
      return success();
    return op->emitError() << "node '" << getNodeNames(op->getLoc())
                           << "' draws random numbers with a seed in a loop, which there is no code for on GPUs yet: "
                              "leave its seed out, or compile with --target=cpu";
  }

  LogicalResult convert(Operation *op, SmallVectorImpl<Advanced> &advanced) {
    auto random = llvm::dyn_cast<drt::RandomOp>(op);
    if (failed(checkGenerator(op)))
      return failure();
    auto type = llvm::cast<RankedTensorType>(op->getResult(0).getType());
    Draw draw{static_cast<Distribution>(op->getAttrOfType<IntegerAttr>("distribution").getInt()),
              type.getElementType(),
              type.getNumElements(),
              random == nullptr,
              op->hasAttr("keyed"),
              op->hasAttr("per_replica"),
              {},
              {}};
    ValueRange bounds = random ? ValueRange(random.getBounds()) : llvm::cast<drt::RandomStatelessOp>(op).getBounds();
    if (failed(check(op, draw, bounds)))
      return failure();

    OpBuilder builder(op);
    SmallVector<Value> operands;
    if (!random)
      operands.push_back(llvm::cast<drt::RandomStatelessOp>(op).getSeed());
    // A stateless operation has a state for the replica's number alone.
    if (random || draw.perReplica)
      operands.push_back(
          createState(builder, op->getLoc(), random ? random.getSeed() : 0, random ? random.getSeed2() : 0));
    if (draw.takesBounds())
      llvm::append_range(operands, bounds);
    if (random)
      advanced.push_back({operands.front(), getReserved(random) * (draw.perReplica ? replicas : 1)});
    StringRef kernel =
        getKernel(draw.key(), [&](StringRef name) { DrawWriter(draw, getOperation(), name, op->getLoc()).write(); });
    op->replaceAllUsesWith(
        drt::LaunchOp::create(builder, op->getLoc(), TypeRange{type}, kernel, operands, DenseI64ArrayAttr()));
    op->erase();
    return success();
  }

  /// As GuardedPhiloxRandom reserves them: 256 positions an output, whatever it uses, or what the node says.
  static int64_t getReserved(drt::RandomOp random) {
    const int64_t own = static_cast<int64_t>(random.getReserved());
    return own ? own : llvm::cast<RankedTensorType>(random.getResult().getType()).getNumElements() * 256;
  }

  LogicalResult check(Operation *op, Draw &draw, ValueRange bounds) {
    auto node = [&] { return "node '" + getNodeNames(op->getLoc()) + "'"; };
    if (draw.distribution != Distribution::UniformInt) {
      if (!draw.element.isF32() && !draw.element.isF64())
        return op->emitError() << node() << " draws random numbers of type " << draw.element
                               << "; there are such of float32 and float64";
      return success();
    }
    if (!draw.element.isInteger(32) && !draw.element.isInteger(64))
      return op->emitError() << node() << " draws random integers of type " << draw.element
                             << "; there are such of int32 and int64";
    draw.all = bounds.empty();
    if (draw.all)
      return success();
    if (bounds.size() != 2)
      return op->emitOpError("needs two bounds for integers");
    Attribute low = getConstantBound(bounds[0]), high = getConstantBound(bounds[1]);
    if (!low || !high)
      return success();
    if (llvm::cast<IntegerAttr>(low).getValue().sge(llvm::cast<IntegerAttr>(high).getValue()))
      return op->emitError() << node() << ": random integers need minval < maxval, got "
                             << llvm::cast<IntegerAttr>(low).getInt()
                             << " >= " << llvm::cast<IntegerAttr>(high).getInt();
    draw.low = low;
    draw.high = high;
    return success();
  }

  static Value createState(OpBuilder &builder, Location loc, int64_t seed, int64_t seed2) {
    auto type = RankedTensorType::get({drt::kRandomStateWords}, builder.getI32Type());
    return drt::RandomStateOp::create(builder, loc, type, seed, seed2);
  }

  /// The kernel of that key; `write` makes it, with a name, where there is none yet.
  StringRef getKernel(StringRef key, llvm::function_ref<void(StringRef)> write) {
    auto [it, inserted] = kernels.try_emplace(key);
    if (inserted) {
      it->second = "random_" + std::to_string(kernels.size() - 1);
      write(it->second);
    }
    return it->second;
  }

  /// A block of one thread a state.
  std::string writeAdvance(ArrayRef<Advanced> states, Location loc) {
    std::string name = "random_advance_" + std::to_string(advances++);
    ImplicitLocOpBuilder b(loc, &getContext());
    SmallVector<Type> types(states.size(), MemRefType::get({drt::kRandomStateWords}, b.getI32Type()));
    gpu::GPUFuncOp kernel = createKernel(b, getOperation(), name, types, states.size(), 1);
    Value block = gpu::BlockIdOp::create(b, gpu::Dimension::x);
    PhiloxWriter philox(b);
    for (auto [i, state] : llvm::enumerate(states)) {
      Value mine = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, block, arith::ConstantIndexOp::create(b, i));
      auto only = scf::IfOp::create(b, mine, /*withElse=*/false);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(only.thenBlock());
      Value positions = arith::ConstantOp::create(b, b.getI64IntegerAttr(state.positions));
      philox.store(philox.skip(philox.load(kernel.getArgument(i)), positions), kernel.getArgument(i));
    }
    return name;
  }

  int64_t replicas = 1;
  unsigned advances = 0;
  llvm::StringMap<std::string> kernels;
};

} // namespace
} // namespace distc
