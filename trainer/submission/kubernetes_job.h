// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// A run as an Indexed Job of Kubernetes, one pod a node.
struct KubernetesJob {
  std::string name;                    ///< A DNS label, for the job, its service and its config.
  std::string image;                   ///< Holds the trainer.
  std::string trainer;                 ///< The executable in the image.
  std::string config;                  ///< The text of the config file that the pods read.
  std::string claim;                   ///< PersistentVolumeClaim, mounted by all pods at `folder`.
  std::string folder;                  ///< Also the working directory.
  int64_t pods = 1;                    ///< WORLD_SIZE.
  int64_t max_restarts = 3;            ///< For the whole run.
  int64_t save_seconds = 120;          ///< From SIGTERM to SIGKILL.
  std::vector<std::string> overrides;  ///< key=value, behind the config.
  /// Limits of a pod: {"nvidia.com/gpu", "4"}.
  std::vector<std::pair<std::string, std::string>> limits;
};

/// The manifest, as YAML: a headless service by which pods find pod 0, a ConfigMap and the Job. A
/// pod that ends with exit code 2, a user's mistake, fails the job; one that is evicted, or has
/// saved because it was asked to end, is replaced without counting as a restart.
std::string kubernetes_manifest(const KubernetesJob& job);

/// `name` as a DNS label (RFC 1123) short enough for a pod's host name, NAME-INDEX; "run" if no
/// letter or digit is left.
std::string dns_label(std::string_view name);

}  // namespace phalanx
