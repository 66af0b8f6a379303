//===- ConvertWork.cpp - Kernels, library calls and synchronization as calls -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/dfg/Generators.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/program/Descriptors.h"
#include "passes/lower/program/EntryConverter.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc {

/// Of what an operation reads, then of what it gives.
static SmallVector<int64_t> bytesOf(Operation *op) {
  return llvm::map_to_vector(llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()),
                             [](Type type) { return getTensorBytes(cast<RankedTensorType>(type)); });
}

LogicalResult EntryConverter::convertWork(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](drt::CopyOp copy) {
        copyBytes(address(copy.getResult()), address(copy.getInput()),
                  getTensorBytes(cast<RankedTensorType>(copy.getType())));
        return success();
      })
      .Case([&](drt::TakeRowsOp take) {
        int64_t bytes = getTensorBytes(cast<RankedTensorType>(take.getType()));
        copyBytes(address(take.getResult()), indexed(address(take.getInput()), kGlobalIndex, bytes), bytes);
        return success();
      })
      .Case([&](drt::PullOp pull) { return convertPull(pull); })
      .Case([&](drt::PushOp push) { return convertPush(push); })
      .Case([&](drt::TakeTokenOp) {
        callRuntime("drt_take_token", {});
        return success();
      })
      .Case([&](drt::TakeOp take) {
        callRuntime("drt_take", {storeAddresses(addressesOf(take.getGradients()))});
        return success();
      })
      .Case([&](drt::LaunchOp launch) { return convertLaunch(launch); })
      .Case([&](drt::MatmulOp matmul) {
        FlatSymbolRefAttr descriptor = describeMatmul(program.tables, matmul);
        if (matmul.getJoined())
          return convertJoined(descriptor, matmul.getA(), matmul.getB(), /*packed=*/{}, matmul.getBias(),
                               matmul.getResult());
        callRuntime("drt_matmul", {number32(program.sites.primitives++), symbolAddress(descriptor),
                                   address(matmul.getA()), address(matmul.getB()),
                                   matmul.getBias() ? address(matmul.getBias()) : null(), address(matmul.getResult())});
        return success();
      })
      .Case([&](drt::PackOp pack) {
        callRuntime("drt_pack", {symbolAddress(describePack(program.tables, pack)), address(pack.getB()),
                                 address(pack.getPacked())});
        return success();
      })
      .Case([&](drt::MatmulPackedOp matmul) {
        FlatSymbolRefAttr descriptor = describeMatmulPacked(program.tables, matmul);
        if (matmul.getJoined())
          return convertJoined(descriptor, matmul.getA(), matmul.getB(), matmul.getPacked(), matmul.getBias(),
                               matmul.getResult());
        callRuntime("drt_matmul_packed",
                    {number32(program.sites.primitives++), symbolAddress(descriptor), address(matmul.getA()),
                     address(matmul.getB()), address(matmul.getPacked()),
                     matmul.getBias() ? address(matmul.getBias()) : null(), address(matmul.getResult())});
        return success();
      })
      .Case([&](drt::MatmulAddOp matmul) {
        callRuntime("drt_matmul_add", {number32(program.sites.primitives++),
                                       symbolAddress(describeMatmulAdd(program.tables, matmul)), address(matmul.getA()),
                                       address(matmul.getB()), matmul.getBias() ? address(matmul.getBias()) : null(),
                                       address(matmul.getAddend()), address(matmul.getResult())});
        return success();
      })
      .Case([&](drt::MatmulBiasGradOp matmul) {
        callRuntime("drt_matmul_bias_grad",
                    {number32(program.sites.primitives++),
                     symbolAddress(describeMatmulBiasGrad(program.tables, matmul)), address(matmul.getA()),
                     address(matmul.getB()), address(matmul.getResult()), address(matmul.getBiasGrad())});
        return success();
      })
      .Case([&](drt::AttentionOp attention) {
        callRuntime("drt_attention",
                    {number32(program.sites.primitives++), symbolAddress(describeAttention(program.tables, attention)),
                     address(attention.getQuery()), address(attention.getKey()), address(attention.getValue()),
                     attention.getBias() ? address(attention.getBias()) : null(), address(attention.getOutput()),
                     address(attention.getStatistics())});
        return success();
      })
      .Case([&](drt::AttentionGradientOp gradient) {
        SmallVector<Value> inputs = addressesOf({gradient.getQuery(), gradient.getKey(), gradient.getValue()});
        inputs.push_back(gradient.getBias() ? address(gradient.getBias()) : null());
        llvm::append_range(inputs,
                           addressesOf({gradient.getStatistics(), gradient.getOutputGrad(), gradient.getOutput()}));
        callRuntime("drt_attention_gradient",
                    {number32(program.sites.primitives++), symbolAddress(describeAttention(program.tables, gradient)),
                     storeAddresses(inputs), address(gradient.getQueryGrad()), address(gradient.getKeyGrad()),
                     address(gradient.getValueGrad())});
        return success();
      })
      .Case([&](drt::MatmulStackedOp matmul) {
        SmallVector<Value> operands(matmul.getA());
        llvm::append_range(operands, matmul.getResults());
        callRuntime("drt_matmul_stacked",
                    {number32(program.sites.primitives++), symbolAddress(describeMatmulStacked(program.tables, matmul)),
                     number64(matmul.getA().size()), storeAddresses(addressesOf(operands)), address(matmul.getB()),
                     matmul.getBias() ? address(matmul.getBias()) : null()});
        return success();
      })
      .Case([&](drt::MatmulSumOp sum) {
        callRuntime("drt_matmul_sum",
                    {number32(program.sites.primitives++), symbolAddress(describeMatmulSum(program.tables, sum)),
                     number64(sum.getA().size()), storeAddresses(addressesOf(sum.getOperands())),
                     address(sum.getResult())});
        return success();
      })
      .Case<drt::Conv2DOp, drt::Conv2DGradInputOp, drt::Conv2DGradFilterOp>([&](auto) { return convertConv2D(op); })
      .Case<drt::PoolOp, drt::PoolGradOp>([&](auto) { return convertPool(op); })
      .Case<drt::RandomOp, drt::RandomStatelessOp>([&](auto) { return convertRandom(op); })
      .Case([&](drt::DrawOp draw) { return convertDraw(draw); })
      .Case([&](drt::RandomAdvanceOp advance) {
        return callKernel(advance, advance.getKernel(), addressesOf(advance.getStates()));
      })
      .Case([&](drt::UniqueOp unique) {
        callRuntime("drt_unique", {symbolAddress(describeUnique(program.tables, unique)), address(unique.getX()),
                                   address(unique.getY()), address(unique.getIdx()), address(unique.getCount())});
        return success();
      })
      .Case([&](drt::ScatterOp scatter) {
        callRuntime("drt_scatter",
                    {symbolAddress(describeScatter(program.tables, scatter)),
                     scatter.getInitial() ? address(scatter.getInitial()) : null(), address(scatter.getIndices()),
                     address(scatter.getUpdates()), address(scatter.getResult())});
        return success();
      })
      .Case([&](drt::CheckIndicesOp check) {
        auto name = cast<FlatSymbolRefAttr>(program.tables.string(check.getName()));
        callRuntime("drt_check_indices", {symbolAddress(describeIndices(program.tables, check)),
                                          address(check.getIndices()), symbolAddress(name)});
        return success();
      })
      .Case([&](drt::CheckNumericsOp check) {
        auto type = cast<RankedTensorType>(check.getInput().getType());
        auto message = cast<FlatSymbolRefAttr>(program.tables.string(check.getMessage()));
        callRuntime("drt_check_numerics", {number32(getDtype(type.getElementType())), number64(type.getNumElements()),
                                           address(check.getInput()), symbolAddress(message)});
        return success();
      })
      .Case([&](drt::FeedOrOp feed) {
        FailureOr<Value> fed = loadFeed(feed, feed.getName(), /*batched=*/false, /*optional=*/true);
        if (failed(fed))
          return LogicalResult(failure());
        Value isNull = LLVM::ICmpOp::create(builder, LLVM::ICmpPredicate::eq, *fed, null());
        Value from = LLVM::SelectOp::create(builder, isNull, address(feed.getDefaultValue()), *fed);
        Value bytes = number64(getTensorBytes(cast<RankedTensorType>(feed.getType())));
        LLVM::MemcpyOp::create(builder, address(feed.getResult()), from, bytes, /*isVolatile=*/false);
        return success();
      })
      .Case([&](drt::RoutineOp routine) {
        SmallVector<Value> tensors = addressesOf(routine.getOperands());
        llvm::append_range(tensors, addressesOf(routine.getResults()));
        callRoutine(routine.getName(), routine.getParameters(), tensors, bytesOf(routine), routine.getNumOperands());
        return success();
      })
      .Case([&](drt::AssertOp check) {
        const auto shown = static_cast<int64_t>(check.getSummarize());
        SmallVector<int64_t> numbers = {shown, check.getPrints(), static_cast<int64_t>(check.getData().size())};
        SmallVector<int64_t> bytes = {1};
        SmallVector<Value> tensors = {address(check.getCondition())};
        for (Value tensor : check.getData()) {
          auto type = cast<RankedTensorType>(tensor.getType());
          const int64_t count = type.getNumElements();
          numbers.append({getDtype(type.getElementType()), count});
          // Of what is not put, nothing is asked.
          bytes.push_back(std::max<int64_t>(shown < 0 ? count : std::min(count, shown), 1) *
                          getElementBytes(type.getElementType()));
          tensors.push_back(address(tensor));
        }
        tensors.push_back(symbolAddress(cast<FlatSymbolRefAttr>(program.tables.string(check.getMessage()))));
        bytes.push_back(0);
        callRoutine("assert", numbers, tensors, bytes, tensors.size());
        return success();
      })
      .Case([&](drt::SparseUpdateOp update) { return convertSparseUpdate(update); })
      .Case([&](drt::AllReduceStartOp start) { return convertStart(start); })
      .Case([&](drt::AllReduceWaitOp wait) {
        callRuntime("drt_all_reduce_wait", {number32(wait.getBucket())});
        if (gathers.contains(wait.getBucket()))
          return success();
        return LogicalResult(findBucket(wait, wait.getBucket()));
      })
      .Case([&](drt::GatherStartOp start) { return convertGather(start); })
      .Case([&](drt::PullRowsOp pull) { return convertPullRows(pull); })
      .Case([&](drt::PushRowsOp push) { return convertPushRows(push); })
      .Case([&](drt::AccumulateOp op) { return convertAccumulate(op); })
      .Case([&](drt::AccumulatedOp op) { return convertAccumulated(op); })
      .Case([&](drt::AllReduceResultOp result) { return convertResult(result); })
      .Case([&](drt::UpdateOp update) { return convertUpdate(update); })
      .Case([&](drt::UpdateGroupOp group) {
        SmallVector<Value> arguments = {arena, variableBlock()};
        llvm::append_range(arguments, addressesOf(group.getArguments()));
        return callKernel(group, group.getKernel(), arguments);
      })
      .Case([&](drt::MatmulUpdateOp update) { return convertMatmulUpdate(update); })
      .Case([&](drt::BarrierOp) {
        callRuntime("drt_barrier", {});
        return success();
      })
      .Default([](Operation *other) { return other->emitOpError("has no call of the runtime"); });
}

LogicalResult EntryConverter::convertJoined(FlatSymbolRefAttr descriptor, Value a, Value b, Value packed, Value bias,
                                            Value result) {
  auto [a0, strideA] = replicated(a);
  auto [c0, strideC] = replicated(result);
  callRuntime("drt_matmul_joined", {number32(program.sites.primitives++), symbolAddress(descriptor), strideA, strideC,
                                    a0, address(b), packed ? address(packed) : null(),
                                    number64(packed ? countElements(packed) : 0), bias ? address(bias) : null(), c0});
  return success();
}

void EntryConverter::callRoutine(StringRef name, ArrayRef<int64_t> numbers, ArrayRef<Value> tensors,
                                 ArrayRef<int64_t> bytes, size_t inputs) {
  const std::string symbol = ("drt_routine_" + name).str();
  if (!program.isForDevices) {
    callRuntime(symbol, {symbolAddress(describeNumbers(program.tables, numbers)), storeAddresses(tensors)});
    return;
  }
  Type ptr = program.tables.ptr;
  callOnHost(FlatSymbolRefAttr::get(declareRuntime(symbol, {ptr, ptr, ptr})), numbers, tensors, bytes, inputs);
}

void EntryConverter::callOnHost(FlatSymbolRefAttr routine, ArrayRef<int64_t> numbers, ArrayRef<Value> tensors,
                                ArrayRef<int64_t> bytes, size_t inputs) {
  Value given = numbers.empty() ? null() : symbolAddress(describeNumbers(program.tables, numbers));
  callRuntime("drt_call_on_host",
              {symbolAddress(routine), given, storeAddresses(tensors),
               symbolAddress(describeNumbers(program.tables, bytes)), number32(static_cast<int32_t>(inputs)),
               number32(static_cast<int32_t>(tensors.size()))});
}

FlatSymbolRefAttr EntryConverter::makeRoutine(LLVM::LLVMFuncOp kernel) {
  const std::string name = (kernel.getSymName() + "_on_host").str();
  auto symbol = FlatSymbolRefAttr::get(builder.getContext(), name);
  if (program.symbols.lookup(name))
    return symbol;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(kernel);
  Type ptr = program.tables.ptr;
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), {ptr, ptr, ptr});
  auto routine = LLVM::LLVMFuncOp::create(builder, kernel.getLoc(), name, type, LLVM::Linkage::Internal);
  markAsKernel(routine);
  program.symbols.insert(routine);
  Block *block = routine.addEntryBlock(builder);
  builder.setInsertionPointToStart(block);
  SmallVector<Value> operands;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    operands.push_back(LLVM::LoadOp::create(builder, ptr, offset(block->getArgument(2), 8 * static_cast<int64_t>(i))));
  LLVM::CallOp::create(builder, kernel, operands);
  LLVM::ReturnOp::create(builder, ValueRange());
  return symbol;
}

void EntryConverter::copyBytes(Value to, Value from, int64_t count) {
  Value bytes = number64(count);
  if (program.isForDevices)
    callRuntime("drt_copy", {to, from, bytes});
  else
    LLVM::MemcpyOp::create(builder, to, from, bytes, /*isVolatile=*/false);
}

LogicalResult EntryConverter::convertLaunch(drt::LaunchOp op) {
  SmallVector<Value> operands = addressesOf(op.getOperands());
  llvm::append_range(operands, addressesOf(op.getResults()));
  auto kernel = program.symbols.lookup<LLVM::LLVMFuncOp>(op.getKernel());
  if (program.isForDevices && kernel) {
    callOnHost(makeRoutine(kernel), {}, operands, bytesOf(op), op.getNumOperands());
    return success();
  }
  if (program.isForDevices)
    return callKernel(op, op.getKernel(), operands);
  if (auto divided = kernel ? kernel->getAttrOfType<DenseI64ArrayAttr>(drt::kDividedAttr) : nullptr) {
    FailureOr<Value> parts = rangeKernel(op, op.getKernel(), operands.size(), /*hasGradient=*/false);
    if (failed(parts))
      return failure();
    callRuntime("drt_parallel_for", {number64(divided[0]), number64(divided[1]), *parts, storeAddresses(operands)});
    return success();
  }
  if (!kernel)
    return op.emitOpError("calls a kernel that is no LLVM function: ") << op.getKernelAttr();
  if (kernel.getNumArguments() != operands.size())
    return op.emitOpError("has ") << operands.size() << " tensors, the kernel " << kernel.getNumArguments();
  LLVM::CallOp::create(builder, kernel, operands);
  return success();
}

Value EntryConverter::storeAddresses(ArrayRef<Value> tensors) {
  Value array = pointerArray(std::max<size_t>(tensors.size(), 1));
  for (auto [i, tensor] : llvm::enumerate(tensors))
    LLVM::StoreOp::create(builder, tensor, offset(array, 8 * static_cast<int64_t>(i)));
  return array;
}

LogicalResult EntryConverter::callKernel(Operation *op, StringRef name, ArrayRef<Value> arguments) {
  auto number = program.kernelNumbers.find(name);
  if (number == program.kernelNumbers.end())
    return op->emitOpError("calls @") << name << ", which gpu.module @" << drt::kKernelModule
                                      << " does not have; run drt-schedule-for-gpu";
  if (unsigned needed = program.kernels[number->second].getNumArguments(); needed != arguments.size())
    return op->emitOpError("has ") << arguments.size() << " tensors, the kernel @" << name << " " << needed;
  Value array = storeAddresses(arguments);
  callRuntime("drt_launch", {number32(number->second), array});
  return success();
}

LogicalResult EntryConverter::convertConv2D(Operation *op) {
  bool hasBias = false;
  int32_t epilogue = 0;
  StringRef name = "drt_conv2d_grad_filter";
  SmallVector<Value> tensors = llvm::map_to_vector(op->getOperands(), [&](Value tensor) { return address(tensor); });
  if (auto forward = dyn_cast<drt::Conv2DOp>(op)) {
    name = "drt_conv2d";
    hasBias = forward.getBias() != nullptr;
    epilogue = forward.getEpilogue();
    if (!hasBias)
      tensors.push_back(null());
  } else if (isa<drt::Conv2DGradInputOp>(op)) {
    name = "drt_conv2d_grad_input";
  }
  auto numbers = op->getAttrOfType<DenseI64ArrayAttr>("descriptor");
  FlatSymbolRefAttr descriptor = describeConv2D(program.tables, op, numbers, hasBias, epilogue);
  SmallVector<Value> arguments = {number32(program.sites.primitives++), symbolAddress(descriptor)};
  llvm::append_range(arguments, tensors);
  arguments.push_back(address(op->getResult(0)));
  callRuntime(name, arguments);
  return success();
}

LogicalResult EntryConverter::convertPool(Operation *op) {
  auto numbers = op->getAttrOfType<DenseI64ArrayAttr>("descriptor");
  auto kind = op->getAttrOfType<IntegerAttr>("kind").getInt();
  FlatSymbolRefAttr descriptor = describePool(program.tables, op, kind, numbers);
  SmallVector<Value> arguments = {number32(program.sites.primitives++), symbolAddress(descriptor)};
  if (isa<drt::PoolGradOp>(op) && op->getNumOperands() == 1)
    arguments.append({null(), null()}); // the average's gradient needs neither input nor output
  for (Value tensor : llvm::concat<Value>(op->getOperands(), op->getResults()))
    arguments.push_back(address(tensor));
  callRuntime(isa<drt::PoolOp>(op) ? "drt_pool" : "drt_pool_grad", arguments);
  return success();
}

LogicalResult EntryConverter::convertRandom(Operation *op) {
  auto random = dyn_cast<drt::RandomOp>(op);
  auto distribution = op->getAttrOfType<IntegerAttr>("distribution").getInt();
  FlatSymbolRefAttr descriptor =
      describeRandom(program.tables, op, distribution, random ? random.getSeed() : 0, random ? random.getSeed2() : 0,
                     op->hasAttr("per_replica"), random ? random.getReserved() : 0);
  ValueRange bounds = random ? ValueRange(random.getBounds()) : cast<drt::RandomStatelessOp>(op).getBounds();
  if (bounds.size() > 2)
    return op->emitOpError("needs two bounds at most");
  SmallVector<Value> arguments;
  if (random)
    arguments.push_back(number32(getRandomState(op)));
  arguments.push_back(symbolAddress(descriptor));
  if (!random)
    arguments.push_back(address(cast<drt::RandomStatelessOp>(op).getSeed()));
  for (size_t i = 0; i < 2; ++i)
    arguments.push_back(i >= bounds.size() ? null() : address(bounds[i]));
  arguments.push_back(address(op->getResult(0)));
  callRuntime(random ? "drt_random" : op->hasAttr("keyed") ? "drt_random_keyed" : "drt_random_stateless", arguments);
  return success();
}

LogicalResult EntryConverter::convertDraw(drt::DrawOp op) {
  SmallVector<Value> arguments;
  if (!op.getKey())
    arguments.push_back(number32(getRandomState(op)));
  arguments.push_back(symbolAddress(describeRandom(program.tables, op, op.getDistribution(), op.getSeed().value_or(0),
                                                   op.getSeed2().value_or(0), op.getPerReplica(), op.getReserved())));
  if (op.getKey())
    arguments.push_back(address(op.getKey()));
  for (size_t i = 0; i < 2; ++i)
    arguments.push_back(i >= op.getBounds().size() ? null() : address(op.getBounds()[i]));
  Value draw = entryMemory(getRuntimeType<drt_draw>(program.tables));
  arguments.push_back(draw);
  callRuntime(!op.getKey() ? "drt_draw_random" : op.getKeyed() ? "drt_draw_keyed" : "drt_draw_stateless", arguments);
  addresses[op.getResult()] = draw;
  return success();
}

/// A node's batches draw on: those before an update's last one, which another entry runs, and the last.
int32_t EntryConverter::getRandomState(Operation *op) {
  const bool isOfStep = tables.name == "step" || tables.name == "accumulate";
  auto generator = op->getAttrOfType<StringAttr>(dfg::kGeneratorAttr);
  std::string name = (generator ? generator.getValue() : dfg::getNodeName(op)).str();
  if (!generator) {
    if (name.empty())
      return program.sites.randomStates++;
    name += "#" + std::to_string(drawing[name]++);
  }
  auto [found, isNew] = (isOfStep ? program.generators : generators).try_emplace(name, program.sites.randomStates);
  program.sites.randomStates += isNew;
  return found->second;
}

} // namespace distc
