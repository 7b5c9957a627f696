// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// T5 has 100 sentinels behind the tokens of its spiece.model.
inline constexpr int64_t kT5Sentinels = 100;

/// The token of "<extra_id_0>" where `count` sentinels follow the tokens of a tokenizer: the last
/// one, as T5 numbers them downwards.
int64_t first_sentinel_behind(const Tokenizer& tokenizer, int64_t count = kT5Sentinels);

/// When the text of a sentinel is that token.
enum class SentinelTexts {
  always,      ///< Whatever SpecialText says.
  as_special,  ///< As that of any other special token: where SpecialText says so.
};

/// The same tokenizer, with T5's sentinels: "<extra_id_0>" is the token `first`, "<extra_id_1>" the
/// one before it, `count` of them in all; what lies between two is encoded as a text of its own.
/// For texts that people write and read: the data of span corruption is encoded without sentinels,
/// so that its tokens, and the default of the first sentinel, stay what they are. One that has a
/// token "<extra_id_0>" already stays as it is.
std::shared_ptr<const Tokenizer> with_sentinels(std::shared_ptr<const Tokenizer> tokenizer,
                                                int64_t first, int64_t count,
                                                SentinelTexts texts = SentinelTexts::always);

/// How many of T5's sentinels a tokenizer reads and writes as texts, from "<extra_id_0>" on.
int64_t sentinels_of(const Tokenizer& tokenizer);

}  // namespace phalanx
