// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/decoders/read_decoders.h"

#include <map>
#include <string>

#include "trainer/tokenizers/decoders/kinds.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"

namespace phalanx {
namespace {

using nlohmann::json;
using Read = decoders::Made (*)(const json&);

const std::map<std::string, Read>& kinds() {
  static const std::map<std::string, Read> all{
      {"BPEDecoder", decoders::read_bpe},
      {"ByteFallback", decoders::read_byte_fallback},
      {"ByteLevel", decoders::read_byte_level},
      {"CTC", decoders::read_ctc},
      {"Fuse", decoders::read_fuse},
      {"Metaspace", decoders::read_metaspace},
      {"Replace", decoders::read_replace},
      {"Strip", decoders::read_strip},
      {"WordPiece", decoders::read_word_piece},
  };
  return all;
}

}  // namespace

std::vector<std::shared_ptr<const Decoder>> read_decoders(const json& value) {
  if (value.is_null()) return {decoders::make_spaced()};
  std::vector<std::shared_ptr<const Decoder>> made;
  for (const json& step : steps_of(value, "decoders")) {
    const std::string type = type_of(step);
    const auto found = kinds().find(type);
    if (found == kinds().end()) refuse_part("the decoder " + type);
    made.push_back(found->second(step));
  }
  return made;
}

}  // namespace phalanx
