// SPDX-License-Identifier: Apache-2.0
#include "format/folder/pattern_format.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/field_kind.h"
#include "format/finding.h"

namespace feedline::format {
namespace {

using Keys = std::vector<std::string>;

// Deeper than data is nested: a link to a parent folder.
constexpr int kMostDepth = 64;

// Files below `folder` that are the field's, their keys in `keys`. path: of `inner`, relative to `folder`.
Result<void> list_keys(const storage::Storage& storage, const FieldPattern& pattern, const std::string& folder,
                       const std::string& inner, int depth, Keys& keys) {
  if (depth > kMostDepth)
    return config_error("'" + folder + "/" + inner + "' is nested over " + std::to_string(kMostDepth) + " levels deep");
  FEEDLINE_TRY(const auto entries, storage.list(inner.empty() ? folder : folder + "/" + inner));
  for (const storage::Entry& entry : entries) {
    const std::string path = inner.empty() ? entry.name : inner + "/" + entry.name;
    if (entry.is_directory) {
      FEEDLINE_CHECK_OK(list_keys(storage, pattern, folder, path, depth + 1, keys));
    } else if (const auto key = pattern.key_of(path)) {
      keys.emplace_back(*key);
    }
  }
  return {};
}

// The keys of every field, sorted.
Result<std::vector<Keys>> list_all(const std::string& source, const OpenOptions& options,
                                   std::span<const FieldPattern> patterns) {
  std::vector<Keys> all;
  for (const FieldPattern& pattern : patterns) {
    Keys& keys = all.emplace_back();
    const std::string folder = pattern.folder.empty() ? source : source + "/" + pattern.folder;
    FEEDLINE_CHECK_OK(list_keys(*options.storage, pattern, folder, "", 0, keys));
    if (keys.empty())
      return config_error("no file for the field '" + pattern.description.name + "': none is called '" +
                          pattern.path_of("{key}") + "' below '" + source + "'");
    std::ranges::sort(keys);
  }
  return all;
}

std::string without_end_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

Result<std::shared_ptr<const RecordFormat>> PatternFormat::open(const std::string& source, const OpenOptions& options) {
  FEEDLINE_TRY(auto patterns, parse_patterns(options.fields));
  const std::string root = without_end_slashes(source);
  FEEDLINE_TRY(const auto keys, list_all(root, options, patterns));
  const auto format = std::shared_ptr<PatternFormat>(new PatternFormat(root, options, std::move(patterns)));
  format->take_samples(keys);
  if (format->size() > 0) return format;
  return config_error("missing=\"skip\" leaves no sample: each lacks one of the fields");
}

PatternFormat::PatternFormat(std::string source, OpenOptions options, std::vector<FieldPattern> patterns)
    : source_(std::move(source)), options_(std::move(options)), patterns_(std::move(patterns)) {
  for (const FieldPattern& pattern : patterns_) fields_.push_back(pattern.description);
}

void PatternFormat::take_samples(std::span<const Keys> keys) {
  for (const Keys& some : keys) {
    Keys joined;
    std::ranges::set_union(keys_, some, std::back_inserter(joined));
    keys_ = std::move(joined);
  }
  const bool skips = options_.missing == Missing::kSkip;
  for (std::size_t field = 0; skips && field < keys.size(); ++field) {
    Keys common;
    std::ranges::set_intersection(keys_, keys[field], std::back_inserter(common));
    left_out_ += keys_.size() - common.size();
    keys_ = std::move(common);
  }
  for (std::size_t field = 0; field < keys.size(); ++field) {
    std::vector<bool>& lacks = lacks_.emplace_back();
    if (skips || keys[field].size() == keys_.size()) continue;
    for (const std::string& key : keys_) lacks.push_back(!std::ranges::binary_search(keys[field], key));
    fields_[field].may_be_absent = options_.missing == Missing::kNone;
  }
  fingerprint_ = compute_fingerprint();
}

std::uint64_t PatternFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(std::string_view("patterns"));
  if (options_.missing != Missing::kError) fingerprint.add(options_.missing == Missing::kSkip ? "skip" : "none");
  for (const FieldPattern& pattern : patterns_) {
    fingerprint.add(pattern.description.name);
    fingerprint.add(pattern.path_of("{key}"));
  }
  for (const std::string& key : keys_) fingerprint.add(key);
  for (const auto& lacks : lacks_)
    for (std::size_t i = 0; i < lacks.size(); ++i)
      if (lacks[i]) fingerprint.add(std::uint64_t{i});
  return fingerprint.value();
}

std::string PatternFormat::summary() const {
  if (left_out_ == 0) return {};
  return std::to_string(left_out_) + " samples left out, as they lack a field";
}

std::string PatternFormat::file(std::uint64_t index, std::size_t field) const {
  return source_ + "/" + patterns_[field].path_of(keys_[index]);
}

Where PatternFormat::where(std::uint64_t index) const {
  FEEDLINE_CHECK(index < size());
  std::size_t field = 0;
  while (field + 1 < fields_.size() && !has(index, field)) ++field;
  Where where;
  where.dataset = source_;
  where.shard = file(index, field);
  where.key = keys_[index];
  where.record = index;
  return where;
}

std::unexpected<Error> PatternFormat::failed(std::uint64_t index, std::size_t field, Error error) const {
  std::string stage = std::move(error.where.stage);
  error.where = where(index);
  error.where.shard = file(index, field);
  error.where.stage = std::move(stage);
  error.what = "field '" + fields_[field].name + "': " + error.what;
  return std::unexpected(std::move(error));
}

// All files of a sample are opened first, so that one buffer holds them.
Result<void> PatternFormat::read(std::uint64_t index, memory::Record& record) const {
  FEEDLINE_CHECK(index < size());
  record.pin.reset();
  record.fields.assign(fields_.size(), {});
  record.bytes_read = 0;
  std::vector<std::unique_ptr<storage::Reader>> readers(fields_.size());
  std::vector<std::uint64_t> bytes(fields_.size());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (!has(index, i) && !fields_[i].may_be_absent)
      return failed(index, i, data_error("the sample has no file for it", "format").error());
    record.fields[i].absent = !has(index, i);
    if (record.fields[i].absent) continue;
    auto reader = options_.storage->open(file(index, i), storage::Access::kRead);
    if (!reader) return failed(index, i, std::move(reader).error());
    const auto stat = (*reader)->stat();
    if (!stat) return failed(index, i, stat.error());
    if (stat->bytes == 0 && !may_be_empty(fields_[i].kind))
      return failed(index, i, data_error("an empty file", "format").error());
    readers[i] = std::move(*reader);
    if (stat->bytes > record.most_bytes || (total += bytes[i] = stat->bytes) > record.most_bytes)
      return failed(index, i, memory::too_large(total + stat->bytes, record.most_bytes).error());
  }
  FEEDLINE_TRY(std::span<std::byte> room, record.storage.make_room(total, record.most_bytes));
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (!readers[i]) continue;
    if (auto read = read_field(index, i, room.first(bytes[i]), *readers[i], record); !read) return read;
    room = room.subspan(bytes[i]);
  }
  return {};
}

Result<void> PatternFormat::read_field(std::uint64_t index, std::size_t field, std::span<std::byte> room,
                                       const storage::Reader& reader, memory::Record& record) const {
  const auto got = reader.read_at(0, room);
  if (!got) return failed(index, field, got.error());
  if (*got < room.size())
    return failed(index, field, storage_error("the file became shorter while it was read", 0).error());
  record.fields[field].bytes = room;
  record.bytes_read += room.size();
  if (fields_[field].kind != FieldKind::kInteger) return {};
  const auto value = parse_integer(room);
  if (!value) return failed(index, field, data_error("not an integer", "format").error());
  record.fields[field].value = *value;
  return {};
}

Result<Inspection> PatternFormat::inspect() const { return inspect(source_, options_); }

Result<Inspection> PatternFormat::inspect(const std::string& source, const OpenOptions& given) {
  OpenOptions options = given;
  options.missing = Missing::kError;  // to tell all
  FEEDLINE_TRY(auto patterns, parse_patterns(options.fields));
  const std::string root = without_end_slashes(source);
  FEEDLINE_TRY(const auto keys, list_all(root, options, patterns));
  PatternFormat format(root, options, std::move(patterns));
  format.take_samples(keys);
  Inspection inspection;
  inspection.format = "folder";
  inspection.samples = format.size();
  Findings findings;
  const Severity missing = given.missing == Missing::kError ? Severity::kError : Severity::kWarning;
  for (std::size_t field = 0; field < format.fields_.size(); ++field) {
    const FieldDescription& description = format.fields_[field];
    inspection.fields.push_back(description.name);
    inspection.extensions.push_back(
        {format.patterns_[field].behind.substr(format.patterns_[field].behind.rfind('.') + 1), keys[field].size()});
    for (std::uint64_t i = 0; i < format.size(); ++i) {
      const std::string path = format.file(i, field);
      if (!format.has(i, field)) {
        findings.add({"missing_field",
                      missing,
                      path,
                      format.keys_[i],
                      {},
                      "sample '" + format.keys_[i] + "' has no file for the field '" + description.name + "'"});
        continue;
      }
      const auto stat = options.storage->stat(path);
      if (!stat) {
        findings.add({"unreadable_file", Severity::kError, path, format.keys_[i], {}, stat.error().message()});
        continue;
      }
      if (stat->bytes == 0 && !may_be_empty(description.kind))
        findings.add({"empty_file", Severity::kError, path, format.keys_[i], {}, "an empty file"});
      inspection.bytes += stat->bytes;
      if (description.kind != FieldKind::kImage) continue;
      const bool is_first = inspection.largest_bytes == 0;
      inspection.smallest_bytes = is_first ? stat->bytes : std::min(inspection.smallest_bytes, stat->bytes);
      inspection.largest_bytes = std::max(inspection.largest_bytes, stat->bytes);
    }
  }
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
