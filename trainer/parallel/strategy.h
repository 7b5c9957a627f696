// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trainer/config/tree/node.h"

namespace phalanx {

/// The key at the top of a config that is short for fields of `parallel`.
inline constexpr std::string_view kStrategy = "strategy";

/// Replaces `strategy` in a config as the user gave it, before it is resolved, by the fields of
/// `parallel` that it stands for. It is what TorchTNT's AutoUnit takes: `none`, `ddp`, `fsdp`, or a
/// section with one of these as its `name` and fields of DDPStrategy or FSDPStrategy, where these
/// have the same names here. Other fields are moved as they are, so that resolving refuses them
/// where they were written. Fields of `parallel` may stand beside it. Throws ConfigError for
/// another name, for no name, for a field that both give, and where `parallel` contradicts the
/// name.
void resolve_strategy(config::Node& tree);

}  // namespace phalanx
