// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "trainer/tokenizers/normalizers/normalizer.h"
#include "trainer/tokenizers/unicode/normal_forms.h"

namespace phalanx::normalizers {

using Made = std::shared_ptr<const Normalizer>;

/// Each kind of normalizer, from its object in a tokenizer.json; each in a file of its own.
Made read_bert(const nlohmann::json& object);
Made read_byte_level(const nlohmann::json& object);
Made read_lowercase(const nlohmann::json& object);
Made read_nmt(const nlohmann::json& object);
Made read_precompiled(const nlohmann::json& object);
Made read_prepend(const nlohmann::json& object);
Made read_replace(const nlohmann::json& object);
Made read_sequence(const nlohmann::json& object);
Made read_strip(const nlohmann::json& object);
Made read_strip_accents(const nlohmann::json& object);

/// Unicode's normal forms.
Made make_normal_form(unicode::NormalForm form);

}  // namespace phalanx::normalizers
