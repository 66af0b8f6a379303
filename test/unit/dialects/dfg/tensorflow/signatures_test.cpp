//===- signatures_test.cpp - What operations declare of types, and TensorFlow ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/dfg/tensorflow/NodeTable.h"
#include "dialects/dfg/tensorflow/OpSignatures.h"
#include "dialects/dfg/tensorflow/Types.h"
#include "mlir/IR/MLIRContext.h"

#include <catch2/catch.hpp>

using namespace distc;

namespace {

/// The attribute that gives a result its type, or the type, as the declaration has it; empty where it says nothing.
std::string getTypeOfResult(llvm::ArrayRef<dfg::TypeRule> rules, unsigned nameIndex, int result) {
  std::string shared;
  for (const dfg::TypeRule &rule : rules) {
    const bool isIts = rule.index == result || rule.index == dfg::TypeRule::kAllResults;
    if ((rule.source == dfg::TypeRule::ResultType || rule.source == dfg::TypeRule::FixedType) && isIts)
      return rule.names[nameIndex].str();
    if (rule.source == dfg::TypeRule::ResultTypes)
      return "";
    if (rule.source == dfg::TypeRule::OperandType && shared.empty())
      shared = rule.names[nameIndex].str();
  }
  return shared;
}

} // namespace

TEST_CASE("results have the types that TensorFlow's operation definitions say") {
  mlir::MLIRContext context;
  context.loadDialect<dfg::DFGDialect>();
  const tf::NodeTable table(&context);
  const tf::OpSignatures signatures;
  int checked = 0;
  for (mlir::RegisteredOperationName name : context.getRegisteredOperationsByDialect("dfg")) {
    const tf::KnownNode *node = table.find(name);
    for (auto [index, tensorFlowName] :
         llvm::enumerate(node ? node->tensorFlowNames : llvm::ArrayRef<llvm::StringLiteral>())) {
      const tf::OpDef *definition = tensorFlowName.empty() ? nullptr : signatures.find(tensorFlowName);
      for (int i = 0; definition && i < definition->output_arg_size(); ++i) {
        const auto &output = definition->output_arg(i);
        const std::string said = getTypeOfResult(node->types, std::min<unsigned>(index, 1), i);
        // Of lists of results that are as long as the node says, a type each, nothing is said.
        if (said.empty() || said == "any" || !output.type_list_attr().empty())
          continue;
        INFO(tensorFlowName.str() << ", output " << output.name());
        if (output.type_attr().empty())
          CHECK(tf::getDataTypeByName(said) == output.type());
        else
          CHECK(said == output.type_attr());
        ++checked;
      }
    }
  }
  CHECK(checked > 300);
}
