//===- LinkExecutable.cpp - An object and the runtime become one executable -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/LinkExecutable.h"
#include "llvm/ADT/ScopeExit.h"
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

Error linkExecutable(ArrayRef<char> object, StringRef runtimeFolder, StringRef output) {
  Expected<std::string> linker = findLinker();
  if (!linker)
    return linker.takeError();
  SmallString<128> flagsPath(runtimeFolder);
  sys::path::append(flagsPath, "drt.link");
  ErrorOr<std::unique_ptr<MemoryBuffer>> flags = MemoryBuffer::getFile(flagsPath, /*IsText=*/true);
  if (!flags)
    return createStringError("cannot link: the runtime is not found ('" + flagsPath + "': " +
                             flags.getError().message() + "); build the target drt, or name its folder with --runtime");

  // Made in a folder beside the output: renaming is then one step, and what a linker that fails leaves goes with the
  // folder.
  SmallString<128> folder(output);
  if (std::error_code code = sys::fs::make_absolute(folder))
    return fileError("cannot write", output, code);
  std::string prefix = folder.str().str();
  folder.clear();
  if (std::error_code code = sys::fs::createUniqueDirectory(prefix, folder))
    return fileError("cannot write", output, code);
  scope_exit remove([&] { sys::fs::remove_directories(folder); });
  SmallString<128> objectPath(folder), errorsPath(folder), linkedPath(folder);
  sys::path::append(objectPath, "program.o");
  sys::path::append(errorsPath, "errors");
  sys::path::append(linkedPath, "program");
  {
    std::error_code code;
    raw_fd_ostream os(objectPath, code);
    if (!code) {
      os.write(object.data(), object.size());
      os.close();
      code = os.error();
      os.clear_error();
    }
    if (code)
      return fileError("cannot write", output, code);
  }

  std::string search = ("-L" + runtimeFolder).str();
  SmallVector<StringRef> arguments = {*linker, objectPath, "-o", linkedPath, search};
  if (sys::fs::can_execute(DISTC_LLD)) {
    arguments.push_back("-fuse-ld=lld");
    arguments.push_back("-B" DISTC_LLD_FOLDER);
  }
  SmallVector<StringRef> lines;
  (*flags)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  arguments.append(lines.begin(), lines.end());
  std::string message;
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(), StringRef(errorsPath)};
  int status = sys::ExecuteAndWait(*linker, arguments, std::nullopt, redirects, 0, 0, &message);
  if (status != 0) {
    // The first line says what is wrong; the compiler driver adds only that its linker failed.
    ErrorOr<std::unique_ptr<MemoryBuffer>> log = MemoryBuffer::getFile(errorsPath);
    if (message.empty() && log)
      message = (*log)->getBuffer().split('\n').first.str();
    if (message.empty())
      message = "exit status " + std::to_string(status);
    return createStringError("cannot write '" + output + "', as linking it failed: " + message);
  }
  if (std::error_code code = sys::fs::rename(linkedPath, output))
    return fileError("cannot write", output, code);
  return Error::success();
}

} // namespace distc
