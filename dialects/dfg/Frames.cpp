//===- Frames.cpp - Control flow of version 1: kinds of nodes, frames of loops --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Frames.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace distc::dfg {

StringRef getKind(Operation *op) {
  auto opaque = llvm::dyn_cast_or_null<OpaqueOp>(op);
  StringRef kind = opaque ? opaque.getOp() : StringRef();
  kind.consume_front("Ref");
  return kind;
}

FailureOr<Frames> Frames::find(Block &block) {
  Frames found;
  if (llvm::none_of(block, [](Operation &op) { return getKind(&op) == "Enter"; }))
    return found;
  llvm::StringMap<Operation *> nodes;
  for (Operation &op : block)
    nodes[getNodeName(&op)] = &op;
  for (Operation &op : block) {
    Frame *frame = nullptr;
    auto join = [&](Operation *input) {
      Frame *other = input ? found.lookup(input) : nullptr;
      if (input && getKind(input) == "Exit")
        other = other ? other->parent : nullptr;
      if (other && (!frame || other->depth > frame->depth))
        frame = other;
    };
    for (Value operand : op.getOperands())
      if (Operation *input = operand.getDefiningOp(); input && getKind(input) != "NextIteration")
        join(input);
    for (StringRef control : getControlInputs(&op))
      join(nodes.lookup(control));
    if (getKind(&op) == "Enter") {
      auto fail = [&] { return emitError(op.getLoc()) << "node '" << getNodeName(&op) << "' (op 'Enter') "; };
      auto name = getSourceAttribute<StringAttr>(&op, "frame_name");
      if (!name)
        return fail() << "does not say what frame it enters";
      // One name may stand for a frame in each iteration of another, but not for frames of two loops.
      std::unique_ptr<Frame> &entered = found.byName[name.getValue()];
      if (!entered)
        entered = std::make_unique<Frame>(Frame{name.str(), frame, frame ? frame->depth + 1 : 1, {}});
      if (entered->parent != frame)
        return fail() << "enters frame '" << name.getValue() << "' from two others";
      frame = entered.get();
    }
    if (frame) {
      found.frameOf[&op] = frame;
      frame->nodes.push_back(&op);
    }
  }
  return found;
}

SmallVector<Frame *> Frames::getAll() const {
  SmallVector<Frame *> all;
  for (auto &[name, frame] : byName)
    all.push_back(frame.get());
  return all;
}

} // namespace distc::dfg
