// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "trainer/tokenizers/normalizers/kinds.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"
#include "trainer/tokenizers/unicode/categories.h"

namespace phalanx::normalizers {
namespace {

using nlohmann::json;

// Ideographs, as BERT sets them apart: not all that Chinese is written with.
bool is_chinese(char32_t code) {
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
         (code >= 0x2B740 && code <= 0x2B81F) || (code >= 0x2B920 && code <= 0x2CEAF) ||
         (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

void append_clean(char32_t code, std::string_view bytes, std::string& result) {
  if (code == 0x09 || code == 0x0A || code == 0x0D) {
    result += ' ';
  } else if (code != 0xFFFD && !unicode::is_other(code)) {
    if (unicode::is_white_space(code)) {
      result += ' ';
    } else {
      result += bytes;
    }
  }
}

void append_apart(char32_t code, std::string_view bytes, std::string& result) {
  const bool is_apart = is_chinese(code);
  if (is_apart) result += ' ';
  result += bytes;
  if (is_apart) result += ' ';
}

class Bert final : public Normalizer {
 public:
  struct Options {
    bool cleans = true;
    bool sets_chinese_apart = true;
    bool strips_accents = true;
    bool lowercases = true;
  };

  explicit Bert(Options options) : options_(options) {}

  void apply(NormalizedText& text) const override {
    if (options_.cleans) replace_characters(text, append_clean);
    if (options_.sets_chinese_apart) replace_characters(text, append_apart);
    if (options_.strips_accents) {
      decompose_->apply(text);
      replace_characters(text, [](char32_t code, std::string_view bytes, std::string& result) {
        if (!unicode::is_nonspacing_mark(code)) result += bytes;
      });
    }
    if (options_.lowercases) lowercase_->apply(text);
  }

 private:
  Options options_;
  Made decompose_ = make_normal_form(unicode::NormalForm::nfd);
  Made lowercase_ = read_lowercase({});
};

}  // namespace

Made read_bert(const json& object) {
  Bert::Options options{.cleans = object.at("clean_text").get<bool>(),
                        .sets_chinese_apart = object.at("handle_chinese_chars").get<bool>(),
                        .strips_accents = false,
                        .lowercases = object.at("lowercase").get<bool>()};
  const json& accents = member(object, "strip_accents");
  options.strips_accents = accents.is_null() ? options.lowercases : accents.get<bool>();
  return std::make_shared<Bert>(options);
}

}  // namespace phalanx::normalizers
