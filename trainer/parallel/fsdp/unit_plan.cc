// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/unit_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "trainer/api/modules.h"
#include "trainer/api/units.h"
#include "trainer/base/user_error.h"
#include "trainer/parallel/fsdp/fsdp_options.h"

namespace phalanx::fsdp {
namespace {

using torch::nn::Module;

/// Chosen units and ignored modules around a module, outermost first.
using Path = std::vector<const Module*>;

std::string join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

using Chosen = std::unordered_map<const Module*, NamedHooked>;

Chosen by_module(const std::vector<NamedHooked>& units) {
  Chosen chosen;
  for (const NamedHooked& unit : units) chosen.emplace(unit.module, unit);
  return chosen;
}

/// From the innermost outwards: a unit that is too small goes with what is around it.
int64_t choose_by_size(Module& module, const std::unordered_map<const Module*, NamedHooked>& units,
                       int64_t min_params, Chosen& chosen) {
  int64_t size = 0;
  for (const auto& [name, tensor] : modules::own_parameters(module)) size += tensor.numel();
  for (const auto& [name, child] : modules::children(module)) {
    size += choose_by_size(*child, units, min_params, chosen);
  }
  const auto unit = units.find(&module);
  if (unit == units.end() || size < min_params) return size;
  chosen.insert(*unit);
  return 0;
}

Chosen choose(Module& root, const AutoWrap& wrap) {
  const std::vector<NamedHooked> all = units(root);
  Chosen chosen;
  switch (wrap.policy) {
    case WrapPolicy::unit:
      return by_module(all);
    case WrapPolicy::by_name:
      return by_module(matching(all, wrap.names, "parallel.fsdp.auto_wrap.names"));
    case WrapPolicy::size:
      choose_by_size(root, by_module(all), wrap.min_params, chosen);
      return chosen;
    case WrapPolicy::none:
      return chosen;
  }
  throw std::logic_error("an unknown WrapPolicy");
}

std::unordered_set<const Module*> find_modules(Module& root,
                                               const std::vector<std::string>& names) {
  std::unordered_set<const Module*> found;
  const modules::NamedModules all = modules::descendants(root);
  for (const std::string& name : names) {
    const auto named = std::find_if(all.begin(), all.end(),
                                    [&](const auto& module) { return module.first == name; });
    if (named == all.end()) {
      throw UserError(
          fmt::format("parallel.fsdp.ignored_modules: the model has no module '{}'; there are: {}",
                      name, fmt::join(all | std::views::keys, ", ")));
    }
    found.insert(named->second);
  }
  return found;
}

/// A parameter with the way to each module that has it.
struct Use {
  NamedParameter parameter;
  std::vector<Path> paths;
};

class Collector {
 public:
  Collector(const Chosen& chosen, const std::unordered_set<const Module*>& ignored)
      : chosen_(chosen), ignored_(ignored) {}

  void collect(Module& module, const std::string& name, Path path) {
    const bool in_ignored = !path.empty() && ignored_.contains(path.back());
    if (!in_ignored && (ignored_.contains(&module) || chosen_.contains(&module))) {
      path.push_back(&module);
    }
    for (const auto& [key, tensor] : modules::own_parameters(module)) {
      const auto [place, is_new] = places_.emplace(tensor.unsafeGetTensorImpl(), uses_.size());
      if (is_new) uses_.push_back({{join(name, key), tensor}, {}});
      uses_[place->second].paths.push_back(path);
    }
    for (const auto& [key, child] : modules::children(module)) {
      collect(*child, join(name, key), path);
    }
  }

  const std::vector<Use>& uses() const { return uses_; }

 private:
  const Chosen& chosen_;
  const std::unordered_set<const Module*>& ignored_;
  std::unordered_map<const at::TensorImpl*, std::size_t> places_;
  std::vector<Use> uses_;
};

/// The innermost module that all ways lead through; nullptr: the root.
const Module* common(const std::vector<Path>& paths) {
  const Path& first = paths.front();
  for (auto module = first.rbegin(); module != first.rend(); ++module) {
    const bool in_all = std::all_of(paths.begin(), paths.end(), [&](const Path& path) {
      return std::find(path.begin(), path.end(), *module) != path.end();
    });
    if (in_all) return *module;
  }
  return nullptr;
}

}  // namespace

std::vector<PlannedUnit> plan_units(Module& root, const FsdpOptions& options) {
  const Chosen chosen = choose(root, options.auto_wrap);
  const auto ignored = find_modules(root, options.ignored_modules);
  Collector collector(chosen, ignored);
  collector.collect(root, "", {});

  std::vector<PlannedUnit> planned;
  std::map<const Module*, std::size_t> places;
  PlannedUnit outside;
  PlannedUnit whole{.name = "", .unit = nullptr, .is_whole = true, .parameters = {}};
  for (const Use& use : collector.uses()) {
    const Module* const owner = common(use.paths);
    if (owner == nullptr) {
      outside.parameters.push_back(use.parameter);
    } else if (ignored.contains(owner)) {
      whole.parameters.push_back(use.parameter);
    } else {
      const auto [place, is_new] = places.emplace(owner, planned.size());
      if (is_new) {
        const NamedHooked& unit = chosen.at(owner);
        planned.push_back(
            {.name = unit.name, .unit = unit.hooks, .is_whole = false, .parameters = {}});
      }
      planned[place->second].parameters.push_back(use.parameter);
    }
  }
  if (!whole.parameters.empty()) planned.push_back(std::move(whole));
  planned.push_back(std::move(outside));
  return planned;
}

std::string describe(const std::vector<PlannedUnit>& units) {
  std::string text;
  for (const auto& unit : units) {
    for (const auto& parameter : unit.parameters) {
      text += fmt::format("unit '{}': {}: {} [{}]{}\n", unit.name, parameter.name,
                          c10::toString(parameter.tensor.scalar_type()),
                          fmt::join(parameter.tensor.sizes(), ", "),
                          parameter.tensor.requires_grad() ? "" : ", frozen");
    }
  }
  return text;
}

}  // namespace phalanx::fsdp
