// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "trainer/data/text/encode_documents.h"
#include "trainer/io/file_list.h"

namespace phalanx {

/// All characters of text files, each once, in the order of Unicode: the tokens of a tokenizer of
/// characters. `field` is that of JSON objects. What is no UTF-8 counts as U+FFFD. Throws as
/// `tokenize`, and UserError where there are none.
std::string learn_characters(const FileList& files, const std::string& field,
                             OnBrokenDocument on_broken = OnBrokenDocument::stop);

}  // namespace phalanx
