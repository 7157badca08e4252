// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/columns_format.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/index/shard_parts.h"
#include "format/index/unchecked_shard.h"
#include "format/row_columns/column_files.h"
#include "format/row_columns/schema_readers.h"
#include "format/shards/each_shard.h"
#include "format/shards/record_keys.h"
#include "format/short_list.h"
#include "storage/version.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

std::string stem_of(std::string_view shard) {
  shard = shard.substr(0, shard.find('?'));
  return std::string(shard.substr(shard.rfind('/') + 1));
}

}  // namespace

std::vector<std::string> key_stems_of(const std::vector<PlannedShard>& shards) {
  std::vector<std::string> names;
  for (const PlannedShard& shard : shards) names.push_back(stem_of(shard.name));
  return key_stems(std::move(names));
}

Result<std::shared_ptr<const Format>> ColumnsFormat::open(const std::string& source, PlannedDataset dataset,
                                                          const OpenOptions& options) {
  const bool is_empty = std::ranges::all_of(dataset.shards, [](const auto& shard) { return shard.samples == 0; });
  if (is_empty) return config_error("the dataset has no samples");
  FEEDLINE_TRY(auto readers, readers_of(dataset, options.fields));
  std::shared_ptr<ColumnsFormat> format(new ColumnsFormat(source, std::move(dataset), options, std::move(readers)));
  if (options.storage->is_remote()) FEEDLINE_CHECK_OK(format->locate_all());
  return std::shared_ptr<const Format>(std::move(format));
}

ColumnsFormat::ColumnsFormat(std::string source, PlannedDataset dataset, OpenOptions options,
                             std::vector<ColumnReader> readers)
    : ShardedRecordFormat(std::move(source), std::move(options)),
      format_(std::move(dataset.format)),
      stems_(key_stems_of(dataset.shards)),
      readers_(std::move(readers)) {
  classes_ = std::move(dataset.classes);
  std::uint64_t end = 0;
  for (PlannedShard& shard : dataset.shards) {
    ends_.push_back(end += shard.samples);
    shards_.push_back(std::make_unique<ColumnShard>(std::move(shard)));
  }
  for (const ColumnChoice& field : readers_.front().fields()) fields_.push_back(field.description);
  open_shards_.expect(shards_.size());
  fingerprint_ = compute_fingerprint();
}

// Locates remote shards when the dataset is opened, because prefetching needs the positions of samples and must not
// wait for the network.
Result<void> ColumnsFormat::locate_all() const {
  const ShardPartsStore store(options_.index_directory, options_.notes);
  const bool checks_version = options_.listing_age.count() == 0;
  const auto located = [&](std::size_t i) -> Result<bool> {
    if (!checks_version) {
      FEEDLINE_TRY(const bool is_located, shards_[i]->locate_by_persisted(options_.storage, store));
      if (is_located) return true;
    }
    auto shard = shards_[i]->located(options_.storage, options_.notes.get(), &store);
    if (shard) return true;
    if (shard.error().where.shard.empty()) shard.error().where.shard = shards_[i]->plan().name;
    return std::unexpected(std::move(shard).error());
  };
  FEEDLINE_TRY(const auto all, each_shard<bool>(shards_.size(), located, shards_side_by_side(true)));
  (void)all;
  return {};
}

// Does not depend on the names or compression of shards, so that copies of the dataset have the same fingerprint.
std::uint64_t ColumnsFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  for (const ColumnChoice& field : readers_.front().fields()) {
    fingerprint.add(field.description.name);
    fingerprint.add(static_cast<std::uint64_t>(field.description.kind));
    fingerprint.add(readers_.front().schema().columns[field.column].name);
  }
  for (const auto& shard : shards_) {
    fingerprint.add(shard->plan().samples);
    fingerprint.add(shard->plan().plain_bytes.value_or(0));
  }
  return fingerprint.value();
}

ColumnsFormat::Location ColumnsFormat::find_sample(std::uint64_t index) const {
  const auto [shard, sample] = position_of(index);
  return {shards_[shard].get(), shard, sample};
}

Where ColumnsFormat::where(std::uint64_t index) const {
  // if the shard is missing, reading it reports the error
  (void)find_sample(index).shard->located(options_.storage, options_.notes.get());
  return location_of(index);
}

Where ColumnsFormat::location_of(std::uint64_t index) const {
  const Location location = find_sample(index);
  Where where;
  where.dataset = source_;
  where.shard = location.shard->plan().name;
  where.key = record_key(stems_[location.number], location.sample);
  where.record = index;
  if (const auto* located = location.shard->if_located()) where.offset = located->location(location.sample).offset;
  return where;
}

void ColumnsFormat::notice_changes() const {
  for (const auto& shard : shards_) shard->notice_change();
}

std::vector<std::unique_ptr<const UncheckedObject>> ColumnsFormat::unchecked() const {
  std::vector<std::unique_ptr<const UncheckedObject>> all;
  for (std::size_t i = 0; i < shards_.size(); ++i)
    if (const auto* located = shards_[i]->if_located(); located != nullptr && !located->reader.is_checked())
      all.push_back(std::make_unique<const UncheckedShard>(source_, located->reader,
                                                           [this, i](const Error& error) { doubt(i, error); }));
  return all;
}

void ColumnsFormat::forget(std::size_t shard) const {
  if (const auto& path = shards_[shard]->plan().stored_path)
    ShardPartsStore(options_.index_directory).forget(*options_.storage, *path);
}

// Returns the unopened columns of the first schema. All other schemas have the same columns; otherwise, opening fails.
std::vector<UnopenedColumn> ColumnsFormat::unopened() const {
  std::vector<UnopenedColumn> left;
  const auto& columns = readers_.front().schema().columns;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (std::ranges::count(readers_.front().fields(), i, &ColumnChoice::column) == 0)
      left.push_back({columns[i].name, columns[i].encoding,
                      options_.fields.empty() ? "not a default field" : "not in fields=", columns[i].name});
  return left;
}

std::unexpected<Error> ColumnsFormat::at(std::uint64_t index, Error error) const {
  const std::string shard = error.code == ErrorCode::kData ? error.where.shard : "";
  auto located = ShardedRecordFormat::at(index, std::move(error));
  if (!shard.empty()) located.error().where.shard = shard;
  return located;
}

Result<const ColumnShard::Located*> ColumnsFormat::locate(const Location& location) const {
  return location.shard->located(options_.storage, options_.notes.get());
}

Result<Bytes> ColumnsFormat::fetch(const Location& location, memory::Record& record) const {
  record.pin.reset();
  FEEDLINE_TRY(const ColumnShard::Located* located, locate(location));
  FEEDLINE_TRY(const auto reader, open_shards_.reader(located->reader));
  FEEDLINE_TRY(const Bytes stored, read_sample(reader, located->location(location.sample), record));
  return stored;
}

// Decompresses a sample into a separate buffer after the fields' buffers.
Result<Bytes> ColumnsFormat::plain(const ColumnReader& reader, Bytes stored, memory::Record& record) const {
  const auto compression = reader.schema().compression;
  if (!compression) return stored;
  const std::size_t room = reader.fields().size();
  if (record.more.size() <= room) record.more.resize(room + 1);
  FEEDLINE_TRY(const Bytes sample, decompress(*compression, stored, record.more[room], record.most_bytes));
  return sample;
}

Result<void> ColumnsFormat::accept_sample(const ColumnReader& reader, Bytes stored, memory::Record& record) const {
  FEEDLINE_TRY(const Bytes sample, plain(reader, stored, record));
  auto read = reader.read(sample, record);
  if (!read) return std::unexpected(std::move(read).error().error);
  record.bytes_read = stored.size();
  return {};
}

Result<void> ColumnsFormat::read(std::uint64_t index, memory::Record& record) const {
  const Location location = find_sample(index);
  const auto stored = fetch(location, record);
  auto done = stored ? accept_sample(reader_of(location), *stored, record) : std::unexpected(stored.error());
  if (!done) return at(index, std::move(done).error());
  return done;
}

Result<void> ColumnsFormat::read_column(const Location& location, std::size_t field, memory::Record& record) const {
  const ColumnReader& columns = reader_of(location);
  const Columns& all = columns.schema().columns;
  FEEDLINE_TRY(const ColumnShard::Located* located, locate(location));
  FEEDLINE_TRY(const auto reader, open_shards_.reader(located->reader));
  const ColumnShard::Location sample = located->location(location.sample);
  FEEDLINE_TRY(
      const Bytes sizes,
      read_sample(reader, {sample.offset, std::min<std::uint64_t>(sample.bytes, bytes_of_sizes(all))}, record));
  ShortList<ValueRange> ranges(all.size());
  if (const auto found = find_sized(sizes, all, sample.bytes, ranges.all()); !found)
    return data_error("the sample is damaged: " + found.error(), "format");
  const ValueRange range = ranges.all()[columns.fields()[field].column];
  FEEDLINE_TRY(const Bytes value, read_sample(reader, {sample.offset + range.offset, range.bytes}, record));
  if (auto read = columns.read_value(field, value, record); !read)
    return std::unexpected(std::move(read).error().error);
  record.bytes_read = sizes.size() + value.size();
  return {};
}

// Reads the sizes of the sample's values, and one value. From remote storage, two requests take longer than one for the
// whole sample.
Result<bool> ColumnsFormat::read_field(std::uint64_t index, std::size_t field, memory::Record& record) const {
  const Location location = find_sample(index);
  const SampleSchema& schema = reader_of(location).schema();
  if (schema.layout != SampleLayout::kSized || schema.compression || options_.storage->is_remote()) return false;
  record.pin.reset();
  if (auto done = read_column(location, field, record); !done) return at(index, std::move(done).error());
  return true;
}

Result<void> ColumnsFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  const Location location = find_sample(index);
  const auto located = locate(location);
  if (!located) return at(index, located.error());
  auto reader = open_shards_.owned_reader((*located)->reader);
  if (!reader) return at(index, std::move(reader).error());
  const auto stored = (*located)->location(location.sample);
  if (const auto view = (*reader)->view(stored.offset, 0); view && *view) return {};
  pieces.push_back({std::move(*reader), {}, stored.offset, stored.bytes});
  return {};
}

Result<void> ColumnsFormat::accept(std::uint64_t index, std::span<const Bytes> pieces, memory::Record& record) const {
  record.pin.reset();
  auto done = accept_sample(reader_of(find_sample(index)), pieces.front(), record);
  if (!done) return at(index, std::move(done).error());
  return done;
}

Result<SampleFiles> ColumnsFormat::files(std::uint64_t index) const {
  const Location location = find_sample(index);
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  const auto stored = fetch(location, record);
  const ColumnReader& reader = reader_of(location);
  const auto sample = stored ? plain(reader, *stored, record) : stored;
  auto files = sample ? files_of(*sample, reader.schema(), reader.fields()) : std::unexpected(sample.error());
  if (!files) return at(index, std::move(files).error());
  return SampleFiles{record_key(stems_[location.number], location.sample), std::nullopt, std::move(*files)};
}

}  // namespace feedline::format
