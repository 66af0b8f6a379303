//===- NodeTable.h - dfg's operations by their names in TensorFlow -----*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Read from the operations' NodeInterface, so that an operation is declared in ODS
// and nowhere else.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_NODETABLE_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_NODETABLE_H

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/TypeRules.h"
#include "dialects/dfg/tensorflow/graph.pb.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <optional>
#include <vector>

namespace distc::tf {

struct KnownNode {
  mlir::RegisteredOperationName name;
  llvm::ArrayRef<llvm::StringLiteral> tensorFlowNames;
  llvm::SmallVector<dfg::TypeRule, 4> types;
  bool isPure, isUpdate;

  /// The ODS attribute of this name, null where the operation declares none.
  mlir::StringAttr getAttributeName(llvm::StringRef attribute) const;
};

class NodeTable {
public:
  explicit NodeTable(mlir::MLIRContext *context);

  struct Match {
    const KnownNode *node = nullptr;
    unsigned nameIndex = 0;
  };
  Match find(llvm::StringRef tensorFlowName) const { return byTensorFlowName.lookup(tensorFlowName); }
  const KnownNode *find(mlir::OperationName name) const { return byName.lookup(name); }

private:
  std::vector<std::unique_ptr<KnownNode>> nodes;
  llvm::StringMap<Match> byTensorFlowName;
  llvm::DenseMap<mlir::OperationName, const KnownNode *> byName;
};

/// Which of its TensorFlow names `op` has by what it works on: 0, or 1 for a resource variable or a stateful call.
/// `isReference` tells of a variable whether it is a reference variable.
unsigned getNameIndex(mlir::Operation *op, llvm::function_ref<bool(llvm::StringRef variable)> isReference);

/// What a type attribute's value follows to: one type or count (`scalar`), or a list of types.
struct TypeValue {
  bool isCount = false, isList = false;
  int64_t scalar = 0;
  llvm::SmallVector<DataType> types;
};
/// None where it does not follow: an operand of unknown type, or an entry that is no attribute.
std::optional<TypeValue> getTypeValue(const dfg::TypeRule &rule, mlir::Operation *op);

/// Entries of `tf` that are no attributes of the NodeDef but how it was written.
inline constexpr llvm::StringLiteral kOpKey = "$op";           // its name, where getNameIndex says another
inline constexpr llvm::StringLiteral kAbsentKey = "$absent";   // attributes that it left to their defaults
inline constexpr llvm::StringLiteral kOutputsKey = "$outputs"; // in functions: how its outputs are called
inline constexpr llvm::StringLiteral kRestKey = "$rest";       // other fields, serialized

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_NODETABLE_H
