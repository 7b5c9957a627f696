// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/normalizers/read_normalizer.h"

#include <functional>
#include <map>
#include <string>

#include "trainer/tokenizers/normalizers/kinds.h"
#include "trainer/tokenizers/tokenizer_json_parts.h"

namespace phalanx {
namespace {

using nlohmann::json;
using Read = std::function<normalizers::Made(const json&)>;

Read read_form(unicode::NormalForm form) {
  return [form](const json&) { return normalizers::make_normal_form(form); };
}

const std::map<std::string, Read>& kinds() {
  static const std::map<std::string, Read> all{
      {"BertNormalizer", normalizers::read_bert},
      {"ByteLevel", normalizers::read_byte_level},
      {"Lowercase", normalizers::read_lowercase},
      {"NFC", read_form(unicode::NormalForm::nfc)},
      {"NFD", read_form(unicode::NormalForm::nfd)},
      {"NFKC", read_form(unicode::NormalForm::nfkc)},
      {"NFKD", read_form(unicode::NormalForm::nfkd)},
      {"Nmt", normalizers::read_nmt},
      {"Precompiled", normalizers::read_precompiled},
      {"Prepend", normalizers::read_prepend},
      {"Replace", normalizers::read_replace},
      {"Sequence", normalizers::read_sequence},
      {"Strip", normalizers::read_strip},
      {"StripAccents", normalizers::read_strip_accents},
  };
  return all;
}

}  // namespace

std::shared_ptr<const Normalizer> read_normalizer(const json& value) {
  if (value.is_null()) return nullptr;
  const std::string type = type_of(value);
  const auto found = kinds().find(type);
  if (found == kinds().end()) refuse_part("the normalizer " + type);
  return found->second(value);
}

}  // namespace phalanx
