// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// A word that a shell takes as it is, whatever it holds: 'it'\''s'. Bare where it needs no quotes.
std::string shell_quoted(std::string_view word);

/// A job of Slurm: its resources and its command.
struct SlurmJob {
  std::string name;            ///< Of the job.
  int64_t nodes = 1;           ///< Hosts.
  int64_t tasks_per_node = 1;  ///< Ranks of each.
  int64_t save_before = 120;   ///< Seconds before the time limit at which the run saves; 0: never.
  std::optional<int64_t> cores;          ///< Of each rank; else Slurm's default.
  bool takes_gpus = false;               ///< For a container: shows them to it.
  std::vector<std::string> options;      ///< Further options of sbatch: "--time=1:00:00".
  std::optional<std::string> setup;      ///< A file that the job's shell reads first.
  std::optional<std::string> container;  ///< An image for Apptainer.
  std::vector<std::string> command;      ///< The trainer and its arguments.
};

/// The job's script for bash. `save_before` seconds ahead of the limit the run is asked to save and
/// to end, and the job is put into the queue again; then it goes on in its own folder. The script
/// exits with the exit code of the run.
std::string slurm_script(const SlurmJob& job);

}  // namespace phalanx
