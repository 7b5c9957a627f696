// SPDX-License-Identifier: Apache-2.0
#include "trainer/submission/slurm_script.h"

#include <fmt/format.h>

#include <csignal>
#include <string_view>

#include "trainer/config/syntax/argument.h"
#include "trainer/launch/launcher.h"
#include "trainer/submission/shell_words.h"

namespace phalanx {
namespace {

// What names a job in the names of logs.
std::string log_name(const SlurmJob& job) {
  return job.name + (job.array.empty() ? "-%j" : "-%A_%a");
}

std::string array_option(const SlurmJob& job) {
  std::string option = fmt::format("--array=0-{}", job.array.size() - 1);
  if (job.array_limit) option += fmt::format("%{}", *job.array_limit);
  return option;
}

std::string header(const SlurmJob& job) {
  std::string text = "#!/bin/bash\n";
  const auto add = [&](const std::string& option) { text += "#SBATCH " + option + "\n"; };
  add("--job-name=" + job.name);
  add(fmt::format("--nodes={}", job.nodes));
  add(fmt::format("--ntasks-per-node={}", job.tasks_per_node));
  if (job.cores) add(fmt::format("--cpus-per-task={}", *job.cores));
  for (const std::string& option : job.options) add(option);
  if (!job.array.empty()) add(array_option(job));
  add("--output=" + log_name(job) + ".log");
  add("--open-mode=append");
  if (job.save_before == 0) return text;
  add("--requeue");
  add(fmt::format("--signal=B:USR2@{}", job.save_before));
  return text;
}

// The words of this task's run.
std::string choice_of_run(const SlurmJob& job) {
  std::string text = "case \"$SLURM_ARRAY_TASK_ID\" in\n";
  for (size_t task = 0; task < job.array.size(); ++task) {
    const ArrayRun& run = job.array[task];
    text += fmt::format("  {}) run=({}) ;;  # line {}\n", task, shell_line(run.words), run.line);
  }
  return text + "  *) echo \"there is no run $SLURM_ARRAY_TASK_ID\" >&2; exit 2 ;;\nesac\n";
}

std::string step(const SlurmJob& job) {
  // A task on a node that is cut off cannot be ended. Slurm gives such a node up after a while
  // (SlurmdTimeout, 300 s), and puts the job into the queue again: that must come first.
  constexpr int kSecondsForOthers = 600;
  std::string text = fmt::format("srun --kill-on-bad-exit=1 --wait={} ", kSecondsForOthers);
  if (job.keeps_rank_logs) {
    text += config::shell_word("--output=" + log_name(job) + "-%t.log") + " --open-mode=append ";
  }
  if (job.container) {
    text += fmt::format("apptainer exec {}{} ", job.takes_gpus ? "--nv " : "",
                        config::shell_word(*job.container));
  }
  text += shell_line(job.command);
  return job.array.empty() ? text : text + " \"${run[@]}\"";
}

// A trap ends `wait`, so that it is called until the step is over.
constexpr std::string_view kRequeue = R"(step=$!
asked=
trap 'asked=1; kill -USR2 "$step"' USR2
while true; do
  wait "$step"
  code=$?
  kill -0 "$step" 2>/dev/null || break
done
# It has saved and ended because it was asked to: the same job goes on later.
if [ -n "$asked" ] && [ "$code" -eq {stopped} ]; then
  scontrol requeue "{job}"
fi
exit "$code"
)";

std::string requeue(const SlurmJob& job) {
  // The job's number is in the last task of an array that of the whole array.
  const char* name =
      job.array.empty() ? "$SLURM_JOB_ID" : "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID";
  return fmt::format(kRequeue, fmt::arg("stopped", kSignalBase + SIGUSR2), fmt::arg("job", name));
}

}  // namespace

std::string slurm_script(const SlurmJob& job) {
  std::string text = header(job) + "\n";
  // srun takes no cores from the job's header since Slurm 22.05.
  if (job.cores)
    text += fmt::format("export SRUN_CPUS_PER_TASK={0} OMP_NUM_THREADS={0}\n", *job.cores);
  for (const std::string& variable : job.variables) {
    text += "export " + config::shell_word(variable) + "\n";
  }
  if (job.setup) text += ". " + config::shell_word(*job.setup) + "\n";
  if (!job.array.empty()) text += choice_of_run(job);
  if (job.save_before == 0) return text + "exec " + step(job) + "\n";
  return text + step(job) + " &\n" + requeue(job);
}

}  // namespace phalanx
