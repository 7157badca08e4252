// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "feedline/dataset.h"
#include "format/filled_format.h"

namespace feedline::format {

// Files of token numbers, one behind the other, cut into windows: sample i is tokens [i * stride, i * stride + window)
// of its file as field "x", and the same one token later as field "y". No window lies in two files.
class TokenFormat final : public FilledFormat {
 public:
  // kConfig: a wrong option, a file whose size is no multiple of its element, no file as long as window + 1 tokens.
  // kStorage: a file cannot be opened. kData: with options.vocabulary, a token that is not below it.
  static Result<std::shared_ptr<const Format>> open(const std::vector<TokenFile>& files, const TokenOptions& options,
                                                    const std::shared_ptr<const storage::Storage>& storage);

  std::string_view name() const override { return "tokens"; }
  std::uint64_t size() const override { return files_.back().end; }
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples, std::span<std::byte* const> fields) const override;
  std::vector<std::uint64_t> shard_ends() const override;
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }

 private:
  struct File {
    std::unique_ptr<storage::Reader> reader;
    std::uint64_t offset = 0;  // bytes before the first token
    std::uint64_t tokens = 0;
    std::uint64_t end = 0;  // samples of this file and those before it
  };
  // Writes window + 1 tokens as x and y.
  using Widen = void (*)(const std::byte* tokens, std::uint64_t window, std::byte* x, std::byte* y);

  TokenFormat(std::vector<File> files, const TokenOptions& options, Widen widen);
  Result<void> read_tokens(const File& file, std::uint64_t first, std::uint64_t count,
                           std::vector<std::byte>& tokens) const;
  Result<void> check_vocabulary(std::uint64_t vocabulary) const;
  const File& file_of(std::uint64_t& sample) const;  // and the sample's number within it

  std::vector<File> files_;
  TokenOptions options_;
  Widen widen_;
  std::uint64_t token_bytes_;
  std::uint64_t window_bytes_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
