// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace phalanx {

/// A start whose folder is taken.
struct BegunStart {
  std::string exp_dir;
  int64_t number = 0;          ///< Its line in starts.jsonl, from 1.
  int64_t step = 0;            ///< Where it begins: the newest checkpoint's.
  std::string checkpoint;      ///< The newest one's name by then; empty: there was none.
  int64_t samples_a_step = 0;  ///< Over all ranks.
};

/// How far a run has come, in memory that its ranks share with the process that forks them: so that
/// process knows it however they end. Made before the ranks are.
class RunProgress {
 public:
  /// Throws std::system_error.
  RunProgress();
  RunProgress(const RunProgress&) = delete;
  RunProgress& operator=(const RunProgress&) = delete;
  ~RunProgress();

  /// In a rank: the folder is taken. The word of the rank that is first counts. Nothing happens for
  /// a path longer than the system opens.
  void begin(const BegunStart& start);
  /// In a rank: its checkpoint is loaded, or there is none to load.
  void note_restored();
  /// In a rank: `step` is finished.
  void reach(int64_t step);

  /// In a rank: why the run has ended before its limits. A text that is too long is cut.
  void note_early_end(const std::string& why);
  /// For ranks that start again, once none runs: nothing has begun.
  void forget();

  /// What `begin` was told; nothing where no rank came so far.
  std::optional<BegunStart> begun() const;
  /// Whether `note_restored` was called since, or a step is finished.
  bool has_restored() const;
  /// Whether a step is finished since.
  bool has_stepped() const;
  /// What `note_early_end` was told; empty: nothing.
  std::string early_end() const;
  /// The last step that was finished, or else the one where the start begins.
  int64_t step() const;

 private:
  struct Shared;
  Shared* shared_;
};

}  // namespace phalanx
