// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// Where a document begins.
struct DocumentBegin {
  int64_t place = 0;  ///< The place of its first token.
  /// Whether that token is the end of text of the document before it (llm.c): a model learns to
  /// predict it from there.
  bool is_end_of_text = false;

  bool operator==(const DocumentBegin&) const = default;
};

/// Tokens one after the other, read where they are stored, and the documents that they make up.
/// Thread-safe.
class TokenSet {
 public:
  virtual ~TokenSet() = default;

  /// Tokens in all.
  virtual int64_t size() const = 0;

  /// Tokens [begin, begin + out.size()), which must lie inside. Throws BrokenSampleError for a
  /// file that has become shorter since it was opened.
  virtual void read(int64_t begin, std::span<int64_t> out) const = 0;

  /// The documents that begin in [begin, end), ascending.
  virtual std::vector<DocumentBegin> document_begins(int64_t begin, int64_t end) const = 0;

  /// The file of a token.
  virtual std::string file_of(int64_t token) const = 0;

  /// The file of a token and its place there, for messages: "train.bin, token 12".
  virtual std::string place_of(int64_t token) const = 0;

  /// What a token is, as the data's fingerprint begins: "bytes" or "tokens".
  virtual std::string_view element() const { return "tokens"; }
};

}  // namespace phalanx
