// The strict S3 server, asked by Amazon's own client.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/servers/strict_s3_server.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;

// Runs each line of stdin as one command. One process for all of them, because starting Python
// and loading the CLI takes far longer than what the commands do.
constexpr const char* kDriver = R"(
import shlex, sys
try:
    from awscli.clidriver import create_clidriver
except ImportError as error:
    sys.exit('The AWS CLI is not installed (%s): run `make setup`.' % error)
driver = create_clidriver()
for line in sys.stdin:
    code = driver.main(shlex.split(line))
    if code:
        sys.exit('exit code %d from: aws %s' % (code, line))
)";

class AwsCliTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  // Runs "aws s3 ..." for each line against the server, with nothing taken from the machine's
  // configuration. True when all succeeded; output_ has what they said.
  bool s3(const std::vector<std::string>& lines) {
    std::string input;
    for (const std::string& line : lines) {
      input += fmt::format("--endpoint-url {} s3 {}\n", server_.url(), line);
    }
    write_file("driver.py", kDriver);
    write_file("commands", input);
    // Debian's Python by its path, because that is where `make setup` installs the CLI.
    const std::string command = fmt::format(
        "exec 2>&1; cd {} && env -i PATH=/usr/bin:/bin HOME={} AWS_ACCESS_KEY_ID=test-access-key "
        "AWS_SECRET_ACCESS_KEY=test-secret-key AWS_DEFAULT_REGION=us-east-1 AWS_MAX_ATTEMPTS=1 "
        "AWS_EC2_METADATA_DISABLED=true /usr/bin/python3 driver.py < commands",
        folder_.string(), folder_.string());
    output_.clear();
    FILE* pipe = ::popen(command.c_str(), "r");
    char buffer[4096];
    size_t got = 0;
    while ((got = ::fread(buffer, 1, sizeof buffer, pipe)) > 0) {
      output_.append(buffer, got);
    }
    return ::pclose(pipe) == 0;
  }

  void write_file(const std::string& name, const std::string& content) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  std::string read_file(const std::string& name) {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  StrictS3Server server_;
  const fs::path folder_ = fs::temp_directory_path() / fmt::format("millrace-aws-{}", ::getpid());
  std::string output_;
};

std::string random_bytes(size_t size) {
  std::mt19937_64 random(1);
  std::string bytes(size, '\0');
  for (size_t i = 0; i + 8 <= size; i += 8) {
    const uint64_t word = random();
    bytes.replace(i, 8, reinterpret_cast<const char*>(&word), 8);
  }
  return bytes;
}

TEST_F(AwsCliTest, CopiesSynchronisesListsAndRemoves) {
  const std::string content = random_bytes(20 * 1024 * 1024);
  write_file("large", content);
  for (const char* name : {"tree/a", "tree/d/b c+&d", "tree/d/e=f%20g"}) {
    write_file(name, name);
  }
  ASSERT_TRUE(s3({
      "cp --no-progress large s3://test-bucket/x/large",
      // By UploadPartCopy with ranges. REPLACE keeps the CLI from asking for tags.
      "cp --metadata-directive REPLACE s3://test-bucket/x/large s3://test-bucket/x/copy",
      "cp --no-progress s3://test-bucket/x/copy back",
      "sync tree s3://test-bucket/t",
      "ls --recursive s3://test-bucket/t/",
      "rm --recursive s3://test-bucket/t",
  })) << output_;

  EXPECT_TRUE(server_.get_object("test-bucket", "x/large") == content);
  EXPECT_TRUE(server_.get_object("test-bucket", "x/copy") == content);
  EXPECT_TRUE(read_file("back") == content);
  EXPECT_NE(output_.find("t/d/b c+&d"), std::string::npos) << output_;
  EXPECT_NE(output_.find("t/d/e=f%20g"), std::string::npos) << output_;
  EXPECT_EQ(server_.object_count("test-bucket"), 2u);
  EXPECT_EQ(server_.open_upload_count("test-bucket"), 0u);
  const auto sent = [&](const char* header, const char* parameter) {
    return server_.count([&](const S3RequestRecord& r) {
      return r.headers.has(header) && (!parameter || r.has_query(parameter));
    });
  };
  EXPECT_EQ(sent("Content-Length", "partNumber"), 6u);  // Three of 8 MiB, and their copies.
  EXPECT_EQ(sent("x-amz-copy-source-range", "partNumber"), 3u);
  EXPECT_EQ(sent("Range", nullptr), 3u);
  EXPECT_EQ(server_.count([](const S3RequestRecord& r) { return r.status >= 400; }), 0u);
}

}  // namespace
}  // namespace millrace::testing
