// SPDX-License-Identifier: Apache-2.0
#include "trainer/mixins/lora_config.h"

#include <algorithm>
#include <optional>
#include <string>

#include "trainer/api/adapters.h"
#include "trainer/config/tree/schema.h"

namespace phalanx {

AdapterOptions LoraConfig::options() const {
  return {.rank = r, .scale = lora_alpha / static_cast<double>(r), .dropout = lora_dropout};
}

void LoraConfig::adapt(ModelBase& model) const {
  add_adapters(model, target_modules, options(), "lora.target_modules");
}

void LoraConfig::describe(config::Schema<LoraConfig>& s) {
  s.field(
      "target_modules", &LoraConfig::target_modules,
      "linear layers beside which adapters are trained, while the model stays as "
      "checkpoint.load_from has it: ends of dotted names, such as c_attn; `*` and `?` stand for "
      "any letters, '*' is all; none: the model itself is trained");
  s.field("r", &LoraConfig::r, "rank of an adapter's two matrices").in_range(1, 1 << 18);
  s.field("lora_alpha", &LoraConfig::lora_alpha,
          "an adapter's product is multiplied by lora_alpha / r")
      .greater_than(0);
  s.field("lora_dropout", &LoraConfig::lora_dropout, "dropout of what an adapter is given")
      .at_least(0)
      .less_than(1);
  s.check([](const LoraConfig& config) -> std::optional<std::string> {
    const auto& modules = config.target_modules;
    if (std::find(modules.begin(), modules.end(), "all-linear") == modules.end()) {
      return std::nullopt;
    }
    return "target_modules: all linear layers are ['*'], not all-linear";
  });
  s.ineffective({"r", "lora_alpha", "lora_dropout"}, "target_modules is empty",
                [](const LoraConfig& config) { return !config.is_used(); });
}

}  // namespace phalanx
