//===- Routines.cpp - What routines of the runtime's library are given -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A routine knows its tensors by their addresses and its parameters alone
// (runtime/include/drt/drt.h says what each takes): parameters that say another
// size would have it read and write memory that is not theirs.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "runtime/include/drt/drt.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace distc::drt {

namespace {

/// Elements of a tensor of a routine, and their type: a DRT_* of drt.h.
struct Tensor {
  int64_t count;
  int64_t dtype;
};

/// What parameters make of a routine's tensors: operands, then results.
struct Signature {
  SmallVector<Tensor> operands, results;
};

// Of a generator (random_state.h); drt.random_state has the replica's number behind them.
constexpr int64_t kStateWords = 6;

/// Matrices of `parameters`' first type, as many as the second says, and what else is behind them. None where
/// `parameters` are not those of the routine.
std::optional<Signature> ofMatrices(StringRef name, ArrayRef<int64_t> parameters) {
  const auto size = llvm::StringSwitch<size_t>(name)
                        .Cases("cholesky", "matrix_determinant", "log_matrix_determinant", "matrix_square_root", 1)
                        .Cases("matrix_inverse", "self_adjoint_eig", "householder_factors", 2)
                        .Case("tridiagonal_solve", 2)
                        .Cases("matrix_solve", "qr", "lu", "lu_pivots", "householder_product", 3)
                        .Cases("matrix_triangular_solve", "matrix_solve_ls", "svd", 4)
                        .Default(0);
  if (size == 0 || parameters.size() != size + 2)
    return std::nullopt;
  const int64_t dtype = parameters[0], matrices = parameters[1], rows = parameters[2];
  if (dtype != DRT_F32 && dtype != DRT_F64)
    return std::nullopt;
  ArrayRef<int64_t> p = parameters.drop_front(2);
  auto of = [&](int64_t n, int64_t m = 1) { return Tensor{matrices * n * m, dtype}; };
  const Tensor square = of(rows, rows);
  if (name == "cholesky" || name == "matrix_inverse" || name == "matrix_square_root")
    return Signature{{square}, {square}};
  if (name == "matrix_determinant")
    return Signature{{square}, {of(1)}};
  if (name == "log_matrix_determinant")
    return Signature{{square}, {of(1), of(1)}};
  if (name == "matrix_solve" || name == "matrix_triangular_solve")
    return Signature{{square, of(rows, p[1])}, {of(rows, p[1])}};
  if (name == "tridiagonal_solve")
    return Signature{{of(3, rows), of(rows, p[1])}, {of(rows, p[1])}};
  if (name == "self_adjoint_eig")
    return Signature{{square}, p[1] ? SmallVector<Tensor>{of(rows), square} : SmallVector<Tensor>{of(rows)}};
  const int64_t columns = p[1], least = std::min(rows, columns);
  const Tensor matrix = of(rows, columns);
  if (name == "matrix_solve_ls")
    return Signature{{matrix, of(rows, p[2]), {1, DRT_F64}}, {of(columns, p[2])}};
  if (name == "qr")
    return Signature{{matrix}, {of(rows, p[2] ? rows : least), of(p[2] ? rows : least, columns)}};
  if (name == "householder_factors")
    return Signature{{matrix}, {matrix, of(least)}};
  if (name == "householder_product")
    return Signature{{matrix, of(p[2])}, {matrix}};
  if (name == "svd") {
    Signature found{{matrix}, {of(least)}};
    if (p[2])
      found.results.append({of(rows, p[3] ? rows : least), of(columns, p[3] ? columns : least)});
    return found;
  }
  return Signature{{matrix}, {matrix, {matrices * (name == "lu" ? rows : least), p[2]}}};
}

std::optional<Signature> getSignature(StringRef name, ArrayRef<int64_t> p) {
  // How large the numbers are that candidates are drawn from, is no size.
  auto isSize = [](int64_t parameter) { return parameter >= 0 && parameter <= INT32_MAX; };
  if (!llvm::all_of(name == "sample_candidates" ? p.take_front(3) : p, isSize))
    return std::nullopt;
  if (name == "top_k" && p.size() == 5 && p[3] <= p[2])
    return Signature{{{p[1] * p[2], p[0]}}, {{p[1] * p[3], p[0]}, {p[1] * p[3], p[4]}}};
  if (name == "ctc_loss" && p.size() == 8)
    return Signature{{{p[1] * p[2] * p[3], p[0]}, {p[1] * p[4], DRT_I32}, {p[1], DRT_I32}},
                     {{p[1], p[0]}, {p[1] * p[2] * p[3], p[0]}}};
  if (name == "non_max_suppression" && p.size() == 4 && p[2] <= 1 && p[3] <= 1)
    return Signature{{{p[0] * (p[2] ? p[0] : 4), DRT_F32}, {p[0], DRT_F32}, {1, DRT_F32}, {1, DRT_F32}, {1, DRT_F32}},
                     {{p[1], DRT_I32}, {p[1], DRT_F32}, {1, DRT_I32}}};
  if (name == "combined_non_max_suppression" && p.size() == 7 && (p[2] == 1 || p[2] == p[3]))
    return Signature{{{p[0] * p[1] * p[2] * 4, DRT_F32}, {p[0] * p[1] * p[3], DRT_F32}, {1, DRT_F32}, {1, DRT_F32}},
                     {{p[0] * p[5] * 4, DRT_F32}, {p[0] * p[5], DRT_F32}, {p[0] * p[5], DRT_F32}, {p[0], DRT_I32}}};
  if (name == "ctc_greedy_decoder" && p.size() == 6 && p[5] < p[3]) {
    const int64_t labels = p[1] * p[2];
    return Signature{{{labels * p[3], p[0]}, {p[2], DRT_I32}},
                     {{labels * 2, DRT_I64}, {labels, DRT_I64}, {2, DRT_I64}, {p[2], p[0]}}};
  }
  if (name == "edit_distance" && p.size() >= 5 && p[0] + 4 == static_cast<int64_t>(p.size())) {
    const int64_t axes = p[0] + 1;
    return Signature{{{p[1] * axes, DRT_I64}, {p[1], DRT_I64}, {p[2] * axes, DRT_I64}, {p[2], DRT_I64}},
                     {{llvm::product_of(p.drop_front(4)), DRT_F32}}};
  }
  if (name == "isotonic_regression" && p.size() == 3)
    return Signature{{{p[1] * p[2], p[0]}}, {{p[1] * p[2], p[0]}, {p[1] * p[2], DRT_I32}}};
  if (name == "sparse_block" && p.size() == 2)
    return Signature{{{p[0] * p[1], DRT_I64}, {p[1], DRT_I64}, {p[1], DRT_I64}},
                     {{p[0], DRT_I64}, {p[0] * p[1], DRT_I64}}};
  if (name == "sparse_block_rows" && p.size() == 3)
    return Signature{{{p[0] * p[1], DRT_I64}, {p[1], DRT_I64}, {p[2] * p[1], DRT_I64}}, {{p[0], DRT_I64}}};
  if (name == "shuffled_rows" && p.size() == 1)
    return Signature{{{p[0], DRT_I32}}, {{p[0], DRT_I32}}};
  if (name == "fractional_sequences" && p.size() == 6 && p[2] > 0 && p[2] <= p[0] && p[3] > 0 && p[3] <= p[1])
    return Signature{{{kStateWords, DRT_I32}}, {{p[2] + 1, DRT_I64}, {p[3] + 1, DRT_I64}}};
  if (name.starts_with("fractional_") && p.size() == 8) {
    const Tensor images = {p[1] * p[2] * p[3] * p[4], p[0]}, pooled = {p[1] * p[5] * p[6] * p[4], p[0]};
    const Tensor rows = {p[5] + 1, DRT_I64}, columns = {p[6] + 1, DRT_I64};
    if (name == "fractional_max" || name == "fractional_avg")
      return Signature{{images, rows, columns}, {pooled}};
    if (name == "fractional_avg_grad")
      return Signature{{pooled, rows, columns}, {images}};
    if (name == "fractional_max_pool_grad")
      return Signature{{images, pooled, rows, columns}, {images}};
  }
  if (name == "sample_candidates" && p.size() == 5 && p[0] <= 2 && (!p[4] || p[2] <= p[3])) {
    Signature found{{{kStateWords, DRT_I32}, {p[1], DRT_I64}}, {{p[2], DRT_I64}, {p[1], DRT_F32}, {p[2], DRT_F32}}};
    if (p[0] == 2)
      found.operands.push_back({p[3], DRT_F32});
    return found;
  }
  if (name == "random_permutation" && p.size() == 1)
    return Signature{{{kStateWords, DRT_I32}}, {{p[0], DRT_I32}}};
  if (name == "accidental_hits" && p.size() == 4)
    return Signature{{{p[0] * p[1], DRT_I64}, {p[2], DRT_I64}}, {{p[3], DRT_I32}, {p[3], DRT_I64}, {p[3], DRT_F32}}};
  return ofMatrices(name, p);
}

bool isOf(Type element, int64_t dtype) {
  switch (dtype) {
  case DRT_F32:
    return element.isF32();
  case DRT_F64:
    return element.isF64();
  case DRT_I32:
    return element.isInteger(32);
  case DRT_I64:
    return element.isInteger(64);
  default:
    return false;
  }
}

LogicalResult expectTensors(RoutineOp op, StringRef what, ValueRange values, ArrayRef<Tensor> tensors) {
  if (values.size() != tensors.size())
    return op.emitOpError() << "has " << values.size() << " " << what << "s, where routine '" << op.getName()
                            << "' with these parameters has " << tensors.size();
  for (auto [number, value, tensor] : llvm::enumerate(values, tensors)) {
    auto type = llvm::cast<RankedTensorType>(value.getType());
    const bool isState =
        what == "operand" && number == 0 && tensor.count == kStateWords && type.getNumElements() == kRandomStateWords;
    if ((type.getNumElements() != tensor.count && !isState) || !isOf(type.getElementType(), tensor.dtype))
      return op.emitOpError() << "has " << what << " " << number << " of type " << type << ", which routine '"
                              << op.getName() << "' with these parameters has not";
  }
  return success();
}

} // namespace

LogicalResult RoutineOp::verify() {
  std::optional<Signature> signature = getSignature(getName(), getParameters());
  if (!signature)
    return emitOpError() << "calls routine '" << getName() << "', which is none of the runtime's with these parameters";
  return success(succeeded(expectTensors(*this, "operand", getOperands(), signature->operands)) &&
                 succeeded(expectTensors(*this, "result", getResults(), signature->results)));
}

} // namespace distc::drt
