// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// One tensor of a safetensors file.
struct SafetensorsEntry {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  ///< First byte, counted from the start of the data section.
  uint64_t end = 0;    ///< One past the last.
};

/// What stands before the data: the format is https://github.com/huggingface/safetensors.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        ///< In the order of their data.
  std::map<std::string, std::string> metadata;  ///< `__metadata__`.
};

/// "F32", "BF16", …. Throws std::logic_error for a type that the format has no name for.
std::string_view safetensors_dtype_name(at::ScalarType dtype);

/// The reverse. Throws CheckpointError for an unknown name.
at::ScalarType safetensors_dtype(std::string_view name);

/// The order in which the Python package lays tensors out: by descending dtype (of its
/// enumeration, which puts wider ones first), then by name.
bool safetensors_before(at::ScalarType left_dtype, std::string_view left_name,
                        at::ScalarType right_dtype, std::string_view right_name);

/// The header's JSON, padded with spaces to a multiple of 8 bytes.
std::string format_safetensors_header(const SafetensorsHeader& header);

/// What stands in a file before the data: the header's length, and the header. Throws
/// std::logic_error for a name that is given twice or is the metadata's.
std::string safetensors_head(const SafetensorsHeader& header);

/// Parses the header's JSON and checks every rule of the format against `data_size`, the number of
/// bytes after it: names unique, known dtypes, offsets that cover the data without hole or overlap
/// and agree with shape × element size. Memory stays within a small multiple of the text.
/// Throws CheckpointError, its message without the file's name.
SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_size);

}  // namespace phalanx
