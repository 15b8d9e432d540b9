#include "base/status.h"

#include <gtest/gtest.h>

#include "base/strong_type.h"

namespace millrace {
namespace {

TEST(Status, SuccessIsEmpty) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status, StatusCode::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.to_string(), "ok");
  EXPECT_TRUE(status.with_context("anything").ok());
}

TEST(Status, FailureCarriesCodeAndSentence) {
  const Status status(StatusCode::kNotFound, "no object 'a'");
  EXPECT_EQ(status.to_string(), "not_found: no object 'a'");
  const Status outer = status.with_context("reading b");
  EXPECT_EQ(outer.to_string(), "not_found: reading b: no object 'a'");
  Status copy = outer;
  copy = *&copy;
  EXPECT_EQ(copy.message(), outer.message());
}

TEST(Status, OnlyWhatARetryMayCureIsTransient) {
  EXPECT_TRUE(is_transient(StatusCode::kUnavailable));
  EXPECT_TRUE(is_transient(StatusCode::kThrottled));
  EXPECT_TRUE(is_transient(StatusCode::kCorruption));
  EXPECT_FALSE(is_transient(StatusCode::kNotFound));
  EXPECT_FALSE(is_transient(StatusCode::kConflict));
  EXPECT_FALSE(is_transient(StatusCode::kOk));
}

TEST(Status, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    EXPECT_NE(status_code_name(static_cast<StatusCode>(code)), "unknown") << code;
  }
}

Result<int> half(int value) {
  if (value % 2 != 0) return failure(StatusCode::kInvalidArgument, "odd");
  return value / 2;
}
Result<std::string> quarter(int value) {
  MR_ASSIGN_OR_RETURN(const int once, half(value));
  MR_ASSIGN_OR_RETURN(const int twice, half(once));
  return std::to_string(twice);
}
Status check(int value) {
  MR_RETURN_IF_ERROR(value < 0 ? Status(StatusCode::kInternal, "negative") : Status());
  MR_ASSIGN_OR_RETURN([[maybe_unused]] const int unused, half(value));
  return {};
}

TEST(Status, MacrosPropagateIntoResultAndStatus) {
  EXPECT_EQ(quarter(8), "2");
  EXPECT_EQ(quarter(6).error(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(check(2).ok());
  EXPECT_EQ(check(3), StatusCode::kInvalidArgument);
  EXPECT_EQ(check(-1), StatusCode::kInternal);
}

TEST(StrongType, ComparesAndHashes) {
  using Key = StrongType<std::string, struct KeyTag>;
  EXPECT_LT(Key("a"), Key("b"));
  EXPECT_EQ(std::hash<Key>{}(Key("a")), std::hash<std::string>{}("a"));
  static_assert(!std::is_convertible_v<std::string, Key>);
}

}  // namespace
}  // namespace millrace
