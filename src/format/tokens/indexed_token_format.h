// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/filled_format.h"
#include "format/format.h"
#include "format/tokens/token_files.h"
#include "format/tokens/token_index.h"

namespace feedline::format {

// A file of tokens and its index.
struct IndexedTokens {
  std::shared_ptr<const TokenIndex> index;
  TokenFiles files;                          // one file. Requires: the index does not exceed it
  std::optional<TokenFiles> loss_mask = {};  // a file with a byte per token; 0: no loss
};

// Files of tokens, one after the other, whose indexes locate the tokens of each sample. Fields: "tokens" (int64,
// ragged), "tokens_length" and, if all indexes have modes, "mode" (int64), or if the files have loss masks, "loss_mask"
// (bool, with the shape of "tokens").
class IndexedTokenFormat final : public FilledFormat {
 public:
  // `name`: of the format. `unit`: the samples, "documents" or "sequences". Fails with kConfig if there are no samples
  // or a dtype is not supported. Tokens are cached in memory if they have at most `most_held` bytes.
  static Result<std::shared_ptr<const RowFormat>> make(std::string_view name, std::string_view unit,
                                                       std::vector<IndexedTokens> parts,
                                                       std::uint64_t most_held = TokenFiles::most_held());

  std::string_view name() const override { return name_; }
  std::uint64_t size() const override { return ends_.back(); }
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                             std::span<const ArrayView> first_rows) const override;
  std::uint64_t length(std::uint64_t index, std::size_t field) const override;
  void lengths(std::span<const std::uint64_t> samples, std::size_t field,
               std::span<std::uint64_t> lengths) const override;
  std::uint64_t longest(std::size_t field) const override { return is_ragged(field) ? longest_ : 1; }
  Result<std::uint64_t> read_integers(std::uint64_t index, std::size_t field, std::uint64_t begin,
                                      std::span<std::int64_t> out) const override;
  std::vector<std::uint64_t> shard_ends() const override { return ends_; }
  std::string summary() const override;
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  Result<Inspection> inspect() const override;

 private:
  static constexpr std::size_t kTokens = 0, kLength = 1, kMore = 2;  // fields; kMore: the mode or the loss mask

  struct Part {
    IndexedTokens tokens;
    ToInt64 to_int64;
  };
  struct Sample {
    const Part* part;
    std::uint64_t number;  // in the part
    TokenRange range;
  };
  IndexedTokenFormat(std::string_view name, std::string_view unit, std::vector<Part> parts,
                     std::vector<FieldDescription> fields);
  bool is_ragged(std::size_t field) const { return fields()[field].array.is_ragged(); }
  Sample find_sample(std::uint64_t sample) const;
  Result<std::uint64_t> read_mask(const Sample& sample, std::uint64_t begin, std::span<std::uint8_t> out) const;

  std::string name_, unit_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> ends_;  // cumulative number of samples, per part
  std::uint64_t longest_ = 0, empty_ = 0;
  std::uint64_t fingerprint_ = 0;
};

// Appends to the name of a file; a URL may have a query after the name.
std::string name_with_end(const std::string& path, std::string_view end);

// Opens a loss mask, a file with a byte per token; nullopt if the file does not exist. Fails with kData if it has
// another number of bytes than `tokens`.
Result<std::optional<TokenFiles>> open_loss_mask(const std::string& path, std::uint64_t tokens,
                                                 const std::shared_ptr<const storage::Storage>& storage);

// Fails with kConfig if some parts have a loss mask and others do not. `paths`: of the parts. `end`: of a mask's name.
Result<void> check_loss_masks(std::span<const IndexedTokens> parts, std::span<const std::string> paths,
                              std::string_view end);

// Returns the inspection of files that were opened, or that were refused because of their contents.
Result<Inspection> inspect_indexed_tokens(std::string_view name, const Result<std::shared_ptr<const Format>>& opened);

}  // namespace feedline::format
