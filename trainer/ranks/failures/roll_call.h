// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace phalanx {

class KeyValueStore;

/// What a rank answers when another one asks whether it is there.
struct SignOfLife {
  int64_t operations = 0;  ///< Operations with other ranks that it has begun.
  std::string activity;    ///< "step 12, forward"
};

/// By rank; nullopt: no answer.
using SignsOfLife = std::vector<std::optional<SignOfLife>>;

/// The rank that the others wait for, and what is wrong with it: "rank 2: gave no sign of life …".
struct MissingRank {
  int64_t rank = 0;
  std::string text;
};

/// Whom the others wait for, as `asker` finds it: a rank that does not answer, else one that has
/// not come as far as the others. nullopt where neither is so. `hosts` has the name of each rank's
/// host.
std::optional<MissingRank> missing_rank(const SignsOfLife& signs, int64_t asker,
                                        const std::vector<std::string>& hosts);

/// Asks all ranks but `asker`, whose own sign is `own`, and waits for their answers at most
/// `patience`. Their Presence answers.
SignsOfLife call_roll(KeyValueStore& store, int64_t asker, SignOfLife own, int64_t world_size,
                      std::chrono::milliseconds patience);

/// The keys of a roll call in the ranks' store.
namespace roll_call {

/// What asks a rank: any text but kOver.
std::string call_key(int64_t rank);
std::string answer_key(int64_t rank);
/// Why the run ends. Its first line is for ranks, the others are the message.
inline constexpr const char* kVerdict = "failure";
/// How many ranks have answered, and how many of these have the verdict.
inline constexpr const char* kPresent = "present";
inline constexpr const char* kHeard = "heard";
/// In the place of a call: nobody will call this rank any more.
inline constexpr const char* kOver = "over";

std::string to_text(const SignOfLife& sign);
SignOfLife sign_in(const std::string& text);

}  // namespace roll_call

}  // namespace phalanx
