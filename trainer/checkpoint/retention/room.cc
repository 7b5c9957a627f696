// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/retention/room.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/checkpoint/format/layout.h"
#include "trainer/host/host.h"
#include "trainer/io/bytes_text.h"
#include "trainer/io/file.h"
#include "trainer/ranks/ranks.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;
using Views = std::span<const ShardedTensorView>;

// This rank's share of what it and its replicas hold.
double share_of(const Ranks& ranks, Views views) {
  double bytes = 0;
  for (const ShardedTensorView& view : views) {
    const auto& holders = view.replicas;
    if (std::find(holders.begin(), holders.end(), ranks.rank()) == holders.end()) continue;
    bytes += static_cast<double>(view.local.nbytes()) / static_cast<double>(holders.size());
  }
  return bytes;
}

UserError cannot_keep_in(const fs::path& folder, const std::string& reason) {
  return UserError(fmt::format("checkpoints cannot be kept in '{}': {}", folder.string(), reason));
}

// What rank 0 writes, and the others look for; removed at scope exit.
class Probe {
 public:
  explicit Probe(fs::path path) : path_(std::move(path)) {}
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  ~Probe() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }

  void write(const std::string& text) const {
    try {
      File(path_, O_WRONLY | O_CREAT | O_TRUNC).write(text);
    } catch (const IoError& error) {
      throw cannot_keep_in(path_.parent_path(), error.what());
    }
  }

 private:
  fs::path path_;
};

// More than any folder holds; the sum of a few of them is still a number.
constexpr int64_t kEndless = std::numeric_limits<int64_t>::max() / 4;

// How many more than now will stay after the last save, beside what it replaces.
int64_t that_stay(const Retention& retention, std::span<const int64_t> existing,
                  const PlannedSaves& saves) {
  const auto held = static_cast<int64_t>(existing.size());
  const int64_t last = std::min(*retention.keep_last, kEndless);
  const int64_t beside = std::min(retention.keep_best ? retention.keep_best->k : 0, kEndless) +
                         (retention.resumed_step ? 1 : 0);
  if (!retention.keep_every_n_steps) return last + beside - held;
  const int64_t n = *retention.keep_every_n_steps;
  const int64_t held_for_good =
      std::ranges::count_if(existing, [n](int64_t step) { return step > 0 && step % n == 0; });
  // Some of the last ones stay in any case.
  const int64_t passing = last - saves.newest(last).divisible_by(n) + beside;
  return saves.divisible_by(n) + passing - (held - held_for_good);
}

// Which fields would need less room; a comma stands before each. May be empty.
std::string how_to_keep_fewer(const Retention& retention) {
  if (!retention.keep_last) return ", set checkpoint.keep_last";
  std::string text;
  if (retention.keep_every_n_steps) text += ", raise checkpoint.keep_every_n_steps";
  std::vector<std::string> fields;
  const auto add = [&fields](const char* field, int64_t now) {
    if (now > 1) fields.push_back(fmt::format("{}, now {}", field, now));
  };
  add("checkpoint.keep_last", *retention.keep_last);
  if (retention.keep_best) add("checkpoint.keep_best.k", retention.keep_best->k);
  return fields.empty() ? text : text + fmt::format(", keep fewer ({})", fmt::join(fields, "; "));
}

bool holds(const fs::path& path, const std::string& text) {
  try {
    return read_text(path, text.size()) == text;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

uint64_t checkpoint_bytes(const Ranks& ranks, Views model, Views optimizer,
                          std::span<const StatePart> parts) {
  const at::Tensor bytes = tensors::empty({1}, at::kDouble);
  auto& value = *bytes.mutable_data_ptr<double>();
  value = share_of(ranks, model) + share_of(ranks, optimizer);
  for (const StatePart& part : parts) value += share_of(ranks, part.tensors);
  ranks.all_reduce(bytes);
  return static_cast<uint64_t>(value);
}

int64_t checkpoints_to_come(const Retention& retention, std::span<const int64_t> existing,
                            const PlannedSaves& saves) {
  const int64_t planned = saves.count();
  int64_t count = 1;
  if (retention.keep_last) {
    count = std::max(count, that_stay(retention, existing, saves) + 1);
  } else {
    count = std::max(count, planned);
  }
  if (saves.are_all) return std::min(count, planned);
  // Where time or validations decide, too, there is one a step at the most.
  return saves.last > saves.after ? std::min(count, saves.last - saves.after) : count;
}

void require_room(const fs::path& folder, const Retention& retention, int64_t count, uint64_t bytes,
                  WithoutRoom without) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error) throw cannot_keep_in(folder, error.message());
  // Some file systems do not know how large they are.
  if (count == 0 || space.capacity == 0) return;
  const uint64_t free = space.available;
  // Divided, as the product may be more than a number holds.
  if (bytes <= free / static_cast<uint64_t>(count)) return;
  throw UserError(fmt::format(
      "'{}' has {} free, and {} more checkpoint{} of {} each must find room there at a time: free "
      "some space, choose another exp_dir{}{}",
      folder.string(), bytes_text(free), count, count == 1 ? "" : "s", bytes_text(bytes),
      how_to_keep_fewer(retention),
      without == WithoutRoom::ends ? ", or begin all the same with checkpoint.on_error=warn" : ""));
}

void require_shared(const Ranks& ranks, const fs::path& folder) {
  if (ranks.is_single_rank()) return;
  std::random_device entropy;
  const std::string text = ranks.broadcast(fmt::format("{:08x}{:08x}", entropy(), entropy()));
  const fs::path path = ranks.broadcast(aside(folder / kLatestFile).string());
  std::optional<Probe> probe;
  on_first_rank(ranks, [&] { probe.emplace(path).write(text); });
  const auto hosts = ranks.all_gather(holds(path, text) ? std::string() : host_name());
  std::vector<std::string> blind;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (!hosts[rank].empty()) blind.push_back(fmt::format("rank {} on {}", rank, hosts[rank]));
  }
  // Removed only when all have looked.
  probe.reset();
  if (blind.empty()) return;
  throw UserError(fmt::format(
      "what rank 0 writes into '{}' is not seen by {}: every rank writes its part of a checkpoint "
      "there, so choose an exp_dir on a file system that all hosts share",
      folder.string(), fmt::join(blind, ", ")));
}

}  // namespace phalanx
