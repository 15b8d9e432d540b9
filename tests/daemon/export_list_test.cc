#include "daemon/export_list.h"

#include <cerrno>

#include <gmock/gmock.h>

#include "platform/faulty_disk.h"
#include "platform/memory_disk.h"
#include "platform/small_file.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

class ExportListTest : public ::testing::Test {
 protected:
  ExportListTest() { EXPECT_TRUE(disk_.make_directories("/nfs").ok()); }

  Status open(std::string_view settings = "/datasets",
              RpcTransport offered = RpcTransport::kPlain) {
    list_.reset();
    MR_ASSIGN_OR_RETURN(list_, ExportList::open(disk_, "/nfs/exports",
                                                parse_nfs_exports(settings).value(), offered));
    return {};
  }
  static NfsExport exported(std::string_view text) { return NfsExport::parse(text).value(); }
  std::vector<std::string> texts() {
    std::vector<std::string> result;
    const auto table = list_->exports().table();
    for (const NfsExport& e : table->exports())
      result.push_back(e.to_string());
    return result;
  }

  MemoryDisk disk_;
  std::unique_ptr<ExportList> list_;
};

TEST_F(ExportListTest, WhatWasAddedIsThereAfterAPowerLoss) {
  ASSERT_TRUE(open().ok());
  EXPECT_TRUE(list_->add(exported("/a=/datasets/a,clients=10.0.0.0/8,squash=all")).ok());
  EXPECT_TRUE(list_->add(exported("/b=/datasets/b")).ok());
  EXPECT_TRUE(list_->remove("/b").ok());
  disk_.simulate_power_loss(1);
  ASSERT_TRUE(open().ok());
  EXPECT_THAT(texts(), ElementsAre("/a=/datasets/a,clients=10.0.0.0/8,squash=all", "/datasets"));
  EXPECT_FALSE(list_->is_setting("/a"));
  EXPECT_TRUE(list_->is_setting("/datasets"));
}

TEST_F(ExportListTest, WhatNobodyCouldUseIsRefused) {
  EXPECT_EQ(open("/a,sec=tls"), StatusCode::kInvalidArgument);
  EXPECT_EQ(open("/a,sec=mtls", RpcTransport::kTls), StatusCode::kInvalidArgument);
  ASSERT_TRUE(open("/a,sec=tls", RpcTransport::kTls).ok());
  EXPECT_EQ(list_->add(exported("/b,sec=mtls")), StatusCode::kInvalidArgument);
  EXPECT_TRUE(list_->add(exported("/b,sec=tls")).ok());
  // TLS is switched off: what was added for it is left out, and comes back with it.
  ASSERT_TRUE(open().ok());
  EXPECT_THAT(texts(), ElementsAre("/datasets"));
  ASSERT_TRUE(open("none", RpcTransport::kMutualTls).ok());
  EXPECT_THAT(texts(), ElementsAre("/b,sec=sys+tls"));
}

TEST_F(ExportListTest, TheSettingsCountFirst) {
  ASSERT_TRUE(open().ok());
  EXPECT_EQ(list_->remove("/datasets"), StatusCode::kConflict);
  EXPECT_EQ(list_->remove("/nothing"), StatusCode::kNotFound);
  EXPECT_EQ(list_->add(exported("/datasets")), StatusCode::kConflict);
  EXPECT_TRUE(list_->add(exported("/a/b=/datasets/b")).ok());
  // A setting that holds it comes later: what was added gives way, and comes back without it.
  ASSERT_TRUE(open("/a").ok());
  EXPECT_THAT(texts(), ElementsAre("/a"));
  ASSERT_TRUE(open("none").ok());
  EXPECT_THAT(texts(), ElementsAre("/a/b=/datasets/b"));
}

TEST_F(ExportListTest, DamageIsNotServed) {
  ASSERT_TRUE(open().ok());
  ASSERT_TRUE(list_->add(exported("/a")).ok());
  const std::string good = read_small_file(disk_, "/nfs/exports", kMiB).value();
  const auto opened_with = [&](std::string_view text) {
    EXPECT_TRUE(replace_small_file(disk_, "/nfs/exports", text).ok());
    return open();
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    const Status status = opened_with(bad);
    EXPECT_TRUE(status == StatusCode::kCorruption || status == StatusCode::kUnsupported) << i;
  }
  EXPECT_EQ(opened_with(good.substr(0, good.size() - 1)), StatusCode::kCorruption);
  EXPECT_EQ(opened_with(""), StatusCode::kCorruption);
  EXPECT_EQ(opened_with("millrace-exports 2\n"), StatusCode::kUnsupported);
  EXPECT_TRUE(opened_with(good).ok());
}

TEST_F(ExportListTest, WhatCannotBeKeptIsNotServed) {
  FaultyDisk faulty(disk_);
  const auto list =
      ExportList::open(faulty, "/nfs/exports", parse_nfs_exports("/datasets").value()).value();
  ASSERT_TRUE(list->add(exported("/a")).ok());
  faulty.set_fault(fail_nth_call(0, EIO, true));
  EXPECT_EQ(list->add(exported("/b")), StatusCode::kIoError);
  EXPECT_EQ(list->remove("/a"), StatusCode::kIoError);
  EXPECT_NE(list->exports().table()->find("/a"), nullptr);
  EXPECT_EQ(list->exports().table()->find("/b"), nullptr);
}

}  // namespace
}  // namespace millrace
