// SPDX-License-Identifier: Apache-2.0
#include "format/plugin/plugin_shard.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <utility>

#include "base/plugin_call.h"
#include "format/field_kind.h"
#include "memory/sample_limit.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

// A sum over all shards of a dataset must not overflow.
constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 40U;

// Reads for the plugin while it opens a file. The plugin cannot return an Error, so that the first one is stored.
struct FileForPlugin {
  const storage::Reader& reader;
  std::optional<Error> error = {};

  static int read(void* host, std::uint64_t offset, void* out, std::size_t bytes, std::size_t* got,
                  feedline_message* message) noexcept {
    auto& self = *static_cast<FileForPlugin*>(host);
    try {
      auto count = self.reader.read_at(offset, {static_cast<std::byte*>(out), bytes});
      if (count) {
        *got = *count;
        return FEEDLINE_OK;
      }
      std::snprintf(message->text, sizeof message->text, "%s", count.error().what.c_str());
      if (!self.error) self.error = std::move(count).error();
    } catch (...) {
      std::snprintf(message->text, sizeof message->text, "reading the file failed");
    }
    *got = 0;
    return FEEDLINE_FAILED;
  }
};

// The values of a sample, and buffers for those that the plugin makes.
struct MemoryForPlugin {
  memory::Record& record;
  std::uint64_t room;  // limits the sum

  static void* allocate(void* host, std::size_t bytes) noexcept {
    auto& self = *static_cast<MemoryForPlugin*>(host);
    if (bytes > self.room) return nullptr;
    try {
      memory::ByteBuffer buffer;
      std::byte* const data = buffer.resize(std::max<std::size_t>(bytes, 1)).data();
      self.record.more.push_back(std::move(buffer));
      self.room -= bytes;
      return data;
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
};

bool is_part(const feedline_bytes& value, Bytes whole) {
  const auto begin = reinterpret_cast<std::uintptr_t>(value.data),
             first = reinterpret_cast<std::uintptr_t>(whole.data());
  return begin >= first && begin - first <= whole.size() && value.size <= whole.size() - (begin - first);
}

Error format_stage(Error error) {
  if (error.code == ErrorCode::kData) error.where.stage = "format";
  return error;
}

}  // namespace

std::string described(const feedline_format_v1& format) {
  return "the plugin's format '" + std::string(format.name) + "'";
}

Result<std::unique_ptr<PluginShard>> PluginShard::open(const feedline_format_v1& format,
                                                       std::shared_ptr<const storage::Storage> storage,
                                                       const std::string& name) {
  FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader, storage->open(name, storage::Access::kRead));
  FEEDLINE_TRY(const storage::Version version, reader->version());
  FileForPlugin host{*reader};
  const feedline_file file{name.c_str(), version.bytes, &host, FileForPlugin::read};
  void* shard = nullptr;
  std::uint64_t samples = 0;
  auto opened = base::call_plugin(described(format), [&](feedline_message* message) {
    return format.open(format.context, &file, &shard, &samples, message);
  });
  if (!opened) return std::unexpected(host.error ? std::move(*host.error) : format_stage(std::move(opened).error()));
  std::unique_ptr<PluginShard> made(
      new PluginShard(format, ShardFile{name, name, std::move(storage), version}, shard, samples));
  if (samples > kMostSamples)
    return data_error(described(format) + ": open() reports " + std::to_string(samples) + " samples; the limit is " +
                          std::to_string(kMostSamples),
                      "format");
  return made;
}

PluginShard::~PluginShard() {
  (void)base::call_plugin(described(format_), [&](feedline_message*) {
    format_.close(format_.context, shard_);
    return FEEDLINE_OK;
  });
}

Result<PluginShard::Range> PluginShard::locate(std::uint64_t sample) const {
  Range range;
  auto located = base::call_plugin(described(format_), [&](feedline_message* message) {
    return format_.locate(format_.context, shard_, sample, &range.offset, &range.bytes, message);
  });
  if (!located) return std::unexpected(format_stage(std::move(located).error()));
  const std::uint64_t size = file().version.bytes;
  if (range.offset > size || range.bytes > size - range.offset)
    return data_error(described(format_) + ": a sample has " + std::to_string(range.bytes) + " bytes at byte " +
                          std::to_string(range.offset) + ", but the file has " + std::to_string(size) +
                          " bytes: it is truncated or damaged",
                      "format");
  return range;
}

Result<Bytes> PluginShard::read(const std::shared_ptr<const storage::Reader>& reader, std::uint64_t sample,
                                memory::Record& record) const {
  FEEDLINE_TRY(const Range range, locate(sample));
  if (range.bytes > record.most_bytes) return memory::too_large(range.bytes, record.most_bytes);
  FEEDLINE_TRY(const auto view, reader->view(range.offset, range.bytes));
  if (view) {
    record.pin = reader;
    return *view;
  }
  FEEDLINE_TRY(const auto room, record.storage.make_room(range.bytes, record.most_bytes));
  FEEDLINE_TRY(const std::size_t got, reader->read_at(range.offset, room));
  if (got < room.size())
    return storage_error(
        "the file ends at byte " + std::to_string(range.offset + got) + ", inside a sample: the file became shorter",
        0);
  return room;
}

Result<std::vector<feedline_bytes>> PluginShard::values_of(std::uint64_t sample, Bytes stored,
                                                           memory::Record& record) const {
  record.more.clear();
  MemoryForPlugin host{record, record.most_bytes};
  const feedline_memory memory{&host, MemoryForPlugin::allocate};
  std::vector<feedline_bytes> values(format_.field_count, feedline_bytes{nullptr, 0});
  static constexpr std::byte kNothing{};
  if (stored.empty()) stored = Bytes(&kNothing, 0);  // as values without an address are absent
  auto read = base::call_plugin(described(format_), [&](feedline_message* message) {
    return format_.read(format_.context, shard_, sample, {stored.data(), stored.size()}, &memory, values.data(),
                        message);
  });
  if (!read) return std::unexpected(format_stage(std::move(read).error()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const feedline_field& field = format_.fields[i];
    if (values[i].data == nullptr) continue;
    if (*field_kind_of(field.kind) == FieldKind::kInteger) {
      if (values[i].size == sizeof(std::int64_t)) continue;
      return data_error(described(format_) + ": the field '" + field.name + "' has " + std::to_string(values[i].size) +
                            " bytes, but a value has 8",
                        "format");
    }
    const bool is_inside = is_part(values[i], stored) || std::ranges::any_of(record.more, [&](const auto& buffer) {
                             return is_part(values[i], {buffer.data(), buffer.capacity()});
                           });
    if (!is_inside)
      return data_error(described(format_) + ": the " + std::to_string(values[i].size) + " bytes of the field '" +
                            field.name + "' are neither a part of the stored bytes nor of allocated memory",
                        "format");
  }
  return values;
}

}  // namespace feedline::format
