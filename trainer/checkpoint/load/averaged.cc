// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/averaged.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "trainer/averages/weight_averages.h"
#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

// By the config of the run that wrote it: averages.validate.
bool measures_averages(const Manifest& manifest) {
  using Json = nlohmann::json;
  const Json config = Json::parse(manifest.config, nullptr, /*allow_exceptions=*/false);
  const Json::json_pointer field("/averages/validate");
  return config.contains(field) && config.at(field) == true;
}

}  // namespace

Checkpoint with_averages(Checkpoint checkpoint) {
  Manifest& manifest = checkpoint.manifest;
  const auto json = manifest.parts.find(std::string(kAveragesPart));
  if (json == manifest.parts.end()) {
    throw UserError(
        fmt::format("'{}' holds no averages of its weights: a run keeps them with averages.method "
                    "ema or swa; leave out --average",
                    checkpoint.path.string()));
  }
  if (updates_in(json->second) == 0) {
    throw UserError(fmt::format(
        "'{}' holds no averages of its weights yet: none were taken by its step (averages.start, "
        "averages.every_n_steps and every_n_epochs say when); leave out --average, or take a later "
        "checkpoint",
        checkpoint.path.string()));
  }
  std::map<std::string, ManifestTensor> averages;
  std::vector<ManifestTensor> tensors;
  for (ManifestTensor& tensor : manifest.tensors) {
    if (tensor.part == kAveragesPart) {
      averages.emplace(tensor.name, std::move(tensor));
    } else {
      tensors.push_back(std::move(tensor));
    }
  }
  for (ManifestTensor& tensor : tensors) {
    if (tensor.part != kModelPart) continue;
    const auto average = averages.find(tensor.name);
    if (average == averages.end()) continue;
    tensor = std::move(average->second);
    tensor.part = kModelPart;
  }
  manifest.tensors = std::move(tensors);
  return checkpoint;
}

std::string note_of_averages(const Checkpoint& checkpoint) {
  const Manifest& manifest = checkpoint.manifest;
  const auto json = manifest.parts.find(std::string(kAveragesPart));
  if (json == manifest.parts.end() || updates_in(json->second) == 0) return "";
  return fmt::format(
      "{} holds the weights and their average{}: the weights are used; --average takes the average",
      checkpoint.path.filename().string(),
      measures_averages(manifest) ? ", which the run's validations measured" : "");
}

}  // namespace phalanx
