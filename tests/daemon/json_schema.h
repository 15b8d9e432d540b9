#pragma once

#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "app/json.h"

namespace millrace {

// Where a value does not fit a schema of an OpenAPI document: one sentence each, none when it fits.
// Knows the words that docs/openapi.yaml uses; any other is an error, so that nothing in the
// document looks checked and is not.
std::vector<std::string> schema_errors(const YAML::Node& document, const YAML::Node& schema,
                                       const Json& value, const std::string& where = "$");

// What a reference in the document points to; other nodes are themselves.
YAML::Node resolve_reference(const YAML::Node& document, const YAML::Node& node);

}  // namespace millrace
