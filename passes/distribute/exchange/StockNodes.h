//===- StockNodes.h - Makes nodes of stock TensorFlow -------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_EXCHANGE_STOCKNODES_H
#define DISTC_PASSES_DISTRIBUTE_EXCHANGE_STOCKNODES_H

#include "dialects/dfg/Dfg.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

namespace distc {

/// Makes nodes in one block, each with a name of its own under a scope, at one point of the block. Nodes that dfg has
/// no operation for are `dfg.opaque`.
class StockNodes {
public:
  explicit StockNodes(mlir::Block &block);

  /// Where the next nodes stand, and what their names begin with.
  void setPlace(mlir::Operation *before, llvm::StringRef scope);
  /// What names begin with from here on; returns what they began with.
  std::string setScope(llvm::StringRef scope) { return std::exchange(this->scope, scope.str()); }
  void setPlaceAtEnd(llvm::StringRef scope);
  /// `name` under the scope, with a number behind it where a node has that name.
  std::string getUniqueName(llvm::StringRef name) const;

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::NamedAttribute attribute(llvm::StringRef name, mlir::Attribute value) {
    return builder.getNamedAttr(name, value);
  }
  mlir::NamedAttribute attribute(llvm::StringRef name, mlir::Type value) {
    return attribute(name, mlir::TypeAttr::get(value));
  }
  mlir::NamedAttribute attribute(llvm::StringRef name, int64_t value) {
    return attribute(name, builder.getI64IntegerAttr(value));
  }
  mlir::NamedAttribute attribute(llvm::StringRef name, llvm::StringRef value) {
    return attribute(name, builder.getStringAttr(value));
  }
  mlir::NamedAttribute types(llvm::StringRef name, mlir::ArrayRef<mlir::Type> values);

  /// Any operation of TensorFlow, with all the attributes that it has no defaults for.
  mlir::Operation *make(llvm::StringRef op, llvm::StringRef name, mlir::ValueRange operands, mlir::TypeRange results,
                        mlir::ArrayRef<mlir::NamedAttribute> attributes = {});
  /// The same with one result.
  mlir::Value get(llvm::StringRef op, llvm::StringRef name, mlir::ValueRange operands, mlir::Type result,
                  mlir::ArrayRef<mlir::NamedAttribute> attributes = {}) {
    return make(op, name, operands, result, attributes)->getResult(0);
  }
  /// A NoOp that waits for `nodes`.
  mlir::Operation *group(llvm::StringRef name, mlir::ArrayRef<mlir::Operation *> nodes);

  mlir::Value constant(llvm::StringRef name, mlir::DenseElementsAttr value);
  mlir::Value constant(llvm::StringRef name, int32_t value);
  mlir::Value constant(llvm::StringRef name, mlir::ArrayRef<int32_t> values);
  /// `value` in the floating-point type of `like`.
  mlir::Value scalar(llvm::StringRef name, double value, mlir::Value like);

  /// The handle of a variable of dfg; a variable's value; what gives it a new one.
  mlir::Value handle(llvm::StringRef name, mlir::FlatSymbolRefAttr variable, mlir::Type type);
  mlir::Value read(llvm::StringRef name, mlir::Value handle, mlir::TensorType type);
  mlir::Operation *assign(llvm::StringRef name, mlir::Value handle, mlir::Value value);
  mlir::Value identity(llvm::StringRef name, mlir::Value value);
  mlir::Value addN(llvm::StringRef name, mlir::ArrayRef<mlir::Value> values);
  mlir::Value multiply(llvm::StringRef name, mlir::Value value, double factor);
  mlir::Value binary(llvm::StringRef op, llvm::StringRef name, mlir::Value x, mlir::Value y);
  mlir::Value cast(llvm::StringRef name, mlir::Value value, mlir::Type elementType);
  mlir::Value reshape(llvm::StringRef name, mlir::Value value, mlir::ArrayRef<int64_t> shape);
  /// Along the first axis.
  mlir::Value concat(llvm::StringRef name, mlir::ArrayRef<mlir::Value> values);
  mlir::Value pack(llvm::StringRef name, mlir::ArrayRef<mlir::Value> values);

  /// One tensor of rank 1 of what has static shapes, and its parts in the types of `like` again.
  mlir::Value flatten(mlir::ArrayRef<mlir::Value> values);
  llvm::SmallVector<mlir::Value> unflatten(mlir::Value flat, mlir::ArrayRef<mlir::Value> like);
  static bool hasStaticShape(mlir::Value value);
  /// Elements of what has a static shape.
  static int64_t count(mlir::Value value);

  /// The node of this name, null where there is none.
  mlir::Operation *find(llvm::StringRef name) const { return nodes.lookup(name); }
  /// Forgets a node that is erased.
  void forget(mlir::Operation *op);
  /// Gives `op` a name that must be free.
  void rename(mlir::Operation *op, llvm::StringRef name);

  /// `op` runs after `other`; nothing where it is named already.
  static void addControl(mlir::Operation *op, llvm::ArrayRef<mlir::Operation *> others);

private:
  mlir::Location locate(llvm::StringRef name);
  template <typename Op> Op track(Op op) {
    nodes[dfg::getNodeName(op)] = op;
    return op;
  }

  mlir::OpBuilder builder;
  std::string scope;
  llvm::StringMap<mlir::Operation *> nodes;
};

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_EXCHANGE_STOCKNODES_H
