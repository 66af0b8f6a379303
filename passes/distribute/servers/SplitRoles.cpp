//===- SplitRoles.cpp - A program a role ----------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeNames.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/servers/Roles.h"
#include <map>

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTSPLITROLES
#include "passes/distribute/Passes.h.inc"

namespace {

/// Makes the roles' programs of the program of all tasks. The chief's stays in place, a server's own nodes move to it;
/// what several roles run is copied, once it is known what each needs, so that nothing is made only to be taken out
/// again.
class Splitter {
public:
  explicit Splitter(dfg::GraphOp graph)
      : graph(graph), nodes(graph), builder(graph.getContext()), moved(nodes.size()), memberOf(nodes.size()),
        made(nodes.size()) {}

  LogicalResult run() {
    if (failed(findServers()))
      return failure();
    FailureOr<llvm::BitVector> chief = findProgram(Role::Chief), worker = findProgram(Role::Worker);
    if (failed(chief) || failed(worker))
      return failure();
    builder.setInsertionPointAfter(graph);
    addWorker(*worker);
    for (const auto &[index, server] : servers)
      addServer(server);
    nodes.keepOnly(*chief, moved);
    for (unsigned number : chief->set_bits())
      dropPlace(nodes[number]);
    graph->setAttr(dist::kRoleAttr, builder.getStringAttr("chief"));
    return success();
  }

private:
  struct Server {
    dist::PlaceAttr place;
    /// What it runs, in block order: its own nodes, and what can be computed anywhere and they need.
    SmallVector<unsigned> members;
  };

  // ---- What each role needs --------------------------------------------------------------

  LogicalResult findServers() {
    for (unsigned number = 0; number < nodes.size(); ++number)
      if (dist::PlaceAttr place = getPlace(nodes[number]); isServer(place)) {
        servers[place.getIndex()].place = place;
        servers[place.getIndex()].members.push_back(number);
      }
    for (auto &[index, server] : servers)
      if (failed(findNeeded(server)))
        return failure();
    return success();
  }

  LogicalResult findNeeded(Server &server) {
    ++programs;
    SmallVector<unsigned> &members = server.members;
    for (unsigned number : members)
      memberOf[number] = programs;
    for (size_t next = 0; next < members.size(); ++next)
      for (unsigned from : nodes.getOperands(members[next])) {
        if (dist::PlaceAttr place = getPlace(nodes[from]); place && place != server.place) {
          Operation *op = nodes[members[next]];
          return op->emitError() << "node '" << dfg::getNodeName(op) << "' of server " << server.place.getIndex()
                                 << " needs the value of node '" << dfg::getNodeName(nodes[from])
                                 << "', which another task computes, and nothing sends it";
        }
        if (memberOf[from] != programs)
          members.push_back(from);
        memberOf[from] = programs;
      }
    llvm::sort(members);
    return success();
  }

  /// What the role runs and an endpoint needs. Where training has none, all that the role runs.
  FailureOr<llvm::BitVector> findProgram(Role role) {
    FailureOr<llvm::BitVector> runs = findRoleNodes(graph, nodes, role, false);
    if (failed(runs) || nodes.find(graph.getTrainOpAttr()) == NumberedNodes::kNone)
      return runs;
    llvm::BitVector needed(nodes.size());
    SmallVector<unsigned> pending = nodes.findEndpoints(graph);
    for (unsigned number : runs->set_bits())
      if (llvm::isa<dfg::PlaceholderOp>(nodes[number]))
        pending.push_back(number);
    for (unsigned number : pending)
      needed.set(number);
    nodes.close(needed, pending, *runs);
    return needed;
  }

  // ---- Programs ----------------------------------------------------------------------------

  void addWorker(const llvm::BitVector &members) {
    auto program = llvm::cast<dfg::GraphOp>(graph->cloneWithoutRegions());
    builder.insert(program);
    program->setAttr(dist::kRoleAttr, builder.getStringAttr("worker"));
    fill(program.getBody().emplaceBlock(), llvm::to_vector(members.set_bits()), {});
  }

  void addServer(const Server &server) {
    auto program = dfg::GraphOp::create(builder, graph.getLoc());
    program->setAttr(dist::kRoleAttr, builder.getStringAttr("server"));
    program->setAttr(dist::kPlaceAttr, server.place);
    SmallVector<Attribute> ofStep, ofInit;
    if (!step)
      findStep();
    for (unsigned number : server.members)
      if (StringAttr name = dfg::getNodeNameAttr(nodes[number]); name && getPlace(nodes[number]))
        ((*step)[number] ? ofStep : ofInit).push_back(name);
    Block &block = program.getBody().front();
    fill(block, server.members, server.place);
    OpBuilder inside = OpBuilder::atBlockEnd(&block);
    program.setTrainOpAttr(addEndpoint(inside, graph.getTrainOpAttr(), ofStep));
    program.setInitOpAttr(addEndpoint(inside, graph.getInitOpAttr(), ofInit));
  }

  /// The server's part of an endpoint, which has its name; null where there is none.
  StringAttr addEndpoint(OpBuilder &inside, StringAttr name, ArrayRef<Attribute> waitsFor) {
    if (!name || waitsFor.empty())
      return {};
    auto group = dfg::GroupOp::create(inside, NameLoc::get(dfg::getEndpointNode(name)));
    group->setAttr(dfg::kControlAttr, builder.getArrayAttr(waitsFor));
    return name;
  }

  /// What a training step needs; all nodes where the graph does not say.
  void findStep() {
    unsigned train = nodes.find(graph.getTrainOpAttr());
    step.emplace(nodes.size(), train == NumberedNodes::kNone);
    if (train == NumberedNodes::kNone)
      return;
    SmallVector<unsigned> pending = {train};
    step->set(train);
    nodes.close(*step, pending, llvm::BitVector(nodes.size(), true));
  }

  /// Puts `members` at the end of `block`, in their order: what is placed at `place` itself, copies of others.
  void fill(Block &block, ArrayRef<unsigned> members, dist::PlaceAttr place) {
    ++programs;
    for (unsigned number : members) {
      memberOf[number] = programs;
      made[number] = nullptr;
    }
    SmallVector<unsigned> early;
    for (unsigned number : members) {
      Operation *op = nodes[number];
      if (place && getPlace(op) == place) {
        op->moveBefore(&block, block.end());
        moved.set(number);
        made[number] = op;
      } else {
        made[number] = copy(op, number);
        block.push_back(made[number]);
      }
      for (unsigned from : nodes.getOperands(number))
        if (!made[from])
          early.push_back(number);
      if (moved[number])
        connect(number);
      dropPlace(made[number]);
      nodes.keepControl(made[number], number, [&](unsigned before) {
        return before == NumberedNodes::kNone ? !place : memberOf[before] == programs;
      });
    }
    // A loop's way back comes from behind.
    for (unsigned number : early)
      connect(number);
  }

  /// With the operands that are made already, which is nearly all.
  Operation *copy(Operation *op, unsigned number) const {
    if (op->getNumRegions() != 0)
      llvm::report_fatal_error("a node with regions cannot be copied to another role");
    SmallVector<Value> operands(op->getOperands());
    for (auto [operand, from] : llvm::zip(operands, nodes.getOperands(number)))
      if (made[from])
        operand = made[from]->getResult(llvm::cast<OpResult>(operand).getResultNumber());
    return Operation::create(op->getLoc(), op->getName(), op->getResultTypes(), operands,
                             op->getDiscardableAttrDictionary(), op->getPropertiesStorage(), {}, 0);
  }

  /// Has the node take the operands of its program.
  void connect(unsigned number) const {
    for (auto [operand, from] : llvm::zip(made[number]->getOpOperands(), nodes.getOperands(number)))
      if (made[from] && operand.get().getDefiningOp() != made[from])
        operand.set(made[from]->getResult(llvm::cast<OpResult>(operand.get()).getResultNumber()));
  }

  static void dropPlace(Operation *op) {
    if (getPlace(op))
      op->removeDiscardableAttr(dist::kPlaceAttr);
  }

  dfg::GraphOp graph;
  NumberedNodes nodes;
  OpBuilder builder;
  std::map<int64_t, Server> servers;
  std::optional<llvm::BitVector> step;
  /// Those that are in a server's program now.
  llvm::BitVector moved;
  /// The last program that each node was counted to, and what it is there.
  SmallVector<unsigned> memberOf;
  SmallVector<Operation *> made;
  unsigned programs = 0;
};

struct DistSplitRoles : public impl::DistSplitRolesBase<DistSplitRoles> {
  using DistSplitRolesBase::DistSplitRolesBase;

  void runOnOperation() override {
    if (!role.empty() && role != "chief" && role != "worker" && role != "server") {
      getOperation().emitError() << "role=" << role << " is none: there are chief, worker and server";
      return signalPassFailure();
    }
    auto graphs = getOperation().getOps<dfg::GraphOp>();
    if (graphs.empty())
      return;
    dfg::GraphOp graph = *graphs.begin();
    if (graph->hasAttr(dist::kRoleAttr)) {
      graph.emitError("is a role's program already");
      return signalPassFailure();
    }
    // Without servers all workers are alike, whatever some of them own: the program stands once for all of them.
    bool isSplit = llvm::any_of(graph.getBody().front(), [](Operation &op) { return isServer(getPlace(&op)); });
    if ((isSplit && failed(Splitter(graph).run())) || failed(select()))
      return signalPassFailure();
  }

private:
  /// Only the program that is asked for, with the variables that it names.
  LogicalResult select() {
    if (role.empty())
      return success();
    ModuleOp module = getOperation();
    bool found = false;
    for (auto graph : llvm::make_early_inc_range(module.getOps<dfg::GraphOp>())) {
      auto is = graph->getAttrOfType<StringAttr>(dist::kRoleAttr);
      dist::PlaceAttr place = getPlace(graph);
      bool keep = is ? is.getValue() == role && (!place || place.getIndex() == index) : role != "server";
      found |= keep;
      if (!keep)
        graph.erase();
    }
    if (!found)
      return module.emitError() << "has no program of role " << role << (role == "server" ? " with this index" : "");
    llvm::DenseSet<Attribute> named;
    module.walk([&](dfg::VarHandleOp handle) { named.insert(handle.getVariableAttr().getAttr()); });
    for (auto variable : llvm::make_early_inc_range(module.getOps<dfg::VariableOp>()))
      if (!named.contains(variable.getSymNameAttr()))
        variable.erase();
    return success();
  }
};

} // namespace
} // namespace distc
