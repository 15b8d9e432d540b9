#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/json.h"
#include "base/status.h"

namespace millrace {

// Reads the fields of a request's body. The first that is not as it must be becomes the status,
// kInvalidArgument with its name in it; from then on readers return empty values. So a handler
// reads all its fields and looks at the status once. Keeps a reference to the document.
// Thread-compatible.
class ControlBody {
 public:
  // `document` is an object, or null for none.
  explicit ControlBody(const Json& document) : document_(document) {}

  std::optional<std::string> text(const char* name);
  std::optional<std::uint64_t> number(const char* name);
  bool flag(const char* name);  // False when absent.
  std::vector<std::string> texts(const char* name);
  // Fields that nobody read are refused: a mistyped name must not be ignored.
  Status status() const;

 private:
  const Json* find(const char* name);
  void refuse(const char* name, const char* expected);

  const Json& document_;
  std::vector<std::string> known_;
  Status status_;
};

}  // namespace millrace
