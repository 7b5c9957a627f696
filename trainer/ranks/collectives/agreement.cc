// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/base/xxh3.h"
#include "trainer/host/host.h"
#include "trainer/io/file.h"
#include "trainer/ranks/ranks.h"

namespace phalanx {
namespace {

std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// The first line in which two texts differ, of each.
std::pair<std::string, std::string> first_difference(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const std::string_view line_a = take_line(a);
    const std::string_view line_b = take_line(b);
    if (line_a != line_b) return {std::string(line_a), std::string(line_b)};
  }
  return {};
}

// The first line in which this text of rank 0 and that of `other` differ.
std::pair<std::string, std::string> difference_of(const Ranks& ranks, const std::string& text,
                                                  int64_t other) {
  const std::string theirs = ranks.broadcast(text, other);
  return first_difference(ranks.broadcast(text, 0), theirs);
}

[[noreturn]] void refuse(const Ranks& ranks, const Topic& topic, int64_t other) {
  auto difference = difference_of(ranks, topic.text, other);
  if (topic.details) {
    const bool is_compared = ranks.is_first() || ranks.rank() == other;
    const auto finer = difference_of(ranks, is_compared ? topic.details() : "", other);
    if (finer.first != finer.second) difference = finer;
  }
  const auto [first_host, other_host] = difference_of(ranks, host_name(), other);
  const auto on = [](const std::string& host) { return host.empty() ? "" : " on " + host; };
  throw UserError(fmt::format(
      "{} of rank {} is not that of rank 0; start all ranks with the same.\n  rank 0{}: "
      "{}\n  rank {}{}: "
      "{}",
      topic.name, other, on(first_host), difference.first, other, on(other_host),
      difference.second));
}

}  // namespace

void require_agreement(const Ranks& ranks, const std::vector<Topic>& topics) {
  std::string mine;
  for (const auto& topic : topics) mine += xxh3_digits128(topic.text) + "\n";
  const std::vector<std::string> all = ranks.all_gather(mine);
  const auto differs = [&](const std::string& theirs) { return theirs != all.front(); };
  const auto other = std::find_if(all.begin(), all.end(), differs);
  if (other == all.end()) return;
  std::string_view theirs = *other;
  std::string_view first = all.front();
  for (const auto& topic : topics) {
    if (take_line(theirs) != take_line(first)) refuse(ranks, topic, other - all.begin());
  }
}

std::string describe_program() { return "checksum " + xxh3_digits128(read_text("/proc/self/exe")); }

}  // namespace phalanx
