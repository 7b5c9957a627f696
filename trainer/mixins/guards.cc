// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/guards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "trainer/base/json_cause.h"
#include "trainer/base/unsigned_nan.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/schema.h"

namespace phalanx {
namespace {

using Json = nlohmann::ordered_json;

bool leaves_a_step_out(OnBadStep action) {
  return action == OnBadStep::skip || action == OnBadStep::rollback;
}

std::string nonfinite(std::string_view name, double value) {
  return std::isfinite(value) ? "" : fmt::format("the {} is {}", name, unsigned_nan(value));
}

// What is wrong with a finite value; empty: nothing. By the distance from the median, so that a
// negative loss may be judged too. Values that are mostly 0 have no scale to go by.
std::string jump(std::string_view name, double value, const RunningMedian& last,
                 std::optional<double> factor) {
  const auto median = last.median();
  if (!factor || !median || *median == 0) return "";
  if (value <= *median + (*factor - 1) * std::abs(*median)) return "";
  return fmt::format("the {}, {:.6g}, has jumped: the median of the last {} steps is {:.6g}", name,
                     value, last.values().size(), *median);
}

}  // namespace

void GuardsConfig::describe(config::Schema<GuardsConfig>& s) {
  s.field("on_nonfinite", &GuardsConfig::on_nonfinite,
          "when the loss or the gradient norm is NaN or infinite; stop: end the run with an error; "
          "skip: drop the step's gradients and go on; rollback: go back to the last checkpoint, "
          "and on behind this step's samples; null: as training.stop_on_nonfinite_loss says")
      .choices(
          {{"stop", OnBadStep::stop}, {"skip", OnBadStep::skip}, {"rollback", OnBadStep::rollback}})
      .resume_may_change();
  s.field("on_spike", &GuardsConfig::on_spike,
          "when the loss or the gradient norm is far above the median of the last steps; none: go "
          "on; the others as in on_nonfinite")
      .choices({{"none", OnBadStep::none},
                {"stop", OnBadStep::stop},
                {"skip", OnBadStep::skip},
                {"rollback", OnBadStep::rollback}})
      .resume_may_change();
  s.field("loss_factor", &GuardsConfig::loss_factor,
          "a loss above this multiple of the median is a spike; null: do not judge the loss")
      .greater_than(1)
      .resume_may_change();
  s.field("grad_norm_factor", &GuardsConfig::grad_norm_factor,
          "a gradient norm, before clipping, above this multiple of its median is a spike; null: "
          "do not judge it")
      .greater_than(1)
      .resume_may_change();
  s.field("window", &GuardsConfig::window,
          "the median is over this many good steps; until there are as many, no step is a spike")
      .unit("steps")
      .in_range(1, 100'000)
      .resume_may_change();
  s.field("max_skips", &GuardsConfig::max_skips,
          "the run ends with an error when more steps than this were skipped or undone within "
          "within_steps")
      .unit("steps")
      .at_least(0)
      .resume_may_change();
  s.field("within_steps", &GuardsConfig::within_steps, "the last steps in which max_skips counts")
      .count()
      .unit("steps")
      .at_least(1)
      .resume_may_change();
  s.ineffective({"loss_factor", "grad_norm_factor", "window"}, "on_spike is none",
                [](const GuardsConfig& c) { return c.on_spike == OnBadStep::none; });
  s.ineffective({"max_skips", "within_steps"}, "no guard skips or undoes steps",
                [](const GuardsConfig& c) { return !c.leaves_out(); });
  s.check([](const GuardsConfig& c) -> std::optional<std::string> {
    if (c.on_spike == OnBadStep::none || c.loss_factor || c.grad_norm_factor) return std::nullopt;
    return "on_spike is set, and loss_factor and grad_norm_factor are null: no step is a spike; "
           "set one of them, or on_spike: none";
  });
}

// Where the run ends by what is not finite, the step's own check says more (finite_check.h).
bool GuardsConfig::is_on() const {
  return on_spike != OnBadStep::none || (on_nonfinite && leaves_a_step_out(*on_nonfinite));
}

bool GuardsConfig::leaves_out() const {
  return leaves_a_step_out(on_spike) || (on_nonfinite && leaves_a_step_out(*on_nonfinite));
}

bool Guards::takes_nonfinite() const {
  return config_.on_nonfinite && leaves_a_step_out(*config_.on_nonfinite);
}

Guards::Medians& Guards::medians_of(std::string_view optimizer) {
  const RunningMedian none(static_cast<std::size_t>(config_.window));
  return medians_.try_emplace(std::string(optimizer), Medians{none, none}).first->second;
}

// Updates of several optimizers in one step are one attempt.
void Guards::count(const StepToJudge& step) {
  if (step.step != counted_step_) ++attempts_;
  counted_step_ = step.step;
  const auto is_long_ago = [&](const LeftOut& out) {
    return out.attempt <= attempts_ - config_.within_steps;
  };
  while (!left_out_.empty() && is_long_ago(left_out_.front())) left_out_.pop_front();
}

StepJudgement Guards::judge(const StepToJudge& step) {
  count(step);
  Medians& medians = medians_of(step.optimizer);
  const std::string norm_name =
      step.optimizer.empty() ? "gradient norm" : fmt::format("gradient norm of {}", step.optimizer);
  std::string problem = step.loss ? nonfinite("loss", *step.loss) : "";
  if (problem.empty()) problem = nonfinite(norm_name, step.grad_norm);
  const bool is_finite = problem.empty();
  if (is_finite && config_.on_spike != OnBadStep::none) {
    if (step.loss) problem = jump("loss", *step.loss, medians.loss, config_.loss_factor);
    if (problem.empty()) {
      problem = jump(norm_name, step.grad_norm, medians.grad_norm, config_.grad_norm_factor);
    }
  }
  if (problem.empty()) {
    if (step.loss) medians.loss.add(*step.loss);
    medians.grad_norm.add(step.grad_norm);
    return {};
  }
  const OnBadStep action =
      is_finite ? config_.on_spike : config_.on_nonfinite.value_or(OnBadStep::none);
  if (action == OnBadStep::none) return {};
  const std::string samples = step.samples ? step.samples() : "";
  const std::string reason = problem + (samples.empty() ? "" : "; " + samples);
  if (action == OnBadStep::stop) {
    throw std::runtime_error(fmt::format(
        "{}. The weights are as they were before this update. Look at these samples, or start "
        "again "
        "from the newest checkpoint with a lower learning rate or clipped gradients, or set "
        "guards.{} to skip or rollback",
        reason, is_finite ? "on_spike" : "on_nonfinite"));
  }
  leave_out(step.step, reason);
  goes_back_ = action == OnBadStep::rollback;
  return {.verdict = goes_back_ ? StepVerdict::undo : StepVerdict::skip, .reason = reason};
}

// A step of which several updates are left out counts once.
void Guards::leave_out(int64_t step, const std::string& reason) {
  if (!left_out_.empty() && left_out_.back().attempt == attempts_) {
    left_out_.back().reason += "; " + reason;
    return;
  }
  left_out_.push_back({.attempt = attempts_, .step = step, .reason = reason});
  if (static_cast<int64_t>(left_out_.size()) <= config_.max_skips) return;
  std::string steps;
  for (const LeftOut& out : left_out_)
    steps += fmt::format("\n  step {}: {}", out.step, out.reason);
  throw std::runtime_error(fmt::format(
      "{} of the last {} steps are bad, and guards.max_skips is {}:{}\nStart again from the newest "
      "checkpoint with a lower learning rate or clipped gradients, or look at these samples",
      left_out_.size(), std::min(attempts_, config_.within_steps), config_.max_skips, steps));
}

std::string Guards::went_back() {
  // The checkpoint had no state of the guards: they begin anew.
  if (std::exchange(goes_back_, false)) medians_.clear();
  counted_step_ = 0;
  return left_out_.empty()
             ? ""
             : fmt::format("step {}: {}", left_out_.back().step, left_out_.back().reason);
}

std::string Guards::json() const {
  Json medians = Json::array();
  for (const auto& [optimizer, of] : medians_) {
    medians.push_back({{"optimizer", optimizer},
                       {"loss", of.loss.values()},
                       {"grad_norm", of.grad_norm.values()}});
  }
  Json left_out = Json::array();
  for (const LeftOut& out : left_out_) {
    left_out.push_back({{"attempt", out.attempt}, {"step", out.step}, {"reason", out.reason}});
  }
  return Json{{"attempts", attempts_}, {"medians", medians}, {"left_out", left_out}}.dump();
}

void Guards::restore(std::string_view json) {
  try {
    const Json state = Json::parse(json);
    medians_.clear();
    for (const Json& of : state.at("medians")) {
      Medians& medians = medians_of(of.at("optimizer").get<std::string>());
      medians.loss.restore(of.at("loss").get<std::vector<double>>());
      medians.grad_norm.restore(of.at("grad_norm").get<std::vector<double>>());
    }
    // What was left out since the checkpoint stays counted where the run goes back to it.
    if (std::exchange(goes_back_, false)) return;
    attempts_ = state.at("attempts").get<int64_t>();
    left_out_.clear();
    for (const Json& out : state.at("left_out")) {
      left_out_.push_back({.attempt = out.at("attempt").get<int64_t>(),
                           .step = out.at("step").get<int64_t>(),
                           .reason = out.at("reason").get<std::string>()});
    }
  } catch (const nlohmann::json::exception& error) {
    throw UserError(
        fmt::format("the checkpoint's state of guards cannot be read: {}", json_cause(error)));
  }
}

}  // namespace phalanx
