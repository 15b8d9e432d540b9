#include "objectstore/object_store.h"

#include <gtest/gtest.h>

namespace millrace {

TEST(ValidateKey, AcceptsWhatStoresTake) {
  for (const char* key :
       {"a", "a/b//c/", "\xC3\xA9", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF", "\x01\x7F"}) {
    EXPECT_TRUE(validate_key(ObjectKey(key)).ok()) << key;
  }
  EXPECT_TRUE(validate_key(ObjectKey(std::string(1024, 'k'))).ok());
}

TEST(ValidateKey, RefusesAndSaysWhy) {
  struct Case {
    std::string key;
    const char* reason;
  };
  for (const Case& c :
       {Case{"", "empty"}, Case{std::string(1025, 'k'), "at most 1024 bytes"},
        Case{std::string("a\0", 2), "NUL at byte 1"}, Case{"ab\xFF", "UTF-8 at byte 2"},
        Case{"\xC0\x80", "UTF-8"}, Case{"\xE0\x80\x80", "UTF-8"}, Case{"\xED\xA0\x80", "UTF-8"},
        Case{"\xF4\x90\x80\x80", "UTF-8"}, Case{"\xE2\x82", "UTF-8"}, Case{"\x80", "UTF-8"}}) {
    const Status status = validate_key(ObjectKey(c.key));
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find(c.reason), std::string::npos) << status.message();
  }
}

TEST(ValidateMetadata, HoldsItsRules) {
  EXPECT_TRUE(validate_metadata({}).ok());
  EXPECT_TRUE(validate_metadata({{"a-1", "any ~ printable"}, {"empty", ""}}).ok());
  EXPECT_TRUE(validate_metadata({{"n", std::string(2047, 'v')}}).ok());
  for (const ObjectMetadata& bad :
       {ObjectMetadata{{"n", std::string(2048, 'v')}}, ObjectMetadata{{"A", ""}},
        ObjectMetadata{{"", ""}}, ObjectMetadata{{"a_b", ""}}, ObjectMetadata{{"a", "\n"}},
        ObjectMetadata{{"a", "\x7F"}}, ObjectMetadata{{"a", " v"}}, ObjectMetadata{{"a", "v "}}}) {
    EXPECT_EQ(validate_metadata(bad).code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace millrace
