// SPDX-License-Identifier: Apache-2.0
#include "trainer/tokenizers/metaspace_options.h"

#include "trainer/tokenizers/tokenizer_json_parts.h"
#include "trainer/tokenizers/unicode/characters.h"

namespace phalanx {
namespace {

using nlohmann::json;
using Prefix = MetaspaceOptions::Prefix;

Prefix read_prefix(const json& object) {
  // Before there were schemes, `add_prefix_space` alone said so.
  const bool never = object.contains("add_prefix_space") && !is_set(object, "add_prefix_space") &&
                     !object.at("add_prefix_space").is_null();
  const std::string scheme = object.value("prepend_scheme", never ? "never" : "always");
  if (never && scheme != "never")
    refuse_part("add_prefix_space beside the prepend_scheme " + scheme);
  if (scheme == "first") return Prefix::first;
  if (scheme == "never") return Prefix::never;
  if (scheme != "always") refuse_part("a Metaspace with the prepend_scheme " + scheme);
  return Prefix::always;
}

}  // namespace

MetaspaceOptions read_metaspace_options(const json& object) {
  MetaspaceOptions options{.replacement = {}, .prefix = read_prefix(object)};
  unicode::append_character(character_of(object.at("replacement")), options.replacement);
  const json& split = member(object, "split");
  options.splits = split.is_null() || split.get<bool>();
  return options;
}

}  // namespace phalanx
