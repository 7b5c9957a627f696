#include "trainer/config/declaration.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include "trainer/config/check.h"
#include "trainer/config/scalar.h"

namespace phalanx::config {

namespace {

/// A bound as one would write it: 1, 0.5, 1e-08.
std::string bound_text(double bound) {
  std::string text = print_real(bound);
  if (const std::size_t point = text.find(".0"); point != std::string::npos) {
    if (point + 2 == text.size() || text[point + 2] == 'e') text.erase(point, 2);
  }
  return text;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string result;
  for (const std::string& text : texts) result += (result.empty() ? "" : ", ") + text;
  return result;
}

std::string singular(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::boolean:
      return "true or false";
    case Type::Kind::integer:
      return "an integer";
    case Type::Kind::real:
      return "a real number";
    case Type::Kind::path:
      return "a path";
    case Type::Kind::section:
      return "a section";
    default:
      return "text";
  }
}

std::string plural(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::boolean:
      return "true or false";
    case Type::Kind::integer:
      return "integers";
    case Type::Kind::real:
      return "real numbers";
    case Type::Kind::path:
      return "paths";
    case Type::Kind::section:
      return "sections";
    case Type::Kind::list:
      return "lists";
    default:
      return "texts";
  }
}

std::string list_text(const Type& type) {
  const Type& element = type.element.front();
  std::string text = "a list of ";
  if (type.size) text += std::to_string(*type.size) + " ";
  text += plural(element.kind);
  if (element.kind == Type::Kind::list) return text + " (each " + element.text() + ")";
  if (!element.choices.empty()) return text + " out of " + joined(element.choices);
  if (const std::string range = element.range.text(); !range.empty()) text += " " + range;
  return element.nullable ? text + " or null" : text;
}

/// Whether the word for no value could be taken for a value.
bool null_word_is_a_value(Type type) {
  if (type.null_word.empty()) return false;
  Node word = Node::plain(std::exchange(type.null_word, ""));
  Diagnostics diagnostics;
  check_value(type, word, "", diagnostics);
  return diagnostics.empty();
}

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) {
    return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
  };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) {
           return letter(c) || std::isdigit(static_cast<unsigned char>(c));
         });
}

}  // namespace

bool Range::contains(double value) const {
  if (low && (low_excluded ? value <= *low : value < *low)) return false;
  return !(high && (high_excluded ? value >= *high : value > *high));
}

std::string Range::text() const {
  if (low && high) {
    return std::string("in ") + (low_excluded ? "(" : "[") + bound_text(*low) + ", " +
           bound_text(*high) + (high_excluded ? ")" : "]");
  }
  if (low) return (low_excluded ? "> " : ">= ") + bound_text(*low);
  if (high) return (high_excluded ? "< " : "<= ") + bound_text(*high);
  return "";
}

Type& Type::leaf() { return element.empty() ? *this : element.front().leaf(); }
const Type& Type::leaf() const { return element.empty() ? *this : element.front().leaf(); }

Node Type::no_value() const { return null_word.empty() ? Node::null() : Node::string(null_word); }

bool Type::is_no_value(const Node& node) const {
  if (node.is_null()) return true;
  const bool text = node.type == ScalarType::plain || node.type == ScalarType::string;
  return !null_word.empty() && node.is_scalar() && text && node.text == null_word;
}

std::string Type::text() const {
  std::string text;
  if (kind == Kind::list) {
    text = list_text(*this);
  } else if (!choices.empty()) {
    text = "one of " + joined(choices);
  } else {
    text = singular(kind);
    if (const std::string bounds = range.text(); !bounds.empty()) text += " " + bounds;
  }
  return nullable ? text + ", or " + (null_word.empty() ? "null" : null_word) : text;
}

const Field* Declaration::find(std::string_view field) const {
  const auto found = std::find_if(fields_.begin(), fields_.end(),
                                  [field](const Field& f) { return f.name == field; });
  return found == fields_.end() ? nullptr : &*found;
}

std::vector<std::string> Declaration::field_names() const {
  std::vector<std::string> names;
  for (const Field& field : fields_) names.push_back(field.name);
  return names;
}

Field& Declaration::add_field(Field field) {
  if (!is_identifier(field.name)) {
    throw std::logic_error(name_ + ": '" + field.name + "' is no name for a config field");
  }
  if (find(field.name) != nullptr) {
    throw std::logic_error(name_ + ": the field '" + field.name + "' is declared twice");
  }
  fields_.push_back(std::move(field));
  return fields_.back();
}

Declaration& Declaration::add_section(std::string name, const Declaration& section,
                                      std::string meaning) {
  Field field;
  field.name = std::move(name);
  field.meaning = std::move(meaning);
  field.type.kind = Type::Kind::section;
  field.type.section = &section;
  add_field(std::move(field));
  return *this;
}

Declaration& Declaration::add_choice(std::string name, Choice choice) {
  Field field;
  field.name = std::move(name);
  field.meaning = choice.meaning;
  field.type.kind = Type::Kind::section;
  field.type.nullable = choice.optional;
  field.mandatory = choice.default_name.empty() && !choice.optional;
  field.choice = std::move(choice);
  add_field(std::move(field));
  return *this;
}

void Declaration::finish(const void* object, std::size_t member_count) {
  if (fields_.size() != member_count) {
    throw std::logic_error(name_ + " has " + std::to_string(member_count) +
                           " members, but describe "
                           "declares " +
                           std::to_string(fields_.size()) + " fields");
  }
  std::set<std::size_t> offsets;
  for (Field& field : fields_) {
    const std::string path = name_ + "." + field.name;
    if (!offsets.insert(field.offset).second) {
      throw std::logic_error(path + " describes a member that has another field already");
    }
    const Type& leaf = field.type.leaf();
    if (leaf.kind == Type::Kind::enumeration && leaf.choices.empty()) {
      throw std::logic_error(path + " is an enum without choices");
    }
    if (null_word_is_a_value(field.type)) {
      throw std::logic_error(path + ": '" + field.type.null_word +
                             "' stands for no value, but is a value too");
    }
    if (field.mandatory) {
      field.default_value = Node::plain("???");
      continue;
    }
    field.default_value = field.store(object, field.type);
    Diagnostics diagnostics;
    check_value(field.type, field.default_value, path, diagnostics);
    if (!diagnostics.empty()) throw std::logic_error("the default of " + diagnostics.text());
  }
}

void Declaration::load(void* object, const Node& section) const {
  if (!section.is_map()) {
    throw std::logic_error("config: '" + section.text + "' is read as a section (" + name_ +
                           ") and is none");
  }
  for (const Field& field : fields_) {
    if (!field.load) continue;
    const Node* value = section.find(field.name);
    if (value == nullptr) {
      throw std::logic_error("config: the section read as " + name_ + " lacks '" + field.name +
                             "': it was not resolved");
    }
    if (!value->is_missing()) field.load(object, field.type, *value);
  }
}

Node Declaration::store(const void* object) const {
  Node section = Node::map();
  for (const Field& field : fields_) {
    if (field.store) section.set(field.name, field.store(object, field.type));
  }
  return section;
}

bool Declaration::resume_may_change(std::string_view path, const Node& resolved) const {
  const std::size_t dot = path.find('.');
  const std::string_view name = path.substr(0, dot);
  const Field* field = find(name);
  if (field == nullptr) return false;
  if (field->resume_may_change) return true;
  if (dot == std::string_view::npos) return false;
  const Node* value = resolved.find(name);
  const Declaration* section = field->type.section;
  if (field->choice) {
    const Node* chosen = value == nullptr ? nullptr : value->find("name");
    section = chosen == nullptr ? nullptr : field->choice->find(chosen->text);
  }
  if (section == nullptr || value == nullptr) return false;
  return section->resume_may_change(path.substr(dot + 1), *value);
}

std::string type_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : type.name();
}

}  // namespace phalanx::config
