// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string_view>

#include "tests/fuzz/promise.h"
#include "tests/fuzz/target.h"
#include "tests/trainer/tokenizers/fuzz/use.h"
#include "trainer/base/user_error.h"
#include "trainer/tokenizers/gpt2_files.h"

using namespace phalanx;

/// The input is an encoder.json, a zero byte, and a vocab.bpe.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = text.find('\0');
  const std::string_view merges =
      end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  try {
    fuzzing::use(*parse_gpt2_files(text.substr(0, end), merges));
  } catch (const UserError& error) {
    fuzzing::require(*error.what() != '\0', "an error says what is wrong");
  }
  return 0;
}
