//===- DrtInterfaces.td - What a plan's operations do to memory ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_INTERFACES
#define DRT_INTERFACES

include "mlir/IR/OpBase.td"

def DRT_AccessInterface : OpInterface<"AccessInterface"> {
  let cppNamespace = "::distc::drt";
  let description = [{
    What an operation of an entry reads and writes of memory that the replicas of a task share, or that the runtime reduces in place, and whether
    the replicas meet in it. `drt-insert-barriers` and `drt-verify-order` ask nothing else of an operation, so what is not said here is not ordered.
    Not said: that an operation writes its results, which lie in the replica's own arena, unless other replicas access them too.
  }];
  let methods = [
    InterfaceMethod<[{
      The accesses of one replica, in any order. By default every tensor operand is read whole.
    }], "::llvm::SmallVector<::distc::drt::Access>", "getAccesses", (ins), "", [{
      return ::distc::drt::readWhole($_op->getOperands());
    }]>,
    InterfaceMethod<[{
      The replicas of the task meet before the operation's accesses: what each did earlier is done when any of them goes on.
    }], "bool", "meetsBefore", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
      The replicas of the task meet behind the operation's accesses.
    }], "bool", "meetsAfter", (ins), "", [{ return false; }]>,
  ];
}

def DRT_ProductInterface : OpInterface<"ProductInterface"> {
  let cppNamespace = "::distc::drt";
  let description = [{
    A product of matrices or a convolution, of elements that devices may multiply in fewer bits than they have: "tf32" of float32, null for as they are. Products in bfloat16 have operands of that type.
  }];
  let methods = [
    InterfaceMethod<"What elements are multiplied as.", "::mlir::StringAttr", "getPrecisionAttr">,
    InterfaceMethod<"What elements are multiplied as.", "void", "setPrecisionAttr", (ins "::mlir::StringAttr":$precision)>,
  ];
}

def DRT_ScopeInterface : OpInterface<"ScopeInterface"> {
  let cppNamespace = "::distc::drt";
  let description = [{
    An operation of an entry that is work: a row of the plan, and a scope of timelines. What has none is an address, or a fetch.
  }];
  let methods = [
    StaticInterfaceMethod<"The category that timelines, plans and reports show it in.", "::llvm::StringRef", "getScopeCategory">,
  ];
}
// `DRT_Scope<"kernel">` among an operation's traits says its category.
class DRT_InScope<string category> : NativeOpTrait<"InScope<\"" # category # "\">::Impl"> { let cppNamespace = "::distc::drt"; }
class DRT_Scope<string category> : TraitList<[DRT_InScope<category>, DRT_ScopeInterface]>;

#endif // DRT_INTERFACES
