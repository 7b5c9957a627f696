// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "trainer/base/json_cause.h"
#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/checkpoint/format/checksum.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/manifest_rules.h"
#include "trainer/checkpoint/format/safetensors_header.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The last field; what stands before this text is what the checksum is taken of.
constexpr std::string_view kChecksumField = ",\n  \"checksum\": \"";
constexpr std::string_view kEnding = "\"\n}\n";

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

/// get() would take 1.5, true and -1 for what they are not.
template <class Integer>
Integer integer_at(const Json& json, const char* name) {
  const Json& value = json.at(name);
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<Integer>::max());
  if (value.is_number_unsigned() && value.get<uint64_t>() <= kMax) return value.get<Integer>();
  throw CheckpointError(fmt::format("its {} is no number from 0 to {}", name, kMax));
}

int64_t count_at(const Json& json, const char* name) { return integer_at<int64_t>(json, name); }
uint64_t size_at(const Json& json, const char* name) { return integer_at<uint64_t>(json, name); }

Json state_to_json(const State& state) {
  Json json = {{"step", state.step},
               {"epoch", state.epoch},
               {"samples", state.samples},
               {"tokens", state.tokens},
               {"epoch_samples", state.epoch_samples},
               {"elapsed", state.elapsed},
               {"skipped_steps", state.overflowed_steps},
               {"loss_scale", state.loss_scale},
               {"good_steps", state.good_steps}};
  // Left out, it is the state of a program that knew of none.
  if (state.validation_due) json["validation_due"] = true;
  return json;
}

State state_from_json(const Json& json) {
  State state;
  state.step = count_at(json, "step");
  state.epoch = count_at(json, "epoch");
  state.samples = count_at(json, "samples");
  state.tokens = count_at(json, "tokens");
  state.epoch_samples = count_at(json, "epoch_samples");
  state.elapsed = json.at("elapsed").get<double>();
  state.overflowed_steps = count_at(json, "skipped_steps");
  state.loss_scale = json.at("loss_scale").get<double>();
  state.good_steps = count_at(json, "good_steps");
  if (json.contains("validation_due")) state.validation_due = json.at("validation_due").get<bool>();
  return state;
}

Json slice_to_json(const ManifestSlice& slice) {
  std::string digits;
  digits.reserve(slice.checksums.size() * kChecksumDigits);
  for (const uint64_t checksum : slice.checksums) digits += checksum_digits(checksum);
  Json json = {{"begin", slice.begin},
               {"end", slice.end},
               {"file", slice.file},
               {"offset", slice.offset},
               {"xxh3_64", std::move(digits)}};
  if (slice.box) json["box"] = {{"offsets", slice.box->offsets}, {"sizes", slice.box->sizes}};
  return json;
}

uint64_t checksum_from_text(std::string_view digits) {
  const auto checksum = parse_checksum(digits);
  if (!checksum) throw CheckpointError(fmt::format("'{}' is no checksum", digits));
  return *checksum;
}

std::vector<int64_t> counts_from_json(const Json& json, const char* fault) {
  for (const Json& size : json) {
    if (!size.is_number_unsigned()) throw CheckpointError(fault);
  }
  return json.get<std::vector<int64_t>>();
}

TensorBox box_from_json(const Json& json) {
  constexpr const char* kFault = "a box has an offset or a size that is no number";
  return {.offsets = counts_from_json(json.at("offsets"), kFault),
          .sizes = counts_from_json(json.at("sizes"), kFault)};
}

ManifestSlice slice_from_json(const Json& json) {
  ManifestSlice slice{.begin = count_at(json, "begin"),
                      .end = count_at(json, "end"),
                      .file = json.at("file").get<std::string>(),
                      .offset = size_at(json, "offset"),
                      .checksums = {}};
  const auto& digits = json.at("xxh3_64").get_ref<const std::string&>();
  for (size_t place = 0; place < digits.size(); place += kChecksumDigits) {
    slice.checksums.push_back(
        checksum_from_text(std::string_view(digits).substr(place, kChecksumDigits)));
  }
  if (json.contains("box")) slice.box = box_from_json(json.at("box"));
  return slice;
}

Json tensor_to_json(const ManifestTensor& tensor) {
  Json slices = Json::array();
  for (const ManifestSlice& slice : tensor.slices) slices.push_back(slice_to_json(slice));
  return {{"part", tensor.part},
          {"name", tensor.name},
          {"dtype", safetensors_dtype_name(tensor.dtype)},
          {"shape", tensor.shape},
          {"slices", std::move(slices)}};
}

ManifestTensor tensor_from_json(const Json& json) {
  ManifestTensor tensor{
      .part = json.at("part").get<std::string>(),
      .name = json.at("name").get<std::string>(),
      .dtype = safetensors_dtype(json.at("dtype").get<std::string>()),
      .shape = counts_from_json(json.at("shape"), "a shape has a size that is no number"),
      .slices = {}};
  for (const Json& slice : json.at("slices")) tensor.slices.push_back(slice_from_json(slice));
  return tensor;
}

Json files_to_json(const std::map<std::string, ManifestFile>& files) {
  Json json = Json::object();
  for (const auto& [name, file] : files) {
    json[name] = {{"size", file.size},
                  {"head_bytes", file.head_bytes},
                  {"head_xxh3_64", checksum_digits(file.head_checksum)}};
  }
  return json;
}

std::map<std::string, ManifestFile> files_from_json(const Json& json) {
  std::map<std::string, ManifestFile> files;
  for (const auto& [name, file] : json.items()) {
    files[name] = {
        .size = size_at(file, "size"),
        .head_bytes = size_at(file, "head_bytes"),
        .head_checksum = checksum_from_text(file.at("head_xxh3_64").get_ref<const std::string&>())};
  }
  return files;
}

Json attachments_to_json(const std::map<std::string, ManifestFile>& attachments) {
  Json json = Json::object();
  for (const auto& [name, file] : attachments) {
    json[name] = {{"size", file.size}, {"xxh3_64", checksum_digits(file.head_checksum)}};
  }
  return json;
}

std::map<std::string, ManifestFile> attachments_from_json(const Json& json) {
  std::map<std::string, ManifestFile> attachments;
  for (const auto& [name, file] : json.items()) {
    const uint64_t size = size_at(file, "size");
    attachments[name] = {
        .size = size,
        .head_bytes = size,
        .head_checksum = checksum_from_text(file.at("xxh3_64").get_ref<const std::string&>())};
  }
  return attachments;
}

// Throws std::logic_error; `what` is "config", say.
Json own_json(const std::string& text, const std::string& what) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  throw std::logic_error(fmt::format("the {} given for a checkpoint's manifest is no JSON", what));
}

Json parts_to_json(const std::map<std::string, std::string>& parts) {
  Json json = Json::object();
  for (const auto& [name, text] : parts) json[name] = own_json(text, "state of " + name);
  return json;
}

std::map<std::string, std::string> parts_from_json(const Json& json) {
  std::map<std::string, std::string> parts;
  for (const auto& [name, part] : json.items()) parts[name] = part.dump();
  return parts;
}

bool has_boxes(const Manifest& manifest) {
  return std::any_of(manifest.tensors.begin(), manifest.tensors.end(),
                     [](const ManifestTensor& tensor) { return tensor.has_boxes(); });
}

Manifest manifest_from_json(const Json& json) {
  const auto version = count_at(json, "format_version");
  if (version != Manifest::kFormatVersion && version != Manifest::kVersionWithoutBoxes) {
    throw CheckpointError(
        fmt::format("it has format version {}, this program reads versions {} and {}: use the "
                    "program that wrote it",
                    version, Manifest::kVersionWithoutBoxes, Manifest::kFormatVersion));
  }
  Manifest manifest;
  manifest.phalanx_version = json.at("phalanx_version").get<std::string>();
  manifest.torch_version = json.at("torch_version").get<std::string>();
  manifest.state = state_from_json(json.at("state"));
  manifest.world_size = count_at(json, "world_size");
  manifest.global_batch_size = count_at(json, "global_batch_size");
  manifest.data_fingerprint = json.at("data").at("fingerprint").get<std::string>();
  manifest.seed = size_at(json.at("data"), "seed");
  manifest.previous = json.at("previous").get<std::string>();
  for (const auto& [name, value] : json.at("metrics").items()) {
    manifest.metrics.emplace_back(name, real_from_json(value));
  }
  manifest.config = json.at("config").dump();
  manifest.chunk_bytes = size_at(json, "chunk_bytes");
  manifest.files = files_from_json(json.at("files"));
  if (json.contains("reduction_order")) {
    manifest.reduction_order = json.at("reduction_order").get<std::vector<std::string>>();
  }
  if (json.contains("base")) manifest.base = json.at("base").get<std::string>();
  if (json.contains("attachments")) {
    manifest.attachments = attachments_from_json(json.at("attachments"));
  }
  if (json.contains("parts")) manifest.parts = parts_from_json(json.at("parts"));
  for (const Json& tensor : json.at("tensors")) {
    manifest.tensors.push_back(tensor_from_json(tensor));
  }
  if (version == Manifest::kVersionWithoutBoxes && has_boxes(manifest)) {
    throw CheckpointError(
        fmt::format("it has boxes of tensors, which format version {} does not have", version));
  }
  require_sound(manifest);
  return manifest;
}

/// Keeps hostile texts from taking the stack, or hours: this library walks values by recursion, and
/// goes through an object's keys one by one.
class Limits {
 public:
  void check(int depth, Json::parse_event_t event) {
    constexpr int kDeepest = 64;
    constexpr std::size_t kMaxKeys = 20'000;
    if (depth > kDeepest) throw CheckpointError("its values are nested too deeply");
    // A key has the depth of what is in its object, which began one level above.
    const auto level = static_cast<std::size_t>(depth);
    keys_.resize(std::max(keys_.size(), level + 2));
    if (event == Json::parse_event_t::object_start) keys_[level + 1] = 0;
    if (event == Json::parse_event_t::key && ++keys_[level] > kMaxKeys) {
      throw CheckpointError("one of its objects has too many keys");
    }
  }

 private:
  std::vector<std::size_t> keys_;  ///< Keys of the objects that are open, by depth.
};

Json parse_within_limits(const std::string& text) {
  Limits limits;
  return Json::parse(text, [&](int depth, Json::parse_event_t event, Json&) {
    limits.check(depth, event);
    return true;
  });
}

// The text without its last field, closed again; throws when the checksum does not fit.
std::string checked_body(std::string_view text) {
  const size_t tail = kChecksumField.size() + kChecksumDigits + kEnding.size();
  if (text.size() < tail || !text.ends_with(kEnding) ||
      text.substr(text.size() - tail, kChecksumField.size()) != kChecksumField) {
    throw CheckpointError("it does not end with its checksum: it was cut short or overwritten");
  }
  const std::string_view body = text.substr(0, text.size() - tail);
  if (checksum_digits(checksum_of(body)) !=
      text.substr(body.size() + kChecksumField.size(), kChecksumDigits)) {
    throw CheckpointError("its checksum is wrong: it was damaged or edited after it was written");
  }
  return std::string(body) + "\n}\n";
}

}  // namespace

std::string rng_prefix(int64_t rank) { return fmt::format("rank_{}.", rank); }

std::map<std::string, ManifestFile> listed_files(const Manifest& manifest) {
  std::map<std::string, ManifestFile> files = manifest.files;
  for (const auto& [name, file] : manifest.attachments) {
    files[fmt::format("{}/{}", kAttachmentsFolder, name)] = file;
  }
  return files;
}

std::set<std::string> further_parts(const Manifest& manifest) {
  std::set<std::string> names;
  for (const auto& [name, json] : manifest.parts) names.insert(name);
  for (const ManifestTensor& tensor : manifest.tensors) names.insert(tensor.part);
  for (const std::string_view own : {kModelPart, kOptimizerPart, kRngPart}) {
    names.erase(std::string(own));
  }
  return names;
}

std::string format_manifest(const Manifest& manifest) {
  Json json;
  json["format_version"] =
      has_boxes(manifest) ? Manifest::kFormatVersion : Manifest::kVersionWithoutBoxes;
  json["phalanx_version"] = manifest.phalanx_version;
  json["torch_version"] = manifest.torch_version;
  json["state"] = state_to_json(manifest.state);
  json["world_size"] = manifest.world_size;
  json["global_batch_size"] = manifest.global_batch_size;
  json["data"] = {{"fingerprint", manifest.data_fingerprint}, {"seed", manifest.seed}};
  json["previous"] = manifest.previous;
  json["metrics"] = Json::object();
  for (const auto& [name, value] : manifest.metrics) json["metrics"][name] = real_to_json(value);
  json["config"] = own_json(manifest.config, "config");
  json["chunk_bytes"] = manifest.chunk_bytes;
  json["files"] = files_to_json(manifest.files);
  if (!manifest.reduction_order.empty()) json["reduction_order"] = manifest.reduction_order;
  if (!manifest.base.empty()) json["base"] = manifest.base;
  // Left out, it is the manifest of a program that knew of none.
  if (!manifest.attachments.empty()) {
    json["attachments"] = attachments_to_json(manifest.attachments);
  }
  if (!manifest.parts.empty()) json["parts"] = parts_to_json(manifest.parts);
  json["tensors"] = Json::array();
  for (const ManifestTensor& tensor : manifest.tensors) {
    json["tensors"].push_back(tensor_to_json(tensor));
  }
  std::string text = json.dump(2);
  text.resize(text.size() - std::string_view("\n}").size());
  const std::string digits = checksum_digits(checksum_of(text));
  return text + std::string(kChecksumField) + digits + std::string(kEnding);
}

Manifest parse_manifest(std::string_view text, const fs::path& path) {
  try {
    return manifest_from_json(parse_within_limits(checked_body(text)));
  } catch (const CheckpointError& error) {
    throw CheckpointError(fmt::format("'{}' cannot be used: {}", path.string(), error.what()));
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(
        fmt::format("'{}' is not a checkpoint's manifest: {}", path.string(), json_cause(error)));
  }
}

Manifest load_manifest(const fs::path& checkpoint) {
  const fs::path path = checkpoint / kManifestFile;
  constexpr uint64_t kLargest = uint64_t{256} << 20;
  return parse_manifest(read_text(path, kLargest), path);
}

}  // namespace phalanx
