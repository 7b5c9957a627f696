// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/start_operation.h"

#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

#include "trainer/ranks/collectives/process_group.h"
#include "trainer/ranks/collectives/ranks_group.h"
#include "trainer/ranks/failures/gloo_error.h"
#include "trainer/tensors/error_text.h"

namespace phalanx {
namespace {

// "4 ranks", or "the group 'experts' of 4 ranks".
std::string group_text(const Ranks::Group& group) {
  const std::string ranks = fmt::format("{} ranks", group.world_size);
  return group.label.empty() ? ranks : fmt::format("the group '{}' of {}", group.label, ranks);
}

}  // namespace

Pending::Pending() = default;
Pending::Pending(std::function<void()> wait) : wait_(std::move(wait)) {}
Pending::Pending(Pending&&) noexcept = default;
Pending& Pending::operator=(Pending&&) noexcept = default;
Pending::~Pending() = default;

void Pending::wait() {
  if (auto wait = std::exchange(wait_, nullptr)) wait();
}

const c10::intrusive_ptr<c10d::ProcessGroup>& process_group(const Ranks& ranks) {
  require_open(ranks, "process_group");
  const Ranks::Group& group = ranks.group();
  if (!group.process_group) throw std::logic_error("a world of one has no process group");
  return group.process_group;
}

Pending start_operation(const Ranks& ranks, std::string operation, StartWork start) {
  const std::string name = operation;
  auto fail = [ranks, operation = std::move(operation)](const std::exception& error) {
    throw CommunicationError(fmt::format("{} of {} failed in {}: {}", operation,
                                         group_text(ranks.group()), ranks.activity(),
                                         plain_gloo_text(error_text(error))));
  };
  const auto& group = process_group(ranks);
  c10::intrusive_ptr<c10d::Work> work;
  ranks.group().activity->begin_operation();
  try {
    work = start(*group);
  } catch (const std::invalid_argument& error) {
    // The ranks' calls do not fit each other (checked_backend.h): no rank is lost.
    throw std::invalid_argument(fmt::format("{} in {}: {}", name, ranks.activity(), error.what()));
  } catch (const std::exception& error) {
    fail(error);
  }
  return Pending([work = std::move(work), fail = std::move(fail)] {
    try {
      if (work) work->wait();
    } catch (const std::exception& error) {
      fail(error);
    }
  });
}

void require_open(const Ranks& ranks, std::string_view operation) {
  ranks.group().end->require_open(operation);
}

std::string backend_name(const Ranks& ranks, at::DeviceType device) {
  return process_group(ranks)->getBackend(device)->getBackendName();
}

void require_rank(const Ranks& ranks, std::string_view operation, int64_t rank) {
  if (rank >= 0 && rank < ranks.world_size()) return;
  throw std::invalid_argument(
      fmt::format("{}: there is no rank {} among {}", operation, rank, ranks.world_size()));
}

c10d::ReduceOp reduce_op(std::string_view operation, Reduction reduction, at::ScalarType dtype) {
  const auto require = [&](bool holds, const char* numbers) {
    if (holds) return;
    throw std::invalid_argument(fmt::format("{}: {} is for {}, not for {}", operation,
                                            to_string(reduction), numbers, c10::toString(dtype)));
  };
  const bool has_bits = c10::isIntegralType(dtype, /*includeBool=*/true);
  switch (reduction) {
    case Reduction::sum:
      return c10d::ReduceOp::SUM;
    case Reduction::average:
      require(!has_bits, "floating-point numbers");
      return c10d::ReduceOp::AVG;
    case Reduction::product:
      return c10d::ReduceOp::PRODUCT;
    case Reduction::minimum:
      require(!c10::isComplexType(dtype), "real numbers");
      return c10d::ReduceOp::MIN;
    case Reduction::maximum:
      require(!c10::isComplexType(dtype), "real numbers");
      return c10d::ReduceOp::MAX;
    case Reduction::bitwise_and:
      require(has_bits, "integers");
      return c10d::ReduceOp::BAND;
    case Reduction::bitwise_or:
      require(has_bits, "integers");
      return c10d::ReduceOp::BOR;
    case Reduction::bitwise_xor:
      require(has_bits, "integers");
      return c10d::ReduceOp::BXOR;
  }
  throw std::logic_error("an unknown Reduction");
}

const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::average:
      return "average";
    case Reduction::product:
      return "product";
    case Reduction::minimum:
      return "minimum";
    case Reduction::maximum:
      return "maximum";
    case Reduction::bitwise_and:
      return "bitwise and";
    case Reduction::bitwise_or:
      return "bitwise or";
    case Reduction::bitwise_xor:
      return "bitwise xor";
  }
  return "";
}

}  // namespace phalanx
