// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/strategy.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/nearest.h"
#include "trainer/config/tree/diagnostics.h"

namespace phalanx {
namespace {

using config::Entry;
using config::Node;

constexpr const char* kParallel = "parallel";

[[noreturn]] void refuse(const config::Origin& origin, std::string message) {
  config::Diagnostics mistakes;
  mistakes.add(origin, std::string(kStrategy), std::move(message));
  throw config::ConfigError(std::move(mistakes));
}

/// The name of a strategy, as a short form or in a section.
Node name_of(const Node& strategy) {
  const std::vector<std::string> names{"none", "ddp", "fsdp"};
  const Node* name = strategy.is_scalar() ? &strategy : strategy.find("name");
  const bool is_given = name != nullptr && name->is_scalar() && !name->is_missing();
  if (!is_given) {
    refuse(name != nullptr && name->origin.source ? name->origin : strategy.origin,
           "names no strategy; give none, ddp, fsdp, or a section: {name: ddp, ...}");
  }
  if (name->text.find("${") != std::string::npos) {
    refuse(name->origin,
           "the name of a strategy cannot be an interpolation, as it decides which fields there "
           "are; parallel.use_fsdp can");
  }
  if (std::ranges::find(names, name->text) == names.end()) {
    refuse(name->origin, unknown_name("strategy", name->text, names));
  }
  return *name;
}

[[noreturn]] void refuse_both(const config::Origin& strategy, const std::string& said,
                              const config::Origin& origin) {
  refuse(strategy, "this and " + said + " (" + origin.text() +
                       ") contradict each other; give one of the two: strategy is short for "
                       "fields of parallel");
}

/// Refuses a field of `parallel` with another value than the strategy gives it. An interpolation is
/// one: what it comes to is not known yet.
void require_value(const Node& parallel, std::string_view key, std::string_view value,
                   const config::Origin& strategy) {
  const auto said = std::ranges::find(parallel.entries, key, &Entry::key);
  if (said == parallel.entries.end() || said->value.is_missing()) return;
  if (said->value.is_scalar() && said->value.text == value) return;
  refuse_both(strategy, config::join_path(kParallel, key), said->key_origin);
}

/// Where `parallel` contradicts the name of a strategy.
void refuse_contradictions(const Node& parallel, const std::string& name,
                           const config::Origin& strategy) {
  if (parallel.is_scalar() && !parallel.is_missing() && parallel.text != name) {
    refuse_both(strategy, kParallel, parallel.origin);
  }
  for (const char* key : {"name", "preset"}) require_value(parallel, key, name, strategy);
  require_value(parallel, "use_fsdp", name == "fsdp" ? "true" : "false", strategy);
  require_value(parallel, "single_rank", name == "none" ? "true" : "false", strategy);
}

/// Where a field of a strategy belongs in `parallel`.
std::string place_of(std::string_view strategy, const std::string& field) {
  if (field == "init_sync") return "sync_module_states";
  for (const char* shared :
       {"sync_module_states", "sync_batchnorm", "cpu_offload", "sharding_strategy"}) {
    if (field == shared) return field;
  }
  return config::join_path(strategy, field);
}

[[noreturn]] void refuse_twice(const Entry& entry, const std::string& path, const Entry& earlier) {
  const std::string names =
      path == "sync_module_states" ? " (init_sync is another name of it)" : "";
  refuse(entry.key_origin, "this and what is given in " + earlier.key_origin.text() + " both set " +
                               config::join_path(kParallel, path) + names +
                               "; give one of the two");
}

/// Adds an entry to a section of `parallel`, at this path within it. Sections are put together,
/// field by field.
void add(Node& section, Entry entry, const std::string& path) {
  const auto taken = std::ranges::find(section.entries, entry.key, &Entry::key);
  if (taken == section.entries.end()) {
    section.entries.push_back(std::move(entry));
    return;
  }
  if (!taken->value.is_map() || !entry.value.is_map()) refuse_twice(entry, path, *taken);
  for (Entry& inner : entry.value.entries) {
    const std::string inner_path = config::join_path(path, inner.key);
    add(taken->value, std::move(inner), inner_path);
  }
}

void move_field(Node& parallel, std::string_view strategy, Entry entry) {
  const std::string path = place_of(strategy, entry.key);
  std::vector<std::string> keys = config::split_path(path);
  Node* section = &parallel;
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
    const auto inner = std::ranges::find(section->entries, keys[i], &Entry::key);
    const bool is_there = inner != section->entries.end() && !inner->value.is_null();
    if (is_there && !inner->value.is_map()) refuse_twice(entry, path, *inner);
    section = is_there ? &inner->value : &section->set(keys[i], Node::map());
  }
  entry.key = std::move(keys.back());
  add(*section, std::move(entry), path);
}

}  // namespace

void resolve_strategy(Node& tree) {
  const auto given = std::ranges::find(tree.entries, kStrategy, &Entry::key);
  if (given == tree.entries.end()) return;
  Entry strategy = std::move(*given);
  tree.entries.erase(given);
  if (strategy.value.is_null() && !strategy.value.is_blank) return;
  const Node name = name_of(strategy.value);
  Node* parallel = tree.find(kParallel);
  if (parallel == nullptr) {
    parallel = &tree.set(kParallel, Node::map());
    parallel->origin = strategy.value.origin;
  }
  refuse_contradictions(*parallel, name.text, strategy.key_origin);
  if (parallel->is_null() || (parallel->is_scalar() && !parallel->is_missing())) {
    parallel->kind = Node::Kind::map;
    parallel->text.clear();
    parallel->is_blank = false;
  }
  if (!parallel->is_map()) return;  // refused where it is resolved

  Node is_chosen = Node::boolean(true);
  is_chosen.origin = name.origin;
  if (name.text == "ddp") is_chosen.text = "false";
  parallel->set(name.text == "none" ? "single_rank" : "use_fsdp", std::move(is_chosen));
  for (Entry& entry : strategy.value.entries) {
    if (entry.key != "name") move_field(*parallel, name.text, std::move(entry));
  }
}

}  // namespace phalanx
