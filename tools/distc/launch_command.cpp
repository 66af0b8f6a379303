//===- launch_command.cpp - distc launch ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A host gets the file once: it is kept under its SHA-256, which the host computes of what has arrived. A task runs
// behind a shell that reads the run's secret from its standard input, so that it is in no list of processes, and takes
// the end of that input for the end of the run: however this process, ssh or the network between ends, no task stays
// behind.
//
//===----------------------------------------------------------------------===//
#include "tools/distc/launch_command.h"

#include "core/error.h"
#include "core/flag_errors.h"
#include "launch/secret.h"
#include "strategies/Resources.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <ifaddrs.h>
#include <map>
#include <netdb.h>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace distc {
namespace {

using strategies::Host;
using strategies::Resources;
using strategies::SshConfig;
using Clock = std::chrono::steady_clock;

// Others end by themselves when one is lost; who does not is told so, and then killed.
constexpr auto endsAlone = std::chrono::seconds(20), endsWhenTold = std::chrono::seconds(20);

volatile std::sig_atomic_t received = 0;
void receive(int signal) { received = signal; }

std::string quoted(const std::string &text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// A child with pipes to its standard input and from its output; errors are this process' own.
struct Child {
  pid_t pid = -1;
  int in = -1, out = -1;

  explicit Child(const std::vector<std::string> &command, bool joinsErrors = false) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
      throw drt::Error(std::string("cannot make a pipe: ") + std::strerror(errno));
    std::vector<char *> words;
    for (const std::string &word : command)
      words.push_back(const_cast<char *>(word.c_str()));
    words.push_back(nullptr);
    pid = fork();
    if (pid < 0)
      throw drt::Error(std::string("cannot start a process: ") + std::strerror(errno));
    if (pid == 0) {
      // A terminal's interrupt is for this process, which hands it on.
      setpgid(0, 0);
      std::signal(SIGPIPE, SIG_DFL);
      dup2(to[0], 0);
      dup2(from[1], 1);
      if (joinsErrors)
        dup2(from[1], 2);
      execvp(words[0], words.data());
      dprintf(2, "distc: error: cannot run %s: %s\n", words[0], std::strerror(errno));
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    in = to[1];
    out = from[0];
  }
  Child(Child &&other) noexcept { std::swap(pid, other.pid), std::swap(in, other.in), std::swap(out, other.out); }
  ~Child() {
    closeInput();
    if (out >= 0)
      close(out);
    if (pid > 0) {
      kill(-pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }

  void closeInput() {
    if (in >= 0)
      close(in);
    in = -1;
  }

  void write(const char *data, size_t bytes) {
    while (bytes > 0) {
      const ssize_t written = ::write(in, data, bytes);
      if (written < 0 && errno == EINTR && !received)
        continue;
      if (written <= 0)
        return; // what it prints, or its status, says why
      data += written;
      bytes -= static_cast<size_t>(written);
    }
  }

  static int statusOf(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

  // What it prints to its end, and its status.
  std::pair<std::string, int> finish() {
    closeInput();
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t got; (got = read(out, buffer.data(), buffer.size())) > 0 || (got < 0 && errno == EINTR && !received);)
      text.append(buffer.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
      ;
    pid = -1;
    return {text, statusOf(status)};
  }
};

std::pair<std::string, int> outputOf(const std::vector<std::string> &command) { return Child(command).finish(); }

// The plan's tasks, by number, with the host of each.
std::vector<std::string> readTasks(const std::string &program) {
  const auto [plan, status] = outputOf({program, "--plan", "--collectives=network"});
  std::vector<std::string> hosts;
  std::istringstream lines(plan);
  bool inTable = false;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string task, host;
    words >> task >> host;
    if (line == "Tasks")
      inTable = true;
    else if (inTable && task == "worker:" + std::to_string(hosts.size()))
      hosts.push_back(host);
    else if (inTable && task.empty())
      break;
  }
  if (status != 0 || hosts.empty())
    throw drt::Error("'" + program + " --plan' does not say which tasks there are; is it an executable of distc?");
  return hosts;
}

bool isOfThisMachine(const std::string &address) {
  addrinfo *found = nullptr;
  if (getaddrinfo(address.c_str(), nullptr, nullptr, &found) != 0)
    return false;
  ifaddrs *own = nullptr;
  if (getifaddrs(&own) != 0)
    own = nullptr;
  const auto textOf = [](const sockaddr *address) {
    std::array<char, NI_MAXHOST> text = {};
    const socklen_t bytes = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
    if (getnameinfo(address, bytes, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
      return std::string();
    return std::string(text.data());
  };
  bool is = false;
  for (const addrinfo *each = found; each; each = each->ai_next)
    for (const ifaddrs *mine = own; mine; mine = mine->ifa_next)
      if (mine->ifa_addr && mine->ifa_addr->sa_family == each->ai_family &&
          (each->ai_family == AF_INET || each->ai_family == AF_INET6))
        is |= textOf(each->ai_addr) == textOf(mine->ifa_addr);
  freeaddrinfo(found);
  if (own)
    freeifaddrs(own);
  return is;
}

class Launcher {
public:
  Launcher(const LaunchArguments &arguments, std::vector<std::string> flags)
      : arguments(arguments), flags(std::move(flags)) {}

  int run() {
    auto read = strategies::readResources(arguments.resources);
    if (const auto *message = std::get_if<std::string>(&read))
      throw drt::Error(*message);
    resources = std::get<Resources>(std::move(read));
    const std::string program = std::filesystem::absolute(arguments.program).string();
    const std::vector<std::string> hosts = readTasks(program);
    for (const std::string &host : hosts)
      if (!find(host))
        throw drt::Error("the plan has tasks on '" + host + "', which " + arguments.resources +
                         " does not name; compile with this file (--resources)");
    hash = hashOf(outputOf({"sha256sum", program}).first);
    if (hash.empty())
      throw drt::Error("cannot compute the SHA-256 of " + program + " (sha256sum)");
    std::map<std::string, std::string> files; // by host
    for (const std::string &host : hosts)
      if (!files.count(host))
        files[host] = isOfThisMachine(host) ? program : copyTo(*find(host), program);
    for (size_t i = 0; i < hosts.size() && !received; ++i)
      start(i, *find(hosts[i]), files[hosts[i]], hosts[0]);
    return watch();
  }

private:
  const Host *find(const std::string &address) const {
    for (const Host &host : resources.hosts)
      if (host.address == address)
        return &host;
    return nullptr;
  }

  static std::string hashOf(const std::string &output) {
    const std::string hash = output.substr(0, output.find_first_of(" \n"));
    return hash.size() == 64 ? hash : "";
  }

  // A shell's script on the host. Nobody can be asked for a password.
  std::vector<std::string> onHost(const Host &host, const std::string &script) const {
    if (isOfThisMachine(host.address))
      return {"/bin/sh", "-c", script};
    const auto known = resources.ssh.find(host.sshConfig);
    const SshConfig ssh = known == resources.ssh.end() ? SshConfig() : known->second;
    std::vector<std::string> command = {"ssh", "-o", "BatchMode=yes", "-p", std::to_string(ssh.port)};
    if (!ssh.keyFile.empty())
      command.insert(command.end(), {"-i", ssh.keyFile});
    command.push_back(ssh.username.empty() ? host.address : ssh.username + "@" + host.address);
    // Whatever the login's shell is.
    command.push_back("exec /bin/sh -c " + quoted(script));
    return command;
  }

  // Where the program is there, whole.
  std::string copyTo(const Host &host, const std::string &program) const {
    const std::string name = std::filesystem::path(program).filename().string();
    const std::string where =
        "d=${TMPDIR:-/tmp}/distc-$(id -u)-" + hash.substr(0, 16) + "; f=$d/" + quoted(name) + "; ";
    const auto [there, status] = outputOf(onHost(
        host,
        where +
            "umask 077; mkdir -p \"$d\" || exit 1; [ -O \"$d\" ] || { echo \"$d is somebody else's; "
            "remove it, or name another TMPDIR\" >&2; exit 1; }; echo \"$f\" && sha256sum < \"$f\" 2>/dev/null; true"));
    const size_t end = there.find('\n');
    if (status != 0 || end == std::string::npos || end == 0)
      throw drt::Error("cannot run a command on '" + host.address + "' over ssh (status " + std::to_string(status) +
                       "); its user, key and port are ssh_config's in " + arguments.resources);
    std::string file = there.substr(0, end);
    if (hashOf(there.substr(end + 1)) == hash)
      return file;
    // Another run may be copying it as well.
    Child copying(onHost(host, where + "t=$f.$$; umask 077; cat > \"$t\" && chmod 700 \"$t\" && sha256sum < \"$t\" && "
                                       "mv \"$t\" \"$f\" || rm -f \"$t\""));
    const int input = open(program.c_str(), O_RDONLY | O_CLOEXEC);
    std::vector<char> buffer(1 << 20);
    for (ssize_t got; input >= 0 && (got = read(input, buffer.data(), buffer.size())) > 0;)
      copying.write(buffer.data(), static_cast<size_t>(got));
    if (input >= 0)
      close(input);
    if (hashOf(copying.finish().first) != hash)
      throw drt::Error("what arrived of " + program + " at '" + host.address +
                       "' is something else; is its disk full?");
    return file;
  }

  struct Task {
    std::string name;
    Child child;
    std::string line; // without an end yet
    int status = -1;  // it runs
  };

  void start(size_t number, const Host &host, const std::string &file, const std::string &chief) {
    std::string script = "IFS= read -r DISTC_SECRET; export DISTC_SECRET; ";
    const std::string directory =
        arguments.directory.empty() ? std::filesystem::current_path().string() : arguments.directory;
    script += "cd " + quoted(directory) + " || exit 1; ";
    if (const auto ssh = resources.ssh.find(host.sshConfig); ssh != resources.ssh.end())
      for (const auto &[name, value] : ssh->second.sharedEnvs)
        script += "export " + quoted(name + "=" + value) + "; ";
    script += quoted(file) + " --task worker:" + std::to_string(number) + " --rendezvous " +
              quoted((chief.find(':') == std::string::npos ? chief : "[" + chief + "]") + ":" +
                     std::to_string(arguments.port));
    for (const std::string &flag : flags)
      script += " " + quoted(flag);
    // A shell gives what runs beside it no input unless it is named. What waits for the end of ours holds nothing of
    // ssh's open.
    script += " < /dev/null & p=$!; exec 3<&0; { cat <&3; kill -TERM $p; } > /dev/null 2>&1 & w=$!; "
              "wait $p; s=$?; kill $w 2> /dev/null; exit $s";
    tasks.push_back({"worker:" + std::to_string(number), Child(onHost(host, script), /*joinsErrors=*/true), "", -1});
    const std::string line = secret() + "\n";
    tasks.back().child.write(line.data(), line.size());
  }

  // One for the run, unless the environment has it.
  const std::string &secret() {
    if (secret_.empty())
      secret_ = drt::find_secret("");
    if (secret_.empty())
      secret_ = drt::make_secret();
    return secret_;
  }

  // Prints whole lines, each with its task.
  static void print(Task &task, const char *data, size_t bytes) {
    task.line.append(data, bytes);
    for (size_t end; (end = task.line.find_first_of("\n\r")) != std::string::npos; task.line.erase(0, end + 1))
      if (end > 0)
        std::printf("[%s] %s\n", task.name.c_str(), task.line.substr(0, end).c_str());
    std::fflush(stdout);
  }

  int watch() {
    int result = 0;
    Clock::time_point told = {}, first = {};
    while (std::any_of(tasks.begin(), tasks.end(), [](const Task &task) { return task.status < 0; })) {
      std::vector<pollfd> polled;
      for (const Task &task : tasks)
        if (task.status < 0)
          polled.push_back({task.child.out, POLLIN, 0});
      poll(polled.data(), polled.size(), 200);
      size_t next = 0;
      for (Task &task : tasks) {
        if (task.status >= 0 || polled[next++].revents == 0)
          continue;
        std::array<char, 1 << 14> buffer;
        const ssize_t got = read(task.child.out, buffer.data(), buffer.size());
        if (got > 0) {
          print(task, buffer.data(), static_cast<size_t>(got));
        } else if (got == 0 || errno != EINTR) {
          if (!task.line.empty())
            print(task, "\n", 1);
          task.status = task.child.finish().second;
          if (task.status != 0 && result == 0) {
            result = task.status;
            first = Clock::now();
            std::fprintf(stderr, "distc: error: %s ended with status %d\n", task.name.c_str(), task.status);
          }
        }
      }
      const auto now = Clock::now();
      const bool isOver = received || (first != Clock::time_point() && now - first > endsAlone);
      if (isOver && told == Clock::time_point()) {
        told = now;
        for (Task &task : tasks)
          task.child.closeInput();
      }
      if (told != Clock::time_point() && now - told > endsWhenTold)
        break; // what is left is killed
    }
    tasks.clear();
    return received ? 128 + received : result;
  }

  const LaunchArguments &arguments;
  std::vector<std::string> flags;
  Resources resources;
  std::string hash, secret_;
  std::vector<Task> tasks;
};

} // namespace

void declareLaunchCommand(CLI::App &app, LaunchArguments &arguments) {
  app.add_option("PROGRAM", arguments.program, "The executable, whose plan names the hosts")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--resources", arguments.resources,
                 "The resource file that it was compiled with: hosts, and how ssh reaches them (ssh_config)")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_option("--port", arguments.port, "Where the first task listens for the others, at its host's address")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--directory", arguments.directory, "Where tasks run, on every host (else this folder's path)");
}

int launchCommand(int argc, const char *const *argv) {
  CLI::App app(
      "Start an executable's tasks on the hosts of its plan, over ssh: distc launch PROGRAM --resources R.yml -- FLAGS",
      "distc launch");
  LaunchArguments arguments;
  declareLaunchCommand(app, arguments);
  const char *const *end =
      std::find_if(argv, argv + argc, [](const char *word) { return std::strcmp(word, "--") == 0; });
  std::vector<std::string> flags;
  if (end != argv + argc)
    flags.assign(end + 1, argv + argc);
  for (const std::string &flag : flags)
    if (flag.starts_with("--task") || flag.starts_with("--rendezvous")) {
      std::fprintf(stderr, "distc: error: %s is what distc launch says to each task\n", flag.c_str());
      return 2;
    }
  try {
    app.parse(static_cast<int>(end - argv), argv);
    struct sigaction action = {};
    action.sa_handler = receive;
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
      sigaction(signal, &action, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    return Launcher(arguments, std::move(flags)).run();
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error); // --help
    std::fprintf(stderr, "distc: error: %s (distc launch --help lists what there is)\n",
                 drt::describeFlagError(app, error).c_str());
    return 2;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "distc: error: %s\n", error.what());
    return 1;
  }
}

} // namespace distc
