// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "trainer/data/text/document_reader.h"
#include "trainer/data/text/encode_documents.h"
#include "trainer/data/text/require_text.h"
#include "trainer/data/text/token_writer.h"
#include "trainer/io/byte_progress.h"
#include "trainer/io/file_list.h"
#include "trainer/tokenizers/loaded_tokenizer.h"

namespace phalanx {

/// What becomes of work that an earlier call has left.
enum class EarlierWork {
  go_on,             ///< It is gone on with; that of other texts or options is refused.
  go_on_or_discard,  ///< That of other texts or options is thrown away.
  discard,           ///< It is thrown away.
};

/// What a data set of tokens is made from, and how.
struct TokenizeOptions {
  FileList files;                          ///< Files of text, in their order.
  DocumentUnit unit = DocumentUnit::file;  ///< In plain text.
  std::string field = "text";              ///< The key of the text in JSON objects.
  TokenFileFormat format = TokenFileFormat::llmc;
  double validation_fraction = 0;  ///< Share of the documents, drawn by their numbers; in [0, 1).
  int64_t file_tokens = 100'000'000;
  int64_t threads = 1;                         ///< That encode.
  std::chrono::milliseconds save_every{2000};  ///< So much is done again after a kill.
  OnBrokenDocument on_broken = OnBrokenDocument::stop;
  AnyBytes any_bytes = {.allowed_by = "--any-bytes"};
  EarlierWork earlier = EarlierWork::go_on;
  bool needs_tokens = false;  ///< Texts without a token are refused.
  /// Takes lines for the user: that earlier work is gone on with, and the first document of each
  /// cause that is left out.
  std::function<void(const std::string& line)> say = [](const std::string&) {};
};

/// What it holds.
struct TokenizeSummary {
  int64_t documents = 0;  ///< With text.
  int64_t empty_documents = 0;
  int64_t tokens = 0;  ///< Tokens of the documents, without those of end-of-text.
  int64_t validation_documents = 0;
  int64_t validation_tokens = 0;
  int64_t characters = 0;
  int64_t longest = 0;            ///< The tokens of the longest document.
  int64_t unknown_tokens = 0;     ///< Those that stand for what the tokenizer does not know.
  int64_t broken_characters = 0;  ///< Documents that hold what is no UTF-8.
  int64_t plain_json_files = 0;   ///< Called .json, but no array of objects: read as plain text.
  std::map<std::string, int64_t> left_out;  ///< Documents that are broken, by cause.
};

/// A line for the user about files that are called .json and were read as plain text.
std::string about_plain_json(int64_t files);

/// The folder in which a data set is made until it is whole.
std::filesystem::path work_folder(const std::filesystem::path& destination);

/// Writes the tokens of texts to a new folder: train_000000.bin, … and val_000000.bin, …, the
/// tokenizer's files in tokenizer/, and tokens.json, which says what they are. It is made in
/// work_folder(destination), which stays where this is killed or fails: the same call then goes on
/// there, and writes the same bytes. Memory grows by some bytes a file, not with the texts, where
/// the tokenizer knows places to cut a text (Tokenizer::last_cut); else by the longest document.
/// Throws UserError, before anything is written, for a destination that is not new or empty,
/// for a file that is no text among those that require_texts looks at, and for a work folder of
/// other texts or options; UserError for broken texts, the others that are none, those that change
/// meanwhile and those without a token; IoError.
TokenizeSummary tokenize(const LoadedTokenizer& tokenizer, const TokenizeOptions& options,
                         const std::filesystem::path& destination, ByteProgress& progress);

}  // namespace phalanx
