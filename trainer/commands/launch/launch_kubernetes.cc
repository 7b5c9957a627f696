// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string>

#include "trainer/base/user_error.h"
#include "trainer/cli/command.h"
#include "trainer/commands/config/show_config.h"
#include "trainer/commands/positionals.h"
#include "trainer/run/load_config.h"
#include "trainer/submission/kubernetes_job.h"
#include "trainer/submission/submit.h"

namespace phalanx {
namespace {

std::string required(const Invocation& invocation, std::string_view flag, std::string_view why) {
  if (auto value = invocation.value(flag); value && !value->empty()) return *value;
  throw UserError(fmt::format("option {} is missing: {}", flag, why));
}

std::string job_name(const Invocation& invocation, const UserConfig& user) {
  const auto given = invocation.value("--job-name");
  if (!given) return dns_label(experiment_name(user));
  if (*given == dns_label(*given)) return *given;
  throw UserError(
      fmt::format("--job-name='{}': a name in Kubernetes has up to 52 small letters, digits and "
                  "single dashes, and begins with a letter; try '{}'",
                  *given, dns_label(*given)));
}

std::string mounted_folder(const Invocation& invocation) {
  std::string folder = invocation.value("--mount").value_or("/data");
  if (folder.starts_with('/') && folder.find(':') == std::string::npos) return folder;
  throw UserError(
      fmt::format("--mount='{}': a folder in the pods, from / on and without a ':'", folder));
}

KubernetesJob job_of(const Invocation& invocation, const UserConfig& user) {
  const auto gpus = invocation.count("--gpus-per-node");
  KubernetesJob job{
      .name = job_name(invocation, user),
      .image = required(invocation, "--image", "name an image that holds the trainer"),
      .trainer = invocation.value("--trainer").value_or("trainer"),
      .config = printed_config(user, {}),
      .claim = required(invocation, "--claim",
                        "a run's folder must outlive its pods; name a PersistentVolumeClaim that "
                        "all pods can mount"),
      .folder = mounted_folder(invocation),
      .pods = invocation.count("--nodes").value_or(1),
      .max_restarts = invocation.count("--max-restarts").value_or(3)};
  // A pod that takes the place of another one has to find the run.
  if (!is_given(user, "exp_dir")) job.overrides.push_back("exp_dir=runs/" + job.name);
  if (const auto ranks = invocation.count("--ntasks-per-node"); ranks || gpus) {
    job.overrides.push_back(fmt::format("launcher.processes={}", ranks ? *ranks : *gpus));
  }
  if (gpus) job.limits.emplace_back("nvidia.com/gpu", std::to_string(*gpus));
  if (const auto cores = invocation.value("--cpus-per-node"))
    job.limits.emplace_back("cpu", *cores);
  if (const auto memory = invocation.value("--mem")) job.limits.emplace_back("memory", *memory);
  return job;
}

int run(const Invocation& invocation) {
  const UserConfig user = load_config(invocation.arguments);
  const std::string manifest = kubernetes_manifest(job_of(invocation, user));
  if (!invocation.has("--dry-run")) submit({"kubectl", "apply", "-f", "-"}, manifest);
  fmt::print("{}", manifest);
  return 0;
}

}  // namespace

Command launch_kubernetes_command() {
  using Takes = Flag::Takes;
  return {
      .name = "kubernetes",
      .summary = "submit a run to Kubernetes",
      .help =
          "Checks the config, writes the manifest of an Indexed Job, and hands it to kubectl: a "
          "pod a node. The manifest holds the config; data and the run's folder lie on the volume "
          "of --claim, which is also the pods' working directory. A pod that fails or is evicted "
          "is replaced, and the run goes on from its newest checkpoint.",
      .examples = {"launch kubernetes my.yaml --image=registry/trainer:1 --claim=runs --nodes=2 "
                   "--gpus-per-node=4",
                   "launch kubernetes my.yaml --image=trainer --claim=runs --dry-run"},
      .positionals = {kConfig, kConfigs, kOverrides},
      .flags = {{.name = "--image", .summary = "holds the trainer", .takes = Takes::text},
                {.name = "--trainer",
                 .summary = "the executable in the image; default: trainer",
                 .takes = Takes::text},
                {.name = "--claim",
                 .summary = "PersistentVolumeClaim that all pods mount",
                 .takes = Takes::text},
                {.name = "--mount", .summary = "where; default: /data", .takes = Takes::text},
                {.name = "--nodes", .summary = "pods; default: 1", .takes = Takes::count},
                {.name = "--ntasks-per-node",
                 .summary = "ranks of a pod; default: one a GPU, else launcher.processes",
                 .takes = Takes::count},
                {.name = "--gpus-per-node", .summary = "GPUs of a pod", .takes = Takes::count},
                {.name = "--cpus-per-node", .summary = "cores of a pod: 16", .takes = Takes::text},
                {.name = "--mem", .summary = "memory of a pod: 64Gi", .takes = Takes::text},
                {.name = "--max-restarts",
                 .summary = "how often all pods start again after a failure; default: 3",
                 .takes = Takes::count},
                {.name = "--job-name", .summary = "default: the run's name", .takes = Takes::text},
                {.name = "--dry-run", .summary = "print the manifest and submit nothing"}},
      .run = run,
  };
}

}  // namespace phalanx
