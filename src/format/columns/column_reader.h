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
#include "format/columns/column.h"
#include "format/columns/sample_layout.h"
#include "memory/record.h"

namespace feedline::format {

// The problem of a bad sample: its error, and the code of a finding.
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
  // Reads an uncompressed or decompressed sample. Values are views of `sample`, except for pixels, numbers stored as
  // text and escaped text, which are copied to record.more.
  std::expected<void, ColumnProblem> read(std::span<const std::byte> sample, memory::Record& record) const;

 private:
  SampleSchema schema_;
  std::vector<ColumnChoice> fields_;
};

}  // namespace feedline::format
