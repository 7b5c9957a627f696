// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

namespace phalanx {

/// Which way a metric is better.
enum class Better { lower, higher };

/// "min" or "max", as configs say it.
const char* name_of(Better mode);

/// How much better than another a value must be to count as better.
struct Margin {
  double amount = 0;         ///< >= 0.
  bool is_relative = false;  ///< A share of the other value, and not a difference.
};

/// Whether `value` is better than `other`, by more than the margin; a NaN never is.
bool is_better(double value, double other, Better mode, const Margin& margin = {});

/// A metric of validations, the best value of it so far, and when that was.
class TrackedMetric {
 public:
  TrackedMetric(std::string name, Better mode) : name_(std::move(name)), mode_(mode) {}

  const std::string& name() const { return name_; }
  /// Finite; none before the first value that is.
  std::optional<double> best() const { return best_; }
  int64_t best_step() const { return best_step_; }

  /// Takes the value of a step. True where it is the best now, and by more than the margin; a value
  /// that is not finite never is.
  bool take(double value, int64_t step, const Margin& margin = {});

  /// Whether `value` is as good as `goal`.
  bool has_reached(double value, double goal) const;

  /// Writes `metric`, `mode`, `best` and `best_step` into an object.
  void write(nlohmann::ordered_json& state) const;

  /// Takes over what `write` has written. False for a state of another metric, or of the other end
  /// of this one, which says nothing of it. Throws nlohmann::json::exception for any other object.
  bool read(const nlohmann::ordered_json& state);

 private:
  std::string name_;
  Better mode_;
  std::optional<double> best_;
  int64_t best_step_ = 0;
};

}  // namespace phalanx
