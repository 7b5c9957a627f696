// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/foreign.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";
constexpr const char* kAdapterConfig = "adapter_config.json";
constexpr const char* kAdapters = "adapter_model.safetensors";
constexpr uint64_t kLargestConfig = 10'000'000;

bool is_there(const fs::path& path) {
  std::error_code unknown;
  return fs::exists(path, unknown);
}

bool is_pickle(const fs::path& file) {
  constexpr std::array<std::string_view, 4> kEnds{".bin", ".pt", ".pth", ".ckpt"};
  return std::find(kEnds.begin(), kEnds.end(), file.extension().string()) != kEnds.end();
}

// Finds the weights that earlier versions of save_pretrained, and other programs, wrote.
std::optional<std::string> pickle_in(const fs::path& folder) {
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json", "model.pt",
                           "consolidated.00.pth", "adapter_model.bin"}) {
    if (is_there(folder / name)) return name;
  }
  return std::nullopt;
}

// " of the model 'org/name'", as adapter_config.json says.
std::string base_of(const fs::path& folder) {
  try {
    const auto json = nlohmann::json::parse(read_text(folder / kAdapterConfig, kLargestConfig));
    return fmt::format(" of the model '{}'", json.at("base_model_name_or_path").get<std::string>());
  } catch (const std::exception&) {
    return {};
  }
}

std::string about_adapters(const fs::path& path, const fs::path& folder) {
  return fmt::format(
      "'{}' holds adapters of peft alone{}, and the adapters of others are not read: merge them "
      "into the model with merge_and_unload() of peft, and name the folder that save_pretrained() "
      "writes then",
      path.string(), base_of(folder));
}

std::string about_pickle(const fs::path& path, const std::string& file) {
  return fmt::format(
      "'{}' holds weights as a pickle ({}), which is never read, as it can run code: open it with "
      "from_pretrained() of transformers, and name the folder that save_pretrained() writes then, "
      "with model.safetensors in it",
      path.string(), file);
}

std::string about_file(const fs::path& file) {
  if (file.filename() == kAdapters) return about_adapters(file, file.parent_path());
  if (is_pickle(file)) return about_pickle(file, file.filename().string());
  if (file.extension() != ".gguf") return {};
  return fmt::format(
      "'{}' holds weights as GGUF, which is not read: name the folder with the model's config.json "
      "and model.safetensors",
      file.string());
}

std::string about_folder(const fs::path& folder) {
  if (is_safetensors_model(folder)) {
    if (is_there(folder / kConfig)) {
      return fmt::format(
          "'{0}' holds a model of Hugging Face's libraries, which is no checkpoint: make one of it "
          "with `trainer checkpoint import {0} DESTINATION`, or begin a run with it "
          "(checkpoint.load_from={0})",
          folder.string());
    }
    return fmt::format(
        "'{}' holds safetensors, but no config.json, which says what the model is: put it there, "
        "or begin a run with the weights (checkpoint.load_from), whose section model says it",
        folder.string());
  }
  if (is_there(folder / kAdapterConfig) || is_there(folder / kAdapters)) {
    return about_adapters(folder, folder);
  }
  if (const auto pickle = pickle_in(folder)) return about_pickle(folder, *pickle);
  if (!is_there(folder / kConfig)) return {};
  return fmt::format(
      "'{}' has a config.json, but no weights: neither model.safetensors nor {}; put them there, "
      "or save the model anew with save_pretrained() of transformers",
      folder.string(), kSafetensorsIndex);
}

// Empty where nothing is known.
std::string about(const fs::path& path) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) return about_folder(path);
  return is_there(path) ? about_file(path) : std::string();
}

}  // namespace

void refuse_foreign(const fs::path& path) {
  const std::string what = about(path);
  if (!what.empty()) throw UserError(what);
}

}  // namespace phalanx
