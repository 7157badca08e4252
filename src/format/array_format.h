// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "feedline/dataset.h"
#include "format/format.h"

namespace feedline::format {

// Arrays in memory, or mapped by their owner: sample i is row i of each. Copies nothing but the rows that are asked
// for.
class ArrayFormat final : public Format {
 public:
  // kConfig: no array, different numbers of rows, rows without elements, the same name twice.
  static Result<std::shared_ptr<const Format>> make(std::vector<NamedArray> arrays);

  std::string_view name() const override { return "arrays"; }
  std::uint64_t size() const override { return arrays_.front().rows; }
  const std::vector<FieldDescription>& fields() const override { return fields_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples, std::span<std::byte* const> fields) const override;
  std::uint64_t grain() const override { return grain_; }
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }
  Result<Inspection> inspect() const override;

 private:
  explicit ArrayFormat(std::vector<NamedArray> arrays);

  std::vector<NamedArray> arrays_;
  std::vector<FieldDescription> fields_;
  std::vector<std::string> classes_;
  std::uint64_t row_bytes_ = 0;
  std::uint64_t grain_ = 1;
  std::uint64_t fingerprint_ = 0;
};

// How many samples of this size to give to a thread at a time: handing them out costs about a microsecond, and the
// order of a sample a tenth of that under the lock, so neither one nor thousands.
std::uint64_t grain_of(std::uint64_t sample_bytes);

}  // namespace feedline::format
