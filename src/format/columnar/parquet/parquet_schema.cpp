// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/parquet_schema.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "format/columnar/features.h"
#include "format/columnar/parquet/nested_column.h"
#include "format/columnar/parquet/stored_arrow_schema.h"

namespace feedline::format {
namespace {

constexpr int kDeepest = 32;  // maximum nesting depth

// The values of ConvertedType and LogicalType that are used here.
constexpr std::int64_t kConvertedText = 0, kConvertedEnum = 4, kConvertedDecimal = 5, kConvertedUint8 = 11,
                       kConvertedInt64 = 18, kConvertedJson = 19;
constexpr std::int64_t kLogicalText = 1, kLogicalEnum = 4, kLogicalDecimal = 5, kLogicalInteger = 10,
                       kLogicalNothing = 11, kLogicalJson = 12, kLogicalHalf = 15;

std::optional<DType> integer_of(std::int64_t bits, bool is_signed) {
  switch (bits) {
    case 8:
      return is_signed ? DType::kInt8 : DType::kUint8;
    case 16:
      return is_signed ? DType::kInt16 : DType::kUint16;
    case 32:
      return is_signed ? DType::kInt32 : DType::kUint32;
    case 64:
      return is_signed ? DType::kInt64 : DType::kUint64;
    default:
      return {};
  }
}

// Returns the dtype of a leaf's numbers, or nullopt if its values are not numbers.
std::optional<DType> dtype_of(const ParquetNode& leaf) {
  if (leaf.converted == kConvertedDecimal || leaf.logical == kLogicalDecimal || leaf.logical == kLogicalNothing)
    return {};
  switch (*leaf.type) {
    case ParquetType::kBool:
      return DType::kBool;
    case ParquetType::kFloat:
      return DType::kFloat32;
    case ParquetType::kDouble:
      return DType::kFloat64;
    case ParquetType::kFixedBytes:
      return leaf.logical == kLogicalHalf && leaf.type_bytes == 2 ? std::optional(DType::kFloat16) : std::nullopt;
    case ParquetType::kInt32:
    case ParquetType::kInt64: {
      const std::int64_t stored_bits = *leaf.type == ParquetType::kInt32 ? 32 : 64;
      std::optional<DType> said;
      if (leaf.logical == kLogicalInteger) said = integer_of(leaf.integer_bits, leaf.is_signed);
      if (!said && leaf.converted && *leaf.converted >= kConvertedUint8 && *leaf.converted <= kConvertedInt64)
        said = integer_of(8 << ((*leaf.converted - kConvertedUint8) % 4), *leaf.converted - kConvertedUint8 >= 4);
      if (!said || std::cmp_greater(8 * size_of(*said), stored_bits)) return integer_of(stored_bits, true);
      return said;
    }
    default:
      return {};
  }
}

// Sets the unit and meaning of times, which are integers.
void set_unit(const ParquetNode& leaf, ColumnType& type) {
  constexpr std::int64_t kConvertedDate = 6, kTimeMs = 7, kTimeUs = 8, kTimestampMs = 9, kTimestampUs = 10;
  constexpr std::int64_t kLogicalDate = 6, kLogicalTime = 7, kLogicalTimestamp = 8;
  const std::int64_t converted = leaf.converted.value_or(-1), logical = leaf.logical.value_or(-1);
  if (logical == kLogicalDate || converted == kConvertedDate) {
    type.unit = "days";
    type.meaning = "date[days]";
    return;
  }
  const bool is_time = logical == kLogicalTime || converted == kTimeMs || converted == kTimeUs;
  const bool is_timestamp = logical == kLogicalTimestamp || converted == kTimestampMs || converted == kTimestampUs;
  if (!is_time && !is_timestamp) return;
  type.unit = leaf.unit;
  if (type.unit.empty()) type.unit = converted == kTimeMs || converted == kTimestampMs ? "ms" : "us";
  const bool is_utc = leaf.is_utc || !leaf.logical;
  type.meaning = (is_time ? "time[" : "timestamp[") + type.unit + (is_utc && is_timestamp ? ", tz=UTC]" : "]");
}

std::string shown_of(const ParquetNode& leaf) {
  if (leaf.converted == kConvertedDecimal || leaf.logical == kLogicalDecimal) return "decimals";
  if (leaf.logical == kLogicalNothing) return "nothing";
  if (leaf.type == ParquetType::kInt96) return "INT96, an obsolete timestamp type";
  return "bytes";
}

void set_leaf(const ParquetNode& leaf, ParquetColumn& column) {
  constexpr std::uint64_t kBytesOf[] = {1, 4, 8, 12, 4, 8, 0};
  column.stored = *leaf.type;
  column.value_bytes =
      *leaf.type == ParquetType::kFixedBytes ? leaf.type_bytes : kBytesOf[static_cast<std::size_t>(*leaf.type)];
  if (const auto dtype = dtype_of(leaf)) {
    column.type.holds = Holds::kNumbers;
    column.type.dtype = *dtype;
    column.type.shown = name_of(*dtype);
    column.made_bytes = size_of(*dtype);
    set_unit(leaf, column.type);
    return;
  }
  column.type.shown = shown_of(leaf);
  if (leaf.logical == kLogicalNothing) return column.type.holds = Holds::kNothing, void();
  if (column.type.shown != "bytes") return;
  const bool is_text = leaf.converted == kConvertedText || leaf.logical == kLogicalText ||
                       leaf.converted == kConvertedEnum || leaf.logical == kLogicalEnum ||
                       leaf.converted == kConvertedJson || leaf.logical == kLogicalJson;
  column.type.holds = is_text ? Holds::kText : Holds::kBytes;
  if (is_text) column.type.shown = "text";
}

class SchemaWalk {
 public:
  explicit SchemaWalk(const std::vector<ParquetNode>& nodes) : nodes_(nodes) {}

  // The properties that a node inherits from its ancestors.
  struct Above {
    std::string name;
    unsigned definition = 0, repetition = 0;
    std::vector<unsigned> list_definitions = {};
    bool is_file = false, is_map = false;
    int depth = 0;
  };

  bool walk(Above above, bool is_root = false) {
    if (next_ >= nodes_.size() || above.depth > kDeepest) return false;
    const std::size_t own = next_++;
    const ParquetNode& node = nodes_[own];
    if (!is_root) {
      if (node.repetition != Repetition::kRequired) ++above.definition;
      if (node.repetition == Repetition::kRepeated) {
        ++above.repetition;
        above.list_definitions.push_back(above.definition);
      }
    }
    if (node.type) return node.children == 0 && add(node, above);
    if (node.children == 0 && !is_root) return false;
    constexpr std::int64_t kMap = 1, kMapKeyValue = 2, kMapType = 2;
    above.is_map = above.is_map || node.converted == kMap || node.converted == kMapKeyValue || node.logical == kMapType;
    const bool is_list = is_list_of(node);
    const bool is_inside_list = is_inside_list_ == own && node.children == 1;
    const bool is_file = !is_root && above.repetition == 0 && is_file_of(node);
    for (std::uint64_t i = 0; i < node.children; ++i) {
      Above below = above;
      ++below.depth;
      below.is_file = is_file;
      if (next_ >= nodes_.size()) return false;
      const ParquetNode& child = nodes_[next_];
      // the two names inside a list have no meaning
      const bool is_silent = is_list || is_inside_list;
      if (is_list) is_inside_list_ = next_;
      if (is_file ? child.name != "bytes" : !is_silent || is_root)
        below.name = above.name + (is_root ? "" : ".") + child.name;
      if (!walk(below)) return false;
    }
    return true;
  }
  bool is_done() const { return next_ == nodes_.size(); }
  std::vector<ParquetColumn> take() { return std::move(columns_); }

 private:
  // Returns whether this is a group whose only child is a repeated group, whatever its name.
  bool is_list_of(const ParquetNode& node) const {
    constexpr std::int64_t kList = 3;
    return node.children == 1 && (node.converted == kList || node.logical == kList) && next_ < nodes_.size() &&
           nodes_[next_].repetition == Repetition::kRepeated;
  }

  // Detects a group with the bytes and path of a file, the form in which `datasets` stores images and audio. The path
  // may have any type: if no file has a path, the column's type is null.
  bool is_file_of(const ParquetNode& node) const {
    if (node.children != 2 || next_ + 2 > nodes_.size()) return false;
    const ParquetNode &a = nodes_[next_], &b = nodes_[next_ + 1];
    const auto are = [](const ParquetNode& bytes, const ParquetNode& path) {
      return bytes.name == "bytes" && path.name == "path" && bytes.type == ParquetType::kBytes && path.type;
    };
    return are(a, b) || are(b, a);
  }

  bool add(const ParquetNode& node, const Above& above) {
    ParquetColumn column;
    column.leaf = leaf_++;
    column.type.name = above.name;
    column.most_definition = above.definition;
    column.most_repetition = above.repetition;
    column.list_definitions = above.list_definitions;
    column.type.is_file = above.is_file;
    if (static_cast<int>(*node.type) > static_cast<int>(ParquetType::kFixedBytes)) return false;
    set_leaf(node, column);
    column.value = column.type.holds;
    if (column.stored == ParquetType::kFixedBytes && column.value_bytes == 0) return false;
    if (above.repetition > 0) {
      std::string lists = above.is_map ? "a map of " : "";
      for (unsigned i = 0; i < above.repetition && !above.is_map; ++i) lists += "list of ";
      column.type.shown.insert(0, lists);
      const bool is_array =
          column.type.holds == Holds::kNumbers && !above.is_map && above.repetition <= Shape::kMaxDims;
      column.type.holds = is_array ? Holds::kNumbers : Holds::kOther;
      for (unsigned i = 0; i < above.repetition && is_array; ++i)
        column.type.lists = column.type.lists.with_front(kAnyLength);
    }
    if (!above.is_file || node.name == "bytes") columns_.push_back(std::move(column));
    return true;
  }

  const std::vector<ParquetNode>& nodes_;
  std::size_t next_ = 0, leaf_ = 0;
  std::size_t is_inside_list_ = ~std::size_t{0};  // the repeated group of a list
  std::vector<ParquetColumn> columns_;
};

std::string shown_of(const NestedNode& node) {
  constexpr std::string_view kKinds[] = {"values", "structs", "lists", "maps"};
  if (node.kind == NestedNode::Kind::kMap) return "map";
  return "list of " + std::string(kKinds[static_cast<std::size_t>(node.children.front().kind)]);
}

// Appends the leaves below a node to `leaves`. Returns false if one of them is missing or cannot be written.
bool take_leaves(const NestedNode& node, const std::vector<ParquetColumn>& columns,
                 std::vector<ParquetColumn>& leaves) {
  if (node.kind == NestedNode::Kind::kLeaf) {
    const auto found = std::ranges::find(columns, node.leaf, &ParquetColumn::leaf);
    if (found == columns.end() || found->value == Holds::kOther) return false;
    leaves.push_back(*found);
    leaves.back().is_member = true;
    return true;
  }
  if (node.kind == NestedNode::Kind::kMap) {  // names of JSON objects are text
    std::vector<ParquetColumn> key;
    if (node.children.front().kind != NestedNode::Kind::kLeaf || !take_leaves(node.children.front(), columns, key) ||
        key.front().value != Holds::kText)
      return false;
  }
  return std::ranges::all_of(node.children,
                             [&](const NestedNode& child) { return take_leaves(child, columns, leaves); });
}

// Adds nested columns in place of those members that cannot be read by themselves. If all can, the column is added at
// the end, on request.
void add_nested(const ParquetMetadata& metadata, std::vector<ParquetColumn>& columns) {
  std::vector<ParquetColumn> on_request;
  for (NestedRoot& root : find_nested(metadata.schema)) {
    ParquetColumn made;
    made.type = {.name = root.name, .holds = Holds::kText, .shown = shown_of(root.node)};
    made.type.is_json = made.type.is_nested = true;
    std::vector<ParquetColumn> leaves;
    if (!take_leaves(root.node, columns, leaves)) continue;
    const auto is_part = [&](const ParquetColumn& column) {
      return std::ranges::find(leaves, column.leaf, &ParquetColumn::leaf) != leaves.end();
    };
    const auto is_unread = [&](const ParquetColumn& column) {
      return is_part(column) && column.type.holds != Holds::kNumbers;
    };
    const auto first = std::ranges::find_if(columns, is_unread);
    made.type.is_on_request = first == columns.end();
    for (ParquetColumn& column : columns) {
      if (!is_part(column)) continue;
      column.type.nested_form = root.name;
      if (!made.type.is_on_request) column.is_member = column.type.is_member = true;
    }
    made.type.has_bytes = std::ranges::count(leaves, Holds::kBytes, &ParquetColumn::value) > 0;
    made.leaf = leaves.front().leaf;
    made.most_definition = leaves.front().most_definition;
    made.most_repetition = leaves.front().most_repetition;
    made.nested = std::make_shared<const NestedColumn>(std::move(root.node), std::move(leaves));
    const auto leaves_of = std::span(made.nested->leaves);
    if (made.type.is_on_request) {
      on_request.push_back(std::move(made));
      continue;
    }
    const auto at = columns.insert(first, std::move(made));
    const auto is_replaced = [&](const ParquetColumn& column) {
      return !column.nested && column.type.holds != Holds::kNumbers &&
             std::ranges::find(leaves_of, column.leaf, &ParquetColumn::leaf) != leaves_of.end();
    };
    columns.erase(std::remove_if(at + 1, columns.end(), is_replaced), columns.end());
  }
  std::ranges::move(on_request, std::back_inserter(columns));
}

// A tensor is not stored as nested lists, so it has no nested form.
void remove_forms_of_tensors(std::vector<ParquetColumn>& columns) {
  std::vector<std::string> forms;
  for (ParquetColumn& column : columns) {
    if (column.nested || (column.type.tensor.dims() == 0 && column.type.holds == Holds::kNumbers)) continue;
    std::string form = std::exchange(column.type.nested_form, {});
    if (form == column.type.name) forms.push_back(std::move(form));
  }
  std::erase_if(columns, [&](const ParquetColumn& one) {
    return one.type.is_on_request && std::ranges::find(forms, one.type.name) != forms.end();
  });
}

}  // namespace

Result<std::vector<ParquetColumn>> read_parquet_schema(const ParquetMetadata& metadata) {
  SchemaWalk walk(metadata.schema);
  if (!walk.walk({}, true) || !walk.is_done())
    return data_error("the schema in the footer is not a tree: the file is damaged", "format");
  auto columns = walk.take();
  add_nested(metadata, columns);
  std::vector<ColumnType*> types;
  for (ParquetColumn& column : columns) types.push_back(&column.type);
  FEEDLINE_CHECK_OK(take_arrow_types(metadata.arrow_schema, types));
  describe(metadata.features, types);
  remove_forms_of_tensors(columns);
  return columns;
}

}  // namespace feedline::format
