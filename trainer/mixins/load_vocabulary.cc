// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/load_vocabulary.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/hugging_face/model_section.h"
#include "trainer/tokenizers/load_tokenizer.h"
#include "trainer/tokenizers/sentinel_tokens.h"
#include "trainer/tokenizers/shared_tokens.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSize = "vocab_size";

std::map<std::string, std::vector<int64_t>> shapes_of(const config::Node& model) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const ShardedTensorView& view : tensors_of_model(model)) shapes[view.name] = view.shape;
  return shapes;
}

int64_t rows_there(const VocabularyTensors& here, const Checkpoint& named) {
  for (const ManifestTensor& tensor : named.manifest.tensors) {
    const bool is_one = tensor.part == kModelPart && here.names.contains(tensor.name);
    if (is_one && !tensor.shape.empty()) return tensor.shape.front();
  }
  throw UserError(fmt::format(
      "checkpoint.load_vocabulary: '{}' has no tensor of a vocabulary, as '{}' is one here",
      named.path.string(), *here.names.begin()));
}

std::shared_ptr<const Tokenizer> tokenizer_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (auto entry = fs::directory_iterator(folder, unreadable);
       !unreadable && entry != fs::directory_iterator(); entry.increment(unreadable)) {
    names.push_back(entry->path().filename().string());
  }
  if (tokenizer_file_names(names).empty()) return nullptr;
  return load_tokenizer("checkpoint.load_from", folder).tokenizer;
}

// A checkpoint has the files that it carries in a folder of their own.
std::shared_ptr<const Tokenizer> tokenizer_there(const Checkpoint& source) {
  auto tokenizer = tokenizer_in(source.path);
  return tokenizer ? tokenizer : tokenizer_in(source.path / kAttachmentsFolder);
}

}  // namespace

VocabularyTensors vocabulary_tensors(const config::Node& model) {
  const config::Node* size = model.find(kSize);
  if (size == nullptr || !size->is_scalar() || size->is_null()) {
    throw UserError(
        "checkpoint.load_vocabulary: this model's config says no vocab_size, so that it "
        "is not known which tensors have a row for each token: set model.vocab_size if the model "
        "has "
        "one, else leave out checkpoint.load_vocabulary");
  }
  VocabularyTensors found{.names = {}, .rows = std::stoll(size->text)};
  // What grows with the vocabulary is its.
  config::Node larger = model;
  larger.set(kSize, config::Node::integer(found.rows + 1));
  const auto shapes = shapes_of(model);
  for (const auto& [name, shape] : shapes_of(larger)) {
    if (shape.empty() || shape.front() != found.rows + 1) continue;
    const auto before = shapes.find(name);
    if (before != shapes.end() && before->second.front() == found.rows) found.names.insert(name);
  }
  if (!found.names.empty()) return found;
  throw UserError(fmt::format(
      "checkpoint.load_vocabulary: no tensor of this model has model.vocab_size={} rows that grow "
      "with it, so that rows cannot be taken one by one (a padded vocabulary has others): leave "
      "out "
      "checkpoint.load_vocabulary",
      found.rows));
}

std::optional<VocabularyRows> rows_of_source(const CheckpointConfig& config,
                                             const config::Node& model, const Checkpoint& named,
                                             const Tokenizer* tokenizer) {
  if (!config.load_vocabulary) return std::nullopt;
  const VocabularyTensors here = vocabulary_tensors(model);
  VocabularyRows rows{.tensors = here.names, .there = rows_there(here, named), .source = {}};
  if (*config.load_vocabulary == LoadVocabulary::by_id) {
    rows.source = rows_by_id(here.rows, rows.there);
    return rows;
  }
  auto of_source = tokenizer_there(named);
  if (of_source == nullptr || tokenizer == nullptr) {
    throw UserError(fmt::format(
        "checkpoint.load_vocabulary=by_token: {} no tokenizer: write by_id to take rows by their "
        "numbers",
        of_source == nullptr ? fmt::format("'{}' holds", named.path.string())
                             : std::string("this run's task has")));
  }
  // Those of a run that corrupts spans are no tokens of the files that it reads.
  if (const int64_t sentinels = sentinels_of(*tokenizer); sentinels > 0) {
    const int64_t first = first_sentinel_behind(*of_source, sentinels);
    of_source = with_sentinels(std::move(of_source), first, sentinels);
  }
  rows.source = tokens_there(*tokenizer, here.rows, *of_source, rows.there);
  return rows;
}

}  // namespace phalanx
