// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/commands/use/trained_model.h"
#include "trainer/config/tree/node.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// What a model is used with: the run's config, and what the command line changes in it.
struct ConfigInUse {
  const UserConfig& user;
  const config::Node& resolved;               ///< Without what only training has.
  const std::vector<std::string>& overrides;  ///< Those of the command line.
};

/// How a command reads and writes texts with a model.
struct TextInUse {
  std::shared_ptr<const Tokenizer> tokenizer;  ///< None: it knows tokens alone.
  /// The tokens that end a text. The first one also ends what a sequence-to-sequence model reads.
  std::vector<int64_t> ends;
};

/// As the run's task does it; `tokenizer`, the option --tokenizer, stands in the place of the
/// tokenizer that the config names. Of a folder of Hugging Face's libraries by its files. Warns
/// where texts can be neither read nor written. Throws UserError.
TextInUse text_in_use(const TrainedModel& trained, const ConfigInUse& config,
                      const std::optional<std::string>& tokenizer);

}  // namespace phalanx
