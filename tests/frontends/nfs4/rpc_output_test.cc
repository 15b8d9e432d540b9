#include "frontends/nfs4/rpc_output.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "cache/complete_object.h"
#include "platform/file.h"
#include "tests/dataset/publish_world.h"

namespace millrace {
namespace {

// A file that claims more than it has.
class ShortObject final : public CompleteObject {
 public:
  ShortObject(std::shared_ptr<const CompleteObject> file, std::uint64_t claimed)
      : file_(std::move(file)), claimed_(claimed) {}
  int descriptor() const override { return file_->descriptor(); }
  std::uint64_t size() const override { return claimed_; }

 private:
  const std::shared_ptr<const CompleteObject> file_;
  const std::uint64_t claimed_;
};

class RpcOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours_ = File::adopt(ends[0], "our end");
    theirs_ = File::adopt(ends[1], "their end");
    // As little as the kernel allows, so that nothing large goes at once.
    const int small = 1;
    ASSERT_EQ(::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
  }
  static XdrPiece memory(std::string text) {
    return {.memory = Slice::from_string(std::move(text))};
  }
  static XdrPiece file(const std::string& content, ByteRange range) {
    auto whole = MemoryCompleteObject::make(Slice::copy_of(content));
    EXPECT_TRUE(whole) << whole.error().to_string();
    return {.memory = {}, .file = *std::move(whole), .range = range};
  }
  void push(XdrPiece piece) {
    std::vector<XdrPiece> pieces;
    pieces.push_back(std::move(piece));
    output_.push(std::move(pieces));
  }
  RpcOutput::Outcome send() { return output_.send(ours_.descriptor()); }
  // At most so much of what has arrived.
  std::string take(std::size_t bytes_max) {
    std::string bytes(bytes_max, '\0');
    const ssize_t got = ::recv(theirs_.descriptor(), bytes.data(), bytes.size(), 0);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }
  // Sends and takes in turn, `step` bytes at a time, until all is sent.
  std::string drain(std::size_t step) {
    std::string all;
    RpcOutput::Outcome outcome = RpcOutput::Outcome::kBlocked;
    while (outcome == RpcOutput::Outcome::kBlocked) {
      outcome = send();
      all += take(step);
    }
    EXPECT_EQ(outcome, RpcOutput::Outcome::kDone);
    for (std::string rest = take(step); !rest.empty(); rest = take(step))
      all += rest;
    return all;
  }

  File ours_;
  File theirs_;
  RpcOutput output_;
};

TEST_F(RpcOutputTest, MemoryAndFilesGoOutInTheirOrderInWhateverPieces) {
  const std::string content = publish_bytes(300'000, 1);
  for (const std::size_t step : {1000UL, 4096UL, 100'000UL}) {
    std::string expected;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const std::string head = publish_bytes(100 + i, i + 2);
      const ByteRange range{1000 * i + 1, 70'000 + i};
      const std::string tail = publish_bytes(20'000, i + 9);
      std::vector<XdrPiece> record;
      record.push_back(memory(head));
      record.push_back(file(content, range));
      record.push_back(memory(tail));
      output_.push(std::move(record));
      expected += head + content.substr(range.offset, range.length) + tail;
    }
    EXPECT_EQ(drain(step), expected) << step;
    EXPECT_TRUE(output_.empty());
    EXPECT_EQ(output_.memory_bytes(), 0U);
  }
}

TEST_F(RpcOutputTest, MoreAnswersThanOneCallTakes) {
  std::string expected;
  for (int i = 0; i < 500; ++i) {
    push(memory(std::to_string(i)));
    expected += std::to_string(i);
  }
  EXPECT_EQ(drain(512), expected);
}

TEST_F(RpcOutputTest, WhoTakesNothingIsSeen) {
  push(memory(std::string(1 << 20, 'x')));
  EXPECT_EQ(output_.memory_bytes(), 1U << 20);
  EXPECT_EQ(send(), RpcOutput::Outcome::kBlocked);
  EXPECT_TRUE(output_.progressed()) << "the socket's own memory took some";
  const std::uint64_t left = output_.memory_bytes();
  EXPECT_LT(left, 1U << 20);
  EXPECT_EQ(send(), RpcOutput::Outcome::kBlocked);
  EXPECT_FALSE(output_.progressed());
  EXPECT_EQ(output_.memory_bytes(), left);
  EXPECT_FALSE(take(1 << 20).empty());
  send();
  EXPECT_TRUE(output_.progressed());
}

TEST_F(RpcOutputTest, FilesTakeNoMemory) {
  push(file(std::string(100'000, 'x'), {0, 100'000}));
  EXPECT_EQ(output_.memory_bytes(), 0U);
  EXPECT_EQ(drain(8192), std::string(100'000, 'x'));
}

TEST_F(RpcOutputTest, EmptyPiecesAreNone) {
  push(memory(""));
  EXPECT_TRUE(output_.empty());
  EXPECT_EQ(send(), RpcOutput::Outcome::kDone);
}

TEST_F(RpcOutputTest, AFileThatIsShorterThanItsAnswerEndsTheConnection) {
  XdrPiece piece = file("short", {0, 5});
  piece.file = std::make_shared<ShortObject>(piece.file, 100);
  piece.range = {0, 100};
  push(std::move(piece));
  EXPECT_EQ(send(), RpcOutput::Outcome::kBroken) << "what follows would be taken for its bytes";
}

TEST_F(RpcOutputTest, AClientThatIsGoneIsSeen) {
  theirs_ = File();
  push(memory("anybody?"));
  EXPECT_EQ(send(), RpcOutput::Outcome::kBroken);
}

TEST(RpcRecordEnds, AMarkTellsTheLengthWithAttachments) {
  XdrWriter writer = begin_rpc_record();
  writer.u32(7);
  writer.attach({.memory = Slice::copy_of("abcde")});
  const std::vector<XdrPiece> pieces = end_rpc_record(writer);
  std::string all;
  for (const XdrPiece& piece : pieces)
    all += piece.memory.text();
  EXPECT_EQ(all, std::string("\x80\0\0\x10"
                             "\0\0\0\x07"
                             "\0\0\0\x05"
                             "abcde\0\0\0",
                             20));
}

}  // namespace
}  // namespace millrace
