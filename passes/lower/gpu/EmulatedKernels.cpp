//===- EmulatedKernels.cpp - Kernels in NVVM as code of the host ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/DeviceImages.h"

#include "passes/lower/program/EmitObject.h"
#include "passes/lower/program/KernelParts.h"
#include "passes/lower/program/LinkExecutable.h"
#include "runtime/cuda/emulator/emulated.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Operator.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

using namespace llvm;

namespace distc {
namespace {

// What reads a register, in the order of their numbers for drt_emulated_register.
constexpr Intrinsic::ID kRegisters[] = {Intrinsic::nvvm_read_ptx_sreg_tid_x,    Intrinsic::nvvm_read_ptx_sreg_tid_y,
                                        Intrinsic::nvvm_read_ptx_sreg_tid_z,    Intrinsic::nvvm_read_ptx_sreg_ntid_x,
                                        Intrinsic::nvvm_read_ptx_sreg_ntid_y,   Intrinsic::nvvm_read_ptx_sreg_ntid_z,
                                        Intrinsic::nvvm_read_ptx_sreg_ctaid_x,  Intrinsic::nvvm_read_ptx_sreg_ctaid_y,
                                        Intrinsic::nvvm_read_ptx_sreg_ctaid_z,  Intrinsic::nvvm_read_ptx_sreg_nctaid_x,
                                        Intrinsic::nvvm_read_ptx_sreg_nctaid_y, Intrinsic::nvvm_read_ptx_sreg_nctaid_z,
                                        Intrinsic::nvvm_read_ptx_sreg_laneid};
static_assert(std::size(kRegisters) == DRT_EMULATED_LANEID + 1);

// What shuffles, two types a mode, in the order of the modes' numbers.
constexpr Intrinsic::ID kShuffles[][2] = {{Intrinsic::nvvm_shfl_sync_up_i32, Intrinsic::nvvm_shfl_sync_up_f32},
                                          {Intrinsic::nvvm_shfl_sync_down_i32, Intrinsic::nvvm_shfl_sync_down_f32},
                                          {Intrinsic::nvvm_shfl_sync_idx_i32, Intrinsic::nvvm_shfl_sync_idx_f32},
                                          {Intrinsic::nvvm_shfl_sync_bfly_i32, Intrinsic::nvvm_shfl_sync_bfly_f32}};
static_assert(std::size(kShuffles) == DRT_EMULATED_BUTTERFLY + 1);

std::optional<int> getRegister(Intrinsic::ID id) {
  const auto *found = find(kRegisters, id);
  return found == std::end(kRegisters) ? std::nullopt : std::optional<int>(found - kRegisters);
}

std::optional<int> getShuffleMode(Intrinsic::ID id) {
  const auto *found = find_if(kShuffles, [&](const Intrinsic::ID(&types)[2]) { return is_contained(types, id); });
  return found == std::end(kShuffles) ? std::nullopt : std::optional<int>(found - kShuffles);
}

// libdevice's functions that the C library does not have, or has with other arguments, without the suffix of their
// type.
enum class OwnFunction { None, Rsqrt, PowerOfInteger, IsNan, IsInfinite, IsFinite };
OwnFunction getOwnFunction(StringRef name) {
  return StringSwitch<OwnFunction>(name)
      .Cases({"rsqrt", "rsqrtf"}, OwnFunction::Rsqrt)
      .Cases({"powi", "powif"}, OwnFunction::PowerOfInteger)
      .Cases({"isnand", "isnanf"}, OwnFunction::IsNan)
      .Cases({"isinfd", "isinff"}, OwnFunction::IsInfinite)
      .Cases({"isfinited", "finitef"}, OwnFunction::IsFinite)
      .Default(OwnFunction::None);
}

// Makes one module the host's. Address spaces stay: those of NVPTX are all the same memory on x86.
class Emulation {
public:
  explicit Emulation(Module &module) : module(module), i32(Type::getInt32Ty(module.getContext())) {}

  Error run() {
    SmallVector<IntrinsicInst *> intrinsics;
    SmallVector<Function *> kernels;
    for (Function &function : module) {
      if (function.getCallingConv() == CallingConv::PTX_Kernel)
        kernels.push_back(&function);
      for (Instruction &instruction : instructions(function))
        if (auto *intrinsic = dyn_cast<IntrinsicInst>(&instruction))
          intrinsics.push_back(intrinsic);
    }
    for (Function *kernel : kernels)
      checkAccesses(*kernel);
    for (IntrinsicInst *intrinsic : intrinsics)
      if (Error error = callEmulator(intrinsic))
        return error;
    for (Function &function : make_early_inc_range(module))
      if (StringRef name = function.getName(); function.isDeclaration() && name.consume_front("__nv_"))
        callLibrary(function, name.str());
    for (GlobalVariable &global : module.globals())
      if (global.getAddressSpace() == kSharedMemory)
        exportShared(global);
    for (Function *kernel : kernels)
      exportKernel(*kernel);
    return Error::success();
  }

private:
  static constexpr unsigned kSharedMemory = 3;

  FunctionCallee declare(StringRef name, Type *result, ArrayRef<Type *> arguments) {
    return module.getOrInsertFunction(name, FunctionType::get(result, arguments, /*isVarArg=*/false));
  }

  // Of what an address is computed from; null where it is no argument of the kernel.
  static Argument *getArgument(Value *address) {
    while (address) {
      if (auto *element = dyn_cast<GEPOperator>(address))
        address = element->getPointerOperand();
      else if (auto *cast = dyn_cast<AddrSpaceCastOperator>(address))
        address = cast->getPointerOperand();
      else if (auto *extract = dyn_cast<ExtractValueInst>(address))
        address = FindInsertedValue(extract->getAggregateOperand(), extract->getIndices());
      else
        return dyn_cast<Argument>(address);
    }
    return nullptr;
  }

  // Tensors lie side by side in a replica's arena, where nothing else notices an access that goes beyond its own.
  void checkAccesses(Function &kernel) {
    SmallVector<Instruction *> accesses;
    for (Instruction &instruction : instructions(kernel))
      if (isa<LoadInst, StoreInst>(instruction))
        accesses.push_back(&instruction);
    const DataLayout &layout = module.getDataLayout();
    for (Instruction *access : accesses) {
      Value *address = getLoadStorePointerOperand(access);
      Argument *argument = getArgument(address);
      uint64_t bytes = argument ? argument->getDereferenceableBytes() : 0;
      if (bytes == 0)
        continue;
      uint64_t size = layout.getTypeStoreSize(getLoadStoreType(access));
      IRBuilder<> builder(access);
      Type *i64 = builder.getInt64Ty();
      Value *offset = builder.CreateSub(builder.CreatePtrToInt(address, i64), builder.CreatePtrToInt(argument, i64));
      Value *beyond = size > bytes ? builder.getTrue() : builder.CreateICmpUGT(offset, builder.getInt64(bytes - size));
      BasicBlock *before = access->getParent();
      Instruction *end = SplitBlockAndInsertIfThen(beyond, access, /*Unreachable=*/false);
      builder.SetInsertPoint(end);
      Value *elsewhere = builder.CreateCall(
          declare("drt_emulated_beyond", builder.getPtrTy(), {i32, i64, i64, i64}),
          {builder.getInt32(argument->getArgNo()), offset, builder.getInt64(size), builder.getInt64(bytes)});
      elsewhere = builder.CreateAddrSpaceCast(elsewhere, address->getType());
      builder.SetInsertPoint(access);
      PHINode *checked = builder.CreatePHI(address->getType(), 2);
      checked->addIncoming(address, before);
      checked->addIncoming(elsewhere, end->getParent());
      access->replaceUsesOfWith(address, checked);
    }
  }

  Error callEmulator(IntrinsicInst *call) {
    IRBuilder<> builder(call);
    Value *value = nullptr;
    if (std::optional<int> which = getRegister(call->getIntrinsicID())) {
      CallInst *read = builder.CreateCall(declare("drt_emulated_register", i32, {i32}), {builder.getInt32(*which)});
      read->setDoesNotAccessMemory(); // a thread's registers never change
      value = read;
    } else if (std::optional<int> mode = getShuffleMode(call->getIntrinsicID())) {
      Value *bits = builder.CreateBitCast(call->getArgOperand(1), i32);
      value = builder.CreateCall(
          declare("drt_emulated_shuffle", i32, {i32, i32, i32, i32, i32}),
          {builder.getInt32(*mode), call->getArgOperand(0), bits, call->getArgOperand(2), call->getArgOperand(3)});
      value = builder.CreateBitCast(value, call->getType());
    } else if (call->getIntrinsicID() == Intrinsic::nvvm_mma_m16n8k16_row_col_bf16) {
      value = multiply(builder, call);
    } else if (call->getIntrinsicID() == Intrinsic::nvvm_barrier_cta_sync_aligned_all) {
      builder.CreateCall(declare("drt_emulated_barrier", builder.getVoidTy(), {}));
    } else if (call->getCalledFunction()->getName().starts_with("llvm.nvvm.")) {
      return createStringError("the emulated GPU has no '" + call->getCalledFunction()->getName() +
                               "', which the kernel '" + call->getFunction()->getName() + "' uses");
    } else {
      return Error::success();
    }
    if (value)
      call->replaceAllUsesWith(value);
    call->eraseFromParent();
    return Error::success();
  }

  // Fragments go to the emulator in memory: four words of the left matrix, two of the right one, four sums.
  Value *multiply(IRBuilder<> &builder, IntrinsicInst *call) {
    constexpr unsigned kLeft = 4, kRight = 2, kSums = 4;
    BasicBlock &entry = call->getFunction()->getEntryBlock();
    IRBuilder<> atEntry(&entry, entry.begin());
    auto reserve = [&](Type *element, unsigned count) { return atEntry.CreateAlloca(ArrayType::get(element, count)); };
    Type *f32 = builder.getFloatTy();
    Value *memory[] = {reserve(i32, kLeft), reserve(i32, kRight), reserve(f32, kSums)};
    auto place = [&](unsigned which, Type *element, unsigned i) {
      return builder.CreateConstInBoundsGEP1_64(element, memory[which], i);
    };
    for (unsigned i = 0; i < kLeft + kRight + kSums; ++i) {
      const unsigned which = i < kLeft ? 0 : i < kLeft + kRight ? 1 : 2;
      Value *given = call->getArgOperand(i);
      builder.CreateStore(given,
                          place(which, given->getType(), i - (which > 0 ? kLeft : 0) - (which > 1 ? kRight : 0)));
    }
    Type *pointer = builder.getPtrTy();
    builder.CreateCall(declare("drt_emulated_multiply", builder.getVoidTy(), {pointer, pointer, pointer}), memory);
    Value *result = PoisonValue::get(call->getType());
    for (unsigned i = 0; i < kSums; ++i)
      result = builder.CreateInsertValue(result, builder.CreateLoad(f32, place(2, f32, i)), i);
    return result;
  }

  // A function of libdevice, `name` without its prefix, is the C library's of that name, or made here.
  void callLibrary(Function &function, const std::string &name) {
    if (OwnFunction own = getOwnFunction(name); own != OwnFunction::None) {
      IRBuilder<> builder(BasicBlock::Create(module.getContext(), "", &function));
      builder.CreateRet(emitOwn(builder, own, function));
      function.setLinkage(GlobalValue::InternalLinkage);
    } else if (Function *declared = module.getFunction(name)) {
      function.replaceAllUsesWith(declared);
      function.eraseFromParent();
    } else {
      function.setName(name);
    }
  }

  Value *emitOwn(IRBuilder<> &builder, OwnFunction own, Function &function) {
    Value *x = function.getArg(0);
    Type *type = x->getType();
    switch (own) {
    case OwnFunction::Rsqrt:
      return builder.CreateFDiv(ConstantFP::get(type, 1.0), builder.CreateUnaryIntrinsic(Intrinsic::sqrt, x));
    case OwnFunction::PowerOfInteger:
      return builder.CreateBinaryIntrinsic(Intrinsic::pow, x, builder.CreateSIToFP(function.getArg(1), type));
    case OwnFunction::IsNan:
      return builder.CreateZExt(builder.createIsFPClass(x, fcNan), i32);
    case OwnFunction::IsInfinite:
      return builder.CreateZExt(builder.createIsFPClass(x, fcInf), i32);
    case OwnFunction::IsFinite:
      return builder.CreateZExt(builder.createIsFPClass(x, fcFinite), i32);
    case OwnFunction::None:
      break;
    }
    llvm_unreachable("the C library has it");
  }

  // Shared memory is one global for all threads, visible outside: nothing is known of it behind a barrier.
  void exportShared(GlobalVariable &global) {
    global.setInitializer(Constant::getNullValue(global.getValueType()));
    global.setLinkage(GlobalValue::ExternalLinkage);
    global.setVisibility(GlobalValue::HiddenVisibility);
    global.setAlignment(Align(16));
  }

  // `void NAME(void **params)` and `const int32_t NAME_parameters`, how many there are: it calls the kernel with what
  // the parameters point to. `noalias` stays: what an optimization may do with it on a GPU, it may do here.
  void exportKernel(Function &kernel) {
    std::string name = kernel.getName().str();
    kernel.setName(name + ".thread");
    kernel.setCallingConv(CallingConv::C);
    kernel.setLinkage(GlobalValue::InternalLinkage);
    kernel.addFnAttr(kKernelFunctionAttr);
    IRBuilder<> builder(module.getContext());
    auto *type = FunctionType::get(builder.getVoidTy(), {builder.getPtrTy()}, /*isVarArg=*/false);
    Function *exported = Function::Create(type, GlobalValue::ExternalLinkage, name, module);
    builder.SetInsertPoint(BasicBlock::Create(module.getContext(), "", exported));
    SmallVector<Value *> arguments;
    for (Argument &argument : kernel.args()) {
      Value *place = builder.CreateConstInBoundsGEP1_64(builder.getPtrTy(), exported->getArg(0), argument.getArgNo());
      arguments.push_back(builder.CreateLoad(argument.getType(), builder.CreateLoad(builder.getPtrTy(), place)));
    }
    builder.CreateCall(&kernel, arguments);
    builder.CreateRetVoid();
    new GlobalVariable(module, i32, /*isConstant=*/true, GlobalValue::ExternalLinkage,
                       builder.getInt32(arguments.size()), name + "_parameters");
  }

  Module &module;
  Type *i32;
};

} // namespace

Expected<std::string> emitHostKernels(Module &kernels, const Target &target, const ObjectCache &cache) {
  if (Error error = Emulation(kernels).run())
    return error;
  Expected<std::vector<ObjectCode>> objects = emitObjects(kernels, target, cache);
  if (!objects)
    return objects.takeError();
  return linkSharedObject(*objects);
}

} // namespace distc
