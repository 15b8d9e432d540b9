#include "tests/daemon/json_schema.h"

#include <set>

#include "base/time_format.h"

namespace millrace {
namespace {

using SchemaErrors = std::vector<std::string>;

bool has_schema_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return false;
}

void add_errors(SchemaErrors& errors, SchemaErrors more) {
  errors.insert(errors.end(), more.begin(), more.end());
}

void check_words(const YAML::Node& schema, const std::string& where, SchemaErrors& errors) {
  static const std::set<std::string> known = {
      "type",    "nullable", "required", "properties",  "additionalProperties",
      "items",   "enum",     "format",   "description", "minimum",
      "maximum", "default"};
  for (const auto& word : schema) {
    const std::string name = word.first.as<std::string>();
    if (!known.contains(name)) errors.push_back(where + ": the schema says '" + name + "'");
  }
}

void check_object(const YAML::Node& document, const YAML::Node& schema, const Json& value,
                  const std::string& where, SchemaErrors& errors) {
  for (const auto& name : schema["required"]) {
    if (!value.contains(name.as<std::string>())) {
      errors.push_back(where + " has no " + name.as<std::string>());
    }
  }
  const YAML::Node properties = schema["properties"];
  const YAML::Node additional = schema["additionalProperties"];
  for (const auto& [name, part] : value.items()) {
    const std::string at = where + "." + name;
    if (properties && properties[name]) {
      add_errors(errors, schema_errors(document, properties[name], part, at));
    } else if (additional && additional.IsMap()) {
      add_errors(errors, schema_errors(document, additional, part, at));
    } else if (additional && !additional.as<bool>()) {
      errors.push_back(at + " is not in the document");
    }
  }
}

void check_text(const YAML::Node& schema, const std::string& text, const std::string& where,
                SchemaErrors& errors) {
  if (schema["format"]) {
    const std::string format = schema["format"].as<std::string>();
    if (format != "date-time" || !parse_iso8601(text)) {
      errors.push_back(where + " is '" + text + "', no " + format);
    }
  }
  if (!schema["enum"]) return;
  for (const auto& allowed : schema["enum"]) {
    if (allowed.as<std::string>() == text) return;
  }
  errors.push_back(where + " is '" + text + "', which the document does not list");
}

}  // namespace

YAML::Node resolve_reference(const YAML::Node& document, const YAML::Node& node) {
  if (!node.IsMap() || !node["$ref"]) return node;
  // "#/components/schemas/Status"
  std::string path = node["$ref"].as<std::string>().substr(2);
  YAML::Node found = YAML::Clone(document);
  while (!path.empty() && found) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    found.reset(found[path.substr(0, slash)]);
    path.erase(0, slash + 1);
  }
  return found;
}

std::vector<std::string> schema_errors(const YAML::Node& document, const YAML::Node& schema,
                                       const Json& value, const std::string& where) {
  const YAML::Node resolved = resolve_reference(document, schema);
  if (!resolved || !resolved.IsMap()) return {where + ": the document has no schema for it"};
  SchemaErrors errors;
  check_words(resolved, where, errors);
  if (value.is_null() && resolved["nullable"] && resolved["nullable"].as<bool>()) return errors;
  const std::string type = resolved["type"] ? resolved["type"].as<std::string>() : "";
  if (!has_schema_type(value, type)) {
    errors.push_back(where + " is " + value.dump() + ", no " + type);
  } else if (value.is_object()) {
    check_object(document, resolved, value, where, errors);
  } else if (value.is_string()) {
    check_text(resolved, value.get<std::string>(), where, errors);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      add_errors(errors, schema_errors(document, resolved["items"], value[i],
                                       where + "[" + std::to_string(i) + "]"));
    }
  }
  return errors;
}

}  // namespace millrace
