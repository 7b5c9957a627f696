// SPDX-License-Identifier: Apache-2.0
// The plan for random module trees (random_tree.h) puts each parameter where the description says.
// A failure tells its seed; random_seeds.h says how that one runs alone.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tests/trainer/parallel/fsdp/random_seeds.h"
#include "tests/trainer/parallel/fsdp/random_tree.h"
#include "trainer/parallel/fsdp/unit_plan.h"

namespace phalanx::fsdp::testing {
namespace {

/// Where a plan should put parameters, by the description alone.
class PlanOracle {
 public:
  explicit PlanOracle(const RandomCase& made)
      : tree_(made.tree), ways_(ways_to_nodes(tree_)), wrap_(made.training.options.auto_wrap) {
    for (const auto& name : made.training.options.ignored_modules) {
      ignored_.insert(ways_.at(name).back());
    }
  }

  size_t node(const std::string& name) const { return ways_.at(name).back(); }
  bool is_ignored(size_t node) const { return ignored_.contains(node); }

  /// The tree's parameter of a dotted name.
  size_t parameter(const std::string& name) const {
    const size_t dot = name.rfind('.');
    const bool is_roots = dot == std::string::npos;
    const TreeNode& node = tree_.nodes[ways_.at(is_roots ? "" : name.substr(0, dot)).back()];
    return node.parameters[std::stoul(name.substr(is_roots ? 1 : dot + 2))];
  }

  /// The innermost node, chosen or ignored, that all ways to a parameter lead through; or the root.
  size_t owner(size_t parameter) const {
    std::vector<std::vector<size_t>> all;
    for (const auto& [name, way] : ways_) {
      if (std::ranges::count(tree_.nodes[way.back()].parameters, parameter) > 0) {
        all.push_back(stations(way));
      }
    }
    for (size_t i = all.front().size(); i > 0; --i) {
      const size_t node = all.front()[i - 1];
      const auto leads_through = [&](const auto& way) { return std::ranges::count(way, node) > 0; };
      if (std::ranges::all_of(all, leads_through)) return node;
    }
    return 0;
  }

 private:
  // What is inside of an ignored module is ignored as a part of it.
  std::vector<size_t> stations(const std::vector<size_t>& way) const {
    std::vector<size_t> stations;
    for (const size_t node : std::span(way).subspan(1)) {
      if (is_chosen(node) || is_ignored(node)) stations.push_back(node);
      if (is_ignored(node)) break;
    }
    return stations;
  }

  bool is_chosen(size_t node) const {
    if (!tree_.nodes[node].is_unit || wrap_.policy == WrapPolicy::none) return false;
    return wrap_.policy == WrapPolicy::unit ||
           std::ranges::count(wrap_.names, fmt::format("*n{}", node)) > 0;
  }

  const Tree& tree_;
  Ways ways_;
  const AutoWrap& wrap_;
  std::set<size_t> ignored_;
};

void expect_planned_by_description(const RandomCase& made) {
  const std::shared_ptr<torch::nn::Module> module = make_module(made.tree);
  const PlanOracle oracle(made);
  size_t parameters = 0;
  for (const PlannedUnit& unit : plan_units(*module, made.training.options)) {
    for (const auto& parameter : unit.parameters) {
      const size_t owner = oracle.owner(oracle.parameter(parameter.name));
      EXPECT_EQ(unit.is_whole, oracle.is_ignored(owner)) << parameter.name;
      if (!unit.is_whole) {
        EXPECT_EQ(oracle.node(unit.name), owner) << parameter.name;
      }
      ++parameters;
    }
  }
  EXPECT_EQ(parameters, parameters_of(*module).size());
}

TEST(RandomPlans, GiveEachParameterToTheInnermostUnitAroundItsUses) {
  const Seeds seeds = seeds_to_run(/*usual=*/500);
  for (uint64_t seed = seeds.first; seed < seeds.end; ++seed) {
    const RandomCase made = random_case(seed, /*world_size=*/2);
    // Sizes with what is shared are unit_plan_test's.
    if (made.training.options.auto_wrap.policy == WrapPolicy::size) continue;
    expect_planned_by_description(made);
    ASSERT_FALSE(HasFailure()) << fmt::format("PHALANX_TREE_SEED={}: {}", seed, describe(made));
  }
}

}  // namespace
}  // namespace phalanx::fsdp::testing
