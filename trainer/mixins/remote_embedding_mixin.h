// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/config/tree/forward.h"
#include "trainer/topology/numa_binding.h"

namespace phalanx {

class RemoteEmbedding;
class TrainerBase;
template <class Derived>
class MixedPrecisionMixin;

/// The section `parallel` of a training whose embeddings lie on ranks of their own.
struct RemoteEmbeddingConfig {
  int64_t servers = 1;
  std::vector<std::string> tables;
  NumaBinding numa_binding = NumaBinding::automatic;
  std::chrono::milliseconds join_timeout = std::chrono::minutes(5);
  std::chrono::milliseconds timeout = std::chrono::minutes(10);

  static void describe(config::Schema<RemoteEmbeddingConfig>& s);
};

/// What RemoteEmbeddingMixin does, whatever the composition.
class RemoteEmbeddingMixinBase {
 public:
  explicit RemoteEmbeddingMixinBase(RemoteEmbeddingConfig config);

  static void complete_config(config::Node& tree);
  static void fill_plan(const RemoteEmbeddingConfig& config, RunPlan& plan);

 protected:
  void set_up(TrainerBase& trainer);
  void close();

 private:
  RemoteEmbeddingConfig config_;
  std::shared_ptr<RemoteEmbedding> engine_;  ///< None: one rank.
};

/// Checks that all ranks mean the same run, has the last ones hold the embeddings, and the others
/// train in DDP.
template <class Derived>
class RemoteEmbeddingMixin : public Mixin<Derived, RemoteEmbeddingMixin>,
                             private RemoteEmbeddingMixinBase {
 public:
  static constexpr std::string_view kSection = "parallel";
  static constexpr std::string_view kMeaning = "which ranks hold the model's embeddings";
  using Config = RemoteEmbeddingConfig;
  using After = MixinList<MixedPrecisionMixin>;
  using Hooks = HookList<CompleteConfig, FillPlan, Setup, TrainingEnd>;

  using RemoteEmbeddingMixinBase::complete_config;
  using RemoteEmbeddingMixinBase::fill_plan;
  using RemoteEmbeddingMixinBase::RemoteEmbeddingMixinBase;

  void on_setup() { set_up(this->trainer()); }
  void on_training_end(const State& /*state*/) { close(); }
};

}  // namespace phalanx
