// SPDX-License-Identifier: Apache-2.0
#include "trainer/host/node_list.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "trainer/base/take_until.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

// A broken variable must not take all memory.
constexpr int64_t kMostNodes = 1 << 20;

[[noreturn]] void refuse(std::string_view what, std::string_view text) {
  throw UserError(std::string(what) + ": '" + std::string(text) + "'");
}

[[noreturn]] void refuse_nodes(std::string_view list) { refuse("this is no list of nodes", list); }

std::optional<int64_t> whole_number(std::string_view digits) {
  int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value);
  const bool is_number = error == std::errc() && rest == end && value >= 0;
  return is_number ? std::optional(value) : std::nullopt;
}

// "08-10" adds 08, 09, 10: as wide as the first number is written.
void add_range(std::string_view range, std::vector<std::string>& numbers, std::string_view list) {
  const std::string_view first = take_until(range, '-');
  const std::string_view last = range.empty() ? first : range;
  const auto from = whole_number(first);
  const auto to = whole_number(last);
  if (!from || !to || *to < *from || *to - *from >= kMostNodes) refuse_nodes(list);
  for (int64_t number = *from; number <= *to; ++number) {
    std::string digits = std::to_string(number);
    if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
    numbers.push_back(std::move(digits));
  }
}

std::vector<std::string> numbers_in(std::string_view ranges, std::string_view list) {
  std::vector<std::string> numbers;
  while (!ranges.empty()) add_range(take_until(ranges, ','), numbers, list);
  if (numbers.empty()) refuse_nodes(list);
  return numbers;
}

// Every beginning with every end, the ends of one beginning together.
std::vector<std::string> products(const std::vector<std::string>& beginnings,
                                  const std::vector<std::string>& ends, std::string_view list) {
  if (static_cast<int64_t>(beginnings.size() * ends.size()) > kMostNodes) refuse_nodes(list);
  std::vector<std::string> names;
  for (const std::string& beginning : beginnings) {
    for (const std::string& end : ends) names.push_back(beginning + end);
  }
  return names;
}

// One name, whose brackets hold no other brackets: "r[1-2]n[0-1]".
std::vector<std::string> expand_name(std::string_view name, std::string_view list) {
  std::vector<std::string> names{""};
  while (!name.empty()) {
    const size_t open = std::min(name.find('['), name.size());
    names = products(names, {std::string(name.substr(0, open))}, list);
    if (open == name.size()) break;
    const size_t close = name.find(']', open);
    if (close == std::string_view::npos) refuse_nodes(list);
    names = products(names, numbers_in(name.substr(open + 1, close - open - 1), list), list);
    name.remove_prefix(close + 1);
  }
  return names;
}

// Takes up to a comma outside brackets.
std::string_view take_name(std::string_view& list) {
  bool is_inside = false;
  size_t size = 0;
  for (; size < list.size() && (is_inside || list[size] != ','); ++size) {
    if (list[size] == '[') is_inside = true;
    if (list[size] == ']') is_inside = false;
  }
  const std::string_view name = list.substr(0, size);
  list.remove_prefix(std::min(size + 1, list.size()));
  return name;
}

}  // namespace

std::vector<std::string> expand_node_list(std::string_view list) {
  std::vector<std::string> names;
  for (std::string_view rest = list; !rest.empty();) {
    std::vector<std::string> more = expand_name(take_name(rest), list);
    if (more.front().empty()) refuse_nodes(list);
    std::ranges::move(more, std::back_inserter(names));
  }
  if (names.empty()) refuse_nodes(list);
  return names;
}

std::vector<int64_t> expand_task_counts(std::string_view counts) {
  std::vector<int64_t> tasks;
  for (std::string_view rest = counts; !rest.empty();) {
    std::string_view times = take_until(rest, ',');
    const auto count = whole_number(take_until(times, '('));
    std::optional<int64_t> nodes = 1;
    if (!times.empty()) {
      const bool is_closed = times.starts_with('x') && times.ends_with(')');
      nodes = is_closed ? whole_number(times.substr(1, times.size() - 2)) : std::nullopt;
    }
    if (!count || !nodes || *nodes > kMostNodes) refuse("these are no counts of tasks", counts);
    tasks.insert(tasks.end(), static_cast<size_t>(*nodes), *count);
  }
  if (tasks.empty()) refuse("these are no counts of tasks", counts);
  return tasks;
}

}  // namespace phalanx
