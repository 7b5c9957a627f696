// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/compute/gemm.h"
#include "trainer/config/tree/forward.h"

namespace phalanx {

class TrainerBase;

/// The section `compute`: what the CPU computes with.
struct ComputeConfig {
  compute::Gemm gemm = compute::Gemm::automatic;

  static void describe(config::Schema<ComputeConfig>& s);
};

/// What ComputeMixin does, whatever the composition.
class ComputeMixinBase {
 public:
  explicit ComputeMixinBase(ComputeConfig /*config*/) {}

  static void fill_plan(const ComputeConfig& config, RunPlan& plan);

 protected:
  static void describe_choice(const TrainerBase& trainer, std::vector<ScreenLine>& lines);
};

/// Computes matrix products with what is fastest on this machine. The run chooses before ranks are
/// there (trainer/run/products.h); the choice stands in the resolved config.
template <class Derived>
class ComputeMixin : public Mixin<Derived, ComputeMixin>, private ComputeMixinBase {
 public:
  static constexpr std::string_view kSection = "compute";
  static constexpr std::string_view kMeaning = "what the CPU computes with";
  using Config = ComputeConfig;
  using Hooks = HookList<FillPlan, StartScreen>;

  using ComputeMixinBase::ComputeMixinBase;
  using ComputeMixinBase::fill_plan;

  void on_start_screen(std::vector<ScreenLine>& lines) { describe_choice(this->trainer(), lines); }
};

}  // namespace phalanx
