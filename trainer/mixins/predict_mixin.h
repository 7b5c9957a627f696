// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "trainer/api/hooks.h"
#include "trainer/api/mixin.h"
#include "trainer/config/tree/forward.h"

namespace phalanx {

/// What becomes of a sample that no prediction can be made of.
enum class OnPredictError {
  stop,  ///< It ends the command.
  mark,  ///< Its row says what is wrong.
};

/// The section `predict`: how predictions are made.
struct PredictConfig {
  int64_t batch_size = 8;
  OnPredictError on_error = OnPredictError::stop;
  double max_marked = 0.1;

  static void describe(config::Schema<PredictConfig>& s);
};

inline constexpr std::string_view kPredictSection = "predict";

/// The section of a config; its defaults where the composition has none.
PredictConfig predict_config(const config::Node& resolved);

/// Holds the section for `trainer predict`.
template <class Derived>
class PredictMixin : public Mixin<Derived, PredictMixin> {
 public:
  static constexpr std::string_view kSection = kPredictSection;
  static constexpr std::string_view kMeaning = "how trainer predict makes predictions";
  using Config = PredictConfig;
  using Hooks = HookList<>;

  explicit PredictMixin(Config /*config*/) {}
};

}  // namespace phalanx
