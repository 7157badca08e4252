// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "format/format.h"

namespace feedline::format {

// Several formats with the same fields, their samples one behind the other.
class JoinedFormat final : public Format {
 public:
  // kConfig: none, one without samples, or fields that differ.
  static Result<std::shared_ptr<const Format>> make(std::vector<std::shared_ptr<const Format>> parts);

  std::string_view name() const override { return "mix"; }
  std::uint64_t size() const override { return ends_.back(); }
  const std::vector<FieldDescription>& fields() const override { return parts_.front()->fields(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  Result<void> read(std::uint64_t index, memory::Record& record) const override;
  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                             std::span<const ArrayView> first_rows) const override;
  std::uint64_t length(std::uint64_t index, std::size_t field) const override;
  std::uint64_t longest(std::size_t field) const override;
  std::uint64_t grain() const override { return grain_; }
  Result<std::optional<storage::Piece>> piece(std::uint64_t index) const override;
  Result<void> accept(std::uint64_t index, std::span<const std::byte> bytes, memory::Record& record) const override;
  std::shared_ptr<const storage::Storage> storage() const override;
  Where where(std::uint64_t index) const override;
  std::uint64_t fingerprint() const override;
  Result<Inspection> inspect() const override;

 private:
  explicit JoinedFormat(std::vector<std::shared_ptr<const Format>> parts);
  const Format& part_of(std::uint64_t& index) const;  // and the index within it

  std::vector<std::shared_ptr<const Format>> parts_;
  std::vector<std::uint64_t> ends_;   // samples of the parts up to and with this one
  std::vector<std::string> classes_;  // where all parts have the same
  std::uint64_t grain_;
};

}  // namespace feedline::format
