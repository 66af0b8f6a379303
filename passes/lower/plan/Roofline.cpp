//===- Roofline.cpp - The time that a chip's figures allow a plan ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/Roofline.h"

#include "dialects/drt/Drt.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/PlanReport.h"
#include "passes/lower/program/ScopeNames.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;

namespace distc {
namespace {

/// Grows when what readers of the document rely on changes.
constexpr int64_t kDocumentVersion = 1;
/// What of an entry's time a kernel takes, and how many times what it must it moves, to be named.
constexpr double kNamedPart = 0.01, kNamedExcess = 1.3;
/// Rows of the text; the document has all.
constexpr size_t kRowsPrinted = 20;
double &of(double (&times)[3], MatmulType type) { return times[static_cast<size_t>(type)]; }
double of(const double (&times)[3], MatmulType type) { return times[static_cast<size_t>(type)]; }

bool isCollective(Operation *op) { return isa<drt::AllReduceStartOp, drt::GatherStartOp>(op); }

std::string formatBytes(double bytes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (bytes >= 1e9)
    os << llvm::format("%.2f GB", bytes / 1e9);
  else if (bytes >= 1e6)
    os << llvm::format("%.2f MB", bytes / 1e6);
  else
    os << llvm::format("%.2f kB", bytes / 1e3);
  return text;
}

StringRef getCategory(Operation *op) {
  if (auto start = dyn_cast<drt::AllReduceStartOp>(op))
    return start.getScatter() ? "reduce_scatter" : start.getGather() ? "all_gather" : "all_reduce";
  return isa<drt::GatherStartOp>(op) ? "all_gather" : isa<drt::FetchOp>(op) ? "copy" : getScopeCategory(op);
}

std::string getRowName(Operation *op) {
  auto fetch = dyn_cast<drt::FetchOp>(op);
  return fetch ? "fetch " + fetch.getName().str() : getScopeName(op);
}

} // namespace

StringRef Roofline::getName(Limit limit) {
  switch (limit) {
  case Limit::Memory:
    return "memory";
  case Limit::Arithmetic:
    return "arithmetic";
  case Limit::Launch:
    return "launch";
  case Limit::Link:
    break;
  }
  return "link";
}

Roofline::Roofline(ModuleOp module, const Chip &chip)
    : chip(chip), estimate(module), symbols(module), replicas(drt::findProgram(module).getNumReplicas()) {
  // A plan has matmuls of one type.
  module.walk([&](Operation *op) { planned = std::max(planned, getMatmulType(op)); });
  for (drt::EntryOp planned : getEntries(module)) {
    Entry &entry = entries.emplace_back();
    entry.name = planned.getName().str();
    for (Operation &op : planned.getBody().front())
      add(&op, entry);
    schedule(entry);
  }
}

void Roofline::add(Operation *op, Entry &entry) {
  Row row{op, getRowName(op), getCategory(op).str(), estimate(op), 0, {}, Limit::Launch};
  if (isCollective(op)) {
    row.sent = replicas > 1 ? static_cast<int64_t>(getSent(op)) : 0;
    row.work.launches = row.sent > 0;
  }
  if (row.work.launches == 0 && !isa<drt::AllReduceWaitOp>(op))
    return;
  time(row);
  entry.work.flops += row.work.flops;
  entry.work.matmuls += row.work.matmuls;
  entry.work.bytes += row.work.bytes;
  entry.work.least += row.work.least;
  entry.work.launches += row.work.launches;
  entry.sent += row.sent;
  entry.rows.push_back(std::move(row));
}

/// What a rank sends in a ring.
double Roofline::getSent(Operation *op) const {
  double bytes = 0;
  auto start = dyn_cast<drt::AllReduceStartOp>(op);
  if (start)
    bytes = static_cast<double>(start.getGradients().empty() ? 0 : getMemberOffsets(start).back());
  else
    for (auto name : cast<drt::GatherStartOp>(op).getVariables().getAsRange<FlatSymbolRefAttr>())
      bytes += static_cast<double>(
          getTensorBytes(cast<RankedTensorType>(symbols.lookup<drt::VariableOp>(name.getAttr()).getType())));
  const double others = static_cast<double>(replicas - 1) / static_cast<double>(replicas);
  return bytes * others * (start && !start.getScatter() && !start.getGather() ? 2 : 1);
}

void Roofline::time(Row &row) const {
  const double launches = chip.launchSeconds * static_cast<double>(row.work.launches);
  const double memory = static_cast<double>(row.work.bytes) / chip.memoryBytes;
  const double link = static_cast<double>(row.sent) / chip.linkBytes;
  for (MatmulType type : kMatmulTypes) {
    const double arithmetic = static_cast<double>(row.work.matmuls) / chip.getMatmulFlops(type) +
                              static_cast<double>(row.work.flops - row.work.matmuls) / chip.flops;
    of(row.seconds, type) = launches + std::max({memory, arithmetic, link});
    if (type != planned)
      continue;
    const double longest = std::max({launches, memory, arithmetic, link});
    row.limit = longest == launches     ? Limit::Launch
                : longest == memory     ? Limit::Memory
                : longest == arithmetic ? Limit::Arithmetic
                                        : Limit::Link;
  }
}

/// Kernels run one behind the other, and collectives beside them, from their start to the wait for them.
void Roofline::schedule(Entry &entry) const {
  for (MatmulType type : kMatmulTypes) {
    double compute = 0, communication = 0;
    std::map<int64_t, double> ends; // of buckets
    for (const Row &row : entry.rows) {
      auto bucket = row.op->getAttrOfType<IntegerAttr>("bucket");
      if (isCollective(row.op)) {
        communication = std::max(communication, compute) + of(row.seconds, type);
        ends[bucket.getInt()] = communication;
      } else if (isa<drt::AllReduceWaitOp>(row.op)) {
        compute = std::max(compute, ends[bucket.getInt()]);
      } else {
        compute += of(row.seconds, type);
      }
    }
    of(entry.seconds, type) = std::max(compute, communication);
  }
  for (auto [number, row] : llvm::enumerate(entry.rows))
    if (row.getExcess() > kNamedExcess && of(row.seconds, planned) > kNamedPart * of(entry.seconds, planned))
      entry.excessive.push_back(number);
}

void Roofline::print(llvm::raw_ostream &os) const {
  os << chip.name << " (" << chip.arch << "): "
     << llvm::format("%.0f GB/s; %.4g TFLOP/s of fp32, %.4g of tf32, %.4g of bf16; links %.0f GB/s; %.1f us a launch\n",
                     chip.memoryBytes / 1e9, chip.flops / 1e12, chip.tf32Flops / 1e12, chip.bf16Flops / 1e12,
                     chip.linkBytes / 1e9, chip.launchSeconds * 1e6);
  for (const Entry &entry : entries) {
    os << "\n"
       << entry.name << ": " << entry.work.launches << " launches, "
       << formatBytes(static_cast<double>(entry.work.bytes)) << " moved of "
       << formatBytes(static_cast<double>(entry.work.least)) << " that must be, "
       << llvm::format("%.3f GFLOP (%.3f in matmuls)", static_cast<double>(entry.work.flops) / 1e9,
                       static_cast<double>(entry.work.matmuls) / 1e9);
    if (entry.sent)
      os << ", " << formatBytes(static_cast<double>(entry.sent)) << " sent";
    os << "\n  at least";
    for (MatmulType type : kMatmulTypes)
      os << llvm::format(" %.3f ms with matmuls in ", of(entry.seconds, type) * 1e3) << distc::getName(type)
         << (type == planned ? " (as planned)" : "") << (type == kMatmulTypes[2] ? "\n" : ",");
    std::vector<const Row *> longest;
    for (const Row &row : entry.rows)
      if (row.work.launches)
        longest.push_back(&row);
    llvm::stable_sort(longest,
                      [this](const Row *x, const Row *y) { return of(x->seconds, planned) > of(y->seconds, planned); });
    os << "        us  limit           moved    of what must be     GFLOP  operation\n";
    for (const Row *row : ArrayRef(longest).take_front(kRowsPrinted))
      os << llvm::format("  %8.2f  %-10s %10s %12.2f x    %9.3f  ", of(row->seconds, planned) * 1e6,
                         getName(row->limit).data(),
                         formatBytes(static_cast<double>(row->work.bytes + row->sent)).c_str(), row->getExcess(),
                         static_cast<double>(row->work.flops) / 1e9)
         << row->category << " " << row->name << "\n";
    if (longest.size() > kRowsPrinted)
      os << "  and " << longest.size() - kRowsPrinted << " shorter ones\n";
    for (size_t number : entry.excessive)
      os << "  moves " << llvm::format("%.2f", entry.rows[number].getExcess())
         << " times what it must: " << entry.rows[number].category << " " << entry.rows[number].name << "\n";
  }
}

void Roofline::write(llvm::json::OStream &json) const {
  auto writeTimes = [&](llvm::json::OStream &to, const double (&seconds)[3]) {
    to.attributeObject("us", [&] {
      for (MatmulType type : kMatmulTypes)
        to.attributeBegin(distc::getName(type)), to.rawValue(llvm::formatv("{0:f3}", of(seconds, type) * 1e6).str()),
            to.attributeEnd();
    });
  };
  auto writeWork = [](llvm::json::OStream &to, const Work &work, int64_t sent) {
    to.attribute("launches", work.launches);
    to.attribute("moves", work.bytes);
    to.attribute("must_move", work.least);
    to.attribute("flops", work.flops);
    to.attribute("matmul_flops", work.matmuls);
    if (sent)
      to.attribute("sends", sent);
  };
  json.object([&] {
    json.attribute("precision", distc::getName(planned));
    json.attributeObject("chip", [&] {
      json.attribute("arch", chip.arch);
      json.attribute("name", chip.name);
      json.attribute("memory_bytes_per_s", chip.memoryBytes);
      json.attributeObject("flops_per_s", [&] {
        for (MatmulType type : kMatmulTypes)
          json.attribute(distc::getName(type), chip.getMatmulFlops(type));
      });
      json.attribute("link_bytes_per_s", chip.linkBytes);
      json.attribute("launch_us", chip.launchSeconds * 1e6);
    });
    json.attributeArray("entries", [&] {
      for (const Entry &entry : entries)
        json.object([&] {
          json.attribute("name", entry.name);
          writeWork(json, entry.work, entry.sent);
          writeTimes(json, entry.seconds);
          json.attributeArray("excessive", [&] {
            for (size_t number : entry.excessive)
              json.value(static_cast<int64_t>(number));
          });
          json.attributeArray("operations", [&] {
            for (const Row &row : entry.rows)
              writeRow(json, [&](llvm::json::OStream &line) {
                line.object([&] {
                  line.attribute("name", toJsonText(row.name));
                  line.attribute("category", row.category);
                  line.attribute("operation", row.op->getName().getStringRef());
                  if (auto kernel = row.op->getAttrOfType<FlatSymbolRefAttr>("kernel"))
                    line.attribute("kernel", toJsonText(kernel.getValue()));
                  writeWork(line, row.work, row.sent);
                  writeTimes(line, row.seconds);
                  line.attribute("limit", getName(row.limit));
                });
              });
          });
        });
    });
  });
}

LogicalResult writeRooflines(ModuleOp module, ArrayRef<const Chip *> chips, bool isJson, llvm::raw_ostream &os) {
  FailureOr<drt::ProgramOp> planned = drt::getPlannedProgram(module);
  if (failed(planned))
    return failure();
  drt::ProgramOp program = *planned;
  if (!isJson) {
    os << "Roofline of " << program.getGraph() << ", strategy " << program.getStrategy() << ", "
       << program.getNumReplicas() << (program.getNumReplicas() == 1 ? " replica" : " replicas") << ", batch "
       << static_cast<int64_t>(program.getBatch()) << ": one replica\n";
    for (const Chip *chip : chips) {
      os << "\n";
      Roofline(module, *chip).print(os);
    }
    return success();
  }
  llvm::json::OStream json(os, 1);
  json.object([&] {
    json.attribute("document", "distc roofline");
    json.attribute("version", kDocumentVersion);
    json.attribute("graph", toJsonText(program.getGraph()));
    json.attribute("strategy", toJsonText(program.getStrategy()));
    json.attribute("replicas", program.getNumReplicas());
    json.attribute("global_batch", static_cast<int64_t>(program.getBatch()));
    json.attributeArray("chips", [&] {
      for (const Chip *chip : chips)
        Roofline(module, *chip).write(json);
    });
  });
  os << "\n";
  return success();
}

} // namespace distc
