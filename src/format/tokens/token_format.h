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

// Opens token files according to the options: as DocumentFormat if documents are separate, else as TokenFormat.
// kConfig: an invalid option, a file whose size is not a multiple of the token size, or no samples. kStorage: a file
// cannot be opened. kData: a token is not below options.vocabulary.
Result<std::shared_ptr<const RowFormat>> open_tokens(const std::vector<TokenFile>& files, const TokenOptions& options,
                                                     const std::shared_ptr<const storage::Storage>& storage);

// Concatenated files of token numbers, divided into windows: sample i has tokens [i * stride, i * stride + window) of
// its file as field "x", and the same shifted by one token as field "y". No window spans two files. With a separator,
// field "document" numbers the documents of a window.
class TokenFormat final : public FilledFormat {
 public:
  // Requires: options checked by open_tokens().
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
  // Returns the file of a sample, and the sample's number within it.
  std::pair<std::size_t, std::uint64_t> place_of(std::uint64_t sample) const;

  TokenFiles files_;
  std::vector<std::uint64_t> ends_;  // cumulative number of samples, per file
  TokenOptions options_;
  Widen widen_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
