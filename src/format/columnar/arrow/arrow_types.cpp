// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/arrow/arrow_types.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace feedline::format {
namespace {

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

void set_integer(ArrowField& made, std::int32_t bits, bool is_signed) {
  constexpr DType kUnsigned[] = {DType::kUint8, DType::kUint16, DType::kUint32, DType::kUint64};
  constexpr DType kSigned[] = {DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64};
  made.layout = ArrowLayout::kFixed;
  made.shown = (is_signed ? "int" : "uint") + std::to_string(bits);
  made.bits = 0;
  for (std::size_t i = 0; i < std::size(kSigned); ++i) {
    if (bits != 8 << i) continue;
    made.bits = static_cast<std::uint64_t>(bits);
    made.dtype = (is_signed ? kSigned : kUnsigned)[i];
  }
}

void set_float(ArrowField& made, std::int16_t precision) {
  constexpr DType kFloats[] = {DType::kFloat16, DType::kFloat32, DType::kFloat64};
  made.layout = ArrowLayout::kFixed;
  if (precision < 0 || precision > 2) return;
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

// Times are integers with a unit.
constexpr std::string_view kUnits[] = {"s", "ms", "us", "ns"};

bool set_unit(ArrowField& made, std::string_view what, std::int16_t unit, std::string_view zone = {}) {
  if (unit < 0 || std::cmp_greater_equal(unit, std::size(kUnits))) return false;
  made.unit = kUnits[static_cast<std::size_t>(unit)];
  made.meaning.assign(what).append("[").append(made.unit);
  if (!zone.empty()) made.meaning.append(", tz=").append(zone);
  made.meaning += "]";
  return true;
}

bool set_date(ArrowField& made, std::int16_t unit) {
  set_integer(made, unit == 0 ? 32 : 64, true);
  made.unit = unit == 0 ? "days" : "ms";
  made.meaning = "date[" + made.unit + "]";
  return unit == 0 || unit == 1;
}

bool set_time(ArrowField& made, std::int32_t bits, std::int16_t unit) {
  set_integer(made, bits, true);
  return made.bits > 0 && set_unit(made, "time", unit);
}

}  // namespace

bool set_arrow_type(ArrowField& made, std::uint8_t number, const FlatTable& type) {
  const auto kind = static_cast<TypeKind>(number);
  switch (kind) {
    case TypeKind::kNull:
      return made.shown = "nothing", true;
    case TypeKind::kInt:
      // Int128 is not an official Arrow type but written by polars. Values of this type can be skipped.
      if (type.number<std::int32_t>(0, 0) == 128) return set_fixed(made, 128, "int128"), true;
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
      return set_date(made, type.number<std::int16_t>(0, 1));
    case TypeKind::kTime:
      return set_time(made, type.number<std::int32_t>(1, 32), type.number<std::int16_t>(0, 1));
    case TypeKind::kTimestamp:
      set_integer(made, 64, true);
      return set_unit(made, "timestamp", type.number<std::int16_t>(0, 0), type.text(1));
    case TypeKind::kDuration:
      set_integer(made, 64, true);
      return set_unit(made, "duration", type.number<std::int16_t>(0, 1));
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
      return set_binary(made, ArrowLayout::kBinaryView, kind == TypeKind::kTextView), true;
    case TypeKind::kListView:
      return set_nested(made, ArrowLayout::kListView, "list"), true;
    case TypeKind::kLargeListView:
      return set_nested(made, ArrowLayout::kLargeListView, "list"), true;
    default:
      return false;
  }
}

}  // namespace feedline::format
