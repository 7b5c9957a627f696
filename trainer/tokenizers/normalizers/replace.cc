// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/tokenizers/normalizers/kinds.h"
#include "trainer/tokenizers/patterns/text_pattern.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"

namespace phalanx::normalizers {
namespace {

using nlohmann::json;

class Replace final : public Normalizer {
 public:
  Replace(TextPattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void apply(NormalizedText& text) const override {
    std::string result;
    size_t at_start = 0;
    size_t done = 0;
    // Up to `end` the text stays.
    const auto keep_to = [&](size_t end) {
      result += std::string_view(text.text).substr(done, end - done);
      if (done < text.at_start) at_start = result.size() - (end - std::min(end, text.at_start));
      done = end;
    };
    pattern_.find_all(text.text, [&](size_t begin, size_t end) {
      keep_to(begin);
      result += content_;
      done = end;
      if (result.size() > text.most_bytes) {
        throw UserError(fmt::format(
            "the normalizer Replace makes a text longer than {} bytes, far more than it has",
            text.most_bytes));
      }
      // What is put there stands for the last character that is gone.
      if (end <= text.at_start) at_start = result.size();
    });
    if (done == 0) return;
    keep_to(text.text.size());
    text.text = std::move(result);
    text.at_start = at_start;
  }

 private:
  TextPattern pattern_;
  std::string content_;
};

}  // namespace

Made read_replace(const json& object) {
  TextPattern pattern(object.at("pattern"));
  if (pattern.matches_nothing()) refuse_part("a Replace by a pattern that matches an empty text");
  return std::make_shared<Replace>(std::move(pattern), object.at("content").get<std::string>());
}

}  // namespace phalanx::normalizers
