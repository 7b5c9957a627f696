// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/failures/failure.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "trainer/base/said_by.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/failures/call_within.h"
#include "trainer/ranks/failures/gloo_error.h"
#include "trainer/ranks/failures/pauses.h"
#include "trainer/ranks/failures/presence.h"
#include "trainer/ranks/failures/roll_call.h"
#include "trainer/ranks/failures/unlike_passes.h"
#include "trainer/ranks/ranks.h"
#include "trainer/ranks/stores/key_value_store.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr const char* kAsker = "asker";
constexpr Milliseconds kMoment{100};
// A rank whose process is gone is missed at once; others notice within milliseconds.
constexpr Milliseconds kWhereClosed{1000};
// After a time-out: the processes of a busy host need a while to answer.
constexpr Milliseconds kWhereTimedOut{2500};
// For all that is asked of the store. AbruptEnd waits longer.
constexpr Milliseconds kStorePatience{4200};
// The part of it until a verdict is written; the rest is for the others to hear it.
constexpr Milliseconds kUntilVerdict{3700};
constexpr int64_t kMaxNamed = 16;

std::string wait_key(int64_t rank) { return fmt::format("waiting/{}", rank); }

bool is_timeout(std::string_view message) {
  return message.find("imed out") != std::string_view::npos ||
         message.find("imeout") != std::string_view::npos;
}

// What stands in the store: who says it, which rank is the cause, and the message.
struct Verdict {
  int64_t by = 0;
  int64_t cause = 0;
  std::string message;
};

std::string to_text(const Verdict& verdict) {
  return fmt::format("{} {}\n{}", verdict.by, verdict.cause, verdict.message);
}

Verdict verdict_in(const std::string& text) {
  const size_t blank = text.find(' ');
  const size_t end = text.find('\n');
  return {.by = std::stoll(text.substr(0, blank)),
          .cause = std::stoll(text.substr(blank + 1, end)),
          .message = text.substr(end + 1)};
}

Milliseconds until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<Milliseconds>(end - Clock::now());
  return std::max(left, Milliseconds(0));
}

Failure consequence_of(const std::string& verdict) {
  Verdict known = verdict_in(verdict);
  return {.message = std::move(known.message),
          .caused_by_peer = true,
          .is_first = false,
          .cause = known.cause};
}

// What a rank that fails says through the ranks' store, and learns there.
struct Reporter {
  std::shared_ptr<KeyValueStore> store;
  std::shared_ptr<const Presence> presence;  // null where the ranks cannot call the roll
  int64_t rank = 0;
  int64_t world_size = 1;
  Milliseconds timeout{0};
  Clock::time_point begin = Clock::now();
  // Set once the store has answered, for a caller that has given this up.
  std::shared_ptr<std::atomic<bool>> has_answer = std::make_shared<std::atomic<bool>>(false);

  Failure operator()(const Failure& failure) const {
    Failure reported = failure.caused_by_peer ? report_consequence(failure) : report_own(failure);
    let_others_hear();
    return reported;
  }

 private:
  Failure report_own(Failure failure) const {
    const std::string mine =
        to_text({.by = rank, .cause = rank, .message = said_by(rank, failure.message)});
    failure.is_first = store->set_if_absent(roll_call::kVerdict, mine) == mine;
    return failure;
  }

  Failure report_consequence(const Failure& failure) const {
    store->set(wait_key(rank), failure.message);
    const auto known = store->get(roll_call::kVerdict, kMoment);  // set alone waits for no answer
    *has_answer = true;
    if (known) return consequence_of(*known);
    const std::string mine = std::to_string(rank);
    if (presence && store->set_if_absent(kAsker, mine) != mine) {
      const auto found = store->get(roll_call::kVerdict, kWhereTimedOut + kWhereClosed / 2);
      if (found) return consequence_of(*found);
    }
    return judge(failure);
  }

  Failure judge(Failure failure) const {
    // One that has waited for the asker in vain has less left; the others have answered that one.
    const Milliseconds patience = std::min(
        is_timeout(failure.message) ? kWhereTimedOut : kWhereClosed, until(begin + kUntilVerdict));
    const auto end = Clock::now() + patience;
    SignsOfLife signs;
    std::optional<MissingRank> missing;
    if (presence) {
      signs = call_roll(*store, rank, presence->sign(), world_size, patience);
      missing = missing_rank(signs, rank, presence->place().hosts);
    }
    std::string text = said_by(rank, failure.message);
    if (missing) {
      if (is_timeout(failure.message)) missing->text += waited();
      text = missing->text + "\n  " + text;
      failure.cause = missing->rank;
    }
    text += words_of_others(signs, missing, end);
    text += unlike_passes(signs);
    const std::string mine =
        to_text({.by = rank, .cause = failure.cause.value_or(rank), .message = text});
    const std::string first = store->set_if_absent(roll_call::kVerdict, mine);
    if (first != mine) return consequence_of(first);
    failure.message = std::move(text);
    return failure;
  }

  std::string waited() const {
    return fmt::format(" for {} s (parallel.timeout)",
                       std::chrono::duration<double>(timeout).count());
  }

  // What the other ranks were waiting for when this one gave up.
  std::string words_of_others(const SignsOfLife& signs, const std::optional<MissingRank>& missing,
                              Clock::time_point end) const {
    std::string text;
    for (int64_t other = 0; other < std::min(world_size, kMaxNamed); ++other) {
      if (other == rank || (missing && missing->rank == other)) continue;
      const bool answers = !signs.empty() && signs[static_cast<size_t>(other)].has_value();
      // One that does not answer will not speak either.
      const bool may_speak = signs.empty() || (answers && !missing);
      const auto word = store->get(wait_key(other), may_speak ? until(end) : Milliseconds(0));
      text +=
          "\n  " + said_by(other, word      ? *word
                                  : answers ? "in " + signs[static_cast<size_t>(other)]->activity
                                            : "gave no sign of life");
    }
    return text;
  }

  // The store goes with rank 0 where that serves it.
  void let_others_hear() const {
    if (!presence || rank != 0 || !presence->place().rank_0_serves_store) return;
    const auto present = store->get(roll_call::kPresent, Milliseconds(0));
    if (!present) return;
    const auto end =
        std::min(Clock::now() + kWhereClosed / 2, begin + kStorePatience - 2 * kMoment);
    while (store->add(roll_call::kHeard, 0) < std::stoll(*present)) {
      if (Clock::now() >= end) return;
      std::this_thread::sleep_for(kMoment / 10);
    }
  }
};

// What another rank has found before: the store can tell no more.
std::optional<Failure> heard_before(const Ranks& ranks) {
  const Presence* const presence = ranks.group().presence.get();
  const auto verdict = presence != nullptr ? presence->verdict() : std::nullopt;
  return verdict ? std::optional(consequence_of(*verdict)) : std::nullopt;
}

Failure with_word_on_store(Failure failure, std::string_view how) {
  failure.message += fmt::format(
      "\n  the process that serves the ranks' store, rank 0's or a launcher's: {}", how);
  return failure;
}

// A process that closes the store need not be the cause: rank 0 also leaves after another's
// failure.
Failure with_store_closed(Failure failure, const Ranks& ranks) {
  if (!failure.caused_by_peer) return failure;
  if (auto heard = heard_before(ranks)) return *std::move(heard);
  return with_word_on_store(std::move(failure), "is gone");
}

// A store that has answered and then takes long is no sign of a process that is stopped.
Failure with_store_silent(Failure failure, const Ranks& ranks, bool has_answered) {
  constexpr const char* kSilent = "gave no sign of life";
  if (!failure.caused_by_peer) return failure;
  if (auto heard = heard_before(ranks)) return *std::move(heard);
  if (has_answered) return with_word_on_store(std::move(failure), "answers too slowly");
  const Presence* const presence = ranks.group().presence.get();
  if (presence == nullptr || !presence->place().rank_0_serves_store || ranks.is_first()) {
    return with_word_on_store(std::move(failure), kSilent);
  }
  failure.cause = 0;
  failure.message =
      fmt::format("rank 0: {} on {}, and serves the ranks' store; rank {} waits for it in {}\n  {}",
                  kSilent, presence->place().hosts.front(), ranks.rank(), presence->sign().activity,
                  said_by(ranks.rank(), failure.message));
  return failure;
}

// The cause where the others have given up a wait for this very rank, with host and step as where
// they name it.
std::string with_own_pause(const std::string& message, const Ranks& ranks) {
  const Presence* const presence = ranks.group().presence.get();
  if (presence == nullptr) return {};
  const auto pause = presence->pauses().pause_to_blame(ranks.timeout());
  if (!pause) return {};
  return fmt::format(
      "did not run for {:.0f} s on {} in {}: it was stopped by a signal, or its host did not let "
      "it "
      "run; the other ranks wait {} s at most (parallel.timeout)\n  {}",
      std::chrono::duration<double>(*pause).count(),
      presence->place().hosts.at(static_cast<size_t>(ranks.rank())), presence->sign().activity,
      std::chrono::duration<double>(ranks.timeout()).count(), message);
}

}  // namespace

bool is_communication_error(const std::exception& error) {
  return dynamic_cast<const CommunicationError*>(&error) != nullptr ||
         dynamic_cast<const c10::DistError*>(&error) != nullptr || is_gloo_io_error(error);
}

Failure report_failure(const Ranks& ranks, const std::exception& error, std::string message) {
  Failure failure{.message = std::move(message), .caused_by_peer = is_communication_error(error)};
  if (ranks.is_single_rank()) return failure;
  if (failure.caused_by_peer && dynamic_cast<const CommunicationError*>(&error) == nullptr) {
    // As other threads see it: c10d's watchdog has one of its own.
    const std::string activity = ranks.group().activity->shared().text();
    failure.message = fmt::format("a collective of {} ranks failed in {}: {}", ranks.world_size(),
                                  activity, plain_gloo_text(failure.message));
  }
  if (failure.caused_by_peer) {
    if (std::string own = with_own_pause(failure.message, ranks); !own.empty()) {
      failure = {.message = std::move(own)};
    }
  }
  const Reporter reporter{.store = ranks.shared_store(),
                          .presence = ranks.group().presence,
                          .rank = ranks.rank(),
                          .world_size = ranks.world_size(),
                          .timeout = ranks.timeout()};
  try {
    const auto reported =
        call_within<Failure>(kStorePatience, [reporter, failure] { return reporter(failure); });
    return reported ? *reported
                    : with_store_silent(std::move(failure), ranks, *reporter.has_answer);
  } catch (const CommunicationError&) {
    return with_store_closed(std::move(failure), ranks);
  } catch (const std::exception&) {
    return failure;  // the group is closed: what this rank knows itself has to do
  }
}

}  // namespace phalanx
