// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/unknown_keys.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "trainer/base/joined.h"
#include "trainer/base/nearest.h"
#include "trainer/config/tree/class_names.h"

namespace phalanx::config {
namespace {

/// The dotted paths of all fields with a name, whichever classes are chosen, and the innermost
/// class that each belongs to ("task 'copying'"; empty: none). A class that has one of its own kind
/// within is searched once.
class PathSearch {
 public:
  explicit PathSearch(std::string_view name) : name_(name) {}

  void search(const Declaration& declaration, const std::string& path) {
    for (const Field& field : declaration.fields()) {
      const std::string inner = join_path(path, field.name);
      if (field.name == name_) found_[inner].push_back(class_);
      if (field.type.choice) {
        search_classes(*field.type.choice, inner);
      } else if (field.type.section != nullptr) {
        search(*field.type.section, inner);
      }
    }
  }

  const std::map<std::string, std::vector<std::string>>& found() const { return found_; }

 private:
  void search_classes(const Choice& choice, const std::string& path) {
    if (!open_.insert(choice.kind).second) return;
    const std::string outer = class_;
    for (const std::string& known : choice.names()) {
      class_ = choice.kind + " '" + known + "'";
      search(*choice.find(known), path);
    }
    class_ = outer;
    open_.erase(choice.kind);
  }

  std::string_view name_;
  std::string class_;  // That is being searched.
  std::map<std::string, std::vector<std::string>> found_;
  std::set<std::string> open_;  // The kinds whose classes are being searched.
};

PathSearch search_for(const Declaration& whole, const std::string& key) {
  PathSearch search(key);
  if (key != kName) search.search(whole, "");
  return search;
}

/// The classes that have a field of this name, or had it once.
std::vector<std::string> classes_with(const Choice& choice, std::string_view field) {
  std::vector<std::string> names = choice.names();
  std::erase_if(names, [&](const std::string& name) {
    const Declaration& known = *choice.find(name);
    return known.find(field) == nullptr && known.find_deprecated(field) == nullptr;
  });
  return names;
}

/// Whether a section of this type may have such a key.
bool takes_key(const Type& type, const std::string& key) {
  if (type.kind == Type::Kind::map) return true;
  if (type.choice) {
    return key == kName || key == kPreset || type.choice->find(key) != nullptr ||
           !classes_with(*type.choice, key).empty();
  }
  if (type.section == nullptr) return false;
  return key == kPreset || type.section->find(key) != nullptr ||
         type.section->find_deprecated(key) != nullptr;
}

bool is_within(const std::string& field, const std::string& section) {
  return field.starts_with(section + ".");
}

/// Whether a config may have a value at this path, whichever classes are chosen.
bool is_declared(const Declaration& declaration, std::string_view path);

bool is_declared(const Type& type, std::string_view path) {
  if (path.empty() || type.kind == Type::Kind::map) return true;
  if (type.choice) {
    if (path == kName) return true;
    const std::vector<std::string> classes = type.choice->names();
    return std::any_of(classes.begin(), classes.end(), [&](const std::string& known) {
      return is_declared(*type.choice->find(known), path);
    });
  }
  return type.section != nullptr && is_declared(*type.section, path);
}

bool is_declared(const Declaration& declaration, std::string_view path) {
  const std::size_t end = std::min(path.find('.'), path.size());
  const Field* const field = declaration.find(path.substr(0, end));
  if (field == nullptr) return false;
  path.remove_prefix(std::min(end + 1, path.size()));
  return is_declared(field->type, path);
}

/// What this config lacks of the fields that a word is called here: the end of a sentence, or
/// empty.
std::string what_is_lacking(const Declaration& whole, const std::vector<std::string>& fields) {
  const std::set<std::string> all(fields.begin(), fields.end());
  std::vector<std::string> lacking;
  std::copy_if(all.begin(), all.end(), std::back_inserter(lacking),
               [&](const std::string& field) { return !is_declared(whole, field); });
  if (lacking.empty()) return "";
  return "; this trainer has no " + joined(lacking) +
         (lacking.size() == all.size() ? ": leave it out" : "");
}

/// "; did you mean 'a.b' or 'c.d'?"; empty for none, and for more than a few.
std::string meant_paths(const PathSearch& search) {
  constexpr std::size_t kFew = 3;
  std::vector<std::string> paths;
  for (const auto& [path, classes] : search.found()) paths.push_back(path);
  if (paths.empty() || paths.size() > kFew) return "";
  return "; did you mean '" + joined(paths, "' or '") + "'?";
}

/// Of a section around fields that the chosen class has without it (task.data.loader): a sentence's
/// end, or empty.
std::string without_section(const Declaration& declaration, const Node& section,
                            const SectionContext& context) {
  std::vector<std::string> paths;
  for (const Entry& entry : section.entries) {
    if (declaration.find(entry.key) == nullptr) return "";
    paths.push_back(join_path(context.path, entry.key));
  }
  return paths.empty() ? "" : "; did you mean '" + joined(paths, "' and '") + "'?";
}

/// The end of that sentence. `optimizer.name=sgd` keeps the other fields, `optimizer=sgd` does
/// not.
std::string how_to_replace(const SectionContext& context) {
  const auto& source = context.name->origin.source;
  if (!source || source->kind != Source::Kind::command_line) return ".";
  return "; " + context.path + "=" + context.name->text + " drops it.";
}

}  // namespace

void UnknownKeys::report(const Declaration& declaration, const Entry& entry,
                         const SectionContext& context) const {
  const std::string path = join_path(context.path, entry.key);
  std::string hint;
  if (context.choice != nullptr && context.choice->find(entry.key) == nullptr) {
    hint = without_section(declaration, entry.value, context);
  }
  if (hint.empty()) hint = hint_for_place(declaration, entry.key, context);
  const Field* const meant = meant_section(declaration, entry, context);
  const KnownWord word = hint.empty() && meant == nullptr ? word_at(path) : KnownWord();
  if (!word.text.empty()) {
    diagnostics_.add(entry.key_origin, path, "unknown key in " + context.what + "; " + word.text);
  } else if (!hint.empty() || meant != nullptr || !has_only_words(entry.value, path)) {
    if (hint.empty()) hint = hint_for_name(declaration, entry.key);
    report_with(hint, declaration, entry, context);
  }
  report_words_within(entry.value, path, meant);
}

void UnknownKeys::report_with(const std::string& hint, const Declaration& declaration,
                              const Entry& entry, const SectionContext& context) const {
  const std::vector<std::string> names = declaration.field_names();
  std::string message = "unknown key in " + context.what + hint;
  message +=
      (hint.empty() ? "; there are: " : " There are: ") + joined(by_nearness(entry.key, names));
  if (names.empty()) message = "unknown key; " + context.what + " has no fields" + hint;
  diagnostics_.add(entry.key_origin, join_path(context.path, entry.key), std::move(message));
}

// `meant`: the section that is meant by this one, whose own keys are no words of others.
void UnknownKeys::report_words_within(const Node& section, const std::string& path,
                                      const Field* meant) const {
  for (const Entry& entry : section.entries) {
    if (meant != nullptr && takes_key(meant->type, entry.key)) continue;
    const std::string inner = join_path(path, entry.key);
    if (const KnownWord word = word_at(inner); !word.text.empty()) {
      diagnostics_.add(entry.key_origin, inner, "unknown key; " + word.text);
    }
    report_words_within(entry.value, inner, nullptr);
  }
}

KnownWord UnknownKeys::word_at(std::string_view path) const {
  if (explain_key_ == nullptr) return {};
  KnownWord word = explain_key_(path);
  // What is written already is no answer: the field is one of another class.
  if (std::find(word.fields.begin(), word.fields.end(), path) != word.fields.end()) return {};
  word.text += what_is_lacking(whole_, word.fields);
  return word;
}

// The section of nearly this name that what stands in this one belongs to, or nullptr.
const Field* UnknownKeys::meant_section(const Declaration& declaration, const Entry& entry,
                                        const SectionContext& context) const {
  if (!entry.value.is_map()) return nullptr;
  const std::optional<std::string> near = nearest(entry.key, declaration.field_names());
  if (!near) return nullptr;
  const std::string path = join_path(context.path, entry.key);
  const bool differs_in_case = edit_distance(*near, entry.key) == 0;
  if (!differs_in_case && !word_at(path).text.empty()) return nullptr;
  const Field* const field = declaration.find(*near);
  const std::string section = join_path(context.path, *near);
  bool is_meant = false;
  for (const Entry& inner : entry.value.entries) {
    const KnownWord word = word_at(join_path(path, inner.key));
    if (word.is_of_place && !differs_in_case) return nullptr;
    is_meant |= takes_key(field->type, inner.key) ||
                std::any_of(word.fields.begin(), word.fields.end(),
                            [&](const std::string& known) { return is_within(known, section); });
  }
  return is_meant ? field : nullptr;
}

// Whether every value within an unknown section is known elsewhere, so that the section need not be
// spoken of.
bool UnknownKeys::has_only_words(const Node& section, const std::string& path) const {
  if (!section.is_map() || section.entries.empty()) return false;
  return std::all_of(section.entries.begin(), section.entries.end(), [&](const Entry& entry) {
    const std::string inner = join_path(path, entry.key);
    return !word_at(inner).text.empty() || has_only_words(entry.value, inner);
  });
}

// Why a key is unknown in just this place: a sentence's end, or empty.
std::string UnknownKeys::hint_for_place(const Declaration& declaration, const std::string& key,
                                        const SectionContext& context) const {
  if (context.choice != nullptr) {
    PathSearch within(key);
    if (key != kName) within.search(declaration, context.path);
    if (std::string meant = meant_paths(within); !meant.empty()) return meant;
    const std::vector<std::string> classes = classes_with(*context.choice, key);
    if (!classes.empty()) return "; it belongs to " + joined(classes) + how_to_replace(context);
    if (context.choice->find(key) != nullptr) {
      return "; it is picked by name: {name: " + key + ", ...}.";
    }
  }
  if (const std::size_t colon = key.find(':'); colon != std::string::npos) {
    const std::string before = key.substr(0, colon);
    if (declaration.find(before) != nullptr) {
      return "; write a blank after the colon: " + before + ": " + key.substr(colon + 1) + ".";
    }
  }
  const std::string first = key.substr(0, key.find('.'));
  if (first.size() < key.size() && declaration.find(first) != nullptr) {
    return "; a dotted key is for the command line, in a file write " + first + ": {" +
           key.substr(first.size() + 1) + ": ...}.";
  }
  const PathSearch search = search_for(whole_, key);
  if (const auto here = search.found().find(join_path(context.path, key));
      here != search.found().end()) {
    return "; it belongs to " + joined(here->second) + ".";
  }
  return "";
}

// Where a key of this or nearly this name is known: a sentence's end, or empty.
std::string UnknownKeys::hint_for_name(const Declaration& declaration,
                                       const std::string& key) const {
  if (std::string meant = meant_paths(search_for(whole_, key)); !meant.empty()) return meant;
  const std::optional<std::string> near = nearest(key, declaration.field_names());
  return near ? "; did you mean '" + *near + "'?" : "";
}

}  // namespace phalanx::config
