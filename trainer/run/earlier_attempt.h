// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "trainer/ranks/environment/environment.h"

namespace phalanx {

/// The batch job of a run's last start, and which of its attempts that was; no name for a folder
/// without starts, or of a start without a job.
BatchJob job_of_last_start(const std::filesystem::path& exp_dir);

/// How long an earlier attempt is waited for where parallel.timeout is `timeout`. So long after its
/// last operation with them it sees that other ranks are gone; half as long again is for the step
/// before that operation, and for its end.
std::chrono::milliseconds patience_with_earlier_attempt(std::chrono::milliseconds timeout);

/// Waits for the end of an earlier attempt of this batch job that still trains in a run's folder,
/// and says so on the console: a job is put into the queue again when a node is cut off, and what
/// runs there goes on until it notices. Calls `meanwhile` again and again while it waits: this
/// attempt's other ranks wait for who waits here (on_first_rank_at_length). Throws UserError where
/// it takes longer than patience_with_earlier_attempt(timeout).
void await_earlier_attempt(const std::filesystem::path& exp_dir, const BatchJob& job,
                           std::chrono::milliseconds timeout,
                           const std::function<void()>& meanwhile = {});

}  // namespace phalanx
