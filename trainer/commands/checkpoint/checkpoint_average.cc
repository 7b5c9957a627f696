// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/attachments.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/load/average.h"
#include "trainer/checkpoint/load/load.h"
#include "trainer/cli/command.h"
#include "trainer/commands/checkpoint/checkpoint_paths.h"
#include "trainer/commands/checkpoint/copy_model.h"
#include "trainer/commands/checkpoint/written_dtype.h"
#include "trainer/commands/new/new_folder.h"
#include "trainer/commands/use/trained_adapters.h"
#include "trainer/config/syntax/parse_json.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

/// Throws UserError for a checkpoint that two arguments name.
std::vector<Checkpoint> open_all(Arguments arguments) {
  std::vector<Checkpoint> checkpoints;
  std::map<fs::path, std::string> named;
  for (const std::string& argument : arguments) {
    checkpoints.push_back(open_checkpoint(checkpoint_at(argument)));
    const auto [there, is_new] = named.emplace(fs::canonical(checkpoints.back().path), argument);
    if (is_new) continue;
    throw UserError(fmt::format("'{}' and '{}' are the same checkpoint, '{}': name each one once",
                                there->second, argument, there->first.string()));
  }
  return checkpoints;
}

// What adapters are scaled by, beside their rank; nothing if the config does not say.
std::optional<double> lora_alpha_of(const Checkpoint& checkpoint) {
  const config::Node run =
      config::parse_json(checkpoint.manifest.config, (checkpoint.path / kManifestFile).string());
  const config::Node* alpha = run.find_path("lora.lora_alpha");
  if (alpha == nullptr || !alpha->is_scalar()) return std::nullopt;
  return config::parse_real(alpha->text).value;
}

/// Throws UserError for adapters whose tensors mean something else than the first one's.
void require_one_scale(const std::vector<Checkpoint>& checkpoints) {
  const Checkpoint& first = checkpoints.front();
  if (!holds_adapters(first)) return;
  for (const Checkpoint& other : checkpoints) {
    if (lora_alpha_of(other) == lora_alpha_of(first)) continue;
    throw UserError(fmt::format(
        "'{}' and '{}' hold adapters with different lora.lora_alpha: average adapters of one scale",
        first.path.string(), other.path.string()));
  }
}

std::vector<CopiedTensor> averaged(ModelAverage& average, const Invocation& invocation) {
  std::vector<CopiedTensor> tensors = average.tensors();
  for (CopiedTensor& tensor : tensors) tensor.dtype = asked_dtype(invocation, tensor.dtype);
  return tensors;
}

void print_summary(const std::vector<Checkpoint>& checkpoints, const fs::path& destination,
                   const Contents& written) {
  std::vector<std::string> names;
  for (const Checkpoint& checkpoint : checkpoints) {
    names.push_back(checkpoint.path.filename().string());
  }
  fmt::print("{} -> {}: {}\n", fmt::join(names, " + "), destination.string(), summary_of(written));
}

int run(const Invocation& invocation) {
  const fs::path destination = invocation.required("--output");
  const std::vector<Checkpoint> checkpoints = open_all(invocation.arguments);
  const Checkpoint& first = checkpoints.front();
  ModelAverage average(checkpoints);
  require_one_scale(checkpoints);
  const Attachments attachments = read_attachments(first);
  NewFolder folder(destination);
  const ModelCopy copy(first.path, first.manifest, averaged(average, invocation));
  const Contents written =
      copy_model(copy, folder.path(), fmt::format("averaging {} checkpoints", checkpoints.size()));
  write_model_manifest(written, attachments, first.manifest.config, first.manifest.base,
                       folder.path());
  folder.commit();
  print_summary(checkpoints, folder.destination(), written);
  return 0;
}

}  // namespace

Command checkpoint_average_command() {
  return {
      .name = "average",
      .summary = "average the weights of several checkpoints of one model",
      .help =
          "A, B and the others are checkpoints, or runs: of a run the newest counts. All must hold "
          "the same tensors, and all that is read is compared with its checksums. The folder that "
          "--output names, new or empty, becomes a checkpoint that holds only a model: the mean of "
          "each floating point tensor, in the precision that A has it in; other tensors have to be "
          "the same. The config and the tokenizer's files are A's. Adapters (the section lora) of "
          "one "
          "model are averaged matrix by matrix.",
      .examples = {"checkpoint average runs/my/run_0/checkpoints/step-00000800 "
                   "runs/my/run_0/checkpoints/step-00001000 --output=runs/my_average",
                   "checkpoint average runs/my/run_0 runs/my/run_1 runs/my/run_2 --output=soup "
                   "--dtype=bf16"},
      .positionals = {{"A", Positional::Takes::run},
                      {"B", Positional::Takes::run},
                      {"C", Positional::Takes::run, Positional::Count::any}},
      .flags = {{.name = "--output",
                 .summary = "the new folder",
                 .takes = Flag::Takes::path,
                 .is_required = true},
                dtype_flag()},
      .run = run,
  };
}

}  // namespace phalanx
