//===- Toolkit.cpp - What compiling uses of the CUDA toolkit ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/Toolkit.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace distc {

static constexpr StringLiteral kDefaultToolkit = "/usr/local/cuda";

std::optional<std::string> findPtxas() {
  auto findIn = [](StringRef toolkit) -> std::optional<std::string> {
    SmallString<128> path(toolkit);
    sys::path::append(path, "bin", "ptxas");
    return sys::fs::can_execute(path) ? std::optional(path.str().str()) : std::nullopt;
  };
  if (auto home = sys::Process::GetEnv("CUDA_HOME"))
    if (auto found = findIn(*home))
      return found;
  if (auto found = sys::findProgramByName("ptxas"))
    return *found;
  return findIn(kDefaultToolkit);
}

Expected<std::string> findLibdevice() {
  SmallVector<std::string> toolkits;
  if (auto home = sys::Process::GetEnv("CUDA_HOME"))
    toolkits.push_back(*home);
  // The PATH may have a link to it.
  SmallString<128> ptxas;
  if (auto found = findPtxas(); found && !sys::fs::real_path(*found, ptxas))
    toolkits.push_back(sys::path::parent_path(sys::path::parent_path(ptxas)).str());
  toolkits.push_back(kDefaultToolkit.str());
  toolkits.erase(llvm::unique(toolkits), toolkits.end());
  for (const std::string &toolkit : toolkits) {
    SmallString<128> path(toolkit);
    sys::path::append(path, "nvvm", "libdevice", "libdevice.10.bc");
    if (sys::fs::exists(path))
      return path.str().str();
  }
  return createStringError(
      "the kernels need NVIDIA's mathematical functions, nvvm/libdevice/libdevice.10.bc, which is not in " +
      join(toolkits, ", ") + ": install the CUDA toolkit, or name its folder in $CUDA_HOME");
}

namespace {

// A file that is gone afterwards.
class TemporaryFile {
public:
  explicit TemporaryFile(StringRef suffix) : code(sys::fs::createTemporaryFile("distc", suffix, path)), remover(path) {}
  StringRef name() const { return path; }
  std::error_code error() const { return code; }

  std::error_code write(StringRef text) {
    raw_fd_ostream os(path, code);
    if (code)
      return code;
    os << text;
    os.close();
    code = os.error();
    os.clear_error();
    return code;
  }
  std::string read() {
    auto buffer = MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }

private:
  SmallString<128> path;
  std::error_code code;
  FileRemover remover;
};

} // namespace

Expected<std::string> assemble(StringRef ptxas, StringRef ptx, StringRef chip, std::string &log) {
  TemporaryFile source("ptx"), cubin("cubin"), messages("log");
  for (std::error_code code : {source.error(), cubin.error(), messages.error(), source.write(ptx)})
    if (code)
      return createStringError("cannot write a temporary file: " + code.message());
  std::string architecture = ("-arch=" + chip).str(), message;
  StringRef arguments[] = {ptxas, architecture, "-O3", "-v", "-o", cubin.name(), source.name()};
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(messages.name()), StringRef(messages.name())};
  int status = sys::ExecuteAndWait(ptxas, arguments, std::nullopt, redirects, 0, 0, &message);
  log = messages.read();
  if (status == 0)
    return cubin.read();
  if (message.empty())
    message = log.empty() ? "exit status " + std::to_string(status) : StringRef(log).split('\n').first.str();
  const bool isTooOld = StringRef(log).contains("'gpu-name'") || StringRef(log).contains("Unsupported .version");
  return createStringError(
      ptxas + " cannot assemble the kernels for " + chip + ": " + message +
      (isTooOld ? "; name a toolkit that knows the chip in $CUDA_HOME, or another chip in --target" : ""));
}

} // namespace distc
