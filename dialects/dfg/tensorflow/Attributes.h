//===- Attributes.h - AttrValue as an attribute and back --------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_ATTRIBUTES_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_ATTRIBUTES_H

#include "dialects/dfg/tensorflow/graph.pb.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace distc::tf {

using AttrMap = google::protobuf::Map<std::string, AttrValue>;

/// The value as an attribute; what MLIR has no form for becomes `#dfg.raw`. Null, and `problem` says why, where the
/// value contradicts itself.
mlir::Attribute importAttribute(const AttrValue &value, mlir::MLIRContext *context, std::string &problem);

/// The message's bytes, the same for equal messages; a message's own order of its maps changes from run to run. False
/// where they are more than the 2 GB that a message can have.
bool serialize(const google::protobuf::Message &message, std::string &bytes);
std::string serialize(const google::protobuf::Message &message);

/// The inverse of importAttribute. Attributes that never came from TensorFlow are an error: false.
bool exportAttribute(mlir::Attribute attribute, AttrValue &value);

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_ATTRIBUTES_H
