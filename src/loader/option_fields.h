#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/status.h"

namespace millrace {

// Takes options out of a JSON object, and keeps the first complaint. What nobody asked for is one
// too: an option that is misspelt must not be passed over. Needs one thread at a time; the document
// outlives it.
class OptionFields {
 public:
  using Document = nlohmann::ordered_json;

  // `place` is for messages: "datasets[0]."; empty for the document itself.
  OptionFields(const Document& json, std::string place);

  // What is absent is `otherwise`.
  std::string text(std::string_view name, std::string otherwise = {});
  std::uint64_t number(std::string_view name, std::uint64_t otherwise);
  // A number that is not negative.
  double amount(std::string_view name, double otherwise);
  bool truth(std::string_view name, bool otherwise);
  // Null when absent.
  const Document* list(std::string_view name);
  const Document* object(std::string_view name);
  bool has(std::string_view name) const { return json_.is_object() && json_.contains(name); }

  void complain(std::string_view name, std::string_view why);
  // kInvalidArgument with the first complaint, also about fields that were not asked for.
  Status finish();

 private:
  const Document* find(std::string_view name);

  const Document& json_;
  const std::string place_;
  std::set<std::string, std::less<>> known_;
  Status status_;
};

// kInvalidArgument when it is no JSON.
Result<OptionFields::Document> parse_options(std::string_view text);

}  // namespace millrace
