// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/ranks/failures/communication_error.h"

namespace at {
class Tensor;
}

namespace phalanx {

class KeyValueStore;

/// How the values of several ranks become one. An average is of floating-point numbers, and what
/// goes by bits of integers; a rank that is given other ones throws std::invalid_argument.
enum class Reduction {
  sum,
  average,
  product,
  minimum,
  maximum,
  bitwise_and,
  bitwise_or,
  bitwise_xor
};

/// How a group of some ranks is made.
struct GroupOptions {
  std::string name;  ///< In its errors, the same on all of its ranks; empty: "N ranks".
  std::optional<std::chrono::milliseconds> timeout;  ///< Of one operation; none: this group's.
};

/// A collective or transfer that has been started. Must be waited for: its tensors are in use until
/// then.
class [[nodiscard]] Pending {
 public:
  /// Nothing to wait for.
  Pending();
  explicit Pending(std::function<void()> wait);
  Pending(Pending&&) noexcept;
  Pending& operator=(Pending&&) noexcept;
  ~Pending();

  /// Waits until the result is there. Throws CommunicationError.
  void wait();

 private:
  std::function<void()> wait_;
};

/// The processes that train together, as one of them sees them: its place, and the operations that
/// all of them take part in, in the same order on each. A value; copies are the same group. Tensors
/// are contiguous, and on the rank's device or in host memory. On a GPU an operation is waited for
/// by what is computed there next, not by the caller. In a world of one every operation is the
/// identity, except send and receive, which have no peer (std::logic_error). Errors are
/// CommunicationError. Further operations are functions in trainer/ranks/collectives.
class Ranks {
 public:
  struct Group;

  /// A world of one.
  Ranks();
  explicit Ranks(std::shared_ptr<Group> group);

  int64_t rank() const;
  int64_t world_size() const;
  /// Place among those of the group's ranks that are on this host, and how many these are. In the
  /// world it is the launcher's word, and picks the device.
  int64_t local_rank() const;
  int64_t local_world_size() const;
  /// Rank 0, which writes what is written once.
  bool is_first() const { return rank() == 0; }
  /// A world of one, where nothing needs to be wrapped or reduced.
  bool is_single_rank() const { return world_size() == 1; }
  /// How long an operation waits for other ranks.
  std::chrono::milliseconds timeout() const;

  /// Reduces in place over all ranks.
  void all_reduce(const at::Tensor& tensor, Reduction reduction = Reduction::sum) const;
  Pending start_all_reduce(const at::Tensor& tensor, Reduction reduction = Reduction::sum) const;
  /// Every rank's `input`, one after the other along the first dimension of `output`
  /// (world_size * input's elements). `input` may be this rank's place in `output`.
  void all_gather(const at::Tensor& output, const at::Tensor& input) const;
  Pending start_all_gather(const at::Tensor& output, const at::Tensor& input) const;
  /// This rank's part of the reduction of all ranks' `input` (world_size * output's elements).
  void reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                      Reduction reduction = Reduction::sum) const;
  Pending start_reduce_scatter(const at::Tensor& output, const at::Tensor& input,
                               Reduction reduction = Reduction::sum) const;
  /// Rank `source`'s values, on every rank.
  void broadcast(const at::Tensor& tensor, int64_t source = 0) const;
  Pending start_broadcast(const at::Tensor& tensor, int64_t source = 0) const;
  /// Part r of `input` goes to rank r; part r of `output` is what rank r sent here. Equal parts
  /// along the first dimension.
  void all_to_all(const at::Tensor& output, const at::Tensor& input) const;
  Pending start_all_to_all(const at::Tensor& output, const at::Tensor& input) const;
  /// From one rank to another; both name the same tag, shape and dtype. NCCL knows no tags: what
  /// one rank sends another on a GPU comes in the order in which it was sent.
  void send(const at::Tensor& tensor, int64_t destination, int tag = 0) const;
  Pending start_send(const at::Tensor& tensor, int64_t destination, int tag = 0) const;
  void receive(const at::Tensor& tensor, int64_t source, int tag = 0) const;
  Pending start_receive(const at::Tensor& tensor, int64_t source, int tag = 0) const;
  /// Returns when every rank has come here.
  void barrier() const;

  /// Rank `source`'s text, on every rank.
  std::string broadcast(const std::string& text, int64_t source = 0) const;
  /// Every rank's text, by rank.
  std::vector<std::string> all_gather(const std::string& text) const;

  /// The group's key-value store, its keys apart from other groups'.
  KeyValueStore& store() const;
  /// The same, for a thread that may outlive the group.
  std::shared_ptr<KeyValueStore> shared_store() const;

  /// A group of some of these ranks, in the given order; nothing for a rank that is not among them.
  /// Every rank of this group calls it, with the same list and options. Throws
  /// std::invalid_argument for a list that names a rank twice or one that is not there.
  std::optional<Ranks> subgroup(std::span<const int64_t> members,
                                const GroupOptions& options = {}) const;

  /// The same ranks with connections of their own, for another thread, which `activity` says the
  /// work of. Every rank calls it.
  Ranks separate(std::string_view activity) const;

  /// What this rank is doing ("step 12, backward"): part of an error's message.
  void set_activity(std::string_view activity) const;
  const std::string& activity() const;

  /// What these ranks stand on (ranks_group.h), for `process_group`.
  const Group& group() const { return *group_; }

  /// Ends the group, after a barrier, and the groups that were made of it: afterwards every
  /// operation of every copy, and of their stores, throws std::logic_error that names it. What the
  /// ranks are (rank, world_size, ...) can still be asked.
  void close() const;
  /// As close, but gives up what is under way: after an error.
  void abort() const;

 private:
  std::shared_ptr<Group> group_;
};

/// Has rank 0 do what is done once: write, choose, remove. The others wait for it. When it fails,
/// rank 0 throws what `action` threw, and the others a CommunicationError that says so: none goes
/// on.
void on_first_rank(const Ranks& ranks, const std::function<void()>& action);

}  // namespace phalanx
