// SPDX-License-Identifier: Apache-2.0
#include "memory/npy_header.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace feedline::memory {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// A header is about 100 bytes; NumPy itself rejects longer ones.
constexpr std::size_t kMostHeader = 10'000;
// A batch needs one dimension for its rows.
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

// For example "<f4". Single bytes have no byte order ("|"), and ">" is big-endian.
Result<DType> dtype_of(std::string_view descr) {
  const std::string shown(descr);
  if (descr.find('O') != descr.npos)
    return npy_error("an array of Python objects (" + shown + "); save it with a numeric dtype");
  if (descr.empty()) return npy_error("a structured array; save each of its fields separately");
  const std::string_view code = descr.substr(std::string_view("<>|=").contains(descr.front()));
  const auto known = std::ranges::find(kKnown, code, &Known::code);
  if (known == std::end(kKnown)) return npy_error("dtype " + shown + " is not supported in batches");
  return known->dtype;
}

// The header is a Python literal in a fixed form that numpy.save writes; other forms are rejected.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  // Returns the text of the value after 'key', up to the comma or brace that ends it.
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
    if (dims == kMostDims) return npy_error("an array of more than " + std::to_string(kMostDims) + " dimensions");
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

// nullopt on overflow.
std::optional<std::uint64_t> bytes_of(const ArraySpec& spec) {
  std::uint64_t bytes = size_of(spec.dtype);
  for (const std::int64_t extent : spec.shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) return {};
  return bytes;
}

}  // namespace

bool is_npy(std::span<const std::byte> front) {
  return std::string_view(reinterpret_cast<const char*>(front.data()), front.size()).starts_with(kMagic);
}

std::uint64_t NpyHeader::data_bytes() const { return bytes_of(spec).value_or(0); }

Result<NpyHeader> read_npy_header(std::span<const std::byte> front) {
  const std::string_view text(reinterpret_cast<const char*>(front.data()), front.size());
  if (!is_npy(front)) return npy_error(front.empty() ? "an empty file" : "not a .npy file");
  const auto byte_at = [&](std::size_t i) { return i < front.size() ? std::to_integer<std::size_t>(front[i]) : 0; };
  const std::size_t version = byte_at(kMagic.size());
  if (version < 1 || version > 3)
    return npy_error("version " + std::to_string(version) + " of the format is not supported");
  const std::size_t begin = version == 1 ? 10 : 12;
  std::size_t header_bytes = byte_at(8) | byte_at(9) << 8;
  if (version > 1) header_bytes |= byte_at(10) << 16 | byte_at(11) << 24;
  if (header_bytes > kMostHeader) return npy_error("a header of " + std::to_string(header_bytes) + " bytes");
  if (front.size() < begin + header_bytes) return npy_error("truncated within its header");
  const HeaderReader reader(text.substr(begin, header_bytes));
  const auto descr = reader.value_of("descr"), order = reader.value_of("fortran_order"),
             shape = reader.value_of("shape");
  if (!descr || !order || !shape) return npy_error("damaged header");
  NpyHeader header;
  header.descr = descr->starts_with('[') ? std::string_view() : *descr;
  FEEDLINE_TRY(header.spec.dtype, dtype_of(header.descr));
  FEEDLINE_TRY(header.spec.shape, shape_of(*shape));
  if (!bytes_of(header.spec)) return npy_error("damaged header: an array of shape " + header.spec.shape.to_string());
  header.is_swapped = header.descr.front() == '>' && size_of(header.spec.dtype) > 1;
  header.is_fortran = *order == "True" && header.spec.shape.dims() > 1;
  header.bytes = begin + header_bytes;
  return header;
}

std::string npy_header(const ArraySpec& spec) {
  constexpr std::size_t kAlignment = 64;  // of the elements, as in NumPy
  const auto known = std::ranges::find(kKnown, spec.dtype, &Known::dtype);
  std::string dict = "{'descr': '" + std::string(size_of(spec.dtype) == 1 ? "|" : "<") + std::string(known->code) +
                     "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t extent : spec.shape) dict += std::to_string(extent) + ",";
  dict += "), }";
  const std::size_t before = kMagic.size() + 4;
  dict.append(kAlignment - (before + dict.size() + 1) % kAlignment, ' ');
  dict += '\n';
  const std::array<char, 4> version_and_length{1, 0, static_cast<char>(dict.size() & 0xff),
                                               static_cast<char>(dict.size() >> 8)};
  return std::string(kMagic).append(version_and_length.data(), version_and_length.size()) + dict;
}

std::vector<std::byte> npy_file(const ArraySpec& spec, std::span<const std::byte> data) {
  FEEDLINE_CHECK(spec.bytes() == data.size());
  const std::string header = npy_header(spec);
  const auto front = std::as_bytes(std::span(header));
  std::vector<std::byte> file;
  file.reserve(front.size() + data.size());
  file.insert(file.end(), front.begin(), front.end());
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

}  // namespace feedline::memory
