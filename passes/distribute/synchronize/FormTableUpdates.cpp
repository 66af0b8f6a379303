//===- FormTableUpdates.cpp - Rules of tables that are spelled out with their slots --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// TensorFlow's Adam of a sparse gradient changes every row: both slots decay as a whole, rows of the gradient are added
// to them, and the table changes by an expression of what they are then. Element by element nothing else is in it, so
// that who holds some rows of the table and of its slots needs no others.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Gathers.h"
#include "dialects/dfg/NodeEdges.h"
#include "dialects/dfg/NodeNames.h"
#include "dialects/dist/Dist.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/distribute/Passes.h"
#include "strategies/StepNodes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTFORMTABLEUPDATES
#include "passes/distribute/Passes.h.inc"

namespace {

/// An element-wise expression of what variables are where it is assigned, of scalars and of constants.
struct Expression {
  llvm::MapVector<StringAttr, Value> handles; // of the variables
  llvm::SetVector<Value> scalars;
  llvm::SetVector<Operation *> nodes;        // each behind those that it is made of
  llvm::DenseMap<Value, StringAttr> current; // what a variable is
};

class TableFormer {
public:
  explicit TableFormer(dfg::GraphOp graph)
      : block(graph.getBody().front()), step(graph), endpoints(dfg::getEndpointNames(graph)),
        builder(graph.getContext()) {
    for (auto variable : graph->getParentOfType<ModuleOp>().getOps<dfg::VariableOp>())
      variables[variable.getSymName()] = variable;
  }

  void run() {
    if (!step.isKnown())
      return;
    for (Operation &op : block) {
      if (!step.contains(&op) || llvm::isa<dfg::IdentityOp>(op))
        continue;
      for (Value operand : op.getOperands())
        if (auto handle = dfg::isHandle(operand.getType()) ? dfg::getVariableHandle(operand) : dfg::VarHandleOp();
            handle && !isMemoryRead(&op))
          writers[handle.getVariable()].push_back(&op);
    }
    for (auto &[name, variable] : variables)
      if (isTable(variable))
        form(variable);
    removeUnused();
  }

private:
  static bool isScalar(Value value) {
    auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() == 0;
  }

  static Value stripIdentities(Value value) {
    while (auto identity = value.getDefiningOp<dfg::IdentityOp>())
      value = identity->getOperand(0);
    return value;
  }

  static TypedAttr getSplat(Value value) {
    auto constant = value.getDefiningOp<dfg::ConstOp>();
    auto splat = constant ? llvm::dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
    return splat ? splat.getSplatValue<TypedAttr>() : TypedAttr();
  }

  static bool isMemoryRead(Operation *op) {
    return op->hasTrait<dfg::ReadsVariable>() || llvm::isa<dfg::IsInitializedOp, dfg::VariableShapeOp>(op);
  }

  static bool isOfServer(dfg::VariableOp variable) {
    auto isServer = [](dist::SyncAttr sync) {
      return sync && sync.getKind() == dist::SyncKind::Server && !sync.getAsync() && !sync.getProxy() &&
             sync.getStaleness() == 0;
    };
    auto parts = variable->getAttrOfType<dist::PartsAttr>(dist::kPartsAttr);
    if (parts && parts.getSyncs())
      return llvm::all_of(parts.getSyncs().getAsRange<dist::SyncAttr>(), isServer);
    return isServer(variable->getAttrOfType<dist::SyncAttr>(dist::kSyncAttr));
  }

  static bool isFloat(dfg::VariableOp variable) {
    auto type = llvm::dyn_cast<RankedTensorType>(variable.getType());
    return type && type.hasStaticShape() && type.getRank() > 0 && type.getNumElements() > 1 &&
           llvm::isa<FloatType>(type.getElementType());
  }

  bool isTable(dfg::VariableOp variable) const {
    return variable.getTrainable() && isFloat(variable) && isOfServer(variable);
  }

  /// A slot that rows are added to: of the table's type, and nothing else in the step writes it but assignments.
  bool isSlot(StringAttr name, Type type) {
    dfg::VariableOp variable = variables.lookup(name.getValue());
    if (!variable || variable.getTrainable() || variable.getType() != type)
      return false;
    auto written = writers.find(name.getValue());
    return written != writers.end() && llvm::all_of(written->second, [](Operation *op) {
             auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
             return update && update.getWrittenOperands().size() == 1 &&
                    llvm::all_of(op->getResults(), [](Value result) { return result.use_empty(); });
           });
  }

  bool hasRows(StringAttr name) {
    return llvm::any_of(writers[name.getValue()],
                        [](Operation *op) { return llvm::cast<dfg::UpdateInterface>(op).getIndicesOperand() >= 0; });
  }

  /// Whether nothing writes it between the two.
  bool isUnwritten(StringAttr name, Operation *from, Operation *to) {
    return llvm::none_of(writers[name.getValue()],
                         [&](Operation *op) { return from->isBeforeInBlock(op) && op->isBeforeInBlock(to); });
  }

  /// Adds what the value is made of to the expression; false where that is something else. Where a slot has been given
  /// the same value before, the slot is that.
  bool collect(Value value, RankedTensorType type, Operation *at, Expression &expression) {
    if (expression.nodes.contains(value.getDefiningOp()) || expression.current.contains(value) || getSplat(value))
      return true;
    if (isScalar(value)) {
      expression.scalars.insert(value);
      return true;
    }
    Operation *op = value.getDefiningOp();
    auto own = llvm::dyn_cast<RankedTensorType>(value.getType());
    if (!op || !own || own.getShape() != type.getShape())
      return false;
    for (OpOperand &use : value.getUses())
      if (auto assign = llvm::dyn_cast<dfg::AssignOp>(use.getOwner());
          assign && assign != at && step.contains(assign) && assign->isBeforeInBlock(at))
        if (auto handle = dfg::getVariableHandle(assign->getOperand(0));
            handle && isSlot(handle.getVariableAttr().getAttr(), type) &&
            isUnwritten(handle.getVariableAttr().getAttr(), assign, at)) {
          take(value, handle.getVariableAttr().getAttr(), assign->getOperand(0), expression);
          return true;
        }
    if (auto read = llvm::dyn_cast<dfg::ReadVariableOp>(op)) {
      auto handle = dfg::getVariableHandle(read.getHandle());
      StringAttr name = handle ? handle.getVariableAttr().getAttr() : StringAttr();
      if (!name || own != type || !isSlot(name, type) || !isUnwritten(name, read, at))
        return false;
      take(value, name, read.getHandle(), expression);
      expression.nodes.insert(op);
      return true;
    }
    if (llvm::isa<dfg::IdentityOp>(op)) {
      if (!collect(op->getOperand(0), type, at, expression))
        return false;
    } else if (!llvm::isa<dfg::ScalarInterface>(op) || !isPure(op) || op->getNumResults() != 1 ||
               !llvm::all_of(op->getOperands(),
                             [&](Value operand) { return collect(operand, type, at, expression); })) {
      return false;
    }
    expression.nodes.insert(op);
    return true;
  }

  static void take(Value value, StringAttr name, Value handle, Expression &expression) {
    expression.current[value] = name;
    expression.handles.try_emplace(name, handle);
  }

  void form(dfg::VariableOp table) {
    auto type = llvm::cast<RankedTensorType>(table.getType());
    auto written = writers.find(table.getSymName());
    if (written == writers.end() || written->second.size() != 1)
      return;
    Operation *op = written->second.front();
    auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
    if (!update || update.getWrittenOperands().size() != 1 ||
        !llvm::all_of(op->getResults(), [](Value result) { return result.use_empty(); }))
      return;
    if (update.getIndicesOperand() >= 0)
      return formRows(update, type);
    int gradient = update.getGradientOperand();
    if (llvm::isa<dfg::AssignAddOp, dfg::AssignSubOp>(op))
      gradient = 1;
    else if (!llvm::isa<dist::UpdateOp>(op))
      return;
    if (gradient < 0)
      return;
    Expression expression;
    if (!collect(op->getOperand(gradient), type, op, expression))
      return;
    // All of it is as it was, or none. What a slot is made of is the table's slot as well, so that both are split and
    // placed alike.
    std::optional<Decays> decays = collectDecays(expression.handles, type);
    if (!decays || !areBefore(expression.handles, op) ||
        llvm::none_of(expression.handles, [&](const auto &slot) { return hasRows(slot.first); }))
      return;
    makeUpdate(op, update->getOperand(update.getWrittenOperands().front()), gradient, expression);
    finish(table.getSymNameAttr(), expression.handles, *decays);
  }

  /// Assignments of slots, of values that are expressions.
  using Decays = SmallVector<std::pair<Operation *, Expression>>;

  /// Those of the slots, to which is added what they are made of; none where one is made of something else.
  std::optional<Decays> collectDecays(llvm::MapVector<StringAttr, Value> &slots, RankedTensorType type) {
    Decays decays;
    for (size_t i = 0; i < slots.size(); ++i)
      for (Operation *writer : writers[slots.begin()[i].first.getValue()]) {
        if (!llvm::isa<dfg::AssignOp>(writer))
          continue;
        Expression decay;
        if (!collect(writer->getOperand(1), type, writer, decay))
          return std::nullopt;
        for (const auto &handle : decay.handles)
          slots.insert(handle);
        decays.push_back({writer, std::move(decay)});
      }
    return decays;
  }

  static bool areBefore(const llvm::MapVector<StringAttr, Value> &handles, Operation *op) {
    return llvm::all_of(handles,
                        [&](const auto &handle) { return handle.second.getDefiningOp()->isBeforeInBlock(op); });
  }

  void finish(StringAttr table, const llvm::MapVector<StringAttr, Value> &slots, Decays &decays) {
    for (auto &[assign, decay] : decays)
      makeUpdate(assign, assign->getOperand(0), 1, decay);
    ofTables.insert_range(llvm::make_first_range(slots));
    ofTables.insert(table);
  }

  /// `update` does what `op` did, which goes.
  void replace(Operation *op, dist::UpdateOp update) {
    auto handle = dfg::getVariableHandle(update->getOperand(0));
    llvm::replace(writers[handle.getVariable()], op, update.getOperation());
    op->erase();
  }

  // ---- Rows that are computed of rows of slots ----

  /// The handle of the slot of which a node takes rows, as it is where the node runs; null of others.
  Value findSlotOfRows(Operation *op, RankedTensorType type) {
    if (!llvm::isa<dfg::ResourceGatherOp, dfg::GatherV2Op>(op) || !dfg::takesRows(op))
      return {};
    Operation *from = op;
    Value source = op->getOperand(0);
    if (!dfg::isHandle(source.getType())) {
      auto read = stripIdentities(source).getDefiningOp<dfg::ReadVariableOp>();
      if (!read)
        return {};
      source = read.getHandle();
      from = read;
    }
    auto handle = dfg::getVariableHandle(source);
    StringAttr name = handle ? handle.getVariableAttr().getAttr() : StringAttr();
    return name && isSlot(name, type) && isUnwritten(name, from, op) ? source : Value();
  }

  /// Rows are added to the table that are computed of rows of its slots (tf_keras' RMSprop): the update has these as
  /// slots of its own, which it leaves as they are, and their rows are read of the variables.
  void formRows(dfg::UpdateInterface update, RankedTensorType type) {
    Operation *op = update;
    const bool subtracts = llvm::isa<dfg::ScatterSubOp>(op);
    Value indices = op->getOperand(update.getIndicesOperand()), rows = op->getOperand(update.getGradientOperand());
    Value distinct = stripIdentities(indices);
    Operation *unique = distinct.getDefiningOp();
    // The rule of rows holds for those that are named once.
    if ((!subtracts && !llvm::isa<dfg::ScatterAddOp>(op)) || !unique || !unique->hasTrait<dfg::FindsDistinct>() ||
        distinct != unique->getResult(0))
      return;
    llvm::SetVector<Operation *> above;
    SmallVector<Operation *> gathers;
    llvm::MapVector<StringAttr, Value> slots;
    SmallVector<Value> pending = {rows};
    while (!pending.empty()) {
      Operation *def = pending.pop_back_val().getDefiningOp();
      if (!def || def == unique || !step.contains(def) || !above.insert(def))
        continue;
      if (Value slot = findSlotOfRows(def, type)) {
        gathers.push_back(def);
        slots.try_emplace(dfg::getVariableHandle(slot).getVariableAttr().getAttr(), slot);
      } else if (llvm::isa<dfg::ScalarInterface, dfg::IdentityOp>(def)) {
        pending.append(def->operand_begin(), def->operand_end());
      }
    }
    std::optional<Decays> decays = collectDecays(slots, type);
    if (!decays || slots.empty() || !areBefore(slots, op))
      return;
    SmallVector<Value> inputs = {op->getOperand(update.getWrittenOperands().front())};
    llvm::append_range(inputs, llvm::make_second_range(slots));
    for (Operation *gather : gathers)
      if (llvm::isa<dfg::GatherV2Op>(gather)) {
        builder.setInsertionPoint(gather);
        Value source = gather->getOperand(0);
        while (!dfg::isHandle(source.getType())) {
          unused.insert(source.getDefiningOp());
          source = source.getDefiningOp()->getOperand(0);
        }
        auto direct =
            dfg::ResourceGatherOp::create(builder, gather->getLoc(), TypeRange{gather->getResult(0).getType()},
                                          ValueRange{source, gather->getOperand(1)});
        llvm::SetVector<Attribute> control;
        control.insert_range(dfg::getControl(gather));
        control.insert_range(dfg::getControl(gather->getOperand(0).getDefiningOp()));
        if (!control.empty())
          direct->setAttr(dfg::kControlAttr, builder.getArrayAttr(control.getArrayRef()));
        gather->getResult(0).replaceAllUsesWith(direct->getResult(0));
        gather->erase();
      }
    rows = op->getOperand(update.getGradientOperand());
    inputs.append({rows, indices});
    builder.setInsertionPoint(op);
    auto made = dist::UpdateOp::create(builder, op->getLoc(), inputs, /*has_gradient=*/true, /*has_indices=*/true);
    if (Attribute control = op->getAttr(dfg::kControlAttr))
      made->setAttr(dfg::kControlAttr, control);
    Block *rule = &made.getRule().emplaceBlock();
    SmallVector<Type> elements(slots.size() + 2, type.getElementType());
    rule->addArguments(elements, SmallVector<Location>(elements.size(), builder.getUnknownLoc()));
    builder.setInsertionPointToStart(rule);
    dfg::ScalarBuilder s(builder, builder.getUnknownLoc());
    Value old = rule->getArgument(0), row = rule->getArgument(slots.size() + 1);
    SmallVector<Value> yielded = {subtracts ? s.sub(old, row) : s.add(old, row)};
    for (size_t i = 0; i < slots.size(); ++i)
      yielded.push_back(rule->getArgument(1 + i));
    dist::YieldOp::create(builder, s.loc, yielded);
    replace(op, made);
    finish(dfg::getVariableHandle(inputs.front()).getVariableAttr().getAttr(), slots, *decays);
  }

  /// The assignment, of a value that is `expression`, as an update that writes the slots as they are.
  void makeUpdate(Operation *op, Value target, int assigned, Expression &expression) {
    auto handle = dfg::getVariableHandle(target);
    StringAttr name = handle.getVariableAttr().getAttr();
    SmallVector<Value> inputs = {target};
    SmallVector<StringAttr> kept;
    for (const auto &[slot, slotHandle] : expression.handles)
      if (slot != name) {
        inputs.push_back(slotHandle);
        kept.push_back(slot);
      }
    SmallVector<Type> elements(inputs.size(), getElementTypeOrSelf(variables.lookup(name.getValue()).getType()));
    auto before = llvm::dyn_cast<dist::UpdateOp>(op);
    SmallVector<Value> scalars(expression.scalars.getArrayRef());
    if (before)
      for (OpOperand &operand : op->getOpOperands())
        if (operand.getOperandNumber() > 0 && static_cast<int>(operand.getOperandNumber()) != assigned)
          scalars.push_back(operand.get());
    for (Value scalar : scalars) {
      inputs.push_back(scalar);
      elements.push_back(getElementTypeOrSelf(scalar.getType()));
    }
    builder.setInsertionPoint(op);
    auto update = dist::UpdateOp::create(builder, op->getLoc(), inputs, /*has_gradient=*/false, /*has_indices=*/false);
    Block *rule = &update.getRule().emplaceBlock();
    rule->addArguments(elements, SmallVector<Location>(elements.size(), builder.getUnknownLoc()));
    builder.setInsertionPointToStart(rule);
    dfg::ScalarBuilder s(builder, builder.getUnknownLoc());
    llvm::DenseMap<Value, Value> values;
    for (const auto &[value, slot] : expression.current)
      values[value] = rule->getArgument(slot == name ? 0 : 1 + (llvm::find(kept, slot) - kept.begin()));
    const unsigned first = 1 + kept.size();
    for (auto [number, scalar] : llvm::enumerate(expression.scalars))
      values[scalar] = rule->getArgument(first + number);
    auto get = [&](Value value) {
      if (TypedAttr splat = values.contains(value) ? TypedAttr() : getSplat(value))
        values[value] = arith::ConstantOp::create(builder, s.loc, splat);
      return values.lookup(value);
    };
    for (Operation *node : expression.nodes) {
      if (llvm::isa<dfg::ReadVariableOp>(node) || values.contains(node->getResult(0)))
        continue;
      SmallVector<Value> operands = llvm::map_to_vector(node->getOperands(), get);
      values[node->getResult(0)] = llvm::isa<dfg::IdentityOp>(node)
                                       ? operands[0]
                                       : llvm::cast<dfg::ScalarInterface>(node).emitScalar(s, operands);
    }
    Value result = get(op->getOperand(assigned));
    if (before) {
      IRMapping map;
      unsigned scalar = first + expression.scalars.size();
      for (OpOperand &operand : op->getOpOperands()) {
        Value argument = before.getRule().getArgument(operand.getOperandNumber());
        if (operand.getOperandNumber() == 0)
          map.map(argument, rule->getArgument(0));
        else
          map.map(argument,
                  static_cast<int>(operand.getOperandNumber()) == assigned ? result : rule->getArgument(scalar++));
      }
      for (Operation &inner : before.getRule().front().without_terminator())
        builder.clone(inner, map);
      result = map.lookup(before.getRule().front().getTerminator()->getOperand(0));
    } else if (llvm::isa<dfg::AssignAddOp, dfg::AssignSubOp>(op)) {
      Value old = rule->getArgument(0);
      result = llvm::isa<dfg::AssignAddOp>(op) ? s.add(old, result) : s.sub(old, result);
    }
    SmallVector<Value> yielded = {result};
    for (unsigned i = 0; i < kept.size(); ++i)
      yielded.push_back(rule->getArgument(1 + i));
    dist::YieldOp::create(builder, s.loc, yielded);
    wait(op, update, expression);
    replace(op, update);
    unused.insert(expression.nodes.begin(), expression.nodes.end());
  }

  /// What the expression waited for, the update does.
  void wait(Operation *op, dist::UpdateOp update, const Expression &expression) {
    llvm::SetVector<Attribute> control;
    for (Attribute name : dfg::getControl(op))
      control.insert(name);
    llvm::DenseSet<Attribute> own;
    for (Operation *node : expression.nodes)
      own.insert(dfg::getNodeNameAttr(node));
    for (Operation *node : expression.nodes)
      for (Attribute name : dfg::getControl(node))
        control.insert(name);
    control.remove_if([&](Attribute name) { return own.contains(name); });
    if (!control.empty())
      update->setAttr(dfg::kControlAttr, builder.getArrayAttr(control.getArrayRef()));
  }

  /// The expressions, and reads of tables and slots, where nothing needs their values. What waited for one waits for
  /// what that did.
  void removeUnused() {
    llvm::DenseMap<Attribute, SmallVector<Operation *>> waiting;
    for (Operation &op : block)
      for (Attribute name : dfg::getControl(&op))
        waiting[name].push_back(&op);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
      if (!op.use_empty() || endpoints.contains(dfg::getNodeName(&op)) || (!unused.contains(&op) && !readsTable(&op)))
        continue;
      llvm::SetVector<Attribute> before;
      before.insert_range(dfg::getControl(&op));
      for (Value operand : op.getOperands())
        if (Operation *def = operand.getDefiningOp(); def && !dfg::isHandle(operand.getType()))
          if (StringAttr name = dfg::getNodeNameAttr(def))
            before.insert(name);
      StringAttr own = dfg::getNodeNameAttr(&op);
      for (Operation *waits : waiting.lookup(own)) {
        llvm::SetVector<Attribute> names;
        for (Attribute name : dfg::getControl(waits))
          if (name != own)
            names.insert(name);
        names.insert_range(before);
        waits->setAttr(dfg::kControlAttr, builder.getArrayAttr(names.getArrayRef()));
        for (Attribute name : before)
          waiting[name].push_back(waits);
      }
      for (Attribute name : dfg::getControl(&op))
        llvm::erase(waiting[name], &op);
      op.erase();
    }
  }

  bool readsTable(Operation *op) const {
    auto read = llvm::dyn_cast<dfg::ReadVariableOp>(op);
    auto handle = read ? dfg::getVariableHandle(read.getHandle()) : dfg::VarHandleOp();
    return handle && step.contains(op) && ofTables.contains(handle.getVariableAttr().getAttr());
  }

  Block &block;
  strategies::StepNodes step;
  llvm::StringSet<> endpoints;
  OpBuilder builder;
  llvm::MapVector<llvm::StringRef, dfg::VariableOp> variables;
  /// Of each variable, the nodes of the step that write it.
  llvm::StringMap<SmallVector<Operation *>> writers;
  llvm::DenseSet<Operation *> unused;
  llvm::DenseSet<Attribute> ofTables; // those whose updates were formed, and their slots
};

struct DistFormTableUpdates : public impl::DistFormTableUpdatesBase<DistFormTableUpdates> {
  void runOnOperation() override {
    auto strategy = getOperation()->getAttrOfType<dist::StrategyAttr>(dist::kStrategyAttr);
    // Servers that count gradients serve on their own: a replica's copy of a table is whole there.
    if (!strategy || strategy.getRequired() != 0)
      return;
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      TableFormer(graph).run();
  }
};

} // namespace
} // namespace distc
