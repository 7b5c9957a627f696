#include "trainer/core/error_text.h"

#include <c10/util/Exception.h>

namespace phalanx {

std::string error_text(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  if (torch_error == nullptr) return error.what();
  // c10d's own messages carry theirs in the text.
  const std::string text = torch_error->what_without_backtrace();
  return text.substr(0, text.find("\nException raised from "));
}

}  // namespace phalanx
