// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/environment.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

constexpr int64_t kMaxRanks = std::numeric_limits<int32_t>::max();  // c10d counts ranks as int
constexpr int64_t kHighestPort = std::numeric_limits<uint16_t>::max();

[[noreturn]] void refuse(const std::string& text) {
  throw UserError(text +
                  ". The launcher sets these variables (torchrun, or `launcher` in the config "
                  "where none of RANK, WORLD_SIZE and LOCAL_RANK is set)");
}

class Variables {
 public:
  explicit Variables(const VariableLookup& lookup) : lookup_(lookup) {}

  bool has(const char* name) const { return !text(name).empty(); }

  // An empty variable counts as one that is not set, as in torchrun.
  std::string_view text(const char* name) const {
    const char* value = lookup_(name);
    return value == nullptr ? std::string_view() : std::string_view(value);
  }

  std::string_view required(const char* name) const {
    if (!has(name)) refuse(std::string("the environment variable ") + name + " is not set");
    return text(name);
  }

  int64_t number(const char* name, int64_t low, int64_t high) const {
    const std::string_view digits = required(name);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      refuse(std::string(name) + " is '" + std::string(digits) + "', which is no whole number");
    }
    if (value < low || value > high) {
      refuse(std::string(name) + " is " + std::to_string(value) + ", but must lie from " +
             std::to_string(low) + " to " + std::to_string(high));
    }
    return value;
  }

 private:
  const VariableLookup& lookup_;
};

const char* lookup_in_process(const char* name) { return std::getenv(name); }

void require_below(const char* name, int64_t value, const char* of, int64_t bound) {
  if (value < bound) return;
  refuse(std::string(name) + " is " + std::to_string(value) + ", but " + of + " is " +
         std::to_string(bound) + ": ranks count from 0");
}

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

}  // namespace

bool launched_as_rank(const VariableLookup& lookup) {
  const Variables variables(lookup);
  return variables.has("RANK") || variables.has("WORLD_SIZE") || variables.has("LOCAL_RANK");
}

bool launched_as_rank() { return launched_as_rank(lookup_in_process); }

Environment read_environment(const VariableLookup& lookup) {
  Environment environment;
  if (!launched_as_rank(lookup)) return environment;
  const Variables variables(lookup);
  environment.world_size = variables.number("WORLD_SIZE", 1, kMaxRanks);
  environment.rank = variables.number("RANK", 0, kMaxRanks);
  require_below("RANK", environment.rank, "WORLD_SIZE", environment.world_size);
  environment.local_rank = variables.number("LOCAL_RANK", 0, kMaxRanks);
  environment.local_world_size = variables.number("LOCAL_WORLD_SIZE", 1, kMaxRanks);
  require_below("LOCAL_RANK", environment.local_rank, "LOCAL_WORLD_SIZE",
                environment.local_world_size);
  if (environment.local_world_size > environment.world_size) {
    refuse("LOCAL_WORLD_SIZE is " + std::to_string(environment.local_world_size) +
           ", more than WORLD_SIZE, which is " + std::to_string(environment.world_size));
  }
  if (variables.has("TORCHELASTIC_RESTART_COUNT")) {
    environment.restart_count = variables.number("TORCHELASTIC_RESTART_COUNT", 0, kMaxRanks);
  }
  if (environment.world_size == 1) return environment;  // nobody to meet
  environment.master_addr = variables.required("MASTER_ADDR");
  environment.master_port = static_cast<uint16_t>(variables.number("MASTER_PORT", 1, kHighestPort));
  environment.agent_store = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  return environment;
}

Environment read_environment() { return read_environment(lookup_in_process); }

void export_environment(const Environment& environment) {
  set("RANK", std::to_string(environment.rank));
  set("WORLD_SIZE", std::to_string(environment.world_size));
  set("LOCAL_RANK", std::to_string(environment.local_rank));
  set("LOCAL_WORLD_SIZE", std::to_string(environment.local_world_size));
  set("MASTER_ADDR", environment.master_addr);
  set("MASTER_PORT", std::to_string(environment.master_port));
}

}  // namespace phalanx
