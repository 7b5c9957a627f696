// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/open_safetensors.h"

#include <c10/util/accumulate.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "trainer/base/json_cause.h"
#include "trainer/checkpoint/format/checked_file.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOneFile = "model.safetensors";
constexpr uint64_t kLargestIndex = 100'000'000;

bool is_file(const fs::path& path) {
  std::error_code unknown;
  return fs::is_regular_file(path, unknown);
}

/// Adds those of a file's tensors that the index says stand there; all without one.
void add_file(Checkpoint& model, const std::string& name,
              const std::map<std::string, std::string>* index) {
  const fs::path path = path_of(model.path, model.manifest, name);
  const SafetensorsFile file(path);
  std::vector<std::byte> head(file.data_start());
  const File opened(path, O_RDONLY | O_NOFOLLOW);
  opened.read(head, 0);
  model.manifest.files[name] = {
      .size = opened.size(), .head_bytes = head.size(), .head_checksum = checksum_of(head)};
  for (const SafetensorsEntry& entry : file.header().entries) {
    if (index != nullptr) {
      const auto listed = index->find(entry.name);
      if (listed == index->end() || listed->second != name) continue;
    }
    ManifestTensor tensor{.part = std::string(kModelPart),
                          .name = entry.name,
                          .dtype = entry.dtype,
                          .shape = entry.shape,
                          .slices = {}};
    if (entry.end > entry.begin) {
      tensor.slices.push_back({.begin = 0,
                               .end = c10::multiply_integers(entry.shape),
                               .file = name,
                               .offset = file.data_start() + entry.begin,
                               .checksums = {}});
    }
    model.manifest.tensors.push_back(std::move(tensor));
  }
}

void add_indexed(Checkpoint& model) {
  const auto index = read_safetensors_index(model.path / kSafetensorsIndex);
  std::set<std::string> names;
  for (const auto& [tensor, name] : index) {
    if (!is_plain_file_name(name)) {
      throw CheckpointError(fmt::format("'{}' names the file '{}' outside of its folder",
                                        (model.path / kSafetensorsIndex).string(), name));
    }
    names.insert(name);
  }
  for (const auto& name : names) add_file(model, name, &index);
  if (model.manifest.tensors.size() == index.size()) return;
  std::set<std::string> found;
  for (const ManifestTensor& tensor : model.manifest.tensors) found.insert(tensor.name);
  for (const auto& [tensor, name] : index) {
    if (found.contains(tensor)) continue;
    throw CheckpointError(fmt::format("'{}' has no tensor '{}', which the index says is there",
                                      (model.path / name).string(), tensor));
  }
}

}  // namespace

std::map<std::string, std::string> read_safetensors_index(const fs::path& path) {
  try {
    const auto json = nlohmann::json::parse(read_text(path, kLargestIndex));
    return json.at("weight_map").get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(
        fmt::format("'{}' is no index of safetensors files: {}", path.string(), json_cause(error)));
  }
}

bool is_safetensors_model(const fs::path& path) {
  if (is_file(path)) return path.extension() == ".safetensors";
  return is_file(path / kOneFile) || is_file(path / kSafetensorsIndex);
}

Checkpoint open_safetensors_model(const fs::path& path) {
  Checkpoint model{.path = is_file(path) ? path.parent_path() : path, .manifest = {}};
  model.manifest.chunk_bytes = 0;
  if (is_file(path)) {
    add_file(model, path.filename().string(), nullptr);
  } else if (is_file(path / kSafetensorsIndex)) {
    add_indexed(model);
  } else {
    add_file(model, kOneFile, nullptr);
  }
  return model;
}

}  // namespace phalanx
