// SPDX-License-Identifier: Apache-2.0
// A trainer, task, models, optimizer and schedule for the commands to choose from.

#include <csignal>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tests/trainer/loop/tiny.h"
#include "trainer/config/tree/schema.h"
#include "trainer/mixins/checkpoint_mixin.h"
#include "trainer/registry/kinds.h"
#include "trainer/registry/trainers.h"
#include "trainer/trainer.h"

namespace phalanx::tiny {
namespace {

struct RegressionConfig {
  int64_t samples = 10;
  int64_t validation_samples = 5;
  std::optional<int64_t> fails_at;
  std::optional<int64_t> raises_at;

  static void describe(config::Schema<RegressionConfig>& s) {
    s.field("samples", &RegressionConfig::samples, "of training").at_least(0);
    s.field("validation_samples", &RegressionConfig::validation_samples, "of validation");
    s.field("fails_at", &RegressionConfig::fails_at, "step whose loss throws").resume_may_change();
    s.field("raises_at", &RegressionConfig::raises_at, "step that raises SIGTERM")
        .resume_may_change();
  }
};

class RegisteredRegression : public Regression {
 public:
  using Config = RegressionConfig;
  explicit RegisteredRegression(Config config)
      : Regression(
            {.data = {.samples = config.samples, .validation_samples = config.validation_samples},
             .fails_at = config.fails_at}),
        raises_at_(config.raises_at) {}

  void on_step_end(Regressor&, const State& state) override {
    if (state.step == raises_at_) std::raise(SIGTERM);
  }

 private:
  std::optional<int64_t> raises_at_;
};

struct LinearConfig {
  double dropout = 0;
  static void describe(config::Schema<LinearConfig>& s) {
    s.field("dropout", &LinearConfig::dropout, "of rows").at_least(0).less_than(1);
  }
};

class RegisteredLinear : public ModelBase, public Regressor {
 public:
  using Config = LinearConfig;
  static std::vector<std::string_view> interfaces() { return {kInterface}; }
  explicit RegisteredLinear(Config config) : model_(make_model(config.dropout)) {}

  torch::nn::Module& module() override { return model_->module(); }
  at::Tensor predict(const at::Tensor& rows) override { return regressor().predict(rows); }
  at::ScalarType dtype() const override { return regressor().dtype(); }
  bool in_training() const override { return regressor().in_training(); }

 private:
  Regressor& regressor() const { return dynamic_cast<Regressor&>(*model_); }

  std::shared_ptr<ModelBase> model_;
};

struct NothingToSet {
  static void describe(config::Schema<NothingToSet>&) {}
};

// Fits no task here.
class Parrot : public ModelBase {
 public:
  using Config = NothingToSet;
  static std::vector<std::string_view> interfaces() { return {"Speaker"}; }
  explicit Parrot(Config) : model_(make_model()) {}
  torch::nn::Module& module() override { return model_->module(); }

 private:
  std::shared_ptr<ModelBase> model_;
};

struct DescentConfig {
  double lr = 0.1;
  static void describe(config::Schema<DescentConfig>& s) {
    s.field("lr", &DescentConfig::lr, "learning rate").at_least(0).resume_may_change();
  }
};

class RegisteredDescent : public Descent {
 public:
  using Config = DescentConfig;
  explicit RegisteredDescent(Config config) : Descent(config.lr) {}
};

class Constant : public Schedule {
 public:
  using Config = NothingToSet;
  explicit Constant(Config) {}
};

REGISTER_TRAINER("tiny", Trainer<CheckpointMixin>);
REGISTER_TASK("regression", RegisteredRegression);
REGISTER_MODEL("linear", RegisteredLinear);
REGISTER_MODEL("parrot", Parrot);
REGISTER_OPTIMIZER("descent", RegisteredDescent);
REGISTER_LR_SCHEDULER("constant", Constant);

}  // namespace
}  // namespace phalanx::tiny
