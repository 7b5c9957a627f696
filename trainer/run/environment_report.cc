// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/environment_report.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>

namespace phalanx {
namespace {

// Everything that a library reads under its own name.
constexpr std::array kPrefixes = {"CUBLAS_", "CUDA_",    "CUDNN_", "GLOO_",
                                  "GOMP_",   "KMP_",     "MKL_",   "NCCL_",
                                  "OMP_",    "PYTORCH_", "TORCH_", "TORCHELASTIC_"};

// Slurm sets many: these tell the job and its shape.
constexpr std::array kNames = {"GROUP_RANK",
                               "GROUP_WORLD_SIZE",
                               "LOCAL_RANK",
                               "LOCAL_WORLD_SIZE",
                               "MALLOC_ARENA_MAX",
                               "MASTER_ADDR",
                               "MASTER_PORT",
                               "NVIDIA_TF32_OVERRIDE",
                               "NVIDIA_VISIBLE_DEVICES",
                               "OPENBLAS_NUM_THREADS",
                               "RANK",
                               "ROLE_RANK",
                               "ROLE_WORLD_SIZE",
                               "SLURM_ARRAY_JOB_ID",
                               "SLURM_ARRAY_TASK_ID",
                               "SLURM_CLUSTER_NAME",
                               "SLURM_CPUS_PER_TASK",
                               "SLURM_GPUS_ON_NODE",
                               "SLURM_JOB_ID",
                               "SLURM_JOB_NODELIST",
                               "SLURM_JOB_NUM_NODES",
                               "SLURM_JOB_PARTITION",
                               "SLURM_LOCALID",
                               "SLURM_NODEID",
                               "SLURM_NTASKS",
                               "SLURM_PROCID",
                               "SLURM_RESTART_COUNT",
                               "SLURM_STEP_ID",
                               "WORLD_SIZE"};

template <class List>
bool contains(const List& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool can_matter(std::string_view name) {
  return contains(kNames, name) ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

void collect_variables(std::string_view text, std::set<std::string>& names) {
  constexpr std::string_view kStart = "oc.env:";
  for (size_t at = text.find(kStart); at != text.npos; at = text.find(kStart, at)) {
    at += kStart.size();
    const std::string_view rest = text.substr(at);
    std::string_view name = rest.substr(0, rest.find_first_of(",}"));
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) names.emplace(name);
  }
}

}  // namespace

std::vector<std::string> command_line(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

std::string cpu_model(const std::filesystem::path& root) {
  constexpr std::string_view kKey = "model name";
  std::ifstream file(root / "proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kKey)) continue;
    const size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == line.npos ? "" : line.substr(begin);
  }
  return "";
}

bool is_private(std::string_view variable) {
  std::string name;
  std::transform(variable.begin(), variable.end(), std::back_inserter(name),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  constexpr std::array kWords = {"TOKEN", "SECRET",  "PASSW",   "CREDENTIAL", "AUTH",
                                 "JWT",   "KEY",     "PRIVATE", "COOKIE",     "USER",
                                 "UID",   "ACCOUNT", "MAIL"};
  return std::any_of(kWords.begin(), kWords.end(), [&name](std::string_view word) {
    return name.find(word) != std::string::npos;
  });
}

std::map<std::string, std::string> relevant_environment(std::span<const std::string> environment,
                                                        const std::set<std::string>& also) {
  std::map<std::string, std::string> relevant;
  for (const std::string& variable : environment) {
    const size_t end = variable.find('=');
    if (end == variable.npos) continue;
    const std::string name = variable.substr(0, end);
    if ((!can_matter(name) && !also.contains(name)) || is_private(name)) continue;
    relevant[name] = variable.substr(end + 1);
  }
  return relevant;
}

std::vector<std::string> whole_environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  return variables;
}

std::set<std::string> variables_taken(const config::Node& tree) {
  std::set<std::string> names;
  collect_variables(tree.text, names);
  for (const config::Node& item : tree.items) names.merge(variables_taken(item));
  for (const config::Entry& entry : tree.entries) names.merge(variables_taken(entry.value));
  return names;
}

}  // namespace phalanx
