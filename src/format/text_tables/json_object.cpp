// SPDX-License-Identifier: Apache-2.0
#include "format/text_tables/json_object.h"

#include "text/json_reader.h"

namespace feedline::format {
namespace {

using text::JsonReader;

std::optional<Cell> take_cell(JsonReader& json) {
  switch (json.peek()) {
    case JsonReader::Kind::kString:
      if (auto value = json.string()) return Cell{CellKind::kText, std::move(*value)};
      return {};
    case JsonReader::Kind::kNull:
      return json.null() ? std::optional(Cell()) : std::nullopt;
    case JsonReader::Kind::kNumber:
      if (const auto written = json.raw()) return Cell{CellKind::kPlain, std::string(*written)};
      return {};
    default:
      if (const auto written = json.raw()) return Cell{CellKind::kJson, std::string(*written)};
      return {};
  }
}

}  // namespace

std::expected<JsonObject, std::string> parse_json_object(std::string_view line) {
  JsonReader json(line);
  JsonObject members;
  const bool is_read = json.object([&](const std::string& name) {
    auto cell = take_cell(json);
    if (cell) members.emplace_back(name, std::move(*cell));
    return cell.has_value();
  });
  if (is_read && json.finish()) return members;
  return std::unexpected("is not a valid JSON object: " + json.problem() + " at character " +
                         std::to_string(json.offset() + 1));
}

}  // namespace feedline::format
