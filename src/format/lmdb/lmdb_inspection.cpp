// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/lmdb_inspection.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "format/lmdb/lmdb_format.h"
#include "format/lmdb/value_reader.h"
#include "format/shards/each_shard.h"
#include "format/shards/finding.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

std::string shown(const KeyPattern& pattern) {
  const std::string digits = pattern.digits > 0 ? ":0" + std::to_string(pattern.digits) + "d" : "";
  return pattern.prefix + "{" + (pattern.is_number ? digits : "key") + "}" + pattern.suffix;
}

// Accumulates statistics over all samples of one database.
class DatabaseLook {
 public:
  DatabaseLook(const LmdbShard& shard, const LmdbLayout& layout, const LmdbSamples& samples, Missing missing,
               Inspection& inspection, Findings& findings)
      : shard_(shard),
        layout_(layout),
        samples_(samples),
        missing_(missing),
        reader_(layout),
        inspection_(inspection),
        findings_(findings) {
    record_.most_bytes = memory::usual_sample_limit();
  }

  Result<void> look(const std::shared_ptr<const storage::Reader>& reader) {
    std::vector<memory::ByteBuffer> rooms(layout_.sources.size());
    for (sample_ = 0; sample_ < samples_.size(); ++sample_) {
      std::vector<std::optional<Bytes>> values(layout_.sources.size());
      std::optional<Error> wrong;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto entry = samples_.entry(sample_, i);
        if (!entry) continue;
        ++counts_[i];
        auto value = shard_.read(reader, *entry, rooms[i], record_.most_bytes, record_.pin);
        if (!value && value.error().code == ErrorCode::kStorage) return std::unexpected(std::move(value).error());
        if (value)
          values[i] = *value;
        else
          wrong = std::move(value).error();
      }
      if (wrong)
        report("bad_value", Severity::kError, wrong->what);
      else
        take(values);
    }
    add_unread();
    return {};
  }

  const std::map<std::size_t, std::uint64_t>& counts() const { return counts_; }

 private:
  void report(std::string_view code, Severity severity, std::string text) {
    const auto entry = samples_.entry(sample_, 0);
    const auto offset = entry ? std::optional(shard_.index().location(*entry).offset) : std::nullopt;
    findings_.add({code, severity, shard_.name(), sample_key(layout_, shard_.index(), samples_, sample_), offset,
                   std::move(text)});
  }

  void take(const std::vector<std::optional<Bytes>>& values) {
    if (auto read = reader_.read(values, record_); !read) {
      const bool lacks = read.error().code == "missing_field" && missing_ != Missing::kError;
      return report(read.error().code, lacks ? Severity::kWarning : Severity::kError, read.error().error.what);
    }
    bool is_first_image = true;
    for (std::size_t i = 0; i < record_.fields.size(); ++i) {
      const LmdbField& field = layout_.fields[i];
      const memory::Record::Field& stored = record_.fields[i];
      const bool is_number = field.part == ValuePart::kDatumLabel;
      const std::uint64_t bytes = is_number ? 1
                                  : stored.pixels.data != nullptr
                                      ? static_cast<std::uint64_t>(stored.pixels.height) * stored.pixels.stride
                                      : stored.bytes.size();
      inspection_.bytes += bytes;
      if (field.description.kind != FieldKind::kImage || !std::exchange(is_first_image, false)) continue;
      inspection_.smallest_bytes = inspection_.largest_bytes == 0 ? bytes : std::min(inspection_.smallest_bytes, bytes);
      inspection_.largest_bytes = std::max(inspection_.largest_bytes, bytes);
    }
  }

  void add_unread() {
    std::uint64_t taken = 0;
    for (const auto& [source, count] : counts_) taken += count;
    const std::uint64_t unread = shard_.index().size() - std::min(taken, shard_.index().size());
    if (unread == 0 || (layout_.is_counted && unread == 1) || samples_.left_out() > 0) return;
    findings_.add(
        {"unread_key",
         Severity::kNote,
         shard_.name(),
         "",
         {},
         std::to_string(unread) + " entries are not read: no field matches their keys; select them with fields="});
  }

  const LmdbShard& shard_;
  const LmdbLayout& layout_;
  const LmdbSamples& samples_;
  const Missing missing_;
  const ValueReader reader_;
  Inspection& inspection_;
  Findings& findings_;
  memory::Record record_;
  std::map<std::size_t, std::uint64_t> counts_;  // number of entries, by source
  std::uint64_t sample_ = 0;
};

void add_error(Findings& findings, std::string_view code, const std::string& name, const Error& error) {
  findings.add({code, Severity::kError, name, error.where.key, error.where.offset, error.what});
}

// Inspects one database. Adds errors as findings, so that the remaining databases are inspected.
Result<void> look_at(const std::string& name, const OpenOptions& options, std::optional<LmdbLayout>& layout,
                     std::map<std::string, std::uint64_t>& counts, Inspection& inspection, Findings& findings) {
  auto file = locate_lmdb_file(options.storage, name);
  if (!file) return add_error(findings, "unreadable_file", name, file.error()), Result<void>();
  const std::shared_ptr<const storage::Reader> reader = file->reader;
  const std::string path = file->name;
  Findings damage;
  const auto walk = walk_lmdb(*reader, file->version.bytes, path, options.storage->is_remote(), damage);
  if (!walk) return add_error(findings, "damaged_page", path, walk.error()), Result<void>();
  inspection.samples += damage.first_error() != nullptr ? walk->table.size() : 0;
  const bool is_whole = damage.first_error() == nullptr;
  findings.add(std::move(damage));
  if (!is_whole) return {};
  const auto shard = LmdbShard::of(std::move(*file), *walk);
  memory::Record record;
  const ReadEntry read = entries_of(*shard, reader, record);
  if (!layout) {
    auto chosen = choose_layout(options.fields, shard->index(), read);
    if (!chosen) return add_error(findings, "no_field", path, chosen.error()), Result<void>();
    layout = std::move(*chosen);
    for (LmdbField& field : layout->fields) {
      field.description.may_be_absent = options.missing == Missing::kNone;
      inspection.fields.push_back(field.description.name);
    }
  }
  auto list = options.fields.empty() ? read_key_list(*options.storage, shard->file())
                                     : Result<std::optional<std::string>>(std::nullopt);
  if (!list) return add_error(findings, "unreadable_file", path, list.error()), Result<void>();
  const auto samples = LmdbSamples::of(*layout, shard->index(), options.missing, *list);
  if (!samples) return add_error(findings, "key_list_differs", path, samples.error()), Result<void>();
  if (const auto counted = check_count(*layout, shard->index(), *samples, read); !counted)
    add_error(findings, "count_differs", path, counted.error());
  inspection.samples += samples->size();
  DatabaseLook look(*shard, *layout, *samples, options.missing, inspection, findings);
  FEEDLINE_CHECK_OK(look.look(reader));
  for (const auto& [source, count] : look.counts()) counts[shown(layout->sources[source])] += count;
  return {};
}

}  // namespace

Result<Inspection> inspect_lmdb(const std::string& source, const std::vector<std::string>& databases,
                                const OpenOptions& options) {
  Inspection inspection;
  inspection.format = "lmdb";
  inspection.shards = databases.size();
  Findings findings;
  std::optional<LmdbLayout> layout;
  std::map<std::string, std::uint64_t> counts;
  for (const std::string& name : databases)
    FEEDLINE_CHECK_OK(look_at(name, options, layout, counts, inspection, findings));
  for (const auto& [name, count] : counts) inspection.extensions.push_back({name, count});
  if (inspection.samples == 0 && findings.first_error() == nullptr)
    findings.add({"no_samples", Severity::kWarning, source, "", {}, "the databases have no samples"});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
