// SPDX-License-Identifier: Apache-2.0
#include "format/folder/pattern_format.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/check.h"
#include "format/field_kind.h"
#include "format/short_list.h"

namespace feedline::format {
namespace {

Result<PatternIndex> list_patterns_of(const PatternQuestion& question, const OpenOptions& options) {
  const auto started = std::chrono::system_clock::now();
  FEEDLINE_TRY(const PatternListing listing, list_patterns(*options.storage, question.root, question.patterns));
  PatternIndex index = PatternIndex::build(question, listing);
  if (index.samples() == 0) return config_error("missing=\"skip\" omits all samples: each lacks one of the fields");
  const bool is_wanted = is_worth_keeping(*options.storage, index.samples(), options.index_directory);
  if (is_wanted && index.folders().is_settled(*options.storage, started))
    FEEDLINE_CHECK_OK(save_pattern_index(*options.storage, index, question, options.index_directory, options.notes));
  return index;
}

}  // namespace

Result<std::shared_ptr<const RecordFormat>> PatternFormat::open(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto patterns, parse_patterns(options.fields));
  PatternQuestion question{without_end_slashes(source), std::move(patterns), options.missing};
  auto index =
      load_pattern_index(*options.storage, question, options.index_directory, options.listing_age, options.notes);
  if (!index) {
    FEEDLINE_TRY(index, list_patterns_of(question, options));
  }
  return std::shared_ptr<const RecordFormat>(new PatternFormat(std::move(question), options, std::move(*index)));
}

PatternFormat::PatternFormat(PatternQuestion question, OpenOptions options, PatternIndex index)
    : OpenedFormat(question.root, std::move(options)), question_(std::move(question)), index_(std::move(index)) {
  fingerprint_ = index_.fingerprint();
  for (const FieldPattern& pattern : question_.patterns) fields_.push_back(pattern.description);
  for (std::size_t field = 0; field < fields_.size(); ++field)
    fields_[field].may_be_absent = options_.missing == Missing::kNone && !index_.have_all(field);
}

std::string PatternFormat::summary() const {
  std::string text = index_.is_mapped() ? persisted_listing_text(*options_.storage, index_.folders()) : "";
  if (index_.left_out() > 0)
    text += (text.empty() ? "" : "\n") + std::to_string(index_.left_out()) +
            " samples were omitted because they lack a field";
  return text;
}

std::string PatternFormat::file(std::uint64_t index, std::size_t field) const {
  return options_.storage->below(question_.root, question_.patterns[field].path_of(index_.key(index)));
}

Where PatternFormat::where(std::uint64_t index) const {
  FEEDLINE_CHECK(index < size());
  std::size_t field = 0;
  while (field + 1 < fields_.size() && !has(index, field)) ++field;
  return where_field(index, field);
}

Where PatternFormat::where_field(std::uint64_t index, std::size_t field) const {
  Where where;
  where.dataset = question_.root;
  where.shard = file(index, field);
  where.key = index_.key(index);
  where.record = index;
  return where;
}

std::unexpected<Error> PatternFormat::failed(std::uint64_t index, std::size_t field, Error error) const {
  error.what = "field '" + fields_[field].name + "': " + error.what;
  return failed_at(where_field(index, field), std::move(error));
}

// Checks that the sample has all required fields.
Result<void> PatternFormat::check_fields(std::uint64_t index) const {
  for (std::size_t i = 0; i < fields_.size(); ++i)
    if (!has(index, i) && !fields_[i].may_be_absent)
      return failed(index, i, data_error("the sample has no file for this field", "format").error());
  return {};
}

Result<void> PatternFormat::read(std::uint64_t index, memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  FEEDLINE_CHECK_OK(check_fields(index));
  record.more.resize(fields_.size() - 1);
  ShortList<std::span<const std::byte>> pieces(fields_.size());
  std::size_t count = 0;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (!has(index, i)) continue;
    if (leaves_unread(record, fields_[i].kind, *options_.storage)) {
      pieces.all()[count++] = {};
      continue;
    }
    memory::ByteBuffer& buffer = count == 0 ? record.storage : record.more[count - 1];
    const auto bytes = options_.storage->read_all(file(index, i), buffer, record.most_bytes - total);
    if (!bytes) return failed(index, i, bytes.error());
    total += bytes->size();
    pieces.all()[count++] = *bytes;
  }
  return accept(index, pieces.all().first(count), record);
}

// Reads one file.
Result<bool> PatternFormat::read_field(std::uint64_t index, std::size_t field, memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  FEEDLINE_CHECK_OK(check_fields(index));
  record.pin.reset();
  record.fields.assign(1, {});
  record.bytes_read = 0;
  record.fields.front().absent = !has(index, field);
  if (record.fields.front().absent) return true;
  const auto bytes = options_.storage->read_all(file(index, field), record.storage, record.most_bytes);
  if (!bytes) return failed(index, field, bytes.error());
  FEEDLINE_CHECK_OK(take_field(index, field, *bytes, record, record.fields.front()));
  return true;
}

Result<void> PatternFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  FEEDLINE_CHECK(index < size());
  FEEDLINE_CHECK_OK(check_fields(index));
  for (std::size_t i = 0; i < fields_.size(); ++i)
    if (has(index, i)) pieces.push_back({.reader = nullptr, .path = file(index, i)});
  return {};
}

Result<void> PatternFormat::accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                                   memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  record.pin.reset();
  record.fields.assign(fields_.size(), {});
  record.bytes_read = 0;
  std::size_t piece = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    record.fields[i].absent = !has(index, i);
    if (!record.fields[i].absent) FEEDLINE_CHECK_OK(take_field(index, i, pieces[piece++], record, record.fields[i]));
  }
  FEEDLINE_CHECK(piece == pieces.size());
  return {};
}

Result<void> PatternFormat::take_field(std::uint64_t index, std::size_t field, std::span<const std::byte> bytes,
                                       memory::Record& record, memory::Record::Field& value) const {
  if (bytes.data() == nullptr && leaves_unread(record, fields_[field].kind, *options_.storage)) {
    value.storage = options_.storage.get();
    value.object = file(index, field);
    return {};
  }
  if (bytes.empty() && !may_be_empty(fields_[field].kind))
    return failed(index, field, data_error("an empty file", "format").error());
  value.bytes = bytes;
  record.bytes_read += bytes.size();
  if (record.bytes_read > record.most_bytes)
    return failed(index, field, memory::too_large(record.bytes_read, record.most_bytes).error());
  if (fields_[field].kind != FieldKind::kInteger) return {};
  const auto number = parse_integer(bytes);
  if (!number) return failed(index, field, data_error(not_an_integer(bytes), "format").error());
  value.value = *number;
  return {};
}

Result<SampleFiles> PatternFormat::files(std::uint64_t index) const {
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  FEEDLINE_CHECK_OK(read(index, record));
  SampleFiles sample{std::string(index_.key(index)), std::nullopt, {}};
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const auto bytes = record.fields[i].bytes;
    if (!record.fields[i].absent)
      sample.files.push_back({question_.patterns[i].member_extension(), {bytes.begin(), bytes.end()}});
  }
  return sample;
}

Result<SampleFileSizes> PatternFormat::file_sizes(std::uint64_t index) const {
  FEEDLINE_CHECK_OK(check_fields(index));
  SampleFileSizes sizes{std::string(index_.key(index)), std::nullopt, {}};
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (!has(index, i)) continue;
    const auto stat = options_.storage->stat(file(index, i));
    if (!stat) return failed(index, i, stat.error());
    sizes.files.push_back({question_.patterns[i].member_extension(), stat->bytes});
  }
  return sizes;
}

Result<Inspection> PatternFormat::inspect(const std::string& source, const OpenOptions& given) {
  OpenOptions options = given;
  options.missing = Missing::kError;  // to report every missing field
  FEEDLINE_TRY(auto patterns, parse_patterns(options.fields));
  PatternQuestion question{without_end_slashes(source), std::move(patterns), options.missing};
  FEEDLINE_TRY(const PatternListing listing, list_patterns(*options.storage, question.root, question.patterns));
  PatternIndex index = PatternIndex::build(question, listing);
  const PatternFormat format(std::move(question), options, std::move(index));
  Inspection inspection;
  inspection.format = "folder";
  inspection.samples = format.size();
  Findings findings;
  const Severity missing = given.missing == Missing::kError ? Severity::kError : Severity::kWarning;
  for (std::size_t field = 0; field < format.fields_.size(); ++field) {
    const std::string& suffix = format.question_.patterns[field].suffix;
    inspection.fields.push_back(format.fields_[field].name);
    inspection.extensions.push_back({suffix.substr(suffix.rfind('.') + 1), listing.keys[field].size()});
    for (std::uint64_t i = 0; i < format.size(); ++i) format.inspect_file(i, field, missing, inspection, findings);
  }
  inspection.findings = findings.to_inspection();
  return inspection;
}

void PatternFormat::inspect_file(std::uint64_t index, std::size_t field, Severity missing, Inspection& inspection,
                                 Findings& findings) const {
  const FieldDescription& description = fields_[field];
  const std::string path = file(index, field), key(index_.key(index));
  if (!has(index, field)) {
    findings.add({"missing_field",
                  missing,
                  path,
                  key,
                  {},
                  "sample '" + key + "' has no file for the field '" + description.name + "'"});
    return;
  }
  const auto stat = options_.storage->stat(path);
  if (!stat) return findings.add({"unreadable_file", Severity::kError, path, key, {}, stat.error().message()});
  if (stat->bytes == 0 && !may_be_empty(description.kind))
    findings.add({"empty_file", Severity::kError, path, key, {}, "an empty file"});
  inspection.bytes += stat->bytes;
  if (description.kind != FieldKind::kImage) return;
  const bool is_first = inspection.largest_bytes == 0;
  inspection.smallest_bytes = is_first ? stat->bytes : std::min(inspection.smallest_bytes, stat->bytes);
  inspection.largest_bytes = std::max(inspection.largest_bytes, stat->bytes);
}

}  // namespace feedline::format
