// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/data/text/document_reader.h"
#include "trainer/tokenizers/tokenizer.h"

namespace phalanx {

/// The tokens of a document.
struct EncodedDocument {
  std::vector<int32_t> tokens;
  int64_t characters = 0;
  bool has_broken_characters = false;  ///< See DocumentText.
};

/// The text of a document.
struct DocumentText {
  std::string text;
  /// It holds what is no UTF-8, or held it, or half of a surrogate pair, in JSON.
  bool has_broken_characters = false;
};

/// A document itself, or `field` of the JSON object that it is. Throws UserError, with its place,
/// for a line that is no object with such a text.
DocumentText text_of(const Document& document, const std::filesystem::path& file,
                     const std::string& field);

/// The tokens of documents, which are of `files`.
std::vector<EncodedDocument> encode_documents(const Tokenizer& tokenizer,
                                              const std::vector<Document>& documents,
                                              const std::vector<std::filesystem::path>& files,
                                              const std::string& field);

}  // namespace phalanx
