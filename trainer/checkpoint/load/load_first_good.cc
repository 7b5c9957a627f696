// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/load_first_good.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/header_agreement.h"
#include "trainer/io/file.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// What a rank says of a checkpoint: a letter, and why.
constexpr char kGood = 'g';
constexpr char kBad = 'b';
constexpr char kEnds = 'e';

// What rank 0 says about its candidates: a letter, and the next one's path or why there is no more.
constexpr char kNext = 'n';
constexpr char kNoMore = 'o';

/// What one rank found.
struct Try {
  std::optional<Checkpoint> checkpoint;
  std::exception_ptr error;  ///< That ends all trying.
  std::string verdict{kGood};
};

// What is wrong with a checkpoint. One that rank 0 has listed, and that is not there any more, was
// removed: by a training that goes on, or by hand.
std::string damage_of(const Ranks& ranks, const fs::path& path, const std::exception& error) {
  std::error_code unknown;
  const bool is_gone = ranks.is_first() && !fs::exists(path, unknown) && !unknown;
  return is_gone ? "it was removed meanwhile" : error.what();
}

// Whatever keeps a checkpoint from being opened is its own fault. Rank 0 also sees that files which
// no rank reads are there, and that all headers say what the manifest says, which was not made from
// them in a checkpoint of ours.
Try try_to_open(const Ranks& ranks, const fs::path& path, const OpenCheckpoint& open) {
  Try tried;
  try {
    Checkpoint checkpoint = open(path);
    if (ranks.is_first()) require_files(checkpoint);
    if (ranks.is_first() && checkpoint.manifest.chunk_bytes != 0) require_headers_agree(checkpoint);
    tried.checkpoint = std::move(checkpoint);
  } catch (const std::exception& error) {
    tried.verdict = kBad + damage_of(ranks, path, error);
  }
  return tried;
}

Try try_to_load(const Ranks& ranks, const fs::path& path,
                const std::function<void(const Checkpoint&)>& load, const OpenCheckpoint& open) {
  Try tried = try_to_open(ranks, path, open);
  if (!tried.checkpoint) return tried;
  try {
    load(*tried.checkpoint);
  } catch (const CheckpointError& error) {
    tried.verdict = kBad + damage_of(ranks, path, error);
  } catch (const IoError& error) {
    tried.verdict = kBad + damage_of(ranks, path, error);
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& error) {
    tried.error = std::current_exception();
    tried.verdict = kEnds + error_text(error);
  }
  return tried;
}

// Why a checkpoint is not good, by the first rank that says so; nothing where it is on all.
std::optional<std::string> agreed_damage(const Ranks& ranks, const Try& tried) {
  const std::vector<std::string> verdicts = ranks.all_gather(tried.verdict);
  const auto told = [&](std::size_t rank) {
    const std::string text = verdicts[rank].substr(1);
    return ranks.is_single_rank() ? text : fmt::format("rank {}: {}", rank, text);
  };
  for (std::size_t rank = 0; rank < verdicts.size(); ++rank) {
    if (verdicts[rank].front() != kEnds) continue;
    if (tried.error) std::rethrow_exception(tried.error);
    throw CommunicationError(told(rank));
  }
  for (std::size_t rank = 0; rank < verdicts.size(); ++rank) {
    if (verdicts[rank].front() == kBad) return told(rank);
  }
  return std::nullopt;
}

// The candidates of rank 0, each once.
class Candidates {
 public:
  explicit Candidates(std::span<const fs::path> first) : paths_(first.begin(), first.end()) {}

  /// kNext and the next one, or kNoMore and why looking again has found none; "" where it was not
  /// looked again, or nothing new is there.
  std::string next(const Trying& trying) {
    std::string problem;
    if (given_ == paths_.size() && given_ > 0 && trying.list_again) problem = look_again(trying);
    return given_ < paths_.size() ? kNext + paths_[given_++].string() : kNoMore + problem;
  }

 private:
  std::string look_again(const Trying& trying) {
    try {
      add_new(trying.list_again());
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  void add_new(const std::vector<fs::path>& listed) {
    for (const fs::path& path : listed) {
      if (std::find(paths_.begin(), paths_.end(), path) == paths_.end()) paths_.push_back(path);
    }
  }

  std::vector<fs::path> paths_;
  std::size_t given_ = 0;
};

}  // namespace

LoadedCheckpoint load_first_good(const Ranks& ranks, std::span<const fs::path> candidates,
                                 const std::function<void(const Checkpoint&)>& load,
                                 const Trying& trying) {
  LoadedCheckpoint loaded;
  Candidates left(candidates);
  for (;;) {
    std::string told;
    on_first_rank(ranks, [&] { told = left.next(trying); });
    told = ranks.broadcast(told);
    if (told.front() == kNoMore) {
      if (told.size() > 1) loaded.warnings.push_back("looking again: " + told.substr(1));
      break;
    }
    const fs::path path = told.substr(1);
    Try tried = try_to_load(ranks, path, load, trying.open);
    const auto damage = agreed_damage(ranks, tried);
    if (!damage) {
      loaded.checkpoint = std::move(tried.checkpoint);
      return loaded;
    }
    loaded.warnings.push_back(fmt::format("skipped {}: {}", path.filename().string(), *damage));
  }
  if (loaded.warnings.empty()) return loaded;
  throw CheckpointError(fmt::format("none of the checkpoints can be used: {}{}{}",
                                    fmt::join(loaded.warnings, "; "),
                                    trying.advice.empty() ? "" : "\n", trying.advice));
}

}  // namespace phalanx
