// SPDX-License-Identifier: Apache-2.0
#include "trainer/tensors/error_text.h"

#include <c10/util/Exception.h>

namespace phalanx {
namespace {

// What ATen's operators say of operands in lower and in single precision.
bool mixes_precisions(const std::string& text) {
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  const bool names_low = has("BFloat16") || has("Half");
  return has("mixed dtype") ||
         (names_low && (has("same dtype") || has("same data type") || has("expected scalar type") ||
                        has("should be the same")));
}

constexpr const char* kMixedPrecisionHint =
    "\n(where a sharded model computes in lower precision, it does so in that of its parameters: "
    "name a batch's "
    "inputs in Batch::model_inputs, which are cast, or bring what a module makes itself to the "
    "dtype of its input)";

}  // namespace

std::string error_text(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  if (torch_error == nullptr) return error.what();
  // c10d's own messages carry theirs in the text.
  const std::string text = torch_error->what_without_backtrace();
  const std::string message = text.substr(0, text.find("\nException raised from "));
  return mixes_precisions(message) ? message + kMixedPrecisionHint : message;
}

}  // namespace phalanx
