// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/sinks/progress_sink.h"

#include <fmt/format.h>

#include <limits>

#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

std::optional<double> loss_of(const Record& record) {
  for (const auto& [name, value] : record.fields) {
    const auto* loss = std::get_if<double>(&value);
    if (name == "loss" && loss != nullptr) return *loss;
  }
  return {};
}

// The step stands out.
std::string colored(const std::string& line, size_t step_size) {
  if (line.size() < step_size) return line;
  return fmt::format("\x1b[1m{}\x1b[0m{}", line.substr(0, step_size), line.substr(step_size));
}

}  // namespace

void ProgressSink::open(const RunDescription& run, std::optional<int64_t> resumed_step) {
  max_steps_ = run.max_steps;
  remaining_.emplace(run.max_steps, resumed_step);
}

void ProgressSink::write(const Record& record) {
  const bool validation = record.phase == Phase::validate;
  if (validation) validation_loss_ = loss_of(record);
  std::optional<double> remaining;
  if (!validation && remaining_) remaining = remaining_->after(record.state);
  if (validation && !has_trained_ && remaining_) remaining_->begin_at(record.state);
  has_trained_ = has_trained_ || !validation;
  std::vector<Segment> segments = progress_segments(record, max_steps_, remaining);

  if (!console_.is_terminal()) {
    const std::string line = join_segments(std::move(segments), std::numeric_limits<size_t>::max());
    return console_.line(fmt::format("{:<8}  {}", to_string(record.phase), line));
  }
  // On a terminal the last validation loss stays in the line, beside the training's own figures.
  if (!validation || train_segments_.empty()) train_segments_ = std::move(segments);
  show_live(train_segments_);
}

void ProgressSink::show_live(std::vector<Segment> segments) {
  if (validation_loss_) {
    const size_t after_loss = std::min<size_t>(segments.size(), 2);
    segments.insert(segments.begin() + static_cast<std::ptrdiff_t>(after_loss),
                    {fmt::format("validation loss {}", format_number(*validation_loss_)), 2});
  }
  const size_t step_size = segments.front().text.size();
  // A line of the full width would scroll on terminals that wrap at once.
  const auto width = static_cast<size_t>(std::max(console_.width() - 1, 1));
  const std::string line = join_segments(std::move(segments), width);
  console_.live(console_.color() ? colored(line, step_size) : line);
}

REGISTER_SINK("progress", ProgressSink);

}  // namespace phalanx
