// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/mds/mds_entry.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "format/row_columns/columns_format.h"
#include "format/row_columns/index_file.h"
#include "format/row_columns/mds/mds_index.h"
#include "format/row_columns/mds/mds_shards.h"
#include "format/sources/source_list.h"

namespace feedline::format {
namespace {

Result<bool> is_mds(const std::string& source, const storage::Storage& storage) {
  FEEDLINE_TRY(const bool is_index, begins_with_key(source, storage, {"shards", "version"}));
  return is_index || holds_shards(source, storage, [](std::string_view name) {
           return name.ends_with(".mds") || name.contains(".mds.");  // the second one is compressed
         });
}

Result<void> add(const std::string& source, const storage::Storage& storage, PlannedDataset& dataset) {
  FEEDLINE_TRY(const IndexLocation location, index_location(source, storage));
  const auto located = [&](Error error) {
    if (error.where.shard.empty()) error.where.shard = location.index;
    return std::unexpected(std::move(error));
  };
  memory::ByteBuffer room;
  FEEDLINE_TRY(const std::string_view text, read_index_file(location, storage, room));
  auto index = parse_mds_index(text);
  if (!index) return located(std::move(index).error());
  const bool is_first = dataset.schemas.empty();
  // If the datasets have different class names, there are no common class names.
  if (is_first) dataset.classes = std::move(index->classes);
  if (!is_first && dataset.classes != index->classes) dataset.classes.clear();
  std::vector<std::size_t> schemas;
  for (SampleSchema& schema : index->schemas) {
    const auto number = number_of(std::move(schema), dataset.schemas);
    if (!number) return located(number.error());
    schemas.push_back(*number);
  }
  std::ranges::move(plan_shards(location.folder, storage, std::move(index->shards), schemas),
                    std::back_inserter(dataset.shards));
  return {};
}

Result<PlannedDataset> plan(const std::string& source, const storage::Storage& storage) {
  PlannedDataset dataset{"mds", {}, {}};
  FEEDLINE_TRY(const auto parts, index_sources(source, storage));
  for (const std::string& part : parts) FEEDLINE_CHECK_OK(add(part, storage, dataset));
  return dataset;
}

Result<std::shared_ptr<const Format>> open_mds(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto dataset, plan(source, *options.storage));
  return ColumnsFormat::open(source, std::move(dataset), options);
}

Result<Inspection> inspect_mds(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto dataset, plan(source, *options.storage));
  return ColumnsFormat::inspect(source, std::move(dataset), options);
}

}  // namespace

const FormatEntry& mds_entry() {
  static constexpr FormatEntry kEntry{"mds", is_mds, open_mds, inspect_mds};
  return kEntry;
}

}  // namespace feedline::format
