// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace phalanx {

/// The bytes of a text file from its beginning on, unpacked where it is packed.
class TextStream {
 public:
  virtual ~TextStream() = default;

  /// The next bytes: as many as `out` takes, or all that are left; 0 at the end. Throws UserError,
  /// which names the file and the place, for a packed file that is broken or cut off; IoError.
  virtual size_t read(std::span<char> out) = 0;

  /// Passes over bytes, which must be there. Throws as `read`.
  virtual void skip(uint64_t bytes);

  /// Bytes of the file itself, packed or not, that were read.
  virtual uint64_t read_of_file() const = 0;

  /// Whether its bytes are others than those of the file.
  virtual bool is_packed() const { return true; }
};

/// Opens a file: gzip and Zstandard are known by their first bytes, everything else is plain.
/// Throws IoError.
std::unique_ptr<TextStream> open_text(const std::filesystem::path& path);

}  // namespace phalanx
