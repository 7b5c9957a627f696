// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/tracked_metric.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace phalanx {

const char* name_of(Better mode) { return mode == Better::lower ? "min" : "max"; }

bool is_better(double value, double other, Better mode, const Margin& margin) {
  if (mode == Better::lower) {
    return value < (margin.is_relative ? other * (1 - margin.amount) : other - margin.amount);
  }
  return value > (margin.is_relative ? other * (1 + margin.amount) : other + margin.amount);
}

bool TrackedMetric::take(double value, int64_t step, const Margin& margin) {
  if (!std::isfinite(value) || (best_ && !is_better(value, *best_, mode_, margin))) return false;
  best_ = value;
  best_step_ = step;
  return true;
}

bool TrackedMetric::has_reached(double value, double goal) const {
  return value == goal || is_better(value, goal, mode_);
}

void TrackedMetric::write(nlohmann::ordered_json& state) const {
  state["metric"] = name_;
  state["mode"] = name_of(mode_);
  state["best"] = best_ ? nlohmann::ordered_json(*best_) : nlohmann::ordered_json();
  state["best_step"] = best_step_;
}

bool TrackedMetric::read(const nlohmann::ordered_json& state) {
  if (state.at("metric").get<std::string>() != name_) return false;
  if (state.at("mode").get<std::string>() != name_of(mode_)) return false;
  const auto& best = state.at("best");
  best_ = best.is_null() ? std::nullopt : std::optional(best.get<double>());
  best_step_ = state.value("best_step", int64_t{0});  // an earlier version's plateau lacks it
  return true;
}

}  // namespace phalanx
