// SPDX-License-Identifier: Apache-2.0
#include "format/format.h"

#include <algorithm>
#include <utility>

namespace feedline::format {

Result<SampleFiles> RecordFormat::files(std::uint64_t /*index*/) const {
  return config_error("only folders, tars, TFRecord files, LMDB databases and tables have files that can be copied");
}

Result<SampleFileSizes> RecordFormat::file_sizes(std::uint64_t /*index*/) const {
  return config_error("only folders, tars, TFRecord files, LMDB databases and tables have files that can be copied");
}

Result<void> RecordFormat::find_pieces(std::uint64_t /*index*/, std::vector<storage::Piece>& /*pieces*/) const {
  return {};
}

std::vector<std::shared_ptr<const storage::Storage>> RecordFormat::storages() const {
  auto one = storage();
  if (!one) return {};
  return {std::move(one)};
}

// Formats without pieces read the sample as a whole.
Result<void> RecordFormat::accept(std::uint64_t index, std::span<const std::span<const std::byte>> /*pieces*/,
                                  memory::Record& record) const {
  return read(index, record);
}

std::uint64_t RowFormat::length(std::uint64_t /*index*/, std::size_t field) const { return longest(field); }

std::uint64_t RowFormat::longest(std::size_t field) const {
  const Shape& shape = fields()[field].array.shape;
  return shape.dims() == 0 ? 1 : static_cast<std::uint64_t>(shape[0]);
}

std::string names_of(const std::vector<UnopenedColumn>& columns) {
  constexpr std::size_t kShown = 20;
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i == kShown) return text + " and " + std::to_string(columns.size() - kShown) + " more";
    const UnopenedColumn& column = columns[i];
    const bool is_both = !column.holds.empty() && !column.reason.empty();
    text.append(text.empty() ? "" : ", ").append(column.name);
    text.append(" (").append(column.holds).append(is_both ? ": " : "").append(column.reason).append(")");
  }
  return text;
}

std::shared_ptr<const RecordFormat> records_of(std::shared_ptr<const Format> format) {
  return std::dynamic_pointer_cast<const RecordFormat>(std::move(format));
}

std::shared_ptr<const RowFormat> rows_of(std::shared_ptr<const Format> format) {
  return std::dynamic_pointer_cast<const RowFormat>(std::move(format));
}

bool is_ragged(const Format& format) {
  if (dynamic_cast<const RowFormat*>(&format) == nullptr) return false;
  return std::ranges::any_of(format.fields(), [](const auto& field) { return field.array.is_ragged(); });
}

}  // namespace feedline::format
