//===- module.cpp - Images and kernels of the emulator --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/module.h"

#include "cuda/emulator/failure.h"
#include "cuda/emulator/table.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

using namespace drt::cuda::emulated;

namespace {
// cuModuleLoadDataEx is given no size: the image says where its last table or segment ends.
size_t sizeOfImage(const void *image) {
  auto *bytes = static_cast<const char *>(image);
  Elf64_Ehdr header;
  require(std::memcmp(bytes, ELFMAG, SELFMAG) == 0, CUDA_ERROR_NO_BINARY_FOR_GPU,
          "the image is no shared object: the emulator runs images of arch \"host\"");
  std::memcpy(&header, bytes, sizeof(header));
  require(header.e_type == ET_DYN && header.e_ident[EI_CLASS] == ELFCLASS64, CUDA_ERROR_NO_BINARY_FOR_GPU,
          "the image is no shared object of this machine");
  size_t end = header.e_shoff + size_t(header.e_shnum) * header.e_shentsize;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes + header.e_phoff + size_t(i) * header.e_phentsize, sizeof(segment));
    end = std::max<size_t>(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}
} // namespace

namespace drt::cuda::emulated {
// The loader takes files only, and a file once: each module has one of its own.
class MemoryFile {
public:
  MemoryFile(const void *data, size_t bytes) : descriptor_(memfd_create("drt-emulated-image", MFD_CLOEXEC)) {
    require(descriptor_ >= 0, CUDA_ERROR_OUT_OF_MEMORY, "memfd_create failed");
    auto *next = static_cast<const char *>(data);
    while (bytes > 0) {
      ssize_t written = write(descriptor_, next, bytes);
      require(written > 0, CUDA_ERROR_OUT_OF_MEMORY, "an image cannot be written to memory");
      next += written;
      bytes -= static_cast<size_t>(written);
    }
  }
  ~MemoryFile() {
    if (descriptor_ >= 0)
      close(descriptor_);
  }
  MemoryFile(const MemoryFile &) = delete;
  MemoryFile &operator=(const MemoryFile &) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

private:
  int descriptor_;
};
} // namespace drt::cuda::emulated

Module::Module(const void *image, int device)
    : device_(device), file_(std::make_unique<MemoryFile>(image, sizeOfImage(image))) {
  library_ = dlopen(file_->path().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_)
    throw Failure(CUDA_ERROR_INVALID_IMAGE, dlerror());
}

Module::~Module() { dlclose(library_); }

std::shared_ptr<Kernel> Module::find(const char *name) {
  void *function = dlsym(library_, name);
  auto *parameters = static_cast<const int32_t *>(dlsym(library_, (std::string(name) + "_parameters").c_str()));
  if (!function || !parameters)
    throw Failure(CUDA_ERROR_NOT_FOUND, std::string("the image has no kernel ") + name);
  // PTX before 8.1, which every driver of CUDA 12 takes, has no more.
  constexpr size_t mostParameterBytes = 4096;
  require(static_cast<size_t>(*parameters) * sizeof(void *) <= mostParameterBytes, CUDA_ERROR_INVALID_IMAGE,
          "a kernel with more parameters than a chip takes");
  return std::make_shared<Kernel>(
      Kernel{name, reinterpret_cast<KernelFunction>(function), *parameters, shared_from_this()});
}

std::vector<void *> Kernel::arguments(void **parameters) const {
  require(parameters != nullptr || this->parameters == 0, CUDA_ERROR_INVALID_VALUE, "no arguments");
  std::vector<void *> arguments;
  for (int32_t i = 0; i < this->parameters; ++i)
    arguments.push_back(*static_cast<void **>(parameters[i]));
  return arguments;
}

void Kernel::run(const Memory &memory, int device, const LaunchShape &shape, const std::vector<void *> &arguments,
                 uint64_t seed) const {
  std::vector<void *> resolved, pointers;
  for (size_t i = 0; i < arguments.size(); ++i)
    try {
      resolved.push_back(memory.resolve(device, reinterpret_cast<CUdeviceptr>(arguments[i]), 1));
    } catch (const Failure &failure) {
      throw Failure(failure.code, "argument " + std::to_string(i) + ": " + failure.what());
    }
  for (void *&argument : resolved)
    pointers.push_back(&argument);
  if (std::optional<int> status = injectedInKernel(name))
    throw Failure(static_cast<CUresult>(*status), "a test wants it");
  BlockRunner runner(function, shape, pointers.data());
  for (int block : shuffled(static_cast<int>(shape.blocks()), seed))
    runner.run(block, seed + static_cast<uint64_t>(block));
}
