#pragma once

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace millrace::cli {

struct Outcome {
  int exit_code = -1;
  std::string out;
  std::string err;

  // Standard output as one JSON document; a test failure when it is none.
  nlohmann::json json() const;
  nlohmann::json error_json() const;
};

// Runs the real program (MILLRACE_BIN) in a fresh directory with its own home, and no other
// environment than what the test gives.
class MillraceTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // The program with these arguments; `input` is its standard input.
  Outcome millrace(const std::vector<std::string>& arguments, const std::string& input = "");
  // A line of bash, in which `millrace` is the program. `$DIR` is the directory.
  Outcome bash(const std::string& script, const std::string& input = "");
  // The same on a terminal: standard input, output and error are one pseudo-terminal, and `typed`
  // is what somebody types there. Everything comes back in `out`.
  Outcome on_terminal(const std::vector<std::string>& arguments, const std::string& typed = "");

  // As who may use the buckets of the tests' S3 server.
  void be_known_to_s3() {
    variables_["AWS_ACCESS_KEY_ID"] = "test-access-key";
    variables_["AWS_SECRET_ACCESS_KEY"] = "test-secret-key";
  }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  void write(const std::string& name, const std::string& text) const;
  std::string read(const std::string& name) const;

  std::string directory_;
  std::string program_;
  std::map<std::string, std::string> variables_;

 private:
  Outcome run(std::vector<std::string> command, const std::string& input);
  [[noreturn]] void become(const std::vector<std::string>& command) const;
};

}  // namespace millrace::cli
