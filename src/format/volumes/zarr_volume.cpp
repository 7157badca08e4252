// SPDX-License-Identifier: Apache-2.0
#include "format/volumes/zarr_volume.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/crc.h"
#include "base/fork_mutex.h"
#include "base/random.h"
#include "cache/checksum.h"
#include "format/volumes/chunk_grid.h"
#include "format/volumes/opened_version.h"
#include "format/volumes/zarr_metadata.h"

namespace feedline::format {
namespace {

constexpr std::uint64_t kMostMetadata = 64 << 20;
constexpr std::uint64_t kMissingChunk = ~std::uint64_t{0};  // both numbers of an inner chunk that is not stored
// Open shards are descriptors or mappings, with an index in memory.
constexpr std::size_t kMostShards = 128;
// Compressed chunks are not larger than this, unless they are damaged.
constexpr std::uint64_t most_stored(std::size_t bytes) { return bytes + bytes / 8 + 65'536; }

bool is_missing(const Error& error) { return error.code == ErrorCode::kStorage && error.system_errno == ENOENT; }

std::unexpected<Error> in_object(Error error, const std::string& object) {
  if (error.where.shard.empty()) error.where.shard = object;
  return std::unexpected(std::move(error));
}

class ZarrVolume final : public memory::Volume {
 public:
  ZarrVolume(std::shared_ptr<const storage::Storage> storage, std::string folder, ZarrArray array, OpenedVersion opened)
      : storage_(std::move(storage)),
        folder_(std::move(folder)),
        array_(std::move(array)),
        strides_(array_.layout.strides()),
        opened_(std::move(opened)) {
    if (!array_.has_shards) return;
    inner_count_ = 1;
    for (std::size_t i = 0; i < array_.stored.dims(); ++i)
      inner_count_ *= static_cast<std::uint64_t>(array_.stored[i] / array_.layout.shape[i]);
  }

  const ArraySpec& spec() const override { return array_.spec; }
  Shape chunk() const override { return array_.layout.shape; }
  const std::string& name() const override { return folder_; }
  // The chunks may change without the metadata, so the key covers all of them.
  Result<std::uint64_t> key() const override {
    {
      const std::lock_guard lock(mutex_);
      if (key_) return *key_;
    }
    FEEDLINE_TRY(const std::uint64_t made, storage_->is_remote() ? key_of_listing() : key_of_chunks());
    const std::lock_guard lock(mutex_);
    return *(key_ = made);
  }
  Result<void> check_unchanged() const override { return opened_.check(); }

  Result<std::uint64_t> read_box(std::span<const std::int64_t> begin, std::span<const std::int64_t> size,
                                 std::byte* out, memory::VolumeBuffers& buffers) const override {
    const BoxCopy box(begin, size, out, size_of(array_.spec.dtype));
    std::uint64_t bytes = 0;
    FEEDLINE_CHECK_OK(for_chunks(begin, size, array_.stored, [&](const Indexes& at) -> Result<void> {
      const std::string object = storage_->below(folder_, array_.key(std::span(at).first(size.size())));
      auto read = array_.has_shards ? read_shard(object, at, box, buffers) : read_chunk(object, at, box, buffers);
      if (!read) return in_object(std::move(read).error(), object);
      bytes += *read;
      return {};
    }));
    return bytes;
  }

 private:
  struct Shard {
    std::shared_ptr<const storage::Reader> reader;  // nullptr: the shard is not stored
    std::vector<std::uint64_t> index;               // offset and size of each inner chunk
    storage::Version version = {};
  };

  Result<std::uint64_t> key_of_chunks() const {
    std::uint64_t key = opened_.key();
    const Shape& shape = array_.spec.shape;
    const Indexes origin{};
    FEEDLINE_CHECK_OK(for_chunks(
        std::span(origin).first(shape.dims()), {shape.begin(), shape.dims()}, array_.stored,
        [&](const Indexes& at) -> Result<void> {
          const auto version = storage_->stat(storage_->below(folder_, array_.key(std::span(at).first(shape.dims()))));
          if (!version && !is_missing(version.error())) return std::unexpected(version.error());
          key = base::mix64(key + (version ? base::mix64(version->bytes + base::mix64(version->stamp())) : 1));
          return {};
        }));
    return key;
  }
  // Storages that cannot be listed, such as plain HTTP servers, have only the version of the metadata.
  Result<std::uint64_t> key_of_listing() const {
    std::uint64_t key = opened_.key();
    auto tree = storage_->list_below(folder_, storage::Depth::kAll);
    if (!tree) return key;
    std::ranges::sort(tree->objects, {}, &storage::StoredBelow::path);
    for (const storage::StoredBelow& object : tree->objects)
      key = base::mix64(key + cache::xxh3(std::as_bytes(std::span(object.path)), object.bytes ^ object.tag));
    return key;
  }

  Indexes low_of(const Indexes& at, const Shape& chunk) const {
    Indexes low{};
    for (std::size_t i = 0; i < chunk.dims(); ++i) low[i] = at[i] * chunk[i];
    return low;
  }

  Result<std::uint64_t> read_chunk(const std::string& object, const Indexes& at, const BoxCopy& box,
                                   memory::VolumeBuffers& buffers) const {
    const Indexes low = low_of(at, array_.stored);
    BoxCopy::Part part;
    if (!box.part_in(low, array_.stored, part)) return 0;
    const std::uint64_t most = most_stored(array_.layout.bytes());
    const auto stored = storage_->read_all(object, buffers.stored, most);
    if (!stored && is_missing(stored.error())) {
      box.fill(part, array_.fill);
      return 0;
    }
    if (!stored && stored.error().code == ErrorCode::kData)
      return data_error("zarr: the chunk has more than " + std::to_string(most) + " bytes, but decodes to " +
                            std::to_string(array_.layout.bytes()) +
                            ": it is damaged, or belongs to an array with other metadata",
                        "format");
    if (!stored) return std::unexpected(stored.error());
    FEEDLINE_TRY(const auto chunk, decode_chunk(array_.layout, *stored, 0, buffers));
    box.copy(part, low, chunk.data(), strides_);
    return stored->size();
  }

  Result<std::uint64_t> read_shard(const std::string& object, const Indexes& at, const BoxCopy& box,
                                   memory::VolumeBuffers& buffers) const {
    FEEDLINE_TRY(const auto shard, shard_of(object, at));
    const Indexes low = low_of(at, array_.stored);
    BoxCopy::Part part;
    if (!box.part_in(low, array_.stored, part)) return 0;
    if (shard->reader == nullptr) {
      box.fill(part, array_.fill);
      return 0;
    }
    auto read = read_chunks_in(*shard, low, part, box, buffers);
    FEEDLINE_TRY(const storage::Version now, shard->reader->version());
    FEEDLINE_CHECK_OK(storage::check_version(object, shard->version, now));
    return read;
  }

  // low: the indexes of the shard's first element. part: the part of the box that is in the shard.
  Result<std::uint64_t> read_chunks_in(const Shard& shard, const Indexes& low, const BoxCopy::Part& part,
                                       const BoxCopy& box, memory::VolumeBuffers& buffers) const {
    struct Wanted {
      std::uint64_t offset, bytes;
      Indexes low;
    };
    std::vector<Wanted> wanted;
    const Shape& inner = array_.layout.shape;
    const std::size_t dims = inner.dims();
    Indexes from{};
    for (std::size_t i = 0; i < dims; ++i) from[i] = part.first[i] - low[i];
    FEEDLINE_CHECK_OK(for_chunks(
        std::span(from).first(dims), std::span(part.size).first(dims), inner,
        [&](const Indexes& chunk) -> Result<void> {
          std::uint64_t number = 0;
          Indexes chunk_low{};
          for (std::size_t i = 0; i < dims; ++i) {
            number =
                number * static_cast<std::uint64_t>(array_.stored[i] / inner[i]) + static_cast<std::uint64_t>(chunk[i]);
            chunk_low[i] = low[i] + chunk[i] * inner[i];
          }
          const std::uint64_t offset = shard.index[2 * number], bytes = shard.index[2 * number + 1];
          if (offset == kMissingChunk && bytes == kMissingChunk) {
            BoxCopy::Part missing;
            if (box.part_in(chunk_low, inner, missing)) box.fill(missing, array_.fill);
            return {};
          }
          if (offset > shard.version.bytes || bytes > shard.version.bytes - offset ||
              bytes > most_stored(array_.layout.bytes()))
            return data_error("zarr: the shard's index places chunk " + std::to_string(number) + " at bytes " +
                                  std::to_string(offset) + " to " + std::to_string(offset + bytes) + " of " +
                                  std::to_string(shard.version.bytes),
                              "format");
          wanted.push_back({offset, bytes, chunk_low});
          return {};
        }));
    std::ranges::sort(wanted, {}, &Wanted::offset);
    // Ranges with small gaps between them are read together.
    const std::uint64_t gap = shard.reader->worthwhile_bytes();
    std::uint64_t read = 0;
    for (std::size_t first = 0; first < wanted.size();) {
      std::size_t last = first + 1;
      std::uint64_t end = wanted[first].offset + wanted[first].bytes;
      while (last < wanted.size() && wanted[last].offset <= end + gap) {
        end = std::max(end, wanted[last].offset + wanted[last].bytes);
        ++last;
      }
      const std::uint64_t begin = wanted[first].offset;
      FEEDLINE_TRY(const auto view, shard.reader->view(begin, end - begin));
      std::span<const std::byte> run;
      if (view) {
        run = *view;
      } else {
        const auto room = buffers.stored.resize(end - begin);
        FEEDLINE_TRY(const std::size_t got, shard.reader->read_at(begin, room));
        if (got < room.size()) return data_error("zarr: the shard became shorter while it was read", "format");
        run = room;
      }
      read += run.size();
      for (; first < last; ++first) {
        const Wanted& one = wanted[first];
        auto chunk = decode_chunk(array_.layout, run.subspan(one.offset - begin, one.bytes), 0, buffers);
        if (!chunk) {
          chunk.error().where.offset = one.offset;
          return std::unexpected(std::move(chunk).error());
        }
        BoxCopy::Part inside;
        if (box.part_in(one.low, inner, inside)) box.copy(inside, one.low, chunk->data(), strides_);
      }
    }
    return read;
  }

  Result<std::shared_ptr<const Shard>> shard_of(const std::string& object, const Indexes& at) const {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < array_.stored.dims(); ++i) {
      const std::int64_t count = (array_.spec.shape[i] + array_.stored[i] - 1) / array_.stored[i];
      number = number * static_cast<std::uint64_t>(count) + static_cast<std::uint64_t>(at[i]);
    }
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = shards_.find(number); found != shards_.end()) return found->second;
    }
    auto shard = std::make_shared<Shard>();
    auto reader = storage_->open(object, storage::Access::kMap);
    if (!reader && !is_missing(reader.error())) return std::unexpected(std::move(reader).error());
    if (reader) {
      shard->reader = std::move(*reader);
      auto found = read_index(*shard);
      if (!found && is_missing(found.error()))
        shard->reader = nullptr;  // a remote storage opened it without a request
      else if (!found)
        return std::unexpected(std::move(found).error());
    }
    if (!shard->reader && !storage_->is_remote()) return shard;  // it may be written later
    const std::lock_guard lock(mutex_);
    if (shards_.size() >= kMostShards) shards_.clear();
    return shards_.emplace(number, std::move(shard)).first->second;
  }

  Result<void> read_index(Shard& shard) const {
    FEEDLINE_TRY(shard.version, shard.reader->version());
    const std::uint64_t size = shard.version.bytes;
    if (inner_count_ > size / 16)
      return data_error("zarr: a shard of " + std::to_string(size) + " bytes is too short for an index of " +
                            std::to_string(inner_count_) + " chunks",
                        "format");
    const std::uint64_t numbers = 2 * inner_count_, sum = array_.has_index_sum ? 4 : 0, bytes = numbers * 8 + sum;
    if (bytes > size)
      return data_error(
          "zarr: a shard of " + std::to_string(size) + " bytes is too short for its index of " + std::to_string(bytes),
          "format");
    std::vector<std::byte> index(bytes);
    FEEDLINE_TRY(const std::size_t got, shard.reader->read_at(array_.has_index_first ? 0 : size - bytes, index));
    if (got < index.size()) return data_error("zarr: the shard became shorter while it was read", "format");
    const auto data = std::span<const std::byte>(index).first(numbers * 8);
    if (array_.has_index_sum) {
      std::uint32_t stored = 0;
      std::memcpy(&stored, index.data() + data.size(), 4);
      if (static_cast<std::uint32_t>(base::crc(base::CrcKind::k32c, 0, data)) != stored)
        return data_error("zarr: the shard is damaged: the crc32c checksum of its index does not match", "format");
    }
    shard.index.resize(numbers);
    std::memcpy(shard.index.data(), data.data(), data.size());
    return {};
  }

  const std::shared_ptr<const storage::Storage> storage_;
  const std::string folder_;
  const ZarrArray array_;
  const memory::Strides strides_;
  const OpenedVersion opened_;
  std::uint64_t inner_count_ = 0;  // of a shard
  mutable ForkMutex mutex_;
  mutable std::unordered_map<std::uint64_t, std::shared_ptr<const Shard>> shards_;
  mutable std::optional<std::uint64_t> key_;
};

// Returns the text of a file in a folder; nullopt if there is none.
Result<std::optional<std::string>> text_in(const storage::Storage& storage, const std::string& folder,
                                           const std::string& name) {
  memory::ByteBuffer buffer;
  const auto read = storage.read_all(storage.below(folder, name), buffer, kMostMetadata);
  if (!read && is_missing(read.error())) return std::optional<std::string>();
  if (!read) return std::unexpected(read.error());
  return std::string(reinterpret_cast<const char*>(read->data()), read->size());
}

std::unexpected<Error> no_array(const std::string& path, const std::string& array, const std::string& group_json) {
  std::string names;
  for (const std::string& name : consolidated_arrays(group_json)) names += (names.empty() ? "" : ", ") + name;
  const std::string listed = names.empty() ? "" : "; it has " + names;
  if (array.empty())
    return config_error("'" + path + "' is a Zarr group: name its arrays with fields=, such as \"image=ARRAY\"" +
                        listed);
  return config_error("fields: the Zarr group '" + path + "' has no array '" + array + "'" + listed);
}

}  // namespace

Result<std::shared_ptr<const memory::Volume>> open_zarr(std::shared_ptr<const storage::Storage> storage,
                                                        const std::string& path, const std::string& array) {
  std::string root = path;
  while (root.size() > 1 && root.ends_with('/')) root.pop_back();
  const std::string folder = array.empty() ? root : storage->below(root, array);
  FEEDLINE_TRY(const auto third, text_in(*storage, folder, "zarr.json"));
  const std::string object = storage->below(folder, third ? "zarr.json" : ".zarray");
  Result<ZarrArray> parsed;
  if (third) {
    auto is_group = is_zarr3_group(*third);
    if (!is_group) return in_object(std::move(is_group).error(), object);
    if (*is_group) return no_array(path, array, *third);
    parsed = parse_zarr3(*third);
  } else {
    FEEDLINE_TRY(const auto second, text_in(*storage, folder, ".zarray"));
    if (!second) {
      FEEDLINE_TRY(const auto group, text_in(*storage, root, "zarr.json"));
      FEEDLINE_TRY(const auto old,
                   group ? Result<std::optional<std::string>>(std::nullopt) : text_in(*storage, root, ".zmetadata"));
      FEEDLINE_TRY(const auto bare, group || old ? Result<std::optional<std::string>>(std::nullopt)
                                                 : text_in(*storage, root, ".zgroup"));
      if (!group && !old && !bare)
        return config_error("'" + path + "' is not a Zarr array or group: it has no zarr.json, .zarray or .zgroup");
      return no_array(path, array, group ? *group : old.value_or("{}"));
    }
    parsed = parse_zarr2(*second);
  }
  if (!parsed) return in_object(std::move(parsed).error(), object);
  FEEDLINE_TRY(const storage::Version version, storage->stat(object));
  OpenedVersion opened(storage, object, version);
  return std::make_shared<const ZarrVolume>(std::move(storage), folder, std::move(*parsed), std::move(opened));
}

}  // namespace feedline::format
