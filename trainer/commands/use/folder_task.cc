// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/use/folder_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/interfaces/causal_language_model.h"
#include "models/interfaces/sequence_to_sequence_model.h"
#include "trainer/api/model_base.h"
#include "trainer/base/user_error.h"
#include "trainer/config/tree/node.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/hugging_face/folder_files.h"
#include "trainer/hugging_face/generation_file.h"
#include "trainer/hugging_face/model_section.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// Longer documents are cut: the memory for a sequence grows with its length.
constexpr int64_t kLongestSequence = 1024;
// Enough work for a pass at a time.
constexpr int64_t kTokensOfBatch = 4096;
// What sequence_to_sequence reads by default.
constexpr int64_t kInputLength = 512;
constexpr const char* kLanguageModeling = "language_modeling";
constexpr const char* kInstructionTuning = "instruction_tuning";
constexpr const char* kSequenceToSequence = "sequence_to_sequence";

enum class Reader { causal, sequences, other };

// What the model reads, and how much of it at once.
struct Reading {
  Reader reader = Reader::other;
  int64_t longest = kLongestSequence;
};

Reading reading_of(const TrainedModel& trained, const UserConfig& user) {
  const config::Node resolved = trained.resolved_for_use(user);
  const ModelWithoutValues sizes = model_without_values(*chosen_section<ModelBase>(resolved));
  if (const auto* causal = sizes.model->as<CausalLanguageModel>()) {
    return {.reader = Reader::causal,
            .longest = std::min(causal->context_length(), kLongestSequence)};
  }
  const bool reads_sequences = sizes.model->as<SequenceToSequenceModel>() != nullptr;
  return {.reader = reads_sequences ? Reader::sequences : Reader::other};
}

// How to name a task that fits, for messages.
std::string fitting_tasks(const DataUse& use, Reader reader) {
  const bool evaluates = use.kind == DataUse::Kind::evaluate;
  const std::string target = evaluates ? " 'task.data.pairs.target=\"{output}\"'" : "";
  if (reader == Reader::sequences) {
    return fmt::format(
        "task.name={} 'task.data.pairs.input=\"summarize: {{document}}\"'{}, with the names of the "
        "fields in your file",
        kSequenceToSequence, target);
  }
  if (reader == Reader::other) return "task.name=NAME and its data";
  return fmt::format(
      "task.name={} {}, or task.name={} 'task.data.pairs.input=\"{{instruction}}\"'{}, with the "
      "names of the fields in your file, {}",
      kLanguageModeling, evaluates ? "and its data" : "for the probability of each line",
      kInstructionTuning, target, evaluates ? "for answers" : "to write an answer to each");
}

[[noreturn]] void refuse_without_task(const fs::path& folder, const DataUse& use, Reader reader) {
  const bool takes_files = use.kind == DataUse::Kind::evaluate && reader == Reader::causal;
  throw UserError(fmt::format(
      "'{}' says what the model is, not what it is for: {}name a task: {}; or a config with the "
      "section task, by --config=FILE (docs/using_a_model.md)",
      folder.string(),
      takes_files
          ? fmt::format("name a file to evaluate (trainer evaluate {} FILE), or ", folder.string())
          : "",
      fitting_tasks(use, reader)));
}

// A part of a map that is there, or is made. References to other parts of the map do not outlive
// it.
config::Node& part_of(config::Node& section, const char* key) {
  config::Node* part = section.find(key);
  return part == nullptr || part->is_null() ? section.set(key, config::Node::map()) : *part;
}

void set_default(config::Node& section, const char* key, config::Node value) {
  const config::Node* there = section.find(key);
  if (there == nullptr || there->is_missing()) section.set(key, std::move(value));
}

// "task: NAME" as "task: {name: NAME}".
config::Node& section_of_task(config::Node& tree) {
  config::Node& task = part_of(tree, "task");
  if (task.is_scalar() && !task.is_missing()) {
    config::Node named = config::Node::map();
    named.origin = task.origin;
    named.set("name", task);
    task = std::move(named);
  } else if (!task.is_map()) {
    task = config::Node::map();
  }
  return task;
}

std::string name_of(const config::Node& section) {
  const config::Node* name = section.find("name");
  return name != nullptr && name->is_scalar() && !name->is_missing() ? name->text : std::string();
}

/// Fills the sections of the tasks that the program knows.
class FolderTask {
 public:
  FolderTask(const TrainedModel& trained, const DataUse& use, const Reading& reading)
      : trained_(trained), use_(use), reading_(reading) {}

  void complete(config::Node& task) const {
    const std::string name = name_of(task);
    if (name != kLanguageModeling && name != kInstructionTuning && name != kSequenceToSequence) {
      return;
    }
    if (name == kLanguageModeling) {
      config::Node& sample = part_of(task, "sample");
      if (sample.is_map()) set_default(sample, "tokens", config::Node::integer(0));
    }
    config::Node& data = part_of(task, "data");
    if (!data.is_map()) return;  // Resolving says what is wrong with it.
    if (name == kLanguageModeling) {
      complete_language_modeling(data);
    } else if (name == kInstructionTuning) {
      set_default(data, "sequence_length", config::Node::integer(reading_.longest));
      complete_pairs(data);
    } else if (name == kSequenceToSequence && data.find("span_corruption") == nullptr) {
      complete_pairs(data);
      complete_input(data);
    }
  }

 private:
  void complete_language_modeling(config::Node& data) const {
    set_default(data, "sequence_length", config::Node::integer(reading_.longest));
    if (data.find("path") != nullptr || data.find("mixture") != nullptr) return;
    if (!part_of(data, "source").is_map()) return;
    if (name_of(part_of(data, "source")).empty()) {
      set_default(data, "documents", config::Node::string("padded"));
      part_of(data, "source").set("name", config::Node::string("text"));
    }
    config::Node& source = part_of(data, "source");
    if (name_of(source) != "text") return;
    set_files(source);
    set_tokenizer(source);
  }

  void complete_pairs(config::Node& data) const {
    set_tokenizer(data);
    if (const auto end = end_of_text()) {
      set_default(data, "end_of_text", config::Node::integer(*end));
    }
    config::Node& pairs = part_of(data, "pairs");
    if (!pairs.is_map()) return;
    set_files(pairs);
    // Predictions are made without.
    if (use_.kind == DataUse::Kind::predict) {
      set_default(pairs, "target", config::Node::string("{target}"));
    }
  }

  // As of the other tasks that read lines; a line of plain text is an input by itself.
  void complete_input(config::Node& data) const {
    config::Node& pairs = part_of(data, "pairs");
    if (use_.kind != DataUse::Kind::predict || !pairs.is_map()) return;
    set_default(pairs, "input", config::Node::string("{text}"));
  }

  void set_files(config::Node& section) const {
    if (use_.files.empty()) return;
    config::Node files = config::Node::list();
    for (const fs::path& file : use_.files) {
      files.items.push_back(config::Node::string(file.string()));
    }
    set_default(section, "files", std::move(files));
  }

  void set_tokenizer(config::Node& section) const {
    const config::Node* there = section.find("tokenizer");
    if (there != nullptr && !there->is_missing()) return;
    const auto own = trained_.tokenizer_folder();
    if (!own && !use_.tokenizer) {
      throw UserError(
          fmt::format("'{}' holds no tokenizer: name the one with which the model was trained by "
                      "--tokenizer=PATH, or give --tokenizer=bytes if its tokens are bytes",
                      trained_.path().string()));
    }
    section.set("tokenizer",
                config::Node::string(use_.tokenizer ? *use_.tokenizer : own->string()));
  }

  // By generation_config.json where the model's tokenizer does not count, or says no more.
  std::optional<int64_t> end_of_text() const {
    const std::vector<int64_t> ends = ends_of_texts();
    if (ends.size() == 1 || (use_.tokenizer && !ends.empty())) return ends.front();
    return std::nullopt;
  }

  std::vector<int64_t> ends_of_texts() const {
    if (!trained_.is_hugging_face()) return trained_.ends_of_text();
    for (const Attachment& file : model_files(trained_.path())) {
      if (file.name == kGenerationFile) return end_tokens(file.content, file.name);
    }
    return {};
  }

  const TrainedModel& trained_;
  const DataUse& use_;
  const Reading& reading_;
};

// As many sequences as make kTokensOfBatch tokens, by the length that a field of task.data bounds.
void set_batch_size(config::Node& tree) {
  config::Node& training = part_of(tree, "training");
  if (!training.is_map()) return;
  for (const char* key : {"batch_size", "global_batch_size", "gradient_accumulation_steps"}) {
    if (training.find(key) != nullptr) return;
  }
  int64_t length = kInputLength;
  for (const char* field : {"task.data.sequence_length", "task.data.input_length"}) {
    const config::Node* value = tree.find_path(field);
    if (value == nullptr || !value->is_scalar()) continue;
    length = config::parse_integer(value->text).value.value_or(length);
  }
  const int64_t size = std::max<int64_t>(1, kTokensOfBatch / std::max<int64_t>(1, length));
  training.set("batch_size", config::Node::integer(size));
}

}  // namespace

void complete_folder_task(const TrainedModel& trained, const DataUse& use, UserConfig& user) {
  const Reading reading = reading_of(trained, user);
  config::Node& task = section_of_task(user.tree);
  if (name_of(task).empty()) {
    const bool evaluates_files = use.kind == DataUse::Kind::evaluate && !use.files.empty();
    if (reading.reader != Reader::causal || !evaluates_files) {
      refuse_without_task(trained.path(), use, reading.reader);
    }
    task.set("name", config::Node::string(kLanguageModeling));
  }
  FolderTask(trained, use, reading).complete(task);
  set_batch_size(user.tree);
}

}  // namespace phalanx
