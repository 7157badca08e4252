// SPDX-License-Identifier: Apache-2.0
#include "format/tar_inspection.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "format/each_shard.h"
#include "format/field_choice.h"
#include "format/finding.h"
#include "format/shard.h"
#include "format/shard_scan.h"

namespace feedline::format {
namespace {

struct Looked {
  std::optional<ShardScan> scan;  // nullopt: it could not be read at all
  Findings findings;
};

// What the storage or the decompression says becomes a finding too: the other shards are still worth a look.
Looked look(const OpenOptions& options, const std::string& name) {
  Looked looked;
  const auto give_up = [&](const Error& error) {
    const bool damaged = error.code == ErrorCode::kData;
    looked.findings.add({damaged ? "damaged_gzip" : "unreadable_file", Severity::kError, name, "", error.where.offset,
                         damaged ? error.what : error.message()});
  };
  const auto file = locate_shard(options.storage, name);
  if (!file) return give_up(file.error()), std::move(looked);
  const auto reader = file->storage->open(file->path, storage::Access::kRead);
  if (!reader) return give_up(reader.error()), std::move(looked);
  auto scan = scan_shard(**reader, file->stat, name, looked.findings);
  if (!scan) return give_up(scan.error()), std::move(looked);
  if (scan->index.samples() == 0 && !looked.findings.first_error())
    looked.findings.add({"no_samples", Severity::kWarning, name, "", {}, "the tar file holds no samples"});
  looked.scan = std::move(*scan);
  return looked;
}

// Sizes and missing fields of one shard's samples.
void count_samples(const ShardIndex& index, const std::vector<FieldChoice>& fields, const std::string& shard,
                   Inspection& inspection, Findings& findings) {
  const FieldFinder finder(index, fields);
  for (std::uint64_t sample = 0; sample < index.samples(); ++sample) {
    const std::string key(index.key(sample));
    bool is_first_image = true;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const FieldDescription& field = fields[i].description;
      const auto member = finder.find(sample, i);
      if (!member) {
        findings.add({"missing_field", Severity::kError, shard, key, index.member(index.first_member(sample)).offset,
                      "sample '" + key + "' has no member for the field '" + field.name + "'"});
        continue;
      }
      if (member->bytes == 0)
        findings.add({"empty_file", Severity::kError, shard, key, member->offset,
                      "the member for the field '" + field.name + "' is an empty file"});
      inspection.bytes += member->bytes;
      if (field.kind != FieldKind::kImage || !std::exchange(is_first_image, false)) continue;
      const bool none_yet = inspection.largest_bytes == 0 && inspection.smallest_bytes == 0;
      inspection.smallest_bytes = none_yet ? member->bytes : std::min(inspection.smallest_bytes, member->bytes);
      inspection.largest_bytes = std::max(inspection.largest_bytes, member->bytes);
    }
  }
}

}  // namespace

Result<Inspection> inspect_tar(const std::string& source, const std::vector<std::string>& shards,
                               const OpenOptions& options) {
  const bool are_default = options.fields.empty();
  auto fields = are_default ? Result<std::vector<FieldChoice>>(default_fields()) : parse_fields(options.fields);
  if (!fields) return std::unexpected(std::move(fields).error());
  FEEDLINE_TRY(auto looked, each_shard<Looked>(shards.size(), [&](std::size_t i) -> Result<Looked> {
                 return look(options, shards[i]);
               }));
  Inspection inspection;
  inspection.format = "tar";
  inspection.shards = shards.size();
  Findings findings;
  std::map<std::string, std::uint64_t> extensions;
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
      if (looked[i].scan) count_samples(looked[i].scan->index, *fields, shards[i], inspection, findings);
  } else {
    findings.add({"no_field", Severity::kError, source, "", {}, present.error().what});
  }
  for (const FieldChoice& field : *fields) inspection.fields.push_back(field.description.name);
  for (const auto& [extension, count] : extensions) inspection.extensions.push_back({extension, count});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
