// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/row_columns/columns_format.h"
#include "format/row_columns/schema_readers.h"
#include "format/shards/each_shard.h"
#include "format/shards/finding.h"
#include "format/shards/record_keys.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

struct Looked {
  std::uint64_t bytes = 0, samples = 0;
  std::optional<std::uint64_t> smallest, largest;  // of the first image
  Findings findings;
};

// Inspects the samples of a shard.
class ShardLook {
 public:
  // `reader` is nullptr if the shard cannot provide the fields.
  ShardLook(const ColumnShard& shard, std::string stem, const ColumnReader* reader)
      : shard_(shard), stem_(std::move(stem)), reader_(reader) {
    record_.most_bytes = memory::usual_sample_limit();
  }

  Looked look(const OpenOptions& options) {
    if (shard_.plan().check)
      if (const auto checked = shard_.plan().check(*options.storage, looked_.findings); !checked) add(checked.error());
    if (looked_.findings.first_error()) return std::move(looked_);
    if (const auto read = read_all(options); !read) add(read.error());
    return std::move(looked_);
  }

 private:
  void add(const Error& error) {
    const bool damaged = error.code == ErrorCode::kData;
    const bool is_named = damaged && !error.where.shard.empty();
    looked_.findings.add({damaged ? "damaged_shard" : "unreadable_file", Severity::kError,
                          is_named ? error.where.shard : shard_.plan().name, "", error.where.offset,
                          damaged ? error.what : error.message()});
  }
  void report(std::string_view code, std::uint64_t sample, std::uint64_t offset, const std::string& what) {
    looked_.findings.add({code, Severity::kError, shard_.plan().name, record_key(stem_, sample), offset,
                          "sample " + std::to_string(sample) + ": " + what});
  }

  Result<void> read_all(const OpenOptions& options) {
    FEEDLINE_TRY(const ColumnShard::Located* located, shard_.located(options.storage, options.notes.get()));
    looked_.samples = shard_.plan().samples;
    FEEDLINE_TRY(const auto opened, located->reader.reader());
    for (std::uint64_t i = 0; i < shard_.plan().samples; ++i) {
      const ColumnShard::Location location = located->location(i);
      const auto stored = read_sample(opened.reader, location, record_);
      if (!stored && stored.error().code != ErrorCode::kData) return std::unexpected(stored.error());
      if (!stored)
        report("too_large", i, location.offset, stored.error().what);
      else if (reader_ != nullptr)
        take(i, location.offset, *stored);
    }
    located->reader.close();
    return {};
  }

  void take(std::uint64_t number, std::uint64_t offset, Bytes stored) {
    Bytes sample = stored;
    if (const auto compression = reader_->schema().compression) {
      const auto plain = decompress(*compression, stored, room_, record_.most_bytes);
      if (!plain) return report("bad_sample", number, offset, plain.error().what);
      sample = *plain;
    }
    if (auto read = reader_->read(sample, record_); !read)
      return report(read.error().code, number, offset, read.error().error.what);
    bool is_first_image = true;
    for (std::size_t i = 0; i < record_.fields.size(); ++i) {
      const auto& field = record_.fields[i];
      const FieldKind kind = reader_->fields()[i].description.kind;
      const bool is_number = kind == FieldKind::kInteger && field.bytes.empty();
      const std::uint64_t bytes = is_number                      ? 1
                                  : field.pixels.data != nullptr ? memory::bytes_of(field.pixels)
                                                                 : field.bytes.size();
      looked_.bytes += bytes;
      if (kind != FieldKind::kImage || !std::exchange(is_first_image, false)) continue;
      looked_.smallest = std::min(looked_.smallest.value_or(bytes), bytes);
      looked_.largest = std::max(looked_.largest.value_or(0), bytes);
    }
  }

  const ColumnShard& shard_;
  const std::string stem_;
  const ColumnReader* const reader_;
  memory::ByteBuffer room_;
  memory::Record record_;
  Looked looked_;
};

void add_unread(const std::string& source, const ColumnReader& reader, Findings& findings) {
  const Columns& columns = reader.schema().columns;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (std::ranges::count(reader.fields(), i, &ColumnChoice::column) == 0)
      findings.add({"unread_column",
                    Severity::kNote,
                    source,
                    "",
                    {},
                    "the column '" + columns[i].name + "' (" + columns[i].encoding +
                        ") is not read: no field uses it; select it with fields="});
}

// Adds `samples` to the count of each of these columns.
void count(const Columns& columns, std::uint64_t samples, std::vector<InspectionCount>& counts) {
  for (const Column& column : columns) {
    const auto known = std::ranges::find(counts, column.name, &InspectionCount::name);
    if (known == counts.end())
      counts.push_back({column.name, samples});
    else
      known->count += samples;
  }
}

}  // namespace

Result<Inspection> ColumnsFormat::inspect(const std::string& source, PlannedDataset dataset,
                                          const OpenOptions& options) {
  Inspection inspection;
  inspection.format = dataset.format;
  inspection.shards = dataset.shards.size();
  const auto stems = key_stems_of(dataset.shards);
  const auto readers = readers_of(dataset, options.fields);
  std::vector<std::unique_ptr<ColumnShard>> shards;
  for (PlannedShard& shard : dataset.shards) shards.push_back(std::make_unique<ColumnShard>(std::move(shard)));
  FEEDLINE_TRY(auto looked, each_shard<Looked>(
                                shards.size(),
                                [&](std::size_t i) -> Result<Looked> {
                                  const ColumnReader* const reader =
                                      readers ? &(*readers)[shards[i]->plan().schema] : nullptr;
                                  return ShardLook(*shards[i], stems[i], reader).look(options);
                                },
                                shards_side_by_side(options.storage->is_remote())));
  Findings findings;
  std::optional<std::uint64_t> smallest;
  std::vector<std::uint64_t> samples(dataset.schemas.size());  // number of samples by schema
  for (std::size_t i = 0; i < looked.size(); ++i) {
    Looked& one = looked[i];
    samples[shards[i]->plan().schema] += one.samples;
    findings.add(std::move(one.findings));
    inspection.samples += one.samples;
    inspection.bytes += one.bytes;
    if (one.smallest) smallest = std::min(smallest.value_or(*one.smallest), *one.smallest);
    inspection.largest_bytes = std::max(inspection.largest_bytes, one.largest.value_or(0));
  }
  inspection.smallest_bytes = smallest.value_or(0);
  for (std::size_t i = 0; i < samples.size(); ++i) count(dataset.schemas[i].columns, samples[i], inspection.extensions);
  if (readers) {
    if (!readers->empty())
      for (const ColumnChoice& field : readers->front().fields()) inspection.fields.push_back(field.description.name);
    for (const ColumnReader& reader : *readers) add_unread(source, reader, findings);
  } else {
    findings.add({"no_field", Severity::kError, source, "", {}, readers.error().what});
  }
  if (inspection.samples == 0 && !findings.first_error())
    findings.add({"no_samples", Severity::kWarning, source, "", {}, "the dataset has no samples"});
  inspection.findings = findings.to_inspection();
  return inspection;
}

}  // namespace feedline::format
