// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/load_first_good.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>
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

/// What one rank found.
struct Try {
  std::optional<Checkpoint> checkpoint;
  std::exception_ptr error;  ///< That ends all trying.
  std::string verdict{kGood};
};

// Whatever keeps a checkpoint from being opened is its own fault.
Try try_to_open(const fs::path& path, const OpenCheckpoint& open, bool with_all_files) {
  Try tried;
  try {
    Checkpoint checkpoint = open(path);
    if (with_all_files) require_files(checkpoint);
    if (with_all_files && checkpoint.manifest.chunk_bytes != 0) require_headers_agree(checkpoint);
    tried.checkpoint = std::move(checkpoint);
  } catch (const std::exception& error) {
    tried.verdict = kBad + std::string(error.what());
  }
  return tried;
}

// Rank 0 also sees that files which no rank reads are there, and that all headers say what the
// manifest says, which was not made from them in a checkpoint of ours.
Try try_to_load(const Ranks& ranks, const fs::path& path,
                const std::function<void(const Checkpoint&)>& load, const OpenCheckpoint& open) {
  Try tried = try_to_open(path, open, ranks.is_first());
  if (!tried.checkpoint) return tried;
  try {
    load(*tried.checkpoint);
  } catch (const CheckpointError& error) {
    tried.verdict = kBad + std::string(error.what());
  } catch (const IoError& error) {
    tried.verdict = kBad + std::string(error.what());
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

  /// The next one; empty when there is none.
  std::string next(const Trying& trying) {
    if (given_ == paths_.size() && given_ > 0 && trying.list_again) add_new(trying.list_again());
    return given_ < paths_.size() ? paths_[given_++].string() : std::string();
  }

 private:
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
    std::string path;
    on_first_rank(ranks, [&] { path = left.next(trying); });
    path = ranks.broadcast(path);
    if (path.empty()) break;
    Try tried = try_to_load(ranks, path, load, trying.open);
    const auto damage = agreed_damage(ranks, tried);
    if (!damage) {
      loaded.checkpoint = std::move(tried.checkpoint);
      return loaded;
    }
    loaded.warnings.push_back(
        fmt::format("skipped {}: {}", fs::path(path).filename().string(), *damage));
  }
  if (loaded.warnings.empty()) return loaded;
  throw CheckpointError(fmt::format("none of the checkpoints can be used: {}{}{}",
                                    fmt::join(loaded.warnings, "; "),
                                    trying.advice.empty() ? "" : "\n", trying.advice));
}

}  // namespace phalanx
