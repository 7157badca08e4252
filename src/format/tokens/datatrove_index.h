// SPDX-License-Identifier: Apache-2.0
#pragma once

// The index of the token files that datatrove writes for nanotron: NAME.ds has the tokens, and NAME.ds.index the number
// of tokens up to the end of each document, as little-endian u64. NAME.ds.loss, if it exists, has a byte per token,
// which is 0 for tokens without loss. The layout is that of datatrove's TokenizedFile
// (pipeline/tokens/tokenizer.py at a649de79).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "feedline/error.h"
#include "format/tokens/token_index.h"
#include "storage/storage.h"

namespace feedline::format {

// A local index is mapped, a remote one is in memory.
class DatatroveIndex final : public DocumentEnds {
 public:
  // Reads the index at `path` and checks it. Fails with kStorage if it cannot be read, and with kData if the ends
  // descend or the size is not a multiple of 8. The error has the location.
  static Result<std::shared_ptr<const DatatroveIndex>> open(const std::string& path, const storage::Storage& storage);

  // Returns a kData error with the location `path`.
  static std::unexpected<Error> damaged(const std::string& what, const std::string& path);

  std::uint64_t tokens() const { return samples() == 0 ? 0 : end_of(samples() - 1); }

 private:
  DatatroveIndex() = default;

  std::shared_ptr<const storage::Reader> reader_;  // owns the mapping
  std::vector<std::byte> memory_;                  // or the bytes
};

}  // namespace feedline::format
