// SPDX-License-Identifier: Apache-2.0
#include "format/tables/image_columns.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "format/field_kind.h"
#include "format/tables/cell_reader.h"

namespace feedline::format {
namespace {

using Tables = std::vector<std::unique_ptr<ColumnTable>>;

constexpr std::uint64_t kLookedAt = 8;  // rows: the first ones may have no value

// Is the first value there an image? Damage is left to whoever reads the row.
Result<bool> begins_with_image(const ColumnTable& table, std::size_t slot) {
  FEEDLINE_TRY(const auto opened, table.reader());
  memory::Record record;
  memory::ByteBuffer room;
  record.most_bytes = memory::usual_sample_limit();
  for (std::uint64_t row = 0; row < std::min(table.rows(), kLookedAt); ++row) {
    const auto cell = read_cell(table, opened.reader, row, slot, record, room);
    if (!cell && cell.error().code == ErrorCode::kStorage) return std::unexpected(cell.error());
    if (!cell) return false;
    if (!cell->is_null) return !image_kind_of(cell->bytes).empty();
  }
  return false;
}

}  // namespace

// With a table of its own: the columns of the dataset's are chosen once, after this.
Result<void> recognise_images(const TableKind& kind, const std::shared_ptr<const storage::Storage>& storage,
                              const ColumnTable* first, const std::vector<std::string>& specs,
                              std::vector<ColumnType>& columns) {
  const auto unknown = columns_of_unknown_bytes(specs, columns);
  if (unknown.empty() || first == nullptr) return {};
  FEEDLINE_TRY(const auto table, open_table(kind, storage, first->file().path));
  std::vector<PickedColumn> wanted;
  for (const std::size_t at : unknown) wanted.push_back({.description = {}, .column = columns[at]});
  const auto places = find_columns(wanted, table->columns());
  if (!places) return {};  // another schema, whose error names the file
  FEEDLINE_TRY(const auto opened, table->reader());
  if (const auto chosen = table->choose(*opened.reader, *places); !chosen)
    return chosen.error().code == ErrorCode::kStorage ? std::unexpected(chosen.error()) : Result<void>();
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    FEEDLINE_TRY(columns[unknown[i]].is_image, begins_with_image(*table, i));
  }
  table->close();
  return {};
}

std::vector<UnopenedColumn> unopened_of_all(const std::vector<PickedColumn>& fields, bool are_default,
                                            const Tables& tables) {
  std::vector<UnopenedColumn> left;
  std::set<std::string_view> seen;
  for (const auto& table : tables) {
    if (table == nullptr) continue;
    const bool is_first = seen.empty();
    std::vector<ColumnType> more;
    for (const ColumnType& column : table->columns())
      if (seen.insert(column.name).second) more.push_back(column);
    for (UnopenedColumn& column : unopened_columns(fields, are_default, more)) {
      if (!is_first) column.reason = "only some files have it", column.spec.clear();
      left.push_back(std::move(column));
    }
  }
  return left;
}

}  // namespace feedline::format
