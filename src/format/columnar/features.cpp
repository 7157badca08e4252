// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/features.h"

#include <string>

#include "text/json_value.h"

namespace feedline::format {
namespace {

using text::JsonValue;
using text::parse_json;

std::string text_of(const JsonValue* value) {
  return value != nullptr && value->kind == JsonValue::Kind::kText ? value->text : std::string();
}

void take_image(const JsonValue& feature, ColumnType& column) {
  if (column.holds != Holds::kBytes) return;
  column.is_image = true;
  const std::string mode = text_of(feature.find("mode"));
  if (!mode.empty() && mode != "RGB")
    column.meaning = "Image(mode='" + mode + "'), whose mode is not applied: decode() sets the mode";
}

void take_names(const JsonValue& feature, ColumnType& column) {
  const JsonValue* const names = feature.find("names");
  if (names == nullptr || column.holds != Holds::kNumbers) return;
  for (const JsonValue& one : names->items)
    if (one.kind == JsonValue::Kind::kText) column.classes.push_back(one.text);
}

// Applies a feature such as {"_type": "Image"} or {"_type": "ClassLabel", "names": [...]} to its columns. Structs are
// JSON objects with one feature per member. Lists are JSON objects with a "feature", or JSON arrays with one element.
void describe(const JsonValue& feature, const std::string& name, const std::vector<ColumnType*>& columns) {
  if (feature.kind == JsonValue::Kind::kArray) {
    if (!feature.items.empty()) describe(feature.items.front(), name, columns);
    return;
  }
  const std::string type = text_of(feature.find("_type"));
  if (type.empty()) {
    for (const auto& [member, inner] : feature.members) describe(inner, name + "." + member, columns);
    return;
  }
  if (type == "List" || type == "LargeList" || type == "Sequence") {
    if (const JsonValue* const inner = feature.find("feature")) describe(*inner, name, columns);
    return;
  }
  // features that add nothing to the column's values
  const bool is_plain = type == "Value" || type.starts_with("Array") || type.starts_with("Translation");
  for (ColumnType* const column : columns) {
    if (column->name != name || is_plain) continue;
    if (type == "Image")
      take_image(feature, *column);
    else if (type == "Audio")
      column->is_audio = column->holds == Holds::kBytes;
    else if (type == "Video")
      column->is_video = column->holds == Holds::kBytes;
    else if (type == "ClassLabel")
      take_names(feature, *column);
    else if (type == "Json")
      column->is_json = column->holds == Holds::kText;
    else if (column->meaning.empty())
      column->meaning = "the feature " + type + ", which is not decoded";
  }
}

}  // namespace

void describe(std::string_view text, const std::vector<ColumnType*>& columns) {
  const auto json = parse_json(text);
  if (!json) return;
  const JsonValue* const info = json->find("info");
  const JsonValue* const features = info == nullptr ? nullptr : info->find("features");
  if (features == nullptr) return;
  for (const auto& [name, feature] : features->members) describe(feature, name, columns);
}

}  // namespace feedline::format
