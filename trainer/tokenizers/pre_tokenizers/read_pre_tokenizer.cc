// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/pre_tokenizers/read_pre_tokenizer.h"

#include <map>
#include <string>

#include "trainer/tokenizers/pre_tokenizers/kinds.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"

namespace phalanx {
namespace {

using nlohmann::json;
using Read = pre_tokenizers::Made (*)(const json&);

const std::map<std::string, Read>& kinds() {
  static const std::map<std::string, Read> all{
      {"BertPreTokenizer", pre_tokenizers::read_bert},
      {"ByteLevel", pre_tokenizers::read_byte_level},
      {"CharDelimiterSplit", pre_tokenizers::read_delimiter},
      {"Digits", pre_tokenizers::read_digits},
      {"FixedLength", pre_tokenizers::read_fixed_length},
      {"Metaspace", pre_tokenizers::read_metaspace},
      {"Punctuation", pre_tokenizers::read_punctuation},
      {"Sequence", pre_tokenizers::read_sequence},
      {"Split", pre_tokenizers::read_split},
      {"UnicodeScripts", pre_tokenizers::read_unicode_scripts},
      {"Whitespace", pre_tokenizers::read_whitespace},
      {"WhitespaceSplit", pre_tokenizers::read_whitespace_split},
  };
  return all;
}

}  // namespace

std::shared_ptr<const PreTokenizer> read_pre_tokenizer(const json& value) {
  if (value.is_null()) return nullptr;
  const std::string type = type_of(value);
  const auto found = kinds().find(type);
  if (found == kinds().end()) refuse_part("the pre-tokenizer " + type);
  return found->second(value);
}

}  // namespace phalanx
