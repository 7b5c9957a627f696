// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/mixed_precision_mixin.h"

#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"
#include "trainer/loop/trainer_base.h"
#include "trainer/plan/run_plan.h"

namespace phalanx {
namespace {

at::ScalarType scalar_type(ComputePrecision precision) {
  return precision == ComputePrecision::float16 ? at::kHalf : at::kBFloat16;
}

}  // namespace

void MixedPrecisionConfig::describe(config::Schema<MixedPrecisionConfig>& s) {
  s.field("enabled", &MixedPrecisionConfig::enabled,
          "compute in `dtype`; weights and optimizer stay as they are")
      .resume_may_change();
  s.field("dtype", &MixedPrecisionConfig::dtype,
          "bfloat16: fewer digits, float32's range; float16: needs a loss scale")
      .choices({{"bfloat16", ComputePrecision::bfloat16}, {"float16", ComputePrecision::float16}})
      .resume_may_change();
  s.field("init_scale", &MixedPrecisionConfig::init_scale,
          "float16: what the loss is multiplied by at first")
      .greater_than(0);
  s.field("growth_factor", &MixedPrecisionConfig::growth_factor,
          "float16: the scale grows by it after growth_interval good steps")
      .greater_than(1);
  s.field("backoff_factor", &MixedPrecisionConfig::backoff_factor,
          "float16: the scale is multiplied by it after a step whose gradients overflowed")
      .greater_than(0)
      .less_than(1);
  s.field("growth_interval", &MixedPrecisionConfig::growth_interval,
          "float16: steps without overflow before the scale grows")
      .unit("steps")
      .at_least(1);
  s.ineffective({"dtype", "init_scale", "growth_factor", "backoff_factor", "growth_interval"},
                "enabled is false",
                [](const MixedPrecisionConfig& config) { return !config.enabled; });
  s.ineffective({"init_scale", "growth_factor", "backoff_factor", "growth_interval"},
                "dtype is bfloat16, which has no need of a loss scale",
                [](const MixedPrecisionConfig& config) {
                  return config.enabled && config.dtype == ComputePrecision::bfloat16;
                });
  s.preset("bf16", "compute in bfloat16", [](MixedPrecisionConfig& config) {
    config.enabled = true;
    config.dtype = ComputePrecision::bfloat16;
  });
  s.preset("fp16", "compute in float16, with a loss scale", [](MixedPrecisionConfig& config) {
    config.enabled = true;
    config.dtype = ComputePrecision::float16;
  });
}

void MixedPrecisionMixinBase::fill_plan(const MixedPrecisionConfig& config, RunPlan& plan) {
  if (config.enabled) plan.autocast = scalar_type(config.dtype);
}

void MixedPrecisionMixinBase::on_out_of_memory(std::vector<std::string>& advice) const {
  if (!config_.enabled) advice.emplace_back("mixed_precision: bf16 (activations)");
}

LossScaling MixedPrecisionMixinBase::scaling() const {
  return {.init_scale = config_.init_scale,
          .growth_factor = config_.growth_factor,
          .backoff_factor = config_.backoff_factor,
          .growth_interval = config_.growth_interval};
}

void MixedPrecisionMixinBase::set_up(TrainerBase& trainer) const {
  if (!config_.enabled) return;
  if (trainer.config().use_double_weight_precision) {
    throw UserError(
        "mixed_precision.enabled and use_double_weight_precision ask for less and for more "
        "precision: switch one of them off");
  }
  const bool needs_scale = config_.dtype == ComputePrecision::float16;
  trainer.use_mixed_precision(scalar_type(config_.dtype),
                              needs_scale ? std::optional(scaling()) : std::nullopt);
}

}  // namespace phalanx
