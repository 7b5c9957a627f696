// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/power_sgd/counts.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trainer/base/json_cause.h"
#include "trainer/base/user_error.h"

namespace phalanx::power_sgd {
namespace {

constexpr const char* kIteration = "iteration";
constexpr const char* kDraws = "draws";
constexpr const char* kIsWarm = "is_warm";
constexpr const char* kBefore = "elements_before";
constexpr const char* kAfter = "elements_after";
constexpr const char* kLastReport = "last_report";

std::mt19937 seeded(int64_t seed) { return std::mt19937(static_cast<uint32_t>(seed)); }

}  // namespace

Counts::Counts(const CountOptions& options)
    : options_(options), random_(seeded(options.random_seed)) {}

// RandomState's bounded integers: the bits that the bound has, drawn again while above it.
int64_t Counts::next_seed() {
  constexpr uint32_t kBound = 1'000'000'000;
  constexpr uint32_t kMask = (uint32_t{1} << 30) - 1;
  ++draws_;
  uint32_t value = kBound;
  while (value >= kBound) value = static_cast<uint32_t>(random_()) & kMask;
  return value;
}

at::Generator Counts::next_generator() {
  return at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(next_seed()));
}

void Counts::count(int64_t before, int64_t after) {
  before_ += before;
  after_ += after;
}

void Counts::end_compressed(const std::function<void(const std::string&)>& tell) {
  const bool is_due =
      last_report_ < 0 || iteration_ - last_report_ >= options_.compression_stats_logging_frequency;
  if (is_due) {
    if (tell) {
      tell(fmt::format(
          "PowerSGD, iteration {}: {} elements of gradients compressed to {}, rate "
          "{:.4g}",
          iteration_, before_, after_,
          after_ == 0 ? 0. : static_cast<double>(before_) / static_cast<double>(after_)));
    }
    last_report_ = iteration_;
  }
  is_warm_ = true;
  end_iteration();
}

std::string Counts::json() const {
  return nlohmann::ordered_json{{kIteration, iteration_}, {kDraws, draws_},
                                {kIsWarm, is_warm_},      {kBefore, before_},
                                {kAfter, after_},         {kLastReport, last_report_}}
      .dump();
}

void Counts::restore(std::string_view json) {
  try {
    const auto kept = nlohmann::json::parse(json);
    Counts restored(options_);
    restored.iteration_ = kept.at(kIteration).get<int64_t>();
    restored.is_warm_ = kept.at(kIsWarm).get<bool>();
    restored.before_ = kept.at(kBefore).get<int64_t>();
    restored.after_ = kept.at(kAfter).get<int64_t>();
    restored.last_report_ = kept.at(kLastReport).get<int64_t>();
    const auto draws = kept.at(kDraws).get<int64_t>();
    while (restored.draws_ < draws) restored.next_seed();
    *this = restored;
  } catch (const nlohmann::json::exception& error) {
    throw UserError(fmt::format("the state of PowerSGD cannot be read: {}", json_cause(error)));
  }
}

}  // namespace phalanx::power_sgd
