// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/lost_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "trainer/io/file.h"

namespace phalanx {
namespace {

std::string line(const std::string& log, const Missing& missing, std::string_view when) {
  return fmt::format("warning: {} lacks {} record{}{}: {}", log, missing.records,
                     missing.records == 1 ? "" : "s", when, missing.why);
}

}  // namespace

bool nobody_reads(int error) { return error == EPIPE || error == EBADF; }

LostRecords::LostRecords(Tell tell, Clock clock)
    : tell_(std::move(tell)), clock_(std::move(clock)) {}

void LostRecords::attempt(const std::string& log, const std::function<void()>& write) {
  try {
    write();
  } catch (const IoError& error) {
    add(log, {.records = 1, .why = error.what()});
  } catch (const std::system_error& error) {
    add(log, {.records = 1, .why = error.what()});
  }
}

void LostRecords::add(const std::string& log, const Missing& missing) {
  if (missing.records == 0) return;
  auto& [all, is_told] = losses_[log];
  all.records += missing.records;
  all.why = missing.why;
  is_told = false;
}

void LostRecords::report_if_due() {
  const auto is_new = [](const auto& entry) { return !entry.second.is_told; };
  if (std::none_of(losses_.begin(), losses_.end(), is_new)) return;
  const auto now = clock_();
  if (told_at_ && now - *told_at_ < kPause) return;
  told_at_ = now;
  for (auto& [log, known] : losses_) {
    if (!std::exchange(known.is_told, true)) tell_(line(log, known.missing, " so far"));
  }
}

void LostRecords::report_at_end() {
  for (const auto& [log, known] : losses_) tell_(line(log, known.missing, ""));
  losses_.clear();
}

}  // namespace phalanx
