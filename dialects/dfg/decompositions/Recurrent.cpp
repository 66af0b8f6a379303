//===- Recurrent.cpp - Cells and layers of LSTMs and GRUs that are one operation ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What lstm_ops.cc and gru_ops.cc of TensorFlow compute. Hochreiter and Schmidhuber,
// Long short-term memory, 1997; Cho et al., Learning phrase representations, 2014.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Decompositions.h"
#include "dialects/dfg/Dfg.h"

using namespace mlir;

namespace distc::dfg::decompositions {
namespace {

Value oneMinus(GraphBuilder &g, Value x) { return g.sub(g.scalar(g.elementOf(x), 1), x); }
/// Of a sigmoid, by its value.
Value sigmoidSlope(GraphBuilder &g, Value y) { return g.mul(y, oneMinus(g, y)); }
Value tanhSlope(GraphBuilder &g, Value y) { return oneMinus(g, g.mul(y, y)); }

/// What a cell has in each step: results i, cs, f, o, ci, co, h of the operations, in that order.
enum Part { kInput, kState, kForget, kOutput, kCandidate, kTanh, kHidden };
using Parts = SmallVector<Value>;

/// The weights of an LSTM's cell, operands of a node from `first` on: w, wci, wcf, wco, b.
struct LstmCell {
  GraphBuilder &g;
  Value w, wci, wcf, wco, b;
  int64_t inputs = 0, units = 0;
  double forgetBias = 0, clip = 0;
  bool hasPeephole = false, forgetsBeforeCandidate = false;

  static FailureOr<LstmCell> of(Operation *op, GraphBuilder &g, unsigned first, unsigned x) {
    LstmCell cell{g,
                  op->getOperand(first),
                  op->getOperand(first + 1),
                  op->getOperand(first + 2),
                  op->getOperand(first + 3),
                  op->getOperand(first + 4)};
    FailureOr<Dims> weights = g.getShape(cell.w), input = g.getShape(op->getOperand(x));
    if (failed(weights) || failed(input))
      return failure();
    if (weights->size() != 2 || !weights->back().isConstant() || weights->back().getConstant() % 4 != 0 ||
        input->empty() || !input->back().isConstant())
      return g.fail("how many units its cell has is not known");
    cell.units = weights->back().getConstant() / 4;
    cell.inputs = input->back().getConstant();
    cell.hasPeephole = getFlag(op, "use_peephole");
    cell.forgetsBeforeCandidate = llvm::isa<BlockLSTMV2Op, BlockLSTMGradV2Op>(op);
    if (op->hasAttr("forget_bias"))
      cell.forgetBias = getReal(op, "forget_bias");
    if (op->hasAttr("cell_clip"))
      cell.clip = getReal(op, "cell_clip");
    return cell;
  }

  /// Where a gate is among the columns of the weights.
  int64_t columnOf(Part gate) const {
    const int64_t middle = forgetsBeforeCandidate ? 1 : 2;
    return units * (gate == kInput ? 0 : gate == kForget ? middle : gate == kCandidate ? 3 - middle : 3);
  }

  Parts step(Value x, Value state, Value hidden) const {
    Value gates = g.add(g.matMul(g.concat({x, hidden}, 1), w), b);
    auto gate = [&](Part part) { return g.slice(gates, 1, columnOf(part), units); };
    auto seen = [&](Value sum, Value of, Value weights) { return hasPeephole ? g.add(sum, g.mul(of, weights)) : sum; };
    Parts p(7);
    p[kInput] = g.make<SigmoidOp>(seen(gate(kInput), state, wci));
    Value forget = g.add(gate(kForget), g.scalar(g.elementOf(gates), forgetBias));
    p[kForget] = g.make<SigmoidOp>(seen(forget, state, wcf));
    p[kCandidate] = g.make<TanhOp>(gate(kCandidate));
    p[kState] = g.add(g.mul(p[kCandidate], p[kInput]), g.mul(state, p[kForget]));
    if (clip > 0)
      p[kState] =
          g.maximum(g.minimum(p[kState], g.scalar(g.elementOf(gates), clip)), g.scalar(g.elementOf(gates), -clip));
    p[kOutput] = g.make<SigmoidOp>(seen(gate(kOutput), p[kState], wco));
    p[kTanh] = g.make<TanhOp>(p[kState]);
    p[kHidden] = g.mul(p[kTanh], p[kOutput]);
    return p;
  }

  struct Gradients {
    Value gates, state;          // of the gates before their functions, side by side; of the state before
    Value input, forget, output; // of three gates alone
  };
  /// `state`: before the step; `dState`, `dHidden`: of what the step gave.
  Gradients backward(const Parts &p, Value state, Value dState, Value dHidden) const {
    Gradients d;
    d.output = g.mul(g.mul(sigmoidSlope(g, p[kOutput]), dHidden), p[kTanh]);
    Value own = g.add(g.mul(g.mul(tanhSlope(g, p[kTanh]), dHidden), p[kOutput]), dState);
    if (hasPeephole)
      own = g.add(own, g.mul(d.output, wco));
    Value candidate = g.mul(g.mul(tanhSlope(g, p[kCandidate]), own), p[kInput]);
    d.forget = g.mul(g.mul(sigmoidSlope(g, p[kForget]), own), state);
    d.input = g.mul(g.mul(sigmoidSlope(g, p[kInput]), own), p[kCandidate]);
    d.gates = forgetsBeforeCandidate ? g.concat({d.input, d.forget, candidate, d.output}, 1)
                                     : g.concat({d.input, candidate, d.forget, d.output}, 1);
    d.state = g.mul(own, p[kForget]);
    if (hasPeephole)
      d.state = g.addAll({d.state, g.mul(d.input, wci), g.mul(d.forget, wcf)});
    return d;
  }
};

/// All steps of a layer: how many are unrolled, and whether each is one of the `limit` that there are.
struct Unrolled {
  GraphBuilder &g;
  int64_t count = 0, taken = 0;
  Value limit = {};

  static FailureOr<Unrolled> of(Operation *op, GraphBuilder &g) {
    FailureOr<Dims> x = g.getShape(op->getOperand(1));
    if (failed(x) || x->size() != 3 || !x->front().isConstant())
      return g.fail("how many steps its layer has is not known");
    Unrolled steps{g};
    steps.count = steps.taken = x->front().getConstant();
    if (auto most = g.shapes.getConstant(op->getOperand(0)))
      steps.taken = std::clamp<int64_t>(*most, 0, steps.count);
    else
      steps.limit = op->getOperand(0);
    if (steps.taken == 0)
      return g.fail("its layer has no steps");
    return steps;
  }
  Value at(Value all, int64_t step) const {
    FailureOr<Dims> shape = g.getShape(all);
    if (failed(shape))
      return {};
    return g.reshape(g.slice(all, 0, step, 1), ArrayRef(*shape).drop_front());
  }
  /// Zeros where the step is none of those there are.
  Value mask(Value x, int64_t step) const {
    if (!limit || !x)
      return x;
    Value is = g.less(g.scalar(g.elementOf(limit), static_cast<double>(step)), limit);
    return g.select(is, x, g.scalar(g.elementOf(x), 0));
  }
  /// All in one tensor, zeros for those that were not taken.
  Value join(ArrayRef<Value> each) const { return g.padAxis(g.pack(each, 0), 0, 0, count - taken); }
};

} // namespace

/// Operands: x, the state and the output before, weights.
Result lstmBlockCell(Operation *op, GraphBuilder &g) {
  FailureOr<LstmCell> cell = LstmCell::of(op, g, 3, 0);
  if (failed(cell))
    return failure();
  Parts parts = cell->step(op->getOperand(0), op->getOperand(1), op->getOperand(2));
  return g.failed() ? Result(failure()) : Result(std::move(parts));
}

/// Operands: those of the cell, its results but the last, gradients of state and output.
Result lstmBlockCellGrad(Operation *op, GraphBuilder &g) {
  FailureOr<LstmCell> cell = LstmCell::of(op, g, 3, 0);
  if (failed(cell))
    return failure();
  Parts parts(op->getOperands().slice(8, 6));
  Value state = op->getOperand(1);
  auto d = cell->backward(parts, state, op->getOperand(14), op->getOperand(15));
  auto weight = [&](Value gate, Value of, Value like) {
    return cell->hasPeephole ? g.sum(g.mul(gate, of), {0}) : g.zerosLike(like);
  };
  SmallVector<Value> results = {d.state, d.gates, weight(d.input, state, cell->wci), weight(d.forget, state, cell->wcf),
                                weight(d.output, parts[kState], cell->wco)};
  return g.failed() ? Result(failure()) : Result(std::move(results));
}

/// Operands: how many steps there are, x [steps, example, input], the state and the output before, weights.
Result blockLstm(Operation *op, GraphBuilder &g) {
  FailureOr<LstmCell> cell = LstmCell::of(op, g, 4, 1);
  FailureOr<Unrolled> steps = Unrolled::of(op, g);
  if (failed(cell) || failed(steps))
    return failure();
  Value state = op->getOperand(2), hidden = op->getOperand(3);
  SmallVector<Parts> each(7);
  for (int64_t step = 0; step < steps->taken && !g.failed(); ++step) {
    Parts parts = cell->step(steps->at(op->getOperand(1), step), state, hidden);
    state = parts[kState];
    hidden = parts[kHidden];
    for (auto [all, part] : llvm::zip(each, parts))
      all.push_back(steps->mask(part, step));
  }
  SmallVector<Value> results = llvm::map_to_vector(each, [&](const Parts &all) { return steps->join(all); });
  return g.failed() ? Result(failure()) : Result(std::move(results));
}

/// Operands: those of the layer, its results, gradients of states and outputs.
Result blockLstmGrad(Operation *op, GraphBuilder &g) {
  FailureOr<LstmCell> cell = LstmCell::of(op, g, 4, 1);
  FailureOr<Unrolled> steps = Unrolled::of(op, g);
  if (failed(cell) || failed(steps))
    return failure();
  Value x = op->getOperand(1), first = op->getOperand(2), firstHidden = op->getOperand(3);
  Value states = op->getOperand(9 + kState), hiddens = op->getOperand(9 + kHidden);
  Value dState, dHidden; // of what a step gave, from those behind it
  SmallVector<Value> dx, wci, wcf, wco, inputs, gates;
  for (int64_t step = steps->taken - 1; step >= 0 && !g.failed(); --step) {
    Parts parts;
    for (unsigned part = 0; part < 7; ++part)
      parts.push_back(steps->at(op->getOperand(9 + part), step));
    Value state = step > 0 ? steps->at(states, step - 1) : first,
          hidden = step > 0 ? steps->at(hiddens, step - 1) : firstHidden;
    Value ofState = steps->at(op->getOperand(16), step), ofHidden = steps->at(op->getOperand(17), step);
    auto d = cell->backward(parts, state, dState ? g.add(ofState, dState) : ofState,
                            dHidden ? g.add(ofHidden, dHidden) : ofHidden);
    Value ofGates = steps->mask(d.gates, step);
    Value both = g.matMul(ofGates, cell->w, false, /*transposeB=*/true);
    dx.push_back(g.slice(both, 1, 0, cell->inputs));
    dHidden = g.slice(both, 1, cell->inputs, cell->units);
    dState = steps->mask(d.state, step);
    gates.push_back(ofGates);
    inputs.push_back(steps->mask(g.concat({steps->at(x, step), hidden}, 1), step));
    if (cell->hasPeephole) {
      wci.push_back(g.sum(steps->mask(g.mul(d.input, state), step), {0}));
      wcf.push_back(g.sum(steps->mask(g.mul(d.forget, state), step), {0}));
      wco.push_back(g.sum(steps->mask(g.mul(d.output, parts[kState]), step), {0}));
    }
  }
  if (g.failed())
    return failure();
  std::reverse(dx.begin(), dx.end());
  // The sum over the steps is in the matmul.
  Value allInputs = g.concat(inputs, 0), allGates = g.concat(gates, 0);
  auto weight = [&](ArrayRef<Value> each, Value like) {
    return cell->hasPeephole ? g.addAll(each) : g.zerosLike(like);
  };
  SmallVector<Value> results = {steps->join(dx),
                                dState,
                                dHidden,
                                g.matMul(allInputs, allGates, /*transposeA=*/true),
                                weight(wci, cell->wci),
                                weight(wcf, cell->wcf),
                                weight(wco, cell->wco),
                                g.sum(allGates, {0})};
  return g.failed() ? Result(failure()) : Result(std::move(results));
}

/// Operands: x, the output before, weights and biases of the gates and of the candidate. Gives r, u, c, h.
Result gruBlockCell(Operation *op, GraphBuilder &g) {
  Value x = op->getOperand(0), before = op->getOperand(1);
  FailureOr<Dims> weights = g.getShape(op->getOperand(3));
  if (failed(weights) || weights->size() != 2 || !weights->back().isConstant())
    return g.fail("how many units its cell has is not known");
  const int64_t units = weights->back().getConstant();
  Value gates = g.make<SigmoidOp>(g.add(g.matMul(g.concat({x, before}, 1), op->getOperand(2)), op->getOperand(4)));
  Value reset = g.slice(gates, 1, 0, units), update = g.slice(gates, 1, units, units);
  Value seen = g.concat({x, g.mul(before, reset)}, 1);
  Value candidate = g.make<TanhOp>(g.add(g.matMul(seen, op->getOperand(3)), op->getOperand(5)));
  Value hidden = g.add(g.mul(update, before), g.mul(oneMinus(g, update), candidate));
  if (g.failed())
    return failure();
  return SmallVector<Value>{reset, update, candidate, hidden};
}

/// Operands: those of the cell, r, u, c, the gradient of h. Gives those of x and of the output before, and of the
/// candidate and the gates before their functions.
Result gruBlockCellGrad(Operation *op, GraphBuilder &g) {
  Value before = op->getOperand(1), reset = op->getOperand(6), update = op->getOperand(7),
        candidate = op->getOperand(8), d = op->getOperand(9);
  FailureOr<Dims> input = g.getShape(op->getOperand(0)), weights = g.getShape(op->getOperand(3));
  if (failed(input) || failed(weights) || input->size() != 2 || !input->back().isConstant() || weights->size() != 2 ||
      !weights->back().isConstant())
    return g.fail("how many units its cell has is not known");
  const int64_t inputs = input->back().getConstant(), units = weights->back().getConstant();
  Value dCandidate = g.mul(g.mul(d, oneMinus(g, update)), tanhSlope(g, candidate));
  Value dUpdate = g.mul(g.mul(d, g.sub(before, candidate)), sigmoidSlope(g, update));
  Value first = g.matMul(dCandidate, op->getOperand(3), false, /*transposeB=*/true);
  Value ofReset = g.slice(first, 1, inputs, units);
  Value dReset = g.mul(g.mul(ofReset, before), sigmoidSlope(g, reset));
  Value gates = g.concat({dReset, dUpdate}, 1);
  Value second = g.matMul(gates, op->getOperand(2), false, /*transposeB=*/true);
  Value dx = g.add(g.slice(first, 1, 0, inputs), g.slice(second, 1, 0, inputs));
  Value dBefore = g.addAll({g.mul(ofReset, reset), g.slice(second, 1, inputs, units), g.mul(d, update)});
  if (g.failed())
    return failure();
  return SmallVector<Value>{dx, dBefore, dCandidate, gates};
}

} // namespace distc::dfg::decompositions
