// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "trainer/ranks/ranks.h"

/// Collectives of JSON values, of which a binary one (nlohmann::json::binary) is bytes. They travel
/// as CBOR: numbers stay as they are. torch.distributed's *_object functions, whose pickles only
/// Python reads.
namespace phalanx {

/// The value of the rank `source`, on every rank.
nlohmann::json broadcast_object(const Ranks& ranks, const nlohmann::json& value,
                                int64_t source = 0);
/// Every rank's value, by rank.
std::vector<nlohmann::json> all_gather_objects(const Ranks& ranks, const nlohmann::json& value);
/// The same on the rank `destination`; the others get nothing.
std::vector<nlohmann::json> gather_objects(const Ranks& ranks, const nlohmann::json& value,
                                           int64_t destination = 0);
/// Value r of those of the rank `source`, on rank r. What the others give does not count. Throws
/// std::invalid_argument on all ranks if that rank has not one for each.
nlohmann::json scatter_object(const Ranks& ranks, const std::vector<nlohmann::json>& values,
                              int64_t source = 0);

}  // namespace phalanx
