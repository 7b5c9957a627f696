// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "trainer/data/text/require_text.h"

namespace phalanx {

/// Every line of text files, each a sample to make a prediction of; an empty one counts. The
/// objects of a file that is a JSON array (TextForm) count as lines. Packed files are unpacked.
/// Keeps all text in memory. Thread-safe.
class InputLines {
 public:
  /// Throws UserError for a file that is not there or has no line, for one whose packing is broken,
  /// for one that is no text (require_text), and for one whose name says that its lines are no
  /// inputs: a table, or JSON that is neither lines nor an array; IoError.
  explicit InputLines(const std::vector<std::filesystem::path>& files,
                      const AnyBytes& any_bytes = {});

  int64_t size() const { return static_cast<int64_t>(lines_.size()); }

  /// Whether the line is one of JSONL, or an object of an array.
  bool is_json(int64_t index) const;

  /// The line, without its end. Throws BrokenSampleError, with file and line, for one without text.
  std::string text(int64_t index) const;

  /// The object of a line of JSONL. Throws BrokenSampleError for one that is none.
  nlohmann::json object(int64_t index) const;

  /// Throws BrokenSampleError: `kind` without numbers, `problem` goes on behind the place.
  [[noreturn]] void fail(int64_t index, const std::string& kind, const std::string& problem) const;

  /// A hash (XXH3, 64 bits) of all lines.
  std::string fingerprint() const;

 private:
  struct File {
    std::filesystem::path path;
    bool is_json;
    bool is_array;
    std::string text;
  };
  struct Line {
    size_t file;
    size_t offset;
    size_t bytes;
    int64_t number;  // In its file, from 1.
  };

  void add_lines(size_t file);
  void add_objects(size_t file);

  std::vector<File> files_;
  std::vector<Line> lines_;
};

}  // namespace phalanx
