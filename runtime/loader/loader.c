//===- loader.c - main of an executable that carries libraries ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Such an executable needs glibc alone. It holds the program, which is a shared
// object, and behind each other the libraries that the program needs: each is
// written to a file in memory and opened, a library before those that need it.
// The dynamic linker takes what is opened already for what has the same soname
// (ld.so(8), DT_NEEDED), so nothing is looked for on the machine.
//
// In C, as libstdc++ may be one of the libraries.
//
//===----------------------------------------------------------------------===//
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Made when the executable is linked (passes/lower/program/LinkExecutable.cpp); the program comes last, then a null
// name.
struct carried {
  const char *name;
  const char *begin, *end;
};
extern const struct carried drt_carried[];

enum { longest_path = 4096, piece = 1 << 20 };

// A file that has a name until it is opened, or "".
static char named[longest_path];

static void fail(const char *what, const char *name, const char *why) {
  if (named[0])
    unlink(named);
  fprintf(stderr, "error: cannot %s '%s', which the program carries: %s\n", what, name, why);
  exit(1);
}

// In pieces, after each of which its pages of the executable need no memory: they are read again from the file, if
// ever. A small program's memory would have its peak here otherwise. The system maps some pages around those that are
// read, so that all up to here are released.
static void write_all(int file, const struct carried *library) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t begin = ((uintptr_t)library->begin + page - 1) / page * page;
  for (const char *at = library->begin; at < library->end;) {
    const size_t left = (size_t)(library->end - at);
    const ssize_t written = write(file, at, left < piece ? left : piece);
    if (written < 0 && errno != EINTR)
      fail("write", library->name,
           errno == EFBIG ? "File too large; files in memory are files: raise the limit on their sizes (ulimit -f)"
                          : strerror(errno));
    at += written > 0 ? written : 0;
    const uintptr_t end = (uintptr_t)at / page * page;
    if (begin < end)
      madvise((void *)begin, end - begin, MADV_DONTNEED);
  }
}

// Where /proc is not mounted, or files in memory are not allowed: a file that is gone once it is opened.
static void *open_from_folder(const struct carried *library, const char *why) {
  const char *const folders[] = {getenv("TMPDIR"), "/dev/shm", "/tmp", "."};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i) {
    char path[longest_path];
    if (!folders[i] || snprintf(path, sizeof path, "%s/drt-XXXXXX", folders[i]) >= (int)sizeof path)
      continue;
    const int file = mkostemp(path, 0);
    if (file < 0)
      continue;
    memcpy(named, path, sizeof named);
    write_all(file, library);
    close(file);
    void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    unlink(path);
    named[0] = '\0';
    if (handle)
      return handle;
    why = dlerror();
  }
  fail("open", library->name, why);
  return NULL;
}

static void *open_library(const struct carried *library) {
  const int file = memfd_create(library->name, MFD_CLOEXEC);
  if (file < 0)
    return open_from_folder(library, strerror(errno));
  write_all(file, library);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  // The descriptor stays open: another file under its number would be taken for this library.
  void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (handle)
    return handle;
  const char *why = dlerror();
  char kept[512];
  snprintf(kept, sizeof kept, "%s", why ? why : "no reason is given");
  close(file);
  return open_from_folder(library, kept);
}

// OpenMP's library reads this when it is opened. Its threads wait for each other in a loop of 300,000 turns before they
// sleep, milliseconds in which whoever they wait for may want the core: beside six busy processes on two cores a step
// of one replica took 424 ms, with 10,000 turns 127 to 134. With 1,000 small steps take longer on a machine of their
// own (0.70 ms instead of 0.54), with 10,000 they do not.
static void wait_briefly(void) {
  if (!getenv("OMP_WAIT_POLICY"))
    setenv("GOMP_SPINCOUNT", "10000", 0);
}

int main(int argc, char **argv) {
  wait_briefly();
  signal(SIGXFSZ, SIG_IGN); // a limit on files is an error that is said, as in the program (ignoreWriteSignals)
  void *program = NULL;
  for (const struct carried *library = drt_carried; library->name; ++library)
    program = open_library(library);
  int (*run)(int, char **) = NULL;
  if (program)
    *(void **)&run = dlsym(program, "main");
  if (!run)
    fail("start", "the program", "it has no main");
  return run(argc, argv);
}
