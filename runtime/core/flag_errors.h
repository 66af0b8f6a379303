//===- flag_errors.h - What is wrong with a command line ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// distc and the executables answer a wrong command line alike: one line, the likeliest mistake first, with the names
// that may have been meant.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_FLAG_ERRORS_H
#define DRT_CORE_FLAG_ERRORS_H

#include "core/near_names.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace drt {

/// The command that the words so far have reached: `app`, or the command below it, and so on.
inline const CLI::App &reachedCommand(const CLI::App &app) {
  const std::vector<CLI::App *> used = app.get_subcommands();
  return used.empty() ? app : reachedCommand(*used.front());
}

/// What CLI11 refused, in one line. A word that nothing knows is a likelier mistake than a flag that is missing.
inline std::string describeFlagError(const CLI::App &app, const CLI::ParseError &error) {
  const CLI::App &command = reachedCommand(app);
  std::vector<std::string> flags, commands;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames())
      flags.push_back("--" + name);
  for (const CLI::App *below : command.get_subcommands({}))
    commands.push_back(below->get_name());
  for (const std::string &word : app.remaining(/*recurse=*/true)) {
    if (word.size() > 1 && word.front() == '-') {
      const std::string flag = word.substr(0, word.find('='));
      return "there is no flag " + flag + didYouMean(flag, flags);
    }
    if (!commands.empty())
      return "there is no command '" + word + "'" + nearNamesHint(word, commands);
    return "'" + word + "' is one argument too many";
  }
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  // "--emit: exf not in {exe,dfg}"
  const size_t colon = text.find(": "), says = text.find(" not in {");
  if (colon != std::string::npos && says != std::string::npos && text.back() == '}') {
    std::string values;
    for (char c : text.substr(says + 9, text.size() - says - 10))
      values += c == ',' ? std::string(", ") : std::string(1, c);
    return text.substr(0, colon) + " is '" + text.substr(colon + 2, says - colon - 2) + "'; it can be " + values;
  }
  if (text == "A subcommand is required") {
    text = "a command is missing:";
    for (size_t i = 0; i < commands.size(); ++i)
      text += (i == 0 ? " " : i + 1 < commands.size() ? ", " : " or ") + commands[i];
  }
  return text;
}

} // namespace drt

#endif // DRT_CORE_FLAG_ERRORS_H
