// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/save/write_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "trainer/checkpoint/format/contents.h"
#include "trainer/checkpoint/format/safetensors_header.h"

namespace phalanx {
namespace {

/// A manifest with more would be large itself.
constexpr uint64_t kMaxChunks = uint64_t{1} << 20;

uint64_t element_bytes(const HeldTensor& tensor) { return c10::elementSize(tensor.dtype); }

uint64_t bytes_of(const std::vector<PlannedPart>& parts) {
  uint64_t bytes = 0;
  for (const PlannedPart& part : parts) {
    for (const HeldTensor& tensor : part.tensors) {
      bytes += static_cast<uint64_t>(tensor.elements()) * element_bytes(tensor);
    }
  }
  return bytes;
}

/// What stands in a file as one tensor: a range of one, or of a box of it.
struct Entry {
  int64_t tensor = 0;
  int64_t begin = 0;
  int64_t end = 0;
  std::optional<TensorBox> box = std::nullopt;
};

class Planner {
 public:
  Planner(std::vector<PlannedPart> parts, std::span<const int64_t> host_of_rank, PlanLimits limits)
      : host_of_rank_(host_of_rank),
        limits_(limits),
        load_of_rank_(host_of_rank.size()),
        load_of_host_(static_cast<std::size_t>(
            *std::max_element(host_of_rank.begin(), host_of_rank.end()) + 1)) {
    plan_.chunk_bytes = Contents::kMinChunkBytes;
    while (bytes_of(parts) / plan_.chunk_bytes > kMaxChunks) plan_.chunk_bytes *= 2;
    limits_.piece_bytes = std::max(limits_.piece_bytes, plan_.chunk_bytes);
    plan_.parts = std::move(parts);
  }

  WritePlan plan() {
    for (std::size_t part = 0; part < plan_.parts.size(); ++part) {
      plan_part(static_cast<int64_t>(part));
    }
    // Slices are in the order of their ranges; shares of one piece are not those of others.
    const auto key = [](const PlannedPiece& piece) {
      const int64_t slice = piece.is_put_together ? 0 : piece.slice;
      const int64_t share = piece.is_put_together ? piece.slice : 0;
      return std::tuple(piece.part, piece.tensor, slice, piece.begin, share);
    };
    std::sort(plan_.pieces.begin(), plan_.pieces.end(),
              [&](const auto& left, const auto& right) { return key(left) < key(right); });
    return std::move(plan_);
  }

 private:
  using Entries = std::vector<Entry>;

  std::size_t host_of(int64_t rank) const {
    return static_cast<std::size_t>(host_of_rank_[static_cast<std::size_t>(rank)]);
  }

  const HeldTensor& tensor_of(const PlannedPart& part, const Entry& entry) const {
    return part.tensors[static_cast<std::size_t>(entry.tensor)];
  }

  void plan_part(int64_t part_index) {
    const PlannedPart& part = plan_.parts[static_cast<std::size_t>(part_index)];
    std::vector<Entries> of_hosts(load_of_host_.size());
    for (std::size_t t = 0; t < part.tensors.size(); ++t) {
      place(part.tensors[t], static_cast<int64_t>(t), part.layout, of_hosts);
    }
    std::vector<std::pair<std::size_t, Entries>> files;
    for (std::size_t host = 0; host < of_hosts.size(); ++host) {
      for (Entries& file : cut(part, std::move(of_hosts[host]))) {
        files.emplace_back(host, std::move(file));
      }
    }
    if (files.empty()) files.emplace_back(0, Entries());
    for (std::size_t f = 0; f < files.size(); ++f) {
      const std::string name = files.size() == 1 ? fmt::format("{}.safetensors", part.name)
                                                 : fmt::format("{}-{:05}-of-{:05}.safetensors",
                                                               part.name, f + 1, files.size());
      add_file(part_index, name, files[f].first, files[f].second);
    }
  }

  /// Bytes of a tensor that some rank of each host holds.
  std::vector<uint64_t> bytes_on_hosts(const HeldTensor& tensor) const {
    std::vector<uint64_t> bytes(load_of_host_.size());
    for (const HeldSlice& slice : tensor.slices) {
      std::vector<bool> counted(bytes.size());
      for (const int64_t rank : slice.holders) {
        if (counted[host_of(rank)]) continue;
        counted[host_of(rank)] = true;
        bytes[host_of(rank)] +=
            static_cast<uint64_t>(slice.end - slice.begin) * element_bytes(tensor);
      }
    }
    return bytes;
  }

  /// That which has most of it and, where several do, least to write.
  std::size_t best_host(const std::vector<uint64_t>& bytes) const {
    std::size_t best = 0;
    for (std::size_t host = 1; host < bytes.size(); ++host) {
      if (std::pair(bytes[host], load_of_host_[best]) >
          std::pair(bytes[best], load_of_host_[host])) {
        best = host;
      }
    }
    return best;
  }

  void place(const HeldTensor& tensor, int64_t index, Layout layout,
             std::vector<Entries>& of_hosts) {
    const std::vector<uint64_t> bytes = bytes_on_hosts(tensor);
    const uint64_t all = static_cast<uint64_t>(tensor.elements()) * element_bytes(tensor);
    const std::size_t best = best_host(bytes);
    if (layout == Layout::whole || (bytes[best] == all && !tensor.has_boxes())) {
      of_hosts[best].push_back({.tensor = index, .begin = 0, .end = tensor.elements()});
      load_of_host_[best] += all;
      return;
    }
    for (const HeldSlice& slice : tensor.slices) {
      const std::size_t host = bytes[best] == all ? best : least_loaded_host(slice.holders);
      load_of_host_[host] += static_cast<uint64_t>(slice.end - slice.begin) * element_bytes(tensor);
      Entries& entries = of_hosts[host];
      const bool goes_on = !entries.empty() && entries.back().tensor == index &&
                           entries.back().box == slice.box && entries.back().end == slice.begin;
      if (goes_on) {
        entries.back().end = slice.end;
      } else {
        entries.push_back(
            {.tensor = index, .begin = slice.begin, .end = slice.end, .box = slice.box});
      }
    }
  }

  std::size_t least_loaded_host(const std::vector<int64_t>& ranks) const {
    std::size_t best = host_of(ranks.front());
    for (const int64_t rank : ranks) {
      if (load_of_host_[host_of(rank)] < load_of_host_[best]) best = host_of(rank);
    }
    return best;
  }

  /// The entry of a safetensors file's header, still without its place.
  SafetensorsEntry described(const PlannedPart& part, const Entry& entry) const {
    const HeldTensor& tensor = tensor_of(part, entry);
    const std::string name = stored_name(tensor.name, entry.box);
    if (entry.end - entry.begin == (entry.box ? entry.box->elements() : tensor.elements())) {
      const auto& shape = entry.box ? entry.box->sizes : tensor.shape;
      return {.name = name, .dtype = tensor.dtype, .shape = shape};
    }
    return {.name = fmt::format("{}[{}:{}]", name, entry.begin, entry.end),
            .dtype = tensor.dtype,
            .shape = {entry.end - entry.begin}};
  }

  /// Files of one host.
  std::vector<Entries> cut(const PlannedPart& part, Entries entries) const {
    std::sort(entries.begin(), entries.end(), [&](const Entry& left, const Entry& right) {
      const SafetensorsEntry l = described(part, left);
      const SafetensorsEntry r = described(part, right);
      return safetensors_before(l.dtype, l.name, r.dtype, r.name);
    });
    std::vector<Entries> files;
    uint64_t size = 0;
    for (const Entry& entry : entries) {
      const uint64_t bytes =
          static_cast<uint64_t>(entry.end - entry.begin) * element_bytes(tensor_of(part, entry));
      if (files.empty() || size + bytes > limits_.file_bytes) {
        files.emplace_back();
        size = 0;
      }
      files.back().push_back(entry);
      size += bytes;
    }
    return files;
  }

  void add_file(int64_t part_index, const std::string& name, std::size_t host,
                const Entries& entries) {
    const PlannedPart& part = plan_.parts[static_cast<std::size_t>(part_index)];
    SafetensorsHeader header{.entries = {}, .metadata = {{"format", "pt"}}};
    uint64_t position = 0;
    for (const Entry& entry : entries) {
      SafetensorsEntry described_entry = described(part, entry);
      described_entry.begin = position;
      position +=
          static_cast<uint64_t>(entry.end - entry.begin) * c10::elementSize(described_entry.dtype);
      described_entry.end = position;
      header.entries.push_back(std::move(described_entry));
    }
    PlannedFile file{.name = name,
                     .part = part_index,
                     .maker = first_rank_of(host),
                     .head = safetensors_head(header)};
    file.size = file.head.size() + position;
    const auto file_index = static_cast<int64_t>(plan_.files.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      file.tensors.push_back(entries[i].tensor);
      add_pieces(part_index, entries[i], file_index, file.head.size() + header.entries[i].begin,
                 host);
    }
    plan_.files.push_back(std::move(file));
  }

  int64_t first_rank_of(std::size_t host) const {
    const auto found =
        std::find(host_of_rank_.begin(), host_of_rank_.end(), static_cast<int64_t>(host));
    return found - host_of_rank_.begin();
  }

  void add_pieces(int64_t part, const Entry& entry, int64_t file, uint64_t offset,
                  std::size_t host) {
    const HeldTensor& tensor = tensor_of(plan_.parts[static_cast<std::size_t>(part)], entry);
    const auto step = static_cast<int64_t>(limits_.piece_bytes / element_bytes(tensor));
    if (plan_.parts[static_cast<std::size_t>(part)].layout == Layout::whole && tensor.has_boxes()) {
      for (int64_t begin = 0; begin < entry.end; begin += step) {
        add_shares({.part = part,
                    .tensor = entry.tensor,
                    .begin = begin,
                    .end = std::min(begin + step, entry.end),
                    .file = file,
                    .offset = offset + static_cast<uint64_t>(begin) * element_bytes(tensor),
                    .is_put_together = true,
                    .is_last_share = false},
                   tensor, host);
      }
      return;
    }
    for (std::size_t s = 0; s < tensor.slices.size(); ++s) {
      const HeldSlice& slice = tensor.slices[s];
      if (slice.box != entry.box || slice.begin < entry.begin || slice.end > entry.end) continue;
      for (int64_t begin = slice.begin; begin < slice.end; begin += step) {
        const int64_t end = std::min(begin + step, slice.end);
        const auto before = static_cast<uint64_t>(begin - entry.begin) * element_bytes(tensor);
        PlannedPiece piece{.part = part,
                           .tensor = entry.tensor,
                           .begin = begin,
                           .end = end,
                           .file = file,
                           .offset = offset + before,
                           .slice = static_cast<int64_t>(s)};
        assign(piece, slice.holders, host,
               static_cast<uint64_t>(end - begin) * element_bytes(tensor));
        plan_.pieces.push_back(piece);
      }
    }
  }

  /// The shares of a piece that a rank of the file's host puts together, in the tensor's order of
  /// slices.
  void add_shares(PlannedPiece piece, const HeldTensor& tensor, std::size_t host) {
    piece.writer = least_loaded(ranks_of(host));
    for (std::size_t s = 0; s < tensor.slices.size(); ++s) {
      piece.slice = static_cast<int64_t>(s);
      uint64_t bytes = 0;
      for (const TensorBox& box : share_of(tensor, piece)) {
        bytes += static_cast<uint64_t>(box.elements()) * element_bytes(tensor);
      }
      if (bytes == 0) continue;
      const std::vector<int64_t>& holders = tensor.slices[s].holders;
      const bool is_there =
          std::find(holders.begin(), holders.end(), piece.writer) != holders.end();
      piece.source = is_there ? piece.writer : least_loaded(holders);
      if (!is_there) load_of_rank_[static_cast<std::size_t>(piece.source)] += bytes;
      load_of_rank_[static_cast<std::size_t>(piece.writer)] += bytes;
      plan_.pieces.push_back(piece);
    }
    plan_.pieces.back().is_last_share = true;
  }

  std::vector<int64_t> ranks_of(std::size_t host) const {
    std::vector<int64_t> ranks;
    for (int64_t rank = 0; rank < static_cast<int64_t>(host_of_rank_.size()); ++rank) {
      if (host_of(rank) == host) ranks.push_back(rank);
    }
    return ranks;
  }

  /// To a holder on the file's host; without one, a holder sends it to a rank there.
  void assign(PlannedPiece& piece, const std::vector<int64_t>& holders, std::size_t host,
              uint64_t bytes) {
    const auto here = [&](int64_t rank) { return host_of(rank) == host; };
    std::vector<int64_t> candidates;
    std::copy_if(holders.begin(), holders.end(), std::back_inserter(candidates), here);
    if (!candidates.empty()) {
      piece.source = piece.writer = least_loaded(candidates);
    } else {
      piece.source = least_loaded(holders);
      piece.writer = least_loaded(ranks_of(host));
      load_of_rank_[static_cast<std::size_t>(piece.source)] += bytes;
    }
    load_of_rank_[static_cast<std::size_t>(piece.writer)] += bytes;
  }

  int64_t least_loaded(const std::vector<int64_t>& ranks) const {
    return *std::min_element(ranks.begin(), ranks.end(), [&](int64_t left, int64_t right) {
      return load_of_rank_[static_cast<std::size_t>(left)] <
             load_of_rank_[static_cast<std::size_t>(right)];
    });
  }

  WritePlan plan_;
  std::span<const int64_t> host_of_rank_;
  PlanLimits limits_;
  std::vector<uint64_t> load_of_rank_;  ///< Bytes to send or write.
  std::vector<uint64_t> load_of_host_;  ///< Bytes to write.
};

}  // namespace

WritePlan plan_writes(std::vector<PlannedPart> parts, std::span<const int64_t> host_of_rank,
                      const PlanLimits& limits) {
  return Planner(std::move(parts), host_of_rank, limits).plan();
}

const HeldTensor& tensor_of(const WritePlan& plan, const PlannedPiece& piece) {
  const PlannedPart& part = plan.parts[static_cast<std::size_t>(piece.part)];
  return part.tensors[static_cast<std::size_t>(piece.tensor)];
}

std::vector<TensorBox> share_of(const HeldTensor& tensor, const PlannedPiece& piece) {
  const HeldSlice& slice = tensor.slices[static_cast<std::size_t>(piece.slice)];
  const TensorPart all{.box = std::nullopt, .begin = piece.begin, .end = piece.end};
  return shared_boxes(slice.part().in(tensor.shape), all.in(tensor.shape));
}

int64_t elements_of(const WritePlan& plan, const PlannedPiece& piece) {
  if (!piece.is_put_together) return piece.end - piece.begin;
  int64_t elements = 0;
  for (const TensorBox& box : share_of(tensor_of(plan, piece), piece)) elements += box.elements();
  return elements;
}

uint64_t bytes_written_by(const WritePlan& plan, int64_t rank) {
  uint64_t bytes = 0;
  for (const PlannedPiece& piece : plan.pieces) {
    if (piece.writer != rank || !piece.is_last_share) continue;
    bytes += static_cast<uint64_t>(piece.end - piece.begin) * element_bytes(tensor_of(plan, piece));
  }
  return bytes;
}

}  // namespace phalanx
