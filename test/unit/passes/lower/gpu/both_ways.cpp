#include "test/unit/passes/lower/gpu/both_ways.h"
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "passes/lower/Passes.h"
#include "passes/lower/program/EmitObject.h"
#include "passes/lower/program/LinkExecutable.h"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace ::drt::cuda;
using ::drt::cuda::test::ok;

namespace distc::test {
namespace {

void *openSharedObject(const std::string &data) {
  static int count = 0;
  const auto path = std::filesystem::temp_directory_path() /
                    ("distc-schedules-" + std::to_string(getpid()) + "-" + std::to_string(count++) + ".so");
  std::ofstream(path, std::ios::binary).write(data.data(), static_cast<std::streamsize>(data.size()));
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  INFO((library ? "" : dlerror()));
  std::filesystem::remove(path);
  REQUIRE(library);
  return library;
}

template <size_t... I> void call(void *function, const std::vector<void *> &arguments, std::index_sequence<I...>) {
  reinterpret_cast<void (*)(decltype(static_cast<void>(I), static_cast<void *>(nullptr))...)>(function)(
      arguments[I]...);
}

void callWith(void *function, const std::vector<void *> &arguments) {
  switch (arguments.size()) {
  case 1:
    return call(function, arguments, std::make_index_sequence<1>());
  case 2:
    return call(function, arguments, std::make_index_sequence<2>());
  case 3:
    return call(function, arguments, std::make_index_sequence<3>());
  case 4:
    return call(function, arguments, std::make_index_sequence<4>());
  case 5:
    return call(function, arguments, std::make_index_sequence<5>());
  case 6:
    return call(function, arguments, std::make_index_sequence<6>());
  default:
    FAIL("a kernel of " << arguments.size() << " arguments");
  }
}

} // namespace

BothWays::BothWays(mlir::ModuleOp module) {
  mlir::OwningOpRef<mlir::ModuleOp> copy = module.clone();
  if (!module.getOps<distc::drt::KernelOp>().empty())
    compileForHost(*copy);
  copy = module.clone();
  compileForDevice(*copy);
}

BothWays::~BothWays() {
  if (host_)
    dlclose(host_);
  if (image_)
    driver().cuModuleUnload(image_);
}

void BothWays::compileForHost(mlir::ModuleOp module) {
  mlir::PassManager manager(module.getContext());
  buildLowerKernelsPipeline(manager);
  REQUIRE(mlir::succeeded(manager.run(module)));
  auto target = Target::parse("cpu");
  REQUIRE(bool(target));
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = emitLLVM(module, context);
  REQUIRE(code);
  auto object = emitObject(*code, *target);
  REQUIRE(bool(object));
  auto library = linkSharedObject(*object);
  REQUIRE(bool(library));
  host_ = openSharedObject(*library);
}

void BothWays::compileForDevice(mlir::ModuleOp module) {
  mlir::PassManager schedule(module.getContext());
  schedule.addPass(createScheduleForGpu());
  REQUIRE(mlir::succeeded(schedule.run(module)));
  readShapes(module);
  mlir::PassManager manager(module.getContext());
  buildLowerGpuKernelsPipeline(manager);
  MakeImagesOptions options;
  options.target = "cuda:emulated";
  manager.addPass(createMakeImages(options));
  REQUIRE(mlir::succeeded(manager.run(module)));
  drt::ImageOp image = *module.getOps<drt::ImageOp>().begin();
  ok(driver().cuModuleLoadDataEx(&image_, image.getData().data(), 0, nullptr, nullptr));
}

void BothWays::readShapes(mlir::ModuleOp scheduled) {
  scheduled.walk([&](mlir::gpu::GPUFuncOp function) {
    KernelShape shape;
    for (mlir::Type type : function.getArgumentTypes()) {
      auto buffer = mlir::cast<mlir::MemRefType>(type);
      const size_t elementBytes = (buffer.getElementTypeBitWidth() + 7) / 8;
      shape.arguments.push_back({elementBytes * static_cast<size_t>(buffer.getNumElements()), elementBytes,
                                 mlir::isa<mlir::FloatType>(buffer.getElementType())});
    }
    shape.schedule = function->getAttrOfType<mlir::StringAttr>("drt.schedule").getValue().str();
    shape.blocks = static_cast<unsigned>(function->getAttrOfType<mlir::DenseI64ArrayAttr>(drt::kGridAttr)[0]);
    shape.threads = static_cast<unsigned>(function->getAttrOfType<mlir::DenseI64ArrayAttr>(drt::kBlockAttr)[0]);
    kernels_[function.getName().str()] = shape;
  });
}

std::vector<std::vector<char>> BothWays::runOnHost(const std::string &name,
                                                   std::vector<std::vector<char>> arguments) const {
  void *function = dlsym(host_, name.c_str());
  REQUIRE(function);
  std::vector<void *> pointers;
  for (std::vector<char> &argument : arguments)
    pointers.push_back(argument.data());
  callWith(function, pointers);
  return arguments;
}

void BothWays::launch(const std::string &name, std::vector<CUdeviceptr> places) const {
  const KernelShape &shape = kernels_.at(name);
  std::vector<void *> parameters;
  for (CUdeviceptr &place : places)
    parameters.push_back(&place);
  CUfunction function;
  ok(driver().cuModuleGetFunction(&function, image_, name.c_str()));
  ok(driver().cuLaunchKernel(function, shape.blocks, 1, 1, shape.threads, 1, 1, 0, device_.stream, parameters.data(),
                             nullptr));
}

std::string BothWays::failOnDevice(const std::string &name, const std::vector<std::vector<char>> &arguments) const {
  std::vector<std::unique_ptr<::drt::cuda::test::Array<char>>> arrays;
  std::vector<CUdeviceptr> places;
  for (const std::vector<char> &argument : arguments) {
    arrays.push_back(std::make_unique<::drt::cuda::test::Array<char>>(device_, argument));
    places.push_back(arrays.back()->address);
  }
  launch(name, places);
  const CUresult status = driver().cuStreamSynchronize(device_.stream);
  emulated::forgiveFailures();
  return status == CUDA_SUCCESS ? "" : emulated::messageOf(status);
}

std::vector<std::vector<char>> BothWays::runOnDevice(const std::string &name,
                                                     const std::vector<std::vector<char>> &arguments) const {
  constexpr char kUntouched = 0x5a;
  const std::vector<char> guard(Buffer::kGuard, kUntouched);
  std::vector<std::unique_ptr<::drt::cuda::test::Array<char>>> arrays;
  std::vector<CUdeviceptr> places;
  for (const std::vector<char> &argument : arguments) {
    std::vector<char> guarded = guard;
    guarded.insert(guarded.end(), argument.begin(), argument.end());
    guarded.insert(guarded.end(), guard.begin(), guard.end());
    arrays.push_back(std::make_unique<::drt::cuda::test::Array<char>>(device_, guarded));
    places.push_back(arrays.back()->address + Buffer::kGuard);
  }
  launch(name, places);
  device_.synchronize();
  std::vector<std::vector<char>> results;
  for (const auto &array : arrays) {
    std::vector<char> guarded = array->read();
    device_.synchronize();
    const auto first = guarded.begin() + Buffer::kGuard, last = guarded.end() - Buffer::kGuard;
    REQUIRE(std::equal(guarded.begin(), first, guard.begin()));
    REQUIRE(std::equal(last, guarded.end(), guard.begin()));
    results.emplace_back(first, last);
  }
  return results;
}

} // namespace distc::test
