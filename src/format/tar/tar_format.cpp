// SPDX-License-Identifier: Apache-2.0
#include "format/tar/tar_format.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/field_kind.h"
#include "format/shards/each_shard.h"
#include "format/tar/index_store.h"
#include "format/tar/listed_members.h"
#include "format/tar/tar_members.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;
using Member = ShardIndex::Member;

// Marks an optional member that the sample lacks. The marker has the offset of the sample's first member, and no bytes.
constexpr auto kAbsent = std::numeric_limits<decltype(Member::extension)>::max();

// Returns the class names of all shards, or an empty list if they differ, because the same label would then have
// different meanings.
std::vector<std::string> class_names_of(const std::vector<std::unique_ptr<Shard>>& shards) {
  std::vector<std::string> first = shards.front()->index().class_names();
  for (const auto& shard : shards)
    if (!first.empty() && shard->index().class_names() != first) return {};
  return first;
}

}  // namespace

Result<std::shared_ptr<const RecordFormat>> TarFormat::open(const std::string& source,
                                                            const std::vector<std::string>& names,
                                                            const OpenOptions& options) {
  auto fields =
      options.fields.empty() ? Result<std::vector<FieldChoice>>(default_fields()) : parse_fields(options.fields);
  if (!fields) return std::unexpected(std::move(fields).error());
  const IndexStore indexes(options.index_directory, options.notes);
  Shard::Scans scans(scans_at_once());
  const Shard::Opening opening{indexes, scans, options.listing_age.count() == 0};
  const auto open_one = [&](std::size_t i) {
    auto shard = Shard::open(options.storage, names[i], opening);
    if (!shard && shard.error().where.shard.empty()) shard.error().where.shard = names[i];
    return shard;
  };
  auto shards =
      each_shard<std::unique_ptr<Shard>>(names.size(), open_one, shards_side_by_side(options.storage->is_remote()));
  if (!shards) return std::unexpected(std::move(shards).error());
  std::vector<const ShardIndex*> tables;
  for (const auto& shard : *shards) tables.push_back(&shard->index());
  fields = keep_present(std::move(*fields), options.fields.empty(), tables);
  if (!fields) return std::unexpected(std::move(fields).error());
  auto classes = class_names_of(*shards);
  auto format = std::shared_ptr<const RecordFormat>(
      new TarFormat(source, options, std::move(*shards), *fields, std::move(classes)));
  if (format->size() > 0) return format;
  return config_error("missing=\"skip\" omits all samples: each lacks one of the fields");
}

TarFormat::TarFormat(std::string source, OpenOptions options, std::vector<std::unique_ptr<Shard>> shards,
                     const std::vector<FieldChoice>& fields, std::vector<std::string> classes)
    : ShardedRecordFormat(std::move(source), std::move(options)), shards_(std::move(shards)) {
  classes_ = std::move(classes);
  for (const FieldChoice& field : fields) fields_.push_back(field.description);
  expect(shards_);
  for (const auto& shard : shards_) shard->choose_fields(fields);
  take_samples();
  note_unopened(fields);
  fingerprint_ = compute_fingerprint(fields);
}

// Records the extensions of members that no field reads.
void TarFormat::note_unopened(const std::vector<FieldChoice>& fields) {
  std::set<std::string> left;
  for (const auto& shard : shards_)
    for (std::uint64_t i = 0; i < shard->index().extensions(); ++i) left.emplace(shard->index().extension(i));
  left.erase("__bad__");  // a marker, not data
  for (const FieldChoice& field : fields)
    for (const std::string& alternative : field.alternatives) left.erase(alternative);
  const std::string reason = options_.fields.empty() ? "not a default field" : "not in fields=";
  for (const std::string& extension : left)
    unopened_.push_back({extension, std::string(name_of(usual_kind(extension, extension))), reason, extension});
}

// Selects the samples according to options_.missing.
void TarFormat::take_samples() {
  std::uint64_t end = 0;
  for (const auto& shard : shards_) {
    std::vector<std::uint32_t> whole;
    const std::uint64_t samples = shard->index().samples();
    for (std::uint64_t sample = 0; options_.missing != Missing::kError && sample < samples; ++sample) {
      bool lacks = false;
      for (std::size_t field = 0; field < fields_.size(); ++field)
        if (!shard->finder().find(sample, field)) lacks = fields_[field].may_be_absent = true;
      if (!lacks) whole.push_back(static_cast<std::uint32_t>(sample));
    }
    const bool skips = options_.missing == Missing::kSkip;
    ends_.push_back(end += skips ? whole.size() : samples);
    if (skips) left_out_ += samples - whole.size();
    if (skips) whole_.push_back(std::move(whole));
  }
  if (options_.missing == Missing::kSkip)
    for (FieldDescription& field : fields_) field.may_be_absent = false;
  if (left_out_ == 0) whole_.clear();
}

std::string TarFormat::summary() const {
  const auto listed = std::ranges::count_if(shards_, [](const auto& shard) { return !shard->listed_by().empty(); });
  std::string lines;
  if (listed > 0) lines = std::to_string(listed) + " shards used DALI's indexes instead of a scan";
  const std::string left_out = ShardedRecordFormat::summary();
  return lines + (lines.empty() || left_out.empty() ? "" : "\n") + left_out;
}

// Does not depend on the paths of shards, so that copies of the dataset have the same fingerprint.
std::uint64_t TarFormat::compute_fingerprint(const std::vector<FieldChoice>& fields) const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  for (const FieldChoice& field : fields) {
    fingerprint.add(field.description.name);
    for (const std::string& alternative : field.alternatives) fingerprint.add(alternative);
  }
  if (options_.missing != Missing::kError) fingerprint.add(options_.missing == Missing::kSkip ? "skip" : "none");
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

TarFormat::Location TarFormat::find_sample(std::uint64_t index) const {
  const auto [shard, sample] = position_of(index);
  return {shards_[shard].get(), whole_.empty() ? sample : whole_[shard][sample]};
}

Where TarFormat::where(std::uint64_t index) const {
  const Location location = find_sample(index);
  const ShardIndex& table = location.shard->index();
  Where where;
  where.dataset = source_;
  where.shard = location.shard->name();
  where.key = table.key(location.sample);
  where.record = index;
  where.offset = table.member(table.first_member(location.sample)).offset;
  for (std::size_t field = fields_.size(); field-- > 0;)
    if (fields_[field].kind == FieldKind::kImage)
      if (const auto member = location.shard->finder().find(location.sample, field)) where.offset = member->offset;
  return where;
}

Where TarFormat::where_field(std::uint64_t index, std::size_t field) const {
  const Location location = find_sample(index);
  Where where = this->where(index);
  if (const auto member = location.shard->finder().find(location.sample, field)) where.offset = member->offset;
  return where;
}

void TarFormat::forget(std::size_t shard) const { shards_[shard]->forget_index(IndexStore(options_.index_directory)); }

Result<void> TarFormat::read(std::uint64_t index, memory::Record& record) const {
  auto done = read_sample(find_sample(index), record);
  if (!done) return at(index, std::move(done).error());
  return done;
}

Result<SampleFiles> TarFormat::files(std::uint64_t index) const {
  auto sample = read_files(find_sample(index));
  if (!sample) return at(index, std::move(sample).error());
  return sample;
}

Result<SampleFileSizes> TarFormat::file_sizes(std::uint64_t sample) const {
  const Location location = find_sample(sample);
  const ShardIndex& index = location.shard->index();
  SampleFileSizes sizes{std::string(index.key(location.sample)), std::nullopt, {}};
  for (std::uint64_t i = index.first_member(location.sample); i < index.first_member(location.sample + 1); ++i)
    sizes.files.push_back({std::string(index.extension(index.member(i).extension)), index.member(i).bytes});
  return sizes;
}

Result<SampleFiles> TarFormat::read_files(const Location& location) const {
  const ShardIndex& index = location.shard->index();
  std::vector<ShardIndex::Member> members;
  for (std::uint64_t i = index.first_member(location.sample); i < index.first_member(location.sample + 1); ++i)
    members.push_back(index.member(i));
  SampleFiles sample{std::string(index.key(location.sample)), std::nullopt, {}};
  if (members.empty()) return sample;
  FEEDLINE_TRY(const auto reader, open_shards_.reader(*location.shard));
  if (front(location) > 0) FEEDLINE_CHECK_OK(check_headers(location, members, *reader));
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  std::vector<Bytes> payloads(members.size());
  FEEDLINE_CHECK_OK(fetch_members(reader, members, record, payloads));
  for (std::size_t i = 0; i < members.size(); ++i)
    sample.files.push_back(
        {std::string(index.extension(members[i].extension)), {payloads[i].begin(), payloads[i].end()}});
  return sample;
}

Result<Member> TarFormat::find_member(const Location& location, std::size_t field) const {
  const auto member = location.shard->finder().find(location.sample, field);
  const FieldDescription& description = fields_[field];
  if (!member && !description.may_be_absent)
    return data_error("field '" + description.name + "': the sample has no member for this field", "format");
  const std::uint64_t first = location.shard->index().first_member(location.sample);
  if (!member) return Member{.offset = location.shard->index().member(first).offset, .extension = kAbsent};
  if (member->bytes > 0 || may_be_empty(description.kind)) return *member;
  auto error = data_error("field '" + description.name + "': an empty file", "format");
  error.error().where.offset = member->offset;
  return error;
}

Result<void> TarFormat::find_members(const Location& location, std::span<Member> members) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    FEEDLINE_TRY(members[i], find_member(location, i));
  }
  return {};
}

Result<void> TarFormat::check_header(const Location& location, const Member& member, TarBlock block) const {
  const ShardIndex& index = location.shard->index();
  const std::string why = differs(block, index.key(location.sample), index.extension(member.extension), member.bytes);
  if (why.empty()) return {};
  auto error = data_error("the index '" + location.shard->listed_by() + "' does not belong to this shard: " + why +
                              "; without the index the shard is scanned again",
                          "format");
  error.error().where.offset = member.offset - kBlockBytes;
  return error;
}

Result<void> TarFormat::check_headers(const Location& location, std::span<const Member> members,
                                      const storage::Reader& reader) const {
  std::array<std::byte, kBlockBytes> block;
  for (const Member& member : members) {
    if (member.extension == kAbsent) continue;
    FEEDLINE_TRY(const std::size_t got, reader.read_at(member.offset - kBlockBytes, block));
    if (got < block.size()) return storage_error("the file ends before a member: the file became shorter", 0);
    FEEDLINE_CHECK_OK(check_header(location, member, block));
  }
  return {};
}

Result<void> TarFormat::read_sample(const Location& location, memory::Record& record) const {
  record.pin.reset();
  ShortList<Member> members(fields_.size());
  FEEDLINE_CHECK_OK(find_members(location, members.all()));
  FEEDLINE_TRY(const auto reader, open_shards_.reader(*location.shard));
  if (front(location) > 0) FEEDLINE_CHECK_OK(check_headers(location, members.all(), *reader));
  ShortList<Bytes> payloads(fields_.size());
  FEEDLINE_CHECK_OK(fetch_members(reader, members.all(), record, payloads.all()));
  return accept_members(members.all(), payloads.all(), record);
}

// Returns the integers that the index has.
bool TarFormat::find_value(std::uint64_t index, std::size_t field, memory::Record::Field& value,
                           std::string& /*room*/) const {
  if (fields_[field].kind != FieldKind::kInteger) return false;
  const Location location = find_sample(index);
  const auto number = location.shard->finder().find_number(location.sample, field);
  if (!number && !fields_[field].may_be_absent) return false;  // read_field() returns the error
  value = {};
  value.absent = !number;
  if (value.absent) return true;
  const auto integer = location.shard->index().integer(*number);
  value.value = integer.value_or(0);
  return integer.has_value();
}

// Reads one member.
Result<bool> TarFormat::read_field(std::uint64_t index, std::size_t field, memory::Record& record) const {
  const Location location = find_sample(index);
  const auto read_one = [&]() -> Result<void> {
    FEEDLINE_TRY(const Member member, find_member(location, field));
    record.pin.reset();
    record.fields.assign(1, {});
    FEEDLINE_TRY(const auto reader, open_shards_.reader(*location.shard));
    if (front(location) > 0) FEEDLINE_CHECK_OK(check_headers(location, {&member, 1}, *reader));
    Bytes payload;
    FEEDLINE_CHECK_OK(fetch_members(reader, {&member, 1}, record, {&payload, 1}));
    record.bytes_read = payload.size();
    return accept_member(field, member, payload, record.fields.front());
  };
  if (auto done = read_one(); !done) return at(index, std::move(done).error());
  return true;
}

Result<std::optional<storage::Piece>> TarFormat::locate_image(std::uint64_t index, std::size_t field) const {
  const Location location = find_sample(index);
  FEEDLINE_TRY(const Member member, find_member(location, field));
  if (front(location) > 0 || member.extension == kAbsent) return std::nullopt;
  FEEDLINE_TRY(auto reader, open_shards_.owned_reader(*location.shard));
  return storage::Piece{std::move(reader), {}, member.offset, member.bytes};
}

Result<void> TarFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  const Location location = find_sample(index);
  ShortList<Member> members(fields_.size());
  FEEDLINE_CHECK_OK(find_members(location, members.all()));
  const Range range = range_of(members.all());
  if (!range.is_dense()) return {};
  FEEDLINE_TRY(auto reader, open_shards_.owned_reader(*location.shard));
  if (const auto view = reader->view(range.begin, 0); view && *view) return {};
  const std::uint64_t begin = range.begin - front(location);
  pieces.push_back({std::move(reader), {}, begin, range.end - begin});
  return {};
}

Result<void> TarFormat::accept(std::uint64_t index, std::span<const std::span<const std::byte>> pieces,
                               memory::Record& record) const {
  record.pin.reset();
  const Bytes bytes = pieces.front();
  ShortList<Member> members(fields_.size());
  const Location location = find_sample(index);
  if (auto found = find_members(location, members.all()); !found) return at(index, std::move(found).error());
  const std::uint64_t begin = range_of(members.all()).begin - front(location);
  ShortList<Bytes> payloads(fields_.size());
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const Member& member = members.all()[i];
    FEEDLINE_CHECK(member.offset - begin + member.bytes <= bytes.size());
    if (front(location) > 0 && member.extension != kAbsent)
      if (auto same =
              check_header(location, member, bytes.subspan(member.offset - kBlockBytes - begin).first<kBlockBytes>());
          !same)
        return at(index, std::move(same).error());
    payloads.all()[i] = bytes.subspan(member.offset - begin, member.bytes);
  }
  if (auto accepted = accept_members(members.all(), payloads.all(), record); !accepted)
    return at(index, std::move(accepted).error());
  return {};
}

Result<void> TarFormat::accept_members(std::span<const Member> members, std::span<const Bytes> payloads,
                                       memory::Record& record) const {
  record.fields.assign(fields_.size(), {});
  record.bytes_read = 0;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    record.bytes_read += payloads[i].size();
    FEEDLINE_CHECK_OK(accept_member(i, members[i], payloads[i], record.fields[i]));
  }
  return {};
}

Result<void> TarFormat::accept_member(std::size_t field, const Member& member, Bytes payload,
                                      memory::Record::Field& value) const {
  value.bytes = payload;
  value.absent = member.extension == kAbsent;
  if (fields_[field].kind != FieldKind::kInteger || value.absent) return {};
  if (const auto integer = parse_integer(payload)) {
    value.value = *integer;
    return {};
  }
  auto error = data_error("field '" + fields_[field].name + "': " + not_an_integer(payload), "format");
  error.error().where.offset = member.offset;
  return error;
}

}  // namespace feedline::format
