// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/data/text/document_reader.h"
#include "trainer/io/file_list.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// Thrown for a document that gives no tokens: its text cannot be read, or not be encoded.
class BrokenDocument : public UserError {
 public:
  /// `kind` is the cause without numbers and places, to count by.
  BrokenDocument(std::string kind, const std::string& message)
      : UserError(message), kind_(std::move(kind)) {}

  const std::string& kind() const { return kind_; }

 private:
  std::string kind_;
};

/// What becomes of such a document.
enum class OnBrokenDocument {
  stop,  ///< It ends the work.
  skip,  ///< It is left out, and counted.
};

/// The tokens of a document, or of a part of one.
struct EncodedDocument {
  std::vector<int32_t> tokens;
  int64_t characters = 0;
  bool has_broken_characters = false;  ///< See DocumentText.
  bool begins = true;                  ///< See Document.
  bool ends = true;
  bool begins_plain_json = false;
  std::optional<BrokenDocument> problem;  ///< Why it has no tokens.
};

/// The text of a document.
struct DocumentText {
  std::string text;
  /// It holds what is no UTF-8, or held it, or half of a surrogate pair, in JSON.
  bool has_broken_characters = false;
};

/// A document itself, or `field` of the JSON object that it is. Throws BrokenDocument, with its
/// place, for what is no object with such a text.
DocumentText text_of(const Document& document, const std::filesystem::path& file,
                     const std::string& field);

/// The tokens of documents, which are of `files`. Throws BrokenDocument where `on_broken` says so.
std::vector<EncodedDocument> encode_documents(const Tokenizer& tokenizer,
                                              const std::vector<Document>& documents,
                                              const FileList& files, const std::string& field,
                                              OnBrokenDocument on_broken);

}  // namespace phalanx
