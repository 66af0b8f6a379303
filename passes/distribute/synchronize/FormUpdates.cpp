//===- FormUpdates.cpp - Updates that are spelled out become one operation ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Element-wise expressions of values of a variable's shape are terms: what is below
// them is old values, scalars, constants, and values that are given from elsewhere.
// A variable's update is the terms from the assigned values down to the one term
// through which every given value comes (its dominator): the gradient.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeEdges.h"
#include "dialects/dfg/NodeNames.h"
#include "dialects/dfg/Numbers.h"
#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/NodeEdits.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/synchronize/RawGradients.h"
#include "strategies/StepNodes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/DebugLog.h"
#include <set>

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTFORMUPDATES
#include "passes/distribute/Passes.h.inc"

namespace {

/// Static, and more than one element: what may be a variable's value or one for each of its elements.
RankedTensorType getFullType(Type type) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(type);
  bool isFull = tensor && tensor.hasStaticShape() && tensor.getNumElements() > 1;
  return isFull ? tensor : RankedTensorType();
}

bool isOneElement(Value value) {
  auto tensor = llvm::dyn_cast<RankedTensorType>(value.getType());
  return tensor && tensor.hasStaticShape() && tensor.getNumElements() == 1;
}

struct Assignment;

/// An element-wise expression. Terms stand behind those that they are made of.
struct Term {
  enum Kind {
    Old,      // a variable's value before the step
    Constant, // the same in every element
    Scalar,   // one element for all
    Given,    // anything else
    Node,     // an element-wise operation
    Add,      // what an assignment adds to, or subtracts from, an old value
    Sub,
  } kind;
  /// None of a term that no value of the graph is.
  Value value;
  SmallVector<unsigned> operands;
  Assignment *variable = nullptr; // of an old value
};

/// The only node of the step that writes a variable.
struct Assignment {
  Operation *op;
  dfg::VariableOp variable;
  Value handle;
  RankedTensorType type;
  unsigned number;
  unsigned term = 0; // what the variable is then
  bool isDone = false;
  llvm::SetVector<Assignment *> reads; // old values that it is made of
};

/// A trained variable and its slots, which are updated together.
struct VariableUpdate {
  SmallVector<Assignment *> members;
  std::optional<unsigned> gradient;
  SmallVector<unsigned> terms; // of the rule, without the gradient
};

class Former {
public:
  explicit Former(dfg::GraphOp graph)
      : graph(graph), block(graph.getBody().front()), step(graph), builder(graph.getContext()) {}

  void run() {
    if (!step.isKnown())
      return;
    for (auto variable : graph->getParentOfType<ModuleOp>().getOps<dfg::VariableOp>())
      variables[variable.getSymName()] = variable;
    findAssignments();
    if (assignments.empty())
      return;
    endpoints = dfg::getEndpointNames(graph);
    findMeans();
    makeTerms();
    for (Assignment &assignment : assignments)
      findReads(assignment);
    for (VariableUpdate &update : findUpdates())
      if (findGradient(update) && canMove(update))
        form(update);
    removeUnused();
  }

private:
  // ---- Terms ----------------------------------------------------------------------------------------------------

  void findAssignments() {
    llvm::StringMap<unsigned> writes;
    unsigned number = 0;
    for (Operation &op : block) {
      numbers[&op] = number++;
      for (Attribute name : dfg::getControl(&op))
        waiting[name].push_back(&op);
      if (!step.contains(&op))
        continue;
      for (Value operand : op.getOperands())
        if (auto handle = dfg::isHandle(operand.getType()) ? dfg::getVariableHandle(operand) : dfg::VarHandleOp())
          if (!llvm::isa<dfg::IdentityOp>(op)) {
            users[handle.getVariable()].push_back(&op);
            writes[handle.getVariable()] += !isMemoryRead(&op);
          }
    }
    for (Operation &op : block) {
      if (!step.contains(&op) || !llvm::isa<dfg::AssignOp, dfg::AssignAddOp, dfg::AssignSubOp>(op) ||
          !llvm::all_of(op.getResults(), [](Value result) { return result.use_empty(); }))
        continue;
      auto handle = dfg::getVariableHandle(op.getOperand(0));
      dfg::VariableOp variable = handle ? variables.lookup(handle.getVariable()) : dfg::VariableOp();
      RankedTensorType type = variable ? getFullType(variable.getType()) : RankedTensorType();
      if (!type || writes.lookup(variable.getSymName()) != 1 || !llvm::isa<FloatType>(type.getElementType()) ||
          op.getOperand(1).getType() != type)
        continue;
      assignments.push_back({&op, variable, op.getOperand(0), type, numbers[&op], 0, false, {}});
    }
    for (Assignment &assignment : assignments) {
      ofVariable[assignment.variable.getSymName()] = &assignment;
      ofNode[assignment.op] = &assignment;
    }
  }

  static bool isMemoryRead(Operation *op) {
    return op->hasTrait<dfg::ReadsVariable>() || llvm::isa<dfg::IsInitializedOp, dfg::VariableShapeOp>(op);
  }

  /// Of a batch that the graph fixes, sums over it that are divided by its size: the mean is what is given, for as a
  /// learning rate the number would count nothing.
  void findMeans() {
    if (dfg::findFixedBatch(graph) == 0)
      return;
    llvm::FailureOr<BatchFlow> flow = BatchFlow::computeOfOneReplica(graph);
    if (failed(flow))
      return;
    auto isPartial = [&](Value value, int scale) {
      return flow->get(value).kind == Flow::Partial && flow->get(value).scale == scale;
    };
    for (Operation &op : block)
      if (op.getNumResults() == 1 && isPartial(op.getResult(0), 0) &&
          llvm::any_of(op.getOperands(), [&](Value operand) { return isPartial(operand, 1); }))
        means.insert(op.getResult(0));
  }

  unsigned addTerm(Term term) {
    terms.push_back(std::move(term));
    return terms.size() - 1;
  }

  /// Of a value that every element sees, or that has one for each.
  unsigned getTerm(Value value) {
    auto known = ofValue.find(value);
    if (known != ofValue.end())
      return known->second;
    return ofValue[value] = addTerm({isOneElement(value) ? Term::Scalar : Term::Given, value, {}});
  }

  /// In block order, so that a read knows whether its variable is assigned already.
  void makeTerms() {
    for (Operation &op : block) {
      if (Assignment *assignment = ofNode.lookup(&op)) {
        unsigned given = getTerm(op.getOperand(1));
        if (!llvm::isa<dfg::AssignOp>(op)) {
          unsigned old = addTerm({Term::Old, {}, {}, assignment});
          given = addTerm({llvm::isa<dfg::AssignAddOp>(op) ? Term::Add : Term::Sub, {}, {old, given}});
        }
        assignment->term = given;
        assignment->isDone = true;
      } else if (op.getNumResults() == 1 && getFullType(op.getResult(0).getType())) {
        ofValue[op.getResult(0)] = makeTerm(&op);
      }
    }
  }

  unsigned makeTerm(Operation *op) {
    Value result = op->getResult(0);
    RankedTensorType type = getFullType(result.getType());
    if (auto read = llvm::dyn_cast<dfg::ReadVariableOp>(op)) {
      auto handle = dfg::getVariableHandle(read.getHandle());
      Assignment *assignment = handle ? ofVariable.lookup(handle.getVariable()) : nullptr;
      if (!assignment || assignment->type != type)
        return addTerm({Term::Given, result, {}});
      return assignment->isDone ? assignment->term : addTerm({Term::Old, result, {}, assignment});
    }
    if (auto constant = llvm::dyn_cast<dfg::ConstOp>(op))
      return addTerm({llvm::isa<SplatElementsAttr>(constant.getValue()) ? Term::Constant : Term::Given, result, {}});
    if (llvm::isa<dfg::IdentityOp>(op))
      return getTerm(op->getOperand(0));
    // A scalar for every element.
    if (llvm::isa<dfg::FillOp>(op) && isOneElement(op->getOperand(1)))
      return getTerm(op->getOperand(1));
    if (llvm::isa<dfg::BroadcastToOp>(op) && isOneElement(op->getOperand(0)))
      return getTerm(op->getOperand(0));
    bool isNode =
        llvm::isa<dfg::ScalarInterface>(op) && isPure(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
          RankedTensorType each = getFullType(operand.getType());
          return isOneElement(operand) || (each && each.getShape() == type.getShape());
        });
    if (!isNode || means.contains(result))
      return addTerm({Term::Given, result, {}});
    SmallVector<unsigned> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value operand) { return getTerm(operand); });
    return addTerm({Term::Node, result, std::move(operands)});
  }

  void findReads(Assignment &assignment) {
    llvm::DenseSet<unsigned> seen;
    SmallVector<unsigned> pending = {assignment.term};
    while (!pending.empty()) {
      unsigned number = pending.pop_back_val();
      if (!seen.insert(number).second)
        continue;
      const Term &term = terms[number];
      if (term.kind == Term::Old)
        assignment.reads.insert(term.variable);
      pending.append(term.operands.begin(), term.operands.end());
    }
  }

  // ---- What is updated together
  // ---------------------------------------------------------------------------------------

  std::vector<VariableUpdate> findUpdates() {
    // Slots of a variable, by a path of assignments that read each other's old values.
    llvm::DenseMap<Assignment *, llvm::SetVector<Assignment *>> neighbours;
    for (Assignment &assignment : assignments)
      for (Assignment *read : assignment.reads)
        if (read != &assignment && read->type == assignment.type) {
          neighbours[&assignment].insert(read);
          neighbours[read].insert(&assignment);
        }
    llvm::DenseMap<Assignment *, Assignment *> owners;
    llvm::DenseSet<Assignment *> shared;
    std::vector<VariableUpdate> updates;
    for (bool again = true; again;) {
      again = false;
      updates.clear();
      owners.clear();
      for (Assignment &trained : assignments) {
        if (!trained.variable.getTrainable())
          continue;
        llvm::SetVector<Assignment *> members;
        members.insert(&trained);
        for (size_t i = 0; i < members.size(); ++i)
          for (Assignment *slot : neighbours.lookup(members[i]))
            if (!slot->variable.getTrainable() && !shared.contains(slot))
              members.insert(slot);
        // What two variables see is neither's slot.
        for (Assignment *slot : members)
          if (!owners.try_emplace(slot, &trained).second)
            again |= shared.insert(slot).second;
        updates.push_back({SmallVector<Assignment *>(members.begin(), members.end()), std::nullopt, {}});
      }
    }
    for (VariableUpdate &update : updates)
      llvm::sort(update.members.begin() + 1, update.members.end(),
                 [](Assignment *a, Assignment *b) { return a->number < b->number; });
    return updates;
  }

  /// The rule, from the assigned values down to the one term through which all that is given comes; false where there
  /// is none. A gradient has the variable's type: in mixed precision it is what the narrow one is converted to, so that
  /// replicas add in the wide one.
  bool findGradient(VariableUpdate &update) {
    llvm::SmallPtrSet<Assignment *, 8> members(update.members.begin(), update.members.end());
    std::set<unsigned> reached;
    SmallVector<unsigned> pending;
    for (Assignment *member : update.members)
      pending.push_back(member->term);
    while (!pending.empty()) {
      unsigned number = pending.pop_back_val();
      if (reached.insert(number).second)
        pending.append(terms[number].operands.begin(), terms[number].operands.end());
    }
    llvm::DenseSet<unsigned> given;
    for (unsigned number : reached) {
      const Term &term = terms[number];
      if (term.kind == Term::Given || (term.kind == Term::Old && !members.contains(term.variable)) ||
          llvm::any_of(term.operands, [&](unsigned operand) { return given.contains(operand); }))
        given.insert(number);
    }
    const Type element = update.members.front()->type.getElementType();
    std::set<unsigned> frontier;
    for (Assignment *member : update.members)
      if (given.contains(member->term))
        frontier.insert(member->term);
    const bool hasGradient = !frontier.empty();
    while (!frontier.empty()) {
      unsigned last = *frontier.rbegin();
      if (Value value = terms[last].value; frontier.size() == 1 && value && getElementTypeOrSelf(value) == element)
        update.gradient = last;
      if (terms[last].operands.empty())
        break;
      frontier.erase(last);
      for (unsigned operand : terms[last].operands)
        if (given.contains(operand))
          frontier.insert(operand);
    }
    if (hasGradient != update.gradient.has_value())
      return false;
    llvm::DenseSet<unsigned> rule;
    for (Assignment *member : update.members)
      pending.push_back(member->term);
    while (!pending.empty()) {
      unsigned number = pending.pop_back_val();
      if (number == update.gradient || !rule.insert(number).second)
        continue;
      pending.append(terms[number].operands.begin(), terms[number].operands.end());
    }
    update.terms.assign(rule.begin(), rule.end());
    llvm::sort(update.terms);
    // What is just replaced by a value has no rule.
    return llvm::any_of(update.terms, [&](unsigned number) { return !terms[number].operands.empty(); });
  }

  // ---- Order
  // -------------------------------------------------------------------------------------------------------------

  /// Whether all of it may run where the last of its assignments does: what sees that an earlier one has run is of the
  /// rule.
  bool canMove(const VariableUpdate &update) {
    llvm::SmallPtrSet<Operation *, 32> own;
    unsigned last = 0;
    for (Assignment *member : update.members) {
      own.insert(member->op);
      last = std::max(last, member->number);
    }
    for (unsigned number : update.terms)
      if (Value value = terms[number].value; value && terms[number].kind == Term::Node)
        own.insert(value.getDefiningOp());
    // Reads of new values, and what they are handed on by.
    auto isOwn = [&](Operation *op) {
      return own.contains(op) ||
             (llvm::isa<dfg::ReadVariableOp, dfg::IdentityOp>(op) && !isNamed(op) &&
              llvm::all_of(op->getUsers(), [&](Operation *user) {
                return own.contains(user) ||
                       (llvm::isa<dfg::IdentityOp>(user) && !isNamed(user) &&
                        llvm::all_of(user->getUsers(), [&](Operation *next) { return own.contains(next); }));
              }));
    };
    for (Assignment *member : update.members) {
      SmallVector<Operation *> behind;
      for (Operation *user : users[member->variable.getSymName()])
        if (numbers[user] > member->number && numbers[user] < last)
          behind.push_back(user);
      for (Operation *waits : waiting.lookup(dfg::getNodeNameAttr(member->op)))
        if (numbers[waits] < last)
          behind.push_back(waits);
      for (size_t i = 0; i < behind.size(); ++i) {
        Operation *op = behind[i];
        if (!isOwn(op) || (!ofNode.contains(op) && isNamed(op)))
          return false;
        if (!ofNode.contains(op))
          for (Operation *user : op->getUsers())
            if (!llvm::is_contained(behind, user))
              behind.push_back(user);
      }
    }
    return true;
  }

  /// Whether something waits for the node by its name, or it is an endpoint.
  bool isNamed(Operation *op) {
    StringAttr name = dfg::getNodeNameAttr(op);
    if (!name)
      return false;
    if (waiting.contains(name))
      return true;
    return endpoints.contains(name.getValue());
  }

  // ---- The operation
  // -------------------------------------------------------------------------------------------------------

  void form(const VariableUpdate &update) {
    Operation *last = update.members.front()->op;
    Operation *named = last;
    for (Assignment *member : update.members) {
      if (numbers[member->op] > numbers[last])
        last = member->op;
      if (isEndpoint(member->op))
        named = member->op;
    }
    LDBG("dist-form-updates") << update.members.size() << " assignments are an update at " << dfg::getNodeName(named);
    builder.setInsertionPoint(last);
    SmallVector<Value> inputs;
    SmallVector<Type> elements;
    llvm::DenseMap<unsigned, unsigned> arguments;
    llvm::DenseMap<Assignment *, unsigned> numberOf;
    for (Assignment *member : update.members) {
      numberOf[member] = inputs.size();
      inputs.push_back(member->handle);
      elements.push_back(member->type.getElementType());
    }
    auto addArgument = [&](unsigned number, Value value) {
      arguments[number] = inputs.size();
      inputs.push_back(value);
      elements.push_back(getElementTypeOrSelf(value.getType()));
    };
    if (update.gradient)
      addArgument(*update.gradient, terms[*update.gradient].value);
    for (unsigned number : update.terms)
      if (const Term &term = terms[number]; term.kind == Term::Scalar && !getSplat(term.value))
        addArgument(number, makeScalar(term.value));

    auto op =
        dist::UpdateOp::create(builder, named->getLoc(), inputs, update.gradient.has_value(), /*has_indices=*/false);
    Block *rule = &op.getRule().emplaceBlock();
    rule->addArguments(elements, SmallVector<Location>(elements.size(), builder.getUnknownLoc()));
    builder.setInsertionPointToStart(rule);
    dfg::ScalarBuilder s(builder, builder.getUnknownLoc());
    llvm::DenseMap<unsigned, Value> values;
    for (auto [number, argument] : arguments)
      values[number] = rule->getArgument(argument);
    for (unsigned number : update.terms) {
      const Term &term = terms[number];
      SmallVector<Value> operands =
          llvm::map_to_vector(term.operands, [&](unsigned operand) { return values.lookup(operand); });
      switch (term.kind) {
      case Term::Old:
        values[number] = rule->getArgument(numberOf.lookup(term.variable));
        break;
      case Term::Constant:
      case Term::Scalar:
        if (TypedAttr splat = getSplat(term.value))
          values[number] = arith::ConstantOp::create(builder, s.loc, splat);
        break;
      case Term::Node:
        values[number] = llvm::cast<dfg::ScalarInterface>(term.value.getDefiningOp()).emitScalar(s, operands);
        break;
      case Term::Add:
        values[number] = s.add(operands[0], operands[1]);
        break;
      case Term::Sub:
        values[number] = s.sub(operands[0], operands[1]);
        break;
      case Term::Given:
        llvm_unreachable("what is given comes through the gradient");
      }
    }
    dist::YieldOp::create(builder, s.loc, llvm::map_to_vector(update.members, [&](Assignment *member) {
                            return values.lookup(member->term);
                          }));
    replace(update, op);
  }

  static TypedAttr getSplat(Value value) {
    auto constant = value.getDefiningOp<dfg::ConstOp>();
    auto splat = constant ? llvm::dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
    return splat ? splat.getSplatValue<TypedAttr>() : TypedAttr();
  }

  /// What one element is in, as a scalar.
  Value makeScalar(Value value) {
    auto type = llvm::cast<RankedTensorType>(value.getType());
    if (type.getRank() == 0)
      return value;
    std::string name = getFreeName(block, dfg::getNodeName(value.getDefiningOp()) + "/scalar");
    auto shapeType = RankedTensorType::get({0}, builder.getI32Type());
    Value shape = dfg::ConstOp::create(builder, NameLoc::get(builder.getStringAttr(name + "/shape")), shapeType,
                                       DenseElementsAttr::get(shapeType, ArrayRef<int32_t>()));
    return dfg::ReshapeOp::create(builder, NameLoc::get(builder.getStringAttr(name)),
                                  RankedTensorType::get({}, type.getElementType()), value, shape);
  }

  bool isEndpoint(Operation *op) {
    StringAttr name = graph.getTrainOpAttr();
    return name && name.getValue().split(':').first == dfg::getNodeName(op);
  }

  /// What waits for one of the assignments waits for the update.
  void replace(const VariableUpdate &update, dist::UpdateOp op) {
    Attribute name = dfg::getNodeNameAttr(op);
    llvm::SetVector<Attribute> control;
    llvm::SmallPtrSet<Attribute, 8> gone;
    for (Assignment *member : update.members)
      gone.insert(dfg::getNodeNameAttr(member->op));
    // What the expressions waited for, the update does: they are gone, and often they alone wait for the update before.
    llvm::SmallPtrSet<Value, 8> given;
    for (unsigned number : update.terms)
      if (terms[number].kind == Term::Scalar && !getSplat(terms[number].value))
        given.insert(terms[number].value);
    if (update.gradient)
      given.insert(terms[*update.gradient].value);
    llvm::SetVector<Operation *> absorbed;
    for (Assignment *member : update.members)
      absorbed.insert(member->op);
    for (size_t i = 0; i < absorbed.size(); ++i)
      for (Value operand : absorbed[i]->getOperands())
        if (Operation *def = operand.getDefiningOp();
            def && !dfg::isHandle(operand.getType()) && !given.contains(operand))
          absorbed.insert(def);
    llvm::SmallPtrSet<Attribute, 16> own(gone.begin(), gone.end());
    for (Operation *each : absorbed)
      if (Attribute named = dfg::getNodeNameAttr(each))
        own.insert(named);
    for (Operation *each : absorbed)
      for (Attribute waited : dfg::getControl(each))
        if (!own.contains(waited))
          control.insert(waited);
    for (Assignment *member : update.members) {
      for (Operation *waits : waiting.lookup(dfg::getNodeNameAttr(member->op)))
        if (!ofNode.contains(waits) || !llvm::is_contained(update.members, ofNode.lookup(waits)))
          renamed.insert(waits);
    }
    for (Operation *waits : renamed) {
      llvm::SetVector<Attribute> names;
      for (Attribute each : dfg::getControl(waits))
        names.insert(gone.contains(each) ? name : each);
      waits->setAttr(dfg::kControlAttr, builder.getArrayAttr(names.getArrayRef()));
    }
    renamed.clear();
    if (!control.empty())
      op->setAttr(dfg::kControlAttr, builder.getArrayAttr(control.getArrayRef()));
    for (Attribute waited : control)
      waiting[waited].push_back(op);
    for (Assignment *member : update.members) {
      numbers[op] = std::max(numbers[op], member->number);
      // What it names is not waited for any more.
      member->op->removeAttr(dfg::kControlAttr);
      replaced.push_back(member->op);
    }
  }

  /// The expressions, where nothing else needs them.
  void removeUnused() {
    for (Operation *op : replaced)
      op->erase();
    llvm::DenseSet<Attribute> names;
    for (Operation &op : block)
      names.insert_range(dfg::getControl(&op));
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (auto known = numbers.find(&op);
          known != numbers.end() && op.use_empty() && step.contains(&op) && op.getNumResults() > 0 &&
          (isPure(&op) || llvm::isa<dfg::ReadVariableOp>(op)) && !llvm::isa<dfg::VarHandleOp, dfg::PlaceholderOp>(op) &&
          !names.contains(dfg::getNodeNameAttr(&op)) && !endpoints.contains(dfg::getNodeName(&op)))
        op.erase();
  }

  dfg::GraphOp graph;
  Block &block;
  strategies::StepNodes step;
  OpBuilder builder;
  llvm::StringMap<dfg::VariableOp> variables;
  llvm::DenseMap<Operation *, unsigned> numbers;
  llvm::DenseMap<Attribute, SmallVector<Operation *>> waiting;
  /// Of each variable, nodes of the step that take its handle.
  llvm::StringMap<SmallVector<Operation *>> users;
  std::vector<Assignment> assignments;
  llvm::StringMap<Assignment *> ofVariable;
  llvm::DenseMap<Operation *, Assignment *> ofNode;
  std::vector<Term> terms;
  llvm::DenseMap<Value, unsigned> ofValue;
  llvm::DenseSet<Value> means; // of the batch
  llvm::StringSet<> endpoints;
  llvm::SetVector<Operation *> renamed;
  std::vector<Operation *> replaced;
};

struct DistFormUpdates : public impl::DistFormUpdatesBase<DistFormUpdates> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      Former(graph).run();
  }
};

} // namespace
} // namespace distc
