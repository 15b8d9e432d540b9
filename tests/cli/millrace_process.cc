#include "tests/cli/millrace_process.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace millrace::cli {
namespace {

std::string contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

nlohmann::json Outcome::json() const {
  auto document = nlohmann::json::parse(out, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << "not JSON: " << out << err;
  return document;
}

nlohmann::json Outcome::error_json() const {
  auto document = nlohmann::json::parse(err, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << "not JSON: " << err;
  return document;
}

void MillraceTest::SetUp() {
  const char* const program = std::getenv("MILLRACE_BIN");
  ASSERT_NE(program, nullptr) << "MILLRACE_BIN is not set: run it through ctest";
  program_ = program;
  char name[] = "/tmp/millrace-cli-XXXXXX";
  directory_ = ::mkdtemp(name);
  std::filesystem::create_directories(path("bin"));
  std::filesystem::create_symlink(program_, path("bin/millrace"));
  variables_ = {{"HOME", path("home")},
                {"DIR", directory_},
                {"LC_ALL", "C"},
                {"PATH", path("bin") + ":/usr/bin:/bin"}};
}

void MillraceTest::TearDown() {
  if (!directory_.empty()) std::filesystem::remove_all(directory_);
}

void MillraceTest::become(const std::vector<std::string>& command) const {
  std::vector<std::string> assignments;
  for (const auto& [name, value] : variables_)
    assignments.push_back(name + "=" + value);
  std::vector<char*> arguments;
  std::vector<char*> environment;
  for (const auto& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  for (const auto& word : assignments)
    environment.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  environment.push_back(nullptr);
  if (::chdir(directory_.c_str()) == 0) {
    ::execve(arguments[0], arguments.data(), environment.data());
  }
  ::_exit(127);
}

// Output goes to files, so that no pipe can fill up while nobody reads it.
Outcome MillraceTest::run(std::vector<std::string> command, const std::string& input) {
  write(".in", input);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(path(".in").c_str(), O_RDONLY), STDIN_FILENO);
    ::dup2(::open(path(".out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
    ::dup2(::open(path(".err").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
    become(command);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return {exit_code_of(status), contents(path(".out")), contents(path(".err"))};
}

Outcome MillraceTest::millrace(const std::vector<std::string>& arguments,
                               const std::string& input) {
  std::vector<std::string> command = {program_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command, input);
}

Outcome MillraceTest::bash(const std::string& script, const std::string& input) {
  return run({"/bin/bash", "-c", script}, input);
}

Outcome MillraceTest::on_terminal(const std::vector<std::string>& arguments,
                                  const std::string& typed) {
  std::vector<std::string> command = {program_};
  command.insert(command.end(), arguments.begin(), arguments.end());
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) become(command);
  EXPECT_EQ(::write(terminal, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
  Outcome outcome;
  char buffer[4096];
  // Ends with EIO when the program has closed its side.
  for (ssize_t n = 0; (n = ::read(terminal, buffer, sizeof(buffer))) > 0;) {
    outcome.out.append(buffer, static_cast<std::size_t>(n));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(terminal);
  outcome.exit_code = exit_code_of(status);
  return outcome;
}

void MillraceTest::write(const std::string& name, const std::string& text) const {
  std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
  std::ofstream(path(name), std::ios::binary) << text;
}

std::string MillraceTest::read(const std::string& name) const { return contents(path(name)); }

}  // namespace millrace::cli
