// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/tables_inspection.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "format/columnar/cell_reader.h"
#include "format/columnar/image_columns.h"
#include "format/shards/each_shard.h"
#include "format/shards/finding.h"
#include "format/shards/record_keys.h"

namespace feedline::format {
namespace {

struct Looked {
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> smallest, largest;  // of the first image
  std::vector<std::uint64_t> present;              // per field: rows with a value
  Findings findings;
};

// Adds a finding for a shard that cannot be read. Undamaged files may have an unsupported type.
void add_error(Findings& findings, const std::string& shard, const Error& error, bool is_opened) {
  const auto stop = [&](std::string_view code, std::string text) {
    findings.add({code, Severity::kError, shard, "", error.where.offset, std::move(text)});
  };
  if (error.code == ErrorCode::kStorage) return stop("unreadable_file", error.message());
  if (is_opened && error.code == ErrorCode::kConfig) return stop("schema_differs", error.what);
  stop("bad_file", error.what);
}

// Adds a note if shuffled reads decompress blocks more than once.
void add_note_of_blocks(const BlockCosts& costs, const std::string& source, Findings& findings) {
  constexpr unsigned kMebibyte = 20;
  if (costs.bytes <= costs.memory) return;
  const auto in_mebibytes = [](std::uint64_t bytes) { return std::to_string(bytes >> kMebibyte) + " MiB"; };
  const auto samples = static_cast<std::uint64_t>(costs.bytes_of_sample / std::max(costs.value_bytes, 1.0));
  findings.add({"compressed_blocks",
                Severity::kNote,
                source,
                "",
                {},
                "compressed blocks read at random: a block holds about " + std::to_string(samples) +
                    " samples, and all blocks take " + in_mebibytes(costs.bytes) + ", while at most " +
                    in_mebibytes(costs.memory) +
                    " stay in memory; shuffle=True stores the others in the cache folder, if it has room"});
}

// Inspects the rows of a table.
class TableLook {
 public:
  TableLook(const ColumnTable& table, std::string stem, const std::vector<PickedColumn>& choices, Missing missing)
      : table_(table), stem_(std::move(stem)), choices_(choices), missing_(missing) {
    record_.most_bytes = memory::usual_sample_limit();
    record_.more.resize(choices.size());
    looked_.present.resize(choices.size());
  }

  Result<Looked> look() {
    FEEDLINE_TRY(const auto opened, table_.reader());
    for (row_ = 0; row_ < table_.rows(); ++row_)
      for (std::size_t slot = 0; slot < choices_.size(); ++slot) FEEDLINE_CHECK_OK(take(opened.reader, slot));
    table_.close();
    return std::move(looked_);
  }

 private:
  void problem(std::string_view code, const Error& error, Severity severity = Severity::kError) {
    looked_.findings.add({code, severity, table_.name(), record_key(stem_, row_),
                          error.where.offset.value_or(table_.offset_of(row_)),
                          "row " + std::to_string(row_) + ": " + error.what});
  }

  Result<void> take(const std::shared_ptr<const storage::Reader>& reader, std::size_t slot) {
    record_.pin.reset();
    const auto cell = read_cell(table_, reader, row_, slot, record_, record_.more[slot]);
    if (!cell && cell.error().code == ErrorCode::kStorage) return std::unexpected(cell.error());
    if (!cell) return problem("bad_value", cell.error()), Result<void>();
    memory::Record::Field field;
    const PickedColumn& choice = choices_[slot];
    if (const auto made = make_field(choice, *cell, record_.most_bytes, record_.more[slot], field); !made) {
      if (cell->is_null)
        problem("missing_field", made.error(), missing_ == Missing::kError ? Severity::kError : Severity::kWarning);
      else if (cell->bytes.empty())
        problem("empty_file", made.error());
      else
        problem("bad_value", made.error());
      return {};
    }
    ++looked_.present[slot];
    const std::uint64_t bytes = choice.description.kind == FieldKind::kInteger ? 1 : cell->bytes.size();
    looked_.bytes += bytes;
    const bool is_first_image =
        choice.description.kind == FieldKind::kImage &&
        std::ranges::none_of(choices_.begin(), choices_.begin() + static_cast<std::ptrdiff_t>(slot),
                             [](const PickedColumn& other) { return other.description.kind == FieldKind::kImage; });
    if (!is_first_image) return {};
    looked_.smallest = std::min(looked_.smallest.value_or(bytes), bytes);
    looked_.largest = std::max(looked_.largest.value_or(0), bytes);
    return {};
  }

  const ColumnTable& table_;
  const std::string stem_;
  const std::vector<PickedColumn>& choices_;
  const Missing missing_;
  memory::Record record_;
  Looked looked_;
  std::uint64_t row_ = 0;
};

using Tables = std::vector<std::unique_ptr<ColumnTable>>;  // nullptr if it could not be opened

Looked look_at(ColumnTable& table, const std::string& stem, const std::vector<PickedColumn>& choices, Missing missing) {
  const auto look = [&]() -> Result<Looked> {
    FEEDLINE_TRY(const auto columns, find_columns(choices, table.columns()));
    FEEDLINE_TRY(const auto opened, table.reader());
    FEEDLINE_CHECK_OK(table.choose(*opened.reader, columns));
    return TableLook(table, stem, choices, missing).look();
  };
  auto looked = look();
  if (looked) return std::move(*looked);
  Looked failed;
  failed.present.resize(choices.size());
  add_error(failed.findings, table.name(), looked.error(), true);
  return failed;
}

Result<void> look_at_all(const std::string& source, const std::vector<std::string>& shards, const Tables& tables,
                         const std::vector<PickedColumn>& choices, bool are_default, Missing missing,
                         Inspection& inspection, Findings& findings) {
  const auto stems = table_stems(shards);
  FEEDLINE_TRY(auto looked, each_shard<Looked>(shards.size(), [&](std::size_t i) -> Result<Looked> {
                 if (!tables[i]) return Looked{.present = std::vector<std::uint64_t>(choices.size())};
                 return look_at(*tables[i], stems[i], choices, missing);
               }));
  std::map<std::string, std::uint64_t> present;
  std::optional<std::uint64_t> smallest;
  for (Looked& one : looked) {
    findings.add(std::move(one.findings));
    inspection.bytes += one.bytes;
    for (std::size_t slot = 0; slot < choices.size(); ++slot) present[choices[slot].column.name] += one.present[slot];
    if (one.smallest) smallest = std::min(smallest.value_or(*one.smallest), *one.smallest);
    inspection.largest_bytes = std::max(inspection.largest_bytes, one.largest.value_or(0));
  }
  inspection.smallest_bytes = smallest.value_or(0);
  for (const auto& [name, count] : present)
    if (count > 0) inspection.extensions.push_back({name, count});
  for (const UnopenedColumn& column : unopened_of_all(choices, are_default, tables))
    findings.add(to_finding(column, source));
  return {};
}

}  // namespace

Result<Inspection> inspect_columns(const TableKind& kind, const std::string& source,
                                   const std::vector<std::string>& shards, const OpenOptions& options) {
  Inspection inspection;
  inspection.format = std::string(kind.name);
  inspection.shards = shards.size();
  Findings findings;
  FEEDLINE_TRY(auto opened, each_shard<Result<std::unique_ptr<ColumnTable>>>(
                                shards.size(), [&](std::size_t i) -> Result<Result<std::unique_ptr<ColumnTable>>> {
                                  return open_table(kind, options.storage, shards[i]);
                                }));
  Tables tables;
  const ColumnTable *first = nullptr, *with_rows = nullptr;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (!opened[i]) add_error(findings, shards[i], opened[i].error(), false);
    tables.push_back(opened[i] ? std::move(*opened[i]) : nullptr);
    if (!tables.back()) continue;
    inspection.samples += tables.back()->rows();
    if (tables.back()->rows() == 0)
      findings.add({"no_samples", Severity::kWarning, shards[i], "", {}, "the file has no rows"});
    if (first == nullptr) first = tables.back().get();
    if (with_rows == nullptr && tables.back()->rows() > 0) with_rows = tables.back().get();
  }
  if (first != nullptr) {
    std::vector<ColumnType> columns = first->columns();
    for (const auto& table : tables)
      if (table) complete_columns(columns, table->columns());
    if (with_rows != nullptr) {
      FEEDLINE_TRY(const auto reader, with_rows->reader());
      FEEDLINE_CHECK_OK(recognise_images(kind, with_rows->file(), *reader.reader, options.fields, columns));
    }
    if (const auto choices = pick_columns(options.fields, columns)) {
      for (const PickedColumn& choice : *choices)
        if (choice.members > 0) inspection.fields.push_back(choice.description.name);
      for (const FieldRemark& remark : remarks_of(*choices))
        findings.add(
            {"column_has_meaning", Severity::kNote, source, "", {}, "field '" + remark.field + "': " + remark.text});
      FEEDLINE_CHECK_OK(
          look_at_all(source, shards, tables, *choices, options.fields.empty(), options.missing, inspection, findings));
      if (kind.cache) add_note_of_blocks(block_costs_of(*kind.cache, tables, choices->size()), source, findings);
    } else {
      findings.add({"no_field", Severity::kError, source, "", {}, choices.error().what});
    }
  }
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
