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

/// The config of a command that uses a trained model: that of its run, with the command's overrides
/// laid over it.
struct ConfigInUse {
  const UserConfig& user;                     ///< Both, not resolved.
  const config::Node& resolved;               ///< Both, without the sections of training alone.
  const std::vector<std::string>& overrides;  ///< The command's by themselves.
};

/// How a command reads and writes texts with a model.
struct TextInUse {
  std::shared_ptr<const Tokenizer> tokenizer;  ///< None: it knows tokens alone.
  /// The tokens that end a text. The first one also ends what a sequence-to-sequence model reads.
  std::vector<int64_t> ends;
};

/// What the command line says of texts.
struct AskedText {
  std::optional<std::string> tokenizer;  ///< --tokenizer: replaces the one that the config names.
  std::optional<bool> special_tokens;    ///< Whether the text of a special token is that token.
};

/// The tokenizer and the ends that the run's task uses, or those in the files of a Hugging Face
/// folder, changed as asked. Warns if there is no tokenizer. Throws UserError.
TextInUse text_in_use(const TrainedModel& trained, const ConfigInUse& config,
                      const AskedText& asked);

}  // namespace phalanx
