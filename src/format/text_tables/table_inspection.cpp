// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "format/field_kind.h"
#include "format/shards/finding.h"
#include "format/text_tables/table_format.h"

namespace feedline::format {

// Collects statistics over the rows of a table, and checks that each file exists.
class TableLook {
 public:
  TableLook(const TableFormat& format, const OpenOptions& options)
      : format_(format), options_(options), of_classes_(format.classes_.size()), of_fields_(format.choices_.size()) {}

  void look(Inspection& inspection) {
    for (std::uint64_t index = 0; index < format_.size(); ++index) look_at(format_.row_of(index), inspection);
    inspection.samples = format_.size();
    for (std::size_t i = 0; i < of_fields_.size(); ++i) {
      inspection.fields.push_back(format_.fields()[i].name);
      inspection.extensions.push_back({format_.table_.columns[format_.choices_[i].column].name, of_fields_[i]});
    }
    for (std::size_t i = 0; i < of_classes_.size(); ++i)
      inspection.classes.push_back({format_.classes_[i], of_classes_[i]});
    for (const UnopenedColumn& column : format_.unopened())
      findings_.add(to_finding(column, format_.locations_.files.front().path));
    inspection.findings = findings_.to_inspection();
  }

 private:
  void report(std::string_view code, Severity severity, std::uint64_t row, const std::string& what) {
    findings_.add({code,
                   severity,
                   format_.find_sample(row).path,
                   TableFormat::key_of(row),
                   {},
                   "line " + std::to_string(format_.table_.lines[row]) + what});
  }

  void look_at(std::uint64_t row, Inspection& inspection) {
    bool is_first_image = true, has_label = false;
    for (std::size_t i = 0; i < format_.choices_.size(); ++i) {
      const ColumnField& field = format_.choices_[i];
      if (!format_.has(row, i)) {
        report("missing_field", options_.missing == Missing::kError ? Severity::kError : Severity::kWarning, row,
               " has no value in the column '" + format_.table_.columns[field.column].name + "'");
        continue;
      }
      ++of_fields_[i];
      if (field.use == ColumnUse::kClass && !std::exchange(has_label, true))
        ++of_classes_[static_cast<std::size_t>(field.numbers[row])];
      if (field.use == ColumnUse::kFile)
        look_at_file(row, i, is_first_image, inspection);
      else
        inspection.bytes += field.use == ColumnUse::kText ? format_.cell(row, i).size() : 1;
    }
  }

  void look_at_file(std::uint64_t row, std::size_t i, bool& is_first_image, Inspection& inspection) {
    const FieldKind kind = format_.choices_[i].description.kind;
    const std::string cell(format_.cell(row, i));
    const auto path = file_of(*options_.storage, format_.find_sample(row), cell);
    const auto stat = path ? options_.storage->stat(*path) : std::unexpected(path.error());
    if (!stat)
      return report("missing_file", Severity::kError, row, ": '" + cell + "' cannot be read: " + stat.error().what);
    if (stat->bytes == 0 && !may_be_empty(kind))
      return report("empty_file", Severity::kError, row, ": '" + cell + "' is empty");
    inspection.bytes += stat->bytes;
    if (kind != FieldKind::kImage || !std::exchange(is_first_image, false)) return;
    const bool is_first = inspection.largest_bytes == 0;
    inspection.smallest_bytes = is_first ? stat->bytes : std::min(inspection.smallest_bytes, stat->bytes);
    inspection.largest_bytes = std::max(inspection.largest_bytes, stat->bytes);
  }

  const TableFormat& format_;
  const OpenOptions& options_;
  std::vector<std::uint64_t> of_classes_, of_fields_;
  Findings findings_;
};

Result<Inspection> TableFormat::inspect(const std::string& source, const TableLocations& locations,
                                        const OpenOptions& options) {
  Inspection inspection;
  inspection.format = "table";
  inspection.shards = locations.files.size();
  const auto opened = open(source, locations, options);
  if (opened) {
    TableLook(static_cast<const TableFormat&>(**opened), options).look(inspection);
    return inspection;
  }
  const Error& error = opened.error();
  Findings findings;
  findings.add({error.code == ErrorCode::kData     ? "damaged_table"
                : error.code == ErrorCode::kConfig ? "no_field"
                                                   : "unreadable_file",
                Severity::kError,
                error.where.shard.empty() ? locations.files.front().path : error.where.shard,
                "",
                {},
                error.what});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
