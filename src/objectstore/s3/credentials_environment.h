#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::s3 {

// Named settings, as a process has them: the seam to getenv(), so that tests never touch the
// environment of their own process. Cheap enough to copy at start-up; safe from any thread if the
// look-up is.
class Environment {
 public:
  using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

  explicit Environment(Lookup lookup) : lookup_(std::move(lookup)) {}
  // The process's own. Its variables must not be changed while other threads run.
  static Environment process();

  // Empty values count as unset, as in every AWS SDK: that is how a shell script clears one.
  std::optional<std::string> get(std::string_view name) const;
  std::string get_or(std::string_view name, std::string_view otherwise) const;
  // True for "true", in any case.
  bool is_true(std::string_view name) const;

 private:
  Lookup lookup_;
};

}  // namespace millrace::s3
