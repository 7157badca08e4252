// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "format/checksum.h"
#include "format/field_kind.h"
#include "format/rows/row_columns.h"
#include "format/rows/rows_format.h"
#include "format/shards/finding.h"

namespace feedline::format {

// Collects statistics over the rows, and checks that each file exists.
class RowsLook {
 public:
  explicit RowsLook(const RowsFormat& format)
      : format_(format), of_classes_(format.classes().size()), files_(format.fields().size()) {}

  Inspection look() {
    for (std::uint64_t row = 0; row < format_.size(); ++row) look_at(row);
    inspection_.format = format_.name();
    inspection_.samples = format_.size();
    for (std::size_t i = 0; i < format_.fields_.size(); ++i) inspection_.fields.push_back(format_.fields_[i].name);
    for (std::size_t i = 0; i < files_.size(); ++i)
      if (files_[i] > 0) inspection_.extensions.push_back({format_.fields_[i].name, files_[i]});
    for (std::size_t i = 0; i < of_classes_.size(); ++i)
      inspection_.classes.push_back({format_.classes()[i], of_classes_[i]});
    inspection_.findings = findings_.to_inspection();
    return std::move(inspection_);
  }

 private:
  void look_at(std::uint64_t row) {
    bool is_first_image = true;
    std::string room, values;  // values: those of all fields that are not files, to compare rows with the same file
    for (std::size_t i = 0; i < format_.fields_.size(); ++i) {
      memory::Record::Field value;
      if (!format_.find_value(row, i, value, room)) continue;
      if (format_.fields_[i].kind == FieldKind::kInteger && format_.fields_[i].name == "label" &&
          static_cast<std::uint64_t>(value.value) < of_classes_.size())
        ++of_classes_[static_cast<std::size_t>(value.value)];
      values.append(std::to_string(value.value)).append(1, ' ');
      values.append(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
      inspection_.bytes += value.bytes.empty() ? 1 : value.bytes.size();
    }
    for (std::size_t i = 0; i < format_.fields_.size(); ++i)
      if (format_.file_column(row, i) != nullptr) look_at_file(row, i, values, is_first_image);
  }

  void look_at_file(std::uint64_t row, std::size_t i, const std::string& values, bool& is_first_image) {
    const Where where = format_.where_field(row, i);
    const std::string& path = where.shard;
    const auto report = [&](std::string_view code, Severity severity, const std::string& what) {
      findings_.add({code, severity, path, where.key, {}, format_.row_text(row, i) + ": " + what});
    };
    std::string object, room;
    const auto found = format_.find_object(*format_.file_column(row, i), row, object, room);
    const auto stat = found ? format_.storage_->stat(object) : std::unexpected(found.error());
    if (!stat) return report("missing_file", Severity::kError, stat.error().what);
    const FieldKind kind = format_.fields_[i].kind;
    if (stat->bytes == 0 && !may_be_empty(kind))
      return report("empty_file", Severity::kError, "'" + path + "' is empty");
    inspection_.bytes += stat->bytes;
    ++files_[i];
    if (kind != FieldKind::kImage || !std::exchange(is_first_image, false)) return;
    const bool is_first = inspection_.largest_bytes == 0;
    inspection_.smallest_bytes = is_first ? stat->bytes : std::min(inspection_.smallest_bytes, stat->bytes);
    inspection_.largest_bytes = std::max(inspection_.largest_bytes, stat->bytes);
    const auto [seen, is_new] = first_rows_.emplace(path, Seen{row, xxh3(std::as_bytes(std::span(values)))});
    if (is_new || seen->second.values == xxh3(std::as_bytes(std::span(values)))) return;
    report("other_label", Severity::kWarning,
           "'" + path + "' is also in row " + std::to_string(seen->second.row) +
               ", with a different label or other values");
  }

  struct Seen {
    std::uint64_t row;
    std::uint64_t values;  // a hash
  };

  const RowsFormat& format_;
  std::vector<std::uint64_t> of_classes_;
  std::vector<std::uint64_t> files_;                  // number found in each field
  std::unordered_map<std::string, Seen> first_rows_;  // of each image
  Inspection inspection_;
  Findings findings_;
};

Result<Inspection> RowsFormat::inspect() const { return RowsLook(*this).look(); }

}  // namespace feedline::format
