// SPDX-License-Identifier: Apache-2.0
#include "format/volumes/hdf5_volume.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/crc.h"
#include "format/volumes/chunk_codec.h"
#include "format/volumes/chunk_grid.h"
#include "format/volumes/dense_volume.h"
#include "text/json_value.h"

namespace feedline::format {

struct ChunkList {
  struct Chunk {
    std::uint64_t offset;
    std::uint32_t bytes, mask;
  };
  static constexpr std::uint64_t kNotStored = ~std::uint64_t{0};

  std::uint64_t file_bytes = 0;
  std::int64_t mtime_ns = 0;
  ArraySpec spec;
  bool is_swapped = false;
  Element fill{};
  std::optional<std::uint64_t> offset;  // of contiguous elements
  ChunkLayout layout;                   // otherwise
  std::vector<Chunk> chunks;
};

namespace {

using text::JsonValue;

constexpr std::string_view kMagic = "FLh5chk1";
constexpr std::size_t kListHeader = 24;
constexpr std::uint64_t kMostList = std::uint64_t{1} << 32U;

std::unexpected<Error> bad_list(const std::string& what) {
  return data_error("hdf5: the list of chunks " + what, "format");
}

template <typename T>
std::optional<T> number_of(const JsonValue& object, std::string_view name) {
  const JsonValue* const value = object.find(name);
  T number{};
  if (value == nullptr || value->kind != JsonValue::Kind::kNumber) return {};
  const char* const end = value->text.data() + value->text.size();
  const auto read = std::from_chars(value->text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return {};
  return number;
}

Result<Shape> extents_in(const JsonValue& object, std::string_view name) {
  const JsonValue* const list = object.find(name);
  if (list == nullptr || list->items.empty() || list->items.size() > Shape::kMaxDims)
    return bad_list("has no valid \"" + std::string(name) + "\"");
  Shape shape;
  std::int64_t product = 8;
  for (std::size_t i = list->items.size(); i-- > 0;) {
    std::int64_t extent = 0;
    const std::string& digits = list->items[i].text;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), extent);
    if (read.ec != std::errc() || extent < 1 || __builtin_mul_overflow(product, extent, &product))
      return bad_list("has an extent of " + digits);
    shape = shape.with_front(extent);
  }
  return shape;
}

Result<ChunkCodec> codec_of_filter(std::string_view number) {
  if (number == "1") return ChunkCodec::kZlib;
  if (number == "2") return ChunkCodec::kShuffle;
  if (number == "3") return ChunkCodec::kFletcher32;
  if (number == "32001") return ChunkCodec::kBlosc;
  if (number == "32015") return ChunkCodec::kZstd;
  return data_error("hdf5: the dataset uses filter " + std::string(number) +
                        ", which is not supported; deflate, shuffle, fletcher32, blosc and zstd are",
                    "format");
}

Result<void> take_chunks(const JsonValue& object, std::span<const std::byte> table, ChunkList& list) {
  FEEDLINE_TRY(const Shape chunk, extents_in(object, "chunk"));
  if (chunk.dims() != list.spec.shape.dims()) return bad_list("has chunks with another number of axes");
  list.layout = {.dtype = list.spec.dtype, .shape = chunk, .codecs = {}, .is_swapped = list.is_swapped};
  for (std::size_t i = 0; i < chunk.dims(); ++i) list.layout.order[i] = static_cast<std::uint8_t>(i);
  const JsonValue* const filters = object.find("filters");
  if (filters == nullptr) return bad_list("has no \"filters\"");
  if (filters->items.size() > 32) return bad_list("has too many filters");
  for (const JsonValue& filter : filters->items) {
    FEEDLINE_TRY(const ChunkCodec codec, codec_of_filter(filter.text));
    list.layout.codecs.push_back(codec);
  }
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < chunk.dims(); ++i)
    count *= static_cast<std::uint64_t>((list.spec.shape[i] + chunk[i] - 1) / chunk[i]);
  if (table.size() != count * sizeof(ChunkList::Chunk)) return bad_list("does not have the stated number of chunks");
  list.chunks.resize(count);
  std::memcpy(list.chunks.data(), table.data(), table.size());
  return {};
}

class Hdf5Volume final : public memory::Volume {
 public:
  Hdf5Volume(std::shared_ptr<const storage::Reader> reader, std::shared_ptr<const ChunkList> list, OpenedVersion opened,
             std::string_view array)
      : reader_(std::move(reader)),
        list_(std::move(list)),
        strides_(list_->layout.strides()),
        opened_(std::move(opened)),
        key_(opened_.key(array)) {}

  const ArraySpec& spec() const override { return list_->spec; }
  Shape chunk() const override { return list_->layout.shape; }
  const std::string& name() const override { return opened_.path(); }
  Result<std::uint64_t> key() const override { return key_; }
  Result<void> check_unchanged() const override { return opened_.check(); }

  Result<std::uint64_t> read_box(std::span<const std::int64_t> begin, std::span<const std::int64_t> size,
                                 std::byte* out, memory::VolumeBuffers& buffers) const override {
    const BoxCopy box(begin, size, out, size_of(list_->spec.dtype));
    std::uint64_t bytes = 0;
    FEEDLINE_CHECK_OK(for_chunks(begin, size, list_->layout.shape, [&](const Indexes& at) -> Result<void> {
      auto read = read_chunk(at, box, buffers);
      if (!read) {
        if (read.error().where.shard.empty()) read.error().where.shard = reader_->name();
        return std::unexpected(std::move(read).error());
      }
      bytes += *read;
      return {};
    }));
    return bytes;
  }

 private:
  Result<std::uint64_t> read_chunk(const Indexes& at, const BoxCopy& box, memory::VolumeBuffers& buffers) const {
    const Shape& shape = list_->spec.shape;
    const Shape& chunk = list_->layout.shape;
    Indexes low{};
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < shape.dims(); ++i) {
      low[i] = at[i] * chunk[i];
      number =
          number * static_cast<std::uint64_t>((shape[i] + chunk[i] - 1) / chunk[i]) + static_cast<std::uint64_t>(at[i]);
    }
    BoxCopy::Part part;
    if (!box.part_in(low, chunk, part)) return 0;
    const ChunkList::Chunk& stored = list_->chunks[number];
    if (stored.offset == ChunkList::kNotStored) {
      box.fill(part, list_->fill);
      return 0;
    }
    if (stored.offset > list_->file_bytes || stored.bytes > list_->file_bytes - stored.offset)
      return data_error("hdf5: chunk " + std::to_string(number) + " is outside the file", "format");
    FEEDLINE_TRY(const auto view, reader_->view(stored.offset, stored.bytes));
    std::span<const std::byte> bytes;
    if (view) {
      bytes = *view;
    } else {
      const auto room = buffers.stored.resize(stored.bytes);
      FEEDLINE_TRY(const std::size_t got, reader_->read_at(stored.offset, room));
      if (got < room.size()) return data_error("hdf5: the file became shorter while it was read", "format");
      bytes = room;
    }
    auto decoded = decode_chunk(list_->layout, bytes, stored.mask, buffers);
    if (!decoded) {
      decoded.error().where.offset = stored.offset;
      return std::unexpected(std::move(decoded).error());
    }
    box.copy(part, low, decoded->data(), strides_);
    return bytes.size();
  }

  const std::shared_ptr<const storage::Reader> reader_;
  const std::shared_ptr<const ChunkList> list_;
  const memory::Strides strides_;
  const OpenedVersion opened_;
  const std::uint64_t key_;
};

}  // namespace

Result<std::shared_ptr<const ChunkList>> parse_chunk_list(std::span<const std::byte> file) {
  if (file.size() < kListHeader || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0)
    return bad_list("is damaged; delete it");
  std::uint64_t sum = 0, json_bytes = 0;
  std::memcpy(&sum, file.data() + 8, 8);
  std::memcpy(&json_bytes, file.data() + 16, 8);
  if (base::crc(base::CrcKind::k32c, 0, file.subspan(16)) != sum || json_bytes > file.size() - kListHeader)
    return bad_list("is damaged; delete it");
  const std::string_view json(reinterpret_cast<const char*>(file.data()) + kListHeader, json_bytes);
  const auto object = text::parse_json(json);
  if (!object) return bad_list("is damaged; delete it");
  auto list = std::make_shared<ChunkList>();
  const auto bytes = number_of<std::uint64_t>(*object, "bytes");
  const auto mtime = number_of<std::int64_t>(*object, "mtime_ns");
  const JsonValue* const descr = object->find("dtype");
  const std::string notation = descr == nullptr ? "" : descr->text;
  const auto dtype = dtype_of_descr(notation);
  if (!bytes || !mtime) return bad_list("does not name its file");
  if (!dtype) return data_error("hdf5: elements of '" + notation + "' are not supported", "format");
  list->file_bytes = *bytes;
  list->mtime_ns = *mtime;
  list->spec.dtype = *dtype;
  list->is_swapped = notation[0] == '>';
  FEEDLINE_TRY(list->spec.shape, extents_in(*object, "shape"));
  const JsonValue* const fill = object->find("fill");
  if (fill == nullptr || fill->text.size() != 2 * size_of(*dtype)) return bad_list("has no valid \"fill\"");
  for (std::size_t i = 0; i < size_of(*dtype); ++i) {
    unsigned value = 0;
    std::from_chars(fill->text.data() + 2 * i, fill->text.data() + 2 * i + 2, value, 16);
    list->fill[i] = static_cast<std::byte>(value);
  }
  list->offset = number_of<std::uint64_t>(*object, "offset");
  if (!list->offset) FEEDLINE_CHECK_OK(take_chunks(*object, file.subspan(kListHeader + json_bytes), *list));
  return list;
}

Result<std::shared_ptr<const memory::Volume>> open_hdf5(const VolumeSource& source) {
  memory::ByteBuffer buffer;
  FEEDLINE_TRY(const auto file, storage::local_storage()->read_all(source.chunks, buffer, kMostList));
  FEEDLINE_TRY(std::shared_ptr<const ChunkList> list, parse_chunk_list(file));
  FEEDLINE_TRY(std::shared_ptr<const storage::Reader> reader, source.storage->open(source.path, storage::Access::kMap));
  FEEDLINE_TRY(const storage::ObjectStat version, reader->version());
  if (version.bytes != list->file_bytes || version.mtime_ns != list->mtime_ns)
    return storage_error("'" + source.path + "' has changed since its chunks were listed; open it again", 0);
  OpenedVersion opened(source.storage, source.path, version);
  if (!list->offset)
    return std::make_shared<const Hdf5Volume>(std::move(reader), std::move(list), std::move(opened), source.array);
  return make_dense_volume(std::move(reader),
                           {.stored = list->spec, .offset = *list->offset, .is_swapped = list->is_swapped},
                           std::move(opened), source.array);
}

}  // namespace feedline::format
