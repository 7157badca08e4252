// SPDX-License-Identifier: Apache-2.0
#include "format/arrow/arrow_schema.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "format/tables/features.h"

namespace feedline::format {
namespace {

// Members of the tables of Schema.fbs.
namespace schema {
enum : std::size_t { kEndianness, kFields, kMetadata };
}
namespace field {
enum : std::size_t { kName, kNullable, kTypeKind, kType, kDictionary, kChildren, kMetadata };
}
namespace dictionary {
enum : std::size_t { kId, kIndexType };
}
namespace key_value {
enum : std::size_t { kKey, kValue };
}

enum class TypeKind : std::uint8_t {
  kNone,
  kNull,
  kInt,
  kFloat,
  kBinary,
  kText,
  kBool,
  kDecimal,
  kDate,
  kTime,
  kTimestamp,
  kInterval,
  kList,
  kStruct,
  kUnion,
  kFixedBinary,
  kFixedList,
  kMap,
  kDuration,
  kLargeBinary,
  kLargeText,
  kLargeList,
  kRunEnds,
  kBinaryView,
  kTextView,
  kListView,
  kLargeListView,
};

constexpr int kDeepest = 32;             // nesting that a schema can ask for
constexpr std::uint64_t kMost = 65'536;  // fields in all: more is damage

std::unexpected<Error> damaged_schema() { return data_error("the schema does not fit into its bytes", "format"); }

void set_integer(ArrowField& made, std::int32_t bits, bool is_signed) {
  made.layout = ArrowLayout::kFixed;
  made.bits = static_cast<std::uint64_t>(bits);
  switch (bits) {
    case 8:
      made.dtype = is_signed ? DType::kInt8 : DType::kUint8;
      break;
    case 16:
      made.dtype = is_signed ? DType::kInt16 : DType::kUint16;
      break;
    case 32:
      made.dtype = is_signed ? DType::kInt32 : DType::kUint32;
      break;
    case 64:
      made.dtype = is_signed ? DType::kInt64 : DType::kUint64;
      break;
    default:
      made.bits = 0;  // refused by the caller
  }
  made.shown = (is_signed ? "int" : "uint") + std::to_string(bits);
}

void set_float(ArrowField& made, std::int16_t precision) {
  constexpr DType kFloats[] = {DType::kFloat16, DType::kFloat32, DType::kFloat64};
  made.layout = ArrowLayout::kFixed;
  if (precision < 0 || precision > 2) return;  // without bits: refused by the caller
  made.dtype = kFloats[precision];
  made.bits = 8 * size_of(*made.dtype);
  made.shown = name_of(*made.dtype);
}

void set_fixed(ArrowField& made, std::uint64_t bits, std::string shown) {
  made.layout = ArrowLayout::kFixed;
  made.bits = bits;
  made.is_known = false;
  made.shown = std::move(shown);
}

void set_binary(ArrowField& made, ArrowLayout layout, bool is_text) {
  made.layout = layout;
  made.is_text = is_text;
  made.shown = is_text ? "text" : "bytes";
}

void set_nested(ArrowField& made, ArrowLayout layout, std::string shown) {
  made.layout = layout;
  made.shown = std::move(shown);
}

// false: no such type.
bool set_type(ArrowField& made, TypeKind kind, const FlatTable& type) {
  switch (kind) {
    case TypeKind::kNull:
      return made.shown = "nothing", true;
    case TypeKind::kInt:
      return set_integer(made, type.number<std::int32_t>(0, 0), type.number<std::uint8_t>(1, 0) != 0), made.bits > 0;
    case TypeKind::kFloat:
      return set_float(made, type.number<std::int16_t>(0, 0)), made.bits > 0;
    case TypeKind::kBinary:
    case TypeKind::kText:
      return set_binary(made, ArrowLayout::kBinary, kind == TypeKind::kText), true;
    case TypeKind::kLargeBinary:
    case TypeKind::kLargeText:
      return set_binary(made, ArrowLayout::kLargeBinary, kind == TypeKind::kLargeText), true;
    case TypeKind::kBool:
      set_fixed(made, 1, "bool");
      return made.dtype = DType::kBool, made.is_known = true;
    case TypeKind::kDecimal: {
      const auto bits = type.number<std::int32_t>(2, 128);
      return set_fixed(made, static_cast<std::uint64_t>(bits), "decimals"), bits > 0 && bits <= 256 && bits % 8 == 0;
    }
    case TypeKind::kDate:
      if (type.number<std::int16_t>(0, 1) == 0) return set_integer(made, 32, true), true;
      return set_integer(made, 64, true), true;
    case TypeKind::kTime:
      return set_integer(made, type.number<std::int32_t>(1, 32), true), made.bits > 0;
    case TypeKind::kTimestamp:
    case TypeKind::kDuration:
      return set_integer(made, 64, true), true;
    case TypeKind::kInterval: {
      const auto unit = type.number<std::int16_t>(0, 0);
      return set_fixed(made, unit == 0 ? 32 : unit == 1 ? 64 : 128, "intervals"), unit >= 0 && unit <= 2;
    }
    case TypeKind::kFixedBinary: {
      const auto bytes = type.number<std::int32_t>(0, 0);
      set_fixed(made, 8 * static_cast<std::uint64_t>(std::max(bytes, 0)), "bytes");
      return made.is_known = true, bytes > 0;
    }
    case TypeKind::kFixedList:
      set_nested(made, ArrowLayout::kFixedList, "list");
      made.list_size = static_cast<std::uint64_t>(std::max(type.number<std::int32_t>(0, 0), 0));
      return true;
    case TypeKind::kList:
      return set_nested(made, ArrowLayout::kList, "list"), true;
    case TypeKind::kMap:
      set_nested(made, ArrowLayout::kList, "map");
      return made.is_known = false, true;
    case TypeKind::kLargeList:
      return set_nested(made, ArrowLayout::kLargeList, "list"), true;
    case TypeKind::kStruct:
      return set_nested(made, ArrowLayout::kStruct, "struct"), true;
    case TypeKind::kUnion:
      set_nested(made, type.number<std::int16_t>(0, 0) == 0 ? ArrowLayout::kSparseUnion : ArrowLayout::kDenseUnion,
                 "union");
      return made.is_known = false, true;
    case TypeKind::kRunEnds:
      set_nested(made, ArrowLayout::kRunEnds, "run-end encoded values");
      return made.is_known = false, true;
    case TypeKind::kBinaryView:
    case TypeKind::kTextView:
      set_nested(made, ArrowLayout::kBinaryView, kind == TypeKind::kTextView ? "views of text" : "views of bytes");
      return made.is_known = false, true;
    case TypeKind::kListView:
    case TypeKind::kLargeListView:
      set_nested(made, ArrowLayout::kListView, "views of lists");
      return made.is_known = false, true;
    default:
      return false;
  }
}

bool has_one_child(ArrowLayout layout) {
  return layout == ArrowLayout::kList || layout == ArrowLayout::kLargeList || layout == ArrowLayout::kFixedList ||
         layout == ArrowLayout::kListView;
}

class SchemaReader {
 public:
  explicit SchemaReader(const FlatBuffer& buffer) : buffer_(buffer) {}

  Result<ArrowField> read(const FlatTable& table, int depth) {
    if (depth > kDeepest || ++fields_ > kMost || buffer_.is_damaged() || !table.is_there()) return damaged_schema();
    ArrowField made;
    made.name = table.text(field::kName);
    const auto kind = static_cast<TypeKind>(table.number<std::uint8_t>(field::kTypeKind, 0));
    if (!set_type(made, kind, table.table(field::kType))) {
      if (buffer_.is_damaged()) return damaged_schema();
      return config_error("the column '" + made.name + "' is of type " + std::to_string(static_cast<int>(kind)) +
                          ", which this version does not know");
    }
    const FlatVector children = table.vector(field::kChildren, 4);
    for (std::uint64_t i = 0; i < children.size; ++i) {
      FEEDLINE_TRY(made.children.emplace_back(), read(FlatTable::in(children, i), depth + 1));
    }
    if (has_one_child(made.layout) && made.children.size() != 1) return damaged_schema();
    if (made.layout == ArrowLayout::kRunEnds && made.children.size() != 2) return damaged_schema();
    if (has_one_child(made.layout) && made.shown == "list") made.shown = "list of " + made.children.front().shown;
    if (const FlatTable dictionary = table.table(field::kDictionary); dictionary.is_there()) {
      made.dictionary = dictionary.number<std::int64_t>(dictionary::kId, 0);
      const FlatTable index = dictionary.table(dictionary::kIndexType);
      const auto bits = index.number<std::int32_t>(0, 32);
      if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return damaged_schema();
      made.index_bytes = static_cast<std::uint64_t>(bits) / 8;
      made.is_signed_index = !index.is_there() || index.number<std::uint8_t>(1, 0) != 0;
    }
    return made;
  }

 private:
  const FlatBuffer& buffer_;
  std::uint64_t fields_ = 0;
};

// A list's elements, down to numbers. false: they are something else.
bool set_numbers(const ArrowField& top, ColumnType& type) {
  const ArrowField* at = &top;
  std::vector<std::int64_t> extents;
  for (; at->layout != ArrowLayout::kFixed; at = &at->children.front()) {
    const bool is_fixed = at->layout == ArrowLayout::kFixedList;
    const bool is_list = is_fixed || at->layout == ArrowLayout::kList || at->layout == ArrowLayout::kLargeList;
    if (!is_list || !at->is_known || at->dictionary || extents.size() == Shape::kMaxDims) return false;
    extents.push_back(is_fixed ? static_cast<std::int64_t>(at->list_size) : kAnyLength);
  }
  if (!at->dtype || (at->dictionary && at != &top)) return false;
  for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent) type.lists = type.lists.with_front(*extent);
  type.holds = Holds::kNumbers;
  type.dtype = *at->dtype;
  return true;
}

ColumnType type_of(const ArrowField& made, std::string name) {
  ColumnType type;
  type.name = std::move(name);
  type.shown = made.shown;
  if (!made.is_known) return type;
  if (made.layout == ArrowLayout::kNothing) return type.holds = Holds::kNothing, type;
  const bool is_binary = made.layout == ArrowLayout::kBinary || made.layout == ArrowLayout::kLargeBinary;
  if (is_binary || (made.layout == ArrowLayout::kFixed && !made.dtype)) {
    type.holds = made.is_text ? Holds::kText : Holds::kBytes;
    return type;
  }
  set_numbers(made, type);
  return type;
}

// The bytes and the path of a file, as the `datasets` library keeps images and sound.
bool is_file(const ArrowField& made) {
  const auto is_child = [](const ArrowField& child) { return child.name == "bytes" || child.name == "path"; };
  return made.children.size() == 2 && std::ranges::all_of(made.children, is_child) &&
         std::ranges::any_of(made.children, [](const ArrowField& child) {
           return child.name == "bytes" &&
                  (child.layout == ArrowLayout::kBinary || child.layout == ArrowLayout::kLargeBinary) &&
                  !child.dictionary;
         });
}

void add_columns(const ArrowField& made, const std::string& name, std::vector<std::size_t> path,
                 std::vector<ArrowColumn>& columns) {
  if (made.layout != ArrowLayout::kStruct || made.dictionary) {
    columns.push_back({type_of(made, name), std::move(path)});
    return;
  }
  const bool is_of_file = is_file(made);
  for (std::size_t i = 0; i < made.children.size(); ++i) {
    if (is_of_file && made.children[i].name == "path") continue;
    std::vector<std::size_t> below = path;
    below.push_back(i);
    add_columns(made.children[i], is_of_file ? name : name + "." + made.children[i].name, std::move(below), columns);
    if (is_of_file) columns.back().type.is_file = true;
  }
}

}  // namespace

const ArrowField& ArrowSchema::field_of(const ArrowColumn& column) const {
  const ArrowField* at = &fields[column.path.front()];
  for (std::size_t i = 1; i < column.path.size(); ++i) at = &at->children[column.path[i]];
  return *at;
}

Result<ArrowSchema> read_arrow_schema(const FlatTable& table, const FlatBuffer& buffer) {
  ArrowSchema made;
  if (table.number<std::int16_t>(schema::kEndianness, 0) != 0)
    return config_error("its numbers are big-endian, which this version does not read");
  const FlatVector fields = table.vector(schema::kFields, 4);
  SchemaReader reader(buffer);
  for (std::uint64_t i = 0; i < fields.size; ++i) {
    FEEDLINE_TRY(made.fields.emplace_back(), reader.read(FlatTable::in(fields, i), 0));
    add_columns(made.fields.back(), made.fields.back().name, {made.fields.size() - 1}, made.columns);
  }
  const FlatVector metadata = table.vector(schema::kMetadata, 4);
  std::vector<ColumnType*> types;
  for (ArrowColumn& column : made.columns) types.push_back(&column.type);
  for (std::uint64_t i = 0; i < metadata.size; ++i) {
    const FlatTable pair = FlatTable::in(metadata, i);
    if (pair.text(key_value::kKey) == "huggingface") describe(pair.text(key_value::kValue), types);
  }
  if (buffer.is_damaged()) return damaged_schema();
  return made;
}

}  // namespace feedline::format
