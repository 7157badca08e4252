// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/format.h"
#include "format/table/column_choice.h"
#include "format/table/table.h"
#include "format/table/table_source.h"

namespace feedline::format {

// A table in memory whose rows are samples. Fields are files named by cells, or the values of cells.
class TableFormat final : public RecordFormat {
 public:
  // Requires: options.storage.
  static Result<std::shared_ptr<const RecordFormat>> open(const std::string& source, const TablePlaces& places,
                                                          const OpenOptions& options);
  static Result<Inspection> inspect(const std::string& source, const TablePlaces& places, const OpenOptions& options);

  std::string_view name() const override { return "table"; }
  std::uint64_t size() const override { return rows_.empty() ? table_.rows() : rows_.size(); }
  const std::vector<FieldDescription>& fields() const override { return descriptions_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  bool find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                  std::string& room) const override;
  Result<SampleFiles> files(std::uint64_t index) const override;
  Result<SampleFileSizes> file_sizes(std::uint64_t index) const override;
  std::size_t most_pieces() const override { return file_fields_; }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override;
  std::shared_ptr<const storage::Storage> storage() const override { return options_.storage; }
  std::vector<UnopenedColumn> unopened() const override {
    return unopened_columns(fields_, options_.fields.empty(), table_);
  }
  std::vector<FieldRemark> remarks() const override { return remarks_of(fields_, table_); }
  std::string summary() const override;
  Where where(std::uint64_t index) const override;
  Where where_field(std::uint64_t index, std::size_t field) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  Result<Inspection> inspect() const override;

  // Returns the key of a row: its number, zero-padded so that keys sort in row order.
  static std::string key_of(std::uint64_t row);

 private:
  friend class TableLook;  // implemented in table_inspection.cpp

  TableFormat(std::string source, TablePlaces places, OpenOptions options, ReadTable read,
              std::vector<ColumnField> fields);
  const TablePlace& place_of(std::uint64_t row) const;
  void leave_out();
  std::uint64_t compute_fingerprint() const;
  std::uint64_t row_of(std::uint64_t index) const { return rows_.empty() ? index : rows_[index]; }
  bool has(std::uint64_t row, std::size_t field) const { return !fields_[field].absent[row]; }
  std::string_view cell(std::uint64_t row, std::size_t field) const {
    return table_.columns[fields_[field].column].cell(row);
  }
  Result<void> check_row(std::uint64_t row) const;
  Result<void> take(std::uint64_t row, std::span<const std::span<const std::byte>> files, memory::Record& record) const;
  std::unexpected<Error> failed(std::uint64_t index, std::size_t field, Error error) const;

  const std::string source_;
  const TablePlaces places_;
  const OpenOptions options_;
  const Table table_;
  const std::vector<std::uint64_t> file_ends_;  // cumulative number of rows, per file
  std::vector<ColumnField> fields_;
  std::size_t file_fields_ = 0;
  std::vector<std::uint64_t> rows_;  // row of each sample; empty if all rows are samples
  std::uint64_t left_out_ = 0;
  std::vector<FieldDescription> descriptions_;
  std::vector<std::string> classes_;  // of the first field with classes
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
