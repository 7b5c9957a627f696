// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/config/tree/forward.h"
#include "trainer/precision/grad_scaler.h"

namespace phalanx {

class TrainerBase;

/// What the forward pass computes in.
enum class ComputePrecision { bfloat16, float16 };

/// The section `mixed_precision`: ml's and GradScaler's names and defaults.
struct MixedPrecisionConfig {
  bool enabled = false;
  ComputePrecision dtype = ComputePrecision::bfloat16;
  double init_scale = LossScaling().init_scale;
  double growth_factor = LossScaling().growth_factor;
  double backoff_factor = LossScaling().backoff_factor;
  int64_t growth_interval = LossScaling().growth_interval;

  static void describe(config::Schema<MixedPrecisionConfig>& s);
};

/// What MixedPrecisionMixin does, whatever the composition.
class MixedPrecisionMixinBase {
 public:
  explicit MixedPrecisionMixinBase(MixedPrecisionConfig config) : config_(config) {}

  static void fill_plan(const MixedPrecisionConfig& config, RunPlan& plan);
  void on_out_of_memory(std::vector<std::string>& advice) const;

 protected:
  void set_up(TrainerBase& trainer) const;

 private:
  LossScaling scaling() const;

  MixedPrecisionConfig config_;
};

/// Computes the forward pass in bfloat16 or float16 while weights stay in single precision: by
/// autocast for one rank and DDP, by gathering low-precision copies in FSDP; float16 with a loss
/// scale that adapts.
template <class Derived>
class MixedPrecisionMixin : public Mixin<Derived, MixedPrecisionMixin>,
                            private MixedPrecisionMixinBase {
 public:
  static constexpr std::string_view kSection = "mixed_precision";
  static constexpr std::string_view kMeaning = "a forward pass in bfloat16 or float16";
  using Config = MixedPrecisionConfig;
  using Hooks = HookList<FillPlan, Setup, OutOfMemory>;

  using MixedPrecisionMixinBase::fill_plan;
  using MixedPrecisionMixinBase::MixedPrecisionMixinBase;
  using MixedPrecisionMixinBase::on_out_of_memory;

  void on_setup() { set_up(this->trainer()); }
};

}  // namespace phalanx
