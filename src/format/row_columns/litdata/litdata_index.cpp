// SPDX-License-Identifier: Apache-2.0
#include "format/row_columns/litdata/litdata_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "decode/image_formats.h"
#include "format/row_columns/column_values.h"
#include "text/json_reader.h"

namespace feedline::format {
namespace {

using Kind = text::JsonReader::Kind;
using text::JsonReader;

struct Written {
  std::vector<std::string> formats;
  std::string spec, compression, level, encryption, loader;
  bool has_types = false;
  std::vector<LitChunk> chunks;
};

template <typename Value>
bool put(Value& value, auto read) {
  if (!read) return false;
  value = std::move(*read);
  return true;
}

// Reads a string or null.
bool read_text(JsonReader& json, std::string& out) {
  if (json.peek() == Kind::kString) return put(out, json.string());
  return json.skip();
}

bool read_number(JsonReader& json, std::uint64_t& out) {
  const auto value = json.integer();
  if (!value || *value < 0) return false;
  out = static_cast<std::uint64_t>(*value);
  return true;
}

bool read_chunk(JsonReader& json, LitChunk& chunk) {
  return json.object([&](const std::string& key) {
    if (key == "filename") return put(chunk.name, json.string());
    if (key == "chunk_size") return read_number(json, chunk.samples);
    if (key == "chunk_bytes") return read_number(json, chunk.bytes);
    return json.skip();
  });
}

bool read_config(JsonReader& json, Written& written) {
  return json.object([&](const std::string& key) {
    if (key == "data_spec") return read_text(json, written.spec);
    if (key == "compression") return read_text(json, written.compression);
    if (key == "compression_level") return read_text(json, written.level);
    if (key == "item_loader") return read_text(json, written.loader);
    if (key == "types") written.has_types = json.peek() == Kind::kObject;
    if (key == "encryption" && json.peek() != Kind::kNull) {
      const auto how = json.raw();
      return put(written.encryption, how ? std::optional(std::string(*how)) : std::nullopt);
    }
    if (key != "data_format" || json.peek() != Kind::kArray) return json.skip();
    return json.array([&] { return put(written.formats.emplace_back(), json.string()); });
  });
}

struct Node {
  bool is_leaf = false;
  std::vector<std::string> keys;  // keys of a dict
  std::vector<Node> children;
};

// Returns the keys of a dict. Nodes of other types do not have one key per child.
std::vector<std::string> keys_in(std::string_view context) {
  std::vector<std::string> keys;
  JsonReader json(context);
  if (json.peek() != Kind::kArray) return {};
  const bool done = json.array([&] {
    if (json.peek() == Kind::kString) return put(keys.emplace_back(), json.string());
    const auto other = json.raw();
    return put(keys.emplace_back(), other ? std::optional(std::string(*other)) : std::nullopt);
  });
  return done ? keys : std::vector<std::string>();
}

bool read_node(JsonReader& json, Node& node) {
  return json.object([&](const std::string& key) {
    if (key == "type") {
      node.is_leaf = json.peek() == Kind::kNull;
      return json.skip();
    }
    if (key == "context") {
      std::string context;
      if (!read_text(json, context)) return false;
      node.keys = keys_in(context);
      return true;
    }
    if (key != "children_spec") return json.skip();
    return json.array([&] { return read_node(json, node.children.emplace_back()); });
  });
}

void add_leaves(const Node& node, const std::string& prefix, std::vector<std::string>& names) {
  if (node.is_leaf) return names.push_back(prefix.empty() ? "item" : prefix);
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const std::string name = node.keys.size() == node.children.size() ? node.keys[i] : std::to_string(i);
    add_leaves(node.children[i], prefix.empty() ? name : prefix + "/" + name, names);
  }
}

// Returns the type number after the colon in "no_header_tensor:18".
std::optional<std::uint64_t> number_behind(std::string_view encoding) {
  const std::size_t colon = encoding.find(':');
  if (colon == encoding.npos) return {};
  const auto number = JsonReader(encoding.substr(colon + 1)).integer();
  if (!number || *number < 0) return {};
  return static_cast<std::uint64_t>(*number);
}

Result<Columns> columns_of(const Written& written) {
  std::vector<std::string> names = leaf_names(written.spec);
  if (written.spec.empty())
    for (std::size_t i = 0; i < written.formats.size(); ++i)
      names.push_back(written.formats.size() == 1 ? "item" : std::to_string(i));
  if (names.size() != written.formats.size() || names.empty())
    return data_error("the index has " + std::to_string(written.formats.size()) +
                          " value formats, but its data_spec has " + std::to_string(names.size()) + " names",
                      "format");
  Columns columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::find(columns, names[i], &Column::name) != columns.end()) names[i] += "#" + std::to_string(i);
    columns.push_back(litdata_column(names[i], written.formats[i]));
  }
  return columns;
}

Result<LitIndex> checked(Written& written) {
  if (!written.encryption.empty())
    return config_error("the dataset is encrypted, which is not supported: decrypt it with LitData");
  const bool are_tokens = written.loader == "TokensLoader";
  if (!written.loader.empty() && !are_tokens && written.loader != "PyTreeLoader")
    return config_error("the dataset was written for LitData's " + written.loader +
                        "; only datasets for PyTreeLoader and " + "TokensLoader are supported");
  if (!written.compression.empty() && !written.compression.starts_with("zstd"))
    return config_error("the dataset is compressed with '" + written.compression + "'; only zstd is supported");
  LitIndex index;
  FEEDLINE_TRY(index.columns, columns_of(written));
  index.are_tokens = are_tokens;
  index.are_samples_zstd = !written.compression.empty() && written.level == "sample";
  index.may_have_rows = written.has_types && !are_tokens;
  if (are_tokens && (index.columns.size() != 1 || index.columns.front().kind != ColumnKind::kArray ||
                     index.columns.front().header != ArrayHeader::kNothing))
    return data_error("the index of a token dataset must not have the values " + names_of(index.columns), "format");
  if (are_tokens && index.columns.front().name == "item") index.columns.front().name = "tokens";
  for (const LitChunk& chunk : written.chunks)
    if (chunk.name.empty() || chunk.name.contains('/') || chunk.name.find('\0') != chunk.name.npos ||
        chunk.name == "..")
      return data_error("'" + chunk.name + "' is not the name of a chunk in the index's folder", "format");
  index.chunks = std::move(written.chunks);
  return index;
}

}  // namespace

std::vector<std::string> leaf_names(std::string_view data_spec) {
  JsonReader json(data_spec);
  Node root;
  std::size_t element = 0;
  const bool done = json.array([&] { return ++element == 2 ? read_node(json, root) : json.skip(); });
  std::vector<std::string> names;
  if (done && element == 2 && json.finish()) add_leaves(root, "", names);
  return names;
}

Column litdata_column(std::string name, std::string encoding) {
  Column column{std::move(name), std::move(encoding)};
  const std::string_view kind = std::string_view(column.encoding).substr(0, column.encoding.find(':'));
  const auto number = number_behind(column.encoding);
  const auto one = [&](ColumnKind as, std::optional<DType> dtype = {}) {
    column.kind = as;
    column.dtype = dtype;
  };
  if (kind == "str" || kind == "text") {
    one(ColumnKind::kText);
  } else if (kind == "int" || kind == "float" || kind == "bool") {
    one(ColumnKind::kNumber, kind == "int" ? DType::kInt64 : kind == "float" ? DType::kFloat64 : DType::kBool);
  } else if (kind == "jpeg" || kind == "image") {
    one(ColumnKind::kImage);
  } else if (kind == "pil") {
    one(ColumnKind::kPixels);
  } else if (kind == "jpeg_array") {
    one(ColumnKind::kImages);
  } else if (kind == "tensor" || kind == "numpy") {
    one(ColumnKind::kArray);
    column.header = kind == "tensor" ? ArrayHeader::kTensor : ArrayHeader::kNumpy;
  } else if ((kind == "no_header_tensor" || kind == "no_header_numpy") && number) {
    const auto dtype = kind == "no_header_tensor" ? tensor_dtype(*number) : numpy_dtype(*number);
    one(dtype ? ColumnKind::kArray : ColumnKind::kRefused, dtype);
  } else if (kind == "file") {
    const std::string_view end =
        std::string_view(column.encoding).substr(std::min(column.encoding.size(), kind.size() + 1));
    const decode::ImageFormat* const format = decode::format_of_extension(end);
    one(format != nullptr && format->codec != nullptr ? ColumnKind::kImage : ColumnKind::kBytes);
  } else if (kind != "bytes" && kind != "video" && kind != "audio" && kind != "tiff" && kind != "tifffile" &&
             kind != "nifti" && kind != "mesh" && kind != "pdf" && kind != "json") {
    one(ColumnKind::kRefused);
  }
  return column;
}

Result<LitIndex> parse_litdata_index(std::string_view text) {
  JsonReader json(text);
  Written written;
  const bool done = json.object([&](const std::string& key) {
    if (key == "config") return read_config(json, written);
    if (key != "chunks") return json.skip();
    return json.array([&] { return read_chunk(json, written.chunks.emplace_back()); });
  });
  if (done && json.finish()) return checked(written);
  auto error = data_error("the index is not from a LitData dataset: " + json.error()->what, "format");
  error.error().where.offset = json.offset();
  return error;
}

}  // namespace feedline::format
