// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/tfrecord_inspection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "format/shards/each_shard.h"
#include "format/shards/finding.h"
#include "format/shards/record_keys.h"
#include "format/tfrecord/feature_reader.h"
#include "format/tfrecord/foreign_index.h"
#include "format/tfrecord/record_frame.h"
#include "format/tfrecord/record_scan.h"
#include "format/tfrecord/record_survey.h"
#include "format/tfrecord/tfrecord_format.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

struct Scanned {
  std::optional<ShardFile> file;  // nullopt if it could not be read at all
  std::vector<std::uint64_t> ends;
  Findings findings;
};

struct Looked {
  FeatureSurvey survey;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> smallest, largest;  // of the first image
  Findings findings;
};

void add_unreadable(Findings& findings, const std::string& name, const Error& error) {
  const bool damaged = error.code == ErrorCode::kData;
  findings.add({damaged ? "damaged_gzip" : "unreadable_file", Severity::kError, name, "", error.where.offset,
                damaged ? error.what : error.message()});
}

// Reports indexes of other programs that do not match the shard.
void compare_foreign(const storage::Storage& storage, const storage::Reader& reader, Scanned& scanned) {
  const ForeignIndexes foreign = find_foreign_index(storage, *scanned.file, reader);
  for (const std::string& why : foreign.not_fitting)
    scanned.findings.add({"foreign_index", Severity::kWarning, scanned.file->name, "", {}, why});
  if (foreign.found && foreign.found->ends != scanned.ends)
    scanned.findings.add({"foreign_index",
                          Severity::kError,
                          scanned.file->name,
                          "",
                          {},
                          "the index '" + foreign.found->path +
                              "' lists records that differ from the shard's: remove it, or create it again"});
}

// Adds storage and decompression errors as findings, so that the other shards are inspected.
Scanned scan(const OpenOptions& options, const std::string& name) {
  Scanned scanned;
  const auto give_up = [&](const Error& error) { add_unreadable(scanned.findings, name, error); };
  auto file = locate_records(options.storage, name);
  if (!file) return give_up(file.error()), std::move(scanned);
  const auto reader = file->storage->open(file->path, storage::Access::kRead);
  if (!reader) return give_up(reader.error()), std::move(scanned);
  auto ends = scan_records(**reader, file->version.bytes, name, scanned.findings);
  if (!ends) return give_up(ends.error()), std::move(scanned);
  if (ends->empty() && !scanned.findings.first_error())
    scanned.findings.add({"no_samples", Severity::kWarning, name, "", {}, "the file has no records"});
  scanned.file = std::move(*file);
  scanned.file->reader.reset();
  scanned.ends = std::move(*ends);
  if (!scanned.findings.first_error()) compare_foreign(*options.storage, **reader, scanned);
  return scanned;
}

// Inspects the records of a shard that could be scanned.
class ShardLook {
 public:
  ShardLook(const ShardFile& file, std::string stem, const FeatureReader& reader, Missing missing)
      : file_(file), stem_(std::move(stem)), reader_(reader), missing_(missing) {
    record_.most_bytes = memory::usual_sample_limit();
  }

  Result<Looked> look(std::span<const std::uint64_t> ends) {
    FEEDLINE_TRY(const auto reader, file_.storage->open_version(file_.path, storage::Access::kRead, file_.version));
    std::uint64_t begin = 0;
    for (number_ = 0; number_ < ends.size(); ++number_) {
      offset_ = begin;
      const std::uint64_t bytes = ends[number_] - std::exchange(begin, ends[number_]);
      const auto room = room_.make_room(bytes, record_.most_bytes);
      if (!room) {
        report("too_large", Severity::kError, room.error().what);
        continue;
      }
      FEEDLINE_TRY(const std::size_t got, reader->read_at(offset_, *room));
      if (got < room->size()) return storage_error("'" + file_.name + "' became shorter while it was read", 0);
      take(*room);
    }
    return std::move(looked_);
  }

 private:
  void report(std::string_view code, Severity severity, std::string text) {
    looked_.findings.add({code, severity, file_.name, record_key(stem_, number_), offset_, std::move(text)});
  }

  void take(Bytes record) {
    if (!has_good_data(record))
      return report("bad_record", Severity::kError,
                    "record " + std::to_string(number_) + ": the checksum of the data is wrong: the record is damaged");
    const Bytes data = data_in(record);
    looked_.survey.add(data);
    if (auto read = reader_.read(data, record_); !read) {
      const bool lacks = read.error().code == "missing_field" && missing_ != Missing::kError;
      return report(read.error().code, lacks ? Severity::kWarning : Severity::kError,
                    "record " + std::to_string(number_) + ": " + read.error().error.what);
    }
    bool is_first_image = true;
    for (std::size_t i = 0; i < record_.fields.size(); ++i) {
      const FeatureChoice& field = reader_.fields()[i];
      const bool is_number = field.description.kind == FieldKind::kInteger && field.values != ValueKind::kBytes;
      const std::uint64_t bytes = is_number ? 1 : record_.fields[i].bytes.size();
      looked_.bytes += bytes;
      if (field.description.kind != FieldKind::kImage || !std::exchange(is_first_image, false)) continue;
      looked_.smallest = std::min(looked_.smallest.value_or(bytes), bytes);
      looked_.largest = std::max(looked_.largest.value_or(0), bytes);
    }
  }

  const ShardFile& file_;
  const std::string stem_;
  const FeatureReader& reader_;
  const Missing missing_;
  memory::ByteBuffer room_;
  memory::Record record_;
  Looked looked_;
  std::uint64_t number_ = 0, offset_ = 0;
};

// Chooses fields like open(), based on the records that could be scanned.
Result<std::vector<FeatureChoice>> fields_of(const std::vector<Scanned>& scanned, const OpenOptions& options) {
  RecordShards shards;
  for (const Scanned& one : scanned)
    if (one.file) shards.push_back(RecordShard::of(*one.file, one.ends));
  FEEDLINE_TRY(auto chosen, choose_fields(shards, options));
  return std::move(chosen.fields);
}

void add_unread(const std::string& source, const FeatureSurvey& survey, const std::vector<FeatureChoice>& fields,
                Findings& findings) {
  for (const auto& [name, seen] : survey.features()) {
    const auto takes = [&](const FeatureChoice& field) { return std::ranges::count(field.alternatives, name) > 0; };
    if (seen.records == 0 || std::ranges::any_of(fields, takes)) continue;
    findings.add({"unread_feature",
                  Severity::kNote,
                  source,
                  "",
                  {},
                  "the feature '" + name + "' (" + (seen.is_list ? "steps of " : "") + std::string(name_of(seen.kind)) +
                      ") of " + std::to_string(seen.records) +
                      " records is not read: no field uses it; select it with fields="});
  }
}

// Totals for the records in all shards.
Result<void> look_at_records(const std::string& source, const std::vector<std::string>& shards,
                             const std::vector<Scanned>& scanned, const std::vector<FeatureChoice>& fields,
                             Missing missing, Inspection& inspection, Findings& findings) {
  const FeatureReader reader(fields);
  const auto stems = stems_of(shards);
  auto looked = each_shard<Looked>(shards.size(), [&](std::size_t i) -> Result<Looked> {
    if (!scanned[i].file) return Looked{};
    return ShardLook(*scanned[i].file, stems[i], reader, missing).look(scanned[i].ends);
  });
  if (!looked) return std::unexpected(std::move(looked).error());
  FeatureSurvey survey;
  std::optional<std::uint64_t> smallest;
  for (Looked& one : *looked) {
    survey.add(one.survey);
    findings.add(std::move(one.findings));
    inspection.bytes += one.bytes;
    if (one.smallest) smallest = std::min(smallest.value_or(*one.smallest), *one.smallest);
    inspection.largest_bytes = std::max(inspection.largest_bytes, one.largest.value_or(0));
  }
  inspection.smallest_bytes = smallest.value_or(0);
  for (const auto& [name, seen] : survey.features())
    if (seen.records > 0) inspection.extensions.push_back({name, seen.records});
  add_unread(source, survey, fields, findings);
  return {};
}

}  // namespace

Result<Inspection> inspect_tfrecord(const std::string& source, const std::vector<std::string>& shards,
                                    const OpenOptions& options) {
  FEEDLINE_TRY(auto scanned, each_shard<Scanned>(shards.size(), [&](std::size_t i) -> Result<Scanned> {
                 return scan(options, shards[i]);
               }));
  Inspection inspection;
  inspection.format = "tfrecord";
  inspection.shards = shards.size();
  Findings findings;
  bool are_some_readable = false;
  for (Scanned& shard : scanned) {
    findings.add(std::move(shard.findings));
    inspection.samples += shard.ends.size();
    are_some_readable = are_some_readable || shard.file;
  }
  if (const auto fields = fields_of(scanned, options)) {
    for (const FeatureChoice& field : *fields) inspection.fields.push_back(field.description.name);
    FEEDLINE_CHECK_OK(look_at_records(source, shards, scanned, *fields, options.missing, inspection, findings));
  } else if (are_some_readable && !findings.first_error()) {  // otherwise the findings have the errors
    findings.add({"no_field", Severity::kError, source, "", {}, fields.error().what});
  }
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
