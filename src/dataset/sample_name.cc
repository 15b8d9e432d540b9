#include "dataset/sample_name.h"

#include "base/ascii.h"

namespace millrace {

std::optional<SampleName> sample_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t name = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = path.find('.', name);
  if (dot == std::string_view::npos || dot == name) return std::nullopt;
  return SampleName{.base = path.substr(0, dot), .extension = path.substr(dot + 1)};
}

std::string sample_field(const SampleName& name) { return lower_case(name.extension); }

void SampleCounter::add(std::string_view path) {
  const auto name = sample_name(path);
  // No base is empty, so the first one counts.
  if (!name || name->base == last_base_) return;
  last_base_ = name->base;
  ++count_;
}

}  // namespace millrace
