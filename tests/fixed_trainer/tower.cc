// SPDX-License-Identifier: Apache-2.0
// The one model: presets, and a check of two fields that they set.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/loop/tiny.h"
#include "trainer/config/tree/schema.h"
#include "trainer/registry/kinds.h"

namespace phalanx::tiny {
namespace {

struct TowerConfig {
  int64_t n_embd = 768;
  int64_t n_layer = 12;
  int64_t n_head = 12;
  std::optional<int64_t> n_inner;
  double embd_pdrop = 0.1;
  double resid_pdrop = 0.1;
  double initializer_range = 0.02;

  static void describe(config::Schema<TowerConfig>& s) {
    s.field("n_embd", &TowerConfig::n_embd, "width; a multiple of n_head").at_least(1);
    s.field("n_layer", &TowerConfig::n_layer, "number of blocks").at_least(1);
    s.field("n_head", &TowerConfig::n_head, "heads a block").at_least(1);
    s.field("n_inner", &TowerConfig::n_inner, "width within a block; null: 4 * n_embd").at_least(1);
    s.field("embd_pdrop", &TowerConfig::embd_pdrop, "dropout of the rows").at_least(0).less_than(1);
    s.field("resid_pdrop", &TowerConfig::resid_pdrop, "dropout behind a block")
        .at_least(0)
        .less_than(1);
    s.field("initializer_range", &TowerConfig::initializer_range, "of the initial weights")
        .at_least(0);
    const auto size = [&s](const char* name, int64_t layers, int64_t heads, int64_t width) {
      s.preset(name, "a size", [=](TowerConfig& config) {
        config.n_layer = layers;
        config.n_head = heads;
        config.n_embd = width;
      });
    };
    size("tower-124m", 12, 12, 768);
    size("tower-355m", 24, 16, 1024);
    size("tower-774m", 36, 20, 1280);
    size("tower-1558m", 48, 25, 1600);
    s.check([](const TowerConfig& c) -> std::optional<std::string> {
      if (c.n_embd % c.n_head == 0) return std::nullopt;
      return "n_embd (" + std::to_string(c.n_embd) + ") must be a multiple of n_head (" +
             std::to_string(c.n_head) + ")";
    });
  }
};

class Tower : public ModelBase, public Regressor {
 public:
  using Config = TowerConfig;
  static std::vector<std::string_view> interfaces() { return {kInterface}; }
  explicit Tower(const Config& config) : model_(make_model(config.embd_pdrop)) {}

  torch::nn::Module& module() override { return model_->module(); }
  at::Tensor predict(const at::Tensor& rows) override { return regressor().predict(rows); }
  at::ScalarType dtype() const override { return regressor().dtype(); }
  bool in_training() const override { return regressor().in_training(); }

 private:
  Regressor& regressor() const { return dynamic_cast<Regressor&>(*model_); }

  std::shared_ptr<ModelBase> model_;
};

REGISTER_MODEL("tower", Tower);

}  // namespace
}  // namespace phalanx::tiny
