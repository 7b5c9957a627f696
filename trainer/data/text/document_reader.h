// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/text/text_form.h"
#include "trainer/data/text/text_stream.h"
#include "trainer/io/file_list.h"

namespace phalanx {

/// What a document of a text file is.
enum class DocumentUnit {
  file,       ///< The whole file.
  line,       ///< A line, without its end.
  paragraph,  ///< What lies between empty lines.
};

/// A document as its file has it, or a part of a long one.
struct Document {
  std::string text;    ///< Where its form is not plain, a JSON object.
  int64_t file = 0;    ///< Its number.
  int64_t offset = 0;  ///< Where it begins, in unpacked bytes.
  TextForm form = TextForm::plain;
  bool begins = true;  ///< Whether no part of it came before,
  bool ends = true;    ///< and none comes after.
  /// It is the first of a file that is plain text, though its name ends with .json.
  bool begins_plain_json = false;
};

/// Where a text that goes on can be cut (Tokenizer::last_cut); 0: nowhere.
using LastCut = std::function<size_t(std::string_view text)>;

/// Called with the first bytes of each file that is read from its beginning, at most 2^18 of them.
/// Throws UserError for a file that is not to be read.
using LookAtBegin = std::function<void(const std::filesystem::path& file, std::string_view begin)>;

/// Reads the documents of text files, in their order.
class DocumentReader {
 public:
  /// A place between two documents, or two parts of one.
  struct Position {
    int64_t file = 0;
    int64_t offset = 0;  ///< In unpacked bytes.
    int64_t inside = 0;  ///< 1 in a document.
  };

  /// Begins at `from`. `unit` is for plain text. Where `last_cut` finds a place, a document of
  /// plain text longer than a MiB comes in parts; otherwise a document is held whole.
  DocumentReader(FileList files, DocumentUnit unit, Position from, LastCut last_cut = {},
                 LookAtBegin look = {});

  /// The next documents, of about `bytes` together or one that is larger; none at the end. Where a
  /// call ends depends only on where it began. Throws as TextStream and `look`, and UserError for a
  /// document of more than 2^31 bytes that cannot be cut, and for an array that is none.
  std::vector<Document> next(int64_t bytes);

  /// Behind what was read last.
  Position position() const { return position_; }

  /// Opens the file of the next document, so that `read_of_files` counts what of it lies before.
  /// False when all files have been read.
  bool open_next();

  /// Bytes of the files, packed or not, that were read.
  uint64_t read_of_files() const;

 private:
  bool read_document(Document& document);
  bool read_text(Document& document);
  bool read_element(Document& document);
  bool cut(size_t window, std::string_view separator, Document& document);
  void take(size_t bytes, size_t separator, Document& document);
  bool fill();
  void skip(size_t bytes);
  char next_of_array();
  void skip_empty_lines();
  void close_file();
  [[noreturn]] void fail_array(std::string_view problem) const;

  const FileList files_;
  const DocumentUnit unit_;
  const LastCut last_cut_;
  const LookAtBegin look_;
  Position position_;
  std::unique_ptr<TextStream> stream_;  // The file at position_, if it is open.
  TextForm form_ = TextForm::plain;     // Its.
  bool is_plain_json_ = false;          // Nothing of it was read yet, and its name misleads.
  std::vector<char> part_;              // What is read at once.
  std::string buffer_;                  // Bytes that were read of it,
  size_t begin_ = 0;                    // from here on those behind position_.
  uint64_t of_files_before_ = 0;
};

}  // namespace phalanx
