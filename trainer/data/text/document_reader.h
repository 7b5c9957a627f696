// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/text/text_stream.h"

namespace phalanx {

/// What a document of a text file is.
enum class DocumentUnit {
  file,       ///< The whole file.
  line,       ///< A line, without its end.
  paragraph,  ///< What lies between empty lines.
};

/// A document as its file has it.
struct Document {
  std::string text;    ///< Of a JSONL file, a line of JSON.
  int64_t file = 0;    ///< Its number.
  int64_t offset = 0;  ///< Where it begins, in unpacked bytes.
};

/// Whether a file's lines are JSON objects: its name ends with .jsonl, perhaps packed.
bool is_json_lines(const std::filesystem::path& path);

/// Reads the documents of text files, in their order.
class DocumentReader {
 public:
  /// A place between two documents.
  struct Position {
    int64_t file = 0;
    int64_t offset = 0;  ///< In unpacked bytes.
  };

  /// Begins at `from`. `unit` is for files that are no JSONL.
  DocumentReader(std::vector<std::filesystem::path> files, DocumentUnit unit, Position from);

  /// The next documents, of about `bytes` together or one that is larger; none at the end. Where a
  /// call ends depends only on where it began. Throws as TextStream, and UserError for a document
  /// of more than 2^31 bytes.
  std::vector<Document> next(int64_t bytes);

  /// Behind the last document that was read.
  Position position() const { return position_; }

  /// Bytes of the files, packed or not, that were read.
  uint64_t read_of_files() const;

 private:
  bool open_next();
  bool read_document(Document& document);
  bool fill();
  void skip_empty_lines();
  void close_file();

  const std::vector<std::filesystem::path> files_;
  const DocumentUnit unit_;
  Position position_;
  std::unique_ptr<TextStream> stream_;  // Of the file at position_, if it is open.
  std::string buffer_;                  // Bytes that were read of it,
  size_t begin_ = 0;                    // from here on those behind position_.
  uint64_t of_files_before_ = 0;
};

}  // namespace phalanx
