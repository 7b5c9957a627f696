// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/roll_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "trainer/ranks/stores/key_value_store.h"

namespace phalanx {
namespace {

constexpr size_t kMostNamed = 8;

std::string host_of(const std::vector<std::string>& hosts, int64_t rank) {
  const auto place = static_cast<size_t>(rank);
  return place < hosts.size() ? hosts[place] : "an unknown host";
}

// Names the other silent ranks, where there are several, and says whether a whole host is silent.
std::string also_silent(const std::vector<int64_t>& silent, const SignsOfLife& signs,
                        const std::vector<std::string>& hosts) {
  std::string text;
  if (silent.size() > 1) {
    std::vector<std::string> others;
    for (size_t i = 1; i < std::min(silent.size(), kMostNamed + 1); ++i) {
      others.push_back(fmt::format("rank {} on {}", silent[i], host_of(hosts, silent[i])));
    }
    const size_t more = silent.size() - 1 - others.size();
    text = fmt::format(", nor did {}{}", fmt::join(others, ", "),
                       more == 0 ? "" : fmt::format(" and {} more", more));
  }
  const std::string host = host_of(hosts, silent.front());
  bool has_other_hosts = false;
  for (size_t rank = 0; rank < signs.size(); ++rank) {
    const bool is_there = host_of(hosts, static_cast<int64_t>(rank)) == host;
    if (!is_there) has_other_hosts = true;
    if (is_there && signs[rank]) return text;
  }
  if (!has_other_hosts) return text;
  return text +
         fmt::format(" (no rank on {} answers: is the host up, and the network to it?)", host);
}

MissingRank silent_rank(const std::vector<int64_t>& silent, const SignsOfLife& signs, int64_t asker,
                        const std::vector<std::string>& hosts) {
  const int64_t rank = silent.front();
  const auto& own = signs[static_cast<size_t>(asker)];
  return {.rank = rank,
          .text = fmt::format("rank {}: gave no sign of life on {}{}; rank {} waits for it in {}",
                              rank, host_of(hosts, rank), also_silent(silent, signs, hosts), asker,
                              own ? own->activity : "")};
}

MissingRank rank_behind(int64_t rank, const SignsOfLife& signs, int64_t asker,
                        const std::vector<std::string>& hosts) {
  const auto& own = signs[static_cast<size_t>(asker)];
  return {.rank = rank,
          .text = fmt::format("rank {}: {}: its process on {} answers, but did not come to what "
                              "rank {} waits for in {}",
                              rank, signs[static_cast<size_t>(rank)]->activity,
                              host_of(hosts, rank), asker, own ? own->activity : "")};
}

// The only rank that does something else than all others.
std::optional<int64_t> rank_apart(const SignsOfLife& signs, int64_t asker) {
  const std::string& usual = signs[static_cast<size_t>(asker)]->activity;
  std::optional<int64_t> apart;
  for (size_t rank = 0; rank < signs.size(); ++rank) {
    if (signs[rank]->activity == usual) continue;
    if (apart) return std::nullopt;
    apart = static_cast<int64_t>(rank);
  }
  return apart;
}

}  // namespace

std::optional<MissingRank> missing_rank(const SignsOfLife& signs, int64_t asker,
                                        const std::vector<std::string>& hosts) {
  std::vector<int64_t> silent;
  for (size_t rank = 0; rank < signs.size(); ++rank) {
    if (!signs[rank]) silent.push_back(static_cast<int64_t>(rank));
  }
  if (!silent.empty()) return silent_rank(silent, signs, asker, hosts);
  const auto [least, most] = std::ranges::minmax_element(
      signs, {}, [](const std::optional<SignOfLife>& sign) { return sign->operations; });
  if ((*least)->operations < (*most)->operations) {
    const int64_t rank = least - signs.begin();
    return rank == asker ? std::nullopt : std::optional(rank_behind(rank, signs, asker, hosts));
  }
  const auto apart = rank_apart(signs, asker);
  return apart ? std::optional(rank_behind(*apart, signs, asker, hosts)) : std::nullopt;
}

SignsOfLife call_roll(KeyValueStore& store, int64_t asker, SignOfLife own, int64_t world_size,
                      std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    if (rank != asker) store.set(roll_call::call_key(rank), "who is there?");
  }
  SignsOfLife signs(static_cast<size_t>(world_size));
  int64_t present = 0;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    if (rank == asker) continue;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    const auto answer =
        store.get(roll_call::answer_key(rank), std::max(left, std::chrono::milliseconds(0)));
    if (!answer) continue;
    signs[static_cast<size_t>(rank)] = roll_call::sign_in(*answer);
    ++present;
  }
  signs[static_cast<size_t>(asker)] = std::move(own);
  store.set(roll_call::kPresent, std::to_string(present));
  return signs;
}

namespace roll_call {

std::string call_key(int64_t rank) { return fmt::format("call/{}", rank); }

std::string answer_key(int64_t rank) { return fmt::format("answer/{}", rank); }

std::string to_text(const SignOfLife& sign) {
  return fmt::format("{} {}", sign.operations, sign.activity);
}

SignOfLife sign_in(const std::string& text) {
  const size_t blank = text.find(' ');
  return {.operations = std::stoll(text.substr(0, blank)), .activity = text.substr(blank + 1)};
}

}  // namespace roll_call

}  // namespace phalanx
