// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/submission/slurm_array.h"

namespace phalanx {

/// A job of Slurm: its resources and its command.
struct SlurmJob {
  std::string name;            ///< What Slurm lists it as.
  int64_t nodes = 1;           ///< Hosts.
  int64_t tasks_per_node = 1;  ///< Ranks of each host.
  int64_t save_before = 120;   ///< Seconds before the time limit at which the run saves; 0: never.
  std::optional<int64_t> cores;          ///< For each rank; else Slurm's default.
  bool takes_gpus = false;               ///< For a container: shows them to it.
  std::vector<std::string> options;      ///< Further options of sbatch: "--time=1:00:00".
  std::vector<std::string> variables;    ///< "NAME=VALUE", for the run.
  bool keeps_rank_logs = false;          ///< Each rank's output goes into a log of its own.
  std::optional<std::string> setup;      ///< A file that the job's shell reads first.
  std::optional<std::string> container;  ///< An image for Apptainer.
  std::vector<std::string> command;      ///< The trainer and its arguments.
  std::vector<ArrayRun> array;  ///< A task each, its words behind the command's; none: one run.
  std::optional<int64_t> array_limit;  ///< How many of these run at a time; else Slurm's limits.
};

/// The job's script for bash. `save_before` seconds ahead of the limit the run is asked to save and
/// to end, and the job, or this task of an array, is put into the queue again; then it goes on in
/// its own folder. The script exits with the exit code of the run.
std::string slurm_script(const SlurmJob& job);

}  // namespace phalanx
