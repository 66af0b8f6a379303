//===- Feeds.cpp - What --feed says of placeholders ----------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/distc/Feeds.h"

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/NodeNames.h"
#include "passes/graph/ListNames.h"

using namespace mlir;

namespace distc {
namespace {

/// The sizes of NAME=2x3; none where they are no numbers, which is said where shapes are inferred.
std::optional<SmallVector<int64_t>> readShape(StringRef shape) {
  SmallVector<int64_t> sizes;
  SmallVector<StringRef> parts;
  shape.split(parts, 'x', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    if (part.getAsInteger(10, sizes.emplace_back()) || sizes.back() < 0)
      return std::nullopt;
  return sizes;
}

std::string spell(ArrayRef<int64_t> sizes) {
  std::string text;
  for (int64_t size : sizes)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

/// `sizes` of a placeholder whose first one is open.
LogicalResult settleRows(dfg::PlaceholderOp placeholder, SmallVector<int64_t> sizes, const CompileOptions &options) {
  // With a file of resources the replicas are counted later.
  const int64_t share = options.resources.empty() ? options.batch / std::max(options.replicas, 1) : 0;
  if (sizes.empty() || share == 0 || sizes[0] == share)
    return success();
  auto type = cast<RankedTensorType>(placeholder.getResult().getType());
  if (sizes[0] == options.batch) {
    sizes[0] = share;
    StringRef name = dfg::getNodeName(placeholder);
    return placeholder.emitError() << "--feed " << name << ": each of " << options.replicas
                                   << " replicas is fed its share of the batch of " << options.batch << ", " << share
                                   << " rows: say " << name << "=" << spell(sizes)
                                   << ", or leave it out where only the first size is open";
  }
  if (type.getRank() == static_cast<int64_t>(sizes.size()))
    placeholder.getResult().setType(RankedTensorType::get(sizes, type.getElementType()));
  return success();
}

} // namespace

LogicalResult settleFeeds(ModuleOp module, CompileOptions &options) {
  llvm::StringMap<StringRef> shapes;
  for (StringRef feed : options.feeds) {
    auto [name, shape] = feed.split('=');
    name.consume_back(":0");
    shapes[name] = shape;
  }
  SmallVector<std::string> scalars;
  for (auto graph : module.getOps<dfg::GraphOp>())
    for (auto placeholder : graph.getBody().front().getOps<dfg::PlaceholderOp>()) {
      StringRef name = dfg::getNodeName(placeholder);
      auto type = dyn_cast<RankedTensorType>(placeholder.getResult().getType());
      auto said = shapes.find(name);
      if (said == shapes.end()) {
        if (!type && !placeholder.getResult().use_empty())
          scalars.push_back(name.str());
        continue;
      }
      std::optional<SmallVector<int64_t>> sizes = readShape(said->second);
      if (sizes && type && type.getRank() > 0 && type.isDynamicDim(0) &&
          failed(settleRows(placeholder, *sizes, options)))
        return failure();
    }
  if (scalars.empty())
    return success();
  for (const std::string &name : scalars)
    options.feeds.push_back(name + "=");
  InFlightDiagnostic remark = module.emitRemark() << "placeholders without a shape are taken for scalars:";
  listNames(*remark.getUnderlyingDiagnostic(), scalars);
  remark << "; --feed NAME=2x3 says another";
  return success();
}

} // namespace distc
