// SPDX-License-Identifier: Apache-2.0
#include "format/joined_format.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"

namespace feedline::format {
namespace {

std::string described(const std::vector<FieldDescription>& fields) {
  std::string text;
  for (const FieldDescription& field : fields) {
    text += (text.empty() ? "" : ", ") + field.name;
    if (field.kind == FieldKind::kArray)
      text += " " + std::string(name_of(field.array.dtype)) + field.array.shape.to_string();
  }
  return text;
}

bool same(const FieldDescription& a, const FieldDescription& b) {
  return a.name == b.name && a.kind == b.kind && a.array == b.array;
}

}  // namespace

Result<std::shared_ptr<const Format>> JoinedFormat::make(std::vector<std::shared_ptr<const Format>> parts) {
  if (parts.empty()) return config_error("mix: at least one dataset is needed");
  const auto& fields = parts.front()->fields();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string name = "dataset " + std::to_string(i);
    if (parts[i]->size() == 0) return config_error("mix: " + name + " holds no sample");
    if (!std::ranges::equal(parts[i]->fields(), fields, same))
      return config_error("mix: the samples must have the same fields: " + described(fields) + " in dataset 0, " +
                          described(parts[i]->fields()) + " in " + name);
  }
  return std::shared_ptr<const Format>(new JoinedFormat(std::move(parts)));
}

JoinedFormat::JoinedFormat(std::vector<std::shared_ptr<const Format>> parts)
    : parts_(std::move(parts)), classes_(parts_.front()->classes()), grain_(parts_.front()->grain()) {
  std::uint64_t end = 0;
  for (const auto& part : parts_) {
    ends_.push_back(end += part->size());
    grain_ = std::min(grain_, part->grain());
    if (part->classes() != classes_) classes_.clear();
  }
}

const Format& JoinedFormat::part_of(std::uint64_t& index) const {
  const auto end = std::ranges::upper_bound(ends_, index);
  FEEDLINE_CHECK(end != ends_.end());
  if (end != ends_.begin()) index -= *std::prev(end);
  return *parts_[static_cast<std::size_t>(end - ends_.begin())];
}

Result<void> JoinedFormat::read(std::uint64_t index, memory::Record& record) const {
  const Format& part = part_of(index);
  return part.read(index, record);
}

Result<std::optional<storage::Piece>> JoinedFormat::piece(std::uint64_t index) const {
  const Format& part = part_of(index);
  return part.piece(index);
}

Result<void> JoinedFormat::accept(std::uint64_t index, std::span<const std::byte> bytes, memory::Record& record) const {
  const Format& part = part_of(index);
  return part.accept(index, bytes, record);
}

std::shared_ptr<const storage::Storage> JoinedFormat::storage() const {
  const auto storage = parts_.front()->storage();
  const bool one = std::ranges::all_of(parts_, [&](const auto& part) { return part->storage() == storage; });
  return one ? storage : nullptr;
}

Result<std::uint64_t> JoinedFormat::fill(std::span<const std::uint64_t> samples,
                                         std::span<const ArrayView> first_rows) const {
  std::vector<ArrayView> rows(first_rows.begin(), first_rows.end());
  std::uint64_t bytes = 0;
  for (std::uint64_t sample : samples) {
    const Format& part = part_of(sample);
    FEEDLINE_TRY(const std::uint64_t filled, part.fill({&sample, 1}, rows));
    bytes += filled;
    for (ArrayView& row : rows) row.data += row.spec.bytes();
  }
  return bytes;
}

std::uint64_t JoinedFormat::length(std::uint64_t index, std::size_t field) const {
  const Format& part = part_of(index);
  return part.length(index, field);
}

std::uint64_t JoinedFormat::longest(std::size_t field) const {
  std::uint64_t longest = 0;
  for (const auto& part : parts_) longest = std::max(longest, part->longest(field));
  return longest;
}

Where JoinedFormat::where(std::uint64_t index) const {
  const Format& part = part_of(index);
  return part.where(index);
}

std::uint64_t JoinedFormat::fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  for (const auto& part : parts_) fingerprint.add(part->fingerprint());
  return fingerprint.value();
}

Result<Inspection> JoinedFormat::inspect() const {
  return config_error("inspect: a mixture is inspected dataset by dataset");
}

}  // namespace feedline::format
