// SPDX-License-Identifier: Apache-2.0
#include "decode/npy/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace feedline::decode {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// A header is some 100 bytes; NumPy itself refuses longer ones.
constexpr std::size_t kMostHeader = 10'000;
// One extent of a batch is its rows.
constexpr std::size_t kMostDims = Shape::kMaxDims - 1;

std::unexpected<Error> npy_error(std::string what) { return data_error("npy: " + std::move(what), "decode"); }

struct Known {
  std::string_view code;
  DType dtype;
};
constexpr Known kKnown[] = {{"b1", DType::kBool},    {"i1", DType::kInt8},    {"i2", DType::kInt16},
                            {"i4", DType::kInt32},   {"i8", DType::kInt64},   {"u1", DType::kUint8},
                            {"u2", DType::kUint16},  {"u4", DType::kUint32},  {"u8", DType::kUint64},
                            {"f2", DType::kFloat16}, {"f4", DType::kFloat32}, {"f8", DType::kFloat64}};

// "<f4"; one byte has no order, which is "|".
Result<DType> dtype_of(std::string_view descr) {
  const std::string shown(descr);
  if (descr.find('O') != descr.npos)
    return npy_error("an array of Python objects (" + shown + "); save it with a number dtype");
  if (descr.empty()) return npy_error("a structured array; save each of its fields by itself");
  if (descr.front() == '>')
    return npy_error("big-endian (" + shown + "); save it with array.astype(\"<" + shown.substr(1) + "\")");
  const std::string_view code = descr.substr(descr.front() == '<' || descr.front() == '|' || descr.front() == '=');
  const auto known = std::ranges::find(kKnown, code, &Known::code);
  if (known == std::end(kKnown)) return npy_error("dtype " + shown + " is not one that a batch can have");
  return known->dtype;
}

// The header is a Python literal that numpy.save writes in one way; what it never writes is refused.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  // The value behind 'key': up to the comma or brace that ends it.
  std::optional<std::string_view> value_of(std::string_view key) const {
    const std::string quoted = "'" + std::string(key) + "'";
    const std::size_t at = text_.find(quoted);
    if (at == text_.npos) return {};
    std::size_t begin = at + quoted.size();
    while (begin < text_.size() && (text_[begin] == ' ' || text_[begin] == ':')) ++begin;
    const char first = begin < text_.size() ? text_[begin] : '\0';
    const std::size_t end = first == '\''  ? text_.find('\'', begin + 1)
                            : first == '(' ? text_.find(')', begin)
                            : first == '[' ? text_.find(']', begin)
                                           : text_.find_first_of(",}", begin);
    if (end == text_.npos) return {};
    return first == '\'' || first == '(' ? text_.substr(begin + 1, end - begin - 1) : text_.substr(begin, end - begin);
  }

 private:
  std::string_view text_;
};

// "3, 4" or "3," or nothing.
Result<Shape> shape_of(std::string_view text) {
  std::array<std::int64_t, kMostDims> extents{};
  std::size_t dims = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    while (at < end && (*at == ' ' || *at == ',')) ++at;
    if (at == end) break;
    if (dims == kMostDims) return npy_error("an array of more than " + std::to_string(kMostDims) + " extents");
    const auto [next, error] = std::from_chars(at, end, extents[dims]);
    if (error != std::errc() || extents[dims] < 0)
      return npy_error("damaged header: the shape is (" + std::string(text) + ")");
    ++dims;
    at = next;
  }
  Shape shape;
  for (std::size_t i = dims; i-- > 0;) shape = shape.with_front(extents[i]);
  return shape;
}

Result<std::uint64_t> bytes_of(const ArraySpec& spec) {
  std::uint64_t bytes = size_of(spec.dtype);
  for (const std::int64_t extent : spec.shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
      return npy_error("damaged header: an array of shape " + spec.shape.to_string());
  return bytes;
}

}  // namespace

bool is_npy(std::span<const std::byte> file) {
  return std::string_view(reinterpret_cast<const char*>(file.data()), file.size()).starts_with(kMagic);
}

void write_npy(const ArraySpec& spec, std::span<const std::byte> data, std::vector<std::byte>& file) {
  constexpr std::size_t kAlignment = 64;  // of the elements, as NumPy has it
  const auto known = std::ranges::find(kKnown, spec.dtype, &Known::dtype);
  std::string header = "{'descr': '" + std::string(size_of(spec.dtype) == 1 ? "|" : "<") + std::string(known->code) +
                       "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t extent : spec.shape) header += std::to_string(extent) + ",";
  header += "), }";
  const std::size_t before = kMagic.size() + 4;
  header.append(kAlignment - (before + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  const std::array<char, 4> version_and_length{1, 0, static_cast<char>(header.size() & 0xff),
                                               static_cast<char>(header.size() >> 8)};
  file.clear();
  const auto add = [&file](std::span<const std::byte> bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); };
  add(std::as_bytes(std::span(kMagic)));
  add(std::as_bytes(std::span(version_and_length)));
  add(std::as_bytes(std::span(header)));
  add(data);
}

Result<NpyArray> read_npy(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) return npy_error(file.empty() ? "an empty file" : "not a .npy file");
  const auto byte_at = [&](std::size_t i) { return i < file.size() ? std::to_integer<std::size_t>(file[i]) : 0; };
  const std::size_t version = byte_at(kMagic.size());
  if (version < 1 || version > 3)
    return npy_error("version " + std::to_string(version) + " of the format is not known");
  const std::size_t begin = version == 1 ? 10 : 12;
  std::size_t header_bytes = byte_at(8) | byte_at(9) << 8;
  if (version > 1) header_bytes |= byte_at(10) << 16 | byte_at(11) << 24;
  if (header_bytes > kMostHeader) return npy_error("a header of " + std::to_string(header_bytes) + " bytes");
  if (file.size() < begin + header_bytes) return npy_error("cut short within its header");
  const HeaderReader header(text.substr(begin, header_bytes));
  const auto descr = header.value_of("descr"), order = header.value_of("fortran_order"),
             shape = header.value_of("shape");
  if (!descr || !order || !shape) return npy_error("damaged header");
  NpyArray array;
  FEEDLINE_TRY(array.spec.dtype, dtype_of(descr->starts_with('[') ? std::string_view() : *descr));
  FEEDLINE_TRY(array.spec.shape, shape_of(*shape));
  if (*order == "True" && array.spec.shape.dims() > 1)
    return npy_error("an array in Fortran order; save numpy.ascontiguousarray(array)");
  FEEDLINE_TRY(const std::uint64_t bytes, bytes_of(array.spec));
  const auto stored = file.subspan(begin + header_bytes);
  if (stored.size() < bytes)
    return npy_error("cut short: " + std::to_string(stored.size()) + " of " + std::to_string(bytes) + " bytes of " +
                     std::string(name_of(array.spec.dtype)) + array.spec.shape.to_string());
  array.data = stored.first(bytes);
  return array;
}

}  // namespace feedline::decode
