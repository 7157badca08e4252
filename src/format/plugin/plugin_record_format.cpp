// SPDX-License-Identifier: Apache-2.0
#include "format/plugin/plugin_record_format.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "format/checksum.h"
#include "format/field_kind.h"
#include "format/shards/each_shard.h"
#include "format/shards/member_files.h"
#include "format/shards/record_keys.h"
#include "format/wanted_field.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

std::span<const feedline_field> fields_of(const feedline_format_v1& format) {
  return {format.fields, format.field_count};
}

std::string names_of_fields(const feedline_format_v1& format) {
  std::string names;
  for (const feedline_field& field : fields_of(format)) names += (names.empty() ? "" : ", ") + std::string(field.name);
  return names;
}

// Adds the file of a value to a packed sample.
void add_file(const feedline_field& field, const feedline_bytes& value, MemberFiles& files) {
  const FieldKind kind = *field_kind_of(field.kind);
  Bytes bytes{static_cast<const std::byte*>(value.data), value.size};
  std::string number;
  if (kind == FieldKind::kInteger) {
    std::int64_t integer = 0;
    std::memcpy(&integer, value.data, sizeof integer);
    number = std::to_string(integer);
    bytes = std::as_bytes(std::span(number));
  }
  files.add_value(field.name, kind, {bytes.begin(), bytes.end()});
}

std::vector<std::string> stems_of(const std::vector<std::unique_ptr<PluginShard>>& shards) {
  std::vector<std::string> names;
  for (const auto& shard : shards) {
    const std::string name = shard->name().substr(shard->name().rfind('/') + 1);
    names.push_back(name.substr(0, name.rfind('.')));
  }
  return key_stems(std::move(names));
}

}  // namespace

Result<std::shared_ptr<const RecordFormat>> PluginRecordFormat::open(const feedline_format_v1& format,
                                                                     const std::string& source,
                                                                     const std::vector<std::string>& files,
                                                                     const OpenOptions& options) {
  if (options.missing == Missing::kSkip)
    return config_error("missing=\"skip\" is not supported for " + described(format) +
                        ", as it would read every sample; use missing=\"none\", or on_error=\"skip\"");
  FEEDLINE_TRY(auto shards, each_shard<std::unique_ptr<PluginShard>>(
                                files.size(),
                                [&](std::size_t i) {
                                  auto shard = PluginShard::open(format, options.storage, files[i]);
                                  if (!shard && shard.error().where.shard.empty()) shard.error().where.shard = files[i];
                                  return shard;
                                },
                                shards_side_by_side(options.storage->is_remote())));
  std::shared_ptr<PluginRecordFormat> made(new PluginRecordFormat(format, source, options, std::move(shards)));
  FEEDLINE_CHECK_OK(made->choose_fields());
  if (made->size() == 0) return config_error(described(format) + ": the files have no samples");
  made->fingerprint_ = made->compute_fingerprint();
  return made;
}

PluginRecordFormat::PluginRecordFormat(const feedline_format_v1& format, std::string source, OpenOptions options,
                                       Shards shards)
    : ShardedRecordFormat(std::move(source), std::move(options)),
      format_(format),
      shards_(std::move(shards)),
      stems_(stems_of(shards_)) {
  std::uint64_t end = 0;
  for (const auto& shard : shards_) ends_.push_back(end += shard->samples());
  expect(shards_);
}

Result<void> PluginRecordFormat::choose_fields() {
  std::vector<std::string> specs = options_.fields;
  if (specs.empty())
    for (const feedline_field& field : fields_of(format_)) specs.emplace_back(field.name);
  for (const std::string& text : specs) {
    FEEDLINE_TRY(const WantedField wanted, parse_wanted_field(text, "field"));
    std::size_t column = format_.field_count;
    for (const std::string& one : wanted.alternatives)
      for (std::size_t i = format_.field_count; i-- > 0;)
        if (column == format_.field_count && one == format_.fields[i].name) column = i;
    if (column == format_.field_count)
      return config_error("fields: " + described(format_) + " has no field '" + wanted.names() + "'; its fields are " +
                          names_of_fields(format_));
    const FieldKind stored = *field_kind_of(format_.fields[column].kind);
    const FieldKind kind = wanted.said.value_or(stored);
    if ((kind == FieldKind::kInteger) != (stored == FieldKind::kInteger) || kind == FieldKind::kVideo ||
        kind == FieldKind::kVolume)
      return config_error("fields: '" + text + "': a field of the kind " + std::string(name_of(stored)) +
                          " cannot be read as " + std::string(name_of(kind)));
    columns_.push_back(column);
    FieldDescription field{.name = wanted.name, .kind = kind};
    field.may_be_absent = options_.missing == Missing::kNone;
    fields_.push_back(std::move(field));
  }
  return {};
}

// Does not depend on the names of files, so that copies of the dataset have the same fingerprint.
std::uint64_t PluginRecordFormat::compute_fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add(std::string_view("plugin"));
  fingerprint.add(std::string_view(format_.name));
  fingerprint.add(std::string_view(format_.version == nullptr ? "" : format_.version));
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    fingerprint.add(fields_[i].name);
    fingerprint.add(static_cast<std::uint64_t>(fields_[i].kind));
    fingerprint.add(std::string_view(format_.fields[columns_[i]].name));
  }
  if (options_.missing == Missing::kNone) fingerprint.add(std::string_view("none"));
  constexpr std::uint64_t kMostLocated = 1024;  // of a shard, at equal distances
  for (const auto& shard : shards_) {
    fingerprint.add(shard->samples());
    fingerprint.add(shard->file().version.bytes);
    const std::uint64_t step = std::max<std::uint64_t>(shard->samples() / kMostLocated, 1);
    for (std::uint64_t sample = 0; sample < shard->samples(); sample += step)
      if (const auto range = shard->locate(sample)) fingerprint.add(range->offset), fingerprint.add(range->bytes);
  }
  return fingerprint.value();
}

std::string PluginRecordFormat::summary() const {
  const std::string version = format_.version == nullptr ? "" : " " + std::string(format_.version);
  return "read by a plugin: '" + std::string(format_.name) + "'" + version;
}

Where PluginRecordFormat::where(std::uint64_t index) const {
  const Position position = position_of(index);
  Where where;
  where.dataset = source_;
  where.shard = shards_[position.shard]->name();
  where.key = record_key(stems_[position.shard], position.sample);
  where.record = index;
  if (const auto range = shards_[position.shard]->locate(position.sample)) where.offset = range->offset;
  return where;
}

Result<void> PluginRecordFormat::accept_stored(const Position& position, Bytes stored, memory::Record& record) const {
  FEEDLINE_TRY(const auto values, shards_[position.shard]->values_of(position.sample, stored, record));
  record.fields.resize(fields_.size());
  record.bytes_read = stored.size();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const feedline_bytes& value = values[columns_[i]];
    memory::Record::Field& field = record.fields[i];
    field = {};
    if (value.data == nullptr) {
      if (!fields_[i].may_be_absent)
        return data_error("the sample has no field '" + fields_[i].name + "'; missing=\"none\" reads it as None",
                          "format");
      field.absent = true;
    } else if (fields_[i].kind == FieldKind::kInteger) {
      std::memcpy(&field.value, value.data, sizeof field.value);
    } else if (value.size == 0 && !may_be_empty(fields_[i].kind)) {
      return data_error("field '" + fields_[i].name + "': an empty file", "format");
    } else {
      field.bytes = {static_cast<const std::byte*>(value.data), value.size};
    }
  }
  return {};
}

Result<void> PluginRecordFormat::read(std::uint64_t index, memory::Record& record) const {
  record.pin.reset();
  const Position position = position_of(index);
  const PluginShard& shard = *shards_[position.shard];
  const auto read = [&]() -> Result<void> {
    FEEDLINE_TRY(const auto reader, open_shards_.reader(shard));
    FEEDLINE_TRY(const Bytes stored, shard.read(reader, position.sample, record));
    return accept_stored(position, stored, record);
  };
  auto done = read();
  if (!done) return at(index, std::move(done).error());
  return done;
}

Result<void> PluginRecordFormat::find_pieces(std::uint64_t index, std::vector<storage::Piece>& pieces) const {
  const Position position = position_of(index);
  const PluginShard& shard = *shards_[position.shard];
  const auto range = shard.locate(position.sample);
  if (!range) return {};  // read() reports the error
  FEEDLINE_TRY(auto reader, open_shards_.owned_reader(shard));
  if (const auto view = reader->view(range->offset, 0); view && *view) return {};
  pieces.push_back({std::move(reader), {}, range->offset, range->bytes});
  return {};
}

Result<void> PluginRecordFormat::accept(std::uint64_t index, std::span<const Bytes> pieces,
                                        memory::Record& record) const {
  record.pin.reset();
  auto done = accept_stored(position_of(index), pieces.front(), record);
  if (!done) return at(index, std::move(done).error());
  return done;
}

// Returns all fields of the format, those of the dataset first.
Result<SampleFiles> PluginRecordFormat::files(std::uint64_t index) const {
  const Position position = position_of(index);
  const PluginShard& shard = *shards_[position.shard];
  memory::Record record;
  record.most_bytes = memory::usual_sample_limit();
  const auto read = [&]() -> Result<std::vector<SampleFiles::File>> {
    FEEDLINE_TRY(const auto reader, open_shards_.reader(shard));
    FEEDLINE_TRY(const Bytes stored, shard.read(reader, position.sample, record));
    FEEDLINE_TRY(const auto values, shard.values_of(position.sample, stored, record));
    std::vector<std::size_t> order = columns_;
    for (std::size_t i = 0; i < format_.field_count; ++i) order.push_back(i);
    std::vector<bool> is_written(format_.field_count);
    MemberFiles files;
    for (const std::size_t i : order)
      if (!is_written[i] && values[i].data != nullptr) {
        is_written[i] = true;
        add_file(format_.fields[i], values[i], files);
      }
    return files.take();
  };
  auto files = read();
  if (!files) return at(index, std::move(files).error());
  return SampleFiles{record_key(stems_[position.shard], position.sample), std::nullopt, std::move(*files)};
}

}  // namespace feedline::format
