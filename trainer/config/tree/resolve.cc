// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/tree/resolve.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "trainer/base/joined.h"
#include "trainer/config/tree/check.h"
#include "trainer/config/tree/ineffective.h"

namespace phalanx::config {

namespace {

/// Whether `path` is `section` or lies within it.
bool is_within(const std::string& path, const std::string& section) {
  if (section.empty() || path == section) return true;
  return path.starts_with(section) && (path[section.size()] == '.' || path[section.size()] == '[');
}

/// Whether a path in `paths` is `section` itself or an element of it; `fields`: or a field of it.
bool any_within(const std::set<std::string>& paths, const std::string& section, bool fields) {
  if (section.empty()) return !paths.empty();
  const auto any_below = [&](const std::string& start) {
    const auto first = paths.lower_bound(start);
    return first != paths.end() && first->starts_with(start);
  };
  return paths.contains(section) || any_below(section + "[") ||
         (fields && any_below(section + "."));
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Whether a text speaks of a field by its name.
bool mentions(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !is_word_character(text[at - 1]);
    if (begins && (end == text.size() || !is_word_character(text[end]))) return true;
  }
  return false;
}

/// What the command line says counts as the cause of a problem, else what stands last.
auto rank_of_cause(const Origin& origin) {
  return std::tuple(origin.source->kind == Source::Kind::command_line, origin.line, origin.column);
}

void take_if_later(const Origin*& cause, const Origin* found) {
  if (found == nullptr || !found->is_written()) return;
  if (cause == nullptr || rank_of_cause(*found) >= rank_of_cause(*cause)) cause = found;
}

/// Where the value at a path was written, or what of it the problem speaks of by its own path.
const Origin* cause_within(const Node& value, const std::string& path, std::string_view problem) {
  const Origin* cause = nullptr;
  for (const Entry& entry : value.entries) {
    const std::string inner = join_path(path, entry.key);
    if (mentions(problem, inner)) take_if_later(cause, cause_within(entry.value, inner, problem));
  }
  return cause == nullptr ? &value.origin : cause;
}

/// Where somebody wrote one of the fields that a check across fields speaks of; `fallback` where
/// nobody wrote any.
Origin place_of_problem(const Declaration& declaration, const Node& section,
                        std::string_view problem, const Origin& fallback) {
  const Origin* cause = nullptr;
  for (const Field& field : declaration.fields()) {
    const Node* value = section.find(field.name);
    if (value == nullptr || !mentions(problem, field.name)) continue;
    take_if_later(cause, cause_within(*value, field.name, problem));
  }
  return cause == nullptr ? fallback : *cause;
}

/// Whether an override set something within a section, so that its place is no place of the
/// section.
bool is_of_an_override_within(const Origin& origin, std::string_view section) {
  if (!origin.source || origin.source->kind != Source::Kind::command_line) return false;
  std::string_view key = origin.source->text;
  key = key.substr(0, key.find('='));
  key.remove_prefix(std::min(key.find_first_not_of("+~"), key.size()));
  return key.size() > section.size() && key.starts_with(section) && key[section.size()] == '.';
}

/// Checks every value of a filled tree.
class Checker {
 public:
  Checker(Diagnostics& diagnostics, const std::set<std::string>& failed,
          const ResolveOptions& options)
      : diagnostics_(diagnostics), failed_(failed), options_(options) {}

  /// `origin` is where a missing value would have been expected.
  void check_section(const Declaration& declaration, Node& section, const std::string& path,
                     const Origin& origin) {
    for (const Field& field : declaration.fields()) {
      const auto entry = std::find_if(section.entries.begin(), section.entries.end(),
                                      [&](const Entry& e) { return e.key == field.name; });
      if (entry == section.entries.end()) continue;
      const Origin& place = entry->key_origin.source ? entry->key_origin : origin;
      check_field(field, entry->value, join_path(path, field.name), place);
    }
    if (!is_sound(path) || lacks_a_file()) return;
    for (const Declaration::Check& check : declaration.checks()) {
      if (std::optional<std::string> problem = check(section)) {
        const Origin place = place_of_problem(declaration, section, *problem, origin);
        diagnostics_.add(place, path, std::move(*problem));
      }
    }
    if (is_sound(path)) warn_of_ineffective(declaration, section, path, diagnostics_);
  }

 private:
  /// Whether nothing at or below a path is wrong, so far as is known by now.
  bool is_sound(const std::string& path) const {
    const auto& known = diagnostics_.all();
    return !any_within(failed_, path, true) &&
           std::none_of(known.begin(), known.end(),
                        [&path](const Diagnostic& d) { return is_within(d.path, path); });
  }

  /// Whether a file that was to be included could not be: it may hold what is missing here.
  bool lacks_a_file() const { return is_reported("include"); }

  /// Whether something is wrong with the value at a path itself.
  bool is_reported(std::string_view path) const {
    const auto& known = diagnostics_.all();
    return std::any_of(known.begin(), known.end(),
                       [path](const Diagnostic& d) { return d.path == path; });
  }

  void check_field(const Field& field, Node& value, const std::string& path, const Origin& origin) {
    if (any_within(failed_, path, false)) return;
    if (value.is_missing()) {
      report_missing(field, value, path, origin);
    } else if (field.type.choice) {
      check_choice(field, value, path, origin);
    } else {
      check_value(field.type, value, path, diagnostics_);
      check_sections(field.type, value, path, origin);
    }
  }

  void check_sections(const Type& type, Node& value, const std::string& path,
                      const Origin& origin) {
    if (type.kind == Type::Kind::section && value.is_map()) {
      if (const Declaration* section = section_of(type, value)) {
        check_section(*section, value, path, origin);
      }
    }
    if (type.kind == Type::Kind::map && value.is_map()) {
      for (Entry& entry : value.entries) {
        const bool written = entry.key_origin.source != nullptr;
        check_sections(type.element.front(), entry.value, join_path(path, entry.key),
                       written ? entry.key_origin : origin);
      }
    }
    if (type.kind != Type::Kind::list || !value.is_list()) return;
    for (std::size_t i = 0; i < value.items.size(); ++i) {
      Node& item = value.items[i];
      check_sections(type.element.front(), item, path + "[" + std::to_string(i) + "]",
                     item.origin.source ? item.origin : origin);
    }
  }

  void check_choice(const Field& field, Node& value, const std::string& path,
                    const Origin& origin) {
    const Node* name = value.find("name");
    if (name == nullptr) return;
    if (name->is_missing()) {
      const bool is_known = is_reported(path) || is_reported(join_path(path, "name"));
      if (!is_known) report_missing(field, *name, path, origin);
    } else if (const Declaration* chosen = section_of(field.type, value)) {
      check_section(*chosen, value, path, origin);
    }
  }

  void report_missing(const Field& field, const Node& value, const std::string& path,
                      const Origin& origin) {
    const auto& later = options_.filled_later;
    if (std::find(later.begin(), later.end(), path) != later.end()) return;
    if (lacks_a_file()) return;
    std::string message = "a mandatory value is missing";
    if (!field.meaning.empty()) message += ": " + field.meaning;
    message += "; write it in the file, or give " + path + "=";
    message += field.type.choice ? "NAME; there are: " + joined(field.type.choice->names())
                                 : "VALUE, " + field.type.text();
    const std::string_view section = std::string_view(path).substr(0, path.rfind('.'));
    const bool has_place = !is_of_an_override_within(origin, section);
    const Origin place = value.origin.source ? value.origin : has_place ? origin : Origin();
    diagnostics_.add(place, path, std::move(message));
  }

  Diagnostics& diagnostics_;
  const std::set<std::string>& failed_;
  const ResolveOptions& options_;
};

}  // namespace

Node resolve(const Declaration& declaration, Node user_tree, Diagnostics& diagnostics,
             const ResolveOptions& options) {
  fill(declaration, user_tree, options.known, options.explain_key, diagnostics);
  Interpolator interpolator(user_tree, diagnostics, options.known);
  interpolator.resolve_all();
  fill(declaration, user_tree, options.known, options.explain_key, diagnostics);
  Origin whole = user_tree.origin;
  whole.line = whole.column = 0;
  Checker(diagnostics, interpolator.failed(), options)
      .check_section(declaration, user_tree, "", whole);
  return user_tree;
}

}  // namespace phalanx::config
