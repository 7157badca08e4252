// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/packing.h"
#include "format/filled_format.h"
#include "format/packed/sequences.h"

namespace feedline::format {

// Rows of packed sequences. Like GivenFiles, this dataset can change: batches of rows are added and later forgotten.
// Each row is a sample. A row of `length` tokens has the fields
//
//   input_ids     the tokens of its pieces, each padded to PackOptions::document_multiple, then padding
//   labels        see PackLabels; kIgnoredLabel in the padding, and for tokens that are not in the loss mask
//   position_ids  from 0 in each piece with its padding, and in the padding at the end of the row
//   document_ids  the number of the piece in the row; -1 in the padding
//   cu_seqlens    a part of the batch's list of segment ends, see below
//
// cu_seqlens is one list for a whole batch: 0, and the end of each segment (piece or padding) in the concatenation of
// all rows. It is stored in equal parts, one per row; the last part is padded with the last end. The parts are
// consecutive in the memory of the batch, on the host or a device, so their first segments + 1 numbers are the list.
class PackedFormat final : public FilledFormat {
 public:
  // Requires: valid options.
  PackedFormat(TokenFields fields, const PackOptions& options);

  // Adds a batch with these rows, and returns the sample index of its first row. The others follow.
  std::uint64_t add(std::vector<std::vector<PackPiece>> rows);
  // Returns the segments of the batch with this sample, or nullopt if it was forgotten.
  std::optional<PackSegments> segments_of(std::uint64_t sample) const;
  // Forgets all batches before this one. Rows that are being filled are completed.
  void forget_before(std::uint64_t first);

  std::string_view name() const override { return "packed"; }
  std::uint64_t size() const override { return kSize; }  // the upper bound of indexes
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                             std::span<const ArrayView> first_rows) const override;
  std::uint64_t length(std::uint64_t index, std::size_t field) const override;
  std::uint64_t longest(std::size_t field) const override;
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return 0; }

 private:
  static constexpr std::uint64_t kSize = std::uint64_t{1} << 62;

  struct PackedBatch {
    std::vector<std::vector<PackPiece>> rows;
    std::vector<std::int32_t> ends;  // cu_seqlens, padded to equal parts
    PackSegments segments;
    std::atomic<std::uint64_t> failed{~std::uint64_t{0}};  // the last document that could not be read
  };
  struct FoundRow {
    std::shared_ptr<PackedBatch> batch;  // nullptr if it was forgotten
    std::size_t row = 0;
  };
  std::uint64_t padded(std::uint64_t length) const;
  FoundRow find(std::uint64_t sample) const;
  Result<std::uint64_t> fill_row(PackedBatch& batch, std::size_t row, std::span<const ArrayView> out) const;
  Result<std::uint64_t> read_piece(const PackPiece& piece, std::span<std::int64_t> tokens,
                                   std::span<std::int64_t> labels) const;
  Result<std::uint64_t> read_labels(const PackPiece& piece, std::span<const std::int64_t> tokens,
                                    std::span<std::int64_t> labels) const;
  Result<void> check_values(const PackPiece& piece, std::span<const std::int64_t> tokens,
                            std::span<const std::int64_t> labels) const;
  std::unexpected<Error> at_document(std::uint64_t document, std::string what) const;

  const TokenFields token_fields_;
  const PackOptions options_;
  mutable std::shared_mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<PackedBatch>> batches_;  // by the index of the first row
  std::uint64_t next_ = 0;
};

}  // namespace feedline::format
