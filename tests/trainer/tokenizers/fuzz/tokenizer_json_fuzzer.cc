// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tests/fuzz/promise.h"
#include "tests/fuzz/target.h"
#include "tests/trainer/tokenizers/fuzz/use.h"
#include "trainer/base/user_error.h"
#include "trainer/tokenizers/tokenizer_json.h"

using namespace phalanx;

/// The input is a tokenizer.json; behind a zero byte may follow a tokenizer_config.json.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\0');
  try {
    std::optional<std::string> end_of_text;
    if (end != std::string_view::npos) end_of_text = end_of_text_of_config(text.substr(end + 1));
    fuzzing::use(*parse_tokenizer_json(text.substr(0, end), end_of_text));
  } catch (const UserError& error) {
    fuzzing::require(*error.what() != '\0', "an error says what is wrong");
  }
  return 0;
}
