// SPDX-License-Identifier: Apache-2.0
#include "trainer/submission/kubernetes_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string_view>

#include "trainer/launch/launcher.h"

namespace phalanx {
namespace {

constexpr size_t kLongestName = 52;  // a host name has 63 letters; "-" and the pod's index follow

// A text of JSON is one of YAML, whatever it holds.
std::string yaml_text(std::string_view text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

// The lines of a block `|` at this depth.
std::string block(std::string_view text, size_t depth) {
  std::string lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (!line.empty()) lines.append(depth, ' ').append(line);
    lines += '\n';
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return lines;
}

constexpr const char* kServiceAndConfig = R"(# Pods find pod 0 by this name.
apiVersion: v1
kind: Service
metadata:
  name: {name}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    job-name: {name}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
data:
  config.yaml: |
{config}---
)";

constexpr const char* kJob = R"(apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
spec:
  completionMode: Indexed
  completions: {pods}
  parallelism: {pods}
  # When a rank fails, all pods end and start again.
  backoffLimit: {failures}
  podFailurePolicy:
    rules:
    - action: FailJob  # a mistake of the user
      onExitCodes:
        containerName: trainer
        operator: In
        values: [2]
    - action: Ignore  # evicted
      onPodConditions:
      - type: DisruptionTarget
        status: "True"
    - action: Ignore  # asked to end, and saved
      onExitCodes:
        containerName: trainer
        operator: In
        values: [{stopped}]
  template:
    spec:
      restartPolicy: Never
      subdomain: {name}
      terminationGracePeriodSeconds: {save_seconds}
      containers:
      - name: trainer
        image: {image}
        command:
{command}        workingDir: {folder}
        env:
        - name: WORLD_SIZE
          value: "{pods}"
        - name: MASTER_ADDR
          value: {name}-0.{name}
{limits}        volumeMounts:
        - name: config
          mountPath: /etc/phalanx
        - name: run
          mountPath: {folder}
        - name: shared-memory
          mountPath: /dev/shm
      volumes:
      - name: config
        configMap:
          name: {name}
      - name: run
        persistentVolumeClaim:
          claimName: {claim}
      - name: shared-memory  # NCCL needs more than a pod's 64 MiB
        emptyDir:
          medium: Memory
)";

std::string command_of(const KubernetesJob& job) {
  std::vector<std::string> words = {job.trainer, "train", "/etc/phalanx/config.yaml"};
  words.insert(words.end(), job.overrides.begin(), job.overrides.end());
  std::string lines;
  // Kubernetes replaces $(NAME) in a command.
  for (std::string& word : words) {
    for (size_t at = 0; (at = word.find("$(", at)) != std::string::npos; at += 3) {
      word.insert(at, "$");
    }
    lines += fmt::format("        - {}\n", yaml_text(word));
  }
  return lines;
}

std::string limits_of(const KubernetesJob& job) {
  if (job.limits.empty()) return "";
  std::string lines = "        resources:\n          limits:\n";
  for (const auto& [name, amount] : job.limits) {
    lines += fmt::format("            {}: {}\n", name, yaml_text(amount));
  }
  return lines;
}

}  // namespace

std::string dns_label(std::string_view name) {
  std::string label;
  for (const char letter : name) {
    const auto c = static_cast<unsigned char>(letter);
    const bool fits = c < 128 && std::isalnum(c) != 0;
    if (fits) label += static_cast<char>(std::tolower(c));
    if (!fits && !label.empty() && label.back() != '-') label += '-';
  }
  // A service's name begins with a letter.
  if (!label.empty() && std::isdigit(static_cast<unsigned char>(label.front())) != 0) {
    label.insert(0, "run-");
  }
  label = label.substr(0, kLongestName);
  while (label.ends_with('-')) label.pop_back();
  return label.empty() ? "run" : label;
}

std::string kubernetes_manifest(const KubernetesJob& job) {
  using fmt::arg;
  return fmt::format(kServiceAndConfig, arg("name", job.name),
                     arg("config", block(job.config, 4))) +
         fmt::format(kJob, arg("name", job.name), arg("pods", job.pods),
                     arg("failures", job.max_restarts * job.pods),
                     arg("stopped", kSignalBase + SIGTERM), arg("save_seconds", job.save_seconds),
                     arg("image", yaml_text(job.image)), arg("command", command_of(job)),
                     arg("folder", yaml_text(job.folder)), arg("limits", limits_of(job)),
                     arg("claim", yaml_text(job.claim)));
}

}  // namespace phalanx
