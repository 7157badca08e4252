// SPDX-License-Identifier: Apache-2.0
#include "format/combined/subset_format.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

// Base class of the subsets for both kinds of format. `Kind` is RecordFormat or RowFormat.
template <typename Kind>
class SubsetFormat : public Kind {
 public:
  std::string_view name() const final { return whole_->name(); }
  std::uint64_t size() const final { return indices_.size(); }
  const std::vector<FieldDescription>& fields() const final { return whole_->fields(); }
  const std::vector<std::string>& classes() const final { return whole_->classes(); }
  std::uint64_t grain() const final { return whole_->grain(); }
  std::vector<UnopenedColumn> unopened() const final { return whole_->unopened(); }
  std::vector<FieldRemark> remarks() const final { return whole_->remarks(); }
  std::string summary() const final {
    const std::string text = whole_->summary();
    return "a subset of " + std::to_string(whole_->size()) + " samples" + (text.empty() ? "" : "\n" + text);
  }
  std::vector<std::uint64_t> shard_ends() const final { return ends_; }
  ShuffleBlocks shuffle_blocks() const final { return blocks_; }
  BlockCosts block_costs() const final {
    BlockCosts costs = whole_->block_costs();
    costs.bytes = static_cast<std::uint64_t>(used_share_ * static_cast<double>(costs.bytes));
    return costs;
  }
  BlockCounts block_counts() const final { return whole_->block_counts(); }
  Where where(std::uint64_t index) const final { return whole_->where(at(index)); }
  Where where_field(std::uint64_t index, std::size_t field) const final {
    return whole_->where_field(at(index), field);
  }
  Result<memory::OwnRow> own_row(std::uint64_t index, std::size_t field, memory::RowUse use) const final {
    return whole_->own_row(at(index), field, use);
  }
  std::uint64_t fingerprint() const final { return fingerprint_; }
  Result<Inspection> inspect() const final { return whole_->inspect(); }

 protected:
  // Requires: all indices are valid for `whole`.
  SubsetFormat(std::shared_ptr<const Kind> whole, std::vector<std::uint64_t> indices)
      : whole_(std::move(whole)), indices_(std::move(indices)) {
    Fingerprint fingerprint;
    fingerprint.add("subset");
    fingerprint.add(whole_->fingerprint());
    fingerprint.add(indices_);
    fingerprint_ = fingerprint.value();
    if (!std::ranges::is_sorted(indices_)) return;
    std::tie(ends_, shards_) = non_empty(whole_->shard_ends());
    blocks_ = whole_->shuffle_blocks();
    const auto [block_ends, used] = non_empty(blocks_.ends);
    std::uint64_t samples = 0;
    for (const std::size_t block : used) samples += blocks_.ends[block] - (block == 0 ? 0 : blocks_.ends[block - 1]);
    if (!used.empty()) used_share_ = static_cast<double>(samples) / static_cast<double>(whole_->size());
    blocks_.ends = block_ends;
  }
  const Kind& whole() const { return *whole_; }
  // The shards of the whole dataset that have samples in this subset, one shard for each element of shard_ends().
  const std::vector<std::size_t>& shards() const { return shards_; }
  std::uint64_t at(std::uint64_t index) const {
    FEEDLINE_CHECK(index < indices_.size());
    return indices_[index];
  }

 private:
  // Returns the ends, in this subset, of the shards or blocks that have samples in it, and their numbers.
  std::pair<std::vector<std::uint64_t>, std::vector<std::size_t>> non_empty(const std::vector<std::uint64_t>& ends) {
    std::pair<std::vector<std::uint64_t>, std::vector<std::size_t>> found;
    std::uint64_t before = 0;
    for (std::size_t number = 0; number < ends.size(); ++number) {
      const auto end = std::ranges::lower_bound(indices_, ends[number]);
      const auto count = static_cast<std::uint64_t>(end - indices_.begin());
      if (count == before) continue;
      found.first.push_back(before = count);
      found.second.push_back(number);
    }
    return found;
  }

  std::shared_ptr<const Kind> whole_;
  std::vector<std::uint64_t> indices_;  // indexes in the whole dataset
  std::vector<std::uint64_t> ends_;
  std::vector<std::size_t> shards_;
  ShuffleBlocks blocks_;
  double used_share_ = 1;  // of the whole dataset: the blocks with samples of this subset, if it is ascending
  std::uint64_t fingerprint_ = 0;
};

class SubsetRecords final : public SubsetFormat<RecordFormat> {
 public:
  SubsetRecords(std::shared_ptr<const RecordFormat> whole, std::vector<std::uint64_t> indices)
      : SubsetFormat(std::move(whole), std::move(indices)) {}

  Result<void> read(std::uint64_t index, memory::Record& record) const override {
    return whole().read(at(index), record);
  }
  Result<std::uint64_t> gather(std::span<const SampleRow> samples,
                               std::span<const ArrayView> first_rows) const override {
    std::vector<SampleRow> theirs(samples.begin(), samples.end());
    for (SampleRow& one : theirs) one.sample = at(one.sample);
    return whole().gather(theirs, first_rows);
  }
  bool find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                  std::string& room) const override {
    return whole().find_value(at(index), field, value, room);
  }
  Result<bool> read_field(std::uint64_t index, std::size_t field, memory::Record& record) const override {
    return whole().read_field(at(index), field, record);
  }
  Result<std::optional<storage::Piece>> locate_image(std::uint64_t index, std::size_t field) const override {
    return whole().locate_image(at(index), field);
  }
  Result<SampleFiles> files(std::uint64_t index) const override { return whole().files(at(index)); }
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const override { return whole().file_sizes(at(index)); }
  std::size_t most_pieces() const override { return whole().most_pieces(); }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override {
    return whole().find_pieces(at(index), pieces);
  }
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override {
    return whole().accept(at(index), pieces, record);
  }
  std::shared_ptr<const storage::Storage> storage() const override { return whole().storage(); }
  std::vector<std::shared_ptr<const storage::Storage>> storages() const override { return whole().storages(); }
  std::vector<StoredShard> stored_shards() const override {
    const auto all = whole().stored_shards();
    std::vector<StoredShard> selected;
    if (!all.empty())
      for (std::size_t shard : shards()) selected.push_back(all[shard]);
    return selected;
  }
  bool is_in_memory() const override { return whole().is_in_memory(); }
  std::uint64_t block_bytes() const override { return whole().block_bytes(); }
  void limit_blocks(std::uint64_t bytes) const override { whole().limit_blocks(bytes); }
  void notice_changes() const override { whole().notice_changes(); }
  std::vector<std::unique_ptr<const UncheckedObject>> unchecked() const override { return whole().unchecked(); }
};

class SubsetRows final : public SubsetFormat<RowFormat> {
 public:
  SubsetRows(std::shared_ptr<const RowFormat> whole, std::vector<std::uint64_t> indices)
      : SubsetFormat(std::move(whole), std::move(indices)) {
    for (std::size_t field = 0; field < fields().size(); ++field) longest_.push_back(longest_of(field));
  }

  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                             std::span<const ArrayView> first_rows) const override {
    std::vector<ArrayView> rows(first_rows.begin(), first_rows.end());
    std::array<std::uint64_t, 64> theirs;
    std::uint64_t bytes = 0;
    while (!samples.empty()) {
      const std::size_t count = std::min(samples.size(), theirs.size());
      for (std::size_t i = 0; i < count; ++i) theirs[i] = at(samples[i]);
      FEEDLINE_TRY(const std::uint64_t filled, whole().fill(std::span(theirs).first(count), rows));
      bytes += filled;
      for (ArrayView& row : rows)
        if (row.data != nullptr) row.data += count * row.spec.bytes();
      samples = samples.subspan(count);
    }
    return bytes;
  }
  std::uint64_t length(std::uint64_t index, std::size_t field) const override {
    return whole().length(at(index), field);
  }
  std::uint64_t longest(std::size_t field) const override { return longest_[field]; }
  Result<std::uint64_t> read_integers(std::uint64_t index, std::size_t field, std::uint64_t begin,
                                      std::span<std::int64_t> out) const override {
    return whole().read_integers(at(index), field, begin, out);
  }

 private:
  std::uint64_t longest_of(std::size_t field) const {
    if (!fields()[field].array.is_ragged()) return whole().longest(field);
    std::uint64_t longest = 0;
    for (std::uint64_t i = 0; i < size(); ++i) longest = std::max(longest, length(i, field));
    return longest;
  }

  std::vector<std::uint64_t> longest_;  // one per field
};

}  // namespace

Result<std::shared_ptr<const Format>> subset(std::shared_ptr<const Format> format, std::vector<std::uint64_t> indices) {
  if (indices.empty()) return config_error("subset: no samples were selected");
  const std::uint64_t largest = std::ranges::max(indices);
  if (largest >= format->size())
    return config_error("subset: sample " + std::to_string(largest) + " is out of range: the dataset holds " +
                        std::to_string(format->size()));
  if (auto records = records_of(format))
    return std::make_shared<const SubsetRecords>(std::move(records), std::move(indices));
  auto rows = rows_of(std::move(format));
  FEEDLINE_CHECK(rows != nullptr);
  return std::make_shared<const SubsetRows>(std::move(rows), std::move(indices));
}

}  // namespace feedline::format
