// SPDX-License-Identifier: Apache-2.0
#include "trainer/compute/selection.h"

#include <fmt/format.h>
#include <torch/headeronly/version.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "trainer/compute/machine.h"
#include "trainer/io/file.h"

namespace phalanx::compute {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kLeastGain = 1.05;
constexpr uint64_t kMaxFileBytes = 1 << 20;

// All that the answer depends on.
json key_of(const TimedModel& model, const std::vector<Gemm>& gemms) {
  json key = {{"cpu", describe_cpu()}, {"libtorch", TORCH_VERSION}, {"model", model.config}};
  for (const Gemm gemm : gemms) key["candidates"].push_back(name_of(gemm));
  return key;
}

fs::path file_of(const fs::path& cache, const json& key) {
  return cache / fmt::format("gemm-{:016x}.json", std::hash<std::string>()(key.dump()));
}

std::optional<Selection> read_kept(const fs::path& file, const json& key) {
  try {
    const json kept = json::parse(read_text(file, kMaxFileBytes));
    const std::optional<Gemm> gemm = gemm_named(kept.at("gemm").get<std::string>());
    if (kept.at("key") != key || !gemm || gemm == Gemm::automatic) return std::nullopt;
    return Selection{.gemm = *gemm,
                     .gain = kept.at("gain").get<double>(),
                     .is_measured = true,
                     .notes = kept.at("notes").get<std::vector<std::string>>()};
  } catch (const IoError&) {
    return std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

void keep(const fs::path& file, const json& key, const Selection& selection,
          const std::vector<ProductTiming>& timings) {
  json seconds = json::object();
  for (const auto& timing : timings) seconds[std::string(name_of(timing.gemm))] = timing.seconds;
  const json content = {{"key", key},
                        {"gemm", name_of(selection.gemm)},
                        {"gain", selection.gain},
                        {"notes", selection.notes},
                        {"seconds", seconds}};
  try {
    create_folders(file.parent_path());
    replace_file(file, content.dump(2) + "\n");
  } catch (const IoError&) {
    // The next start times them again.
  }
}

}  // namespace

Selection fastest(const std::vector<ProductTiming>& timings) {
  Selection selection;
  double base = 0;
  double best = 0;
  for (const ProductTiming& timing : timings) {
    if (!timing.excluded.empty()) {
      selection.notes.push_back(fmt::format("{}: {}", name_of(timing.gemm), timing.excluded));
      continue;
    }
    const bool is_default = timing.gemm == Gemm::library_default;
    if (is_default) base = timing.seconds;
    if (is_default || (base > 0 && timing.seconds * kLeastGain <= base && timing.seconds < best)) {
      best = timing.seconds;
      selection.gemm = timing.gemm;
    }
  }
  selection.is_measured = base > 0;
  if (selection.is_measured) selection.gain = base / best;
  return selection;
}

Selection select_gemm(const TimedModel& model, const std::optional<fs::path>& cache) {
  const std::vector<Gemm> gemms = candidates();
  if (gemms.size() == 1) return {};
  const json key = key_of(model, gemms);
  if (cache) {
    if (auto kept = read_kept(file_of(*cache, key), key)) return *std::move(kept);
  }
  try {
    const auto timings = time_products(gemms, model.shapes);
    Selection selection = fastest(timings);
    if (cache && selection.is_measured) keep(file_of(*cache, key), key, selection, timings);
    return selection;
  } catch (const std::system_error& error) {
    // The host has no more processes or files: that must not end the run.
    return {.notes = {error.what()}};
  }
}

}  // namespace phalanx::compute
