// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/checkpoint/format/open_safetensors.h"
#include "trainer/checkpoint/load/foreign.h"
#include "trainer/checkpoint/load/mismatch.h"
#include "trainer/cli/command.h"
#include "trainer/commands/checkpoint/copy_model.h"
#include "trainer/commands/checkpoint/written_dtype.h"
#include "trainer/commands/data/tokenizer_warning.h"
#include "trainer/commands/new/new_folder.h"
#include "trainer/commands/positionals.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/hugging_face/folder.h"
#include "trainer/hugging_face/folder_files.h"
#include "trainer/hugging_face/model_section.h"
#include "trainer/hugging_face/our_tensors.h"
#include "trainer/hugging_face/section_of_folder.h"
#include "trainer/io/hub_name.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

Checkpoint open_folder(const fs::path& folder) {
  const bool is_folder = fs::is_directory(folder);
  if (is_folder && is_safetensors_model(folder)) return open_safetensors_model(folder);
  refuse_foreign(folder);
  if (!fs::exists(folder)) throw UserError(about_missing(folder));
  if (!is_folder) throw UserError(fmt::format("'{}' is a file: name a folder", folder.string()));
  throw UserError(
      fmt::format("'{}' has neither model.safetensors nor model.safetensors.index.json: save it "
                  "with save_pretrained of transformers, which writes them",
                  folder.string()));
}

/// Throws UserError that lists what differs from the model of this section.
void require_fit(const OurTensors& tensors, const config::Node& section, const fs::path& folder) {
  Mismatches found = find_mismatches(tensors.contents(), kModelPart, tensors_of_model(section));
  found.dtypes.clear();  // which a start of a run converts
  if (found.lines().empty()) return;
  throw UserError(fmt::format("'{}' does not hold the model that its config.json describes:\n  {}",
                              folder.string(), fmt::join(found.lines(), "\n  ")));
}

std::vector<CopiedTensor> copied(const OurTensors& tensors, const Invocation& invocation) {
  std::vector<CopiedTensor> copied;
  for (const auto& [name, tensor] : tensors.by_name()) {
    copied.push_back(
        {.source = tensor, .name = name, .dtype = asked_dtype(invocation, tensor->dtype)});
  }
  return copied;
}

// As the section of the model has it, under whatever name.
std::optional<int64_t> vocabulary_size_of(const HuggingFaceModel& model,
                                          const config::Node& section) {
  for (const HuggingFaceField& field : model.fields) {
    if (field.theirs != "vocab_size") continue;
    const config::Node* value = section.find(field.ours);
    if (value != nullptr && value->is_scalar()) return config::parse_integer(value->text).value;
  }
  return std::nullopt;
}

// A comment, as a task decides whether it takes a tokenizer.
std::string tokenizer_line(const fs::path& checkpoint) {
  const std::string folder = (checkpoint / kAttachmentsFolder).string();
  return fmt::format("# its tokenizer: task.data.tokenizer={}\n",
                     config::print_inline(config::Node::string(folder)));
}

// A config that begins with the checkpoint, to be laid over another.
void print_config(config::Node config, const std::string& summary, const fs::path& source,
                  const fs::path& checkpoint, bool has_tokenizer) {
  config::Node section = config::Node::map();
  section.set("load_from", config::Node::string(checkpoint.string()));
  config.set("checkpoint", std::move(section));
  fmt::print("# {} imported from {}\n# to train it: trainer YOURS.yaml THIS.yaml\n{}{}", summary,
             config::print_inline(config::Node::string(source.string())),
             has_tokenizer ? tokenizer_line(checkpoint) : std::string(), config::print(config));
}

int run(const Invocation& invocation) {
  const Arguments arguments = invocation.arguments;
  const Checkpoint source = open_folder(arguments[0]);
  const config::Node theirs = read_hugging_face_config(source.path);
  const std::string name = model_of_type(model_type_of(theirs));
  const HuggingFaceModel& model = hugging_face_model(name);
  config::Node section = section_of_folder(source, model, theirs);
  section.set("name", config::Node::string(name));
  config::Node config = config::Node::map();
  config.set("model", resolved_model(std::move(section), arguments.subspan(2)));

  const OurTensors tensors(source, hugging_face_model_of(model, *config.find("model")));
  tensors.require_equal_copies();
  require_fit(tensors, *config.find("model"), source.path);
  const Attachments attachments = model_files(source.path);
  const bool has_tokenizer = !tokenizer_files(source.path).empty();
  if (has_tokenizer) {
    warn_of_tokenizer(source.path, vocabulary_size_of(model, *config.find("model")));
  }
  NewFolder folder(arguments[1]);
  const ModelCopy copy(source.path, source.manifest, copied(tensors, invocation));
  const Contents written =
      copy_model(copy, folder.path(), "importing " + source.path.filename().string());
  write_model_manifest(written, attachments, config::to_json(config), /*base=*/"", folder.path());
  folder.commit();
  print_config(std::move(config), summary_of(written), source.path, folder.destination(),
               has_tokenizer);
  return 0;
}

}  // namespace

Command checkpoint_import_command() {
  return {
      .name = "import",
      .summary = "make a checkpoint of a folder that save_pretrained wrote",
      .help =
          "FOLDER holds config.json and safetensors. DESTINATION is a new or empty "
          "folder; it becomes a checkpoint that holds only a model, and the files that go "
          "with it: a tokenizer's, chat templates, generation_config.json. Prints a config that "
          "begins with it, to be laid over "
          "one of yours.",
      .examples = {"checkpoint import gpt2 runs/gpt2 > gpt2.yaml",
                   "checkpoint import gpt2 runs/gpt2 model.attn_pdrop=0 --dtype=fp32"},
      .positionals = {{"FOLDER", Positional::Takes::run},
                      {"DESTINATION", Positional::Takes::run},
                      kOverrides},
      .flags = {dtype_flag()},
      .run = run,
  };
}

}  // namespace phalanx
