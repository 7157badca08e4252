// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/schema_readers.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace feedline::format {
namespace {

const Column* find_in(const Columns& columns, const std::string& name) {
  const auto found = std::ranges::find(columns, name, &Column::name);
  return found == columns.end() ? nullptr : &*found;
}

// Describes how the columns differ. Without fields=, a difference is an error, so that no column is dropped silently.
std::string difference(const Columns& first, const Columns& columns) {
  for (const Column& column : first)
    if (find_in(columns, column.name) == nullptr) return "the first shard's column '" + column.name + "' is missing";
  for (const Column& column : columns)
    if (find_in(first, column.name) == nullptr) return "the column '" + column.name + "' is not in the first shard";
  return "the columns differ from those of the first shard";
}

// Returns the fields of another schema, which must equal those of the first schema, in the order of the first schema.
Result<std::vector<ColumnChoice>> as_in(const ColumnReader& first, const SampleSchema& schema,
                                        const std::vector<ColumnChoice>& chosen) {
  const Columns &columns = schema.columns, &of_first = first.schema().columns;
  std::vector<ColumnChoice> ordered;
  for (const ColumnChoice& wanted : first.fields()) {
    const FieldDescription& field = wanted.description;
    const auto same = std::ranges::find(chosen, field.name, [](const auto& one) { return one.description.name; });
    if (same == chosen.end()) break;
    if (same->description.kind != field.kind)
      return config_error("the column '" + columns[same->column].name + "' (" + columns[same->column].encoding +
                          ") is " + std::string(name_of(same->description.kind)) + ", but that of the first shard (" +
                          of_first[wanted.column].encoding + ") is " + std::string(name_of(field.kind)));
    ordered.push_back(*same);
  }
  if (ordered.size() == chosen.size() && ordered.size() == first.fields().size()) return ordered;
  return config_error(difference(of_first, columns) + "; select common columns with fields=");
}

Error of_a_shard(const PlannedDataset& dataset, std::size_t schema, Error error) {
  if (schema == 0) return error;
  const auto shard = std::ranges::find(dataset.shards, schema, &PlannedShard::schema);
  if (shard == dataset.shards.end()) return error;
  error.what = "the shard '" + shard->name + "': " + error.what;
  return error;
}

}  // namespace

Result<std::vector<ColumnReader>> readers_of(const PlannedDataset& dataset, const std::vector<std::string>& fields) {
  std::vector<ColumnReader> readers;
  for (const SampleSchema& schema : dataset.schemas) {
    auto chosen = choose_columns(fields, schema.columns);
    if (chosen && !readers.empty()) chosen = as_in(readers.front(), schema, *chosen);
    if (!chosen) return std::unexpected(of_a_shard(dataset, readers.size(), std::move(chosen).error()));
    readers.emplace_back(schema, std::move(*chosen));
  }
  return readers;
}

}  // namespace feedline::format
