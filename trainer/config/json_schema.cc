#include "trainer/config/json_schema.h"

#include <nlohmann/json.hpp>

#include "trainer/config/print.h"

namespace phalanx::config {

namespace {

using Json = nlohmann::ordered_json;

// An interpolation, or the mark of a value that is still to be given: no schema knows which.
const Json& filled_later() {
  static const Json schema = {{"type", "string"}, {"pattern", "\\$\\{|^\\?\\?\\?$"}};
  return schema;
}

Json any_of(std::vector<Json> schemas) {
  if (schemas.size() == 1) return schemas.front();
  return {{"anyOf", std::move(schemas)}};
}

Json section_schema(const Declaration& declaration);
Json type_schema(const Type& type);

void add_range(const Range& range, Json& schema) {
  if (range.low) schema[range.low_excluded ? "exclusiveMinimum" : "minimum"] = *range.low;
  if (range.high) schema[range.high_excluded ? "exclusiveMaximum" : "maximum"] = *range.high;
}

Json value_schema(const Type& type) {
  Json schema;
  switch (type.kind) {
    case Type::Kind::boolean:
      return {{"type", "boolean"}};
    case Type::Kind::integer:
    case Type::Kind::real:
      schema["type"] = type.kind == Type::Kind::integer ? "integer" : "number";
      add_range(type.range, schema);
      return schema;
    case Type::Kind::string:
    case Type::Kind::path:
    case Type::Kind::enumeration:
      // An unquoted number or word is text where text is declared.
      if (type.choices.empty()) return {{"type", {"string", "number", "boolean"}}};
      return {{"enum", type.choices}};
    case Type::Kind::list:
      break;
    case Type::Kind::section:
      return section_schema(*type.section);
  }
  schema["type"] = "array";
  schema["items"] = type_schema(type.element.front());
  if (type.size) schema["minItems"] = schema["maxItems"] = *type.size;
  return schema;
}

Json type_schema(const Type& type) {
  std::vector<Json> schemas{value_schema(type)};
  if (type.nullable) schemas.push_back({{"type", "null"}});
  if (!type.null_word.empty()) schemas.push_back({{"const", type.null_word}});
  // A section of which nothing is given has its defaults.
  if (type.kind == Type::Kind::section && !type.nullable) schemas.push_back({{"type", "null"}});
  schemas.push_back(filled_later());
  return any_of(std::move(schemas));
}

Json choice_schema(const Choice& choice) {
  Json names = {{"enum", choice.names()}, {"description", "short for {name: ...}"}};
  std::vector<Json> schemas{std::move(names)};
  for (const std::string& name : choice.names()) {
    Json one = section_schema(*choice.find(name));
    one["properties"]["name"] = {{"const", name}};
    schemas.push_back(std::move(one));
  }
  // The class of a name that is filled in later is not known.
  schemas.push_back(
      {{"type", "object"}, {"required", {"name"}}, {"properties", {{"name", filled_later()}}}});
  if (choice.optional || !choice.default_name.empty()) schemas.push_back({{"type", "null"}});
  schemas.push_back(filled_later());
  return any_of(std::move(schemas));
}

Json field_schema(const Field& field) {
  Json schema;
  schema["description"] =
      field.unit.empty() ? field.meaning : field.meaning + " (" + field.unit + ")";
  schema.update(field.choice ? choice_schema(*field.choice) : type_schema(field.type));
  if (!field.mandatory && !field.choice && !field.default_value.is_null()) {
    schema["default"] = Json::parse(to_json(field.default_value));
  }
  return schema;
}

Json section_schema(const Declaration& declaration) {
  Json properties = Json::object();
  for (const Field& field : declaration.fields()) properties[field.name] = field_schema(field);
  return {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

}  // namespace

std::string json_schema(const std::vector<std::pair<std::string, const Declaration*>>& trainers) {
  const Json file = {{"type", "string"}};
  std::vector<Json> schemas;
  for (const auto& [name, declaration] : trainers) {
    Json one = section_schema(*declaration);
    one["properties"]["name"] = {{"const", name}, {"description", "which registered trainer"}};
    one["properties"]["include"] = {
        {"description", "config files that this one is laid over, relative to it"},
        {"anyOf", {file, {{"type", "array"}, {"items", file}}}}};
    schemas.push_back(std::move(one));
  }
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "a config of Phalanx"}};
  schema.update(any_of(std::move(schemas)));
  return schema.dump(1) + "\n";
}

}  // namespace phalanx::config
