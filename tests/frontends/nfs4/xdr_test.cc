#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "frontends/nfs4/xdr_reader.h"
#include "frontends/nfs4/xdr_writer.h"

namespace millrace {
namespace {

std::string flat(const std::vector<XdrPiece>& pieces) {
  std::string all;
  for (const XdrPiece& piece : pieces)
    all += piece.memory.text();
  return all;
}

TEST(Xdr, ReadsWhatItWrote) {
  XdrWriter writer;
  writer.u32(7);
  writer.u64(0x0102030405060708);
  writer.boolean(true);
  writer.text("abcde");
  writer.fixed(as_bytes("xyz"));
  EXPECT_EQ(writer.size(), 4U + 8 + 4 + 4 + 8 + 4);
  const std::string bytes = flat(writer.take());

  XdrReader reader(as_bytes(bytes));
  EXPECT_EQ(reader.u32(), 7U);
  EXPECT_EQ(reader.u64(), 0x0102030405060708U);
  EXPECT_TRUE(reader.boolean());
  EXPECT_EQ(reader.text(5), "abcde");
  EXPECT_EQ(as_text(reader.fixed(3)), "xyz");
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.remaining(), 0U);
  EXPECT_EQ(bytes.substr(0, 4), std::string("\0\0\0\7", 4));
}

// Whatever is cut off, the reader stops there, and says so.
TEST(Xdr, EveryCutIsFound) {
  XdrWriter writer;
  writer.u32(1);
  writer.u64(2);
  writer.text("abcde");
  writer.u32(2);
  writer.u32(10);
  writer.u32(11);
  const std::string bytes = flat(writer.take());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    XdrReader reader(as_bytes(bytes).first(size));
    reader.u32();
    reader.u64();
    reader.opaque(5);
    for (std::uint32_t left = reader.count(2); left > 0; --left)
      reader.u32();
    EXPECT_FALSE(reader.ok()) << size;
    EXPECT_EQ(reader.status(), StatusCode::kCorruption);
    EXPECT_EQ(reader.u32(), 0U);
    EXPECT_EQ(reader.remaining(), 0U);
  }
}

TEST(Xdr, CountsAreCheckedBeforeTheyAreUsed) {
  const std::string huge("\xff\xff\xff\xff", 4);
  XdrReader opaque(as_bytes(huge));
  EXPECT_TRUE(opaque.opaque(SIZE_MAX).empty());
  EXPECT_FALSE(opaque.ok());
  XdrReader elements(as_bytes(huge));
  EXPECT_EQ(elements.count(UINT32_MAX, 1), 0U);
  EXPECT_FALSE(elements.ok());
  XdrReader limited(as_bytes(std::string_view("\0\0\0\5abcde\0\0\0", 12)));
  EXPECT_TRUE(limited.opaque(4).empty());
  EXPECT_EQ(limited.status().message(), "a field is longer than it may be, at byte 4 of 12");
}

TEST(Xdr, BooleansAndTheFirstCause) {
  XdrReader reader(as_bytes(std::string_view("\0\0\0\2", 4)));
  EXPECT_FALSE(reader.boolean());
  reader.fail("something later");
  EXPECT_EQ(reader.status().message(), "a boolean is neither 0 nor 1, at byte 4 of 4");
}

TEST(Xdr, AttachmentsStandWhereTheyWereWritten) {
  XdrWriter writer;
  writer.u32(1);
  writer.attach({.memory = Slice::copy_of("hello")});
  writer.u32(2);
  EXPECT_EQ(writer.size(), 4U + 4 + 5 + 3 + 4);
  const std::vector<XdrPiece> pieces = writer.take();
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[1].memory.text(), "hello");
  const std::string bytes = flat(pieces);
  EXPECT_EQ(bytes, std::string("\0\0\0\1\0\0\0\5hello\0\0\0\0\0\0\2", 20));
  EXPECT_EQ(writer.size(), 0U);
}

TEST(Xdr, RewindTakesBackBytesAndAttachments) {
  XdrWriter writer;
  const XdrWriter::Mark number = writer.mark();
  writer.u32(1);
  const XdrWriter::Mark mark = writer.mark();
  writer.attach({.memory = Slice::copy_of("hello")});
  writer.rewind(mark);
  EXPECT_EQ(writer.size(), 4U);
  EXPECT_FALSE(writer.has_attachments());
  writer.patch_u32(number, 9);
  EXPECT_EQ(flat(writer.take()), std::string("\0\0\0\11", 4));
}

}  // namespace
}  // namespace millrace
