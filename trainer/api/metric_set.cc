// SPDX-License-Identifier: Apache-2.0
#include "trainer/api/metric_set.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "trainer/api/metric.h"

namespace phalanx {
namespace {

// The other keys of metrics.jsonl.
constexpr std::array<std::string_view, 17> kTaken{"loss",         "lr",
                                                  "step",         "epoch",
                                                  "samples",      "tokens",
                                                  "phase",        "elapsed",
                                                  "time",         "nonfinite",
                                                  "grad_norm",    "loss_scale",
                                                  "step_seconds", "skipped_steps",
                                                  "data_seconds", "tokens_per_second",
                                                  "skipped"};

std::vector<std::string> names_of(const MetricSet::Entry& entry) {
  std::vector<std::string> names;
  for (const std::string& suffix : entry.metric->names()) {
    names.push_back(metric_value_name(entry.name, suffix));
  }
  return names;
}

}  // namespace

bool is_measured(MeasuredIn where, Phase phase) {
  switch (where) {
    case MeasuredIn::training:
      return phase == Phase::train;
    case MeasuredIn::validation:
      return phase == Phase::validate;
    case MeasuredIn::both:
      return phase != Phase::predict;
  }
  return false;
}

std::string metric_value_name(const std::string& metric, const std::string& suffix) {
  return suffix.empty() ? metric : metric + "_" + suffix;
}

void MetricSet::add(std::string name, std::shared_ptr<const Metric> metric, MeasuredIn where) {
  if (name.empty() || name.find_first_of("/ \t\n") != std::string::npos) {
    throw std::invalid_argument("'" + name +
                                "' is no name of a metric: write one without blanks and slashes");
  }
  if (metric == nullptr) throw std::invalid_argument("the metric '" + name + "' is a null pointer");
  Entry entry{.name = std::move(name), .metric = std::move(metric), .where = where};
  for (const std::string& added : names_of(entry)) {
    const bool is_declared = std::ranges::any_of(entries_, [&](const Entry& other) {
      const auto names = names_of(other);
      return other.name == entry.name || std::ranges::find(names, added) != names.end();
    });
    if (is_declared) throw std::invalid_argument("two metrics give the value '" + added + "'");
    if (std::ranges::find(kTaken, added) != kTaken.end()) {
      throw std::invalid_argument("a metric may not give the value '" + added +
                                  "': every record has one of that name");
    }
  }
  entries_.push_back(std::move(entry));
}

std::vector<std::string> MetricSet::value_names(Phase phase) const {
  std::vector<std::string> all;
  for (const Entry& entry : entries_) {
    if (!is_measured(entry.where, phase)) continue;
    std::ranges::move(names_of(entry), std::back_inserter(all));
  }
  return all;
}

}  // namespace phalanx
