// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trainer/config/tree/forward.h"
#include "trainer/launch/launcher.h"

namespace phalanx {

/// How a start of a run ended, as its ends.jsonl has it.
struct End {
  int64_t start = 0;  ///< The start's line in starts.jsonl, from 1.
  RankOutcome outcome = {};
  int64_t step = 0;        ///< The last one that was finished.
  std::string checkpoint;  ///< The newest one's name; empty: there is none.
  bool has_saved = false;  ///< This start has committed that one.
  bool has_begun = true;   ///< It had loaded the checkpoint where it begins, if there was one.
};

/// The end as one line of JSON without its end, with the time.
std::string format_end(const End& end);

/// Adds a line at the end of a run's ends.jsonl, durably. Throws IoError.
void append_end(const std::filesystem::path& exp_dir, const std::string& line);

/// Where a run stands that has failed, and the command that goes on with it: two lines for the
/// user. `resolved` is its config. Where it was no signal, the cause is to be mended first: it may
/// lie in the config.
std::string where_it_stands(const std::string& exp_dir, const config::Node& resolved,
                            const End& end);

/// A message that the run's last start ended without a line in ends.jsonl, as kill -9 or a power
/// cut ends it; nothing where it has one, or nobody has started the run. Throws IoError.
std::optional<std::string> last_start_without_end(const std::filesystem::path& exp_dir);

}  // namespace phalanx
