// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "feedline/dataset.h"
#include "format/filled_format.h"

namespace feedline::format {

// Arrays in memory, or mapped by their owner: sample i is row i of each. Copies nothing but the rows that are asked
// for.
class ArrayFormat final : public FilledFormat {
 public:
  // kConfig: no array, different numbers of rows, rows without elements, the same name twice.
  static Result<std::shared_ptr<const Format>> make(std::vector<NamedArray> arrays);

  std::string_view name() const override { return "arrays"; }
  std::uint64_t size() const override { return arrays_.front().rows; }
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples, std::span<std::byte* const> fields) const override;
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override { return fingerprint_; }

 private:
  explicit ArrayFormat(std::vector<NamedArray> arrays);

  std::vector<NamedArray> arrays_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace feedline::format
