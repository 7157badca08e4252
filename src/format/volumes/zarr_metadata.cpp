// SPDX-License-Identifier: Apache-2.0
#include "format/volumes/zarr_metadata.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "memory/number.h"
#include "text/json_value.h"

namespace feedline::format {
namespace {

using text::JsonValue;
using Kind = JsonValue::Kind;

// Larger chunks are assumed to be mistakes.
constexpr std::size_t kMostChunkBytes = std::size_t{1} << 31U;

std::unexpected<Error> bad_key(const std::string& what) { return data_error("zarr: " + what, "format"); }

Result<const JsonValue*> member(const JsonValue& object, std::string_view name, Kind kind) {
  const JsonValue* const found = object.find(name);
  if (found == nullptr) return bad_key("\"" + std::string(name) + "\" is missing");
  if (found->kind != kind) return bad_key("\"" + std::string(name) + "\" has the wrong type");
  return found;
}

std::optional<std::int64_t> integer_of(const JsonValue& value) {
  std::int64_t number = 0;
  if (value.kind != Kind::kNumber) return {};
  const auto [end, failure] = std::from_chars(value.text.data(), value.text.data() + value.text.size(), number);
  if (failure != std::errc() || end != value.text.data() + value.text.size()) return {};
  return number;
}

// least: the smallest extent that is allowed.
Result<Shape> shape_in(const JsonValue& object, std::string_view name, std::int64_t least) {
  FEEDLINE_TRY(const JsonValue* const list, member(object, name, Kind::kArray));
  if (list->items.size() > Shape::kMaxDims)
    return bad_key("\"" + std::string(name) + "\" has more than " + std::to_string(Shape::kMaxDims) + " axes");
  Shape shape;
  std::int64_t product = 8;
  for (std::size_t i = list->items.size(); i-- > 0;) {
    const auto extent = integer_of(list->items[i]);
    if (!extent || *extent < least || __builtin_mul_overflow(product, std::max<std::int64_t>(*extent, 1), &product))
      return bad_key("\"" + std::string(name) + "\" has an extent of " + list->items[i].text);
    shape = shape.with_front(*extent);
  }
  return shape;
}

std::optional<DType> dtype_of_name(std::string_view name) {
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kUint8,
                            DType::kUint16, DType::kUint32, DType::kUint64, DType::kFloat32, DType::kFloat64})
    if (name == name_of(dtype)) return dtype;
  return {};
}

template <typename T>
std::optional<T> number_in(std::string_view text) {
  T number{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

template <typename T>
std::optional<T> fill_number(const JsonValue& value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (value.kind == Kind::kBool) return value.text == "true";
    const auto number = integer_of(value);
    if (!number || (*number != 0 && *number != 1)) return {};
    return *number == 1;
  } else if constexpr (std::is_floating_point_v<T>) {
    if (value.kind == Kind::kNumber) return number_in<T>(value.text);
    if (value.kind != Kind::kText) return {};
    if (value.text == "NaN") return std::numeric_limits<T>::quiet_NaN();
    if (value.text == "Infinity") return std::numeric_limits<T>::infinity();
    if (value.text == "-Infinity") return -std::numeric_limits<T>::infinity();
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    if (!value.text.starts_with("0x") || value.text.size() != 2 + 2 * sizeof(T)) return {};
    Bits bits = 0;
    const char* const begin = value.text.data() + 2;
    const char* const end = value.text.data() + value.text.size();
    if (std::from_chars(begin, end, bits, 16).ptr != end) return {};
    return std::bit_cast<T>(bits);
  } else {
    if (value.kind != Kind::kNumber) return {};
    if (const auto number = number_in<T>(value.text)) return number;
    // writers of version 2 store 0.0 for integers
    const auto real = number_in<double>(value.text);
    if (!real || *real != std::floor(*real) || std::fabs(*real) > 9e15) return {};
    if (*real < static_cast<double>(std::numeric_limits<T>::min()) ||
        *real > static_cast<double>(std::numeric_limits<T>::max()))
      return {};
    return static_cast<T>(*real);
  }
}

Result<Element> fill_of(const JsonValue& value, DType dtype) {
  std::optional<Element> fill;
  const std::array<std::byte, 8> zero{};
  memory::with_number(dtype, zero, [&]<typename T>(T) {
    if constexpr (std::is_arithmetic_v<T>)
      if (const auto number = fill_number<T>(value)) fill = element_of(*number);
  });
  if (!fill)
    return bad_key("\"fill_value\" " + (value.text.empty() ? std::string("is not a number") : "'" + value.text + "'") +
                   " is not a value of " + std::string(name_of(dtype)));
  return *fill;
}

bool must_be_understood(const JsonValue& value) {
  const JsonValue* const flag = value.find("must_understand");
  return flag == nullptr || flag->kind != Kind::kBool || flag->text != "false";
}

struct Codec {
  std::string name;
  const JsonValue* configuration = nullptr;  // nullptr: none
  const JsonValue* find(std::string_view key) const {
    return configuration == nullptr ? nullptr : configuration->find(key);
  }
};

Result<std::vector<Codec>> codecs_in(const JsonValue& object, std::string_view name) {
  FEEDLINE_TRY(const JsonValue* const list, member(object, name, Kind::kArray));
  std::vector<Codec> codecs;
  for (const JsonValue& item : list->items) {
    if (item.kind == Kind::kText) {
      codecs.push_back({item.text});
      continue;
    }
    if (item.kind != Kind::kObject) return bad_key("\"" + std::string(name) + "\" has a codec of the wrong type");
    FEEDLINE_TRY(const JsonValue* const codec, member(item, "name", Kind::kText));
    codecs.push_back({codec->text, item.find("configuration")});
  }
  return codecs;
}

std::optional<ChunkCodec> bytes_codec_of(std::string_view name) {
  for (const auto& [known, codec] : {std::pair<std::string_view, ChunkCodec>{"zstd", ChunkCodec::kZstd},
                                     {"gzip", ChunkCodec::kGzip},
                                     {"zlib", ChunkCodec::kZlib},
                                     {"numcodecs.zlib", ChunkCodec::kZlib},
                                     {"lz4", ChunkCodec::kLz4},
                                     {"numcodecs.lz4", ChunkCodec::kLz4},
                                     {"numcodecs.zstd", ChunkCodec::kZstd},
                                     {"numcodecs.gzip", ChunkCodec::kGzip},
                                     {"numcodecs.blosc", ChunkCodec::kBlosc},
                                     {"blosc", ChunkCodec::kBlosc},
                                     {"crc32c", ChunkCodec::kCrc32c},
                                     {"numcodecs.crc32c", ChunkCodec::kCrc32c}})
    if (name == known) return codec;
  return {};
}

Result<bool> is_big_endian(const Codec& bytes, DType dtype) {
  const JsonValue* const endian = bytes.find("endian");
  if (endian == nullptr && size_of(dtype) == 1) return false;
  if (endian == nullptr || (endian->text != "little" && endian->text != "big"))
    return bad_key("\"codecs\": bytes has no valid \"endian\"");
  return endian->text == "big";
}

// Appends a transpose to the order of the axes.
Result<void> transpose(const Codec& codec, ChunkLayout& layout) {
  const JsonValue* const given = codec.find("order");
  const std::size_t dims = layout.shape.dims();
  const std::string start = "\"codecs\": transpose: \"order\" ";
  if (given == nullptr || given->kind != Kind::kArray || given->items.size() != dims)
    return bad_key(start + "must have " + std::to_string(dims) + " axes");
  auto order = layout.order;
  std::array<bool, Shape::kMaxDims> is_used{};
  for (std::size_t i = 0; i < dims; ++i) {
    const auto axis = integer_of(given->items[i]);
    if (!axis || *axis < 0 || *axis >= static_cast<std::int64_t>(dims) ||
        std::exchange(is_used[static_cast<std::size_t>(*axis)], true))
      return bad_key(start + "is not a permutation of the axes");
    order[i] = layout.order[static_cast<std::size_t>(*axis)];
  }
  layout.order = order;
  return {};
}

// Parses the codecs of chunks: transposes, bytes, and codecs on bytes. shards: receives sharding_indexed in place of
// bytes; nullptr if it is not allowed.
Result<void> take_codecs(const std::vector<Codec>& codecs, ChunkLayout& layout, const JsonValue** shards) {
  bool has_bytes = false;
  for (const Codec& codec : codecs) {
    if (codec.name == "transpose" || codec.name == "sharding_indexed" || codec.name == "bytes") {
      if (has_bytes) return bad_key("\"codecs\": " + codec.name + " follows a codec that makes bytes");
      if (codec.name == "transpose") {
        FEEDLINE_CHECK_OK(transpose(codec, layout));
        continue;
      }
      has_bytes = true;
      if (codec.name == "bytes") {
        FEEDLINE_TRY(layout.is_swapped, is_big_endian(codec, layout.dtype));
        continue;
      }
      if (shards == nullptr) return bad_key("\"codecs\": shards inside shards are not supported");
      if (!std::ranges::is_sorted(std::span(layout.order).first(layout.shape.dims())))
        return bad_key("\"codecs\": a transpose before sharding_indexed is not supported; put it inside");
      if (codec.configuration == nullptr) return bad_key("\"codecs\": sharding_indexed has no configuration");
      *shards = codec.configuration;
      continue;
    }
    const auto known = bytes_codec_of(codec.name);
    if (!known)
      return bad_key("\"codecs\": unknown codec '" + codec.name +
                     "'; supported are bytes, transpose, sharding_indexed, zstd, gzip, zlib, lz4, blosc and crc32c");
    if (!has_bytes) return bad_key("\"codecs\": '" + codec.name + "' precedes the codec 'bytes'");
    if (shards != nullptr && *shards != nullptr)
      return bad_key("\"codecs\": '" + codec.name + "' after sharding_indexed is not supported");
    layout.codecs.push_back(*known);
  }
  if (!has_bytes) return bad_key("\"codecs\" has neither bytes nor sharding_indexed");
  return {};
}

void start_order(ChunkLayout& layout) {
  for (std::size_t i = 0; i < layout.shape.dims(); ++i) layout.order[i] = static_cast<std::uint8_t>(i);
}

Result<void> check_chunk(const ChunkLayout& layout) {
  if (layout.bytes() <= kMostChunkBytes) return {};
  return bad_key("a chunk of " + layout.shape.to_string() + " has " + std::to_string(layout.bytes()) +
                 " bytes, over the limit of " + std::to_string(kMostChunkBytes) +
                 "; rewrite the array in smaller chunks");
}

Result<void> take_shards(const JsonValue& configuration, ZarrArray& array) {
  array.has_shards = true;
  FEEDLINE_TRY(const Shape inner, shape_in(configuration, "chunk_shape", 1));
  if (inner.dims() != array.stored.dims())
    return bad_key("sharding_indexed: \"chunk_shape\" has " + std::to_string(inner.dims()) +
                   " axes, but the array has " + std::to_string(array.stored.dims()));
  for (std::size_t i = 0; i < inner.dims(); ++i)
    if (array.stored[i] % inner[i] != 0)
      return bad_key("sharding_indexed: shards of " + array.stored.to_string() + " do not consist of chunks of " +
                     inner.to_string());
  array.layout = {.dtype = array.spec.dtype, .shape = inner, .codecs = {}};
  start_order(array.layout);
  FEEDLINE_TRY(const auto codecs, codecs_in(configuration, "codecs"));
  FEEDLINE_CHECK_OK(take_codecs(codecs, array.layout, nullptr));
  FEEDLINE_TRY(const auto index, codecs_in(configuration, "index_codecs"));
  const bool is_known = !index.empty() && index[0].name == "bytes" &&
                        (index.size() == 1 || (index.size() == 2 && index[1].name == "crc32c"));
  FEEDLINE_TRY(const bool is_big, is_known ? is_big_endian(index[0], DType::kUint64) : Result<bool>(true));
  if (is_big) return bad_key("sharding_indexed: \"index_codecs\" must be little-endian bytes, and crc32c or nothing");
  array.has_index_sum = index.size() == 2;
  const JsonValue* const location = configuration.find("index_location");
  if (location != nullptr && location->text != "start" && location->text != "end")
    return bad_key("sharding_indexed: \"index_location\" is '" + location->text + "'");
  array.has_index_first = location != nullptr && location->text == "start";
  return {};
}

Result<JsonValue> object_of(std::string_view json) {
  auto value = text::parse_json(json);
  if (!value || value->kind != Kind::kObject) return bad_key("the metadata is not a JSON object");
  return *std::move(value);
}

Result<void> check_version(const JsonValue& object, std::int64_t version) {
  const JsonValue* const given = object.find("zarr_format");
  if (given != nullptr && integer_of(*given) == version) return {};
  return bad_key("\"zarr_format\" is not " + std::to_string(version));
}

// Compares the numbers of axes of the array and its chunks.
Result<void> check_axes(const ZarrArray& array) {
  if (array.spec.shape.dims() == 0 || array.spec.shape.elements() == 0)
    return bad_key("an array of shape " + array.spec.shape.to_string() + " has no elements");
  if (array.spec.shape.dims() == array.stored.dims()) return {};
  return bad_key("\"shape\" has " + std::to_string(array.spec.shape.dims()) + " axes, but the chunks have " +
                 std::to_string(array.stored.dims()));
}

Result<void> take_key_encoding(const JsonValue& object, ZarrArray& array) {
  FEEDLINE_TRY(const JsonValue* const encoding, member(object, "chunk_key_encoding", Kind::kObject));
  FEEDLINE_TRY(const JsonValue* const name, member(*encoding, "name", Kind::kText));
  const bool is_v2 = name->text == "v2";
  if (!is_v2 && name->text != "default") return bad_key("unknown \"chunk_key_encoding\" '" + name->text + "'");
  const JsonValue* const configuration = encoding->find("configuration");
  const JsonValue* const separator = configuration == nullptr ? nullptr : configuration->find("separator");
  array.separator = separator == nullptr ? (is_v2 ? "." : "/") : separator->text;
  if (array.separator != "." && array.separator != "/")
    return bad_key("\"chunk_key_encoding\": the separator is '" + array.separator + "'");
  if (!is_v2) array.prefix = "c" + array.separator;
  return {};
}

Result<void> take_v2_compressor(const JsonValue& object, ChunkLayout& layout) {
  if (const JsonValue* filters = object.find("filters"); filters != nullptr && filters->kind != Kind::kNull)
    for (const JsonValue& filter : filters->items) {
      const JsonValue* const id = filter.find("id");
      const JsonValue* const size = filter.find("elementsize");
      if (id == nullptr || id->text != "shuffle" || size == nullptr ||
          integer_of(*size) != static_cast<std::int64_t>(size_of(layout.dtype)))
        return bad_key("\"filters\": '" + (id == nullptr ? std::string() : id->text) +
                       "' is not supported; only shuffle with the element size is supported");
      layout.codecs.push_back(ChunkCodec::kShuffle);
    }
  const JsonValue* const compressor = object.find("compressor");
  if (compressor == nullptr) return bad_key("\"compressor\" is missing");
  if (compressor->kind == Kind::kNull) return {};
  FEEDLINE_TRY(const JsonValue* const id, member(*compressor, "id", Kind::kText));
  const auto codec = bytes_codec_of(id->text);
  if (!codec || *codec == ChunkCodec::kCrc32c)
    return bad_key("\"compressor\": unknown codec '" + id->text + "'; supported are zstd, gzip, zlib, lz4 and blosc");
  layout.codecs.push_back(*codec);
  return {};
}

}  // namespace

std::string ZarrArray::key(std::span<const std::int64_t> indexes) const {
  std::string name = prefix;
  for (std::size_t i = 0; i < indexes.size(); ++i) name += (i == 0 ? "" : separator) + std::to_string(indexes[i]);
  return name;
}

Result<ZarrArray> parse_zarr3(std::string_view json) {
  FEEDLINE_TRY(const JsonValue object, object_of(json));
  FEEDLINE_CHECK_OK(check_version(object, 3));
  FEEDLINE_TRY(const JsonValue* const node, member(object, "node_type", Kind::kText));
  if (node->text != "array") return bad_key("\"node_type\" is '" + node->text + "', not 'array'");
  static constexpr std::string_view kKnown[] = {
      "zarr_format", "node_type",          "shape",      "data_type",       "chunk_grid",          "fill_value",
      "codecs",      "chunk_key_encoding", "attributes", "dimension_names", "storage_transformers"};
  for (const auto& [name, value] : object.members)
    if (std::ranges::find(kKnown, name) == std::end(kKnown) && must_be_understood(value))
      return bad_key("unknown key \"" + name + "\", which readers must understand");
  if (const JsonValue* transformers = object.find("storage_transformers");
      transformers != nullptr && !transformers->items.empty())
    return bad_key("\"storage_transformers\" are not supported");
  ZarrArray array;
  FEEDLINE_TRY(array.spec.shape, shape_in(object, "shape", 0));
  const JsonValue* const type = object.find("data_type");
  const auto dtype = type == nullptr || type->kind != Kind::kText ? std::nullopt : dtype_of_name(type->text);
  if (!dtype)
    return bad_key("\"data_type\" " +
                   (type == nullptr ? std::string("is missing") : "'" + type->text + "' is not supported"));
  array.spec.dtype = *dtype;
  FEEDLINE_TRY(const JsonValue* const grid, member(object, "chunk_grid", Kind::kObject));
  FEEDLINE_TRY(const JsonValue* const grid_name, member(*grid, "name", Kind::kText));
  if (grid_name->text != "regular") return bad_key("\"chunk_grid\" '" + grid_name->text + "' is not supported");
  FEEDLINE_TRY(const JsonValue* const grid_form, member(*grid, "configuration", Kind::kObject));
  FEEDLINE_TRY(array.stored, shape_in(*grid_form, "chunk_shape", 1));
  FEEDLINE_CHECK_OK(check_axes(array));
  FEEDLINE_CHECK_OK(take_key_encoding(object, array));
  const JsonValue* const fill = object.find("fill_value");
  if (fill == nullptr) return bad_key("\"fill_value\" is missing");
  FEEDLINE_TRY(array.fill, fill_of(*fill, array.spec.dtype));
  array.layout = {.dtype = *dtype, .shape = array.stored, .codecs = {}};
  start_order(array.layout);
  FEEDLINE_TRY(const auto codecs, codecs_in(object, "codecs"));
  const JsonValue* shards = nullptr;
  FEEDLINE_CHECK_OK(take_codecs(codecs, array.layout, &shards));
  if (shards != nullptr) FEEDLINE_CHECK_OK(take_shards(*shards, array));
  FEEDLINE_CHECK_OK(check_chunk(array.layout));
  return array;
}

Result<ZarrArray> parse_zarr2(std::string_view json) {
  FEEDLINE_TRY(const JsonValue object, object_of(json));
  FEEDLINE_CHECK_OK(check_version(object, 2));
  ZarrArray array;
  FEEDLINE_TRY(array.spec.shape, shape_in(object, "shape", 0));
  FEEDLINE_TRY(array.stored, shape_in(object, "chunks", 1));
  FEEDLINE_CHECK_OK(check_axes(array));
  const JsonValue* const type = object.find("dtype");
  const auto dtype = type == nullptr || type->kind != Kind::kText ? std::nullopt : dtype_of_descr(type->text);
  if (!dtype)
    return bad_key("\"dtype\" " +
                   (type == nullptr ? std::string("is missing") : "'" + type->text + "' is not supported"));
  array.spec.dtype = *dtype;
  array.layout = {.dtype = *dtype, .shape = array.stored, .codecs = {}, .is_swapped = type->text[0] == '>'};
  start_order(array.layout);
  FEEDLINE_TRY(const JsonValue* const order, member(object, "order", Kind::kText));
  if (order->text != "C" && order->text != "F") return bad_key("\"order\" is '" + order->text + "'");
  if (order->text == "F") std::ranges::reverse(std::span(array.layout.order).first(array.stored.dims()));
  const JsonValue* const fill = object.find("fill_value");
  if (fill == nullptr) return bad_key("\"fill_value\" is missing");
  if (fill->kind != Kind::kNull) {
    FEEDLINE_TRY(array.fill, fill_of(*fill, array.spec.dtype));
  }
  const JsonValue* const separator = object.find("dimension_separator");
  array.separator = separator == nullptr ? "." : separator->text;
  if (array.separator != "." && array.separator != "/")
    return bad_key("\"dimension_separator\" is '" + array.separator + "'");
  FEEDLINE_CHECK_OK(take_v2_compressor(object, array.layout));
  FEEDLINE_CHECK_OK(check_chunk(array.layout));
  return array;
}

Result<bool> is_zarr3_group(std::string_view json) {
  FEEDLINE_TRY(const JsonValue object, object_of(json));
  FEEDLINE_TRY(const JsonValue* const node, member(object, "node_type", Kind::kText));
  return node->text == "group";
}

std::vector<std::string> consolidated_arrays(std::string_view json) {
  std::vector<std::string> names;
  const auto object = text::parse_json(json);
  if (!object) return names;
  const JsonValue* metadata = object->find("metadata");  // .zmetadata: KEY/.zarray
  if (metadata != nullptr) {
    for (const auto& [key, value] : metadata->members)
      if (key.ends_with("/.zarray")) names.push_back(key.substr(0, key.size() - std::string_view("/.zarray").size()));
    return names;
  }
  const JsonValue* const consolidated = object->find("consolidated_metadata");
  metadata = consolidated == nullptr ? nullptr : consolidated->find("metadata");
  if (metadata == nullptr) return names;
  for (const auto& [key, value] : metadata->members)
    if (const JsonValue* node = value.find("node_type"); node != nullptr && node->text == "array") names.push_back(key);
  return names;
}

}  // namespace feedline::format
