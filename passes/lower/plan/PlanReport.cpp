//===- PlanReport.cpp - The plan as a JSON document ------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/PlanReport.h"

#include "dialects/drt/Servers.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/EntryBlocks.h"
#include "passes/lower/plan/WorkEstimate.h"
#include "passes/lower/program/ScopeNames.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;

namespace distc {

using llvm::json::OStream;

void writeRow(OStream &json, llvm::function_ref<void(OStream &)> write) {
  json.rawValue([&](llvm::raw_ostream &os) {
    OStream row(os);
    write(row);
  });
}

std::string toJsonText(StringRef text) { return llvm::json::isUTF8(text) ? text.str() : llvm::json::fixUTF8(text); }

namespace {

struct Task {
  std::string name, host;
  int64_t firstReplica, numReplicas;
};

/// The variables that an attribute names, in arrays of arrays as well.
void collectVariables(Attribute attribute, SmallVectorImpl<StringRef> &names) {
  if (auto symbol = dyn_cast_or_null<FlatSymbolRefAttr>(attribute))
    names.push_back(symbol.getValue());
  else if (auto array = dyn_cast_or_null<ArrayAttr>(attribute))
    for (Attribute member : array)
      collectVariables(member, names);
}

/// Whether one of a table's shards, three numbers each, is the task's.
bool ownsShard(DenseI64ArrayAttr shards, int64_t task) {
  for (int64_t i = 2; i < shards.size(); i += 3)
    if (shards[i] == task)
      return true;
  return false;
}

struct Bucket {
  drt::AllReduceStartOp reduce; // one of these
  drt::GatherStartOp gather;
  drt::PullRowsOp pull;
  drt::PushRowsOp push;
  SmallVector<int64_t> owners; // of the members; none: shares

  explicit Bucket(Operation *op)
      : reduce(dyn_cast<drt::AllReduceStartOp>(op)), gather(dyn_cast<drt::GatherStartOp>(op)),
        pull(dyn_cast<drt::PullRowsOp>(op)), push(dyn_cast<drt::PushRowsOp>(op)) {
    if (reduce)
      owners.append(llvm::to_vector(reduce.getOwners().value_or(ArrayRef<int64_t>())));
    else if (gather)
      owners.append(llvm::to_vector(gather.getOwners().value_or(ArrayRef<int64_t>())));
    else if (pull)
      owners.append(llvm::to_vector(pull.getOwners()));
    else if (push)
      for (auto shards : push.getShards().getAsRange<DenseI64ArrayAttr>())
        for (int64_t i = 2; i < shards.size(); i += 3)
          owners.push_back(shards[i]);
  }

  explicit operator bool() { return reduce || gather || pull || push; }
  int64_t getNumber() {
    return reduce ? reduce.getBucket() : gather ? gather.getBucket() : pull ? pull.getBucket() : push.getBucket();
  }
};

std::string getTypeName(Type element) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (element.isInteger(1))
    return "bool";
  if (auto integer = dyn_cast<IntegerType>(element))
    os << (integer.isUnsigned() ? "uint" : "int") << integer.getWidth();
  else if (element.isBF16())
    os << "bfloat16";
  else if (isa<FloatType>(element))
    os << "float" << element.getIntOrFloatBitWidth();
  else
    os << element;
  return text;
}

class PlanReport {
public:
  PlanReport(ModuleOp module, drt::ProgramOp program, OStream &json)
      : module(module), program(program), json(json), estimate(module), replicas(program.getNumReplicas()),
        isForDevices(program.isForDevices()) {
    for (auto variable : module.getOps<drt::VariableOp>()) {
      numbers[variable.getSymName()] = variables.size();
      variables.push_back(variable);
    }
    for (auto task : program.getTasks().getAsRange<drt::TaskAttr>())
      tasks.push_back({(task.getJob() + ":" + Twine(task.getIndex())).str(), task.getHost().str(),
                       task.getFirstReplica(), task.getNumReplicas()});
    findSlots();
  }

  void write() {
    json.attribute("graph", toJsonText(program.getGraph()));
    json.attribute("strategy", toJsonText(program.getStrategy()));
    json.attribute("target", toJsonText(program.getTarget()));
    json.attribute("global_batch", static_cast<int64_t>(program.getBatch()));
    json.attribute("replicas", replicas);
    json.attribute("arena_bytes", program.getArenaBytesAttr().getInt());
    if (IntegerAttr block = program.getVariableBytesAttr())
      json.attribute("device_variable_bytes", block.getInt());
    writeSteps();
    json.attributeArray("tasks", [&] {
      for (auto [i, task] : llvm::enumerate(tasks))
        writeTask(task, i);
    });
    json.attributeArray("variables", [&] {
      for (drt::VariableOp variable : variables)
        writeVariable(variable);
    });
    json.attributeBegin("assumed");
    writeRow(json, [&](OStream &row) {
      const AssumedMachine &machine = estimate.getMachine();
      row.object([&] {
        row.attribute("flops_per_s", machine.flops);
        row.attribute("memory_bytes_per_s", machine.memoryBytes);
        row.attribute("sent_bytes_per_s", machine.sentBytes);
        row.attribute("start_us", machine.startSeconds * 1e6);
      });
    });
    json.attributeEnd();
    json.attributeArray("entries", [&] {
      for (drt::EntryOp entry : getEntries(module))
        json.object([&] { writeEntry(entry); });
    });
  }

private:
  /// What makes an update of several steps, or of several replicas' own ones.
  void writeSteps() {
    drt::PushOp push;
    int64_t steps = 1;
    for (drt::EntryOp entry : getEntries(module))
      entry.walk([&](Operation *op) {
        if (auto found = dyn_cast<drt::PushOp>(op))
          push = found;
        else if (auto accumulated = dyn_cast<drt::AccumulatedOp>(op))
          steps = static_cast<int64_t>(accumulated.getSteps());
      });
    if (steps > 1)
      json.attribute("accumulate_steps", steps);
    if (!push)
      return;
    json.attributeBegin("servers");
    writeRow(json, [&](OStream &row) {
      row.object([&] {
        row.attribute("required", static_cast<int64_t>(push.getRequired()));
        row.attribute("staleness", static_cast<int64_t>(push.getStaleness()));
        row.attribute("async", push.getAsync());
        row.attribute("gradients", static_cast<int64_t>(push.getGradients().size()));
      });
    });
    json.attributeEnd();
  }

  /// The first variable of an update is trained, further ones are its slots.
  void findSlots() {
    for (drt::EntryOp entry : getEntries(module))
      entry.walk([&](Operation *op) {
        auto written = op->getAttrOfType<ArrayAttr>("variables");
        if (!written || getScopeCategory(op) != "update")
          return;
        auto note = [&](ArrayAttr names) {
          for (auto slot : names.getValue().drop_front())
            slotOf.try_emplace(cast<FlatSymbolRefAttr>(slot).getValue(),
                               numbers.lookup(cast<FlatSymbolRefAttr>(names[0]).getValue()));
        };
        if (isa<drt::UpdateGroupOp>(op))
          for (auto member : written.getAsRange<ArrayAttr>())
            note(member);
        else if (!written.empty())
          note(written);
      });
  }

  int64_t getHeldBytes(drt::VariableOp variable, int64_t task) const {
    if (variable.getOwner() && static_cast<int64_t>(*variable.getOwner()) != task)
      return 0;
    const int64_t bytes = getTensorBytes(cast<RankedTensorType>(variable.getType()));
    // Replicas on devices have memory of their own; those of processors hold shares apart, and all else together.
    const bool isEachReplicas = variable.getShares() || isForDevices;
    return isEachReplicas ? bytes * tasks[task].numReplicas : bytes;
  }

  void writeTask(const Task &task, int64_t number) {
    int64_t bytes = 0;
    for (drt::VariableOp variable : variables)
      bytes += getHeldBytes(variable, number);
    writeRow(json, [&](OStream &row) {
      row.object([&] {
        row.attribute("name", toJsonText(task.name));
        row.attribute("host", toJsonText(task.host));
        row.attribute("first_replica", task.firstReplica);
        row.attribute("replicas", task.numReplicas);
        row.attribute("variable_bytes", bytes);
      });
    });
  }

  static void writeNumbers(OStream &row, StringRef key, ArrayRef<int64_t> values) {
    row.attributeArray(key, [&] {
      for (int64_t value : values)
        row.value(value);
    });
  }

  void writeVariable(drt::VariableOp variable) {
    auto type = cast<RankedTensorType>(variable.getType());
    writeRow(json, [&](OStream &row) {
      row.object([&] {
        row.attribute("name", toJsonText(variable.getWhole().value_or(variable.getSymName())));
        row.attribute("symbol", toJsonText(variable.getSymName()));
        row.attribute("type", getTypeName(type.getElementType()));
        writeNumbers(row, "shape", type.getShape());
        row.attribute("bytes", getTensorBytes(type));
        row.attribute("trained", variable.getTrainable());
        row.attribute("saved", variable.getSaved());
        if (variable.getFullShape())
          writeNumbers(row, "full_shape", *variable.getFullShape());
        if (variable.getSliceBegin())
          writeNumbers(row, "begin", *variable.getSliceBegin());
        if (variable.getShares())
          row.attribute("shares", static_cast<int64_t>(*variable.getShares()));
        if (variable.getOwner())
          row.attribute("owner", static_cast<int64_t>(*variable.getOwner()));
        if (auto slot = slotOf.find(variable.getSymName()); slot != slotOf.end())
          row.attribute("slot_of", slot->second);
      });
    });
  }

  void writeEntry(drt::EntryOp entry) {
    SmallVector<Bucket> buckets;
    llvm::DenseMap<Operation *, int64_t> shown;
    SmallVector<int64_t> next; // the first operation that is shown, from a position on
    int64_t count = 0;
    for (Operation &op : entry.getBody().front()) {
      next.push_back(count);
      if (Bucket bucket(&op); bucket)
        buckets.push_back(bucket);
      if (!getScopeCategory(&op).empty())
        shown[&op] = count++;
    }
    json.attribute("name", toJsonText(entry.getName()));
    json.attributeArray("buckets", [&] {
      for (Bucket bucket : buckets)
        writeBucket(bucket);
    });
    json.attributeArray("operations", [&] {
      for (Operation &op : entry.getBody().front())
        if (shown.contains(&op))
          writeOperation(&op);
    });
    json.attributeArray("blocks", [&] {
      for (const EntryBlock &block : EntryBlocks(entry).readPlaces())
        writeBlock(block, next, count, shown);
    });
    json.attributeArray("messages", [&] {
      for (Bucket bucket : buckets)
        writeMessages(bucket);
    });
  }

  // ---- Buckets -----------------------------------------------------------------------------------------

  struct Member {
    StringRef name;
    int64_t bytes;
    Type element;
    int64_t shares = 0; // of a variable that replicas hold so
  };

  SmallVector<Member> getMembers(Bucket bucket) {
    SmallVector<Member> members;
    if (auto reduce = bucket.reduce) {
      for (auto [name, gradient] : llvm::zip(reduce.getNames().getAsRange<StringAttr>(), reduce.getGradients())) {
        auto type = cast<RankedTensorType>(gradient.getType());
        members.push_back({name.getValue(), getTensorBytes(type), type.getElementType()});
      }
    } else if (bucket.pull) {
      for (auto [variable, rows] :
           llvm::zip(bucket.pull.getVariables().getAsRange<FlatSymbolRefAttr>(), bucket.pull.getRows())) {
        auto type = cast<RankedTensorType>(rows.getType());
        members.push_back({variable.getValue(), getTensorBytes(type), type.getElementType()});
      }
    } else if (bucket.push) {
      // Which rows a batch has nobody knows before: as if each were as often there.
      for (auto [name, shards, values] :
           llvm::zip(bucket.push.getNames().getAsRange<StringAttr>(),
                     bucket.push.getShards().getAsRange<DenseI64ArrayAttr>(), bucket.push.getValues())) {
        int64_t rows = 0;
        for (int64_t i = 1; i < shards.size(); i += 3)
          rows += shards[i];
        auto type = cast<RankedTensorType>(values.getType());
        for (int64_t i = 1; i < shards.size(); i += 3)
          members.push_back({name.getValue(),
                             static_cast<int64_t>(static_cast<double>(getTensorBytes(type)) *
                                                  static_cast<double>(shards[i]) / static_cast<double>(rows)),
                             type.getElementType()});
      }
    } else {
      for (auto symbol : bucket.gather.getVariables().getAsRange<FlatSymbolRefAttr>()) {
        drt::VariableOp variable = variables[numbers.lookup(symbol.getValue())];
        auto type = cast<RankedTensorType>(variable.getType());
        members.push_back({symbol.getValue(),
                           getTensorBytes(type) * static_cast<int64_t>(variable.getShares().value_or(1)),
                           type.getElementType(), static_cast<int64_t>(variable.getShares().value_or(0))});
      }
    }
    return members;
  }

  static StringRef getKind(Bucket bucket) {
    auto reduce = bucket.reduce;
    if (bucket.pull || bucket.push)
      return bucket.pull ? "pull_rows" : "push_rows";
    if (!reduce)
      return bucket.owners.empty() ? "gather" : "pull";
    if (reduce.getGather())
      return "gather_rows";
    return reduce.getOwners() ? "push" : reduce.getScatter() ? "reduce_scatter" : "all_reduce";
  }

  void writeBucket(Bucket bucket) {
    SmallVector<Member> members = getMembers(bucket);
    int64_t bytes = 0;
    for (const Member &member : members)
      bytes += member.bytes;
    writeRow(json, [&](OStream &row) {
      row.object([&] {
        row.attribute("number", bucket.getNumber());
        row.attribute("kind", getKind(bucket));
        if (auto reduce = bucket.reduce) {
          row.attribute("reduction", reduce.getMean() ? "mean" : "sum");
          if (auto places = reduce.getAt(); places && !places->empty())
            row.attribute("at", places->front());
          for (auto [key, attribute] :
               {std::pair<StringRef, std::optional<Attribute>>("compression", reduce.getCompression()),
                {"aggregator", reduce.getAggregator()}})
            if (attribute && *attribute) {
              std::string text;
              llvm::raw_string_ostream(text) << *attribute;
              row.attribute(key, toJsonText(text));
            }
        }
        if (!members.empty())
          row.attribute("type", getTypeName(members.front().element));
        row.attribute("bytes", bytes);
        row.attributeArray("members", [&] {
          for (auto [i, member] : llvm::enumerate(members))
            row.object([&] {
              row.attribute("name", toJsonText(member.name));
              row.attribute("bytes", member.bytes);
              if (!bucket.owners.empty())
                row.attribute("owner", bucket.owners[i]);
            });
        });
      });
    });
  }

  void writeMessage(Bucket bucket, int64_t from, int64_t to, int64_t bytes) {
    if (from == to || bytes == 0)
      return;
    writeRow(json, [&](OStream &row) {
      row.object([&] {
        row.attribute("bucket", bucket.getNumber());
        row.attribute("from", from);
        row.attribute("to", to);
        row.attribute("bytes", bytes);
      });
    });
  }

  /// Who sends what to whom. All-reduce is left to the communicator, which chooses how: of it a task's contribution.
  void writeMessages(Bucket bucket) {
    if (tasks.size() < 2)
      return;
    SmallVector<Member> members = getMembers(bucket);
    int64_t all = 0;
    for (const Member &member : members)
      all += member.bytes;
    if (getKind(bucket) == "all_reduce") {
      writeRow(json, [&](OStream &row) {
        row.object([&] {
          row.attribute("bucket", bucket.getNumber());
          row.attribute("among", static_cast<int64_t>(tasks.size()));
          row.attribute("bytes", all);
        });
      });
      return;
    }
    for (int64_t from = 0, n = tasks.size(); from < n; ++from)
      for (int64_t to = 0; to < n; ++to) {
        int64_t bytes = 0;
        for (auto [i, member] : llvm::enumerate(members)) {
          if (bucket.pull) // Who asks an owner for rows tells it which.
            bytes += bucket.owners[i] == from ? member.bytes * tasks[to].numReplicas
                     : bucket.owners[i] == to ? 8 * countElements(bucket.pull.getIndices()[i]) * tasks[from].numReplicas
                                              : 0;
          else if (bucket.push)
            bytes += bucket.owners[i] == to ? member.bytes * tasks[from].numReplicas : 0;
          else if (!bucket.owners.empty())
            bytes += bucket.owners[i] == (bucket.reduce ? to : from) ? member.bytes : 0;
          else if (bucket.reduce && bucket.reduce.getGather())
            bytes += member.bytes * tasks[from].numReplicas;
          else // A share of each member for every replica.
            bytes += member.bytes * tasks[bucket.reduce ? to : from].numReplicas / replicas;
        }
        // Every owner of a table is told all of its indices that are pushed.
        if (bucket.push)
          for (auto [shards, indices] :
               llvm::zip(bucket.push.getShards().getAsRange<DenseI64ArrayAttr>(), bucket.push.getIndices()))
            if (ownsShard(shards, to))
              bytes += tasks[from].numReplicas * getTensorBytes(cast<RankedTensorType>(indices.getType()));
        writeMessage(bucket, from, to, bytes);
      }
  }

  // ---- Operations ----------------------------------------------------------------------------------------

  void writeOperation(Operation *op) {
    const Work work = estimate(op);
    SmallVector<StringRef> touched;
    collectVariables(op->getAttr("variables"), touched);
    for (Value operand : op->getOperands())
      if (auto read = getStorage(operand).getDefiningOp<drt::ReadOp>())
        if (!llvm::is_contained(touched, read.getVariable()))
          touched.push_back(read.getVariable());
    int64_t written = 0;
    for (Value result : op->getResults())
      written += getTensorBytes(cast<RankedTensorType>(result.getType()));
    writeRow(json, [&](OStream &row) {
      row.object([&] {
        row.attribute("name", toJsonText(getScopeName(op)));
        row.attribute("category", getScopeCategory(op));
        row.attribute("operation", op->getName().getStringRef());
        SmallVector<StringRef> nodes = listNodes(op->getLoc());
        if (!nodes.empty())
          row.attributeArray("nodes", [&] {
            for (StringRef node : nodes)
              row.value(toJsonText(node));
          });
        row.attribute("us", std::round(estimate.getSeconds(work) * 1e9) / 1e3);
        if (work.flops)
          row.attribute("flops", work.flops);
        if (work.bytes)
          row.attribute("moves", work.bytes);
        if (written)
          row.attribute("writes", written);
        if (auto places = op->getAttrOfType<DenseI64ArrayAttr>("at"); places && !places.empty())
          row.attribute("at", places[0]);
        if (auto bucket = op->getAttrOfType<IntegerAttr>("bucket"))
          row.attribute("bucket", bucket.getInt());
        if (auto kernel = op->getAttrOfType<FlatSymbolRefAttr>("kernel"))
          row.attribute("kernel", toJsonText(kernel.getValue()));
        if (!touched.empty())
          row.attributeArray("variables", [&] {
            for (StringRef name : touched)
              row.value(numbers.lookup(name));
          });
      });
    });
  }

  // ---- Memory --------------------------------------------------------------------------------------------

  void writeBlock(const EntryBlock &block, ArrayRef<int64_t> next, int64_t count,
                  const llvm::DenseMap<Operation *, int64_t> &shown) {
    if (block.bytes == 0)
      return;
    // What is read by an operation that is not shown, such as a fetch, lives until the next that is.
    auto toShown = [&](int64_t position) {
      return position < static_cast<int64_t>(next.size()) ? std::min(next[position], count - 1) : count - 1;
    };
    writeRow(json, [&](OStream &row) {
      row.object([&] {
        if (auto bucket = dyn_cast<drt::AllReduceStartOp>(block.of))
          row.attribute("bucket", bucket.getBucket());
        else if (auto found = shown.find(block.of); found != shown.end())
          row.attribute("operation", found->second);
        // Copies of variables, or of rows, as a server gave them.
        if (auto pull = dyn_cast<drt::PullOp>(block.of))
          row.attribute("variable", numbers.lookup(pull.getPulled(block.result).getValue()));
        row.attribute("begin", toShown(block.begin));
        row.attribute("end", toShown(block.end));
        row.attribute("bytes", block.bytes);
        row.attribute("at", block.place);
      });
    });
  }

  ModuleOp module;
  drt::ProgramOp program;
  OStream &json;
  WorkEstimate estimate;
  SmallVector<Task> tasks;
  int64_t replicas;
  bool isForDevices;
  SmallVector<drt::VariableOp> variables;
  llvm::StringMap<int64_t> numbers; // of variables, by symbol
  llvm::StringMap<int64_t> slotOf;
};

} // namespace

LogicalResult writePlanReport(ModuleOp module, OStream &json) {
  FailureOr<drt::ProgramOp> program = drt::getPlannedProgram(module);
  if (failed(program))
    return failure();
  PlanReport(module, *program, json).write();
  return success();
}

} // namespace distc
