#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "objectstore/store_url.h"

namespace millrace {

// Takes the text after the '?' apart and checks every name and value against the table of what the
// scheme knows. `url` is what the user wrote, for messages.
Result<std::map<std::string, std::string>> parse_store_parameters(StoreUrl::Scheme scheme,
                                                                  std::string_view query,
                                                                  std::string_view url);

// "%41" to "A". kInvalidArgument for a malformed escape, and for one that gives a control
// character.
Result<std::string> percent_decode(std::string_view text, std::string_view url);
// The inverse: letters, digits and "-._~/:@,+=!$'()*;" stay as they are, so that URLs stay
// readable.
std::string percent_encode(std::string_view text);

}  // namespace millrace
