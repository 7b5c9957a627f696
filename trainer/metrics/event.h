// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace phalanx {

// TensorBoard's event files: TFRecords that hold protocol buffers of
// tensorflow/core/util/event.proto, of which these few fields are needed.

/// The first event of every file.
std::string encode_file_version_event(double wall_time);

/// Tells readers that a run starts anew at `step`: what they have read from there on is void.
std::string encode_session_start_event(double wall_time, int64_t step);

/// Scalars of one step by tag.
std::string encode_scalars_event(double wall_time, int64_t step,
                                 const std::vector<std::pair<std::string, float>>& scalars);

/// The record that stands in the file for an event: length, data and the checksums of both.
std::string encode_record(std::string_view event);

}  // namespace phalanx
