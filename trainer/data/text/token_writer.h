// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/token_type.h"
#include "trainer/io/file.h"

namespace phalanx {

/// The header of a file of llm.c, before its tokens.
inline constexpr int64_t kLlmcHeaderBytes = 1024;

/// The layout of token files.
enum class TokenFileFormat { llmc, nanogpt, megatron };

/// Writes documents of tokens into files of one format: FOLDER/NAME_000000.bin and so on. What is
/// written can be continued by another process.
class TokenWriter {
 public:
  struct Layout {
    TokenFileFormat format = TokenFileFormat::llmc;
    TokenType type = TokenType::uint16;  ///< uint16 or, for larger vocabularies, uint32 or int32.
    std::optional<int32_t> end_of_text;  ///< Before each document (llmc), or behind it.
    int64_t file_tokens = 0;  ///< A file has so many; of Megatron's, with whole documents, or more.
  };

  /// How far the writing is.
  struct State {
    int64_t files = 0;      ///< Whole ones.
    int64_t tokens = 0;     ///< In the next one.
    int64_t documents = 0;  ///< The same; only Megatron's count them.
  };

  /// Goes on at `state`: drops what the files hold beyond it. Throws UserError where they hold
  /// less.
  TokenWriter(std::filesystem::path folder, std::string name, const Layout& layout, State state);

  /// Writes a document, in as many parts as one likes, none of them empty; another process may go
  /// on between two of them. Throws IoError.
  void begin_document();
  void append(std::span<const int32_t> part);
  /// `tokens` are those of all its parts. Throws UserError for more than the format can count.
  void end_document(int64_t tokens);

  /// Makes all that was written survive a power cut; `state()` is then where another process can go
  /// on.
  void sync();
  State state() const { return state_; }

  /// Completes the last file.
  void finish();

 private:
  std::filesystem::path path(std::string_view extension) const;
  [[noreturn]] void fail(const std::filesystem::path& file, std::string_view problem) const;
  void require_whole_files();
  void require_size(const std::filesystem::path& file, int64_t header, int64_t count,
                    int64_t each) const;
  void open();
  void close();
  void flush();
  void write_header();
  void write_index();

  const std::filesystem::path folder_;
  const std::string name_;
  const Layout layout_;
  State state_;
  std::optional<File> file_;
  std::optional<File> lengths_file_;  // Lengths of documents, until Megatron's index is made.
  std::vector<std::byte> buffer_;     // For file_.
  std::vector<int32_t> lengths_;      // For lengths_file_.
};

}  // namespace phalanx
