// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/pairs/input_texts.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "trainer/base/user_error.h"

namespace phalanx {

InputTexts::InputTexts(const std::vector<std::filesystem::path>& files,
                       std::shared_ptr<const Tokenizer> tokenizer, std::optional<PairsConfig> pairs)
    : lines_(files),
      tokenizer_(std::move(tokenizer)),
      pairs_(std::move(pairs)),
      template_(pairs_ ? pairs_->input : "{text}") {}

std::string InputTexts::text(int64_t index) const {
  if (!lines_.is_json(index)) return lines_.text(index);
  const nlohmann::json object = lines_.object(index);
  try {
    return template_.fill(object);
  } catch (const UserError& e) {
    lines_.fail(index, "a line without the fields of an input",
                fmt::format("the line {}{}", e.what(),
                            pairs_ ? fmt::format(" (task.data.pairs.input is '{}': it names the "
                                                 "fields that the model reads)",
                                                 pairs_->input)
                                   : ""));
  }
}

std::vector<int32_t> InputTexts::tokens(int64_t index, int64_t most, std::string_view field) const {
  const bool takes_special = pairs_ && pairs_->special_tokens;
  const auto special = takes_special ? SpecialText::token : SpecialText::ordinary;
  std::vector<int32_t> tokens = encode(*tokenizer_, text(index), special);
  if (std::ssize(tokens) <= most) return tokens;
  if (pairs_ && pairs_->too_long == TooLong::broken) {
    lines_.fail(index, "an input that is too long",
                fmt::format("the input has {} tokens, and {} fit (task.data.pairs.too_long is "
                            "broken: set it to cut, or raise {})",
                            tokens.size(), most, field));
  }
  tokens.resize(static_cast<size_t>(most));
  return tokens;
}

}  // namespace phalanx
