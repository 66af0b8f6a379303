// Kernels as drt-outline-kernels makes them, by chance: loops, operands that are broadcast or permuted, reductions.
#ifndef TEST_UNIT_PASSES_LOWER_GPU_RANDOM_KERNELS_H
#define TEST_UNIT_PASSES_LOWER_GPU_RANDOM_KERNELS_H

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace distc::test {

enum class Work { Elementwise, Reduction, Permutation };

class RandomKernel {
public:
  RandomKernel(std::mt19937 &random, std::string name, Work work) : random(random), name(std::move(name)), work(work) {
    do {
      chooseLoops();
      chooseOperands();
    } while (!everyLoopIsUsed());
  }

  std::string print() {
    std::ostringstream out;
    out << "drt.kernel @" << name << "(" << list(inputs, "x", true) << ", " << list(results, "y", true)
        << ") {\n  %first = arith.constant " << (isFloat() ? "1.0" : "2") << " : " << element << "\n";
    for (size_t i = 0; i < results.size(); ++i)
      if (work == Work::Reduction && chance(0.85))
        out << "  linalg.fill ins(%first : " << element << ") outs(%y" << i << " : " << type(results[i]) << ")\n";
    out << "  linalg.generic {indexing_maps = [";
    for (const Operand &input : inputs)
      out << map(input) << ", ";
    for (size_t i = 0; i < results.size(); ++i)
      out << (i ? ", " : "") << map(results[i]);
    out << "], iterator_types = [";
    for (size_t loop = 0; loop < sizes.size(); ++loop)
      out << (loop ? ", " : "") << (isReduced[loop] ? "\"reduction\"" : "\"parallel\"");
    out << "]} ins(" << list(inputs, "x", false) << ") outs(" << list(results, "y", false) << ") {\n  ^bb0(";
    for (size_t i = 0; i < inputs.size(); ++i)
      out << "%a" << i << ": " << element << ", ";
    for (size_t i = 0; i < results.size(); ++i)
      out << (i ? ", " : "") << "%o" << i << ": " << element;
    out << "):\n";
    printBody(out);
    out << "  }\n  drt.return\n}\n";
    return out.str();
  }

private:
  struct Operand {
    std::vector<int> axes; // a loop each; -1: an axis that is not walked, of size 3
  };

  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(random) < probability; }
  template <class T> T choose(std::vector<T> values) {
    return values[std::uniform_int_distribution<size_t>(0, values.size() - 1)(random)];
  }
  bool isFloat() const { return element[0] == 'f'; }

  void chooseLoops() {
    sizes.clear();
    isReduced.clear();
    size_t loops = work == Work::Elementwise ? choose<size_t>({0, 1, 2, 3, 4}) : choose<size_t>({1, 2, 2, 3, 4});
    int64_t limit = 60000;
    for (size_t loop = 0; loop < loops; ++loop) {
      int64_t size = choose<int64_t>({1, 2, 3, 5, 8, 10, 16, 31, 32, 33, 64, 100, 128, 257, 1000, 1100, 2048, 3000});
      size = std::min(size, limit);
      limit /= size;
      sizes.push_back(size);
      isReduced.push_back(work == Work::Reduction && chance(0.5));
    }
    if (work == Work::Reduction && std::count(isReduced.begin(), isReduced.end(), true) == 0)
      isReduced[std::uniform_int_distribution<size_t>(0, loops - 1)(random)] = true;
    element = choose<std::string>({"f32", "f32", "f32", "f64", "f16", "i8", "i32", "i64"});
  }

  void chooseOperands() {
    std::vector<int> all(sizes.size());
    std::iota(all.begin(), all.end(), 0);
    inputs.assign(choose<size_t>({1, 1, 2, 3}), {all});
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::vector<int> &axes = inputs[i].axes;
      if (i > 0 && chance(0.5))
        axes.erase(std::remove_if(axes.begin(), axes.end(), [&](int) { return chance(0.4); }), axes.end());
      if (chance(work == Work::Permutation ? 0.8 : 0.1))
        std::shuffle(axes.begin(), axes.end(), random);
      if (chance(0.2))
        axes.insert(axes.begin() + choose<size_t>({0, axes.size()}), -1);
    }
    // Beside what is reduced, an element for each iteration: a producer whose result is kept when it is fused.
    results.assign(work == Work::Reduction && chance(0.3) ? 2 : 1, {});
    for (size_t i = 0; i < results.size(); ++i) {
      std::vector<int> &axes = results[i].axes;
      for (int loop : all)
        if (!isReduced[loop] || i > 0)
          axes.push_back(loop);
      if (chance(0.15))
        std::shuffle(axes.begin(), axes.end(), random);
    }
    if (chance(0.5))
      std::reverse(results.begin(), results.end());
  }

  bool everyLoopIsUsed() const {
    std::set<int> used;
    for (const std::vector<Operand> *operands : {&inputs, &results})
      for (const Operand &operand : *operands)
        used.insert(operand.axes.begin(), operand.axes.end());
    used.erase(-1);
    return used.size() == sizes.size();
  }

  std::string type(const Operand &operand) const {
    std::string text = "memref<";
    for (int loop : operand.axes)
      text += std::to_string(loop < 0 ? 3 : sizes[loop]) + "x";
    return text + element + ">";
  }

  std::string map(const Operand &operand) const {
    std::string loops, axes;
    for (size_t loop = 0; loop < sizes.size(); ++loop)
      loops += (loop ? ", d" : "d") + std::to_string(loop);
    for (size_t axis = 0; axis < operand.axes.size(); ++axis)
      axes += (axis ? ", " : "") + (operand.axes[axis] < 0 ? "0" : "d" + std::to_string(operand.axes[axis]));
    return "affine_map<(" + loops + ") -> (" + axes + ")>";
  }

  /// "%x0: memref<...>, ..." or "%x0, ... : memref<...>, ...".
  std::string list(const std::vector<Operand> &operands, const std::string &prefix, bool paired) const {
    std::string names, types;
    for (size_t i = 0; i < operands.size(); ++i) {
      names += (i ? ", %" : "%") + prefix + std::to_string(i) + (paired ? ": " + type(operands[i]) : "");
      types += (i ? ", " : "") + type(operands[i]);
    }
    return paired ? names : names + " : " + types;
  }

  void printBody(std::ostringstream &out) {
    const std::string suffix = isFloat() ? "f" : "i";
    std::string value = "%a0";
    for (size_t i = 1; i < inputs.size(); ++i) {
      std::string next = "%v" + std::to_string(i);
      out << "    " << next << " = arith." << choose<std::string>({"add", "sub", "mul"}) << suffix << " " << value
          << ", %a" << i << " : " << element << "\n";
      value = next;
    }
    if (!sizes.empty() && !isFloat() && chance(0.5)) {
      out << "    %p = linalg.index " << std::uniform_int_distribution<size_t>(0, sizes.size() - 1)(random)
          << " : index\n    %q = arith.index_cast %p : index to " << element << "\n    %w = arith.addi " << value
          << ", %q : " << element << "\n";
      value = "%w";
    }
    std::string yielded, types;
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string joined = work == Work::Reduction ? printJoin(out, i, value) : value;
      yielded += (i ? ", " : "") + joined;
      types += (i ? ", " : "") + element;
      if (results[i].axes.size() == sizes.size() && chance(0.5))
        value = joined;
    }
    out << "    linalg.yield " << yielded << " : " << types << "\n";
  }

  /// The result with a new element.
  std::string printJoin(std::ostringstream &out, size_t result, const std::string &value) {
    const std::string suffix = isFloat() ? "f" : "i", number = std::to_string(result);
    if (results.size() > 1 && chance(0.3)) // an element that does not ask for what was there
      return value;
    // A sum of float16 would be rounded.
    std::string join =
        choose<std::string>(element == "f16" ? std::vector<std::string>{"maximumf", "minimumf"}
                            : isFloat()      ? std::vector<std::string>{"addf", "addf", "maximumf", "minimumf"}
                                             : std::vector<std::string>{"addi", "maxsi", "minsi", "xori"});
    std::string former = "%o" + number;
    if (chance(0.05)) { // no partial results can be joined
      out << "    %t" << number << " = arith.sub" << suffix << " %o" << number << ", %o" << number << " : " << element
          << "\n";
      former = "%t" + number;
    }
    out << "    %z" << number << " = arith." << join << " " << former << ", " << value << " : " << element << "\n";
    return "%z" + number;
  }

  std::mt19937 &random;
  std::string name;
  Work work;
  std::string element;
  std::vector<int64_t> sizes;
  std::vector<bool> isReduced;
  std::vector<Operand> inputs, results;
};

} // namespace distc::test

#endif // TEST_UNIT_PASSES_LOWER_GPU_RANDOM_KERNELS_H
