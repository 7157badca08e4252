// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/cell_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "format/columnar/number_copy.h"
#include "format/columnar/tensor_type.h"
#include "format/field_kind.h"
#include "format/shards/member_files.h"
#include "memory/npy_header.h"
#include "memory/number.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

// Returns nullopt if the value exceeds 63 bits or is not an integer.
std::optional<std::int64_t> integer_of(DType dtype, Bytes bytes) {
  return memory::with_number(dtype, bytes, [](auto number) -> std::optional<std::int64_t> {
    if constexpr (std::is_integral_v<decltype(number)>) {
      const auto value = static_cast<std::int64_t>(number);
      if (std::is_signed_v<decltype(number)> || value >= 0) return value;
    }
    return {};
  });
}

std::unexpected<Error> problem(const PickedColumn& choice, const std::string& what) {
  return data_error("field '" + choice.description.name + "': " + what, "format");
}

Result<TableCell> copied(const TableCell& cell, std::uint64_t most_bytes, memory::ByteBuffer& buffer) {
  FEEDLINE_TRY(const auto room, buffer.make_room(cell.bytes.size(), most_bytes));
  if (!room.empty()) std::memcpy(room.data(), cell.bytes.data(), room.size());
  return TableCell{false, room, cell.shape};
}

// Returns the shape of a value in a column of tensors. The tensors replace the innermost lists.
Result<Shape> shape_of_tensors(const PickedColumn& choice, const Shape& lists) {
  const ColumnType& column = choice.column;
  const std::size_t outer = lists.dims() - 1;
  const bool is_empty = outer > 0 && lists.elements() == 0;
  if (!is_empty && lists[outer] != column.tensor.elements())
    return problem(choice, "the column '" + column.name + "' holds " + std::to_string(lists[outer]) +
                               " values, which is not the size of a tensor of shape " + column.tensor.to_string());
  Shape shape = samples_shape(column);
  for (std::size_t i = outer; i-- > 0;) shape = shape.with_front(lists[i]);
  return shape;
}

// An empty list does not determine the length of its inner lists, but the schema may specify this length.
Shape with_known_extents(const Shape& shape, const Shape& lists) {
  if (shape.elements() > 0 || shape.dims() != lists.dims()) return shape;
  Shape made;
  for (std::size_t i = shape.dims(); i-- > 0;) {
    const bool is_inside_empty = std::find(shape.begin(), shape.begin() + i, 0) != shape.begin() + i;
    made = made.with_front(is_inside_empty && lists[i] != kAnyLength ? lists[i] : shape[i]);
  }
  return made;
}

Result<void> make_numbers(const PickedColumn& choice, const TableCell& cell, std::uint64_t most_bytes,
                          memory::ByteBuffer& room, memory::Record::Field& field) {
  const DType dtype = choice.column.dtype;
  if (choice.description.kind == FieldKind::kInteger) {
    const auto value = integer_of(dtype, cell.bytes);
    if (!value) return problem(choice, "the value exceeds 9,223,372,036,854,775,807, the largest 64-bit integer");
    field.value = *value;
    return {};
  }
  Shape shape = with_known_extents(cell.shape, choice.column.lists);
  field.bytes = cell.bytes;
  if (choice.column.tensor.dims() > 0) {
    FEEDLINE_TRY(shape, shape_of_tensors(choice, shape));
    if (!choice.column.order.empty()) {
      const std::vector<std::byte> stored(cell.bytes.begin(), cell.bytes.end());
      FEEDLINE_TRY(const auto out, room.make_room(stored.size(), most_bytes));
      reorder_dimensions(choice.column, stored, out);
      field.bytes = out;
    }
  }
  if (choice.row_of > 0) {
    const auto row_of = static_cast<std::int64_t>(choice.row_of);
    if (shape[0] % row_of != 0)
      return problem(choice, "the column '" + choice.column.name + "' holds " + std::to_string(shape[0]) +
                                 " values, which do not form rows of " + std::to_string(row_of));
    shape = {shape[0] / row_of, row_of};
  }
  // an empty list does not show how many numbers its inner lists would have
  const FieldKind kind = choice.description.kind;
  if (shape.dims() == 2 && shape[0] == 0 && kind == FieldKind::kBoxes) shape = {0, 4};
  if (shape.dims() == 2 && shape[0] == 0 && kind == FieldKind::kKeypoints) shape = {0, 2};
  field.array = ArraySpec{dtype, shape};
  return {};
}

// Makes a number with the choice's dtype and value for nulls.
Result<void> make_converted(const PickedColumn& choice, const TableCell& cell, std::uint64_t most_bytes,
                            memory::ByteBuffer& room, memory::Record::Field& field) {
  const std::uint32_t value_of = cell.is_null ? NumberRun::kNull : 0;
  Element number{};
  const bool is_number = choice.column.holds == Holds::kNumbers && choice.column.lists.dims() == 0;
  if (is_number) std::ranges::copy(cell.bytes, number.begin());
  // after the copy, because the cell may be in `room`, which loses its contents when it grows
  FEEDLINE_TRY(const auto out, room.make_room(sizeof(Element), most_bytes));
  const NumberRun run{.begin = 0, .end = 1, .values = number, .value_of = {&value_of, 1}};
  constexpr GatheredRow kRow{0, 0};
  FEEDLINE_CHECK_OK(copy_numbers(run, {&kRow, 1},
                                 {.from = choice.column.dtype, .to = *choice.made, .null = choice.null}, out.data(),
                                 size_of(*choice.made)));
  field.array = ArraySpec{*choice.made, {}};
  field.bytes = out.first(size_of(*choice.made));
  return {};
}

}  // namespace

Result<TableCell> read_cell(const ColumnTable& table, const std::shared_ptr<const storage::Reader>& reader,
                            std::uint64_t row, std::size_t slot, memory::Record& record, memory::ByteBuffer& buffer) {
  FEEDLINE_TRY(const CellLocation location, table.location(row, slot));
  if (location.in == CellLocation::In::kNull) return TableCell{.is_null = true};
  if (location.in == CellLocation::In::kMemory) {
    record.bytes_read += location.held.size();
    return copied({false, location.held, location.shape}, record.most_bytes, buffer);
  }
  if (location.in == CellLocation::In::kPacked) {
    std::shared_ptr<const void> pin;
    FEEDLINE_TRY(const TableCell cell, table.unpack(*reader, row, slot, pin));
    record.bytes_read += cell.bytes.size();
    return cell.is_null ? cell : copied(cell, record.most_bytes, buffer);
  }
  record.bytes_read += location.bytes;
  // mapped or not: reading a view loads its pages
  if (location.bytes > record.most_bytes) return memory::too_large(location.bytes, record.most_bytes);
  if (location.bytes == 0) return TableCell{false, {}, location.shape};
  FEEDLINE_TRY(const auto view, reader->view(location.offset, location.bytes));
  if (view) {
    record.pin = reader;
    return TableCell{false, *view, location.shape};
  }
  FEEDLINE_TRY(const auto room, buffer.make_room(location.bytes, record.most_bytes));
  FEEDLINE_TRY(const std::size_t got, reader->read_at(location.offset, room));
  if (got < room.size())
    return storage_error(
        "the file ends at byte " + std::to_string(location.offset + got) + ", inside a value: the file became shorter",
        0);
  return TableCell{false, room, location.shape};
}

Result<void> make_field(const PickedColumn& choice, const TableCell& cell, std::uint64_t most_bytes,
                        memory::ByteBuffer& room, memory::Record::Field& field) {
  field = {};
  field.absent = cell.is_null && choice.null == NullValue::kError;
  if (field.absent) {
    if (choice.description.may_be_absent) return {};
    return problem(choice, "the row has no value in the column '" + choice.column.name + "'");
  }
  if (choice.made) return make_converted(choice, cell, most_bytes, room, field);
  if (choice.column.holds == Holds::kNumbers) return make_numbers(choice, cell, most_bytes, room, field);
  if (cell.bytes.empty() && !may_be_empty(choice.description.kind)) return problem(choice, "an empty file");
  field.bytes = cell.bytes;
  if (choice.description.kind != FieldKind::kInteger) return {};
  const auto value = parse_integer(cell.bytes);
  if (!value) {
    constexpr std::size_t kShown = 80;  // maximum characters of the cell
    const std::string text(reinterpret_cast<const char*>(cell.bytes.data()), std::min(cell.bytes.size(), kShown));
    return problem(choice, "the column '" + choice.column.name + "' has '" + text +
                               "', which is not a 64-bit integer; read it as text with '" + choice.column.name +
                               ":text'");
  }
  field.value = *value;
  return {};
}

Result<void> make_fields(const std::vector<PickedColumn>& choices, const CellOf& cell_of, std::uint64_t most_bytes,
                         std::span<memory::ByteBuffer> rooms, std::span<memory::Record::Field> fields) {
  memory::ByteBuffer number;
  for (std::size_t slot = 0, field = 0; slot < choices.size(); slot += choices[slot].members, ++field) {
    const std::size_t members = choices[slot].members;
    if (members == 1) {
      FEEDLINE_TRY(const TableCell cell, cell_of(slot, rooms[slot]));
      FEEDLINE_CHECK_OK(make_field(choices[slot], cell, most_bytes, rooms[slot], fields[field]));
      continue;
    }
    const ArraySpec spec{*choices[slot].made, {static_cast<std::int64_t>(members)}};
    FEEDLINE_TRY(const auto out, rooms[slot].make_room(spec.bytes(), most_bytes));
    fields[field] = {.bytes = out, .array = spec};
    const std::size_t width = size_of(spec.dtype);
    for (std::size_t member = 0; member < members; ++member) {
      FEEDLINE_TRY(const TableCell cell, cell_of(slot + member, number));
      memory::Record::Field made;
      FEEDLINE_CHECK_OK(make_field(choices[slot + member], cell, most_bytes, number, made));
      if (made.absent) {
        fields[field] = {.absent = true};
        break;
      }
      std::ranges::copy(made.bytes, out.begin() + static_cast<std::ptrdiff_t>(member * width));
    }
  }
  return {};
}

Result<std::vector<SampleFiles::File>> files_of(const std::vector<PickedColumn>& choices,
                                                std::span<const memory::Record::Field> fields) {
  MemberFiles files;
  for (std::size_t slot = 0, i = 0; slot < choices.size(); slot += choices[slot].members, ++i) {
    if (fields[i].absent) continue;
    const FieldDescription& description = choices[slot].description;
    std::vector<std::byte> bytes(fields[i].bytes.begin(), fields[i].bytes.end());
    const FieldKind kind = description.kind;
    if (kind == FieldKind::kInteger) {
      const std::string text = std::to_string(fields[i].value);
      bytes.assign(std::as_bytes(std::span(text)).begin(), std::as_bytes(std::span(text)).end());
    }
    if (fields[i].array) bytes = memory::npy_file(*fields[i].array, fields[i].bytes);
    files.add_value(description.name, kind, std::move(bytes));
  }
  auto made = files.take();
  if (made.empty()) return data_error("the row has no value in any of its fields", "format");
  return made;
}

}  // namespace feedline::format
