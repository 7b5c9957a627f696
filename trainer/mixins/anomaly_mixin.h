// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/csrc/autograd/anomaly_mode.h>

#include <string_view>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/config/tree/schema.h"

namespace phalanx {

/// The section `anomaly`: ml's and TorchTNT's detect_anomaly.
struct AnomalyConfig {
  bool detect = true;
  bool check_nan = true;

  static void describe(config::Schema<AnomalyConfig>& s) {
    s.field("detect", &AnomalyConfig::detect, "record which forward made each backward; slow")
        .resume_may_change();
    s.field("check_nan", &AnomalyConfig::check_nan, "end the run when a backward returns NaN")
        .resume_may_change();
    s.ineffective({"check_nan"}, "detect is false",
                  [](const AnomalyConfig& c) { return !c.detect; });
  }
};

/// Switches autograd's anomaly mode on for the run: the first backward function that returns NaN
/// ends it and is named (torch.autograd.set_detect_anomaly).
template <class Derived>
class AnomalyMixin : public Mixin<Derived, AnomalyMixin> {
 public:
  static constexpr std::string_view kSection = "anomaly";
  static constexpr std::string_view kMeaning = "looking for the origin of NaN in gradients";
  using Config = AnomalyConfig;
  using Hooks = HookList<TrainingStart, TrainingEnd>;

  explicit AnomalyMixin(Config config) : config_(config) {}

  void on_training_start(const State&) {
    torch::autograd::AnomalyMode::set_enabled(config_.detect, config_.check_nan);
  }
  void on_training_end(const State&) { torch::autograd::AnomalyMode::set_enabled(false); }

 private:
  Config config_;
};

}  // namespace phalanx
