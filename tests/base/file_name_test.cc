#include "base/file_name.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(FileNameTest, AnyBytesButThoseWithAMeaning) {
  for (const std::string& name : {std::string("a"), std::string("..."), std::string(" "),
                                  std::string("\xFF\n"), std::string(kFileNameBytesMax, 'n')})
    EXPECT_EQ(file_name_fault(name), std::nullopt) << name;
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("/"),
        std::string("a\0b", 3), std::string(kFileNameBytesMax + 1, 'n')})
    EXPECT_NE(file_name_fault(name), std::nullopt) << name;
}

}  // namespace
}  // namespace millrace
