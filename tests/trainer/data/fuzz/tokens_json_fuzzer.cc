// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/promise.h"
#include "tests/fuzz/target.h"
#include "tests/trainer/data/fuzz/use.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/base/user_error.h"
#include "trainer/data/text/tokens_json.h"

using namespace phalanx;

/// The input is a tokens.json.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const TemporaryFolder folder;
  fuzzing::write_bytes(folder / "tokens.json", fuzzing::text_of(data, size));
  try {
    const TokensJson tokens = read_tokens_json(folder / "tokens.json");
    fuzzing::require(tokens.training_tokens >= 0 && tokens.validation_tokens >= 0,
                     "counts are not negative");
    fuzzing::require(tokens.bytes_per_token == 2 || tokens.bytes_per_token == 4,
                     "a token has a known size");
    fuzzing::require(has_all_training_tokens(folder.path()) == (tokens.training_tokens == 0),
                     "a folder without files has all tokens if there are none");
  } catch (const UserError& error) {
    fuzzing::require(*error.what() != '\0', "an error says what is wrong");
  }
  return 0;
}
