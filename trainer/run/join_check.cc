// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/join_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/text/differences.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/training_config.h"
#include "trainer/run/ranks_check.h"
#include "trainer/run/run_lock.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kRun = "run ";

// As ranks compare it.
std::string printed(config::Node resolved) {
  for (const char* name : {"exp_name", "exp_dir"}) resolved.set(name, config::Node::null());
  return config::print(resolved);
}

// With a mark in the place of the folder's name, wherever values hold it.
std::string printed_without_folder(UserConfig user) {
  user.tree.set("exp_dir", config::Node::plain("???"));
  return printed(resolve_config(user, std::nullopt));
}

std::string folder_of(const UserConfig& user) {
  if (!is_given(user, "exp_dir")) return {};
  return config::read<TrainerConfig>(resolve_config(user, std::nullopt)).exp_dir;
}

std::string canonical(const std::string& folder) {
  std::error_code unknown;
  return folder.empty() ? "" : fs::weakly_canonical(fs::absolute(folder), unknown).string();
}

config::Node parsed(const std::string& text) {
  config::Diagnostics diagnostics;
  config::Node tree = config::parse_yaml(text, "config", diagnostics);
  diagnostics.throw_if_any();
  return tree;
}

// "training.seed: 1 here, 2 on host-0": the first few.
std::string differing_fields(const std::string& here, const std::string& there,
                             const std::string& node) {
  constexpr size_t kShown = 3;
  std::vector<std::string> lines;
  for (const auto& difference : config::differences(parsed(here), parsed(there))) {
    if (lines.size() == kShown) {
      lines.emplace_back("...");
      break;
    }
    lines.push_back(
        fmt::format("{}: {} here, {} on {}", difference.path, difference.a, difference.b, node));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

std::string why_not_same_config(const Json& here, const Json& there, const std::string& node) {
  const auto text = [](const Json& json, const char* key) {
    return json.at(key).get<std::string>();
  };
  if (text(here, "config") == text(there, "config")) return {};
  const std::string bare_here = text(here, "without_folder");
  const std::string bare_there = text(there, "without_folder");
  if (bare_here == bare_there) {
    return fmt::format(
        "exp_dir is written '{}' here and '{}' on {}, and values of the config are made of it: "
        "write it the same on all nodes",
        text(here, "exp_dir"), text(there, "exp_dir"), node);
  }
  return fmt::format("its config is not that of {}: {}; start all nodes with the same", node,
                     differing_fields(bare_here, bare_there, node));
}

std::string why_not_same_folder(const Json& here, const Json& there, const JoinedRun& run) {
  const auto given = here.at("exp_dir").get<std::string>();
  const auto other = there.at("exp_dir").get<std::string>();
  if (given.empty() != other.empty()) {
    return fmt::format("exp_dir is {} here and {} on {}: start all nodes with the same",
                       given.empty() ? "not given" : given, other.empty() ? "not given" : other,
                       run.node);
  }
  if (given.empty() || here.at("folder") == there.at("folder")) return {};
  // Hosts may have one file system at different places: who trains there says which launch it is.
  if (run.ranks.empty() || job_of_holder(given) == run.job) return {};
  return fmt::format("exp_dir is the folder {} here and {} on {}: name the one in which the run is",
                     here.at("folder").get<std::string>(), there.at("folder").get<std::string>(),
                     run.node);
}

std::string why_folder_is_taken(const std::string& exp_dir, const std::string& job) {
  if (exp_dir.empty() || !holder_of_run(exp_dir) || job_of_holder(exp_dir) == job) return {};
  return why_not_free(exp_dir, job);
}

void require_fitting_ranks(const UserConfig& user, const RunPlan& plan, const JoinedRun& run) {
  if (run.ranks.empty()) return;
  if (run.samples_a_step > 0) {
    const int64_t ranks = plan.data_ranks(std::reduce(run.ranks.begin(), run.ranks.end()));
    training_config(resolve_config(user, std::nullopt))
        .accumulation_keeping(run.samples_a_step, ranks);
  }
  check_ranks_of_nodes(plan, run.ranks);
}

}  // namespace

std::string description_for_nodes(const UserConfig& user) {
  const std::string folder = folder_of(user);
  const Json json = {{"config", printed(resolve_config(user, std::nullopt))},
                     {"without_folder", printed_without_folder(user)},
                     {"exp_dir", folder},
                     {"folder", canonical(folder)}};
  return std::string(kRun) + json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string why_not_join(const UserConfig& user, const RunPlan& plan, const JoinedRun& run) {
  if (!run.description.starts_with(kRun)) {
    return fmt::format(
        "this node trains a config, and {} starts a program: start the same on all "
        "nodes",
        run.node);
  }
  const Json here = Json::parse(description_for_nodes(user).substr(kRun.size()));
  const Json there = Json::parse(run.description.substr(kRun.size()));
  if (std::string why = why_not_same_folder(here, there, run); !why.empty()) return why;
  if (std::string why = why_not_same_config(here, there, run.node); !why.empty()) return why;
  if (std::string why = why_folder_is_taken(folder_of(user), run.job); !why.empty()) return why;
  try {
    require_fitting_ranks(user, plan, run);
  } catch (const UserError& error) {
    return fmt::format("the run cannot go on with it: {}", error.what());
  }
  return {};
}

}  // namespace phalanx
