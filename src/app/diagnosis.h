#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace {

// One thing that `millrace doctor` looked at.
struct Diagnosis {
  enum class Level : std::uint8_t { kOk, kWarn, kFail };

  Level level = Level::kOk;
  std::string check;     // A stable name: "open_files".
  std::string sentence;  // What was found.
  std::string advice;    // What to do about it; empty when all is well.
};

inline std::string_view diagnosis_level_name(Diagnosis::Level level) {
  switch (level) {
    case Diagnosis::Level::kOk:
      return "ok";
    case Diagnosis::Level::kWarn:
      return "warn";
    case Diagnosis::Level::kFail:
      return "fail";
  }
  return "unknown";
}

}  // namespace millrace
