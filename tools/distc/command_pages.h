//===- command_pages.h - The command line, for shells and for man ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Made from the declarations that the command line is parsed by, so that they
// say what it takes.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_COMMAND_PAGES_H
#define DISTC_TOOLS_COMMAND_PAGES_H

#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <vector>

namespace distc {

// What flags ("--emit") and arguments ("SHELL") can be, where that is known.
using FlagValues = std::map<std::string, std::vector<std::string>>;

// For `shell`, "bash", "zsh" or "fish": completes commands, flags, their values, and files.
std::string completionScript(const CLI::App &app, const std::string &shell, const FlagValues &values);

// In the language of man(7).
std::string manualPage(const CLI::App &app, const std::string &version);

} // namespace distc
#endif // DISTC_TOOLS_COMMAND_PAGES_H
