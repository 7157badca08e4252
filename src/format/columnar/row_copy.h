// SPDX-License-Identifier: Apache-2.0
#pragma once

// The fields of all samples, stored sample by sample. A table stores a sample's numbers in as many places as there are
// columns; copying a sample from here reads one or two cache lines.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/fork_mutex.h"
#include "feedline/array.h"
#include "feedline/error.h"
#include "format/format.h"

namespace feedline::format {

// A field in rows that are `stride` bytes apart. `data` is the field in row 0.
struct FieldRows {
  std::byte* data = nullptr;
  ArraySpec spec;
  std::size_t stride = 0;
};

// Thread-safe. The memory is filled in blocks of samples, when a sample of the block is first requested. A block has
// several parts, which different threads can fill at the same time.
class RowCopy {
 public:
  // Writes part `part` of the samples [first, end) to `fields`, where row 0 is sample `first`. Fails with kData if one
  // of the samples is bad.
  using Fill = std::function<Result<void>(std::size_t part, std::uint64_t first, std::uint64_t end,
                                          std::span<const FieldRows> fields)>;

  // The samples of a block. Most pages of Parquet files have fewer rows, so that few pages are decoded for two blocks.
  static constexpr std::uint64_t kBlockSamples = 65'536;

  // specs: the specs of the fields. Returns nullptr if the memory cannot be reserved. Requires: samples > 0, parts > 0.
  static std::unique_ptr<RowCopy> make(std::uint64_t samples, std::vector<ArraySpec> specs, std::size_t parts,
                                       std::uint64_t block_samples = kBlockSamples);
  static std::uint64_t bytes_of(std::uint64_t samples, std::span<const ArraySpec> specs);

  // Copies the fields of these samples to their rows, where first_rows[i] is row 0 of field i. Appends samples that
  // cannot be copied to `others`: those in a block with a bad sample, and all if the fields have other specs. Returns
  // the number of bytes copied.
  std::uint64_t copy(std::span<const SampleRow> samples, std::span<const ArrayView> first_rows, const Fill& fill,
                     std::vector<SampleRow>& others);

  // Returns true if no block remains to be filled.
  bool is_complete() const { return to_fill_.load(std::memory_order_acquire) == 0; }
  std::uint64_t filled_bytes() const;

 private:
  enum class State : std::uint8_t { kEmpty, kFilled, kBad };
  struct Part {
    std::atomic<State> state{State::kEmpty};
    ForkMutex mutex;  // locked while the part is filled
  };
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* data) const;
  };
  // A field in the copied rows.
  struct CopiedField {
    std::size_t offset, bytes;
  };

  RowCopy(std::uint64_t samples, std::vector<ArraySpec> specs, std::size_t parts, std::uint64_t block_samples,
          std::unique_ptr<std::byte, Unmap> data);
  bool has_specs(std::span<const ArrayView> first_rows) const;
  Part& part_of(std::uint64_t block, std::size_t part) { return parts_[block * parts_per_block_ + part]; }
  void prepare(std::span<const SampleRow> samples, const Fill& fill);
  void fill_part(std::uint64_t block, std::size_t part, const Fill& fill);
  void copy_fields(std::span<const SampleRow> samples, std::span<const ArrayView> first_rows) const;
  const std::byte* row_of(std::uint64_t sample) const { return data_.get() + sample * row_bytes_; }

  const std::uint64_t samples_, block_samples_;
  const std::vector<ArraySpec> specs_;
  const std::size_t parts_per_block_;
  std::vector<CopiedField> copied_fields_;
  std::size_t row_bytes_ = 0;
  std::unique_ptr<std::byte, Unmap> data_;
  std::vector<Part> parts_;                        // by block, then by part
  std::vector<std::atomic<std::size_t>> missing_;  // per block: the parts that are not filled, or kBadBlock
  std::atomic<std::size_t> to_fill_;               // blocks that are neither filled nor bad
};

}  // namespace feedline::format
