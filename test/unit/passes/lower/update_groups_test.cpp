//===- update_groups_test.cpp - Groups of updates do what range kernels do ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "host_kernels.h"

#include "dialects/dfg/Dfg.h"
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Pass/PassManager.h"
#include "passes/lower/Passes.h"
#include "passes/lower/kernels/RangeKernel.h"
#include "passes/lower/program/EmitObject.h"
#include "passes/lower/program/LinkExecutable.h"

#include <catch2/catch.hpp>
#include <cstring>

using namespace distc;
using namespace distc::test;
using namespace mlir;

namespace {

// The variables of a group: more than a block of threads, no multiple of a vector; less than a vector; one vector.
constexpr int64_t kCounts[] = {2051, 3, 4};
constexpr int64_t kPlaceAlignment = 256, kReplicas = 2;

// An operation of an optimizer with a dense gradient, its operands made up.
struct Optimizer {
  Operation *op = nullptr;
  dfg::UpdateInterface update;
  unsigned handles = 0, scalars = 0;

  bool isHandle(unsigned operand) { return llvm::is_contained(update.getWrittenOperands(), operand); }
  bool isGradient(unsigned operand) { return static_cast<int>(operand) == update.getGradientOperand(); }
};

Operation *makeOperation(OpBuilder &b, OperationName name, llvm::function_ref<Type(unsigned)> typeOf,
                         unsigned operands) {
  OperationState state(b.getUnknownLoc(), name);
  for (unsigned i = 0; i < operands; ++i)
    state.operands.push_back(
        UnrealizedConversionCastOp::create(b, b.getUnknownLoc(), typeOf(i), ValueRange()).getResult(0));
  return b.create(state);
}

// How many operands the operation has is found by trying. Null where it is no dense optimizer.
Optimizer makeOptimizer(OpBuilder &b, OperationName name, int64_t count) {
  ScopedDiagnosticHandler quiet(b.getContext(), [](Diagnostic &) { return success(); });
  auto scalar = RankedTensorType::get({}, b.getF32Type()), vector = RankedTensorType::get({count}, b.getF32Type());
  for (unsigned operands = 2; operands < 16; ++operands) {
    Operation *probe = makeOperation(b, name, [&](unsigned) { return scalar; }, operands);
    auto update = dyn_cast<dfg::UpdateInterface>(probe);
    if (!update || !update.isOptimizerUpdate() || update.getIndicesOperand() >= 0)
      return {};
    Optimizer made;
    made.update = update;
    made.op = makeOperation(
        b, name,
        [&](unsigned i) -> Type {
          if (made.isHandle(i))
            return dfg::RefType::get(b.getContext(), vector);
          return made.isGradient(i) ? vector : scalar;
        },
        operands);
    if (failed(made.op->getName().verifyInvariants(made.op)))
      continue;
    made.update = cast<dfg::UpdateInterface>(made.op);
    made.handles = made.update.getWrittenOperands().size();
    made.scalars = operands - made.handles - 1;
    return made;
  }
  return {};
}

// The plan of one update: the gradients in a bucket at the arena's begin, one after the other, as are the variables in
// their block.
class Plan {
public:
  Plan(MLIRContext &context, OperationName optimizer)
      : module(ModuleOp::create(UnknownLoc::get(&context))),
        b(UnknownLoc::get(&context), OpBuilder::atBlockEnd(module->getBody())) {
    Type f32 = b.getF32Type();
    const int64_t arena = bucketPlace(std::size(kCounts));
    auto entry = drt::EntryOp::create(b, "step");
    b.setInsertionPointToStart(&entry.getBody().front());
    SmallVector<Value> gradients, scalars;
    SmallVector<Attribute> names;
    for (auto [i, count] : llvm::enumerate(kCounts)) {
      gradients.push_back(drt::LaunchOp::create(b, TypeRange{RankedTensorType::get({count}, f32)}, "gradient",
                                                ValueRange(), b.getDenseI64ArrayAttr({bucketPlace(i)}))
                              .getResult(0));
      names.push_back(b.getStringAttr(std::to_string(i)));
    }
    auto start = drt::AllReduceStartOp::create(b, 0, /*mean=*/true, b.getArrayAttr(names), gradients);
    start.setAt(ArrayRef<int64_t>{0});
    drt::AllReduceWaitOp::create(b, 0);
    for (auto [i, count] : llvm::enumerate(kCounts))
      addUpdate(optimizer, i, count, scalars, entry);
    b.setInsertionPointToStart(module->getBody());
    auto task = drt::TaskAttr::get(b.getContext(), "worker", 0, "localhost", kReplicas, 0);
    drt::ProgramOp::create(b, "by hand", "AllReduce", "cuda", /*batch=*/0, b.getArrayAttr(task), FlatSymbolRefAttr(),
                           ArrayAttr(), IntegerAttr(), b.getI64IntegerAttr(arena),
                           b.getI64IntegerAttr(place(std::size(kCounts), handles)));
  }

  // Where variable or slot `handle` of member i begins, in bytes; of the block's end with i = the members.
  int64_t place(size_t i, unsigned handle) const {
    int64_t at = 0;
    for (size_t before = 0; before < i; ++before)
      at += handles * bytesOf(before);
    return at + (i < std::size(kCounts) ? handle * bytesOf(i) : 0);
  }
  static int64_t bucketPlace(size_t i) {
    int64_t at = 0;
    for (size_t before = 0; before < i; ++before)
      at += static_cast<int64_t>(llvm::alignTo(kCounts[before] * sizeof(float), 64));
    return at;
  }
  static int64_t bytesOf(size_t i) {
    return static_cast<int64_t>(llvm::alignTo(kCounts[i] * sizeof(float), kPlaceAlignment));
  }

  OwningOpRef<ModuleOp> module;
  unsigned handles = 0, numScalars = 0;
  bool isOptimizer = true;

private:
  void addUpdate(OperationName name, size_t member, int64_t count, SmallVectorImpl<Value> &scalars,
                 drt::EntryOp entry) {
    ModuleOp scratch = ModuleOp::create(b.getLoc());
    OpBuilder inner = OpBuilder::atBlockEnd(scratch.getBody());
    Optimizer optimizer = makeOptimizer(inner, name, count);
    if (!optimizer.op) {
      isOptimizer = false;
      scratch.erase();
      return;
    }
    handles = optimizer.handles;
    numScalars = optimizer.scalars;
    lower::RangeKernel kernel(optimizer.update, /*fromBucket=*/true);
    SmallVector<Attribute> variables;
    auto type = RankedTensorType::get({count}, b.getF32Type());
    unsigned handle = 0;
    for (unsigned operand : optimizer.update.getWrittenOperands()) {
      kernel.addVariable(operand, type);
      variables.push_back(declare(member, handle++, type, entry));
    }
    unsigned scalar = 0;
    for (unsigned operand = 0; operand < optimizer.op->getNumOperands(); ++operand) {
      if (optimizer.isHandle(operand) || optimizer.isGradient(operand))
        continue;
      auto scalarType = RankedTensorType::get({}, b.getF32Type());
      if (scalars.size() == scalar)
        scalars.push_back(drt::FeedOp::create(b, scalarType, std::to_string(scalar), false));
      kernel.addArgument(operand, scalarType);
      ++scalar;
    }
    std::string kernelName = "update_" + std::to_string(member);
    REQUIRE(succeeded(kernel.build(*module, kernelName)));
    scratch.erase();
    drt::UpdateOp::create(b, kernelName, b.getArrayAttr(variables), b.getI32IntegerAttr(0),
                          b.getI64IntegerAttr(static_cast<int64_t>(member)), count, scalars, IntegerAttr(),
                          IntegerAttr());
  }

  Attribute declare(size_t member, unsigned handle, RankedTensorType type, drt::EntryOp entry) {
    OpBuilder top(entry);
    std::string name = "v" + std::to_string(member) + "_" + std::to_string(handle);
    drt::VariableOp::create(top, b.getLoc(), name, type, true, true, StringAttr(), DenseI64ArrayAttr(),
                            DenseI64ArrayAttr(), IntegerAttr(), top.getI64IntegerAttr(place(member, handle)),
                            IntegerAttr());
    return FlatSymbolRefAttr::get(b.getContext(), name);
  }

  ImplicitLocOpBuilder b;
};

// The range kernels as the CPU runs them.
std::unique_ptr<Library> compileRangeKernels(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = module.clone();
  for (Operation &op : llvm::make_early_inc_range(*copy->getBody()))
    if (isa<drt::ProgramOp, drt::VariableOp, drt::EntryOp>(op))
      op.erase();
  PassManager manager(copy->getContext());
  buildLowerKernelsPipeline(manager);
  REQUIRE(succeeded(manager.run(*copy)));
  copy->walk([](LLVM::LLVMFuncOp function) { function.setLinkage(LLVM::Linkage::External); });
  llvm::LLVMContext context;
  const Target target = llvm::cantFail(Target::parse("cpu"));
  std::unique_ptr<llvm::Module> code = emitLLVM(*copy, context);
  REQUIRE(code);
  const ObjectCode object = llvm::cantFail(emitObject(*code, target));
  return std::make_unique<Library>(llvm::cantFail(linkSharedObject(object)));
}

// Any number of pointers behind the range.
void callRange(void *kernel, int64_t count, std::vector<void *> p) {
  p.resize(14, nullptr);
  using Kernel = void (*)(int64_t, int64_t, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                          void *, void *, void *, void *, void *);
  reinterpret_cast<Kernel>(kernel)(0, count, p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10], p[11],
                                   p[12], p[13]);
}

// Between a quarter and a half: positive, as roots of slots want it, and a mean of squares is more than a mean's
// square.
std::vector<char> numbers(int64_t bytes, float scale) {
  std::vector<char> data(static_cast<size_t>(bytes));
  for (size_t i = 0; i < data.size() / sizeof(float); ++i) {
    float value = scale * (0.25f + static_cast<float>((i * 7919) % 1000) / 4000);
    std::memcpy(&data[i * sizeof(float)], &value, sizeof value);
  }
  return data;
}

void compare(const std::vector<char> &found, const std::vector<char> &expected) {
  for (size_t i = 0; i < found.size() / sizeof(float); ++i) {
    float x, y;
    std::memcpy(&x, &found[i * sizeof(float)], sizeof x);
    std::memcpy(&y, &expected[i * sizeof(float)], sizeof y);
    INFO("element " << i);
    REQUIRE(x == Approx(y).epsilon(2e-6).margin(1e-7));
  }
}

void check(MLIRContext &context, Plan &plan) {
  std::unique_ptr<Library> ranges = compileRangeKernels(*plan.module);
  PassManager manager(&context);
  manager.addPass(createGroupUpdates());
  REQUIRE(succeeded(manager.run(*plan.module)));
  HostKernels kernels(*plan.module);

  // The sum of two replicas' gradients, whose mean is half of it: exact in floats.
  std::vector<char> sum = numbers(Plan::bucketPlace(std::size(kCounts)), 2),
                    mean = numbers(static_cast<int64_t>(sum.size()), 1);
  std::vector<char> grouped = numbers(plan.place(std::size(kCounts), plan.handles), 1), expected = grouped;
  std::vector<float> scalars = {0.125f, 0.25f, 0.375f, 0.0625f, 0.5f, 0.3f, 0.2f, 0.1f, 0.15f, 0.35f};
  std::vector<void *> arguments = {sum.data(), grouped.data()};
  for (unsigned i = 0; i < plan.numScalars; ++i)
    arguments.push_back(&scalars[i]);
  kernels.run("update_group_0", arguments);
  for (size_t i = 0; i < std::size(kCounts); ++i) {
    std::vector<void *> pointers = {&mean[static_cast<size_t>(Plan::bucketPlace(i))]};
    for (unsigned handle = 0; handle < plan.handles; ++handle)
      pointers.push_back(&expected[static_cast<size_t>(plan.place(i, handle))]);
    for (unsigned scalar = 0; scalar < plan.numScalars; ++scalar)
      pointers.push_back(&scalars[scalar]);
    callRange(ranges->find("update_" + std::to_string(i)), kCounts[i], pointers);
  }
  CHECK(grouped != numbers(static_cast<int64_t>(grouped.size()), 1));
  compare(grouped, expected);
}

TEST_CASE("a group of updates does what range kernels do, for every optimizer") {
  std::unique_ptr<MLIRContext> context = createContext();
  context->loadAllAvailableDialects();
  int optimizers = 0;
  for (RegisteredOperationName name : context->getRegisteredOperationsByDialect("dfg")) {
    if (!name.hasInterface<dfg::UpdateInterface>())
      continue;
    INFO(name.getStringRef().str());
    Plan plan(*context, name);
    if (!plan.isOptimizer)
      continue;
    ++optimizers;
    check(*context, plan);
  }
  // Those of TensorFlow's training_ops with a dense gradient.
  CHECK(optimizers >= 15);
}

} // namespace
