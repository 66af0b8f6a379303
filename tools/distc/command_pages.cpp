//===- command_pages.cpp - The command line, for shells and for man -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/distc/command_pages.h"

#include <functional>
#include <vector>

namespace distc {
namespace {

// A command with the words that lead to it: {"strategy", "build"}.
using Visit = std::function<void(const CLI::App &, const std::vector<std::string> &)>;

void forEachCommand(const CLI::App &app, std::vector<std::string> &words, const Visit &visit) {
  visit(app, words);
  for (const CLI::App *below : app.get_subcommands({})) {
    words.push_back(below->get_name());
    forEachCommand(*below, words, visit);
    words.pop_back();
  }
}

void forEachCommand(const CLI::App &app, const Visit &visit) {
  std::vector<std::string> words;
  forEachCommand(app, words, visit);
}

std::string join(const std::vector<std::string> &words, const char *separator) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : separator) + word;
  return text;
}

// "--batch", "-o"
std::vector<std::string> flagsOf(const CLI::App &command) {
  std::vector<std::string> flags;
  for (const CLI::Option *option : command.get_options()) {
    for (const std::string &name : option->get_lnames())
      flags.push_back("--" + name);
    for (const std::string &name : option->get_snames())
      flags.push_back("-" + name);
  }
  return flags;
}

std::vector<std::string> commandsOf(const CLI::App &command) {
  std::vector<std::string> names;
  for (const CLI::App *below : command.get_subcommands({}))
    names.push_back(below->get_name());
  return names;
}

// In single quotes, for any of the shells.
std::string inQuotes(const std::string &text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// Of the arguments without dashes the values that are known.
std::vector<std::string> valuesOf(const CLI::App &command, const FlagValues &values) {
  for (const CLI::Option *option : command.get_options())
    if (auto known = values.find(option->get_name(true)); option->get_positional() && known != values.end())
      return known->second;
  return {};
}

// The words so far without flags and files, "strategy build", lead to what may follow. zsh runs it as well.
std::string bashScript(const CLI::App &app, const FlagValues &values) {
  std::string cases, choices;
  forEachCommand(app, [&](const CLI::App &command, const std::vector<std::string> &words) {
    const std::string at = "    " + inQuotes(join(words, " "));
    std::vector<std::string> next = commandsOf(command), given = valuesOf(command, values);
    next.insert(next.end(), given.begin(), given.end());
    cases +=
        at + ") commands=" + inQuotes(join(next, " ")) + " flags=" + inQuotes(join(flagsOf(command), " ")) + " ;;\n";
  });
  for (const auto &[flag, known] : values)
    if (flag.starts_with('-'))
      choices += "    " + flag + ") values=" + inQuotes(join(known, " ")) + " ;;\n";
  return "_distc() {\n"
         "  local word=\"${COMP_WORDS[COMP_CWORD]}\" flag=\"${COMP_WORDS[COMP_CWORD-1]}\" command= commands= flags= "
         "values= i\n"
         "  COMPREPLY=()\n"
         "  # --emit=dfg is three words to bash.\n"
         "  if [[ $word == = ]]; then\n"
         "    word=\n"
         "  elif [[ $flag == = ]]; then\n"
         "    flag=\"${COMP_WORDS[COMP_CWORD-2]}\"\n"
         "  fi\n"
         "  _distc_next\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    if [[ \" $commands \" == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
         "      command=\"${command:+$command }${COMP_WORDS[i]}\"\n"
         "      _distc_next\n"
         "    fi\n"
         "  done\n"
         "  case \"$flag\" in\n" +
         choices +
         "  esac\n"
         "  if [[ -n $values ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
         "  elif [[ $word == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
         "  elif [[ -n $commands ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$commands\" -- \"$word\"))\n"
         "  fi\n"
         "  [[ $word == -* || ${#COMPREPLY[@]} -gt 0 ]] || COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "}\n"
         "_distc_next() {\n"
         "  case \"$command\" in\n" +
         cases +
         "    *) commands= flags= ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _distc distc\n";
}

std::string fishScript(const CLI::App &app, const FlagValues &values) {
  std::string script;
  forEachCommand(app, [&](const CLI::App &command, const std::vector<std::string> &words) {
    std::string condition = "__fish_use_subcommand";
    if (!words.empty()) {
      condition.clear();
      for (const std::string &word : words)
        condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + word);
      if (const std::vector<std::string> below = commandsOf(command); !below.empty())
        condition += "; and not __fish_seen_subcommand_from " + join(below, " ");
    }
    const std::string line = "complete -c distc -n " + inQuotes(condition);
    for (const CLI::App *below : command.get_subcommands({}))
      script += line + " -f -a " + below->get_name() + " -d " + inQuotes(below->get_description()) + "\n";
    if (const std::vector<std::string> given = valuesOf(command, values); !given.empty())
      script += line + " -f -a " + inQuotes(join(given, " ")) + "\n";
    for (const CLI::Option *option : command.get_options()) {
      std::string names, known;
      for (const std::string &name : option->get_lnames()) {
        names += " -l " + name;
        if (auto its = values.find("--" + name); its != values.end())
          known = " -a " + inQuotes(join(its->second, " "));
      }
      for (const std::string &name : option->get_snames())
        names += " -s " + name;
      if (!names.empty())
        script += line + names + (option->get_items_expected_max() > 0 ? " -r" : "") + known + " -d " +
                  inQuotes(option->get_description()) + "\n";
    }
  });
  return script;
}

// For troff: a dash is a minus, a backslash itself, and a point or quote at the beginning of a line is text.
std::string roff(const std::string &text) {
  std::string result;
  bool begins = true;
  for (char c : text) {
    if (begins && (c == '.' || c == '\''))
      result += "\\&";
    result += c == '-' ? "\\-" : c == '\\' ? "\\e" : std::string(1, c);
    begins = c == '\n';
  }
  return result;
}

} // namespace

std::string completionScript(const CLI::App &app, const std::string &shell, const FlagValues &values) {
  if (shell == "fish")
    return fishScript(app, values);
  return shell == "zsh" ? "#compdef distc\nautoload -U +X bashcompinit && bashcompinit\n" + bashScript(app, values)
                        : bashScript(app, values);
}

std::string manualPage(const CLI::App &app, const std::string &version) {
  std::string summary = app.get_description();
  if (summary.starts_with("distc "))
    summary.erase(0, 6);
  std::string page =
      ".TH DISTC 1 \"\" \"distc " + roff(version) + "\"\n.SH NAME\ndistc \\- " + roff(summary) + "\n.SH SYNOPSIS\n";
  forEachCommand(app, [&](const CLI::App &command, const std::vector<std::string> &words) {
    if (words.empty() || !command.get_subcommands({}).empty())
      return;
    page += ".B distc " + roff(join(words, " ")) + "\n";
    for (const CLI::Option *option : command.get_options())
      if (option->get_positional())
        page += "\\fI" + roff(option->get_name(true)) + "\\fR ";
    page += "[\\fIOPTION\\fR]...\n.br\n";
  });
  page += ".SH COMMANDS\n";
  forEachCommand(app, [&](const CLI::App &command, const std::vector<std::string> &words) {
    if (words.empty())
      return;
    page += ".SS distc " + roff(join(words, " "));
    for (const CLI::Option *option : command.get_options())
      if (option->get_positional())
        page += " " + roff(option->get_name(true));
    page += "\n" + roff(command.get_description()) + ".\n";
    for (const CLI::Option *option : command.get_options()) {
      const std::string value = option->get_positional() || option->get_items_expected_max() == 0
                                    ? ""
                                    : " \\fI" + roff(option->get_type_name()) + "\\fR";
      page += ".TP\n\\fB" +
              roff(option->get_name(option->get_positional(), /*all_options=*/!option->get_positional())) + "\\fR" +
              value + "\n" + roff(option->get_description()) +
              (option->get_default_str().empty() ? "" : " (" + roff(option->get_default_str()) + ")") + "\n";
    }
  });
  return page + ".SH EXIT STATUS\n0 done, 1 the input is wrong, 2 the command line is wrong, 70 an internal error.\n"
                ".SH SEE ALSO\nThe guide, and the manual of the executables that distc makes: their \\-\\-help.\n";
}

} // namespace distc
