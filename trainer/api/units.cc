// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/units.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <unordered_set>

#include "trainer/api/modules.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

bool matches(const std::string& pattern, const NamedHooked& module) {
  const auto is = [&](const std::string& text) {
    return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
  };
  return is(module.name) || is(modules::class_name(*module.module));
}

std::string list(const std::vector<NamedHooked>& candidates) {
  std::vector<std::string> texts;
  for (const NamedHooked& candidate : candidates) {
    texts.push_back(fmt::format("{} ({})", candidate.name, modules::class_name(*candidate.module)));
  }
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

// Those that `as` finds, each once.
std::vector<NamedHooked> find(torch::nn::Module& root, auto as) {
  std::vector<NamedHooked> found;
  std::unordered_set<const HookedModule*> seen;
  for (const auto& [name, module] : modules::descendants(root)) {
    HookedModule* const hooks = as(*module);
    if (hooks != nullptr && seen.insert(hooks).second) found.push_back({name, hooks, module});
  }
  return found;
}

}  // namespace

std::vector<NamedHooked> units(torch::nn::Module& root) { return find(root, modules::as_unit); }

std::vector<NamedHooked> hooked_modules(torch::nn::Module& root) {
  return find(root, modules::as_hooked);
}

std::vector<NamedHooked> matching(const std::vector<NamedHooked>& candidates,
                                  const std::vector<std::string>& patterns,
                                  std::string_view field) {
  for (const std::string& pattern : patterns) {
    if (std::any_of(candidates.begin(), candidates.end(),
                    [&](const NamedHooked& candidate) { return matches(pattern, candidate); })) {
      continue;
    }
    throw UserError(fmt::format("{}: no unit of the model matches '{}'; there are: {}", field,
                                pattern, list(candidates)));
  }
  std::vector<NamedHooked> chosen;
  for (const NamedHooked& candidate : candidates) {
    if (std::any_of(patterns.begin(), patterns.end(),
                    [&](const std::string& pattern) { return matches(pattern, candidate); })) {
      chosen.push_back(candidate);
    }
  }
  return chosen;
}

}  // namespace phalanx
