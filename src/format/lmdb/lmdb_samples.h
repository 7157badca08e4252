// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "format/format.h"
#include "format/lmdb/lmdb_index.h"
#include "format/lmdb/lmdb_layout.h"

namespace feedline::format {

// The samples of one database, and the entries of each sample. Immutable and thread-safe. The index must outlive this
// object.
class LmdbSamples {
 public:
  // Builds the list of samples. Samples are sorted by name or number, or as in meta_info.txt if OpenMMLab's tools wrote
  // this file. Fails with kData if the file lists a key that is not in the database, and with kConfig if there are more
  // entries than 32 bits can count.
  static Result<LmdbSamples> of(const LmdbLayout& layout, const LmdbIndex& index, Missing missing,
                                std::optional<std::string_view> key_list = {});

  std::uint64_t size() const { return size_; }
  // Returns nullopt if the sample has no entry in this source. Requires: sample < size().
  std::optional<std::uint64_t> entry(std::uint64_t sample, std::size_t source) const {
    if (entries_.empty()) return sample;
    const std::uint32_t entry = entries_[sample * sources_ + source];
    return entry == kNone ? std::nullopt : std::optional<std::uint64_t>(entry);
  }
  bool has_gaps(std::size_t source) const { return gaps_[source]; }
  std::uint64_t left_out() const { return left_out_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  void take(const std::vector<std::uint32_t>& row, Missing missing);
  void match(const LmdbLayout& layout, const LmdbIndex& index, Missing missing);
  Result<void> take_list(std::string_view list, const LmdbIndex& index);

  std::size_t sources_ = 1;
  std::uint64_t size_ = 0, left_out_ = 0;
  std::vector<std::uint32_t> entries_;  // entry of each sample, by source; if empty, sample i is entry i
  std::vector<bool> gaps_;              // per source: whether any sample lacks it
};

}  // namespace feedline::format
