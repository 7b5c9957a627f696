// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string_view>

#include "tests/fuzz/promise.h"
#include "tests/fuzz/target.h"
#include "tests/trainer/tokenizers/fuzz/use.h"
#include "trainer/base/user_error.h"
#include "trainer/tokenizers/composed_json.h"
#include "trainer/tokenizers/json_vocabulary.h"

using namespace phalanx;

/// The input is a tokenizer.json, which is read as one of no form that has a tokenizer of its own.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    fuzzing::use(*make_composed(parse_json_object(text), {}));
  } catch (const UserError& error) {
    fuzzing::require(*error.what() != '\0', "an error says what is wrong");
  }
  return 0;
}
