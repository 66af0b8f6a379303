//===- ImportBlock.h - NodeDefs into a block -------------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_IMPORTBLOCK_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_IMPORTBLOCK_H

#include "dialects/dfg/NodeOrder.h"
#include "dialects/dfg/tensorflow/GraphFile.h"
#include "dialects/dfg/tensorflow/NodeSignature.h"
#include "dialects/dfg/tensorflow/NodeTable.h"
#include "dialects/dfg/tensorflow/OpSignatures.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSet.h"

namespace distc::tf {

/// What all blocks of one file share.
struct ImportContext {
  ImportContext(const GraphFile &file, mlir::ModuleOp module);

  /// An error in the file, at `node` where it is not null.
  mlir::InFlightDiagnostic fail(const NodeDef *node) const;
  /// The variable that `node` (VarHandleOp, VariableV2) makes a handle of; null where MLIR has no form for its type.
  dfg::VariableOp getVariable(const NodeDef &node, bool isReference);
  /// The variable that a function captured, of which its graph has a placeholder.
  dfg::VariableOp addCaptured(const NodeDef &node, mlir::Type type);
  bool isReference(llvm::StringRef variable) const { return references.contains(variable); }
  /// From the file's library of functions, TensorFlow's own, else from the MetaGraphDef (custom operations); or null.
  const OpDef *getOpDef(llvm::StringRef op) const;
  /// Whether its nodes do nothing but compute their results.
  bool isStateless(llvm::StringRef op) const;
  /// The operation of dfg that a NodeDef's is; none where a function of the library has its name.
  NodeTable::Match findNode(llvm::StringRef op) const {
    return functions.contains(op) ? NodeTable::Match() : table.find(op);
  }

  const GraphFile &file;
  mlir::MLIRContext *context;
  NodeTable table;
  OpSignatures signatures;
  /// Whether the graph is of a newer TensorFlow than `signatures`.
  bool isNewer;
  llvm::StringMap<const OpDef *> functions, customOps;
  llvm::StringSet<> trainable;
  bool knowsTrainable = false;
  /// Where variables are put.
  mlir::OpBuilder variables;

private:
  llvm::StringMap<dfg::VariableOp> variablesByKey;
  llvm::StringSet<> references;
};

using NodeList = google::protobuf::RepeatedPtrField<NodeDef>;

class BlockImporter {
public:
  BlockImporter(ImportContext &shared, mlir::Block *block, const NodeList &nodes);
  /// Of a function, whose nodes name inputs "node:output:index".
  BlockImporter(ImportContext &shared, mlir::Block *block, const NodeList &nodes, const ArgList &arguments);

  /// `results`: inputs that something outside of the nodes takes.
  mlir::LogicalResult run(llvm::ArrayRef<llvm::StringRef> results = {});
  /// The value that a NodeDef's input names, after run(). Null after a diagnostic.
  mlir::Value lookup(llvm::StringRef input);
  /// Its type; DT_INVALID where it is not known.
  DataType lookupType(llvm::StringRef input);

private:
  /// An output of a node, or (-1 - k, 0): argument k.
  struct Output {
    int node, output;
  };
  struct Created {
    mlir::Operation *op = nullptr;
    /// Of a reference that passes through an update: the variable's handle.
    mlir::Value handle;
  };

  /// Checks nodes by their operations' definitions, as far as there are any, and finds the types of outputs.
  mlir::LogicalResult readSignatures();
  mlir::LogicalResult readEdges();
  /// The same of inputs, by the outputs that they take.
  mlir::LogicalResult checkInputs();
  mlir::LogicalResult checkOutput(Output from, const NodeDef *user) const;
  DataType getType(Output from) const;
  std::optional<Output> parseInput(llvm::StringRef input, const NodeDef *user);
  mlir::LogicalResult createNode(int index);
  mlir::LogicalResult createCapture(int index, mlir::Type type);
  mlir::LogicalResult checkVariableTypes(const NodeDef &node, mlir::Operation *op) const;
  mlir::LogicalResult getOperands(int index, llvm::SmallVectorImpl<mlir::Value> &operands);
  mlir::Value getValue(Output from, const NodeDef *user);
  mlir::LogicalResult addAttributes(const NodeDef &node, const KnownNode *known, unsigned nameIndex,
                                    mlir::OperationState &state, llvm::SmallVectorImpl<mlir::NamedAttribute> &rest);
  void addEdges(int index, mlir::OperationState &state, llvm::SmallVectorImpl<mlir::NamedAttribute> &rest);
  void addControl(mlir::Operation *op, llvm::StringRef name);
  void getResultTypes(int index, const KnownNode &known, llvm::ArrayRef<mlir::Value> operands,
                      llvm::SmallVectorImpl<mlir::Type> &types);
  void getOpaqueTypes(int index, llvm::SmallVectorImpl<mlir::Type> &types);
  mlir::Type getElementTypeOrUnknown(DataType type) const;
  /// Gives operands that are references but wanted as values their values. False: `op` must be opaque.
  bool resolveReferences(mlir::Operation *op, int index);
  mlir::Value getReferenceValue(mlir::Operation *user, mlir::Value handle, Output from);
  /// Whether `value` is the handle of a known resource variable (and not of a reference).
  bool isResourceHandle(mlir::Value value) const;
  mlir::Operation *createOpaque(int index, llvm::ArrayRef<mlir::Value> operands, llvm::ArrayRef<mlir::Type> known);
  bool isHandleInput(const NodeDef &node, int operand) const;
  void keepTypeAttributes(const NodeDef &node, const KnownNode &known, unsigned nameIndex, mlir::Operation *op);

  ImportContext &shared;
  mlir::MLIRContext *context;
  mlir::Block *block;
  mlir::OpBuilder builder;
  const NodeList &nodes;
  bool isFunction;
  llvm::StringMap<int> nodesByName;
  /// Of node i: inputs[inputBegin[i]] ..., controls[controlBegin[i]] ...
  llvm::SmallVector<int> inputBegin, controlBegin, controls;
  llvm::SmallVector<Output> inputs;
  llvm::SmallVector<int> numOutputsUsed;
  llvm::BitVector isBackEdge;
  /// Of node i: outputTypes[outputBegin[i]] ...; all of them where areOutputsKnown[i].
  llvm::SmallVector<int> outputBegin;
  llvm::SmallVector<DataType> outputTypes, argumentTypes;
  llvm::BitVector areOutputsKnown;
  llvm::SmallVector<Created> created;
  /// In functions: how the outputs of a node are called, as far as they are used.
  llvm::DenseMap<int, llvm::SmallVector<std::pair<int, llvm::StringRef>>> outputNames;
};

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_IMPORTBLOCK_H
