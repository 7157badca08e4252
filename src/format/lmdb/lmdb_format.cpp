// SPDX-License-Identifier: Apache-2.0
#include "format/lmdb/lmdb_format.h"

#include <algorithm>
#include <cerrno>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/field_kind.h"
#include "format/shards/each_shard.h"
#include "format/short_list.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;
using Value = std::optional<Bytes>;

constexpr std::string_view kKeyList = "meta_info.txt";
constexpr std::string_view kDataFile = "/data.mdb";

// Escapes characters that would end the key in a tar member's name, or would refer to a path outside the folder.
std::string tar_key(const std::string& key) {
  const std::size_t name = key.rfind('/') == key.npos ? 0 : key.rfind('/') + 1;
  std::string text;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool is_odd_slash =
        key[i] == '/' && (i == 0 || key[i - 1] == '/' || key[i - 1] == '.' || i + 1 == key.size());
    if (key[i] == '%')
      text += "%25";
    else if (key[i] == '.' && i >= name)
      text += "%2E";
    else if (is_odd_slash)
      text += "%2F";
    else
      text += key[i];
  }
  return text;
}

}  // namespace

std::string sample_key(const LmdbLayout& layout, const LmdbIndex& index, const LmdbSamples& samples,
                       std::uint64_t sample) {
  for (std::size_t i = 0; i < layout.sources.size(); ++i) {
    const auto entry = samples.entry(sample, i);
    if (!entry) continue;
    if (layout.sources[i].takes_all()) return index.key_text(*entry);
    return std::string(layout.sources[i].sample_in(index.key(*entry)).value_or(""));
  }
  return {};
}

Result<std::optional<std::string>> read_key_list(const storage::Storage& storage, const ShardFile& file) {
  if (!file.path.ends_with(kDataFile)) return std::optional<std::string>();
  const std::string folder = file.path.substr(0, file.path.size() - kDataFile.size());
  const std::string path = storage.below(folder, kKeyList);
  memory::ByteBuffer buffer;
  const auto text = storage.read_all(path, buffer, memory::usual_sample_limit());
  // Without list permission, buckets return EACCES for objects that do not exist.
  const int code = text ? 0 : text.error().system_errno;
  if (code == ENOENT || (code == EACCES && storage.is_remote())) return std::optional<std::string>();
  if (!text) return std::unexpected(text.error());
  return std::string(reinterpret_cast<const char*>(text->data()), text->size());
}

ReadEntry entries_of(const LmdbShard& shard, std::shared_ptr<const storage::Reader> reader, memory::Record& record) {
  return [&shard, reader = std::move(reader), &record](std::uint64_t entry) {
    return shard.read(reader, entry, record.storage, memory::usual_sample_limit(), record.pin);
  };
}

Result<void> check_count(const LmdbLayout& layout, const LmdbIndex& index, const LmdbSamples& samples,
                         const ReadEntry& read) {
  if (!layout.is_counted) return {};
  for (std::uint64_t i = 0; i < index.size(); ++i) {
    if (index.key(i) != kSampleCount) continue;
    FEEDLINE_TRY(const Bytes value, read(i));
    const auto said = parse_integer(value);
    const std::uint64_t found = samples.size() + samples.left_out();
    if (said && *said >= 0 && static_cast<std::uint64_t>(*said) == found) return {};
    return data_error("'" + std::string(kSampleCount) + "' says " +
                          (said ? std::to_string(*said) : std::string("no number")) + ", and there are " +
                          std::to_string(found) + " samples: some are missing, or were never written",
                      "format");
  }
  return {};
}

Result<std::shared_ptr<const RecordFormat>> LmdbFormat::open(const std::string& source,
                                                             const std::vector<std::string>& names,
                                                             const OpenOptions& options) {
  const auto located = [](Error error, const std::string& shard) {
    if (error.where.shard.empty() && error.code != ErrorCode::kConfig) error.where.shard = shard;
    return std::unexpected(std::move(error));
  };
  const LmdbIndexStore indexes(options.index_directory, options.notes);
  const auto open_one = [&](std::size_t i) {
    auto shard = LmdbShard::open(options.storage, names[i], indexes);
    if (!shard && shard.error().where.shard.empty()) shard.error().where.shard = names[i];
    return shard;
  };
  auto shards =
      each_shard<std::unique_ptr<LmdbShard>>(names.size(), open_one, shards_side_by_side(options.storage->is_remote()));
  if (!shards) return std::unexpected(std::move(shards).error());
  std::optional<LmdbLayout> layout;
  std::vector<Database> databases;
  for (auto& shard : *shards) {
    const auto opened = shard->reader();
    if (!opened) return located(opened.error(), shard->name());
    memory::Record record;
    const ReadEntry read = entries_of(*shard, opened->reader, record);
    if (!layout) {
      auto chosen = choose_layout(options.fields, shard->index(), read);
      if (!chosen) return located(std::move(chosen).error(), shard->name());
      layout = std::move(*chosen);
    }
    auto list = options.fields.empty() ? read_key_list(*options.storage, shard->file())
                                       : Result<std::optional<std::string>>(std::nullopt);
    if (!list) return located(std::move(list).error(), shard->name());
    auto samples = LmdbSamples::of(*layout, shard->index(), options.missing, *list);
    if (!samples) return located(std::move(samples).error(), shard->name());
    if (auto counted = check_count(*layout, shard->index(), *samples, read); !counted)
      return located(std::move(counted).error(), shard->name());
    shard->close();
    databases.push_back({std::move(shard), std::move(*samples)});
  }
  std::shared_ptr<const LmdbFormat> format(new LmdbFormat(source, options, std::move(databases), std::move(*layout)));
  if (format->size() > 0) return format;
  return config_error(options.missing == Missing::kSkip
                          ? "missing=\"skip\" omits all samples: each lacks one of the fields"
                          : "the databases have no samples");
}

LmdbFormat::LmdbFormat(std::string source, OpenOptions options, std::vector<Database> databases, LmdbLayout layout)
    : ShardedRecordFormat(std::move(source), std::move(options)), databases_(std::move(databases)), reader_({}) {
  for (LmdbField& field : layout.fields) {
    const auto lacks = [&](const Database& database) { return database.samples.has_gaps(field.source); };
    field.description.may_be_absent = options_.missing == Missing::kNone && std::ranges::any_of(databases_, lacks);
    fields_.push_back(field.description);
  }
  reader_ = ValueReader(std::move(layout));
  std::uint64_t end = 0;
  for (const Database& database : databases_) {
    ends_.push_back(end += database.samples.size());
    left_out_ += database.samples.left_out();
  }
  expect(std::views::transform(databases_, &Database::shard));
  fingerprint_ = compute_fingerprint();
}

// Reports the number of entries that do not match any field, because LMDB has no columns that could be named.
std::vector<UnopenedColumn> LmdbFormat::unopened() const {
  std::uint64_t entries = 0, taken = 0;
  for (const Database& database : databases_) {
    entries += database.shard->index().size() - (reader_.layout().is_counted ? 1 : 0);
    if (database.samples.left_out() > 0) return {};
    for (std::uint64_t i = 0; i < database.samples.size(); ++i)
      for (std::size_t source = 0; source < most_pieces(); ++source)
        taken += database.samples.entry(i, source).has_value();
  }
  if (taken >= entries) return {};
  return {{std::to_string(entries - taken) + " entries", "", "no field matches their keys", ""}};
}

// The fingerprint does not depend on positions in the file, so that a database rewritten by mdb_copy keeps its
// fingerprint.
std::uint64_t LmdbFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(name());
  for (const LmdbField& field : reader_.layout().fields) {
    fingerprint.add(field.description.name);
    fingerprint.add(static_cast<std::uint64_t>(field.description.kind));
    fingerprint.add(field.source);
    fingerprint.add(static_cast<std::uint64_t>(field.part));
  }
  if (options_.missing != Missing::kError)
    fingerprint.add(options_.missing == Missing::kSkip ? std::string_view("skip") : std::string_view("none"));
  for (const Database& database : databases_) {
    fingerprint.add(database.samples.size());
    for (std::uint64_t i = 0; i < database.samples.size(); ++i)
      for (std::size_t source = 0; source < most_pieces(); ++source) {
        const auto entry = database.samples.entry(i, source);
        fingerprint.add(entry ? database.shard->index().key(*entry) : std::string_view());
        fingerprint.add(entry ? database.shard->index().location(*entry).value_bytes : 0);
      }
  }
  return fingerprint.value();
}

LmdbFormat::Location LmdbFormat::find_sample(std::uint64_t index) const {
  const auto [number, sample] = position_of(index);
  return {databases_[number].shard.get(), &databases_[number].samples, sample};
}

Where LmdbFormat::where_source(std::uint64_t index, std::size_t source) const {
  const Location location = find_sample(index);
  Where where;
  where.dataset = source_;
  where.shard = location.shard->name();
  where.key = sample_key(reader_.layout(), location.shard->index(), *location.samples, location.sample);
  where.record = index;
  auto entry = location.samples->entry(location.sample, source);
  for (std::size_t i = 0; !entry && i < most_pieces(); ++i) entry = location.samples->entry(location.sample, i);
  if (entry) where.offset = location.shard->index().location(*entry).offset;
  return where;
}

Where LmdbFormat::where(std::uint64_t index) const { return where_source(index, 0); }

Where LmdbFormat::where_field(std::uint64_t index, std::size_t field) const {
  return where_source(index, reader_.layout().fields[field].source);
}

void LmdbFormat::notice_changes() const {
  for (const Database& database : databases_) database.shard->notice_change();
}

// Reads the first present value into record.storage, and all others into record.more.
Result<void> LmdbFormat::fetch(const Location& location, memory::Record& record, Values values) const {
  record.pin.reset();
  FEEDLINE_TRY(const auto reader, open_shards_.reader(*location.shard));
  record.more.resize(std::max(record.more.size(), values.size() - 1));
  std::uint64_t left = record.most_bytes;
  std::size_t used = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto entry = location.samples->entry(location.sample, i);
    if (!entry) continue;
    memory::ByteBuffer& room = used == 0 ? record.storage : record.more[used - 1];
    ++used;
    FEEDLINE_TRY(values[i], location.shard->read(reader, *entry, room, left, record.pin));
    left -= std::min<std::uint64_t>(left, values[i]->size());
  }
  return {};
}

Result<void> LmdbFormat::take_values(std::span<const Value> values, memory::Record& record) const {
  auto read = reader_.read(values, record);
  if (!read) return std::unexpected(std::move(read).error().error);
  record.bytes_read = 0;
  for (const Value& value : values) record.bytes_read += value ? value->size() : 0;
  return {};
}

Result<void> LmdbFormat::read(std::uint64_t index, memory::Record& record) const {
  ShortList<Value> values(most_pieces());
  auto done = fetch(find_sample(index), record, values.all());
  if (done) done = take_values(values.all(), record);
  if (!done) return at(index, std::move(done).error());
  return done;
}

Result<void> LmdbFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  const Location location = find_sample(index);
  FEEDLINE_TRY(const auto reader, open_shards_.owned_reader(*location.shard));
  for (std::size_t i = 0; i < most_pieces(); ++i) {
    const auto entry = location.samples->entry(location.sample, i);
    if (!entry) continue;
    const LmdbIndex::Location frame = location.shard->index().location(*entry);
    if (pieces.empty())
      if (const auto view = reader->view(frame.offset, 0); view && *view) return {};
    pieces.push_back({reader, {}, frame.offset, frame.bytes, {}});
  }
  return {};
}

Result<void> LmdbFormat::accept(std::uint64_t index, std::span<const Bytes> pieces, memory::Record& record) const {
  record.pin.reset();
  const Location location = find_sample(index);
  ShortList<Value> values(most_pieces());
  std::size_t used = 0;
  Result<void> done;
  for (std::size_t i = 0; i < most_pieces() && done; ++i) {
    const auto entry = location.samples->entry(location.sample, i);
    if (!entry) continue;
    FEEDLINE_CHECK(used < pieces.size());
    auto value = location.shard->value_of(*entry, pieces[used++]);
    if (value)
      values.all()[i] = *value;
    else
      done = std::unexpected(std::move(value).error());
  }
  if (done) done = take_values(values.all(), record);
  if (!done) return at(index, std::move(done).error());
  return done;
}

Result<SampleFiles> LmdbFormat::files(std::uint64_t index) const {
  const Location location = find_sample(index);
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  std::vector<Value> values(most_pieces());
  const auto fetched = fetch(location, record, values);
  auto files = fetched ? reader_.files(values) : std::unexpected(fetched.error());
  if (!files) return at(index, std::move(files).error());
  const std::string key = sample_key(reader_.layout(), location.shard->index(), *location.samples, location.sample);
  return SampleFiles{tar_key(key), std::nullopt, std::move(*files)};
}

}  // namespace feedline::format
