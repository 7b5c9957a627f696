// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/program.h"
#include "trainer/cli/command.h"
#include "trainer/cli/terminal.h"
#include "trainer/commands/launch/hostfile_launch.h"
#include "trainer/commands/launch/launch_flag.h"
#include "trainer/commands/launch/launch_options.h"
#include "trainer/commands/launch/launcher_override.h"
#include "trainer/commands/positionals.h"
#include "trainer/commands/train/train.h"
#include "trainer/launch/agent/agent_lines.h"
#include "trainer/launch/agent/end_with_input.h"
#include "trainer/launch/agent/joining.h"
#include "trainer/launch/agent/node_agent.h"
#include "trainer/ranks/environment/launch_lines.h"

namespace phalanx {

Command launch_kubernetes_command();
Command launch_slurm_command();

namespace {

int run_program(NodeAgent& agent, const std::vector<std::string>& program) {
  const RankOutcome outcome = agent.launch_program(program);
  if (!outcome.message.empty()) print_error(outcome.message);
  return outcome.exit_code;
}

// The program and the flags, also those that variables give: they may be another shell's.
std::vector<std::string> line_of(const Invocation& invocation) {
  std::vector<std::string> words{program_name(), "launch"};
  for (const std::string& flag : invocation.flags) {
    if (flag != kRemoteNodeFlag) words.push_back(flag);
  }
  for (const Flag& flag : agent_flags()) {
    if (invocation.has(flag.name) || invocation.value(flag.name)) continue;
    const auto variable = given(invocation, flag.name);
    if (!variable) continue;
    const bool takes_value = flag.takes != Flag::Takes::nothing;
    words.push_back(std::string(flag.name) + (takes_value ? "=" + variable->value : ""));
  }
  return words;
}

AgentSettings settings_of(const Invocation& invocation) {
  const bool is_remote_node = invocation.has(kRemoteNodeFlag);
  const auto hostfile = is_remote_node ? std::nullopt : given(invocation, kHostfileFlag);
  AgentSettings settings =
      hostfile ? hostfile_settings(invocation, hostfile->value) : agent_settings(invocation);
  // A program that is a trainer finds the line above it.
  if (invocation.program.empty()) settings.line = line_of(invocation);
  return settings;
}

// The flag is another way to write the config's field.
std::vector<std::string> arguments_of_run(const Invocation& invocation) {
  std::vector<std::string> arguments = invocation.arguments;
  if (const auto binding = given(invocation, kNumaBindingFlag)) {
    arguments.push_back("parallel.numa_binding=" + binding->value);
  }
  return arguments;
}

// `run` must outlive it.
Launched launched(const Run& run) {
  return {.description = run.description_for_nodes(),
          .why_not =
              [&run](const LaunchFacts& facts, const JoinAsk& ask) {
                return run.why_not_join({.job = facts.job,
                                         .node = facts.node,
                                         .description = facts.launched,
                                         .ranks = ask.ranks_of_nodes,
                                         .samples_a_step = ask.samples_a_step});
              },
          .progress =
              [&run] {
                const auto begun = run.progress().begun();
                return RoundProgress{.has_stepped = run.progress().has_stepped(),
                                     .samples_a_step = begun ? begun->samples_a_step : 0};
              }};
}

int run(const Invocation& invocation) {
  if (invocation.has(kRemoteNodeFlag)) end_with_input();
  if (invocation.program.empty()) refuse_launcher_overrides(invocation.arguments);
  const AgentSettings settings = settings_of(invocation);
  if (const auto lines = lines_of_launch(settings); !lines.empty()) export_launch_lines(lines);
  const auto agent = std::make_shared<NodeAgent>(settings);
  if (!invocation.program.empty()) return run_program(*agent, invocation.program);
  Run run(arguments_of_run(invocation), agent, "launch");
  agent->ask_before_joining(launched(run));
  return run.in_ranks([&run](World& world) { return train(world, run); });
}

}  // namespace

Command launch_command() {
  return {
      .name = "launch",
      .summary = "train on several nodes, or start a program in ranks",
      .help =
          "Starts this node's ranks and meets the launch of other nodes, with the flags of "
          "torchrun; docs/launch.md says which line starts what. After a failure it starts all "
          "ranks again, from the newest checkpoint (--max-restarts). With --hostfile it starts "
          "the other nodes itself, by ssh. Behind `--` it starts "
          "another program than the trainer, with torchrun's variables. A flag that is missing "
          "is taken from its variable, PET_NNODES for --nnodes. The config's `launcher` does "
          "not count here, and an override of it is refused.",
      .examples = {"launch --nproc-per-node=2 configs/quickstart.yaml",
                   "launch --nnodes=2 --node-rank=0 --master-addr=node0 --nproc-per-node=gpu "
                   "my.yaml optimizer.lr=1e-3",
                   "launch --nnodes=2:4 --rdzv-backend=c10d --rdzv-endpoint=node0:29400 "
                   "--max-restarts=3 my.yaml",
                   "launch --hostfile=hosts my.yaml",
                   "launch --nproc-per-node=2 -- python3 train.py --epochs=3"},
      .positionals = {kConfig, kConfigs, kOverrides},
      .flags = agent_flags(),
      .takes_program = true,
      .actions = {launch_kubernetes_command(), launch_slurm_command()},
      .run = run,
  };
}

}  // namespace phalanx
