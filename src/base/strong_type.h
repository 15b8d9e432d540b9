#pragma once

#include <compare>
#include <functional>
#include <string>
#include <utility>

namespace millrace {

// A value that cannot be swapped with another of the same representation:
//
//   using ObjectKey = StrongType<std::string, struct ObjectKeyTag>;
//
// Construction is explicit, access is by value().
template <class T, class Tag>
class StrongType {
 public:
  StrongType() = default;
  explicit StrongType(T value) : value_(std::move(value)) {}

  const T& value() const { return value_; }

  auto operator<=>(const StrongType&) const = default;

 private:
  T value_{};
};

}  // namespace millrace

template <class T, class Tag>
struct std::hash<millrace::StrongType<T, Tag>> {
  std::size_t operator()(const millrace::StrongType<T, Tag>& v) const {
    return std::hash<T>{}(v.value());
  }
};
