// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/tensor_type.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "text/json_value.h"

namespace feedline::format {
namespace {

using text::JsonValue;
using text::parse_json;

// The maximum number of elements; values are limited to 2 GiB, so they cannot have more elements.
constexpr std::int64_t kMostElements = std::int64_t{1} << 31;

std::optional<std::vector<std::int64_t>> numbers_in(const JsonValue* list) {
  if (list == nullptr || list->kind != JsonValue::Kind::kArray) return {};
  std::vector<std::int64_t> numbers;
  for (const JsonValue& item : list->items) {
    std::int64_t& number = numbers.emplace_back();
    const char* const end = item.text.data() + item.text.size();
    const auto [at, error] = std::from_chars(item.text.data(), end, number);
    if (item.kind != JsonValue::Kind::kNumber || error != std::errc() || at != end) return {};
  }
  return numbers;
}

// Converts dimensions to a shape. Returns nullopt if a dimension is negative, or if there are too many dimensions or
// elements.
std::optional<Shape> shape_of(const std::vector<std::int64_t>& extents) {
  Shape shape;
  std::int64_t elements = 1;
  if (extents.empty() || extents.size() > Shape::kMaxDims) return {};
  for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent) {
    if (*extent < 0 || (*extent > 0 && elements > kMostElements / *extent)) return {};
    elements *= *extent;
    shape = shape.with_front(*extent);
  }
  return shape;
}

// For each dimension of a sample, returns the index of the stored dimension; returns an empty list if the order is the
// same. Returns nullopt if `permutation` is not a permutation.
std::optional<std::vector<std::uint8_t>> order_of(const JsonValue* permutation, std::size_t dims) {
  std::vector<std::uint8_t> order;
  if (permutation == nullptr || permutation->kind == JsonValue::Kind::kNull) return order;
  const auto numbers = numbers_in(permutation);
  if (!numbers || numbers->size() != dims) return {};
  for (const std::int64_t number : *numbers) {
    if (number < 0 || std::cmp_greater_equal(number, dims)) return {};
    if (std::ranges::count(order, static_cast<std::uint8_t>(number)) > 0) return {};
    order.push_back(static_cast<std::uint8_t>(number));
  }
  if (std::ranges::is_sorted(order)) order.clear();
  return order;
}

std::string names_of_dimensions(const JsonValue* names, const ColumnType& column) {
  if (names == nullptr || names->items.size() != column.tensor.dims()) return {};
  std::string text;
  for (std::size_t i = 0; i < names->items.size(); ++i)
    text.append(text.empty() ? "dimensions " : ", ")
        .append(names->items[column.order.empty() ? i : column.order[i]].text);
  return text;
}

bool fits(std::string_view parameters, ColumnType& column) {
  const auto json = parse_json(parameters);
  if (!json || column.holds != Holds::kNumbers || column.lists.dims() == 0) return false;
  const auto extents = numbers_in(json->kind == JsonValue::Kind::kArray ? &*json : json->find("shape"));
  const auto shape = extents ? shape_of(*extents) : std::nullopt;
  const std::int64_t size = column.lists[column.lists.dims() - 1];
  if (!shape || (size != kAnyLength && size != shape->elements())) return false;
  if (column.lists.dims() - 1 + shape->dims() > Shape::kMaxDims) return false;
  auto order = order_of(json->find("permutation"), shape->dims());
  if (!order) return false;
  column.tensor = *shape;
  column.order = std::move(*order);
  column.meaning = names_of_dimensions(json->find("dim_names"), column);
  return true;
}

}  // namespace

bool is_tensor_type(std::string_view extension) {
  return extension == "arrow.fixed_shape_tensor" || extension == "ray.data.arrow_tensor" ||
         extension == "ray.data.arrow_tensor_v2";
}

void set_tensor(std::string_view extension, std::string_view parameters, ColumnType& column) {
  if (!fits(parameters, column)) {
    constexpr std::size_t kShown = 100;
    column.meaning =
        std::string(extension) + " whose shape does not fit its lists: " + std::string(parameters.substr(0, kShown));
    column.holds = Holds::kOther;
    return;
  }
  const Shape in_order = samples_shape(column);
  const std::size_t lists = column.lists.dims() - 1;
  std::string shown;
  for (std::size_t i = 0; i < lists; ++i) shown += "list of ";
  column.shown = shown + "tensor of " + std::string(name_of(column.dtype)) + " " + in_order.to_string();
}

void reorder_dimensions(const ColumnType& column, std::span<const std::byte> in, std::span<std::byte> out) {
  const Shape shape = samples_shape(column);
  const std::size_t dims = shape.dims(), width = size_of(column.dtype);
  std::array<std::size_t, Shape::kMaxDims> strides{},
      location{};  // strides in elements of `in`, by dimension of a sample
  for (std::size_t i = 0; i < dims; ++i) {
    strides[i] = 1;
    for (std::size_t inner = column.order[i] + 1U; inner < dims; ++inner)
      strides[i] *= static_cast<std::size_t>(column.tensor[inner]);
  }
  const auto tensor_bytes = static_cast<std::size_t>(shape.elements()) * width;
  for (std::size_t begin = 0; tensor_bytes > 0 && begin < in.size(); begin += tensor_bytes) {
    std::size_t from = 0;
    location.fill(0);
    for (std::size_t to = 0; to < tensor_bytes; to += width) {
      std::memcpy(out.data() + begin + to, in.data() + begin + from * width, width);
      for (std::size_t i = dims; i-- > 0;) {
        from += strides[i];
        if (++location[i] < static_cast<std::size_t>(shape[i])) break;
        from -= strides[i] * location[i];
        location[i] = 0;
      }
    }
  }
}

}  // namespace feedline::format
