// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/tree/node.h"
#include "trainer/ranks/environment/environment.h"
#include "trainer/run/run_config.h"

namespace phalanx {

/// Where a rank computes.
struct RankPlace {
  std::string host;
  std::string device;  ///< As describe_device has it, with the versions of CUDA and NCCL.
};

/// A start of a run, or of its going on, as its starts.jsonl tells it beside config.yaml.
struct Start {
  int64_t step = 0;      ///< Where it begins: the newest checkpoint's.
  std::string launcher;  ///< Who has started the ranks.
  BatchJob job;          ///< That it belongs to.
  int64_t restart = 0;   ///< Attempts of that launcher, or of the job, before this one.
  std::vector<RankPlace> ranks;
  std::map<std::string, std::string> environment;  ///< What of it can matter.
  std::vector<ConfigChange> changed;               ///< Against the start before.
};

/// The start as one line of JSON without its end, with what this process knows of itself: time,
/// command line, folder, host, process, program, CPU.
std::string format_start(const Start& start);

/// Adds a line at the end of a run's starts.jsonl, durably; one that a crash has torn before it is
/// ended first. Returns the line's number, from 1. Throws UserError when the folder cannot be
/// written.
int64_t append_start(const std::filesystem::path& exp_dir, const std::string& line);

/// A changed field, as a start has told it.
struct ToldChange {
  std::string path;
  std::optional<config::Node> after;  ///< Nothing where the field is absent since then.
};

/// A start, as its line in starts.jsonl tells it to later ones. What the line lacks is empty; so is
/// all of a line that a crash has torn.
struct PastStart {
  std::string time, pid, host;
  std::optional<int64_t> step;
  BatchJob job;
  std::vector<ToldChange> changed;
};

/// The starts of the run in a folder, in their order; none of a folder without a run. Throws
/// IoError.
std::vector<PastStart> past_starts(const std::filesystem::path& exp_dir);

}  // namespace phalanx
