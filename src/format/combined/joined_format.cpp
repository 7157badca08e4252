// SPDX-License-Identifier: Apache-2.0
#include "format/combined/joined_format.h"

#include <algorithm>
#include <iterator>

namespace feedline::format {
namespace {

class JoinedRecords final : public JoinedFormat<RecordFormat> {
 public:
  explicit JoinedRecords(Parts parts) : JoinedFormat(std::move(parts)) {}

  Result<void> read(std::uint64_t index, memory::Record& record) const override {
    const RecordFormat& part = part_of(index);
    return part.read(index, record);
  }
  Result<std::uint64_t> gather(std::span<const SampleRow> samples,
                               std::span<const ArrayView> first_rows) const override {
    std::vector<std::vector<SampleRow>> by_part(parts().size());
    for (const SampleRow& one : samples) {
      std::uint64_t index = one.sample;
      const std::size_t part = part_number(index);
      by_part[part].push_back({index, one.row});
    }
    std::uint64_t bytes = 0;
    for (std::size_t part = 0; part < by_part.size(); ++part) {
      if (by_part[part].empty()) continue;
      FEEDLINE_TRY(const std::uint64_t read, parts()[part]->gather(by_part[part], first_rows));
      bytes += read;
    }
    return bytes;
  }
  bool find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                  std::string& room) const override {
    const RecordFormat& part = part_of(index);
    return part.find_value(index, field, value, room);
  }
  Result<bool> read_field(std::uint64_t index, std::size_t field, memory::Record& record) const override {
    const RecordFormat& part = part_of(index);
    return part.read_field(index, field, record);
  }
  Result<std::optional<storage::Piece>> locate_image(std::uint64_t index, std::size_t field) const override {
    const RecordFormat& part = part_of(index);
    return part.locate_image(index, field);
  }
  std::uint64_t block_bytes() const override {
    std::uint64_t bytes = 0;
    for (const auto& part : parts()) bytes += part->block_bytes();
    return bytes;
  }
  // In proportion to the memory that each part may use.
  void limit_blocks(std::uint64_t bytes) const override {
    const auto share = static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(block_bytes(), 1));
    for (const auto& part : parts())
      if (const std::uint64_t usual = part->block_bytes(); usual > 0)
        part->limit_blocks(static_cast<std::uint64_t>(share * static_cast<double>(usual)));
  }
  void notice_changes() const override {
    for (const auto& part : parts()) part->notice_changes();
  }
  bool is_in_memory() const override {
    return std::ranges::any_of(parts(), [](const auto& part) { return part->is_in_memory(); });
  }
  std::vector<std::unique_ptr<const UncheckedObject>> unchecked() const override {
    std::vector<std::unique_ptr<const UncheckedObject>> all;
    for (const auto& part : parts()) std::ranges::move(part->unchecked(), std::back_inserter(all));
    return all;
  }
  std::size_t most_pieces() const override {
    std::size_t most = 0;
    for (const auto& part : parts()) most = std::max(most, part->most_pieces());
    return most;
  }
  Result<void> find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const override {
    const RecordFormat& part = part_of(index);
    return part.find_pieces(index, pieces);
  }
  Result<void> accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                      memory::Record& record) const override {
    const RecordFormat& part = part_of(index);
    return part.accept(index, pieces, record);
  }
  std::shared_ptr<const storage::Storage> storage() const override {
    const auto storage = parts().front()->storage();
    const bool one = std::ranges::all_of(parts(), [&](const auto& part) { return part->storage() == storage; });
    return one ? storage : nullptr;
  }
  std::vector<std::shared_ptr<const storage::Storage>> storages() const override {
    std::vector<std::shared_ptr<const storage::Storage>> all;
    for (const auto& part : parts())
      for (auto& storage : part->storages())
        if (std::ranges::find(all, storage) == all.end()) all.push_back(std::move(storage));
    return all;
  }
};

class JoinedRows final : public JoinedFormat<RowFormat> {
 public:
  explicit JoinedRows(Parts parts) : JoinedFormat(std::move(parts)) {}

  Result<std::uint64_t> fill(std::span<const std::uint64_t> samples,
                             std::span<const ArrayView> first_rows) const override {
    std::vector<ArrayView> rows(first_rows.begin(), first_rows.end());
    std::uint64_t bytes = 0;
    for (std::uint64_t sample : samples) {
      const RowFormat& part = part_of(sample);
      FEEDLINE_TRY(const std::uint64_t filled, part.fill({&sample, 1}, rows));
      bytes += filled;
      for (ArrayView& row : rows)
        if (row.data != nullptr) row.data += row.spec.bytes();
    }
    return bytes;
  }
  std::uint64_t length(std::uint64_t index, std::size_t field) const override {
    const RowFormat& part = part_of(index);
    return part.length(index, field);
  }
  Result<std::uint64_t> read_integers(std::uint64_t index, std::size_t field, std::uint64_t begin,
                                      std::span<std::int64_t> out) const override {
    const RowFormat& part = part_of(index);
    return part.read_integers(index, field, begin, out);
  }
  std::uint64_t longest(std::size_t field) const override {
    std::uint64_t longest = 0;
    for (const auto& part : parts()) longest = std::max(longest, part->longest(field));
    return longest;
  }
};

// "text", "array float32(3,)".
std::string shown(const FieldDescription& field) {
  std::string text(name_of(field.kind));
  if (field.kind == FieldKind::kArray)
    text += " " + std::string(name_of(field.array.dtype)) + field.array.shape.to_string();
  return text;
}

bool same(const FieldDescription& a, const FieldDescription& b) {
  return a.name == b.name && a.kind == b.kind && a.array == b.array;
}

// Describes how the fields of the dataset `other` differ from the fields of `first`.
std::string difference(const std::vector<FieldDescription>& fields, const std::vector<FieldDescription>& others,
                       const std::string& first, const std::string& other) {
  const auto lacks = [](const std::vector<FieldDescription>& in, const FieldDescription& field) {
    return std::ranges::find(in, field.name, &FieldDescription::name) == in.end();
  };
  for (const FieldDescription& field : fields)
    if (lacks(others, field)) return other + " lacks the field '" + field.name + "', which " + first + " has";
  for (const FieldDescription& field : others) {
    if (lacks(fields, field)) return first + " lacks the field '" + field.name + "', which " + other + " has";
    const auto same_name = std::ranges::find(fields, field.name, &FieldDescription::name);
    if (!same(*same_name, field))
      return "the field '" + field.name + "' is " + shown(*same_name) + " in " + first + ", and " + shown(field) +
             " in " + other;
  }
  return other + " has its fields in a different order than " + first;
}

// Returns all parts as the given kind, or an empty list if any part has the other kind.
template <typename Kind>
std::vector<std::shared_ptr<const Kind>> all_as(const std::vector<std::shared_ptr<const Format>>& parts) {
  std::vector<std::shared_ptr<const Kind>> all;
  for (const auto& part : parts) {
    auto one = std::dynamic_pointer_cast<const Kind>(part);
    if (!one) return {};
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

Result<std::shared_ptr<const Format>> join(std::vector<std::shared_ptr<const Format>> parts,
                                           const std::vector<std::string>& names) {
  if (parts.empty()) return config_error("mix: at least one dataset is needed");
  const auto& fields = parts.front()->fields();
  const auto named = [&names](std::size_t i) {
    return "dataset " + std::to_string(i) + (i < names.size() ? " ('" + names[i] + "')" : "");
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string name = named(i);
    if (parts[i]->size() == 0) return config_error("mix: " + name + " has no samples");
    if (!std::ranges::equal(parts[i]->fields(), fields, same))
      return config_error("mix: " + difference(fields, parts[i]->fields(), named(0), name) +
                          "; select the fields common to all with fields= of open()");
  }
  if (auto records = all_as<RecordFormat>(parts); !records.empty())
    return std::make_shared<const JoinedRecords>(std::move(records));
  if (auto rows = all_as<RowFormat>(parts); !rows.empty()) return std::make_shared<const JoinedRows>(std::move(rows));
  return config_error(
      "mix: some datasets have rows of arrays, others have files to decode; mix only datasets of one kind");
}

}  // namespace feedline::format
