// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/field_hint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <vector>

#include "trainer/commands/use/generate_settings.h"
#include "trainer/config/syntax/argument.h"
#include "trainer/config/tree/fields.h"
#include "trainer/registry/trainers.h"

namespace phalanx {
namespace {

constexpr const char* kSetBy = "; fields are set by key=value";
constexpr size_t kFew = 3;

bool takes_fields(const Command& command) {
  return std::ranges::any_of(command.positionals, [](const Positional& positional) {
    return positional.takes == Positional::Takes::override;
  });
}

// "max_steps" of "--max-steps".
std::string key_of(const std::string& flag) {
  std::string key = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

// The fields of all trainers whose path is the key, or ends with it.
std::set<std::string> fields_called(const std::string& key) {
  std::set<std::string> ending;
  const auto& registry = TrainerRegistry::instance();
  for (const auto& name : registry.table().names()) {
    for (const auto& field : config::field_entries(registry.at(name).declaration())) {
      if (field.is_section) continue;
      if (field.path == key) return {key};
      if (field.path.ends_with("." + key)) ending.insert(field.path);
    }
  }
  return ending;
}

}  // namespace

std::string field_hint(const UnknownOption& error) {
  if (!takes_fields(*error.command().command)) return {};
  const std::string& written = error.written();
  const size_t equals = std::min(written.find('='), written.size());
  const std::string key = key_of(written.substr(0, equals));
  const std::string value = equals < written.size() ? written.substr(equals + 1) : "VALUE";
  const bool is_of_generate =
      error.command().name.ends_with(" generate") && is_field_of_generate(key);
  const std::set<std::string> fields = is_of_generate ? std::set{key}
                                       : key.empty()  ? std::set<std::string>()
                                                      : fields_called(key);
  if (fields.empty() || fields.size() > kFew) {
    return fmt::format("{}, for example training.max_steps=100", kSetBy);
  }
  std::vector<std::string> arguments;
  for (const std::string& field : fields)
    arguments.push_back(config::shell_word(field + "=" + value));
  return fmt::format("{}: write {}", kSetBy, fmt::join(arguments, " or "));
}

}  // namespace phalanx
