// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/tree/chosen.h"
#include "trainer/data/token_set.h"
#include "trainer/registry/registry.h"
#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {

/// Where tokens come from: a registered class that a task's config names, with its files.
class TokenSource {
 public:
  virtual ~TokenSource() = default;

  /// `field` is the config field that names this source, for messages. Throws UserError for what
  /// is missing, empty or broken.
  virtual std::shared_ptr<const TokenSet> open(const std::string& field) const = 0;

  /// The tokenizer that its tokens are of, if it knows. Throws as `open`.
  virtual std::optional<LoadedTokenizer> tokenizer(const std::string& /*field*/) const {
    return std::nullopt;
  }
};

template <>
struct RegistryKind<TokenSource> {
  static constexpr std::string_view kName = "token_source";
};

/// The token between two documents, where the source's config names it: its field end_of_text.
std::optional<int64_t> end_of_text_of(const config::Chosen& source);

/// The same source with these files in the place of its own. Throws UserError for one whose config
/// names no files.
config::Chosen with_files(const config::Chosen& source,
                          const std::vector<std::filesystem::path>& files);

}  // namespace phalanx

/// As REGISTER_TASK, for a class derived from TokenSource.
#define REGISTER_TOKEN_SOURCE(name, ...) PHALANX_REGISTER(::phalanx::TokenSource, name, __VA_ARGS__)
