// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "trainer/data/text/tokenize.h"
#include "trainer/tokenizers/loaded_tokenizer.h"

namespace phalanx {

/// How the work of tokenizing is shown: calls `work`, which counts `progress`.
using ShowProgress =
    std::function<void(const ByteProgress& progress, const std::function<void()>& work)>;

/// The folder with the tokens of texts: below `cache`, under a name that their content, the
/// tokenizer and the options decide. The first process of a host to ask makes it (`tokenize`), and
/// shows its progress; the others wait. What a killed process has done is gone on with, and a
/// folder that has lost tokens is made again. Reads only files that are new or have changed
/// (contents_of). Throws as `tokenize`.
std::filesystem::path cached_tokens(const std::filesystem::path& cache,
                                    const LoadedTokenizer& tokenizer, TokenizeOptions options,
                                    const ShowProgress& show);

}  // namespace phalanx
