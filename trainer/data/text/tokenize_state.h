// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/data/text/document_reader.h"
#include "trainer/data/text/token_writer.h"
#include "trainer/data/text/tokenize.h"

namespace phalanx {

/// The file of a work folder whose lock the process holds that works there.
inline constexpr const char* kLockFile = "lock";

/// A document of which some parts are written.
struct UnfinishedDocument {
  int64_t tokens = 0;
  int64_t characters = 0;
  int64_t broken_characters = 0;  ///< 1: it has some.
  int64_t left_out = 0;           ///< 1: a part of it is.
};

/// How far a data set of tokens is made.
struct TokenizeState {
  DocumentReader::Position position;
  int64_t documents_read = 0;
  UnfinishedDocument document;  ///< The one at `position`.
  TokenWriter::State training;
  TokenWriter::State validation;
  TokenizeSummary summary;
};

/// What shows that a text has not changed.
struct TextState {
  int64_t bytes;
  int64_t changed;  ///< In nanoseconds.

  bool operator==(const TextState&) const = default;
};

/// Throws IoError.
std::vector<TextState> states_of(const FileList& files);

/// What must not change while a data set is made: options, texts (by path, size and time of their
/// last change) and tokenizer (by what its files hold).
nlohmann::json identity_of(const LoadedTokenizer& tokenizer, const TokenizeOptions& options,
                           const std::vector<TextState>& texts);

/// What tokens.json says of a data set that is made.
nlohmann::json description_of(const LoadedTokenizer& tokenizer, const TokenizeOptions& options,
                              const TokenWriter::Layout& layout, const TokenizeState& state);

/// A work folder has work of other texts or options.
class OtherWork : public UserError {
 public:
  using UserError::UserError;
};

/// The state that a work folder holds; nothing if no work would be lost. Throws OtherWork,
/// and UserError where it is broken.
std::optional<TokenizeState> read_state(const std::filesystem::path& folder,
                                        const nlohmann::json& identity);

/// Replaces it durably. Throws IoError.
void write_state(const std::filesystem::path& folder, const nlohmann::json& identity,
                 const TokenizeState& state);

/// Removes what a work folder holds beside `lock`. The state and tokens.json go last, so that after
/// a kill in between `read_state` answers as before.
void clear_work(const std::filesystem::path& folder);

/// Removes all that only work in progress needs, the state last.
void remove_work_files(const std::filesystem::path& folder);

}  // namespace phalanx
