//===- LinkExecutable.cpp - An object and the runtime become one executable -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/LinkExecutable.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace distc {

static Expected<std::string> findLinker() {
  if (auto named = sys::Process::GetEnv("CXX")) {
    if (auto path = sys::findProgramByName(*named))
      return *path;
    return createStringError("cannot link: $CXX names '" + *named + "', which is not found");
  }
  for (StringRef name : {"c++", "g++", "clang++"})
    if (auto path = sys::findProgramByName(name))
      return *path;
  return createStringError(
      "cannot link: no C++ compiler is found (c++, g++, clang++); install g++, or name one in $CXX");
}

static Error fileError(const Twine &what, StringRef path, std::error_code code) {
  return createStringError(what + " '" + path + "': " + code.message());
}

// Where the linker's inputs and outputs lie; it is gone afterwards with what is left in it.
class LinkFolder {
public:
  ~LinkFolder() {
    if (!folder.empty())
      sys::fs::remove_directories(folder);
  }
  /// A new folder, its name begins with `prefix`.
  std::error_code create(StringRef prefix) { return sys::fs::createUniqueDirectory(prefix, folder); }
  std::string path(StringRef name) const {
    SmallString<128> path(folder);
    sys::path::append(path, name);
    return path.str().str();
  }
  std::error_code write(StringRef name, ArrayRef<char> data) const {
    std::error_code code;
    raw_fd_ostream os(path(name), code);
    if (code)
      return code;
    os.write(data.data(), data.size());
    os.close();
    code = os.error();
    os.clear_error();
    return code;
  }

private:
  SmallString<128> folder;
};

// Links program.o of the folder to `program`. Fails with what the linker says.
static Error link(const LinkFolder &folder, ArrayRef<StringRef> flags) {
  Expected<std::string> linker = findLinker();
  if (!linker)
    return linker.takeError();
  std::string object = folder.path("program.o"), linked = folder.path("program"), errors = folder.path("errors"),
              message;
  SmallVector<StringRef> arguments = {*linker, object, "-o", linked};
  if (sys::fs::can_execute(DISTC_LLD)) {
    arguments.push_back("-fuse-ld=lld");
    arguments.push_back("-B" DISTC_LLD_FOLDER);
  }
  arguments.append(flags.begin(), flags.end());
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(), StringRef(errors)};
  int status = sys::ExecuteAndWait(*linker, arguments, std::nullopt, redirects, 0, 0, &message);
  if (status == 0)
    return Error::success();
  // The first line says what is wrong; the compiler driver adds only that its linker failed.
  if (auto log = MemoryBuffer::getFile(errors); log && message.empty())
    message = (*log)->getBuffer().split('\n').first.str();
  return createStringError(message.empty() ? "exit status " + std::to_string(status) : message);
}

// The flags of the runtime that the target's executables are linked with.
static Expected<std::unique_ptr<MemoryBuffer>> readFlags(StringRef runtimeFolder, const Target &target) {
  auto read = [&](StringRef name, SmallString<128> &path) {
    path = runtimeFolder;
    sys::path::append(path, name);
    return MemoryBuffer::getFile(path, /*IsText=*/true);
  };
  const bool emulated = target.kernels == Target::Kernels::Emulated;
  StringRef name = !target.isDevice() ? "drt.link" : emulated ? "drt-cuda-emulated.link" : "drt-cuda.link";
  SmallString<128> path, ofCPU;
  ErrorOr<std::unique_ptr<MemoryBuffer>> flags = read(name, path);
  if (flags)
    return std::move(*flags);
  if (target.isDevice() && read("drt.link", ofCPU))
    return createStringError(
        "cannot link: distc was built without CUDA's headers, so there is no runtime for --target=" + target.name +
        " ('" + path + "': " + flags.getError().message() +
        "); install the CUDA toolkit and build distc again, or compile for --target=cpu");
  return createStringError("cannot link: the runtime is not found ('" + path + "': " + flags.getError().message() +
                           "); build the target drt, or name its folder with --runtime");
}

Error linkExecutable(ArrayRef<char> object, StringRef runtimeFolder, const Target &target, StringRef output) {
  Expected<std::unique_ptr<MemoryBuffer>> flags = readFlags(runtimeFolder, target);
  if (!flags)
    return flags.takeError();
  std::string search = ("-L" + runtimeFolder).str();
  SmallVector<StringRef> lines = {search};
  (*flags)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);

  // In a folder beside the output: renaming is then one step.
  SmallString<128> prefix(output);
  LinkFolder folder;
  if (std::error_code code = sys::fs::make_absolute(prefix))
    return fileError("cannot write", output, code);
  for (std::error_code code : {folder.create(prefix), folder.write("program.o", object)})
    if (code)
      return fileError("cannot write", output, code);
  if (Error error = link(folder, lines))
    return createStringError("cannot write '" + output + "', as linking it failed: " + toString(std::move(error)));
  if (std::error_code code = sys::fs::rename(folder.path("program"), output))
    return fileError("cannot write", output, code);
  return Error::success();
}

Expected<std::string> linkSharedObject(ArrayRef<char> object) {
  SmallString<128> prefix;
  sys::path::system_temp_directory(/*ErasedOnReboot=*/true, prefix);
  sys::path::append(prefix, "distc");
  LinkFolder folder;
  for (std::error_code code : {folder.create(prefix), folder.write("program.o", object)})
    if (code)
      return fileError("cannot write", prefix, code);
  if (Error error = link(folder, {"-shared", "-nostdlib", "-lm"}))
    return createStringError("cannot link the kernels: " + toString(std::move(error)));
  ErrorOr<std::unique_ptr<MemoryBuffer>> linked = MemoryBuffer::getFile(folder.path("program"));
  if (!linked)
    return fileError("cannot read", folder.path("program"), linked.getError());
  return (*linked)->getBuffer().str();
}

} // namespace distc
