// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "feedline/dataset.h"
#include "format/filled_format.h"
#include "format/tokens/token_files.h"
#include "format/tokens/token_kernels.h"

namespace feedline::format {

// Opens token files as windows (TokenFormat), or as documents (DocumentFormat, or IndexedTokenFormat if they are
// whole). Fails with kConfig if an option is invalid, a file's size is not a multiple of the token size, or there are
// no samples; with kStorage if a file cannot be opened; and with kData if a token is not below options.vocabulary.
Result<std::shared_ptr<const RowFormat>> open_tokens(const std::vector<TokenFile>& files, const TokenOptions& options,
                                                     const std::shared_ptr<const storage::Storage>& storage);

// Files of tokens, divided into windows. Sample i of a file has the tokens [i * stride, i * stride + window) as field
// "x", and the same range shifted by one token as field "y". No window spans two files. With a separator, field
// "document" has the index of each token's document in the window.
class TokenFormat final : public FilledFormat {
 public:
  // Requires: open_tokens() has checked the options.
  static Result<std::shared_ptr<const RowFormat>> make(TokenFiles files, const TokenOptions& options);

  std::string_view name() const override { return "tokens"; }
  std::uint64_t size() const override { return ends_.back(); }
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                             std::span<const ArrayView> first_rows) const override;
  std::vector<std::uint64_t> shard_ends() const override { return ends_; }
  std::string summary() const override { return files_.summary(); }
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }

 private:
  TokenFormat(TokenFiles files, std::vector<std::uint64_t> ends, const TokenOptions& options, Widen widen);
  // Returns the file of a sample, and the index of the sample in this file.
  std::pair<std::size_t, std::uint64_t> find_sample(std::uint64_t sample) const;

  TokenFiles files_;
  std::vector<std::uint64_t> ends_;  // cumulative number of samples, per file
  TokenOptions options_;
  Widen widen_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
