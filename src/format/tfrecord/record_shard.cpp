// SPDX-License-Identifier: Apache-2.0
#include "format/tfrecord/record_shard.h"

#include <array>
#include <utility>

#include "format/index/plain_copy.h"
#include "format/shards/finding.h"
#include "format/tfrecord/foreign_index.h"
#include "format/tfrecord/record_frame.h"
#include "format/tfrecord/record_scan.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

// A length may look like the start of gzip or zlib data, but compressed data would not have a matching checksum.
Result<bool> is_compressed(const storage::Reader& reader) {
  std::array<std::byte, kRecordHeaderBytes> header;
  FEEDLINE_TRY(const std::size_t got, reader.read_at(0, header));
  if (length_in_header(std::span(header).first(got))) return false;
  FEEDLINE_TRY(const bool gzip, is_gzip(reader));
  return gzip ? Result<bool>(true) : is_zlib(reader);
}

struct Indexed {
  RecordIndex index;
  std::string foreign = {};
};

// Builds the index of a shard. `storage` contains the shard under its name.
Result<Indexed> make_index(const storage::Storage& storage, const ShardFile& file, const RecordIndexStore& indexes,
                           RecordShard::Scans& scans) {
  struct Turn {
    explicit Turn(RecordShard::Scans& all) : scans(all) { scans.acquire(); }
    ~Turn() { scans.release(); }
    RecordShard::Scans& scans;
  };
  const Turn turn(scans);
  FEEDLINE_TRY(const auto reader, file.storage->open_version(file.path, storage::Access::kRead, file.version));
  const ForeignIndexes foreign = find_foreign_index(storage, file, *reader);
  for (const std::string& why : foreign.not_fitting)
    if (indexes.notes() != nullptr) indexes.notes()->add(why);
  if (foreign.found) return Indexed{RecordIndex::build(foreign.found->ends, file.version), foreign.found->path};
  Findings findings;
  FEEDLINE_TRY(const auto ends, scan_records(*reader, file.version.bytes, file.name, findings));
  if (const Finding* finding = findings.first_error()) return std::unexpected(to_error(*finding));
  FEEDLINE_TRY(const auto stat, reader->version());
  FEEDLINE_CHECK_OK(storage::check_version(file.name, file.version, stat));  // the file was changed during the scan
  Indexed made{RecordIndex::build(ends, file.version)};
  FEEDLINE_CHECK_OK(indexes.save(*file.storage, file.path, made.index));
  return made;
}

// Adds the position in the indexed shard to an error. The caller adds the dataset and the sample.
std::unexpected<Error> damaged(std::uint64_t number, std::uint64_t offset, const std::string& how) {
  auto error = data_error("record " + std::to_string(number) + " of the shard: " + how, "format");
  error.error().where.offset = offset;
  return error;
}

}  // namespace

Result<ShardFile> locate_records(std::shared_ptr<const storage::Storage> storage, const std::string& name,
                                 cache::Notes* notes) {
  return locate_shard(std::move(storage), name, is_compressed, ".tfrecord", notes);
}

Result<std::unique_ptr<RecordShard>> RecordShard::open(std::shared_ptr<const storage::Storage> storage,
                                                       const std::string& name, const Opening& opening) {
  const RecordIndexStore& indexes = opening.indexes;
  if (auto stored = opening.checks_version ? std::nullopt : indexes.at_hand(*storage, name)) {
    const storage::Version version = stored->version();
    return std::unique_ptr<RecordShard>(
        new RecordShard({name, name, std::move(storage), version}, std::move(*stored), {}, false));
  }
  FEEDLINE_TRY(ShardFile file, locate_records(storage, name, indexes.notes()));
  file.reader.reset();
  if (auto stored = indexes.load(*file.storage, file.path, file.version))
    return std::unique_ptr<RecordShard>(new RecordShard(std::move(file), std::move(*stored), {}));
  FEEDLINE_TRY(Indexed made, make_index(*storage, file, indexes, opening.scans));
  return std::unique_ptr<RecordShard>(new RecordShard(std::move(file), std::move(made.index), std::move(made.foreign)));
}

std::unique_ptr<RecordShard> RecordShard::of(ShardFile file, std::span<const std::uint64_t> ends) {
  // If the file is damaged, the index ends with the last intact record.
  storage::Version version = file.version;
  version.bytes = ends.empty() ? 0 : ends.back();
  return std::unique_ptr<RecordShard>(new RecordShard(std::move(file), RecordIndex::build(ends, version), {}));
}

Result<Bytes> RecordShard::data_of(std::uint64_t number, Bytes bytes) const {
  const RecordIndex::Location location = index_.location(number);
  const auto length = length_in_header(bytes);
  if (!length && foreign_.empty())
    return damaged(number, location.offset, "the checksum of the record's length is wrong: the file is damaged");
  if (!length || *length != location.bytes - kRecordFrameBytes)
    return damaged(number, location.offset,
                   foreign_.empty()
                       ? "the record has " + std::to_string(*length) + " bytes according to its header but " +
                             std::to_string(location.bytes - kRecordFrameBytes) + " according to the index"
                       : "the shard does not have this record at the position in the index '" + foreign_ +
                             "': one of them is damaged; without the index the shard is scanned " + "again");
  if (!has_good_data(bytes))
    return damaged(
        number, location.offset,
        "the checksum of the record's data is wrong: the record is damaged; copy or download the file again");
  return data_in(bytes);
}

Result<Bytes> RecordShard::read(const std::shared_ptr<const storage::Reader>& reader, std::uint64_t number,
                                memory::Record& record) const {
  const RecordIndex::Location location = index_.location(number);
  // mapped or not: reading a view loads its pages
  if (location.bytes > record.most_bytes) return memory::too_large(location.bytes, record.most_bytes);
  FEEDLINE_TRY(const auto view, reader->view(location.offset, location.bytes));
  if (view) {
    record.pin = reader;
    return data_of(number, *view);
  }
  FEEDLINE_TRY(const auto room, record.storage.make_room(location.bytes, record.most_bytes));
  FEEDLINE_TRY(const std::size_t got, reader->read_at(location.offset, room));
  if (got < room.size())
    return storage_error(
        "the file ends at byte " + std::to_string(location.offset + got) + ", inside a record: the file became shorter",
        0);
  return data_of(number, room);
}

}  // namespace feedline::format
