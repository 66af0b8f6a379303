//===- TypeRules.cpp - How a node's types follow -----------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/dfg/TypeRules.h"

#include "dialects/dfg/Dfg.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace distc::dfg {

static TypeRule parseRule(StringRef text) {
  auto [name, source] = text.split(':');
  TypeRule rule;
  if (name.consume_front("=")) {
    rule.names[0] = rule.names[1] = name;
    rule.source = TypeRule::FixedType;
    if (source == "r*")
      rule.index = TypeRule::kAllResults;
    else
      source.drop_front().getAsInteger(10, rule.index);
    return rule;
  }
  auto [first, second] = name.split('|');
  rule.names[0] = first;
  rule.names[1] = second.empty() ? first : second;
  if (source == "*") {
    rule.source = TypeRule::OperandTypes;
  } else if (source == "*r") {
    rule.source = TypeRule::ResultTypes;
  } else if (source == "#r") {
    rule.source = TypeRule::ResultCount;
  } else if (source.consume_front("#")) {
    rule.source = TypeRule::OperandCount;
    if (source.consume_front("/"))
      source.getAsInteger(10, rule.divisor);
    else
      source.getAsInteger(10, rule.index);
  } else if (source.consume_front("r")) {
    rule.source = TypeRule::ResultType;
    if (source == "*")
      rule.index = TypeRule::kAllResults;
    else
      source.getAsInteger(10, rule.index);
  } else {
    rule.source = TypeRule::OperandType;
    source.getAsInteger(10, rule.index);
  }
  return rule;
}

SmallVector<TypeRule, 4> parseTypeRules(StringRef text) {
  SmallVector<StringRef> entries;
  text.split(entries, ' ', -1, /*KeepEmpty=*/false);
  return llvm::map_to_vector<4>(entries, parseRule);
}

/// The elements' type; null where nothing is known of it.
static Type getKnownElement(Type type) {
  if (auto ref = llvm::dyn_cast<RefType>(type))
    type = ref.getValueType();
  Type element = getElementTypeOrSelf(type);
  return llvm::isa<UnknownType, ResourceType, VariantType, RefType>(element) ? Type() : element;
}

static bool isFixedType(Type element, StringRef name) {
  return llvm::StringSwitch<bool>(name)
      .Case("any", true)
      .Case("bool", element.isInteger(1))
      .Case("int32", element.isSignlessInteger(32))
      .Case("int64", element.isSignlessInteger(64))
      // Or what dfg-widen-unsigned computes it as.
      .Case("uint8", element.isUnsignedInteger(8) || element.isSignlessInteger(32))
      .Case("uint64", element.isUnsignedInteger(64))
      .Case("float32", element.isF32())
      .Case("string", llvm::isa<StringType>(element))
      .Default(false);
}

LogicalResult verifyTypes(Operation *op, ArrayRef<TypeRule> rules) {
  const int operands = op->getNumOperands(), results = op->getNumResults();
  Type shared; // what a result without a rule has
  bool hasShared = false, resultsAreNamed = false;
  llvm::SmallBitVector named(operands), ruled(results);
  for (const TypeRule &rule : rules) {
    switch (rule.source) {
    case TypeRule::OperandType: {
      const int index = rule.index < 0 ? operands + rule.index : rule.index;
      if (index < 0 || index >= operands)
        return op->emitOpError() << "has " << operands << " operands; number " << rule.index << " gives its "
                                 << rule.names[0];
      named.set(index);
      if (!hasShared)
        shared = getKnownElement(op->getOperand(index).getType());
      hasShared = true;
      break;
    }
    case TypeRule::ResultType:
      if (rule.index == TypeRule::kAllResults)
        ruled.set();
      else if (rule.index < results)
        ruled.set(rule.index);
      break;
    case TypeRule::ResultTypes:
      resultsAreNamed = true;
      break;
    case TypeRule::FixedType:
      for (int index = 0; index < results; ++index) {
        if (rule.index != TypeRule::kAllResults && rule.index != index)
          continue;
        ruled.set(index);
        Type element = getKnownElement(op->getResult(index).getType());
        if (element && !isFixedType(element, rule.names[0]))
          return op->emitOpError() << "has elements of type " << element << " in result " << index << ", which are "
                                   << rule.names[0];
      }
      break;
    case TypeRule::OperandCount:
    case TypeRule::ResultCount:
    case TypeRule::OperandTypes:
      break;
    }
  }
  if (!shared)
    return success();
  for (int index = 0; index < results && !resultsAreNamed; ++index)
    if (Type element = getKnownElement(op->getResult(index).getType());
        !ruled.test(index) && element && element != shared)
      return op->emitOpError() << "makes elements of type " << element << " (result " << index << ") from " << shared;
  if (!llvm::isa<ScalarInterface>(op) || !named.test(0))
    return success();
  for (int index = 0; index < operands; ++index)
    if (Type element = getKnownElement(op->getOperand(index).getType());
        !named.test(index) && element && element != shared)
      return op->emitOpError() << "has elements of type " << element << " (operand " << index << ") beside " << shared;
  return success();
}

} // namespace distc::dfg
