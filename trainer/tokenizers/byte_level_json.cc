// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/byte_level_json.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "trainer/tokenizers/byte_level_bpe.h"
#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"
#include "trainer/tokenizers/visible_bpe.h"

namespace phalanx {
namespace {

using nlohmann::json;

Split read_split(const json& step) {
  const json& pattern = step.at("pattern");
  if (!pattern.contains("Regex")) refuse_part("a Split by something else than a Regex");
  const auto behavior = step.at("behavior").get<std::string>();
  const bool inverted = is_set(step, "invert");
  Split split{.pattern = pattern.at("Regex").get<std::string>()};
  if (behavior == "Removed") {
    (inverted ? split.drops_gaps : split.drops_matches) = true;
  } else if (behavior != "Isolated") {
    refuse_part("a Split with the behavior " + behavior);
  }
  return split;
}

// How a text is cut into words.
struct Cutting {
  std::vector<Split> splits;
  bool adds_space = false;
};

void read_byte_level(const json& step, Cutting& cutting) {
  if (is_set(step, "add_prefix_space")) {
    if (!cutting.splits.empty()) {
      refuse_part("ByteLevel with add_prefix_space after another pre-tokenizer");
    }
    cutting.adds_space = true;
  }
  if (step.value("use_regex", true)) {
    cutting.splits.push_back({.pattern = std::string(kGpt2Pattern)});
  }
}

Cutting read_pre_tokenizer(const json& pre_tokenizer) {
  Cutting cutting;
  if (pre_tokenizer.is_null()) refuse_part("no pre-tokenizer");
  bool is_byte_level = false;
  for (const json& step : steps_of(pre_tokenizer, "pretokenizers")) {
    const std::string type = type_of(step);
    if (is_byte_level) refuse_part("the pre-tokenizer " + type + " after ByteLevel");
    if (type == "ByteLevel") {
      read_byte_level(step, cutting);
      is_byte_level = true;
    } else if (type == "Split") {
      cutting.splits.push_back(read_split(step));
    } else {
      refuse_part("the pre-tokenizer " + type);
    }
  }
  if (!is_byte_level) refuse_part("a BPE without the pre-tokenizer ByteLevel");
  return cutting;
}

void check_model(const json& model) {
  for (const char* option : {"byte_fallback", "fuse_unk"}) {
    if (!is_set(model, option)) continue;
    refuse_part(fmt::format("the option {} of byte-level BPE", option));
  }
}

}  // namespace

std::shared_ptr<const Tokenizer> make_byte_level_bpe(const json& file,
                                                     std::vector<AddedToken> added,
                                                     std::optional<int32_t> end_of_text) {
  in_part("normalizer", [&] {
    for (const json& step : steps_of(member(file, "normalizer"), "normalizers")) {
      refuse_part("the normalizer " + type_of(step));
    }
  });
  in_part("decoder", [&] {
    const json& decoder = member(file, "decoder");
    if (decoder.is_null()) refuse_part("no decoder");
    if (type_of(decoder) != "ByteLevel") refuse_part("the decoder " + type_of(decoder));
  });
  Cutting cutting;
  in_part("pre_tokenizer", [&] { cutting = read_pre_tokenizer(member(file, "pre_tokenizer")); });
  std::optional<ByteLevelBpe::Parts> parts;
  in_part("model", [&] {
    const json& model = file.at("model");
    check_model(model);
    VisibleBpe bpe = read_visible_bpe(read_vocabulary(model.at("vocab")), added,
                                      read_merges(model.at("merges")));
    parts = ByteLevelBpe::Parts{.vocabulary = std::move(bpe.vocabulary),
                                .merges = std::move(bpe.merges),
                                .added = std::move(added),
                                .splits = std::move(cutting.splits),
                                .takes_whole_words = is_set(model, "ignore_merges"),
                                .adds_space = cutting.adds_space,
                                .end_of_text = end_of_text};
  });
  return std::make_shared<ByteLevelBpe>(*std::move(parts));
}

}  // namespace phalanx
