// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/decoders/cleaned_up.h"

#include <utility>

#include "trainer/tokenizers/decoders/decoder.h"

namespace phalanx {

std::string cleaned_up(std::string text) {
  constexpr std::pair<const char*, const char*> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) {
    if (text.find(from) != std::string::npos) text = replaced(text, from, to);
  }
  return text;
}

}  // namespace phalanx
