// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/partitioned_table.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/label_names.h"

namespace feedline::format {
namespace {

// A partition column and its value for one file, in the same form as values in a table.
struct PartitionColumn {
  ColumnType type;
  std::string bytes;
  bool is_null = false;
};

std::string bytes_of(std::int64_t value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

std::int64_t integer_of(const std::string& text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

PartitionColumn column_of(const Partition& partition, std::size_t file) {
  PartitionColumn column;
  column.type.name = partition.name;
  const std::optional<std::string>& value = partition.values[file];
  column.is_null = !value;
  // the values of a text column of labels are class names
  const bool is_class = !partition.are_integers && is_label_name(partition.name);
  if (!partition.are_integers && !is_class) {
    column.type.holds = Holds::kText;
    column.type.shown = "text in folder names";
    column.bytes = value.value_or("");
    return column;
  }
  column.type.holds = Holds::kNumbers;
  column.type.dtype = DType::kInt64;
  column.type.shown = is_class ? "classes in folder names" : "integers in folder names";
  if (is_class) column.type.classes = partition.distinct();
  const auto& classes = column.type.classes;
  if (value)
    column.bytes =
        bytes_of(is_class ? std::ranges::lower_bound(classes, *value) - classes.begin() : integer_of(*value));
  return column;
}

class PartitionedTable final : public ColumnTable {
 public:
  PartitionedTable(std::unique_ptr<ColumnTable> table, std::vector<PartitionColumn> partitions)
      : ColumnTable(table->file(), table->is_checked()), table_(std::move(table)), types_(table_->columns()) {
    const auto is_stored = [&](const PartitionColumn& column) {
      return std::ranges::find(types_, column.type.name, &ColumnType::name) != types_.end();
    };
    std::erase_if(partitions, is_stored);
    partitions_ = std::move(partitions);
    for (const PartitionColumn& column : partitions_) types_.push_back(column.type);
  }

  std::uint64_t rows() const override { return table_->rows(); }
  const std::vector<ColumnType>& columns() const override { return types_; }
  std::vector<std::uint64_t> parts() const override { return table_->parts(); }
  std::vector<std::uint64_t> identity() const override {
    auto identity = table_->identity();
    for (const PartitionColumn& column : partitions_) {
      Fingerprint fingerprint;
      fingerprint.add(std::string_view(column.bytes));
      identity.push_back(fingerprint.value());
    }
    return identity;
  }

  Result<void> choose(const storage::Reader& reader, const std::vector<std::size_t>& columns) override {
    const std::size_t stored = types_.size() - partitions_.size();
    std::vector<std::size_t> inner;
    for (const std::size_t column : columns) {
      slots_.push_back(column < stored ? Slot{nullptr, inner.size()} : Slot{&partitions_[column - stored], 0});
      if (column < stored) inner.push_back(column);
    }
    has_stored_ = !inner.empty();
    return table_->choose(reader, inner);
  }
  bool may_have_nulls(std::size_t slot) const override {
    const Slot& at = slots_[slot];
    return at.partition != nullptr ? at.partition->is_null : table_->may_have_nulls(at.stored);
  }
  Result<CellLocation> location(std::uint64_t row, std::size_t slot) const override {
    const Slot& at = slots_[slot];
    if (at.partition == nullptr) return table_->location(row, at.stored);
    CellLocation location;
    if (at.partition->is_null) return location;
    location.in = CellLocation::In::kMemory;
    location.held = std::as_bytes(std::span(at.partition->bytes));
    return location;
  }
  Result<TableCell> unpack(const storage::Reader& reader, std::uint64_t row, std::size_t slot,
                           std::shared_ptr<const void>& pin) const override {
    FEEDLINE_CHECK(slots_[slot].partition == nullptr);  // values of partitions are never kPacked
    return table_->unpack(reader, row, slots_[slot].stored, pin);
  }
  Result<std::optional<NumberRun>> numbers(const storage::Reader& reader, std::span<const GatheredRow> rows,
                                           std::size_t slot, std::shared_ptr<const void>& pin) const override {
    if (slots_[slot].partition != nullptr) return std::nullopt;
    return table_->numbers(reader, rows, slots_[slot].stored, pin);
  }
  std::uint64_t claimed_bytes() const override { return table_->claimed_bytes(); }
  void stop_keeping_numbers() const override { table_->stop_keeping_numbers(); }
  void drop_blocks() const override { table_->drop_blocks(); }
  Blocks blocks(std::size_t slot) const override {
    if (slot >= slots_.size() || slots_[slot].partition != nullptr) return {};
    return table_->blocks(slots_[slot].stored);
  }
  void find_blocks(std::uint64_t row, std::size_t slot, std::vector<FileRange>& blocks) const override {
    if (slots_[slot].partition == nullptr) table_->find_blocks(row, slots_[slot].stored, blocks);
  }
  std::uint64_t offset_of(std::uint64_t row) const override { return has_stored_ ? table_->offset_of(row) : 0; }

 private:
  struct Slot {
    const PartitionColumn* partition = nullptr;  // nullptr for a column of the file
    std::size_t stored = 0;                      // slot in the file's table
  };

  std::unique_ptr<ColumnTable> table_;
  std::vector<ColumnType> types_;
  std::vector<PartitionColumn> partitions_;
  std::vector<Slot> slots_;
  bool has_stored_ = false;
};

}  // namespace

TableKind with_partitions(TableKind kind, std::vector<Partition> partitions, const std::vector<std::string>& files) {
  if (partitions.empty()) return kind;
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < files.size(); ++i) numbers.emplace(files[i], i);
  kind.open = [open = std::move(kind.open), partitions = std::move(partitions), numbers = std::move(numbers)](
                  const ShardFile& file, const storage::Reader& reader) -> Result<std::unique_ptr<ColumnTable>> {
    FEEDLINE_TRY(auto table, open(file, reader));
    const auto number = numbers.find(file.name);
    FEEDLINE_CHECK(number != numbers.end());
    std::vector<PartitionColumn> columns;
    for (const Partition& partition : partitions) columns.push_back(column_of(partition, number->second));
    return std::make_unique<PartitionedTable>(std::move(table), std::move(columns));
  };
  return kind;
}

}  // namespace feedline::format
