// SPDX-License-Identifier: Apache-2.0
#include "trainer/rpc/worker_names.h"

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>

#include "trainer/ranks/ranks.h"

namespace phalanx::rpc {
namespace {

// LibTorch's autograd keeps the rank of a process's first agent until the process ends.
constexpr int64_t kNoRank = -1;
std::atomic<int64_t> rank_of_process = kNoRank;

// LibTorch takes no other (WorkerInfo), and says so on the worker that has it only.
bool is_worker_name(const std::string& name) {
  constexpr size_t kMostBytes = 127;
  return !name.empty() && name.size() <= kMostBytes &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             "-_:") == std::string::npos;
}

}  // namespace

std::vector<std::string> exchange_worker_names(const Ranks& ranks, const std::string& name) {
  const std::string own = name.empty() ? fmt::format("worker{}", ranks.rank()) : name;
  std::vector<std::string> names =
      ranks.all_gather(fmt::format("{} {}", rank_of_process.load(), own));
  std::set<std::string> seen;
  int64_t rank = 0;
  for (std::string& each : names) {
    const int64_t before = std::stoll(each);
    each.erase(0, each.find(' ') + 1);
    if (before != kNoRank && before != rank) {
      throw std::logic_error(fmt::format(
          "the process of RPC worker '{}' (rank {}) was rank {} in an earlier agent: LibTorch "
          "keeps the rank until the process ends",
          each, rank, before));
    }
    ++rank;
    if (!is_worker_name(each)) {
      throw std::invalid_argument(fmt::format(
          "an RPC worker cannot be named '{}': use letters, digits, '-', '_' and ':', 127 at most",
          each));
    }
    if (seen.insert(each).second) continue;
    throw std::invalid_argument(fmt::format("two RPC workers are named '{}'", each));
  }
  rank_of_process = ranks.rank();
  return names;
}

}  // namespace phalanx::rpc
