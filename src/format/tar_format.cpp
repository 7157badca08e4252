// SPDX-License-Identifier: Apache-2.0
#include "format/tar_format.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/each_shard.h"
#include "format/index_store.h"

namespace feedline::format {
namespace {

// One range of a shard that holds all members of a sample that are wanted.
struct Range {
  std::uint64_t begin = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t end = 0;
  std::uint64_t wanted = 0;

  void add(const ShardIndex::Member& member) {
    begin = std::min(begin, member.offset);
    end = std::max(end, member.offset + member.bytes);
    wanted += member.bytes;
  }
  // Members of a sample lie side by side, so one request gets them all; not where large ones that nobody asked for
  // lie in between.
  bool is_dense() const {
    constexpr std::uint64_t kWorthAnotherRequest = 64 << 10;
    return end - begin <= wanted + kWorthAnotherRequest;
  }
};

using Bytes = std::span<const std::byte>;

// The bytes of a range: mapped, or read into `room`.
Result<Bytes> fetch(const storage::Reader& reader, std::uint64_t offset, std::span<std::byte> room) {
  FEEDLINE_TRY(const std::size_t got, reader.read_at(offset, room));
  if (got == room.size()) return room;
  return storage_error("the file ends at byte " + std::to_string(offset + got) + ", inside a member: it became shorter",
                       0);
}

// The members' payloads, pinned or in record.storage, one per member.
Result<std::vector<Bytes>> fetch_members(const std::shared_ptr<const storage::Reader>& reader,
                                         const std::vector<ShardIndex::Member>& members, memory::Record& record) {
  Range all;
  for (const auto& member : members) all.add(member);
  std::vector<Range> ranges;
  if (all.is_dense()) {
    ranges.push_back(all);
  } else {
    for (const auto& member : members) ranges.emplace_back().add(member);
  }
  std::vector<Bytes> pieces;
  for (const Range& range : ranges) {
    FEEDLINE_TRY(const auto view, reader->view(range.begin, range.end - range.begin));
    if (!view) break;
    pieces.push_back(*view);
  }
  if (pieces.size() == ranges.size()) {
    record.pin = reader;
  } else {
    std::uint64_t total = 0;
    for (const Range& range : ranges) total += range.end - range.begin;
    std::span<std::byte> room = record.storage.resize(total);
    pieces.clear();
    for (const Range& range : ranges) {
      FEEDLINE_TRY(const Bytes piece, fetch(*reader, range.begin, room.first(range.end - range.begin)));
      pieces.push_back(piece);
      room = room.subspan(piece.size());
    }
  }
  std::vector<Bytes> payloads;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::size_t range = ranges.size() == 1 ? 0 : i;
    payloads.push_back(pieces[range].subspan(members[i].offset - ranges[range].begin, members[i].bytes));
  }
  return payloads;
}

}  // namespace

Result<std::shared_ptr<const Format>> TarFormat::open(const std::string& source, const std::vector<std::string>& names,
                                                      const OpenOptions& options) {
  const auto located = [&source](Error error) {
    error.where.dataset = source;
    return std::unexpected(std::move(error));
  };
  auto fields =
      options.fields.empty() ? Result<std::vector<FieldChoice>>(default_fields()) : parse_fields(options.fields);
  if (!fields) return located(std::move(fields).error());
  const IndexStore indexes(options.index_directory);
  auto shards = each_shard<std::unique_ptr<Shard>>(names.size(), [&](std::size_t i) {
    auto shard = Shard::open(options.storage, names[i], indexes);
    if (!shard && shard.error().where.shard.empty()) shard.error().where.shard = names[i];
    return shard;
  });
  if (!shards) return located(std::move(shards).error());
  std::vector<const ShardIndex*> tables;
  for (const auto& shard : *shards) tables.push_back(&shard->index());
  fields = keep_present(std::move(*fields), options.fields.empty(), tables);
  if (!fields) return located(std::move(fields).error());
  return std::shared_ptr<const Format>(new TarFormat(source, options, std::move(*shards), *fields));
}

TarFormat::TarFormat(std::string source, OpenOptions options, std::vector<std::unique_ptr<Shard>> shards,
                     const std::vector<FieldChoice>& fields)
    : source_(std::move(source)), options_(std::move(options)), shards_(std::move(shards)) {
  for (const FieldChoice& field : fields) fields_.push_back(field.description);
  open_shards_.expect(shards_.size());
  for (const auto& shard : shards_) {
    shard->choose_fields(fields);
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + shard->index().samples());
  }
  fingerprint_ = compute_fingerprint(fields);
}

// Not the shards' paths: a copy of the data set elsewhere is the same data set.
std::uint64_t TarFormat::compute_fingerprint(const std::vector<FieldChoice>& fields) const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  for (const FieldChoice& field : fields) {
    fingerprint.add(field.description.name);
    for (const std::string& alternative : field.alternatives) fingerprint.add(alternative);
  }
  for (const auto& shard : shards_) {
    const ShardIndex& index = shard->index();
    fingerprint.add(index.samples());
    for (std::uint64_t i = 0; i < index.samples(); ++i) fingerprint.add(index.key(i));
    for (std::uint64_t i = 0; i < index.extensions(); ++i) fingerprint.add(index.extension(i));
    for (std::uint64_t i = 0; i < index.members(); ++i) {
      const auto member = index.member(i);
      fingerprint.add(std::array<std::uint64_t, 2>{member.bytes, member.extension});
    }
  }
  return fingerprint.value();
}

TarFormat::Place TarFormat::place_of(std::uint64_t index) const {
  FEEDLINE_CHECK(index < size());
  const auto shard = static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
  return {shards_[shard].get(), index - (shard == 0 ? 0 : ends_[shard - 1])};
}

Where TarFormat::where(std::uint64_t index) const {
  const Place place = place_of(index);
  const ShardIndex& table = place.shard->index();
  Where where;
  where.dataset = source_;
  where.shard = place.shard->name();
  where.key = table.key(place.sample);
  where.record = index;
  where.offset = table.member(table.first_member(place.sample)).offset;
  for (std::size_t field = fields_.size(); field-- > 0;)
    if (fields_[field].kind == FieldKind::kImage)
      if (const auto member = place.shard->finder().find(place.sample, field)) where.offset = member->offset;
  return where;
}

Result<Inspection> TarFormat::inspect() const { return format::inspect(source_, options_); }

Result<void> TarFormat::read(std::uint64_t index, memory::Record& record) const {
  auto done = read_sample(place_of(index), record);
  if (done) return done;
  Where place = where(index);
  place.stage = std::move(done.error().where.stage);
  if (done.error().where.offset) place.offset = done.error().where.offset;
  done.error().where = std::move(place);
  return done;
}

Result<void> TarFormat::read_sample(const Place& place, memory::Record& record) const {
  record.pin.reset();
  record.fields.assign(fields_.size(), {});
  std::vector<ShardIndex::Member> members;
  const auto fail = [&](std::size_t field, const std::string& what) {
    auto error = data_error("field '" + fields_[field].name + "': " + what, "format");
    if (field < members.size()) error.error().where.offset = members[field].offset;
    return error;
  };
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const auto member = place.shard->finder().find(place.sample, i);
    if (!member) return fail(i, "the sample has no member for it");
    members.push_back(*member);
    if (member->bytes == 0) return fail(i, "an empty file");
  }
  FEEDLINE_TRY(const auto reader, open_shards_.reader(*place.shard));
  FEEDLINE_TRY(const auto payloads, fetch_members(reader, members, record));
  record.bytes_read = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    record.bytes_read += payloads[i].size();
    record.fields[i].bytes = payloads[i];
    if (fields_[i].kind == FieldKind::kImage) continue;
    const auto value = parse_integer(payloads[i]);
    if (!value) return fail(i, "not an integer");
    record.fields[i].value = *value;
  }
  return {};
}

}  // namespace feedline::format
