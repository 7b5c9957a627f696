// SPDX-License-Identifier: Apache-2.0
// Optimizers of alike names, with fields that all, several or one of them have.

#include <array>
#include <optional>
#include <string>

#include "tests/trainer/loop/tiny.h"
#include "trainer/config/tree/array.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx::tiny {
namespace {

template <class ConfigT>
class OfConfig : public Descent {
 public:
  using Config = ConfigT;
  explicit OfConfig(const Config& config) : Descent(config.lr) {}
};

struct MeanConfig {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;

  static void describe(config::Schema<MeanConfig>& s) {
    s.field("lr", &MeanConfig::lr, "learning rate").at_least(0).resume_may_change();
    s.field("betas", &MeanConfig::betas, "decay rates of two means").at_least(0).less_than(1);
    s.field("eps", &MeanConfig::eps, "added to the denominator").at_least(0);
    s.field("weight_decay", &MeanConfig::weight_decay, "of the groups that decay").at_least(0);
    s.field("amsgrad", &MeanConfig::amsgrad, "divide by the largest");
    s.field("maximize", &MeanConfig::maximize, "climb");
  }
};

struct SignConfig {
  double lr = 1e-4;
  std::array<double, 2> betas = {0.9, 0.99};
  double weight_decay = 0;

  static void describe(config::Schema<SignConfig>& s) {
    s.field("lr", &SignConfig::lr, "learning rate").at_least(0).resume_may_change();
    s.field("betas", &SignConfig::betas, "shares of the mean").at_least(0).less_than(1);
    s.field("weight_decay", &SignConfig::weight_decay, "of the groups that decay").at_least(0);
  }
};

struct RollConfig {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool maximize = false;

  static void describe(config::Schema<RollConfig>& s) {
    s.field("lr", &RollConfig::lr, "learning rate").at_least(0).resume_may_change();
    s.field("momentum", &RollConfig::momentum, "share that is kept").at_least(0);
    s.field("dampening", &RollConfig::dampening, "share kept out of the momentum");
    s.field("nesterov", &RollConfig::nesterov, "look ahead along the momentum");
    s.field("weight_decay", &RollConfig::weight_decay, "of the groups that decay").at_least(0);
    s.field("maximize", &RollConfig::maximize, "climb");
    s.check([](const RollConfig& c) -> std::optional<std::string> {
      if (!c.nesterov || (c.momentum > 0 && c.dampening == 0)) return std::nullopt;
      return "nesterov needs a momentum above 0 and a dampening of 0";
    });
    s.ineffective({"dampening"}, "momentum is 0",
                  [](const RollConfig& c) { return c.momentum == 0; });
  }
};

REGISTER_OPTIMIZER("mean", OfConfig<MeanConfig>);
REGISTER_OPTIMIZER("means", OfConfig<MeanConfig>);
REGISTER_OPTIMIZER("roll", OfConfig<RollConfig>);
REGISTER_OPTIMIZER("sign", OfConfig<SignConfig>);

}  // namespace
}  // namespace phalanx::tiny
