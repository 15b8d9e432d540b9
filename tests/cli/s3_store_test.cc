// The store commands against an S3 server: what the file store cannot show.
#include <gmock/gmock.h>

#include "tests/cli/millrace_process.h"
#include "tests/servers/strict_s3_server.h"

namespace millrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class S3StoreCommands : public MillraceTest {
 protected:
  void SetUp() override {
    MillraceTest::SetUp();
    if (IsSkipped()) return;
    be_known_to_s3();
    variables_["MILLRACE_STORE"] = url("pre");
  }
  std::string url(const std::string& key) const {
    return "s3://test-bucket/" + key + "?endpoint=" + server_.url();
  }

  millrace::testing::StrictS3Server server_;
};

TEST_F(S3StoreCommands, BytesGoUpAroundAndDown) {
  std::string big(40'000'000, '\0');
  for (std::size_t i = 0; i < big.size(); ++i)
    big[i] = static_cast<char>(i * 7 + i / 255);
  write("big", big);
  const Outcome up = millrace({"store", "cp", "big", "store:dir/"});
  ASSERT_EQ(up.exit_code, 0) << up.err;
  EXPECT_TRUE(server_.get_object("test-bucket", "pre/dir/big") == big);
  // The bucket of --store by its URL, without repeating the endpoint.
  EXPECT_EQ(millrace({"store", "ls", "-r", "s3://test-bucket"}).out, "pre/dir/big\n");
  EXPECT_EQ(millrace({"store", "ls"}).out, "dir/\n");
  server_.clear_requests();
  EXPECT_EQ(millrace({"store", "cp", "store:dir/big", "store:copy"}).exit_code, 0);
  EXPECT_EQ(server_.count([](const auto& r) { return r.method == "GET"; }), 0U)
      << "a copy inside the store must not bring the bytes here";
  server_.clear_requests();
  EXPECT_TRUE(millrace({"store", "cat", "copy"}).out == big);
  EXPECT_EQ(server_.count([](const auto& r) { return r.method == "GET" && !r.range.empty(); }), 5U)
      << "40 MB in ranges of 8 MiB";
  EXPECT_EQ(millrace({"store", "cp", "-n", "big", "store:copy"}).exit_code, 6);
  EXPECT_EQ(server_.open_upload_count("test-bucket"), 0U);
  EXPECT_EQ(millrace({"store", "rm", "-r", "--yes", "store:"}).exit_code, 0);
  EXPECT_EQ(server_.object_count("test-bucket"), 0U);
}

TEST_F(S3StoreCommands, AnInterruptedUploadLeavesNothing) {
  const Outcome interrupted = bash(
      "set -m; mkfifo f; exec 3<>f; millrace store cp - store:x <f & p=$!;"
      "timeout 60 head -c 30000000 /dev/zero >&3; kill -INT $p; wait $p; echo $?");
  EXPECT_EQ(interrupted.out, "130\n") << interrupted.err;
  EXPECT_EQ(server_.open_upload_count("test-bucket"), 0U);
  EXPECT_EQ(server_.object_count("test-bucket"), 0U);
}

TEST_F(S3StoreCommands, AVersionMayLieInOtherBuckets) {
  millrace::testing::StrictS3Server far({.buckets = {"data"}});
  far.put_object("data", "raw/set/a.txt", "far");
  server_.put_object("test-bucket", "raw/a.txt", "beside the registry");
  const std::string url = "s3://data/raw/set/?endpoint=" + far.url();
  const Outcome registered = millrace({"register", url, "far@v1"});
  ASSERT_EQ(registered.exit_code, 0) << registered.err;
  const Outcome beside = millrace({"register", "s3://test-bucket/raw/", "beside@v1", "--hash"});
  ASSERT_EQ(beside.exit_code, 0) << beside.err;
  EXPECT_EQ(millrace({"version", "extract", "far@v1", "one"}).exit_code, 0);
  EXPECT_EQ(read("one/a.txt"), "far");
  EXPECT_EQ(millrace({"version", "extract", "beside@v1", "two"}).exit_code, 0);
  EXPECT_EQ(read("two/a.txt"), "beside the registry");
  EXPECT_THAT(millrace({"registry", "export"}).out,
              AllOf(HasSubstr("s3://data/raw/set?endpoint="), HasSubstr("s3://test-bucket/raw")));
  // Promoting from there is a copy through this machine.
  EXPECT_EQ(millrace({"promote", url, "own@v1"}).exit_code, 0);
  far.put_object("data", "raw/set/a.txt", "changed");
  EXPECT_EQ(millrace({"version", "verify", "own@v1"}).exit_code, 0);
  const Outcome changed = millrace({"version", "verify", "far@v1"});
  EXPECT_EQ(changed.exit_code, 8);
  EXPECT_THAT(changed.out + changed.err,
              AllOf(HasSubstr("far@v1"), HasSubstr("raw/set/a.txt"), HasSubstr("s3://data")));
  const Outcome parameters =
      millrace({"register", "s3://test-bucket/raw/?endpoint=" + server_.url() + "&region=x", "a@v1",
                "--dry-run"});
  EXPECT_EQ(parameters.exit_code, 2);
  EXPECT_THAT(parameters.err, HasSubstr("without parameters"));
}

TEST_F(S3StoreCommands, WhatTheStoreRefusesIsOneSentence) {
  const auto fails = [&](const std::string& place, int exit_code, const std::string& what) {
    const Outcome outcome = millrace({"store", "stat", place});
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(what));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  fails("none", 3, "none");
  fails("s3://no-such-bucket/x?endpoint=" + server_.url(), 3, "no-such-bucket");
  variables_["AWS_SECRET_ACCESS_KEY"] = "wrong";
  fails("none", 4, "s3://test-bucket");
  variables_.erase("AWS_SECRET_ACCESS_KEY");
  variables_.erase("AWS_ACCESS_KEY_ID");
  variables_["AWS_EC2_METADATA_DISABLED"] = "true";
  fails("none", 4, "set AWS_ACCESS_KEY_ID");
}

TEST_F(S3StoreCommands, DoctorNamesTheCredentialsAndProbesTheStore) {
  const Outcome healthy = millrace({"doctor"});
  EXPECT_EQ(healthy.exit_code, 0) << healthy.out << healthy.err;
  EXPECT_THAT(healthy.out, AllOf(HasSubstr("from environment"), HasSubstr("create_if_absent")));
  EXPECT_EQ(healthy.out.find("test-secret-key"), std::string::npos);
  EXPECT_EQ(server_.object_count("test-bucket"), 0U);
  variables_["MILLRACE_STORE"] = "s3://gone-bucket?endpoint=" + server_.url();
  const Outcome gone = millrace({"doctor"});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.out, AllOf(HasSubstr("fail  store "), HasSubstr("create it first")));
}

}  // namespace
}  // namespace millrace::cli
