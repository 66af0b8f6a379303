// Every schedule computes what the same kernel computes on the CPU.
#include "dialects/dfg/Dfg.h"
#include "dialects/drt/Drt.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "test/unit/passes/lower/gpu/both_ways.h"
#include "test/unit/passes/lower/gpu/random_kernels.h"

#include <cmath>
#include <cstring>

using namespace distc::test;

namespace {

/// Small whole numbers: their sums and products are exact in any order.
std::vector<char> wholeNumbers(std::mt19937 &random, const Buffer &buffer) {
  std::vector<char> bytes(buffer.bytes);
  static const uint16_t halves[] = {0xc000, 0xbc00, 0, 0x3c00, 0x4000}; // -2, -1, 0, 1, 2
  for (size_t at = 0; at < bytes.size(); at += buffer.elementBytes) {
    const int value = std::uniform_int_distribution<>(-2, 2)(random);
    const double wide = value;
    const float single = static_cast<float>(value);
    const int64_t integer = value;
    const void *from = !buffer.isFloat            ? static_cast<const void *>(&integer)
                       : buffer.elementBytes == 8 ? static_cast<const void *>(&wide)
                       : buffer.elementBytes == 4 ? static_cast<const void *>(&single)
                                                  : static_cast<const void *>(&halves[value + 2]);
    std::memcpy(&bytes[at], from, buffer.elementBytes);
  }
  return bytes;
}

mlir::OwningOpRef<mlir::ModuleOp> parse(mlir::MLIRContext &context, const std::string &text) {
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  INFO(text);
  REQUIRE(module);
  return module;
}

mlir::DialectRegistry allDialects() {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<distc::drt::DRTDialect, distc::dfg::DFGDialect>();
  return registry;
}

/// -0 is 0.
bool sameFloats(const std::vector<char> &x, const std::vector<char> &y, const Buffer &buffer) {
  for (size_t at = 0; at < x.size(); at += buffer.elementBytes) {
    uint64_t a = 0, b = 0;
    std::memcpy(&a, &x[at], buffer.elementBytes);
    std::memcpy(&b, &y[at], buffer.elementBytes);
    const uint64_t sign = uint64_t(1) << (8 * buffer.elementBytes - 1);
    if (a != b && ((a | b) & ~sign) != 0)
      return false;
  }
  return true;
}

/// The schedules that the kernels took.
std::set<std::string> compare(const std::string &text, unsigned seed) {
  mlir::MLIRContext context(allDialects());
  BothWays kernels(*parse(context, text));
  std::mt19937 random(seed);
  std::set<std::string> schedules;
  for (const auto &[name, shape] : kernels.kernels()) {
    std::vector<std::vector<char>> arguments;
    for (const Buffer &argument : shape.arguments)
      arguments.push_back(wholeNumbers(random, argument));
    auto host = kernels.runOnHost(name, arguments), onDevice = kernels.runOnDevice(name, arguments);
    INFO(text.substr(text.find("@" + name + "("), 2000));
    INFO(shape.schedule << ", " << shape.blocks << " blocks of " << shape.threads);
    for (size_t i = 0; i < host.size(); ++i) {
      INFO("argument " << i);
      CHECK(
          (shape.arguments[i].isFloat ? sameFloats(host[i], onDevice[i], shape.arguments[i]) : host[i] == onDevice[i]));
    }
    schedules.insert(shape.schedule);
  }
  return schedules;
}

std::string randomKernels(unsigned seed, Work work, int count) {
  std::mt19937 random(seed);
  std::string text;
  for (int i = 0; i < count; ++i)
    text += RandomKernel(random, "kernel_" + std::to_string(i), work).print();
  return text;
}

} // namespace

TEST_CASE("element-wise kernels of random shapes") {
  CHECK(compare(randomKernels(1, Work::Elementwise, 60), 1).count("elementwise") == 1);
}

TEST_CASE("permutations of random shapes") {
  CHECK(compare(randomKernels(2, Work::Permutation, 40), 2).count("transpose") == 1);
}

TEST_CASE("reductions of random shapes") {
  auto schedules = compare(randomKernels(3, Work::Reduction, 80), 3);
  for (const char *schedule : {"rows", "columns", "plain"})
    CHECK(schedules.count(schedule) == 1);
}

namespace {

std::string replaceAll(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// A row's maximum, what is above it in shared memory and as a result, its sum, and one element by index.
constexpr const char *kRowOperations = R"(
drt.kernel @rows_ROWS_COLUMNS(%x: memref<ROWSxCOLUMNSxf32>, %at: memref<ROWSxi32>, %y: memref<ROWSxCOLUMNSxf32>, %z: memref<ROWSxf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %max = memref.alloc() : memref<ROWSxf32>
  %shifted = memref.alloc() : memref<ROWSxCOLUMNSxf32>
  %sum = memref.alloc() : memref<ROWSxf32>
  linalg.fill ins(%low : f32) outs(%max : memref<ROWSxf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<ROWSxCOLUMNSxf32>) outs(%max : memref<ROWSxf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %o, %a : f32
    linalg.yield %m : f32
  }
  %column = memref.expand_shape %max [[0, 1]] output_shape [ROWS, 1] : memref<ROWSxf32> into memref<ROWSx1xf32>
  linalg.generic {indexing_maps = [#ij, #i0, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %column : memref<ROWSxCOLUMNSxf32>, memref<ROWSx1xf32>) outs(%shifted : memref<ROWSxCOLUMNSxf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %s = arith.subf %a, %m : f32
    linalg.yield %s : f32
  }
  linalg.fill ins(%zero : f32) outs(%sum : memref<ROWSxf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%shifted : memref<ROWSxCOLUMNSxf32>) outs(%sum : memref<ROWSxf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%shifted, %sum : memref<ROWSxCOLUMNSxf32>, memref<ROWSxf32>) outs(%y : memref<ROWSxCOLUMNSxf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %v = arith.addf %a, %s : f32
    linalg.yield %v : f32
  }
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%z : memref<ROWSxf32>) {
  ^bb0(%o: f32):
    %r = linalg.index 0 : index
    %c0 = arith.constant 0 : index
    %columns = arith.constant COLUMNS : index
    %wanted = memref.load %at[%r] : memref<ROWSxi32>
    %place = arith.index_cast %wanted : i32 to index
    %inside = arith.remui %place, %columns : index
    %own = memref.load %shifted[%r, %inside] : memref<ROWSxCOLUMNSxf32>
    %made = memref.load %y[%r, %inside] : memref<ROWSxCOLUMNSxf32>
    %m = memref.load %column[%r, %c0] : memref<ROWSx1xf32>
    %p = arith.addf %own, %made : f32
    %v = arith.addf %p, %m : f32
    linalg.yield %v : f32
  }
  drt.return
}
)";

} // namespace

TEST_CASE("operations over the same rows, a warp or a block a row") {
  std::string text =
      "#ij = affine_map<(i, j) -> (i, j)>\n#i0 = affine_map<(i, j) -> (i, 0)>\n#i = affine_map<(i, j) -> (i)>\n";
  for (const char *rows : {"1", "5", "33"})
    for (const char *columns : {"2", "7", "100", "1024", "1500", "5000"})
      text += replaceAll(replaceAll(kRowOperations, "ROWS", rows), "COLUMNS", columns);
  CHECK(compare(text, 4) == std::set<std::string>{"fused-rows"});
}

namespace {

/// Rows and, beside them, sums of their columns by parts: of what the kernel reads and of what it makes.
constexpr const char *kColumnSums = R"(
drt.kernel @parts_PARTS_SIZE_COLUMNS(%x: memref<ROWSxCOLUMNSxf32>, %y: memref<ROWSxCOLUMNSxf32>, %s: memref<COLUMNSxPARTSxf32>, %t: memref<COLUMNSxPARTSxf32>,
    %m: memref<PARTSxCOLUMNSxf32>) {
  %zero = arith.constant 0.0 : f32
  %three = arith.constant 3.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %sum = memref.alloc() : memref<ROWSxf32>
  %x3 = memref.expand_shape %x [[0, 1], [2]] output_shape [PARTS, SIZE, COLUMNS] : memref<ROWSxCOLUMNSxf32> into memref<PARTSxSIZExCOLUMNSxf32>
  linalg.fill ins(%three : f32) outs(%s : memref<COLUMNSxPARTSxf32>)
  linalg.fill ins(%zero : f32) outs(%t : memref<COLUMNSxPARTSxf32>)
  linalg.fill ins(%zero : f32) outs(%sum : memref<ROWSxf32>)
  linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<ROWSxCOLUMNSxf32>) outs(%sum : memref<ROWSxf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.addf %o, %a : f32
    linalg.yield %v : f32
  }
  %sum3 = memref.expand_shape %sum [[0, 1]] output_shape [PARTS, SIZE] : memref<ROWSxf32> into memref<PARTSxSIZExf32>
  linalg.generic {indexing_maps = [#prc, #pr, #cp, #cp], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x3, %sum3 : memref<PARTSxSIZExCOLUMNSxf32>, memref<PARTSxSIZExf32>)
      outs(%s, %t : memref<COLUMNSxPARTSxf32>, memref<COLUMNSxPARTSxf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %q: f32):
    %v = arith.addf %o, %a : f32
    %f = arith.mulf %a, %b : f32
    %w = arith.addf %q, %f : f32
    linalg.yield %v, %w : f32, f32
  }
  linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : memref<ROWSxCOLUMNSxf32>, memref<ROWSxf32>) outs(%y : memref<ROWSxCOLUMNSxf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %v = arith.addf %a, %b : f32
    linalg.yield %v : f32
  }
  %y3 = memref.expand_shape %y [[0, 1], [2]] output_shape [PARTS, SIZE, COLUMNS] : memref<ROWSxCOLUMNSxf32> into memref<PARTSxSIZExCOLUMNSxf32>
  linalg.fill ins(%low : f32) outs(%m : memref<PARTSxCOLUMNSxf32>)
  linalg.generic {indexing_maps = [#prc, #pc], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%y3 : memref<PARTSxSIZExCOLUMNSxf32>) outs(%m : memref<PARTSxCOLUMNSxf32>) {
  ^bb0(%a: f32, %o: f32):
    %v = arith.maximumf %o, %a : f32
    linalg.yield %v : f32
  }
  drt.return
}
)";

} // namespace

TEST_CASE("columns are summed beside rows, a block a part of them") {
  std::string text =
      "#ij = affine_map<(i, j) -> (i, j)>\n#i = affine_map<(i, j) -> (i)>\n#prc = affine_map<(p, r, c) -> (p, r, c)>\n"
      "#pr = affine_map<(p, r, c) -> (p, r)>\n#cp = affine_map<(p, r, c) -> (c, p)>\n#pc = affine_map<(p, r, c) -> (p, "
      "c)>\n";
  for (int parts : {2, 5})
    for (int size : {3, 8, 32})
      for (const char *columns : {"128", "130", "1000", "1024", "2600", "5003"})
        text += replaceAll(replaceAll(replaceAll(replaceAll(kColumnSums, "PARTS", std::to_string(parts)), "ROWS",
                                                 std::to_string(parts * size)),
                                      "COLUMNS", columns),
                           "SIZE", std::to_string(size));
  CHECK(compare(text, 5) == std::set<std::string>{"fused-rows"});
}

namespace {

/// The upper half of the block reads what the lower half writes, before and behind a barrier.
constexpr const char *kExchange = R"(
gpu.module @kernels {
  gpu.func @exchange(%x: memref<64xf32> {llvm.noalias, llvm.readonly}, %y: memref<64xf32>, %z: memref<64xf32> {llvm.noalias}) kernel
      attributes {drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 64, 1, 1>, drt.schedule = "by hand"} {
    %t = gpu.thread_id x
    %half = arith.constant 32 : index
    %zero = arith.constant 0.0 : f32
    %upper = arith.cmpi uge, %t, %half : index
    %other = arith.subi %t, %half : index
    %before = scf.if %upper -> f32 {
      %v = memref.load %y[%other] : memref<64xf32>
      scf.yield %v : f32
    } else {
      %v = memref.load %x[%t] : memref<64xf32>
      scf.yield %v : f32
    }
    gpu.barrier
    scf.if %upper {
    } else {
      memref.store %before, %y[%t] : memref<64xf32>
    }
    gpu.barrier
    %behind = scf.if %upper -> f32 {
      %v = memref.load %y[%other] : memref<64xf32>
      %d = arith.subf %v, %before : f32
      scf.yield %d : f32
    } else {
      scf.yield %zero : f32
    }
    memref.store %behind, %z[%t] : memref<64xf32>
    gpu.return
  }
}
)";

} // namespace

TEST_CASE("a thread sees what another one wrote before the barrier") {
  mlir::MLIRContext context(allDialects());
  BothWays kernels(*parse(context, kExchange));
  std::vector<float> x(64), y(64, 100.0f), z(64);
  std::iota(x.begin(), x.end(), 1.0f);
  auto bytes = [](const std::vector<float> &values) {
    auto *first = reinterpret_cast<const char *>(values.data());
    return std::vector<char>(first, first + values.size() * sizeof(float));
  };
  const std::vector<char> written = kernels.runOnDevice("exchange", {bytes(x), bytes(y), bytes(z)})[2];
  std::memcpy(z.data(), written.data(), written.size());
  for (size_t t = 0; t < z.size(); ++t)
    CHECK(z[t] == (t < 32 ? 0.0f : x[t - 32] - 100.0f));
}

TEST_CASE("an access beyond a tensor fails, wherever that lies") {
  mlir::MLIRContext context(allDialects());
  // The last thread writes behind the end; a vector reads across it.
  BothWays kernels(*parse(context, R"(
gpu.module @kernels {
  gpu.func @write(%x: memref<64xf32>, %y: memref<31xf32>) kernel
      attributes {drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 32, 1, 1>, drt.schedule = "by hand"} {
    %t = gpu.thread_id x
    %v = memref.load %x[%t] : memref<64xf32>
    memref.store %v, %y[%t] : memref<31xf32>
    gpu.return
  }
  gpu.func @read(%x: memref<64xf32>, %y: memref<64xf32>) kernel
      attributes {drt.grid = array<i64: 1, 1, 1>, drt.block = array<i64: 1, 1, 1>, drt.schedule = "by hand"} {
    %at = arith.constant 62 : index
    %zero = arith.constant 0 : index
    %v = vector.load %x[%at] {alignment = 4 : i64} : memref<64xf32>, vector<4xf32>
    vector.store %v, %y[%zero] : memref<64xf32>, vector<4xf32>
    gpu.return
  }
}
)"));
  const std::vector<char> large(64 * sizeof(float)), small(31 * sizeof(float));
  CHECK(kernels.failOnDevice("write", {large, small}) ==
        "write: argument 1, which has 124 bytes, is accessed beyond them: 4 bytes at 124");
  CHECK(kernels.failOnDevice("read", {large, large}) ==
        "read: argument 0, which has 256 bytes, is accessed beyond them: 16 bytes at 248");
}
