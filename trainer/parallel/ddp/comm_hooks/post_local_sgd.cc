// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <utility>
#include <vector>

#include "trainer/base/json_cause.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/parallel/ddp/average_parameters.h"
#include "trainer/parallel/ddp/bucket_mean.h"
#include "trainer/parallel/ddp/comm_hook.h"
#include "trainer/ranks/collectives/hosts.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

/// The fields of torch's PostLocalSGDState and PeriodicModelAverager, whose warmup_steps are
/// start_localSGD_iter.
struct PostLocalSgdConfig {
  int64_t start_localSGD_iter = 0;  // NOLINT(readability-identifier-naming)
  int64_t period = 1;
  bool post_local_gradient_allreduce = true;
  std::optional<int64_t> subgroup_size;

  static void describe(config::Schema<PostLocalSgdConfig>& s) {
    s.field("start_localSGD_iter", &PostLocalSgdConfig::start_localSGD_iter,
            "steps whose gradients are reduced over all ranks; from then on within groups")
        .unit("steps")
        .mandatory()
        .at_least(0);
    s.field("period", &PostLocalSgdConfig::period,
            "steps from one averaging of all ranks' parameters to the next, from "
            "start_localSGD_iter on")
        .unit("steps")
        .mandatory()
        .at_least(1);
    s.field("post_local_gradient_allreduce", &PostLocalSgdConfig::post_local_gradient_allreduce,
            "reduce gradients within groups; false: each rank steps by its own");
    s.field("subgroup_size", &PostLocalSgdConfig::subgroup_size,
            "ranks of a group, consecutive ones; null: those of a host")
        .at_least(1);
    s.ineffective({"subgroup_size"}, "post_local_gradient_allreduce is false",
                  [](const PostLocalSgdConfig& c) { return !c.post_local_gradient_allreduce; });
  }
};

// What is counted: the same on all ranks. Python's hook counts reductions and its averager steps;
// with several backward passes in a step groups would begin before parameters are averaged.
struct Counts final : Stateful {
  int64_t updates = 0;  ///< Optimizer steps.

  std::string json() const override {
    return nlohmann::json::object({{"updates", updates}}).dump();
  }

  void restore(std::string_view json) override {
    try {
      updates = nlohmann::json::parse(json).at("updates").get<int64_t>();
    } catch (const nlohmann::json::exception& error) {
      throw UserError(
          fmt::format("the state of post-localSGD cannot be read: {}", json_cause(error)));
    }
  }
};

// The ranks of each group.
std::vector<std::vector<int64_t>> groups_of(const PostLocalSgdConfig& config, const Ranks& ranks) {
  std::vector<std::vector<int64_t>> groups;
  const auto group_of = [&](int64_t rank) {
    if (!config.post_local_gradient_allreduce) return rank;
    return config.subgroup_size ? rank / *config.subgroup_size
                                : hosts_of(ranks)[static_cast<std::size_t>(rank)];
  };
  for (int64_t rank = 0; rank < ranks.world_size(); ++rank) {
    const auto group = static_cast<std::size_t>(group_of(rank));
    if (groups.size() <= group) groups.resize(group + 1);
    groups[group].push_back(rank);
  }
  return groups;
}

struct Shared {
  PostLocalSgdConfig config;
  Ranks all;
  Ranks group;
  Counts counts;
};

class Reduce final : public c10d::CppCommHookInterface<std::shared_ptr<Shared>> {
 public:
  using CppCommHookInterface::CppCommHookInterface;

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    const bool is_before_start = state_->counts.updates < state_->config.start_localSGD_iter;
    return start_bucket_mean(bucket.getBuffer(), is_before_start ? state_->all : state_->group);
  }
};

/// post_localSGD_hook.py's hook, with the PeriodicModelAverager that goes with it.
class PostLocalSgd : public CommHook {
 public:
  using Config = PostLocalSgdConfig;
  explicit PostLocalSgd(const Config& config) : shared_(std::make_shared<Shared>()) {
    shared_->config = config;
  }

  void check(int64_t ranks) const override {
    const std::optional<int64_t>& size = shared_->config.subgroup_size;
    if (!size || !shared_->config.post_local_gradient_allreduce || ranks % *size == 0) return;
    throw UserError(fmt::format(
        "parallel.ddp.comm_hook.subgroup_size is {}, which does not divide the {} ranks: choose a "
        "divisor of {}, or null for the ranks of a host",
        *size, ranks, ranks));
  }

  void bind(const std::vector<NamedParameter>& parameters, const Ranks& ranks) override {
    check(ranks.world_size());
    parameters_ = parameters;
    shared_->all = ranks;
    const auto groups = groups_of(shared_->config, ranks);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const bool is_own = std::ranges::find(groups[i], ranks.rank()) != groups[i].end();
      if (is_own)
        group_ = {static_cast<int64_t>(i), static_cast<int64_t>(groups.size()), groups[i]};
      if (groups.size() == 1) {
        shared_->group = ranks;
      } else if (groups[i].size() > 1) {
        auto group = ranks.subgroup(groups[i], {.name = fmt::format("post-localSGD {}", i)});
        if (group) shared_->group = *std::move(group);
      }
    }
    if (groups.size() > 1 || !tell()) return;
    tell()(
        "note: post_localSGD has all ranks in one group, in which gradients are reduced as "
        "without it: set parallel.ddp.comm_hook.subgroup_size for smaller groups");
  }

  std::unique_ptr<c10d::CommHookInterface> make(const Ranks& /*ranks*/) override {
    return std::make_unique<Reduce>(shared_);
  }

  std::vector<NamedStateful> kept_states() override {
    return {{.name = "post_localsgd", .state = &shared_->counts}};
  }

  std::optional<RankGroup> group() const override {
    return group_.count > 1 ? std::optional(group_) : std::nullopt;
  }

  bool averages_parameters() const override { return true; }

  void after_update() override {
    const int64_t start = shared_->config.start_localSGD_iter;
    const int64_t since_start = shared_->counts.updates++ - start;
    if (since_start < 0 || since_start % shared_->config.period != 0) return;
    average_parameters(parameters_, shared_->all);
  }

 private:
  std::shared_ptr<Shared> shared_;
  std::vector<NamedParameter> parameters_;
  RankGroup group_;
};

REGISTER_COMM_HOOK("post_localSGD", PostLocalSgd);

}  // namespace
}  // namespace phalanx
