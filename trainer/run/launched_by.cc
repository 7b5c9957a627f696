// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/launched_by.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "trainer/host/node_list.h"

namespace phalanx {
namespace {

using Words = std::vector<std::string>;

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
// More nodes than these have one line.
constexpr int64_t kMostLines = 8;

// torch.distributed.launch gives each rank a word of its own.
Words without_local_rank(Words command) {
  std::erase_if(command, [](const std::string& word) {
    return word.starts_with("--local-rank=") || word.starts_with("--local_rank=");
  });
  return command;
}

// The outermost process that was given this one's command as its last words: `timeout` may stand
// before mpirun, and before the program. Empty: none was.
Words written_line(const LaunchedProcess& process) {
  const Words own = without_local_rank(process.command);
  Words line;
  for (const Words& ancestor : process.ancestors) {
    const Words words = without_local_rank(ancestor);
    if (own.empty() || words.size() <= own.size()) continue;
    const auto rest = words.end() - std::ssize(own);
    if (std::equal(own.begin(), own.end(), rest)) line.assign(words.begin(), rest);
  }
  return line;
}

// Whether these words start several ranks; others are those of a wrapper of each rank: `timeout 9`,
// `tini --`, a script.
bool start_ranks(const Words& words) {
  constexpr std::array<std::string_view, 12> kLaunchers = {
      "srun", "mpirun", "mpiexec",  "mpiexec.hydra", "orterun",   "prterun",
      "prun", "jsrun",  "torchrun", "accelerate",    "deepspeed", "flux"};
  return std::ranges::any_of(words, [&](const std::string& word) {
    const std::string_view name = std::string_view(word).substr(word.rfind('/') + 1);
    return std::ranges::find(kLaunchers, name) != kLaunchers.end() ||
           word.find("torch.distributed") != std::string::npos ||
           word.find("torch/distributed") != std::string::npos;
  });
}

std::string normal(std::string_view word) {
  std::string name(word.substr(0, word.find('=')));
  std::ranges::replace(name, '_', '-');
  return name;
}

bool has_flag(const Words& words, std::string_view flag, std::string_view value = {}) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (normal(words[i]) != flag) continue;
    const size_t equals = words[i].find('=');
    const std::string given = equals != std::string::npos ? words[i].substr(equals + 1)
                              : i + 1 < words.size()      ? words[i + 1]
                                                          : "";
    if (value.empty() || given == value) return true;
  }
  return false;
}

// The line with this node rank. Where the variable says it, the variable is in front.
Words with_node_rank(Words words, int64_t node) {
  const std::string number = std::to_string(node);
  for (size_t i = 0; i < words.size(); ++i) {
    if (normal(words[i]) != "--node-rank") continue;
    const size_t equals = words[i].find('=');
    if (equals != std::string::npos) {
      words[i].replace(equals + 1, std::string::npos, number);
    } else if (i + 1 < words.size()) {
      words[i + 1] = number;
    }
    return words;
  }
  words.insert(words.begin(), {"env", "PET_NODE_RANK=" + number});
  return words;
}

// ---- torchrun, and programs that `trainer launch` starts

Words torchrun_line(const Variables& v, int64_t nodes) {
  Words words{"torchrun", fmt::format("--nnodes={}", nodes)};
  if (nodes > 1) {
    words.push_back("--node-rank=0");
    words.push_back(fmt::format("--master-addr={}", v.text("MASTER_ADDR")));
    words.push_back(fmt::format("--master-port={}", v.text("MASTER_PORT")));
  }
  words.push_back(fmt::format("--nproc-per-node={}", v.text("LOCAL_WORLD_SIZE")));
  if (v.has("TORCHELASTIC_MAX_RESTARTS") && v.text("TORCHELASTIC_MAX_RESTARTS") != "0") {
    words.push_back(fmt::format("--max-restarts={}", v.text("TORCHELASTIC_MAX_RESTARTS")));
  }
  words.emplace_back("--no-python");
  return words;
}

std::vector<LaunchLine> torchrun_lines(const Variables& v, Words line) {
  const int64_t nodes = v.optional_number("GROUP_WORLD_SIZE", 1, kMost).value_or(1);
  if (line.empty()) line = torchrun_line(v, nodes);
  if (nodes == 1) return {{.place = "", .words = std::move(line)}};
  const bool meet_as_they_come =
      has_flag(line, "--rdzv-backend") && !has_flag(line, "--rdzv-backend", "static");
  if (meet_as_they_come) return {{.place = "each node", .words = std::move(line)}};
  if (nodes > kMostLines) {
    return {{.place = fmt::format("node 0, and on {} others with their node ranks", nodes - 1),
             .words = with_node_rank(line, 0)}};
  }
  std::vector<LaunchLine> lines;
  for (int64_t node = 0; node < nodes; ++node) {
    lines.push_back({.place = fmt::format("node {}", node), .words = with_node_rank(line, node)});
  }
  return lines;
}

// ---- Others, by their variables

// "4" of "4(x2)"; empty where nodes have other numbers of tasks.
std::string tasks_of_each_node(const Variables& v) {
  const std::string_view text = v.text("SLURM_STEP_TASKS_PER_NODE");
  if (text.empty()) return "";
  const std::vector<int64_t> tasks = expand_task_counts(text);
  const bool are_equal =
      std::ranges::all_of(tasks, [&](int64_t count) { return count == tasks.front(); });
  return are_equal ? std::to_string(tasks.front()) : "";
}

Words srun_line(const Variables& v) {
  Words words{"srun", "-K"};
  const auto add = [&](std::string_view flag, std::string_view value) {
    if (!value.empty()) words.push_back(fmt::format("{}={}", flag, value));
  };
  add("--nodes", v.text("SLURM_STEP_NUM_NODES"));
  add("--ntasks", v.text("SLURM_STEP_NUM_TASKS"));
  add("--ntasks-per-node", tasks_of_each_node(v));
  add("--cpus-per-task", v.text("SLURM_CPUS_PER_TASK"));
  add("--gpus-per-node", v.text("SLURM_GPUS_PER_NODE"));
  add("--gpus-per-task", v.text("SLURM_GPUS_PER_TASK"));
  return words;
}

// Which hosts these are, no variable of theirs says.
LaunchLine mpi_line(const Variables& v, const Environment& place, std::string_view starter) {
  Words words{std::string(starter), "-n", std::to_string(place.world_size)};
  if (place.local_world_size == place.world_size) return {.place = "", .words = std::move(words)};
  if (v.has("MASTER_ADDR")) {
    const std::string address(v.text("MASTER_ADDR"));
    if (place.launcher == "open_mpi") {
      words.insert(words.end(), {"-x", "MASTER_ADDR=" + address});
    } else if (starter == "mpirun") {
      words.insert(words.end(), {"-genv", "MASTER_ADDR", address});
    }
  }
  return {.place = fmt::format("the first host, with {}'s options for hosts", starter),
          .words = std::move(words)};
}

LaunchLine line_by_variables(const Variables& v, const Environment& place) {
  const std::string ranks = fmt::format("--ntasks={}", place.world_size);
  if (place.launcher == "slurm") return {.place = "", .words = srun_line(v)};
  if (place.launcher == "lsf") return mpi_line(v, place, "jsrun");
  if (place.launcher == "pmi") {
    return {.place = "", .words = {"srun", "-K", "--mpi=pmi2", ranks}};
  }
  // The variables are those of the pod.
  if (place.launcher == "kubernetes") return {.place = "each pod of a new job", .words = {}};
  if (place.launcher != "torch") return mpi_line(v, place, "mpirun");
  Words words{"env", "RANK=0", fmt::format("WORLD_SIZE={}", place.world_size)};
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    if (v.has(name)) words.push_back(fmt::format("{}={}", name, v.text(name)));
  }
  return {.place = "each rank's host, with its own RANK", .words = std::move(words)};
}

}  // namespace

std::vector<LaunchLine> lines_of_launcher(const LaunchedProcess& process,
                                          const VariableLookup& lookup) {
  if (process.command.empty()) return {};
  const Variables v(lookup);
  const Words written = written_line(process);
  const bool is_launcher = start_ranks(written);
  std::vector<LaunchLine> lines;
  if (v.has("TORCHELASTIC_RUN_ID")) {
    lines = torchrun_lines(v, is_launcher ? written : Words());
  } else if (is_launcher) {
    lines = {{.place = "", .words = written}};
  } else {
    lines = {line_by_variables(v, process.place)};
  }
  for (LaunchLine& line : lines) {
    if (!is_launcher) line.words.insert(line.words.end(), written.begin(), written.end());
    line.words.push_back(process.command.front());
  }
  return lines;
}

}  // namespace phalanx
