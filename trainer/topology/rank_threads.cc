// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/rank_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "trainer/base/user_error.h"
#include "trainer/host/cores.h"

namespace phalanx {
namespace {

constexpr const char* kThreads = "OMP_NUM_THREADS";
// What share_threads has set it to: another value since then is somebody's choice.
constexpr const char* kShared = "PHALANX_OMP_NUM_THREADS";

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string_view() : std::string_view(text);
}

// Empty where nobody has chosen.
std::string_view chosen_text() {
  const std::string_view text = variable(kThreads);
  return text == variable(kShared) ? std::string_view() : text;
}

// "4", or "4,2" with the threads of nested regions, as OpenMP reads it.
int64_t first_number(std::string_view text) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();  // LibTorch counts them as int
  std::string_view rest = text;
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  int64_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const bool is_whole = error == std::errc() && (rest.empty() || rest.starts_with(','));
  if (is_whole && number >= 1 && number <= kMost) return number;
  throw UserError(fmt::format("{} is '{}': write a whole number from 1 to {}, or unset it",
                              kThreads, text, kMost));
}

// "4 ranks of 2 threads each (OMP_NUM_THREADS) share"
std::string counted(int64_t ranks, int64_t threads) {
  return ranks == 1
             ? fmt::format("a rank of {} threads ({}) has", threads, kThreads)
             : fmt::format("{} ranks of {} threads each ({}) share", ranks, threads, kThreads);
}

}  // namespace

int64_t threads_of_rank(const RankCores& cores, int64_t ranks_of_host,
                        const std::filesystem::path& root) {
  const int64_t of_cores = count_cores(cores.units) / cores.ranks;
  return std::max<int64_t>(std::min(of_cores, cpu_quota(root) / ranks_of_host), 1);
}

std::optional<int64_t> chosen_threads() {
  const std::string_view text = chosen_text();
  return text.empty() ? std::nullopt : std::optional(first_number(text));
}

void share_threads(int64_t threads) {
  if (!chosen_text().empty()) return;
  const std::string text = std::to_string(threads);
  ::setenv(kThreads, text.c_str(), 1);
  ::setenv(kShared, text.c_str(), 1);
}

std::optional<std::string> too_many_threads(int64_t threads, const RankCores& cores,
                                            int64_t ranks_of_host,
                                            const std::filesystem::path& root) {
  if (threads == 1 || threads <= threads_of_rank(cores, ranks_of_host, root)) return std::nullopt;
  if (threads > count_cores(cores.units) / cores.ranks) {
    return fmt::format("{} cores {}: they will wait for each other", counted(cores.ranks, threads),
                       describe(cores.units));
  }
  return fmt::format(
      "{} a quota of control groups that allows {} at a time: they will wait for "
      "each other",
      counted(ranks_of_host, threads), std::max<int64_t>(cpu_quota(root), 1));
}

}  // namespace phalanx
