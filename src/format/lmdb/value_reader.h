// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts the values of a sample to its fields.

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "feedline/error.h"
#include "feedline/sample_files.h"
#include "format/lmdb/lmdb_layout.h"
#include "memory/record.h"

namespace feedline::format {

// The error of an invalid sample, with the code of its finding.
struct ValueProblem {
  std::string_view code;
  Error error;
};

// Immutable and thread-safe.
class ValueReader {
 public:
  explicit ValueReader(LmdbLayout layout) : layout_(std::move(layout)) {}

  const LmdbLayout& layout() const { return layout_; }
  // Converts a sample to a record. `values` has one value per source, or nullopt if the sample lacks this value. Stored
  // bytes are not copied. Pixels and arrays of a Datum are written to record.more.
  std::expected<void, ValueProblem> read(std::span<const std::optional<std::span<const std::byte>>> values,
                                         memory::Record& record) const;
  // Returns the sample as files, for copying it to a tar. Fails with kConfig for decoded pixels, which cannot be
  // written as a file.
  Result<std::vector<SampleFiles::File>> files(std::span<const std::optional<std::span<const std::byte>>> values) const;

 private:
  std::expected<void, ValueProblem> read_field(const LmdbField& field, std::span<const std::byte> value,
                                               memory::Record& record, memory::Record::Field& out) const;

  LmdbLayout layout_;
};

}  // namespace feedline::format
