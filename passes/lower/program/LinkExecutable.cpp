//===- LinkExecutable.cpp - An object and the runtime become one executable -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/program/LinkExecutable.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/MC/MCAsmBackend.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCCodeEmitter.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCObjectFileInfo.h"
#include "llvm/MC/MCObjectWriter.h"
#include "llvm/MC/MCParser/MCAsmParser.h"
#include "llvm/MC/MCParser/MCTargetAsmParser.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include <csignal>
#include <mutex>

using namespace llvm;

LLD_HAS_DRIVER(elf)

namespace distc {

char MissingSymbolError::ID;

void MissingSymbolError::log(raw_ostream &os) const {
  os << "the program calls '" << symbol << "', which the runtime does not have";
}

static Expected<std::string> findDriver() {
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
  LinkFolder() : handler(reportFullDisk, this) {}
  ~LinkFolder() { remove(); }
  LinkFolder(const LinkFolder &) = delete;
  LinkFolder &operator=(const LinkFolder &) = delete;
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
  void remove() const {
    if (!folder.empty())
      sys::fs::remove_directories(folder);
  }
  // What LLVM and lld cannot write ends the process: with a message, and without what was begun.
  [[noreturn]] static void reportFullDisk(void *self, const char *reason, bool) {
    static_cast<const LinkFolder *>(self)->remove();
    errs() << "distc: error: cannot write the executable: " << reason << '\n';
    sys::Process::Exit(1, /*NoCleanup=*/true);
  }

  SmallString<128> folder;
  ScopedFatalErrorHandler handler;
};

// The archive of what the program calls.
static constexpr StringLiteral kKernels = "kernels.a";

// What a linker has said: its first line is what is wrong; a compiler driver adds only that its linker failed.
static Error linkError(StringRef log) {
  // As lld and the GNU linkers have it: "undefined symbol: f", "undefined reference to `f'".
  for (StringRef words : {"undefined symbol: ", "undefined reference to "})
    if (auto [before, symbol] = log.split(words); !symbol.empty())
      return make_error<MissingSymbolError>(symbol.split('\n').first.trim("`'").str());
  return createStringError(log.split('\n').first);
}

// Runs lld, which is a part of distc. It has one state for all of the process.
static Error runLLD(ArrayRef<std::string> arguments) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  SmallVector<const char *> words =
      map_to_vector(arguments, [](const std::string &argument) { return argument.c_str(); });
  std::string log;
  raw_string_ostream os(log);
  // It writes to memory that stands for a file: where that finds no place on the disk, a signal says so.
  CrashRecoveryContext::Enable();
  lld::Result result = lld::lldMain(words, os, os, {{lld::Gnu, &lld::elf::link}});
  CrashRecoveryContext::Disable();
  if (result.retCode == 0)
    return Error::success();
  if (result.retCode == 128 + SIGBUS)
    return createStringError("there is no space left on the device");
  return log.empty() ? createStringError("exit status " + std::to_string(result.retCode)) : linkError(log);
}

// By the compiler's driver: with sanitizers, whose runtimes it knows.
static Error linkByDriver(const LinkFolder &folder, StringRef output, ArrayRef<StringRef> flags) {
  Expected<std::string> driver = findDriver();
  if (!driver)
    return driver.takeError();
  std::string program = folder.path("program.o"), kernels = folder.path(kKernels), linked = folder.path(output),
              errors = folder.path("errors"), message;
  SmallVector<StringRef> arguments = {*driver, program, kernels, "-o", linked};
  arguments.append(flags.begin(), flags.end());
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(), errors};
  int status = sys::ExecuteAndWait(*driver, arguments, std::nullopt, redirects, 0, 0, &message);
  if (status == 0)
    return Error::success();
  if (auto log = MemoryBuffer::getFile(errors); log && message.empty())
    return linkError((*log)->getBuffer());
  return createStringError(message.empty() ? "exit status " + std::to_string(status) : message);
}

// What the linker is to make of a program's objects.
enum class Form { Executable, SharedObject, Kernels };

// By lld, so that compiling a graph needs no compiler. `toolchain`: the folder of the runtime's build with what
// a driver would add, startup files and libraries of the language and of glibc (cmake/Toolchain.cmake); nothing is
// added to kernels.
static Error link(const LinkFolder &folder, StringRef toolchain, StringRef input, StringRef output, Form form,
                  ArrayRef<StringRef> flags) {
  // Threads take longer to start than they save: a program links in 0.1 s.
  SmallVector<std::string> arguments = {"ld.lld", "--threads=1",      "-m", "elf_x86_64", "--eh-frame-hdr",
                                        "-o",     folder.path(output)};
  auto add = [&](std::initializer_list<StringRef> more) {
    for (StringRef argument : more)
      arguments.push_back(argument.str());
  };
  auto file = [&](StringRef name) { arguments.push_back((toolchain + "/" + name).str()); };
  if (form == Form::Executable)
    add({"-pie", "-dynamic-linker", "/lib64/ld-linux-x86-64.so.2"});
  else
    add({"-shared"});
  if (form != Form::Kernels) {
    if (form == Form::Executable)
      file("Scrt1.o");
    file("crti.o");
    file("crtbeginS.o");
  }
  arguments.push_back(folder.path(input));
  append_range(arguments, map_range(flags, [](StringRef flag) { return flag.str(); }));
  if (form != Form::Kernels) {
    add({"--start-group"});
    for (StringRef name : {"libc.so.6", "libc_nonshared.a", "libgcc.a"})
      file(name);
    add({"--as-needed"});
    for (StringRef name : {"libm.so.6", "ld-linux-x86-64.so.2"})
      file(name);
    add({"--no-as-needed", "--end-group"});
    file("crtendS.o");
    file("crtn.o");
  }
  return runLLD(arguments);
}

// What a program of ours needs of a machine: glibc.
static bool isOfGlibc(StringRef soname) {
  return soname.starts_with("ld-linux") ||
         is_contained({"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0"}, soname);
}

// The libraries that a shared object says it needs (DT_NEEDED).
static Expected<SmallVector<std::string>> readNeeded(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fileError("cannot read", path, buffer.getError());
  auto file = object::ELF64LEFile::create((*buffer)->getBuffer());
  if (!file)
    return file.takeError();
  auto entries = file->dynamicEntries();
  if (!entries)
    return entries.takeError();
  uint64_t table = 0;
  for (const auto &entry : *entries)
    if (entry.getTag() == ELF::DT_STRTAB)
      table = entry.getPtr();
  auto names = file->toMappedAddr(table);
  if (!names)
    return names.takeError();
  SmallVector<std::string> needed;
  for (const auto &entry : *entries)
    if (entry.getTag() == ELF::DT_NEEDED)
      needed.emplace_back(reinterpret_cast<const char *>(*names) + entry.getVal());
  return needed;
}

// Adds to `carried` what the shared object at `path` needs, and before it what that needs: the order to open them in.
static Error addNeeded(StringRef path, StringRef folder, SmallVectorImpl<std::string> &carried) {
  Expected<SmallVector<std::string>> needed = readNeeded(path);
  if (!needed)
    return needed.takeError();
  for (const std::string &soname : *needed) {
    if (isOfGlibc(soname) || is_contained(carried, soname))
      continue;
    SmallString<128> library(folder);
    sys::path::append(library, soname);
    if (!sys::fs::exists(library))
      return createStringError("the program needs '" + soname + "', which is not in '" + folder +
                               "': build the target drt_carried again");
    if (Error error = addNeeded(library, folder, carried))
      return error;
    carried.push_back(soname);
  }
  return Error::success();
}

// `text` as an object of this machine. It has data alone.
static Error assemble(StringRef text, StringRef path) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmParser();
  InitializeNativeTargetAsmPrinter();
  std::string message;
  const Triple triple(sys::getProcessTriple());
  const llvm::Target *machine = TargetRegistry::lookupTarget(triple, message);
  if (!machine)
    return createStringError("cannot assemble: " + message);
  const MCTargetOptions options;
  std::unique_ptr<MCRegisterInfo> registers(machine->createMCRegInfo(triple));
  std::unique_ptr<MCAsmInfo> syntax(machine->createMCAsmInfo(*registers, triple, options));
  std::unique_ptr<MCSubtargetInfo> features(machine->createMCSubtargetInfo(triple, "", ""));
  std::unique_ptr<MCInstrInfo> instructions(machine->createMCInstrInfo());
  SourceMgr sources;
  sources.AddNewSourceBuffer(MemoryBuffer::getMemBuffer(text), SMLoc());
  MCContext context(triple, syntax.get(), registers.get(), features.get(), &sources);
  std::unique_ptr<MCObjectFileInfo> sections(machine->createMCObjectFileInfo(context, /*PIC=*/true));
  context.setObjectFileInfo(sections.get());
  std::error_code code;
  raw_fd_ostream os(path, code);
  if (code)
    return fileError("cannot write", path, code);
  std::unique_ptr<MCAsmBackend> backend(machine->createMCAsmBackend(*features, *registers, options));
  std::unique_ptr<MCObjectWriter> writer = backend->createObjectWriter(os);
  std::unique_ptr<MCStreamer> streamer(machine->createMCObjectStreamer(
      triple, context, std::move(backend), std::move(writer),
      std::unique_ptr<MCCodeEmitter>(machine->createMCCodeEmitter(*instructions, context)), *features));
  std::unique_ptr<MCAsmParser> parser(createMCAsmParser(sources, context, *streamer, *syntax));
  std::unique_ptr<MCTargetAsmParser> statements(machine->createMCAsmParser(*features, *parser, *instructions, options));
  parser->setTargetParser(*statements);
  if (parser->Run(/*NoInitialTextSection=*/false))
    return createStringError("cannot assemble what the executable carries");
  os.close();
  code = os.error();
  os.clear_error();
  return code ? fileError("cannot write", path, code) : Error::success();
}

// The program and the libraries as data, in the order in which the loader opens them (runtime/loader/loader.c).
static std::string makeCarriedTable(const LinkFolder &folder, StringRef libraries, ArrayRef<std::string> sonames) {
  SmallVector<std::pair<std::string, std::string>> files; // name, path
  for (const std::string &soname : sonames) {
    SmallString<128> path(libraries);
    sys::path::append(path, soname);
    files.emplace_back(soname, path.str().str());
  }
  files.emplace_back("the program", folder.path("program.so"));
  std::string data = "\t.section .drt_carried,\"a\",@progbits\n", table, names;
  raw_string_ostream dataOs(data), tableOs(table), namesOs(names);
  tableOs << "\t.section .data.rel.ro,\"aw\",@progbits\n\t.balign 8\n\t.globl drt_carried\ndrt_carried:\n";
  namesOs << "\t.section .rodata,\"a\",@progbits\n";
  for (auto [i, file] : enumerate(files)) {
    dataOs << "\t.balign 64\nbegin" << i << ":\n\t.incbin \"";
    dataOs.write_escaped(file.second) << "\"\nend" << i << ":\n";
    namesOs << "name" << i << ":\n\t.asciz \"" << file.first << "\"\n";
    tableOs << "\t.quad name" << i << ", begin" << i << ", end" << i << "\n";
  }
  tableOs << "\t.quad 0, 0, 0\n";
  return data + names + table + "\t.section .note.GNU-stack,\"\",@progbits\n";
}

// Symbols that an executable's own libraries and kernels look for in the program.
static constexpr StringLiteral kExports = "{ global: main; drt_emulated_*; local: *; };\n";

// A flag of the runtime's list (runtime/CMakeLists.txt), as the linker has it. "for an executable|for a shared object".
static void addFlag(SmallVectorImpl<StringRef> &flags, StringRef flag, Form form) {
  auto [executable, shared] = flag.split('|');
  flag = form == Form::Executable || shared.empty() ? executable : shared;
  if (flag.consume_front("-Wl,"))
    flag.split(flags, ',');
  else
    flags.push_back(flag);
}

// Libraries that there are static ones of, too, for executables.
static bool isStaticToo(StringRef soname) {
  return any_of(ArrayRef<StringRef>{"libstdc++.", "libgcc_s.", "libprotobuf-lite.", "libz."},
                [&](StringRef prefix) { return soname.starts_with(prefix); });
}

// program.o and its kernels with the runtime as a plain executable, `program`.
static Error linkPlain(const LinkFolder &folder, StringRef toolchain, ArrayRef<StringRef> searched,
                       ArrayRef<StringRef> flags) {
  const std::string kernels = folder.path(kKernels);
  SmallVector<StringRef> ofExecutable = {kernels, "--gc-sections", "-z", "nostart-stop-gc"};
  append_range(ofExecutable, searched);
  for (StringRef flag : flags)
    addFlag(ofExecutable, flag, Form::Executable);
  append_values(ofExecutable, "-l:libstdc++.a", "-l:libgcc_eh.a");
  return link(folder, toolchain, "program.o", "program", Form::Executable, ofExecutable);
}

// program.o and its kernels with the runtime as `program`, which needs nothing but glibc: the libraries that there are
// only shared ones of are carried. Where the program calls none of them it is a plain executable; `plain`: that is to
// be expected.
static Error linkAlone(const LinkFolder &folder, StringRef runtimeFolder, StringRef toolchain, bool plain,
                       ArrayRef<StringRef> flags) {
  SmallString<128> libraries(runtimeFolder);
  sys::path::append(libraries, "carried");
  const std::string ofRuntime = ("-L" + runtimeFolder).str(), ofToolchain = ("-L" + toolchain).str(),
                    search = ("-L" + libraries).str(), exports = "--version-script=" + folder.path("exports"),
                    kernels = folder.path(kKernels);
  const StringRef searched[] = {ofRuntime, ofToolchain, search};
  if (plain) {
    if (Error error = linkPlain(folder, toolchain, searched, flags))
      return error;
    Expected<SmallVector<std::string>> needed = readNeeded(folder.path("program"));
    if (!needed)
      return needed.takeError();
    if (all_of(*needed, isOfGlibc))
      return Error::success();
  }
  if (std::error_code code = folder.write("exports", ArrayRef(kExports.data(), kExports.size())))
    return fileError("cannot write", folder.path("exports"), code);
  SmallVector<StringRef> ofProgram = {kernels, "-Bsymbolic", "--undefined=main", "--no-undefined", exports};
  append_range(ofProgram, searched);
  for (StringRef flag : flags)
    addFlag(ofProgram, flag, Form::SharedObject);
  append_values(ofProgram, "-l:libstdc++.so.6", "-l:libgcc_s.so.1");
  if (Error error = link(folder, toolchain, "program.o", "program.so", Form::SharedObject, ofProgram))
    return error;
  SmallVector<std::string> carried;
  if (Error error = addNeeded(folder.path("program.so"), libraries, carried))
    return error;
  if (all_of(carried, isStaticToo))
    return linkPlain(folder, toolchain, searched, flags);
  if (Error error = assemble(makeCarriedTable(folder, libraries, carried), folder.path("carried.o")))
    return error;
  return link(folder, toolchain, "carried.o", "program", Form::Executable, {ofRuntime, "-ldrt_loader"});
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

/// A device or a pipe: it is written to, and no file takes its place.
static bool isSpecial(StringRef path) {
  sys::fs::file_status status;
  return !sys::fs::status(path, status) && sys::fs::is_other(status);
}

static Error publish(const Twine &program, StringRef output) {
  if (!isSpecial(output)) {
    if (std::error_code code = sys::fs::rename(program, output))
      return fileError("cannot write", output, code);
    return Error::success();
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> linked = MemoryBuffer::getFile(program);
  if (!linked)
    return fileError("cannot read", program.str(), linked.getError());
  std::error_code code;
  raw_fd_ostream os(output, code, sys::fs::CD_OpenExisting);
  if (!code) {
    os << (*linked)->getBuffer();
    os.flush();
    code = os.error();
    os.clear_error();
  }
  return code ? fileError("cannot write", output, code) : Error::success();
}

// program.o, and the archive of what it calls, in a new folder.
static std::error_code writeObjects(LinkFolder &folder, StringRef prefix, ArrayRef<ObjectCode> objects) {
  std::vector<NewArchiveMember> members;
  for (const ObjectCode &object : objects.drop_front())
    members.emplace_back(MemoryBufferRef(StringRef(object.data(), object.size()), "kernel.o"));
  if (std::error_code code = folder.create(prefix))
    return code;
  if (std::error_code code = folder.write("program.o", objects.front()))
    return code;
  return errorToErrorCode(writeArchive(folder.path(kKernels), members, SymtabWritingMode::NormalSymtab,
                                       object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false));
}

Error linkExecutable(ArrayRef<ObjectCode> objects, StringRef runtimeFolder, const Target &target, LinkedParts parts,
                     StringRef named) {
  // A symbolic link stays, and what it names is written.
  SmallString<128> output(named), followed;
  if (sys::fs::is_symlink_file(named) && !sys::fs::real_path(named, followed))
    output = followed;
  Expected<std::unique_ptr<MemoryBuffer>> flags = readFlags(runtimeFolder, target);
  if (!flags)
    return flags.takeError();
  std::string search = ("-L" + runtimeFolder).str();
  SmallVector<StringRef> lines;
  // References to these are weak (launch/group.h, tls/tls.h, cpu/kernels/library_matmul.h).
  if (parts.collectives)
    lines.push_back("-Wl,--undefined=drt_connect_tasks");
  if (parts.tls)
    lines.push_back("-Wl,--undefined=drt_open_tls");
  if (parts.library && !target.isDevice())
    lines.push_back("-Wl,--undefined=drt_use_onednn");
  (*flags)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);

  // In a folder beside the output: renaming is then one step.
  SmallString<128> prefix(output), toolchain(runtimeFolder);
  if (isSpecial(output)) {
    sys::path::system_temp_directory(/*ErasedOnReboot=*/true, prefix);
    sys::path::append(prefix, "distc");
  }
  sys::path::append(toolchain, "toolchain");
  LinkFolder folder;
  if (std::error_code code = sys::fs::make_absolute(prefix))
    return fileError("cannot write", output, code);
  if (std::error_code code = writeObjects(folder, prefix, objects))
    return fileError("cannot write", output, code);
  // A runtime that is built with sanitizers has none: its programs use the machine's libraries.
  const bool alone = sys::fs::is_directory(toolchain);
  if (!alone)
    lines.insert(lines.begin(), search);
  const bool plain = !target.isDevice() && !parts.collectives && !parts.tls && !parts.library && !parts.convolutions;
  Error error =
      alone ? linkAlone(folder, runtimeFolder, toolchain, plain, lines) : linkByDriver(folder, "program", lines);
  if (error.isA<MissingSymbolError>())
    return error;
  if (error)
    return createStringError("cannot write '" + named + "', as linking it failed: " + toString(std::move(error)));
  return publish(folder.path("program"), output);
}

Expected<std::string> linkSharedObject(ArrayRef<ObjectCode> objects) {
  SmallString<128> prefix;
  sys::path::system_temp_directory(/*ErasedOnReboot=*/true, prefix);
  sys::path::append(prefix, "distc");
  LinkFolder folder;
  if (std::error_code code = writeObjects(folder, prefix, objects))
    return fileError("cannot write", prefix, code);
  const std::string kernels = folder.path(kKernels);
  if (Error error = link(folder, /*toolchain=*/"", "program.o", "program", Form::Kernels, {kernels}))
    return createStringError("cannot link the kernels: " + toString(std::move(error)));
  ErrorOr<std::unique_ptr<MemoryBuffer>> linked = MemoryBuffer::getFile(folder.path("program"));
  if (!linked)
    return fileError("cannot read", folder.path("program"), linked.getError());
  return (*linked)->getBuffer().str();
}

} // namespace distc
