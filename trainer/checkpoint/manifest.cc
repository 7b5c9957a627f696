#include "trainer/checkpoint/manifest.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "trainer/checkpoint/checkpoint_error.h"
#include "trainer/checkpoint/checksum.h"
#include "trainer/checkpoint/layout.h"
#include "trainer/core/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The last field; what stands before this text is what the checksum is taken of.
constexpr std::string_view kChecksumField = ",\n  \"checksum\": \"";
constexpr std::string_view kEnding = "\"\n}\n";
constexpr size_t kChecksumDigits = 16;

// JSON has no word for these, so they are texts.
Json real_to_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double real_from_json(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  const std::string text = json.get<std::string>();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  throw CheckpointError(fmt::format("'{}' is no number", text));
}

Json state_to_json(const State& state) {
  return {{"step", state.step},
          {"epoch", state.epoch},
          {"samples", state.samples},
          {"tokens", state.tokens},
          {"epoch_samples", state.epoch_samples},
          {"elapsed", state.elapsed},
          {"skipped_steps", state.skipped_steps},
          {"loss_scale", state.loss_scale},
          {"good_steps", state.good_steps}};
}

State state_from_json(const Json& json) {
  State state;
  state.step = json.at("step").get<int64_t>();
  state.epoch = json.at("epoch").get<int64_t>();
  state.samples = json.at("samples").get<int64_t>();
  state.tokens = json.at("tokens").get<int64_t>();
  state.epoch_samples = json.at("epoch_samples").get<int64_t>();
  state.elapsed = json.at("elapsed").get<double>();
  // Checkpoints from before there was mixed precision have none of these.
  state.skipped_steps = json.value("skipped_steps", state.skipped_steps);
  state.loss_scale = json.value("loss_scale", state.loss_scale);
  state.good_steps = json.value("good_steps", state.good_steps);
  return state;
}

Json tensor_to_json(const ManifestTensor& tensor) {
  return {{"part", tensor.part},
          {"name", tensor.name},
          {"dtype", safetensors_dtype_name(tensor.dtype)},
          {"shape", tensor.shape},
          {"begin", tensor.begin},
          {"end", tensor.end},
          {"file", tensor.file},
          {"bytes", {tensor.byte_begin, tensor.byte_end}}};
}

ManifestTensor tensor_from_json(const Json& json) {
  return {.part = json.at("part").get<std::string>(),
          .name = json.at("name").get<std::string>(),
          .dtype = safetensors_dtype(json.at("dtype").get<std::string>()),
          .shape = json.at("shape").get<std::vector<int64_t>>(),
          .begin = json.at("begin").get<int64_t>(),
          .end = json.at("end").get<int64_t>(),
          .file = json.at("file").get<std::string>(),
          .byte_begin = json.at("bytes").at(0).get<uint64_t>(),
          .byte_end = json.at("bytes").at(1).get<uint64_t>()};
}

// A name that stays in its folder, whatever it is joined to.
bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

std::map<std::string, FileSummary> files_from_json(const Json& json) {
  std::map<std::string, FileSummary> files;
  for (const auto& [name, file] : json.items()) {
    if (!is_plain_file_name(name)) {
      throw CheckpointError(fmt::format("it names the file '{}' outside of its folder", name));
    }
    files[name] = {.size = file.at("size").get<uint64_t>(),
                   .checksum = file.at("xxh3_64").get<std::string>()};
  }
  return files;
}

void require_listed_files(const Manifest& manifest) {
  for (const ManifestTensor& tensor : manifest.tensors) {
    const auto file = manifest.files.find(tensor.file);
    if (file == manifest.files.end()) {
      throw CheckpointError(
          fmt::format("tensor '{}' stands in a file that it does not list", tensor.name));
    }
    if (tensor.byte_begin > tensor.byte_end || tensor.byte_end > file->second.size ||
        tensor.begin < 0 || tensor.begin > tensor.end) {
      throw CheckpointError(fmt::format("the ranges of tensor '{}' are wrong", tensor.name));
    }
  }
}

Manifest manifest_from_json(const Json& json) {
  if (const auto version = json.at("format_version").get<int64_t>();
      version != Manifest::kFormatVersion) {
    throw CheckpointError(
        fmt::format("it has format version {}, this program reads version {}: use the program "
                    "that wrote it",
                    version, Manifest::kFormatVersion));
  }
  Manifest manifest;
  manifest.phalanx_version = json.at("phalanx_version").get<std::string>();
  manifest.torch_version = json.at("torch_version").get<std::string>();
  manifest.state = state_from_json(json.at("state"));
  manifest.world_size = json.at("world_size").get<int64_t>();
  manifest.global_batch_size = json.at("global_batch_size").get<int64_t>();
  manifest.data_fingerprint = json.at("data").at("fingerprint").get<std::string>();
  manifest.seed = json.at("data").at("seed").get<uint64_t>();
  manifest.previous = json.at("previous").get<std::string>();
  for (const auto& [name, value] : json.at("metrics").items()) {
    manifest.metrics.emplace_back(name, real_from_json(value));
  }
  manifest.config = json.at("config").dump();
  manifest.files = files_from_json(json.at("files"));
  for (const Json& tensor : json.at("tensors")) {
    manifest.tensors.push_back(tensor_from_json(tensor));
  }
  require_listed_files(manifest);
  return manifest;
}

// The text without its last field, closed again; throws when the checksum does not fit.
std::string checked_body(std::string_view text) {
  const size_t tail = kChecksumField.size() + kChecksumDigits + kEnding.size();
  if (text.size() < tail || !text.ends_with(kEnding) ||
      text.substr(text.size() - tail, kChecksumField.size()) != kChecksumField) {
    throw CheckpointError("it does not end with its checksum: it was cut short or overwritten");
  }
  const std::string_view body = text.substr(0, text.size() - tail);
  Checksum checksum;
  checksum.update(body);
  if (checksum.digits() != text.substr(body.size() + kChecksumField.size(), kChecksumDigits)) {
    throw CheckpointError("its checksum is wrong: it was damaged or edited after it was written");
  }
  return std::string(body) + "\n}\n";
}

}  // namespace

std::string rng_prefix(int64_t rank) { return fmt::format("rank_{}.", rank); }

std::string format_manifest(const Manifest& manifest) {
  Json json;
  json["format_version"] = Manifest::kFormatVersion;
  json["phalanx_version"] = manifest.phalanx_version;
  json["torch_version"] = manifest.torch_version;
  json["state"] = state_to_json(manifest.state);
  json["world_size"] = manifest.world_size;
  json["global_batch_size"] = manifest.global_batch_size;
  json["data"] = {{"fingerprint", manifest.data_fingerprint}, {"seed", manifest.seed}};
  json["previous"] = manifest.previous;
  json["metrics"] = Json::object();
  for (const auto& [name, value] : manifest.metrics) json["metrics"][name] = real_to_json(value);
  json["config"] = Json::parse(manifest.config, nullptr, /*allow_exceptions=*/false);
  if (json["config"].is_discarded()) {
    throw std::logic_error("the config given for a checkpoint's manifest is no JSON");
  }
  json["files"] = Json::object();
  for (const auto& [name, file] : manifest.files) {
    json["files"][name] = {{"size", file.size}, {"xxh3_64", file.checksum}};
  }
  json["tensors"] = Json::array();
  for (const ManifestTensor& tensor : manifest.tensors) {
    json["tensors"].push_back(tensor_to_json(tensor));
  }
  std::string text = json.dump(2);
  text.resize(text.size() - std::string_view("\n}").size());
  Checksum checksum;
  checksum.update(text);
  return text + std::string(kChecksumField) + checksum.digits() + std::string(kEnding);
}

Manifest parse_manifest(std::string_view text, const fs::path& path) {
  try {
    return manifest_from_json(Json::parse(checked_body(text)));
  } catch (const CheckpointError& error) {
    throw CheckpointError(fmt::format("'{}' cannot be used: {}", path.string(), error.what()));
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(
        fmt::format("'{}' is not a checkpoint's manifest: {}", path.string(), error.what()));
  }
}

Manifest load_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kManifestFile;
  return parse_manifest(read_text(path), path);
}

}  // namespace phalanx
