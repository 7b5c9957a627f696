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

/// What a strategy may set in `parallel`. The rest of the section says what ranks compute on and
/// how long they wait, and may stand beside a strategy.
constexpr std::array<std::string_view, 9> kOfStrategies{
    "name",          "preset",      "use_fsdp",          "single_rank",
    "ddp",           "cpu_offload", "sharding_strategy", "sync_module_states",
    "sync_batchnorm"};

bool is_of_strategies(const Entry& entry) {
  return entry.key == "fsdp" || std::ranges::find(kOfStrategies, entry.key) != kOfStrategies.end();
}

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

/// Where `parallel` says itself how the model is spread over the ranks.
void refuse_both(const Node& parallel, const config::Origin& strategy) {
  const auto said = std::ranges::find_if(parallel.entries, is_of_strategies);
  const bool is_short = parallel.is_scalar() && !parallel.is_missing();
  if (!is_short && said == parallel.entries.end()) return;
  const config::Origin& origin = is_short ? parallel.origin : said->key_origin;
  const bool is_named = is_short || said->key == "name" || said->key == "preset";
  refuse(strategy, "this and " + (is_named ? kParallel : config::join_path(kParallel, said->key)) +
                       " (" + origin.text() +
                       ") both say how the model is spread over the ranks; give one of the two: "
                       "strategy is short for fields of parallel");
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

/// Only TorchTNT's two names of one field come to the same place.
[[noreturn]] void refuse_both_names(const Entry& entry, const Entry& earlier) {
  refuse(entry.key_origin, "init_sync and sync_module_states (the other is in " +
                               earlier.key_origin.text() + ") both set " +
                               config::join_path(kParallel, earlier.key) + "; give one of the two");
}

void move_field(Node& parallel, std::string_view strategy, Entry entry) {
  Node* section = &parallel;
  std::vector<std::string> keys = config::split_path(place_of(strategy, entry.key));
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
    Node* inner = section->find(keys[i]);
    section = inner != nullptr ? inner : &section->set(keys[i], Node::map());
  }
  const auto taken = std::ranges::find(section->entries, keys.back(), &Entry::key);
  if (taken != section->entries.end()) refuse_both_names(entry, *taken);
  entry.key = std::move(keys.back());
  section->entries.push_back(std::move(entry));
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
  refuse_both(*parallel, strategy.key_origin);
  if (parallel->is_null()) {
    parallel->kind = Node::Kind::map;
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
