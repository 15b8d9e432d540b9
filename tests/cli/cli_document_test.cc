// Runs the examples of docs/cli.md: a line that starts with "$ " is run by bash, what follows is
// what it writes. The store's own directory is shown as "store:".
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>

#include "cli/exit_code.h"
#include "tests/cli/millrace_process.h"

namespace millrace::cli {
namespace {

struct Example {
  std::string command;
  std::string expected;
  int line = 0;
};

std::string document() {
  const char* const source = std::getenv("MILLRACE_SOURCE_DIR");
  std::ifstream file(std::string(source != nullptr ? source : ".") + "/docs/cli.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<Example> examples(const std::string& text) {
  std::vector<Example> found;
  std::istringstream lines(text);
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with("```")) {
      inside = line == "```console";
    } else if (inside && line.starts_with("$ ")) {
      found.push_back({line.substr(2), "", number});
    } else if (inside && !found.empty()) {
      found.back().expected += line + "\n";
    }
  }
  return found;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

using CliDocument = MillraceTest;

TEST_F(CliDocument, ExamplesDoWhatThePageSays) {
  const auto all = examples(document());
  ASSERT_GE(all.size(), 10U);
  for (const Example& example : all) {
    const Outcome outcome = bash(example.command);
    std::string shown = outcome.out;
    // Remarks are left out on the page, failures are not.
    if (outcome.exit_code != 0) {
      shown += outcome.err + "[exit " + std::to_string(outcome.exit_code) + "]\n";
    }
    shown = replaced(shown, "file://" + path("home/.local/share/millrace/store/"), "store:");
    EXPECT_EQ(shown, example.expected) << "docs/cli.md:" << example.line << ": " << example.command;
  }
}

TEST_F(CliDocument, ListsEveryExitCode) {
  const std::string text = document();
  for (const ExitCode& row : all_exit_codes()) {
    const std::string line = "| " + std::to_string(row.number) + " | " +
                             replaced(std::string(row.meaning), "|", "\\|") + " |";
    EXPECT_TRUE(text.contains(line)) << line;
  }
}

}  // namespace
}  // namespace millrace::cli
