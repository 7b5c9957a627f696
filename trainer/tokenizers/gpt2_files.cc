// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/gpt2_files.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/tokenizers/byte_level_bpe.h"
#include "trainer/tokenizers/json_vocabulary.h"
#include "trainer/tokenizers/visible_bpe.h"

namespace phalanx {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";

// Reads the merges from the lines of a file, whose first may name its version.
MergeList read_merges(std::string_view file) {
  MergeList merges;
  for (int64_t number = 1; !file.empty(); ++number) {
    const size_t end = file.find('\n');
    std::string_view line = file.substr(0, end);
    file.remove_prefix(end == std::string_view::npos ? file.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    try {
      merges.push_back(split_merge(line));
    } catch (const std::invalid_argument& e) {
      throw UserError(fmt::format("line {} of the merges: {}", number, e.what()));
    }
  }
  return merges;
}

}  // namespace

std::shared_ptr<const Tokenizer> parse_gpt2_files(std::string_view encoder,
                                                  std::string_view merges) {
  try {
    std::vector<Vocabulary::Entry> entries = read_vocabulary(parse_json_object(encoder));
    std::vector<AddedToken> added;
    std::optional<int32_t> end_of_text;
    for (const Vocabulary::Entry& entry : entries) {
      if (entry.text != kEndOfText) continue;
      added.push_back({.token = entry.token, .text = entry.text, .is_special = true});
      end_of_text = entry.token;
    }
    VisibleBpe bpe = read_visible_bpe(std::move(entries), added, read_merges(merges));
    return std::make_shared<ByteLevelBpe>(ByteLevelBpe::Parts{
        .vocabulary = std::move(bpe.vocabulary),
        .merges = std::move(bpe.merges),
        .added = std::move(added),
        .splits = {{.pattern = std::string(kGpt2Pattern)}},
        .end_of_text = end_of_text,
    });
  } catch (const std::invalid_argument& e) {
    throw UserError(e.what());
  }
}

}  // namespace phalanx
