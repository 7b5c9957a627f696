// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/api/lr_scheduler.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/choice.h"
#include "trainer/registry/kinds.h"

namespace phalanx {
namespace {

/// Several schedules one after the other (torch's SequentialLR). Each counts its steps from its own
/// beginning, and takes the milestone that it ends at for the run's last step.
class Chain : public LrScheduler {
 public:
  struct Config {
    std::vector<config::Chosen> schedules;
    std::vector<int64_t> milestones;

    static void describe(config::Schema<Config>& s) {
      s.field("schedules", &Config::schedules,
              "the schedules, in their order; each counts its steps from its own beginning")
          .mandatory()
          .out_of(registered_choice<LrScheduler>())
          .resume_may_change();
      s.field("milestones", &Config::milestones,
              "the last step of each schedule but the last one, ascending")
          .mandatory()
          .at_least(1)
          .count()
          .unit("steps")
          .resume_may_change();
      s.check([](const Config& c) -> std::optional<std::string> {
        if (c.schedules.empty()) return "schedules names none: give at least one";
        if (c.milestones.size() + 1 != c.schedules.size()) {
          return "milestones has " + std::to_string(c.milestones.size()) + " steps, but " +
                 std::to_string(c.schedules.size()) + " schedules have " +
                 std::to_string(c.schedules.size() - 1) + " between them";
        }
        if (std::ranges::adjacent_find(c.milestones, std::greater_equal<>()) !=
            c.milestones.end()) {
          return "milestones must ascend, each of them once";
        }
        return refused_part(c.schedules);
      });
    }
  };

  explicit Chain(Config config) : milestones_(std::move(config.milestones)) {
    for (const config::Chosen& chosen : config.schedules) schedules_.push_back(made(chosen));
  }

  double factor(int64_t step, int64_t total_steps) const override {
    const auto next = std::ranges::lower_bound(milestones_, step);
    const auto part = static_cast<size_t>(next - milestones_.begin());
    const int64_t begin = part == 0 ? 0 : milestones_[part - 1];
    const int64_t end = next == milestones_.end() ? total_steps : *next;
    return schedules_[part]->factor(step - begin, end - begin);
  }
  bool needs_total_steps() const override { return schedules_.back()->needs_total_steps(); }

 private:
  static std::shared_ptr<LrScheduler> made(const config::Chosen& chosen) {
    return Registry<LrScheduler>::instance().make(chosen);
  }

  static std::optional<std::string> refused_part(const std::vector<config::Chosen>& schedules) {
    for (const config::Chosen& chosen : schedules) {
      if (made(chosen)->kept_state() == nullptr) continue;
      return "schedules: " + chosen.name() +
             " goes by validations, not by steps alone, and cannot be a part of a chain";
    }
    return std::nullopt;
  }

  std::vector<std::shared_ptr<LrScheduler>> schedules_;
  std::vector<int64_t> milestones_;
};

REGISTER_LR_SCHEDULER("chain", Chain);

}  // namespace
}  // namespace phalanx
