// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/progress_format.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "trainer/base/display_width.h"
#include "trainer/base/unsigned_nan.h"

namespace phalanx {
namespace {

constexpr std::string_view kSeparator = "  ";

// For files rather than for the eye.
bool is_hidden(std::string_view name) { return name == "step_seconds" || name == "data_seconds"; }

Segment segment_for(const std::string& name, const FieldValue& value) {
  constexpr int kOther = 5;
  if (const auto* text = std::get_if<std::string>(&value)) {
    return {fmt::format("{} {}", name, *text), kOther};
  }
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    return {fmt::format("{} {}", name, *integer), kOther};
  }
  const double real = std::get<double>(value);
  if (name == "loss") return {fmt::format("loss {}", format_number(real)), 1};
  if (name == "lr") return {fmt::format("lr {:.4g}", real), 4};
  if (name == "tokens_per_second") return {fmt::format("{} tokens/s", format_rate(real)), 3};
  if (name == "samples_per_second") return {fmt::format("{} samples/s", format_rate(real)), 3};
  return {fmt::format("{} {}", name, format_number(real)), kOther};
}

size_t length_of(const std::vector<Segment>& segments) {
  size_t length = 0;
  for (const Segment& segment : segments) length += display_width(segment.text) + kSeparator.size();
  return segments.empty() ? 0 : length - kSeparator.size();
}

}  // namespace

std::string format_number(double value) {
  // Four digits before the point leave none for after it, where the format below puts a zero.
  const double size = std::abs(value);
  if (size >= 999.95 && size < 9999.5) return fmt::format("{:.0f}", value);
  return fmt::format("{:#.4g}", unsigned_nan(value));
}

std::string format_rate(double value) {
  constexpr std::array<std::string_view, 5> kPrefixes{"", "k", "M", "G", "T"};
  size_t prefix = 0;
  // 999.95 would be shown as 1000 with 4 digits, which is the next prefix's.
  while (std::abs(value) >= 999.95 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  return format_number(value) + std::string(kPrefixes[prefix]);
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds > 1e15) return "?";
  const auto whole = static_cast<int64_t>(std::llround(std::max(seconds, 0.0)));
  constexpr int64_t kMinute = 60;
  constexpr int64_t kHour = 60 * kMinute;
  constexpr int64_t kDay = 24 * kHour;
  if (whole < kMinute) return fmt::format("{}s", whole);
  if (whole < kHour) return fmt::format("{}m{:02d}s", whole / kMinute, whole % kMinute);
  if (whole < kDay) return fmt::format("{}h{:02d}m", whole / kHour, whole % kHour / kMinute);
  return fmt::format("{}d{:02d}h", whole / kDay, whole % kDay / kHour);
}

RemainingTime::RemainingTime(std::optional<int64_t> max_steps, std::optional<int64_t> resumed_step)
    : max_steps_(max_steps) {
  if (!resumed_step) start_ = State{};
}

std::optional<double> RemainingTime::after(const State& state) {
  // How long the run had taken when it was resumed, the first record does not say.
  if (!start_) start_ = state;
  const int64_t steps = state.step - start_->step;
  if (!max_steps_ || steps <= 0 || state.step >= *max_steps_) return {};
  const double pace = (state.elapsed - start_->elapsed) / static_cast<double>(steps);
  return pace * static_cast<double>(*max_steps_ - state.step);
}

std::vector<Segment> progress_segments(const Record& record, std::optional<int64_t> max_steps,
                                       std::optional<double> remaining_seconds) {
  std::vector<Segment> segments;
  segments.push_back({max_steps ? fmt::format("step {}/{}", record.state.step, *max_steps)
                                : fmt::format("step {}", record.state.step),
                      0});
  for (const auto& [name, value] : record.fields) {
    if (!is_hidden(name)) segments.push_back(segment_for(name, value));
  }
  segments.push_back({fmt::format("{} elapsed", format_duration(record.state.elapsed)), 4});
  if (remaining_seconds) {
    segments.push_back({fmt::format("{} left", format_duration(*remaining_seconds)), 2});
  }
  return segments;
}

std::string join_segments(std::vector<Segment> segments, size_t width) {
  while (segments.size() > 1 && length_of(segments) > width) {
    // The last of the least important ones.
    const auto least = std::max_element(
        segments.rbegin(), segments.rend(),
        [](const auto& left, const auto& right) { return left.rank < right.rank; });
    segments.erase(std::next(least).base());
  }
  std::vector<std::string_view> texts;
  for (const Segment& segment : segments) texts.push_back(segment.text);
  return std::string(first_columns(fmt::format("{}", fmt::join(texts, kSeparator)), width));
}

}  // namespace phalanx
