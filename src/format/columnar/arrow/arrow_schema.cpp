// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/arrow/arrow_schema.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "format/columnar/arrow/arrow_types.h"
#include "format/columnar/features.h"

namespace feedline::format {
namespace {

// Field numbers of the tables in Schema.fbs.
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

constexpr int kDeepest = 32;             // maximum nesting of a schema
constexpr std::uint64_t kMost = 65'536;  // maximum number of fields; more mean that the schema is damaged

std::unexpected<Error> damaged_schema() {
  return data_error("the schema is damaged: an offset points outside it", "format");
}

class SchemaReader {
 public:
  explicit SchemaReader(const FlatBuffer& buffer) : buffer_(buffer) {}

  Result<ArrowField> read(const FlatTable& table, int depth) {
    if (depth > kDeepest || ++fields_ > kMost || buffer_.is_damaged() || !table.is_there()) return damaged_schema();
    ArrowField made;
    made.name = table.text(field::kName);
    const auto kind = table.number<std::uint8_t>(field::kTypeKind, 0);
    if (!set_arrow_type(made, kind, table.table(field::kType))) {
      if (buffer_.is_damaged()) return damaged_schema();
      return config_error("the column '" + made.name + "' is of type " + std::to_string(kind) +
                          ", which this version does not support");
    }
    const FlatVector metadata = table.vector(field::kMetadata, 4);
    for (std::uint64_t i = 0; i < metadata.size; ++i) {
      const FlatTable pair = FlatTable::in(metadata, i);
      const std::string_view key = pair.text(key_value::kKey);
      if (key == "ARROW:extension:name") made.extension = pair.text(key_value::kValue);
      if (key == "ARROW:extension:metadata") made.parameters = pair.text(key_value::kValue);
    }
    const FlatVector children = table.vector(field::kChildren, 4);
    for (std::uint64_t i = 0; i < children.size; ++i) {
      FEEDLINE_TRY(made.children.emplace_back(), read(FlatTable::in(children, i), depth + 1));
    }
    if (is_list(made.layout) && made.children.size() != 1) return damaged_schema();
    if (made.layout == ArrowLayout::kRunEnds && made.children.size() != 2) return damaged_schema();
    if (is_list(made.layout) && made.shown == "list") made.shown = "list of " + made.children.front().shown;
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

}  // namespace

const ArrowField& ArrowSchema::field_of(const ArrowColumn& column) const {
  const ArrowField* at = &fields[column.path.front()];
  for (std::size_t i = 1; i < column.path.size(); ++i) at = &at->children[column.path[i]];
  return *at;
}

Result<ArrowSchema> read_arrow_schema(const FlatTable& table, const FlatBuffer& buffer) {
  ArrowSchema made;
  if (table.number<std::int16_t>(schema::kEndianness, 0) != 0)
    return config_error("the numbers are big-endian, which this version does not support");
  const FlatVector fields = table.vector(schema::kFields, 4);
  SchemaReader reader(buffer);
  for (std::uint64_t i = 0; i < fields.size; ++i) {
    FEEDLINE_TRY(made.fields.emplace_back(), reader.read(FlatTable::in(fields, i), 0));
    add_columns(made.fields.back(), made.fields.size() - 1, made.columns);
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
