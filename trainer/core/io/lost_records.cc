#include "trainer/core/io/lost_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "trainer/core/io/file.h"

namespace phalanx {
namespace {

std::string line(const std::string& log, int64_t records, std::string_view when,
                 const std::string& why) {
  return fmt::format("warning: {} lacks {} record{}{}: {}", log, records, records == 1 ? "" : "s",
                     when, why);
}

}  // namespace

LostRecords::LostRecords(Tell tell, Clock clock)
    : tell_(std::move(tell)), clock_(std::move(clock)) {}

void LostRecords::attempt(const std::string& log, const std::function<void()>& write) {
  try {
    write();
  } catch (const IoError& error) {
    add(log, 1, error.what());
  } catch (const std::system_error& error) {
    add(log, 1, error.what());
  }
}

void LostRecords::add(const std::string& log, int64_t records, const std::string& why) {
  Loss& loss = losses_[log];
  loss.records += records;
  loss.why = why;
  loss.is_told = false;
}

void LostRecords::tell_if_due() {
  const auto is_new = [](const auto& entry) { return !entry.second.is_told; };
  if (std::none_of(losses_.begin(), losses_.end(), is_new)) return;
  const auto now = clock_();
  if (told_at_ && now - *told_at_ < kPause) return;
  told_at_ = now;
  for (auto& [log, loss] : losses_) {
    if (std::exchange(loss.is_told, true)) continue;
    tell_(line(log, loss.records, " so far", loss.why));
  }
}

void LostRecords::tell_in_the_end() {
  for (const auto& [log, loss] : losses_) tell_(line(log, loss.records, "", loss.why));
  losses_.clear();
}

}  // namespace phalanx
