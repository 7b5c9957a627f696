// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

namespace phalanx::parameter_server {

/// What each of the ranks 0 to n - 1 has sent for a round, until it is taken. Rounds are numbered
/// alike on all ranks, which may be a round ahead of each other. Threads of an agent may put while
/// another thread waits.
template <class Sent>
class RankRounds {
 public:
  explicit RankRounds(int64_t ranks) : ranks_(ranks) {}

  /// Throws std::invalid_argument for a rank that is not among them.
  void put(int64_t round, int64_t rank, Sent sent) {
    if (rank < 0 || rank >= ranks_) throw std::invalid_argument("a rank that takes no part");
    const std::scoped_lock lock(mutex_);
    rounds_[round].insert_or_assign(rank, std::move(sent));
    came_.notify_all();
  }

  /// Waits until all ranks have sent theirs; false: not within `patience`.
  bool wait(int64_t round, std::chrono::milliseconds patience) const {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, patience, [&] {
      const auto found = rounds_.find(round);
      return found != rounds_.end() && static_cast<int64_t>(found->second.size()) == ranks_;
    });
  }

  /// Ranks that have sent nothing yet.
  std::vector<int64_t> missing(int64_t round) const {
    const std::scoped_lock lock(mutex_);
    std::vector<int64_t> ranks;
    const auto found = rounds_.find(round);
    for (int64_t rank = 0; rank < ranks_; ++rank) {
      if (found == rounds_.end() || !found->second.contains(rank)) ranks.push_back(rank);
    }
    return ranks;
  }

  /// What has come, in the order of the ranks.
  std::vector<Sent> take(int64_t round) {
    const std::scoped_lock lock(mutex_);
    std::vector<Sent> all;
    const auto found = rounds_.find(round);
    if (found == rounds_.end()) return all;
    for (auto& [rank, sent] : found->second) all.push_back(std::move(sent));
    rounds_.erase(found);
    return all;
  }

 private:
  int64_t ranks_;
  mutable std::mutex mutex_;
  mutable std::condition_variable came_;
  std::map<int64_t, std::map<int64_t, Sent>> rounds_;  ///< By round and rank.
};

}  // namespace phalanx::parameter_server
