// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "feedline/dataset.h"
#include "format/format.h"
#include "format/tokens/token_files.h"
#include "format/tokens/token_index.h"

namespace feedline::format {

// Documents that end with a separator, or at given tokens.
class SeparatedDocuments final : public DocumentEnds {
 public:
  // Requires: the ends do not descend.
  explicit SeparatedDocuments(std::vector<std::uint64_t> ends) : ends_(std::move(ends)) {
    set(reinterpret_cast<const std::byte*>(ends_.data()), ends_.size());
  }

 private:
  const std::vector<std::uint64_t> ends_;
};

// Opens token files whose samples are whole documents, with their separators; the end of a file also ends a document.
// Reads files without given ends once to find the separators. Requires: open_tokens() has checked the options. Fails
// with kConfig if the separator does not occur, or if only some files have a loss mask, and with kData if a token is
// not below options.vocabulary, or if given ends or a loss mask do not match their file.
Result<std::shared_ptr<const RowFormat>> open_whole_documents(const std::vector<TokenFile>& files,
                                                              const TokenOptions& options,
                                                              const std::shared_ptr<const storage::Storage>& storage);

}  // namespace feedline::format
