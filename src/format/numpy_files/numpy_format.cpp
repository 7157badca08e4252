// SPDX-License-Identifier: Apache-2.0
#include "format/numpy_files/numpy_format.h"

#include <optional>
#include <string_view>

#include "format/arrays/array_format.h"
#include "format/arrays/array_records.h"
#include "format/combined/joined_format.h"
#include "format/field_kind.h"
#include "format/shards/each_shard.h"
#include "format/shards/finding.h"

namespace feedline::format {
namespace {

// A field that the user selected.
struct Spec {
  std::string name, array;
  std::optional<FieldKind> kind;
};

Result<Spec> parse_spec(const std::string& text) {
  std::string_view rest = text;
  Spec spec;
  FEEDLINE_TRY(spec.kind, take_kind(rest));
  const std::size_t equals = rest.find('=');
  if (equals == 0) return config_error("fields: an empty name in '" + text + "'");
  if (equals != rest.npos) spec.name = rest.substr(0, equals);
  spec.array = equals == rest.npos ? rest : rest.substr(equals + 1);
  if (spec.name.empty()) spec.name = spec.array;
  return spec;
}

// Returns "features" for "data/features-00.npy", one of several files.
std::string stem_of(const std::string& path, bool is_numbered) {
  std::string stem = path.substr(path.rfind('/') + 1);
  stem.resize(std::min(stem.find('?'), stem.size()));
  if (const std::size_t dot = stem.rfind('.'); dot != stem.npos && dot > 0) stem.resize(dot);
  if (is_numbered) stem.resize(stem.find_last_not_of("0123456789-_.") + 1);
  return stem.empty() ? "x" : stem;
}

std::string names_of(const std::vector<NamedArray>& arrays) {
  std::string names;
  for (const NamedArray& array : arrays) names += (names.empty() ? "" : ", ") + array.name;
  return names;
}

// Returns the selected arrays of a file, with the names and kinds of their fields.
Result<std::vector<NamedArray>> choose(std::vector<NamedArray> arrays, const std::vector<std::string>& specs,
                                       const std::string& stem) {
  const bool is_alone = arrays.size() == 1 && arrays.front().name.empty();
  if (is_alone) arrays.front().name = stem;
  if (specs.empty()) return arrays;
  std::vector<NamedArray> chosen;
  for (const std::string& text : specs) {
    FEEDLINE_TRY(const Spec spec, parse_spec(text));
    auto found = std::ranges::find(arrays, spec.array, &NamedArray::name);
    // an array without a name gets the name that the user chose
    if (is_alone && specs.size() == 1) found = arrays.begin();
    if (found == arrays.end())
      return config_error("fields: there is no array '" + spec.array + "'; the arrays are " + names_of(arrays));
    NamedArray array = *found;
    if (!spec.name.empty()) array.name = spec.name;
    if (spec.kind) array.kind = format::name_of(*spec.kind);
    chosen.push_back(std::move(array));
  }
  return chosen;
}

struct Part {
  std::string path;
  std::uint64_t rows = 0, bytes = 0;
  std::shared_ptr<const Format> format;
  std::vector<UnopenedColumn> unopened;
};

// Describes an array that was not opened. `rows` is the number of rows of the opened arrays.
UnopenedColumn unopened_column(const ArrayFile::Other& other, std::uint64_t rows) {
  UnopenedColumn column{other.name, "", "not in fields=", ""};
  if (!other.header) {
    column.reason = other.header.error().what;
    return column;
  }
  const ArraySpec& spec = other.header->spec;
  column.holds = std::string(name_of(spec.dtype)) + spec.shape.to_string();
  if (spec.shape.dims() > 0 && static_cast<std::uint64_t>(spec.shape[0]) == rows)
    column.spec = other.name;
  else
    column.reason = "the array does not have a row for each of the " + std::to_string(rows) + " samples";
  return column;
}

Result<Part> open_part(const std::string& path, const std::string& stem, const OpenOptions& options) {
  std::vector<std::string> wanted;
  for (const std::string& text : options.fields) {
    FEEDLINE_TRY(Spec spec, parse_spec(text));
    wanted.push_back(std::move(spec.array));
  }
  FEEDLINE_TRY(ArrayFile file, open_array_file(*options.storage, path, wanted));
  FEEDLINE_TRY(std::vector<NamedArray> arrays, choose(std::move(file.arrays), options.fields, stem));
  Part part{path, 0, 0, nullptr, {}};
  for (const NamedArray& array : arrays) part.bytes += array.rows * array.row.bytes();
  if (std::ranges::all_of(arrays, [](const NamedArray& array) { return array.kind == "array"; })) {
    FEEDLINE_TRY(part.format, ArrayFormat::make(std::move(arrays)));
  } else {
    FEEDLINE_TRY(part.format, ArrayRecords::make(std::move(arrays)));
  }
  part.rows = part.format->size();
  for (const ArrayFile::Other& other : file.others) part.unopened.push_back(unopened_column(other, part.rows));
  return part;
}

// Adds the file to an error.
Result<Part> open_named(const std::string& path, const std::string& stem, const OpenOptions& options) {
  auto part = open_part(path, stem, options);
  if (part) return part;
  Error error = std::move(part).error();
  if (error.where.shard.empty()) error.where.shard = path;
  return std::unexpected(std::move(error));
}

}  // namespace

Result<std::shared_ptr<const Format>> open_numpy(const std::string& source, const std::vector<std::string>& files,
                                                 const OpenOptions& options) {
  const std::string stem = stem_of(files.front(), files.size() > 1);
  FEEDLINE_TRY(const auto parts, each_shard<Part>(
                                     files.size(), [&](std::size_t i) { return open_named(files[i], stem, options); },
                                     shards_side_by_side(options.storage->is_remote())));
  NumpyFiles where{source, files, {}, parts.front().unopened};
  std::vector<std::shared_ptr<const Format>> formats;
  std::uint64_t rows = 0;
  for (const Part& part : parts) {
    where.ends.push_back(rows += part.rows);
    formats.push_back(part.format);
  }
  std::shared_ptr<const Format> arrays = formats.front();
  if (formats.size() > 1) {
    FEEDLINE_TRY(arrays, join(std::move(formats)));
  }
  if (auto all = rows_of(arrays)) return std::make_shared<NumpyRows>(std::move(all), std::move(where), options);
  return std::make_shared<NumpyRecords>(records_of(arrays), std::move(where), options);
}

Result<Inspection> inspect_numpy(const std::string& source, const std::vector<std::string>& files,
                                 const OpenOptions& options) {
  Inspection inspection;
  inspection.format = "numpy";
  inspection.shards = files.size();
  Findings findings;
  const std::string stem = stem_of(files.front(), files.size() > 1);
  std::vector<std::shared_ptr<const Format>> formats;
  for (const std::string& path : files) {
    auto part = open_named(path, stem, options);
    if (!part) {
      const bool is_data = part.error().code == ErrorCode::kData;
      findings.add({is_data                                   ? "damaged_array"
                    : part.error().code == ErrorCode::kConfig ? "no_field"
                                                              : "unreadable_file",
                    Severity::kError, path, "", part.error().where.offset, part.error().what});
      continue;
    }
    inspection.samples += part->rows;
    inspection.bytes += part->bytes;
    if (formats.empty())
      for (const UnopenedColumn& column : part->unopened) findings.add(to_finding(column, path));
    formats.push_back(part->format);
  }
  if (!formats.empty())
    for (const FieldDescription& field : formats.front()->fields()) inspection.fields.push_back(field.name);
  if (formats.size() > 1)
    if (const auto joined = join(std::move(formats)); !joined)
      findings.add({"no_field", Severity::kError, source, "", {}, joined.error().what});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
