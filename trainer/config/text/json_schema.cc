// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/text/json_schema.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "trainer/config/syntax/print.h"

namespace phalanx::config {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCountPattern = "^[+-]?[0-9]+([.][0-9]+)?[kMGT]$";
constexpr const char* kDurationPattern = "^([0-9]+([.][0-9]+)?(d|h|ms|m|s))+$";

// An interpolation, or the mark of a value that is still to be given: no schema knows which.
const Json& filled_later() {
  static const Json schema = {{"type", "string"}, {"pattern", "\\$\\{|^\\?\\?\\?$"}};
  return schema;
}

Json any_of(std::vector<Json> schemas) {
  if (schemas.size() == 1) return schemas.front();
  return {{"anyOf", std::move(schemas)}};
}

/// The names of a section's presets.
Json presets_schema(const Declaration& declaration, const std::string& description) {
  Json names = Json::array();
  std::string meanings;
  for (const Preset& preset : declaration.presets()) {
    names.push_back(preset.name);
    meanings += "; " + preset.name + ": " + preset.meaning;
  }
  return {{"enum", std::move(names)}, {"description", description + meanings}};
}

void add_range(const Range& range, Json& schema) {
  if (range.low) schema[range.low_excluded ? "exclusiveMinimum" : "minimum"] = *range.low;
  if (range.high) schema[range.high_excluded ? "exclusiveMaximum" : "maximum"] = *range.high;
}

Json number_schema(const Type& type) {
  Json schema = {{"type", type.kind == Type::Kind::integer ? "integer" : "number"}};
  add_range(type.range, schema);
  if (!type.is_count) return schema;
  return any_of({std::move(schema), {{"type", "string"}, {"pattern", kCountPattern}}});
}

/// 0 needs no unit.
Json duration_schema() {
  return any_of({{{"type", "string"}, {"pattern", kDurationPattern}}, {{"const", 0}}});
}

Json text_schema(const Type& type) {
  if (!type.choices.empty()) {
    Json choices = type.choices;
    if (type.is_numbered) {
      for (const std::int64_t number : type.choice_values) choices.push_back(number);
    }
    return {{"enum", std::move(choices)}};
  }
  // An unquoted number or word is text where text is declared.
  Json schema = {{"type", {"string", "number", "boolean"}}};
  if (type.kind == Type::Kind::path) schema["minLength"] = 1;
  return schema;
}

// The schemas of declarations.
class Writer {
 public:
  Json section(const Declaration& declaration);

  // What "$ref" names: classes that have a class of their own kind within.
  Json definitions();

 private:
  Json value(const Type& type);
  Json type(const Type& type);
  Json choice(const Choice& choice);
  Json classes(const Choice& choice);
  Json field(const Field& field);

  std::vector<std::string> open_;  // The kinds whose classes are being written.
  std::map<std::string, const Choice*> recursive_;
};

Json Writer::value(const Type& type) {
  switch (type.kind) {
    case Type::Kind::boolean:
      return {{"type", "boolean"}};
    case Type::Kind::integer:
    case Type::Kind::real:
      return number_schema(type);
    case Type::Kind::duration:
      return duration_schema();
    case Type::Kind::string:
    case Type::Kind::path:
    case Type::Kind::enumeration:
      return text_schema(type);
    case Type::Kind::section:
      return type.choice ? this->choice(*type.choice) : section(*type.section);
    case Type::Kind::map:
      return {{"type", "object"}, {"additionalProperties", this->type(type.element.front())}};
    case Type::Kind::list:
      break;
  }
  Json schema = {{"type", "array"}, {"items", this->type(type.element.front())}};
  if (type.size) schema["minItems"] = schema["maxItems"] = *type.size;
  return schema;
}

Json Writer::type(const Type& type) {
  std::vector<Json> schemas{value(type)};
  // A section of which nothing is given has its defaults.
  if (type.nullable || type.section != nullptr) schemas.push_back({{"type", "null"}});
  if (!type.null_word.empty()) schemas.push_back({{"const", type.null_word}});
  if (type.section != nullptr && !type.section->presets().empty()) {
    schemas.push_back(presets_schema(*type.section, "short for {preset: ...}"));
  }
  schemas.push_back(filled_later());
  return any_of(std::move(schemas));
}

Json Writer::choice(const Choice& choice) {
  if (std::find(open_.begin(), open_.end(), choice.kind) != open_.end()) {
    recursive_.emplace(choice.kind, &choice);
    return {{"$ref", "#/$defs/" + choice.kind}};
  }
  open_.push_back(choice.kind);
  Json schema = classes(choice);
  open_.pop_back();
  return schema;
}

Json Writer::classes(const Choice& choice) {
  Json names = {{"enum", choice.names()}, {"description", "short for {name: ...}"}};
  std::vector<Json> schemas{std::move(names)};
  for (const std::string& name : choice.names()) {
    const Declaration& chosen = *choice.find(name);
    Json one = section(chosen);
    one["properties"]["name"] = {{"const", name}};
    schemas.push_back(std::move(one));
    if (!chosen.presets().empty()) {
      schemas.push_back(presets_schema(chosen, "short for {name: " + name + ", preset: ...}"));
    }
  }
  // The class of a name that is filled in later is not known.
  schemas.push_back(
      {{"type", "object"}, {"required", {"name"}}, {"properties", {{"name", filled_later()}}}});
  if (!choice.default_name.empty()) schemas.push_back({{"type", "null"}});
  schemas.push_back(filled_later());
  return any_of(std::move(schemas));
}

Json Writer::field(const Field& field) {
  Json schema;
  schema["description"] =
      field.unit.empty() ? field.meaning : field.meaning + " (" + field.unit + ")";
  Type type = field.type;
  type.nullable = type.nullable || !field.mandatory;                 // null takes the default again
  const bool is_filled = field.type.choice && !field.type.nullable;  // says so itself
  schema.update(is_filled ? this->choice(*field.type.choice) : this->type(type));
  if (!field.mandatory && !is_filled && !field.default_value.is_null()) {
    schema["default"] = Json::parse(to_json(field.default_value));
  }
  return schema;
}

Json Writer::section(const Declaration& declaration) {
  Json properties = Json::object();
  for (const Field& field : declaration.fields()) {
    properties[field.name] = this->field(field);
    for (const DeprecatedName& old : field.deprecated_names) {
      properties[old.name] = {{"description", "called " + field.name + " now"},
                              {"deprecated", true}};
    }
  }
  if (!declaration.presets().empty()) {
    properties[kPreset] = any_of({presets_schema(declaration, "values for several fields"),
                                  {{"type", "null"}},
                                  filled_later()});
  }
  return {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

Json Writer::definitions() {
  Json definitions = Json::object();
  // Writing one may find others.
  while (definitions.size() < recursive_.size()) {
    const auto found = recursive_;
    for (const auto& [kind, choice] : found) {
      if (!definitions.contains(kind)) definitions[kind] = this->choice(*choice);
    }
  }
  return definitions;
}

}  // namespace

std::string json_schema(const std::vector<std::pair<std::string, const Declaration*>>& trainers,
                        std::span<const ShortKey> short_keys) {
  const Json file = {{"type", "string"}};
  Writer writer;
  std::vector<Json> schemas;
  for (const auto& [name, declaration] : trainers) {
    Json one = writer.section(*declaration);
    one["properties"]["name"] = {{"const", name}, {"description", "which registered trainer"}};
    for (const ShortKey& key : short_keys) {
      if (declaration->find(key.section) == nullptr) continue;
      one["properties"][key.name] = {{"description", key.meaning}};
    }
    one["properties"]["include"] = {
        {"description", "config files that this one is laid over, relative to it"},
        {"anyOf", {file, {{"type", "array"}, {"items", file}}}}};
    schemas.push_back(std::move(one));
  }
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "a config of Phalanx"}};
  schema.update(any_of(std::move(schemas)));
  const Json definitions = writer.definitions();
  if (!definitions.empty()) schema["$defs"] = definitions;
  return schema.dump(1) + "\n";
}

}  // namespace phalanx::config
