#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/frontends/nfs4/nfs_client_session.h"
#include "tests/frontends/nfs4/nfs_world.h"

namespace millrace {
namespace {

using millrace::testing::NfsAnswer;
using millrace::testing::NfsCall;
using millrace::testing::NfsConnection;
using millrace::testing::write_bitmap;
using millrace::testing::write_stateid;
using Session = millrace::testing::NfsSession;

constexpr std::uint32_t kFifoType = 7;

// What is refused on a read-only server, and what is told before that.
class NfsMutation : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.tree.write("file", "hello");
    world_.tree.write("d/inner", "x");
    world_.tree.link("link", "file");
    ASSERT_TRUE(world_.publish("a@v1"));
    world_.serve();
    connection_ = std::make_unique<NfsConnection>(world_.port());
    millrace::testing::NfsSessionOptions options;
    options.minor_version = 2;
    session_ = std::make_unique<Session>(*connection_, options);
    top_ = session_->lookup("/datasets/a/v1");
    file_ = session_->lookup("/datasets/a/v1/file");
    link_ = session_->lookup("/datasets/a/v1/link");
  }

  using Arguments = std::function<void(XdrWriter&)>;
  // Of the operation at a handle, with another one saved when it is given.
  NfsStatus at(const std::string& handle, NfsOperation operation, const Arguments& arguments,
               const std::string& saved = {}) {
    NfsCall call = session_->call();
    if (!saved.empty()) call.put_fh(saved).save_fh();
    call.put_fh(handle);
    arguments(call.op(operation));
    return session_->run(call).status();
  }
  NfsStatus create(const std::string& handle, std::uint32_t type, std::string_view name,
                   std::initializer_list<NfsAttribute> attributes = {NfsAttribute::kMode}) {
    return at(handle, NfsOperation::kCreate, [&](XdrWriter& writer) {
      writer.u32(type);
      writer.text(name);
      write_bitmap(writer, attributes);
      writer.opaque({});
    });
  }
  NfsStatus rename(const std::string& handle, const std::string& saved, std::string_view from,
                   std::string_view to) {
    return at(
        handle, NfsOperation::kRename,
        [&](XdrWriter& writer) {
          writer.text(from);
          writer.text(to);
        },
        saved);
  }
  NfsStatus set_attributes(std::initializer_list<NfsAttribute> attributes) {
    return at(file_, NfsOperation::kSetAttr, [&](XdrWriter& writer) {
      write_stateid(writer, {});
      write_bitmap(writer, attributes);
      writer.opaque({});
    });
  }
  static void name(XdrWriter& writer, std::string_view text) { writer.text(text); }
  static void write_arguments(XdrWriter& writer) {
    write_stateid(writer, {});
    writer.u64(0);
    writer.u32(2);
    writer.text("data");
  }

  NfsWorld world_;
  std::unique_ptr<NfsConnection> connection_;
  std::unique_ptr<Session> session_;
  std::string top_;
  std::string file_;
  std::string link_;
};

TEST_F(NfsMutation, WhatCouldBeDoneElsewhereIsRefusedAsReadOnly) {
  using enum NfsOperation;
  EXPECT_EQ(create(top_, kFifoType, "new"), NfsStatus::kRofs);
  EXPECT_EQ(rename(top_, top_, "file", "new"), NfsStatus::kRofs);
  EXPECT_EQ(set_attributes({NfsAttribute::kMode, NfsAttribute::kSize}), NfsStatus::kRofs);
  EXPECT_EQ(at(top_, kRemove, [](XdrWriter& w) { name(w, "file"); }), NfsStatus::kRofs);
  EXPECT_EQ(at(top_, kLink, [](XdrWriter& w) { name(w, "new"); }, file_), NfsStatus::kRofs);
  EXPECT_EQ(at(file_, kWrite, write_arguments), NfsStatus::kRofs);
  EXPECT_EQ(at(file_, kCommit,
               [](XdrWriter& w) {
                 w.u64(0);
                 w.u32(0);
               }),
            NfsStatus::kRofs);
  for (const NfsOperation operation :
       {kAllocate, kCopy, kDeallocate, kWriteSame, kClone, kSetXattr, kRemoveXattr}) {
    EXPECT_EQ(at(file_, operation, [](XdrWriter&) {}), NfsStatus::kRofs);
  }
}

TEST_F(NfsMutation, NamesAndPlacesThatAreWrongAreSaidFirst) {
  using enum NfsOperation;
  EXPECT_EQ(create(file_, kFifoType, "new"), NfsStatus::kNotDir);
  EXPECT_EQ(create(top_, kFifoType, ""), NfsStatus::kInval);
  EXPECT_EQ(create(top_, kFifoType, "."), NfsStatus::kBadName);
  EXPECT_EQ(create(top_, kFifoType, std::string(300, 'a')), NfsStatus::kNameTooLong);
  EXPECT_EQ(create(top_, 1, "new"), NfsStatus::kBadType);
  EXPECT_EQ(create(top_, 99, "new"), NfsStatus::kBadType);
  EXPECT_EQ(rename(top_, file_, "file", "new"), NfsStatus::kNotDir);
  EXPECT_EQ(rename(link_, top_, "file", "new"), NfsStatus::kSymlink);
  EXPECT_EQ(rename(top_, {}, "file", "new"), NfsStatus::kNoFileHandle);
  EXPECT_EQ(rename(top_, top_, "absent", "new"), NfsStatus::kNoEnt);
  EXPECT_EQ(rename(top_, top_, "file", ""), NfsStatus::kInval);
  EXPECT_EQ(at(top_, kRemove, [](XdrWriter& w) { name(w, "absent"); }), NfsStatus::kNoEnt);
  EXPECT_EQ(at(top_, kLink, [](XdrWriter& w) { name(w, "new"); }), NfsStatus::kNoFileHandle);
  EXPECT_EQ(at(top_, kLink, [](XdrWriter& w) { name(w, "new"); }, top_), NfsStatus::kIsDir);
  EXPECT_EQ(at(top_, kWrite, write_arguments), NfsStatus::kIsDir);
  EXPECT_EQ(at(link_, kWrite, write_arguments), NfsStatus::kSymlink);
}

TEST_F(NfsMutation, ArgumentsThatAreCutAreBadXdr) {
  using enum NfsOperation;
  for (const NfsOperation operation : {kCommit, kCreate, kLink, kRemove, kRename, kSetAttr, kWrite})
    EXPECT_EQ(at(top_, operation, [](XdrWriter&) {}), NfsStatus::kBadXdr);
}

TEST_F(NfsMutation, AttributesThatCannotBeSetAreToldFromThoseThatAreUnknown) {
  EXPECT_EQ(set_attributes({NfsAttribute::kFsid}), NfsStatus::kInval);
  EXPECT_EQ(set_attributes({NfsAttribute::kMode, NfsAttribute::kAcl}), NfsStatus::kAttrNotSupp);
  EXPECT_EQ(set_attributes({NfsAttribute::kTimeModifySet}), NfsStatus::kAttrNotSupp);
  EXPECT_EQ(create(top_, kFifoType, "new", {NfsAttribute::kLeaseTime}), NfsStatus::kInval);
  NfsCall call = session_->call();
  call.put_fh(top_);
  XdrWriter& writer = call.op(NfsOperation::kOpen);
  for (const std::uint32_t word : {0U, kShareAccessRead, kShareDenyNone, 0U, 0U})
    writer.u32(word);
  writer.text("owner");
  writer.u32(1);  // Create,
  writer.u32(0);  // unchecked.
  write_bitmap(writer, {NfsAttribute::kChange});
  writer.opaque({});
  writer.u32(0);  // By name.
  writer.text("new");
  EXPECT_EQ(session_->run(call).status(), NfsStatus::kInval);
}

TEST_F(NfsMutation, AttributesFarBeyondAnyAreLeftOut) {
  NfsCall call = session_->call();
  call.put_fh(file_);
  XdrWriter& writer = call.op(NfsOperation::kGetAttr);
  writer.u32(32);
  for (int i = 0; i < 32; ++i)
    writer.u32(i == 31 ? 0x100 : 0);
  NfsAnswer answer = session_->run(call);
  answer.good(NfsOperation::kPutFh);
  EXPECT_TRUE(millrace::testing::read_attributes(answer.good(NfsOperation::kGetAttr)).mask.empty());
}

TEST_F(NfsMutation, TheParentOfASymlinkIsRefusedByEachVersionInItsWay) {
  NfsCall call = session_->call();
  call.put_fh(link_).lookup_parent();
  EXPECT_EQ(session_->run(call).status(), NfsStatus::kSymlink);
  NfsCall old(0);
  old.put_fh(link_).lookup_parent();
  EXPECT_EQ(connection_->run(old).status(), NfsStatus::kNotDir);
}

// Whether a client may claim at all is said before what it claims is looked at.
TEST_F(NfsMutation, AClaimThatComesTooLateIsSaidBeforeWhatItIsFor) {
  NfsCall call = session_->call();
  call.put_fh(top_);
  XdrWriter& writer = call.op(NfsOperation::kOpen);
  for (const std::uint32_t word : {0U, kShareAccessRead, kShareDenyNone, 0U, 0U})
    writer.u32(word);
  writer.text("owner");
  writer.u32(0);  // No creation.
  writer.enumeration(NfsOpenClaim::kPrevious);
  writer.enumeration(NfsDelegation::kNone);
  EXPECT_EQ(session_->run(call).status(), NfsStatus::kNoGrace);
}

}  // namespace
}  // namespace millrace
