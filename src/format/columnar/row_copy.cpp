// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/row_copy.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/check.h"

namespace feedline::format {
namespace {

constexpr std::size_t kLine = 64;
// Rows that are prefetched together: a core handles about sixteen cache misses at a time, and while the fields of these
// rows are copied, the next ones arrive.
constexpr std::size_t kTogether = 16;
// The first lines of a row that are prefetched; the hardware prefetches the lines after them.
constexpr std::size_t kPrefetchedLines = 4;

constexpr std::size_t kBadBlock = ~std::size_t{0};

// Copies one field of several rows. `kBytes`: its size, if known at compile time, else 0.
template <std::size_t kBytes>
void copy_field(std::span<const std::byte* const> rows, std::span<const SampleRow> samples, std::size_t bytes,
                std::byte* out) {
  const std::size_t size = kBytes != 0 ? kBytes : bytes;
  for (std::size_t i = 0; i < rows.size(); ++i) std::memcpy(out + samples[i].row * size, rows[i], size);
}

void copy_field(std::span<const std::byte* const> rows, std::span<const SampleRow> samples, std::size_t bytes,
                std::byte* out) {
  switch (bytes) {
    case 0:
      return;
    case 1:
      return copy_field<1>(rows, samples, bytes, out);
    case 2:
      return copy_field<2>(rows, samples, bytes, out);
    case 4:
      return copy_field<4>(rows, samples, bytes, out);
    case 8:
      return copy_field<8>(rows, samples, bytes, out);
    case 128:
      return copy_field<128>(rows, samples, bytes, out);
    default:
      return copy_field<0>(rows, samples, bytes, out);
  }
}

}  // namespace

void RowCopy::Unmap::operator()(std::byte* data) const { munmap(data, bytes); }

std::uint64_t RowCopy::bytes_of(std::uint64_t samples, std::span<const ArraySpec> specs) {
  std::uint64_t bytes = 0;
  for (const ArraySpec& spec : specs) bytes += spec.bytes();
  return samples * bytes;
}

std::unique_ptr<RowCopy> RowCopy::make(std::uint64_t samples, std::vector<ArraySpec> specs, std::size_t parts,
                                       std::uint64_t block_samples) {
  FEEDLINE_CHECK(samples > 0 && parts > 0 && block_samples > 0);
  const std::size_t bytes = std::max<std::size_t>(bytes_of(samples, specs), 1);
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  // Random rows of many small pages miss the TLB. This is only advice: the kernel may not support it.
  madvise(mapped, bytes, MADV_HUGEPAGE);
  std::unique_ptr<std::byte, Unmap> data(static_cast<std::byte*>(mapped), Unmap{bytes});
  return std::unique_ptr<RowCopy>(new RowCopy(samples, std::move(specs), parts, block_samples, std::move(data)));
}

RowCopy::RowCopy(std::uint64_t samples, std::vector<ArraySpec> specs, std::size_t parts, std::uint64_t block_samples,
                 std::unique_ptr<std::byte, Unmap> data)
    : samples_(samples),
      block_samples_(block_samples),
      specs_(std::move(specs)),
      parts_per_block_(parts),
      data_(std::move(data)),
      parts_((samples + block_samples - 1) / block_samples * parts),
      missing_(parts_.size() / parts),
      to_fill_(missing_.size()) {
  for (const ArraySpec& spec : specs_) {
    copied_fields_.push_back({row_bytes_, spec.bytes()});
    row_bytes_ += spec.bytes();
  }
  for (auto& missing : missing_) missing.store(parts, std::memory_order_relaxed);
}

std::uint64_t RowCopy::filled_bytes() const {
  std::uint64_t samples = 0;
  for (std::uint64_t block = 0; block < missing_.size(); ++block)
    if (missing_[block].load(std::memory_order_relaxed) == 0)
      samples += std::min(block_samples_, samples_ - block * block_samples_);
  return samples * row_bytes_;
}

bool RowCopy::has_specs(std::span<const ArrayView> first_rows) const {
  return std::ranges::equal(first_rows, specs_, {}, &ArrayView::spec);
}

void RowCopy::fill_part(std::uint64_t block, std::size_t number, const Fill& fill) {
  Part& part = part_of(block, number);
  if (part.state.load(std::memory_order_relaxed) != State::kEmpty) return;
  const std::uint64_t first = block * block_samples_, end = std::min(first + block_samples_, samples_);
  std::vector<FieldRows> fields;
  for (std::size_t i = 0; i < specs_.size(); ++i)
    fields.push_back({data_.get() + first * row_bytes_ + copied_fields_[i].offset, specs_[i], row_bytes_});
  const auto filled = fill(number, first, end, fields);
  if (!filled && filled.error().code != ErrorCode::kData) return;  // the storage may be readable again later
  part.state.store(filled ? State::kFilled : State::kBad, std::memory_order_relaxed);
  std::size_t missing = missing_[block].load(std::memory_order_relaxed), left = 0;
  do {
    if (missing == kBadBlock) return;
    left = filled ? missing - 1 : kBadBlock;
  } while (!missing_[block].compare_exchange_weak(missing, left, std::memory_order_acq_rel));
  if (left == 0 || left == kBadBlock) to_fill_.fetch_sub(1, std::memory_order_acq_rel);
}

// Fills the blocks of these samples. The blocks' first parts are filled before their second parts, so that the pages of
// few columns are in use at a time. A thread first fills the parts that no other thread is filling, and then waits.
void RowCopy::prepare(std::span<const SampleRow> samples, const Fill& fill) {
  const auto is_missing = [&](std::uint64_t block) {
    const std::size_t missing = missing_[block].load(std::memory_order_acquire);
    return missing != 0 && missing != kBadBlock;
  };
  std::vector<std::uint64_t> blocks;
  for (const SampleRow& one : samples)
    if (const std::uint64_t block = one.sample / block_samples_; is_missing(block)) blocks.push_back(block);
  if (blocks.empty()) return;
  std::ranges::sort(blocks);
  const auto repeated = std::ranges::unique(blocks);
  blocks.erase(repeated.begin(), repeated.end());
  for (const bool waits : {false, true})
    for (std::size_t part = 0; part < parts_per_block_; ++part)
      for (const std::uint64_t block : blocks) {
        if (!is_missing(block)) continue;
        std::unique_lock lock(part_of(block, part).mutex, std::defer_lock);
        if (waits ? (lock.lock(), true) : lock.try_lock()) fill_part(block, part, fill);
      }
}

void RowCopy::copy_fields(std::span<const SampleRow> samples, std::span<const ArrayView> first_rows) const {
  std::array<const std::byte*, kTogether> rows, fields;
  const std::size_t lines = std::min((row_bytes_ + kLine - 1) / kLine, kPrefetchedLines);
  const auto prefetch = [&](std::span<const SampleRow> next) {
    for (const SampleRow& one : next.first(std::min(kTogether, next.size())))
      for (std::size_t line = 0; line < lines; ++line) __builtin_prefetch(row_of(one.sample) + line * kLine);
  };
  prefetch(samples);
  while (!samples.empty()) {
    const auto here = samples.first(std::min(kTogether, samples.size()));
    samples = samples.subspan(here.size());
    prefetch(samples);
    for (std::size_t i = 0; i < here.size(); ++i) rows[i] = row_of(here[i].sample);
    for (std::size_t field = 0; field < copied_fields_.size(); ++field) {
      for (std::size_t i = 0; i < here.size(); ++i) fields[i] = rows[i] + copied_fields_[field].offset;
      copy_field(std::span(fields).first(here.size()), here, copied_fields_[field].bytes, first_rows[field].data);
    }
  }
}

std::uint64_t RowCopy::copy(std::span<const SampleRow> samples, std::span<const ArrayView> first_rows, const Fill& fill,
                            std::vector<SampleRow>& others) {
  if (!has_specs(first_rows)) {
    others.insert(others.end(), samples.begin(), samples.end());
    return 0;
  }
  if (!is_complete()) prepare(samples, fill);
  const auto is_filled = [&](const SampleRow& one) {
    return missing_[one.sample / block_samples_].load(std::memory_order_acquire) == 0;
  };
  if (std::ranges::all_of(samples, is_filled)) {
    copy_fields(samples, first_rows);
    return samples.size() * row_bytes_;
  }
  std::vector<SampleRow> filled;
  std::ranges::partition_copy(samples, std::back_inserter(filled), std::back_inserter(others), is_filled);
  copy_fields(filled, first_rows);
  return filled.size() * row_bytes_;
}

}  // namespace feedline::format
