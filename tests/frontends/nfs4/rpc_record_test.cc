#include "frontends/nfs4/rpc_record.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

std::string fragment(std::string_view bytes, bool last) {
  const std::uint32_t mark =
      static_cast<std::uint32_t>(bytes.size()) | (last ? kRpcLastFragment : 0);
  std::string result;
  for (int shift = 24; shift >= 0; shift -= 8)
    result += static_cast<char>(mark >> shift & 0xff);
  return result + std::string(bytes);
}

// Hands the stream over in pieces of a size.
Result<std::vector<std::string>> records_of(std::string_view stream, std::size_t piece,
                                            RpcRecordLimits limits) {
  RpcRecords records(limits);
  std::vector<std::string> found;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    ByteView bytes = as_bytes(stream.substr(at, piece));
    for (;;) {
      MR_ASSIGN_OR_RETURN(const std::optional<Slice> record, records.next(bytes));
      if (!record) break;
      found.emplace_back(record->text());
    }
  }
  return found;
}

TEST(RpcRecords, AreTheSameHoweverTheyArrive) {
  const std::string stream = fragment("hello", true) + fragment("", true) + fragment("wo", false) +
                             fragment("", false) + fragment("rld", true);
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    const auto found = records_of(stream, piece, {.record_bytes_max = 5});
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(*found, (std::vector<std::string>{"hello", "", "world"})) << piece;
  }
}

TEST(RpcRecords, TooLongIsRefusedByItsMarkAlone) {
  RpcRecords records({.record_bytes_max = 8});
  ByteView mark = as_bytes(std::string_view("\x80\0\0\x09", 4));
  const auto refused = records.next(mark);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error(), StatusCode::kResourceExhausted);
  // Also when only all fragments together are too long.
  EXPECT_FALSE(
      records_of(fragment("12345", false) + fragment("6789", true), 100, {.record_bytes_max = 8})
          .has_value());
}

TEST(RpcRecords, TooManyFragmentsAreRefused) {
  std::string stream;
  for (int i = 0; i < 4; ++i)
    stream += fragment("", false);
  const RpcRecordLimits limits{.record_bytes_max = 8, .fragments_max = 4};
  EXPECT_TRUE(records_of(stream, 100, limits).has_value());
  EXPECT_FALSE(records_of(stream + fragment("", true), 100, limits).has_value());
}

TEST(RpcRecords, TellsWhetherOneIsUnderWay) {
  RpcRecords records({.record_bytes_max = 8});
  EXPECT_FALSE(records.started());
  const std::string stream = fragment("abc", true);
  ByteView first = as_bytes(stream).first(1);
  ASSERT_FALSE(records.next(first)->has_value());
  EXPECT_TRUE(records.started());
  ByteView rest = as_bytes(stream).subspan(1);
  ASSERT_TRUE(records.next(rest)->has_value());
  EXPECT_FALSE(records.started());
}

}  // namespace
}  // namespace millrace
