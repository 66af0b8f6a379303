//===- NodeSignature.h - A node against its operation's definition --------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What TensorFlow checks of every NodeDef of a graph (ValidateNodeDef and
// InOutTypesForNode of node_def_util.cc): attributes are there, of their kind and among
// the allowed values; they say how many inputs and outputs there are, of which types.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_NODESIGNATURE_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_NODESIGNATURE_H

#include "dialects/dfg/tensorflow/graph.pb.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace distc::tf {

using ArgList = google::protobuf::RepeatedPtrField<OpDef::ArgDef>;

/// What `node` says of attribute `name`, else the definition's default; null where neither does.
const AttrValue *getAttributeOrDefault(const NodeDef &node, const OpDef &def, llvm::StringRef name);

/// Fails, and `problem` says why, where attributes are missing, of another kind than `def` has them, or outside of what
/// it allows. `isNewer`: whether a newer TensorFlow wrote the node than the one that `def` is of, so that it may know
/// more attributes and values.
bool checkAttributes(const NodeDef &node, const OpDef &def, bool isNewer, std::string &problem);

/// The types of `args`, a definition's inputs or outputs: references as `_REF`, DT_INVALID where a function's
/// instantiation says. `isComplete` is false where even their number is left to it. Fails where they are more than a
/// node can have. The node's attributes have been checked.
bool getArgTypes(const ArgList &args, const NodeDef &node, const OpDef &def, llvm::SmallVectorImpl<DataType> &types,
                 bool &isComplete, std::string &problem);

/// The number of the first output that is called `name`; -1 where there is none. The node's attributes have been
/// checked.
int getOutputNumber(llvm::StringRef name, const NodeDef &node, const OpDef &def);

/// Whether a value of type `given` is one for an input of type `wanted`: a reference is wanted as one, and may be given
/// for a value. DT_INVALID is any type.
bool isCompatible(DataType given, DataType wanted);

/// Whether TensorFlow takes the message for a shape: every size at least 0, or -1 where `isPartial`, and the number of
/// elements in 63 bits.
bool isValidShape(const TensorShapeProto &shape, bool isPartial);

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_NODESIGNATURE_H
