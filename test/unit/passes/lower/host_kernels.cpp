//===- host_kernels.cpp - Kernels of a grid's threads, run on the host --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "host_kernels.h"

#include "dialects/dfg/Dfg.h"
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/lower/Passes.h"
#include "runtime/cuda/emulator/emulated.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace fs = std::filesystem;

static uint32_t registers[13];

extern "C" uint32_t drt_emulated_register(int32_t which) { return registers[which]; }
extern "C" void drt_emulated_barrier(void) {}
extern "C" void *drt_emulated_beyond(int32_t argument, int64_t offset, int64_t size, int64_t bytes) {
  FAIL("argument " << argument << " of " << bytes << " bytes: " << size << " bytes at " << offset);
  return nullptr;
}
// What lane `lane` gives is known to the test: every lane has its own number as value.
extern "C" uint32_t drt_emulated_shuffle(int32_t mode, uint32_t mask, uint32_t value, uint32_t lane, uint32_t clamp) {
  REQUIRE(mode == DRT_EMULATED_BUTTERFLY);
  REQUIRE(mask == 0xffffffffu);
  REQUIRE(clamp == 31);
  return value ^ lane;
}

namespace distc::test {

std::unique_ptr<mlir::MLIRContext> createContext() {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<dfg::DFGDialect, drt::DRTDialect>();
  return std::make_unique<mlir::MLIRContext>(registry);
}

mlir::OwningOpRef<mlir::ModuleOp> parse(mlir::MLIRContext &context, const std::string &text) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  REQUIRE(module);
  return module;
}

Library::Library(llvm::StringRef data) {
  // The loader takes a name that it knows for the same library.
  static int opened = 0;
  const std::string name = "distc-kernels-" + std::to_string(getpid()) + "-" + std::to_string(opened++) + ".so";
  const fs::path path = fs::temp_directory_path() / name;
  std::ofstream(path, std::ios::binary).write(data.data(), static_cast<std::streamsize>(data.size()));
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  INFO((handle ? "" : dlerror()));
  fs::remove(path);
  REQUIRE(handle);
}

Library::~Library() { dlclose(handle); }

void *Library::find(const std::string &symbol) const {
  void *address = dlsym(handle, symbol.c_str());
  INFO(symbol);
  REQUIRE(address);
  return address;
}

HostKernels::HostKernels(mlir::ModuleOp module) {
  mlir::OwningOpRef<mlir::ModuleOp> copy = mlir::ModuleOp::create(module.getLoc());
  auto kernels = module.lookupSymbol<mlir::gpu::GPUModuleOp>(drt::kKernelModule);
  REQUIRE(kernels);
  copy->push_back(kernels->clone());
  for (auto kernel : kernels.getOps<mlir::gpu::GPUFuncOp>()) {
    auto grid = kernel->getAttrOfType<mlir::DenseI64ArrayAttr>(drt::kGridAttr);
    auto block = kernel->getAttrOfType<mlir::DenseI64ArrayAttr>(drt::kBlockAttr);
    launches.push_back({kernel.getName().str(), grid[0], block[0]});
  }
  mlir::PassManager manager(module.getContext());
  buildLowerGpuKernelsPipeline(manager);
  MakeImagesOptions options;
  options.target = "cuda:emulated";
  manager.addPass(createMakeImages(options));
  REQUIRE(mlir::succeeded(manager.run(*copy)));
  auto images = copy->getOps<drt::ImageOp>();
  REQUIRE(llvm::hasSingleElement(images));
  CHECK((*images.begin()).getArch() == "host");
  library = std::make_unique<Library>((*images.begin()).getData());
}

HostKernels::~HostKernels() = default;

void HostKernels::run(const std::string &name, std::vector<void *> arguments) const {
  auto kernel = reinterpret_cast<void (*)(void **)>(library->find(name));
  auto *parameters = static_cast<const int32_t *>(library->find(name + "_parameters"));
  REQUIRE(*parameters == static_cast<int32_t>(arguments.size()));
  const auto launch =
      std::find_if(launches.begin(), launches.end(), [&](const Launch &each) { return each.name == name; });
  REQUIRE(launch != launches.end());
  std::vector<void *> places;
  for (void *&argument : arguments)
    places.push_back(&argument);
  registers[DRT_EMULATED_NTID] = static_cast<uint32_t>(launch->threads);
  registers[DRT_EMULATED_NCTAID] = static_cast<uint32_t>(launch->blocks);
  for (int64_t block = 0; block < launch->blocks; ++block)
    for (int64_t thread = 0; thread < launch->threads; ++thread) {
      registers[DRT_EMULATED_CTAID] = static_cast<uint32_t>(block);
      registers[DRT_EMULATED_TID] = static_cast<uint32_t>(thread);
      kernel(places.data());
    }
}

} // namespace distc::test
