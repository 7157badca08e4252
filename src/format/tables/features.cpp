// SPDX-License-Identifier: Apache-2.0
#include "format/tables/features.h"

#include <string>

#include "format/tables/json_value.h"

namespace feedline::format {
namespace {

// {"_type": "Image"}, {"_type": "ClassLabel", "names": [...]}; structs of features are objects of them.
void describe(const JsonValue& feature, const std::string& name, const std::vector<ColumnType*>& columns) {
  const JsonValue* const type = feature.find("_type");
  if (type == nullptr || type->kind != JsonValue::Kind::kText) {
    for (const auto& [member, inner] : feature.members) describe(inner, name + "." + member, columns);
    return;
  }
  for (ColumnType* const column : columns) {
    if (column->name != name) continue;
    if (type->text == "Image" && column->holds == Holds::kBytes) column->is_image = true;
    const JsonValue* const names = feature.find("names");
    if (type->text != "ClassLabel" || names == nullptr || column->holds != Holds::kNumbers) continue;
    for (const JsonValue& one : names->items)
      if (one.kind == JsonValue::Kind::kText) column->classes.push_back(one.text);
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
