// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/stored_arrow_schema.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "format/columnar/arrow/arrow_messages.h"

namespace feedline::format {
namespace {

std::optional<std::vector<std::byte>> bytes_of_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr unsigned kBitsOfDigit = 6, kBitsOfByte = 8;
  std::vector<std::byte> bytes;
  std::uint32_t held = 0;
  unsigned bits = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) return {};
    held = held << kBitsOfDigit | static_cast<std::uint32_t>(digit);
    bits += kBitsOfDigit;
    if (bits < kBitsOfByte) continue;
    bits -= kBitsOfByte;
    bytes.push_back(static_cast<std::byte>(held >> bits & 0xffU));
  }
  return bytes;
}

void take(const ColumnType& arrow, ColumnType& column) {
  const bool is_same_list = arrow.dtype == column.dtype && arrow.lists.dims() == column.lists.dims();
  // If the shape of a tensor does not match, the column remains a list, which cannot be a field.
  const bool is_of_numbers = arrow.holds == Holds::kNumbers || (arrow.holds == Holds::kOther && arrow.lists.dims() > 0);
  if (column.holds == Holds::kNumbers && is_same_list && is_of_numbers) {
    column.lists = arrow.lists;
    column.tensor = arrow.tensor;
    column.order = arrow.order;
    if (arrow.tensor.dims() > 0) column.shown = arrow.shown;
    column.holds = arrow.holds;
  }
  // Some time columns have a different unit in Parquet than in the Arrow schema. The values have the unit specified in
  // Parquet.
  if (!column.unit.empty() && column.unit != arrow.unit) return;
  if (column.is_nested) return;
  if (column.holds == Holds::kText) column.is_json = arrow.is_json;
  if (arrow.meaning.empty()) return;
  column.unit = arrow.unit;
  column.meaning = arrow.meaning;
}

}  // namespace

Result<void> take_arrow_types(std::string_view base64, const std::vector<ColumnType*>& columns) {
  if (base64.empty()) return {};
  const auto bytes = bytes_of_base64(base64);
  if (!bytes) return data_error("the Arrow schema in the footer is not base64: the file is damaged", "format");
  const auto schema = read_schema_message(*bytes);
  if (!schema && schema.error().code == ErrorCode::kConfig) return {};  // types that Parquet columns cannot have
  if (!schema) return std::unexpected(schema.error());
  std::map<std::string_view, const ColumnType*> named;
  for (const ArrowColumn& column : schema->columns) named.emplace(column.type.name, &column.type);
  for (ColumnType* const column : columns)
    if (const auto found = named.find(column->name); found != named.end()) take(*found->second, *column);
  return {};
}

}  // namespace feedline::format
