// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "trainer/data/data_file.h"
#include "trainer/data/token_type.h"

namespace phalanx {

/// The index of one of Megatron's sets, PREFIX.idx: which parts of PREFIX.bin are sequences, and
/// which sequences make up a document (megatron/core/datasets/indexed_dataset.py). It is read where
/// it lies, and mapped meanwhile.
class MegatronIndex {
 public:
  /// Throws UserError, beginning with `field`, for a file that cannot be read, is not of this
  /// format, or has sequences that overlap, leave gaps or are in no document.
  MegatronIndex(const std::string& field, const std::filesystem::path& path);

  TokenType type() const { return type_; }
  /// Tokens of all sequences, which follow each other.
  int64_t tokens() const { return tokens_; }
  int64_t documents() const { return documents_; }

  /// The places of documents, for as long as this and the index live: the file stays mapped.
  class Documents {
   public:
    /// The place of a document's first token; of `documents()` the end.
    int64_t begin_of(int64_t document) const;

   private:
    friend MegatronIndex;
    explicit Documents(const MegatronIndex& index) : index_(index), mapped_(index.file_.map()) {}

    const MegatronIndex& index_;
    DataFiles::Mapped mapped_;
  };
  /// Throws as DataFiles::map.
  Documents places() const { return Documents(*this); }

 private:
  struct Arrays;

  void read_header(const unsigned char* data);
  void check_sequences(const Arrays& arrays);
  void check_documents(const Arrays& arrays) const;
  [[noreturn]] void fail(const std::string& problem) const;
  Arrays arrays(const DataFiles::Mapped& mapped) const;

  const std::string field_;
  const DataFile file_;
  TokenType type_ = TokenType::uint16;
  int64_t sequences_ = 0;
  int64_t documents_ = 0;
  int64_t tokens_ = 0;
};

}  // namespace phalanx
