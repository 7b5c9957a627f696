// SPDX-License-Identifier: Apache-2.0
#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trainer/checkpoint/format/safetensors_header.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/cli/columns.h"
#include "trainer/cli/command.h"
#include "trainer/commands/checkpoint/checkpoint_paths.h"
#include "trainer/commands/counted.h"
#include "trainer/commands/positionals.h"
#include "trainer/io/bytes_text.h"

namespace phalanx {
namespace {

using Rows = std::vector<std::vector<std::string>>;

uint64_t bytes_of(const ManifestTensor& tensor) {
  return static_cast<uint64_t>(c10::multiply_integers(tensor.shape)) *
         c10::elementSize(tensor.dtype);
}

std::string facts(const Manifest& manifest) {
  const State& state = manifest.state;
  std::vector<Row> rows{{"step", fmt::format("{}", state.step)},
                        {"epoch", fmt::format("{}, {} of it done", state.epoch,
                                              counted(state.epoch_samples, "sample"))},
                        {"samples", fmt::format("{}", state.samples)},
                        {"tokens", fmt::format("{}", state.tokens)},
                        {"trained for", fmt::format("{:.1f} s", state.elapsed)},
                        {"ranks", fmt::format("{}", manifest.world_size)},
                        {"global batch size", fmt::format("{}", manifest.global_batch_size)},
                        {"seed", fmt::format("{}", manifest.seed)},
                        {"data", manifest.data_fingerprint},
                        {"came after", manifest.previous.empty() ? "none" : manifest.previous},
                        {"saved by", fmt::format("phalanx {}, torch {}", manifest.phalanx_version,
                                                 manifest.torch_version)}};
  if (state.loss_scale > 0) {
    rows.push_back({"loss scale", fmt::format("{}, {} skipped", state.loss_scale,
                                              counted(state.overflowed_steps, "step"))});
  }
  for (const auto& [name, value] : manifest.metrics) {
    rows.push_back({name, fmt::format("{}", value)});
  }
  for (const auto& [name, json] : manifest.parts) rows.push_back({name, json});
  return two_columns(rows, {});
}

std::string parts(const Manifest& manifest) {
  struct Sum {
    int64_t tensors = 0;
    int64_t elements = 0;
    uint64_t bytes = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (const ManifestTensor& tensor : manifest.tensors) {
    Sum& sum = sums[{tensor.part, std::string(safetensors_dtype_name(tensor.dtype))}];
    ++sum.tensors;
    sum.elements += c10::multiply_integers(tensor.shape);
    sum.bytes += bytes_of(tensor);
  }
  Rows rows{{"part", "dtype", "tensors", "elements", "size"}};
  for (const auto& [key, sum] : sums) {
    rows.push_back({key.first, key.second, std::to_string(sum.tensors),
                    std::to_string(sum.elements), bytes_text(sum.bytes)});
  }
  return table(rows);
}

std::string files(const Manifest& manifest) {
  Rows rows{{"file", "size"}};
  for (const auto& [name, file] : listed_files(manifest)) {
    rows.push_back({name, bytes_text(file.size)});
  }
  return table(rows);
}

std::string tensors(const Manifest& manifest) {
  Rows rows{{"part", "tensor", "dtype", "shape", "size", "slices"}};
  for (const ManifestTensor& tensor : manifest.tensors) {
    rows.push_back(
        {tensor.part, tensor.name, std::string(safetensors_dtype_name(tensor.dtype)),
         fmt::format("[{}]", fmt::join(tensor.shape, ", ")), bytes_text(bytes_of(tensor)),
         fmt::format("{}{}", tensor.slices.size(), tensor.has_boxes() ? ", some of boxes" : "")});
  }
  return table(rows);
}

int run(const Invocation& invocation) {
  const auto path = checkpoint_at(invocation.arguments.front());
  const Manifest manifest = open_checkpoint(path).manifest;
  fmt::print("{}\n{}\n{}\n{}", path.string(), facts(manifest), parts(manifest), files(manifest));
  if (invocation.has("--tensors")) fmt::print("\n{}", tensors(manifest));
  if (invocation.has("--config")) fmt::print("\n{}\n", manifest.config);
  return 0;
}

}  // namespace

Command checkpoint_inspect_command() {
  return {
      .name = "inspect",
      .summary = "what a checkpoint says of itself",
      .help =
          "Shows one checkpoint, or the newest of a run: where the run stood, and what "
          "each file holds.",
      .examples = {"checkpoint inspect runs/quickstart/run_0 --tensors"},
      .positionals = {kCheckpoints},
      .flags = {{"--tensors", "every tensor"}, {"--config", "the run's config, as JSON"}},
      .run = run,
  };
}

}  // namespace phalanx
