// SPDX-License-Identifier: Apache-2.0
#pragma once

// Concatenates several formats of the same kind that have the same fields.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "format/checksum.h"
#include "format/format.h"

namespace feedline::format {

// `names` are the user's names for the parts, for use in messages. If `names` is empty, messages number the parts.
// Fails with kConfig if there are no parts, a part has no samples, or the fields differ; the message describes the
// first difference.
Result<std::shared_ptr<const Format>> join(std::vector<std::shared_ptr<const Format>> parts,
                                           const std::vector<std::string>& names = {});

// Base class of the concatenations for both kinds of format. `Kind` is RecordFormat or RowFormat.
template <typename Kind>
class JoinedFormat : public Kind {
 public:
  std::string_view name() const final { return "mix"; }
  std::uint64_t size() const final { return ends_.back(); }
  const std::vector<FieldDescription>& fields() const final { return fields_; }
  const std::vector<std::string>& classes() const final { return classes_; }
  std::uint64_t grain() const final { return grain_; }
  std::vector<UnopenedColumn> unopened() const final {
    return of_all([](const Kind& part) { return part.unopened(); });
  }
  std::vector<FieldRemark> remarks() const final {
    return of_all([](const Kind& part) { return part.remarks(); });
  }
  BlockCosts block_costs() const final {
    BlockCosts all;
    for (const auto& part : parts_) {
      const BlockCosts costs = part->block_costs();
      const double share = static_cast<double>(part->size()) / static_cast<double>(size());
      all.bytes += costs.bytes;
      all.value_bytes += share * costs.value_bytes;
      all.bytes_of_sample += share * costs.bytes_of_sample;
      all.memory += costs.memory;
      all.disk = std::max(all.disk, costs.disk);
    }
    return all;
  }
  BlockCounts block_counts() const final {
    BlockCounts all;
    for (const auto& part : parts_) {
      const BlockCounts counts = part->block_counts();
      all = {all.blocks + counts.blocks, all.bytes + counts.bytes, all.delivered + counts.delivered};
    }
    return all;
  }
  Where where(std::uint64_t index) const final {
    const std::uint64_t record = index;
    const Kind& part = part_of(index);
    Where location = part.where(index);
    location.record = record;
    return location;
  }
  Where where_field(std::uint64_t index, std::size_t field) const final {
    const std::uint64_t record = index;
    const Kind& part = part_of(index);
    Where location = part.where_field(index, field);
    location.record = record;
    return location;
  }
  Result<memory::OwnRow> own_row(std::uint64_t index, std::size_t field, memory::RowUse use) const final {
    const Kind& part = part_of(index);
    return part.own_row(index, field, use);
  }
  std::uint64_t fingerprint() const final {
    Fingerprint fingerprint;
    fingerprint.add(name());
    for (const auto& part : parts_) fingerprint.add(part->fingerprint());
    return fingerprint.value();
  }
  Result<Inspection> inspect() const final {
    return config_error("inspect: a mixture cannot be inspected; inspect its datasets separately");
  }

 protected:
  using Parts = std::vector<std::shared_ptr<const Kind>>;

  // Requires: the parts have the same fields.
  explicit JoinedFormat(Parts parts)
      : parts_(std::move(parts)),
        fields_(parts_.front()->fields()),
        classes_(parts_.front()->classes()),
        grain_(parts_.front()->grain()) {
    std::uint64_t end = 0;
    for (const auto& part : parts_) {
      for (std::size_t i = 0; i < fields_.size(); ++i)
        fields_[i].may_be_absent = fields_[i].may_be_absent || part->fields()[i].may_be_absent;
      ends_.push_back(end += part->size());
      grain_ = std::min(grain_, part->grain());
      if (part->classes() != classes_) classes_.clear();
    }
  }
  const Parts& parts() const { return parts_; }
  // Returns the part that contains the sample, and makes `index` relative to that part.
  const Kind& part_of(std::uint64_t& index) const { return *parts_[part_number(index)]; }
  std::size_t part_number(std::uint64_t& index) const {
    const auto end = std::ranges::upper_bound(ends_, index);
    FEEDLINE_CHECK(end != ends_.end());
    if (end != ends_.begin()) index -= *std::prev(end);
    return static_cast<std::size_t>(end - ends_.begin());
  }

 private:
  // Returns the union of the lists from all parts.
  template <typename List>
  auto of_all(List&& list) const {
    auto all = list(*parts_.front());
    for (const auto& part : parts_)
      for (auto& one : list(*part))
        if (std::ranges::find(all, one) == all.end()) all.push_back(std::move(one));
    return all;
  }

  Parts parts_;
  std::vector<FieldDescription> fields_;
  std::vector<std::uint64_t> ends_;   // the number of samples up to the end of each part
  std::vector<std::string> classes_;  // empty unless all parts have the same classes
  std::uint64_t grain_;
};

}  // namespace feedline::format
