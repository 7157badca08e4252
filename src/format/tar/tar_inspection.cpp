// SPDX-License-Identifier: Apache-2.0
#include "format/tar/tar_inspection.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "format/field_kind.h"
#include "format/shards/each_shard.h"
#include "format/shards/finding.h"
#include "format/tar/class_names.h"
#include "format/tar/field_choice.h"
#include "format/tar/listed_members.h"
#include "format/tar/shard.h"
#include "format/tar/shard_scan.h"

namespace feedline::format {
namespace {

struct Looked {
  std::optional<ShardScan> scan;  // nullopt if it could not be read at all
  std::vector<std::string> class_names;
  std::map<std::int64_t, std::uint64_t> labels;  // number of samples per value of the first integer field
  Findings findings;
};

// Parses all integers as a loader would, because only the data shows whether a label is an integer.
Result<void> look_at_labels(const storage::Reader& reader, const std::vector<FieldChoice>& fields,
                            const std::string& shard, Looked& looked) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;  // more than enough white space around a number
  const ShardIndex& index = looked.scan->index;
  const FieldFinder finder(index, fields);
  std::vector<std::byte> text;
  bool is_first = true;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].description.kind != FieldKind::kInteger) continue;
    for (std::uint64_t sample = 0; sample < index.samples(); ++sample) {
      const auto member = finder.find(sample, i);
      if (!member || member->bytes == 0) continue;  // already reported
      text.resize(static_cast<std::size_t>(std::min(member->bytes, kMostBytes)));
      FEEDLINE_TRY(const std::size_t read, reader.read_at(member->offset, text));
      const auto value = member->bytes > kMostBytes || read < text.size() ? std::nullopt : parse_integer(text);
      if (value && is_first) ++looked.labels[*value];
      if (!value)
        looked.findings.add(
            {"not_an_integer", Severity::kError, shard, std::string(index.key(sample)), member->offset,
             "the member for the field '" + fields[i].description.name + "' (." +
                 std::string(index.extension(member->extension)) +
                 ") is not an integer: write the class number, or read only the images, as in fields=\"jpg;png\""});
    }
    is_first = false;
  }
  return {};
}

// Adds storage and decompression errors as findings, so that the other shards are inspected.
Looked look(const OpenOptions& options, const std::vector<FieldChoice>& fields, const std::string& name) {
  Looked looked;
  const auto give_up = [&](const Error& error) {
    const bool damaged = error.code == ErrorCode::kData;
    looked.findings.add({damaged ? "damaged_gzip" : "unreadable_file", Severity::kError, name, "", error.where.offset,
                         damaged ? error.what : error.message()});
  };
  const auto file = locate_tar(options.storage, name);
  if (!file) return give_up(file.error()), std::move(looked);
  const auto reader = file->storage->open(file->path, storage::Access::kRead);
  if (!reader) return give_up(reader.error()), std::move(looked);
  auto scan = scan_shard(**reader, file->version, name, looked.findings);
  if (!scan) return give_up(scan.error()), std::move(looked);
  if (scan->index.samples() == 0 && !looked.findings.first_error())
    looked.findings.add({"no_samples", Severity::kWarning, name, "", {}, "the tar file has no samples"});
  looked.scan = std::move(*scan);
  if (!looked.findings.first_error())
    compare_listed_indexes(*options.storage, *file, looked.scan->index, looked.findings);
  if (auto read = look_at_labels(**reader, fields, name, looked); !read) give_up(read.error());
  if (auto names = stored_class_names(**reader)) looked.class_names = std::move(*names);
  return looked;
}

using Counts = std::map<std::string, std::uint64_t>;

// Counts the members of one sample that are not fields.
void count_unread(const ShardIndex& index, std::uint64_t sample, const std::vector<std::uint64_t>& taken,
                  Counts& unread) {
  for (std::uint64_t i = index.first_member(sample); i < index.first_member(sample + 1); ++i)
    if (const auto member = index.member(i); std::ranges::find(taken, member.offset) == taken.end())
      ++unread[std::string(index.extension(member.extension))];
}

void add_unread(const std::string& source, const Counts& unread, Findings& findings) {
  for (const auto& [extension, count] : unread)
    if (extension != "__bad__")  // marks its sample as bad if it is not empty
      findings.add({"unread_member",
                    Severity::kWarning,
                    source,
                    "",
                    {},
                    "members ending in ." + extension + " are not read, " + std::to_string(count) +
                        " in all: " + "no field uses them; select them with fields=, as in fields=(\"jpg\", \"cls\")"});
}

// Adds the sizes and missing fields of one shard's samples.
void count_samples(const ShardIndex& index, const std::vector<FieldChoice>& fields, Missing missing,
                   const std::string& shard, Inspection& inspection, Counts& unread, Findings& findings) {
  const FieldFinder finder(index, fields);
  std::vector<std::uint64_t> taken;
  for (std::uint64_t sample = 0; sample < index.samples(); ++sample) {
    const std::string key(index.key(sample));
    taken.clear();
    bool is_first_image = true;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const FieldDescription& field = fields[i].description;
      const auto member = finder.find(sample, i);
      if (!member) {
        findings.add({"missing_field", missing == Missing::kError ? Severity::kError : Severity::kWarning, shard, key,
                      index.member(index.first_member(sample)).offset,
                      "sample '" + key + "' has no member for the field '" + field.name + "'"});
        continue;
      }
      if (member->bytes == 0 && !may_be_empty(field.kind))
        findings.add({"empty_file", Severity::kError, shard, key, member->offset,
                      "the member for the field '" + field.name + "' is an empty file"});
      inspection.bytes += member->bytes;
      taken.push_back(member->offset);
      if (field.kind != FieldKind::kImage || !std::exchange(is_first_image, false)) continue;
      const bool none_yet = inspection.largest_bytes == 0 && inspection.smallest_bytes == 0;
      inspection.smallest_bytes = none_yet ? member->bytes : std::min(inspection.smallest_bytes, member->bytes);
      inspection.largest_bytes = std::max(inspection.largest_bytes, member->bytes);
    }
    count_unread(index, sample, taken, unread);
  }
}

// Counts the samples of each class, if the shards have class names.
void count_classes(const std::string& source, const std::vector<Looked>& shards, Inspection& inspection,
                   Findings& findings) {
  if (shards.empty()) return;
  const std::vector<std::string>& names = shards.front().class_names;
  std::map<std::int64_t, std::uint64_t> counts;
  for (const Looked& shard : shards) {
    if (shard.class_names != names)
      return findings.add({"class_names_differ",
                           Severity::kWarning,
                           source,
                           "",
                           {},
                           "the shards were packed with different class names, so the same label means different "
                           "classes: open the shards of each packing separately, or map the labels"});
    for (const auto& [label, count] : shard.labels) counts[label] += count;
  }
  for (std::size_t label = 0; label < names.size(); ++label)
    inspection.classes.push_back({names[label], counts[static_cast<std::int64_t>(label)]});
}

}  // namespace

Result<Inspection> inspect_tar(const std::string& source, const std::vector<std::string>& shards,
                               const OpenOptions& options) {
  const bool are_default = options.fields.empty();
  auto fields = are_default ? Result<std::vector<FieldChoice>>(default_fields()) : parse_fields(options.fields);
  if (!fields) return std::unexpected(std::move(fields).error());
  FEEDLINE_TRY(auto looked, each_shard<Looked>(shards.size(), [&](std::size_t i) -> Result<Looked> {
                 return look(options, *fields, shards[i]);
               }));
  Inspection inspection;
  inspection.format = "tar";
  inspection.shards = shards.size();
  Findings findings;
  Counts extensions, unread;
  std::vector<const ShardIndex*> indexes;
  for (Looked& shard : looked) {
    findings.add(std::move(shard.findings));
    if (!shard.scan) continue;
    indexes.push_back(&shard.scan->index);
    inspection.samples += shard.scan->index.samples();
    for (const auto& [extension, count] : shard.scan->extensions) extensions[extension] += count;
  }
  if (auto present = keep_present(*fields, are_default, indexes)) {
    fields = std::move(present);
    for (std::size_t i = 0; i < shards.size(); ++i)
      if (looked[i].scan)
        count_samples(looked[i].scan->index, *fields, options.missing, shards[i], inspection, unread, findings);
    add_unread(source, unread, findings);
    count_classes(source, looked, inspection, findings);
  } else if (!indexes.empty()) {  // otherwise no shard could be read, which is reported
    findings.add({"no_field", Severity::kError, source, "", {}, present.error().what});
  }
  for (const FieldChoice& field : *fields) inspection.fields.push_back(field.description.name);
  for (const auto& [extension, count] : extensions) inspection.extensions.push_back({extension, count});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
