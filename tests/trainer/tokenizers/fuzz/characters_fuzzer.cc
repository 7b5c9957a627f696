// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "tests/fuzz/promise.h"
#include "tests/fuzz/target.h"
#include "tests/trainer/tokenizers/fuzz/use.h"
#include "trainer/base/user_error.h"
#include "trainer/tokenizers/character_tokenizer.h"

using namespace phalanx;

/// The input is a characters.txt.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const CharacterTokenizer tokenizer(text);
    // It need not know any other text.
    const auto tokens = encode(tokenizer, text, SpecialText::ordinary);
    fuzzing::require(decode(tokenizer, tokens) == text, "a text of its characters comes back");
    fuzzing::use(tokenizer);
  } catch (const UserError& error) {
    fuzzing::require(*error.what() != '\0', "an error says what is wrong");
  }
  return 0;
}
