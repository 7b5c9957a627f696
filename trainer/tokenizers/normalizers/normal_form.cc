// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>

#include "trainer/tokenizers/normalizers/kinds.h"

namespace phalanx::normalizers {
namespace {

class NormalForm final : public Normalizer {
 public:
  explicit NormalForm(unicode::NormalForm form) : form_(form) {}

  void apply(NormalizedText& text) const override {
    // One character becomes several: "⒖" is "15.", which all stands for it.
    const std::string start =
        unicode::normal_form(std::string_view(text.text).substr(0, text.at_start), form_);
    const size_t characters = unicode::count_characters(start);
    text.text = unicode::normal_form(text.text, form_);
    text.at_start = 0;
    for (size_t i = 0; i < characters && text.at_start < text.text.size(); ++i) {
      text.at_start += unicode::character_at(text.text, text.at_start).length;
    }
  }

  // NFC leaves those characters as they are, and composes none of them with one before it. The
  // other forms take letters or commas apart.
  bool keeps_cuts() const override { return form_ == unicode::NormalForm::nfc; }

 private:
  unicode::NormalForm form_;
};

}  // namespace

Made make_normal_form(unicode::NormalForm form) { return std::make_shared<NormalForm>(form); }

}  // namespace phalanx::normalizers
