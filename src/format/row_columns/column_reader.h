// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a stored sample to its fields.

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "format/row_columns/column.h"
#include "format/row_columns/sample_layout.h"
#include "memory/record.h"

namespace feedline::format {

// The error of an invalid sample, with the code of its finding.
struct ColumnProblem {
  std::string_view code;
  Error error;
};

// Immutable and thread-safe.
class ColumnReader {
 public:
  ColumnReader(SampleSchema schema, std::vector<ColumnChoice> fields)
      : schema_(std::move(schema)), fields_(std::move(fields)) {}

  const SampleSchema& schema() const { return schema_; }
  const std::vector<ColumnChoice>& fields() const { return fields_; }
  // Converts an uncompressed sample to a record. Pixels, numbers stored as text and escaped text are copied to
  // record.more; all other values are views of `sample`.
  std::expected<void, ColumnProblem> read(std::span<const std::byte> sample, memory::Record& record) const;
  // Converts the value of one field to record.fields.front().
  std::expected<void, ColumnProblem> read_value(std::size_t field, std::span<const std::byte> value,
                                                memory::Record& record) const;

 private:
  SampleSchema schema_;
  std::vector<ColumnChoice> fields_;
};

}  // namespace feedline::format
