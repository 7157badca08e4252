// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/filled_format.h"
#include "format/format.h"
#include "format/tokens/megatron_index.h"
#include "format/tokens/token_files.h"

namespace feedline::format {

// Megatron's pairs of .bin and .idx files, one after the other. A sample is a sequence, or with `documents` a document.
// Fields: "tokens" (int64, ragged), "tokens_length" and, if sequences have modes, "mode".
class MegatronFormat final : public FilledFormat {
 public:
  // `indexes` are the paths of .idx files. Fails with kStorage if a file cannot be read, with kConfig if there are no
  // samples, and with kData if an index contradicts itself or its .bin file.
  static Result<std::shared_ptr<const Format>> open(const std::vector<std::string>& indexes, bool documents,
                                                    const std::shared_ptr<const storage::Storage>& storage);

  std::string_view name() const override { return "megatron"; }
  std::uint64_t size() const override { return ends_.back(); }
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                             std::span<const ArrayView> first_rows) const override;
  std::uint64_t length(std::uint64_t index, std::size_t field) const override;
  void lengths(std::span<const std::uint64_t> samples, std::size_t field,
               std::span<std::uint64_t> lengths) const override;
  std::uint64_t longest(std::size_t field) const override { return field == kTokens ? longest_ : 1; }
  Result<std::uint64_t> read_integers(std::uint64_t index, std::size_t field, std::uint64_t begin,
                                      std::span<std::int64_t> out) const override;
  std::vector<std::uint64_t> shard_ends() const override { return ends_; }
  std::string summary() const override;
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  Result<Inspection> inspect() const override;

 private:
  static constexpr std::size_t kTokens = 0, kLength = 1, kMode = 2;  // fields

  struct Part {
    MegatronIndex index;
    TokenFiles files;  // the .bin file
    ToInt64 to_int64;
  };
  struct TokenRange {  // consecutive tokens of one part
    std::size_t part = 0;
    std::uint64_t sample = 0;  // in the part
    std::uint64_t first = 0, count = 0;
  };
  MegatronFormat(std::vector<Part> parts, bool documents, bool has_modes);
  std::uint64_t samples_of(const MegatronIndex& index) const;
  TokenRange find_sample(std::uint64_t sample) const;

  std::vector<Part> parts_;
  bool documents_;
  std::vector<std::uint64_t> ends_;  // cumulative number of samples, per part
  std::uint64_t longest_ = 0, empty_ = 0;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
