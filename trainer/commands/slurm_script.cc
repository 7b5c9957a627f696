// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/slurm_script.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>

#include "trainer/launch/launcher.h"

namespace phalanx {
namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@^_";

std::string header(const SlurmJob& job) {
  std::string text = "#!/bin/bash\n";
  const auto add = [&](const std::string& option) { text += "#SBATCH " + option + "\n"; };
  add("--job-name=" + job.name);
  add(fmt::format("--nodes={}", job.nodes));
  add(fmt::format("--ntasks-per-node={}", job.tasks_per_node));
  if (job.cores) add(fmt::format("--cpus-per-task={}", *job.cores));
  for (const std::string& option : job.options) add(option);
  add("--output=" + job.name + "-%j.log");
  add("--open-mode=append");
  if (job.save_before == 0) return text;
  add("--requeue");
  add(fmt::format("--signal=B:USR2@{}", job.save_before));
  return text;
}

std::string words(const std::vector<std::string>& command) {
  std::vector<std::string> quoted;
  for (const std::string& word : command) quoted.push_back(shell_quoted(word));
  return fmt::format("{}", fmt::join(quoted, " "));
}

std::string step(const SlurmJob& job) {
  std::string text = "srun --kill-on-bad-exit=1 ";
  if (job.container) {
    text += fmt::format("apptainer exec {}{} ", job.takes_gpus ? "--nv " : "",
                        shell_quoted(*job.container));
  }
  return text + words(job.command);
}

// A trap ends `wait`, so that it is called until the step is over.
constexpr const char* kRequeue = R"(step=$!
asked=
trap 'asked=1; kill -USR2 "$step"' USR2
while true; do
  wait "$step"
  code=$?
  kill -0 "$step" 2>/dev/null || break
done
# It has saved and ended because it was asked to: the same job goes on later.
if [ -n "$asked" ] && [ "$code" -eq STOPPED ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
)";

std::string requeue() {
  std::string text = kRequeue;
  const std::string_view mark = "STOPPED";
  return text.replace(text.find(mark), mark.size(), std::to_string(kSignalBase + SIGUSR2));
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

std::string slurm_script(const SlurmJob& job) {
  std::string text = header(job) + "\n";
  // srun takes no cores from the job's header since Slurm 22.05.
  if (job.cores)
    text += fmt::format("export SRUN_CPUS_PER_TASK={0} OMP_NUM_THREADS={0}\n", *job.cores);
  if (job.setup) text += ". " + shell_quoted(*job.setup) + "\n";
  if (job.save_before == 0) return text + "exec " + step(job) + "\n";
  return text + step(job) + " &\n" + requeue();
}

}  // namespace phalanx
