// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/api/model_base.h"
#include "trainer/config/tree/node.h"

namespace phalanx {

/// The model's largest parameter, its shape and size, and the fields of the resolved section
/// `model` whose values are sizes in it: "the largest tensor is 'wte.weight', [50257, 768], 147.2
/// MiB (model.vocab_size, model.n_embd)". Empty for a model without parameters. `is_double`: it
/// will be converted to double precision.
std::string largest_tensor(ModelBase& model, const config::Node& section, bool is_double = false);

/// The largest numbers of the resolved section `model`, for a model that cannot even be described:
/// "model.vocab_size 50257, model.n_embd 768".
std::string largest_sizes(const config::Node& section);

}  // namespace phalanx
