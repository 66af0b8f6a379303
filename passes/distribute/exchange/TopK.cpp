//===- TopK.cpp - The largest elements of gradients alone ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// As runtime/cpu/compressor.cpp: of each gradient the largest elements by
// magnitude travel, indices and values; what stays is added to the next step's
// (Aji and Heafield 2017; Stich, Cordonnier and Jaggi 2018).
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/exchange/Exchange.h"
#include <limits>

using namespace mlir;

namespace distc {
namespace {

class TopK {
public:
  TopK(Exchange &exchange, const Issue &issue, dist::Spec spec, dist::CompressionAttr compression)
      : exchange(exchange), nodes(exchange.nodes), builder(nodes.getBuilder()), issue(issue), spec(spec),
        compression(compression) {}

  /// The sums over all replicas.
  SmallVector<Value> run() {
    SmallVector<Value> like(issue.front()->getOperands());
    SmallVector<Value> indices, values;
    for (Operation *op : issue) {
      int64_t offset = 0;
      for (Value gradient : op->getOperands()) {
        encode(gradient, offset, indices, values);
        offset += StockNodes::count(gradient);
      }
    }
    Value where = nodes.concat("indices", indices), what = nodes.concat("values", values);
    if (exchange.hasPeers()) {
      where = exchange.collective("Gather", where, spec);
      what = exchange.collective("Gather", what, spec);
    }
    int64_t all = 0;
    for (Value gradient : like)
      all += StockNodes::count(gradient);
    // Elements that several replicas send are added up, in the order of replicas.
    Value sum = nodes.get("ScatterNd", "sum",
                          {where, what, nodes.constant("sum/shape", ArrayRef<int32_t>{static_cast<int32_t>(all)})},
                          RankedTensorType::get({all}, builder.getF32Type()),
                          {type("T", builder.getF32Type()), type("Tindices", builder.getI32Type())});
    return nodes.unflatten(sum, like);
  }

private:
  NamedAttribute type(llvm::StringRef name, Type value) { return nodes.attribute(name, value); }

  /// One replica's elements of one gradient, which begins at `offset` of the bucket.
  void encode(Value gradient, int64_t offset, SmallVector<Value> &indices, SmallVector<Value> &values) {
    int64_t count = StockNodes::count(gradient), kept = compression.getKept(count);
    if (kept == 0)
      return;
    Type f32 = builder.getF32Type(), i32 = builder.getI32Type();
    auto flat = RankedTensorType::get({count}, f32);
    Value error = exchange.addState("error", DenseElementsAttr::get(flat, builder.getF32FloatAttr(0)));
    Value whole = nodes.binary("AddV2", "corrected", nodes.reshape("flat", gradient, {count}),
                               exchange.readState("error/Read", error));
    // Not a number counts as larger than everything: it must show in the result.
    Value isNan = nodes.get("IsNan", "is_nan", whole, flat.clone(builder.getI1Type()), type("T", f32));
    Value infinite = nodes.scalar("infinity", std::numeric_limits<double>::infinity(), whole);
    Value magnitudes =
        nodes.get("SelectV2", "magnitudes",
                  {isNan, infinite, nodes.get("Abs", "absolute", whole, flat, type("T", f32))}, flat, type("T", f32));
    Operation *largest =
        nodes.make("TopKV2", "largest", {magnitudes, nodes.constant("kept", kept)},
                   {RankedTensorType::get({kept}, f32), RankedTensorType::get({kept}, i32)}, type("T", f32));
    Value chosen = largest->getResult(1);
    values.push_back(nodes.get("GatherV2", "sent", {whole, chosen, nodes.constant("axis", 0)},
                               RankedTensorType::get({kept}, f32),
                               {type("Tparams", f32), type("Tindices", i32), type("Taxis", i32)}));
    Value pairs = nodes.reshape("chosen", chosen, {kept, 1});
    Value begin = nodes.constant("offset", static_cast<int32_t>(offset));
    indices.push_back(nodes.get("AddV2", "place", {pairs, begin}, pairs.getType(), type("T", i32)));
    Value nothing = nodes.constant(
        "nothing", DenseElementsAttr::get(RankedTensorType::get({kept}, f32), builder.getF32FloatAttr(0)));
    Value lost = nodes.get("TensorScatterUpdate", "lost", {whole, pairs, nothing}, flat,
                           {type("T", f32), type("Tindices", i32)});
    exchange.keepState("error/Update", error, lost);
  }

  Exchange &exchange;
  StockNodes &nodes;
  OpBuilder &builder;
  const Issue &issue;
  dist::Spec spec;
  dist::CompressionAttr compression;
};

} // namespace

SmallVector<Value> sumLargest(Exchange &exchange, const Issue &issue, dist::Spec spec,
                              dist::CompressionAttr compression) {
  return TopK(exchange, issue, spec, compression).run();
}

} // namespace distc
