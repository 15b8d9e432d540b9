#include "loader/option_fields.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace millrace {

OptionFields::OptionFields(const Document& json, std::string place)
    : json_(json), place_(std::move(place)) {
  if (!json.is_object()) complain("", "is no JSON object");
}

const OptionFields::Document* OptionFields::find(std::string_view name) {
  known_.emplace(name);
  if (!json_.is_object()) return nullptr;
  const auto at = json_.find(name);
  return at == json_.end() || at->is_null() ? nullptr : &*at;
}

void OptionFields::complain(std::string_view name, std::string_view why) {
  if (!status_.ok()) return;
  status_ =
      Status(StatusCode::kInvalidArgument, fmt::format("options: {}{} {}", place_, name, why));
}

std::string OptionFields::text(std::string_view name, std::string otherwise) {
  const Document* const value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  complain(name, "is no text");
  return otherwise;
}

std::uint64_t OptionFields::number(std::string_view name, std::uint64_t otherwise) {
  const Document* const value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_number_unsigned()) return value->get<std::uint64_t>();
  complain(name, "is no whole number from 0 on");
  return otherwise;
}

double OptionFields::amount(std::string_view name, double otherwise) {
  const Document* const value = find(name);
  if (value == nullptr) return otherwise;
  const double amount = value->is_number() ? value->get<double>() : -1;
  if (std::isfinite(amount) && amount >= 0) return amount;
  complain(name, "is no number from 0 on");
  return otherwise;
}

bool OptionFields::truth(std::string_view name, bool otherwise) {
  const Document* const value = find(name);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  complain(name, "is neither true nor false");
  return otherwise;
}

const OptionFields::Document* OptionFields::list(std::string_view name) {
  const Document* const value = find(name);
  if (value == nullptr || value->is_array()) return value;
  complain(name, "is no list");
  return nullptr;
}

const OptionFields::Document* OptionFields::object(std::string_view name) {
  const Document* const value = find(name);
  if (value == nullptr || value->is_object()) return value;
  complain(name, "is no object");
  return nullptr;
}

Status OptionFields::finish() {
  if (status_.ok() && json_.is_object()) {
    for (const auto& [name, value] : json_.items()) {
      if (!known_.contains(name)) complain(name, "is not known");
    }
  }
  return status_;
}

Result<OptionFields::Document> parse_options(std::string_view text) {
  OptionFields::Document json = OptionFields::Document::parse(text, nullptr, false);
  if (json.is_discarded()) {
    return failure(StatusCode::kInvalidArgument, "options: they are no JSON");
  }
  return json;
}

}  // namespace millrace
