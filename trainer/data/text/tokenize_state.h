// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "trainer/data/text/document_reader.h"
#include "trainer/data/text/token_writer.h"
#include "trainer/data/text/tokenize.h"

namespace phalanx {

/// The file of a work folder whose lock the process holds that works there.
inline constexpr const char* kLockFile = "lock";

/// How far a data set of tokens is made.
struct TokenizeState {
  DocumentReader::Position position;
  int64_t documents_read = 0;
  TokenWriter::State training;
  TokenWriter::State validation;
  TokenizeSummary summary;
};

/// What must not change while a data set is made: options, texts (by path, size and time of their
/// last change) and tokenizer (by what its files hold).
nlohmann::json identity_of(const LoadedTokenizer& tokenizer, const TokenizeOptions& options);

/// What tokens.json says of a data set that is made.
nlohmann::json description_of(const LoadedTokenizer& tokenizer, const TokenizeOptions& options,
                              const TokenWriter::Layout& layout, const TokenizeState& state);

/// The state that a work folder holds; nothing where it has none yet. Throws UserError where it is
/// broken or of another identity.
std::optional<TokenizeState> read_state(const std::filesystem::path& folder,
                                        const nlohmann::json& identity);

/// Replaces it durably. Throws IoError.
void write_state(const std::filesystem::path& folder, const nlohmann::json& identity,
                 const TokenizeState& state);

/// Removes what a work folder holds beside `lock`: without a state nobody can say what that is of.
void clear_work(const std::filesystem::path& folder);

/// Removes all that only work in progress needs, the state last.
void remove_work_files(const std::filesystem::path& folder);

}  // namespace phalanx
