// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/optimizer.h"
#include "trainer/api/stateful.h"
#include "trainer/parallel/ddp/rank_group.h"
#include "trainer/registry/kinds.h"

namespace c10d {
class CommHookInterface;
}

namespace phalanx {

class Ranks;

/// How DDP reduces a bucket of gradients to their mean over all ranks. A class derives from this,
/// has a `Config` and registers itself with REGISTER_COMM_HOOK; `parallel.ddp.comm_hook`
/// picks it. What `make` returns is usually derived from
/// c10d::CppCommHookInterface: its runHook gets the bucket and returns a Future of the reduced
/// tensor, divided by the world size.
class CommHook {
 public:
  /// Takes a line for the user's log.
  using Tell = std::function<void(const std::string& line)>;

  virtual ~CommHook() = default;

  /// Where its lines go; without it nowhere. Before `bind`.
  void tell_by(Tell tell) { tell_ = std::move(tell); }

  /// Refuses fields that do not fit so many ranks: UserError. Before ranks are started, where their
  /// number is known. Optional.
  virtual void check(int64_t /*ranks*/) const {}

  /// Says which parameters' gradients it reduces, those of the whole model that require one, and
  /// over which ranks: once, before `make`. Optional. Throws UserError for fields that do not fit
  /// the ranks.
  virtual void bind(const std::vector<NamedParameter>& /*parameters*/, const Ranks& /*ranks*/) {}

  virtual std::unique_ptr<c10d::CommHookInterface> make(const Ranks& ranks) = 0;

  /// What checkpoints keep of it, once it is bound: parts by their names, which live as long as the
  /// hook. Optional: none.
  virtual std::vector<NamedStateful> kept_states() { return {}; }

  /// Where groups of ranks come to parameters of their own: this rank's, once bound. Optional;
  /// none: all ranks have the same.
  virtual std::optional<RankGroup> group() const { return std::nullopt; }

  /// The optimizer has made a step, on all ranks. Optional.
  virtual void after_update() {}

  /// Whether `after_update` exchanges parameters, which every rank has to take part in.
  virtual bool averages_parameters() const { return false; }

 protected:
  const Tell& tell() const { return tell_; }

 private:
  Tell tell_;
};

}  // namespace phalanx
