// SPDX-License-Identifier: Apache-2.0
#include "format/columnar/parquet/page_values.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "format/columnar/parquet/deltas.h"
#include "format/columnar/parquet/runs.h"

namespace feedline::format {
namespace {

using Bytes = std::span<const std::byte>;

std::unexpected<Error> do_not_fit() {
  return data_error("the page's values exceed the page's size: the file is damaged", "format");
}

// Appends decoded byte strings. Limits the total size of the strings, because a few bytes with shared prefixes can
// expand to many.
constexpr std::uint64_t kMostJoined = std::uint64_t{1} << 30;

class Decoder {
 public:
  Decoder(const ParquetColumn& column, Bytes in, std::uint64_t count) : column_(column), in_(in), count_(count) {
    made_.count = count;
  }

  Result<PageValues> take() {
    narrow();
    return std::move(made_);
  }
  bool is_binary() const { return column_.stored == ParquetType::kBytes; }

  bool plain() {
    if (column_.stored == ParquetType::kBool) return bits();
    if (!is_binary()) return copy_numbers();
    made_.slices.reserve(count_);
    for (std::uint64_t i = 0; i < count_; ++i) {
      std::uint32_t bytes = 0;
      if (in_.size() < sizeof bytes) return false;
      std::memcpy(&bytes, in_.data(), sizeof bytes);
      if (in_.size() - sizeof bytes < bytes) return false;
      made_.slices.push_back({in_.data() + sizeof bytes, bytes});
      in_ = in_.subspan(sizeof bytes + bytes);
    }
    return true;
  }

  bool dictionary(const PageValues& values) {
    if (count_ == 0) return made_.width = values.width, true;
    if (in_.empty()) return false;
    const auto bits = std::to_integer<unsigned>(in_.front());
    in_ = in_.subspan(1);
    if (bits > 32) return false;
    const auto indices = take_runs(in_, bits, count_);
    if (!indices || std::ranges::any_of(*indices, [&](std::uint32_t i) { return i >= values.count; })) return false;
    made_.width = values.width;
    if (made_.width == 0) {
      made_.slices.reserve(count_);
      for (const std::uint32_t i : *indices) made_.slices.push_back(values.strings()[i]);
      return true;
    }
    made_.data.resize(count_ * made_.width);
    for (std::uint64_t i = 0; i < count_; ++i)
      std::memcpy(made_.data.data() + i * made_.width, values.numbers().data() + (*indices)[i] * made_.width,
                  made_.width);
    return true;
  }

  // Decodes boolean values, which are stored as a u32 number of bytes, followed by runs.
  bool runs() {
    std::uint32_t bytes = 0;
    if (column_.stored != ParquetType::kBool || in_.size() < sizeof bytes) return false;
    std::memcpy(&bytes, in_.data(), sizeof bytes);
    if (in_.size() - sizeof bytes < bytes) return false;
    Bytes inside = in_.subspan(sizeof bytes, bytes);
    const auto values = take_runs(inside, 1, count_);
    if (!values) return false;
    set_width(1);
    for (std::uint64_t i = 0; i < count_; ++i) made_.data[i] = static_cast<std::byte>((*values)[i]);
    return true;
  }

  bool deltas() {
    const bool is_integer = column_.stored == ParquetType::kInt32 || column_.stored == ParquetType::kInt64;
    const auto values = is_integer ? take_deltas(in_, count_) : std::nullopt;
    if (!values || values->size() != count_) return false;
    set_width(column_.value_bytes);
    for (std::uint64_t i = 0; i < count_; ++i)
      std::memcpy(made_.data.data() + i * made_.width, &(*values)[i], made_.width);
    return true;
  }

  bool delta_lengths() {
    if (!is_binary()) return false;
    return slice_by_lengths(made_.slices);
  }

  bool delta_bytes() {
    const bool is_fixed = column_.stored == ParquetType::kFixedBytes;
    if (!is_binary() && !is_fixed) return false;
    const auto prefixes = take_deltas(in_, count_);
    std::vector<PageValues::Slice> ends;
    if (!prefixes || prefixes->size() != count_ || !slice_by_lengths(ends)) return false;
    std::uint64_t all = 0, before = 0;
    for (std::uint64_t i = 0; i < count_; ++i) {
      if ((*prefixes)[i] > before) return false;
      before = (*prefixes)[i] + ends[i].bytes;
      all += before;
      if (all > kMostJoined || (is_fixed && before != column_.value_bytes)) return false;
    }
    made_.data.resize(all);
    std::byte* out = made_.data.data();
    const std::byte* last = out;
    for (std::uint64_t i = 0; i < count_; ++i) {
      const std::uint64_t prefix = (*prefixes)[i];
      if (prefix > 0) std::memcpy(out, last, prefix);
      if (ends[i].bytes > 0) std::memcpy(out + prefix, ends[i].begin, ends[i].bytes);
      if (!is_fixed) made_.slices.push_back({out, prefix + ends[i].bytes});
      last = out;
      out += prefix + ends[i].bytes;
    }
    if (is_fixed) made_.width = column_.value_bytes;
    return true;
  }

  // Decodes BYTE_STREAM_SPLIT, which stores the first bytes of all values, then their second bytes, and so on.
  bool streams() {
    if (is_binary() || column_.stored == ParquetType::kBool || in_.size() / column_.value_bytes < count_) return false;
    set_width(column_.value_bytes);
    for (std::uint64_t byte = 0; byte < made_.width; ++byte)
      for (std::uint64_t i = 0; i < count_; ++i) made_.data[i * made_.width + byte] = in_[byte * count_ + i];
    return true;
  }

 private:
  void set_width(std::uint64_t width) {
    made_.width = width;
    made_.data.resize(count_ * width);
  }

  bool copy_numbers() {
    if (in_.size() / column_.value_bytes < count_) return false;
    made_.width = column_.value_bytes;
    made_.data.assign(in_.begin(), in_.begin() + static_cast<std::ptrdiff_t>(count_ * made_.width));
    return true;
  }

  bool bits() {
    if (in_.size() < (count_ + 7) / 8) return false;
    set_width(1);
    for (std::uint64_t i = 0; i < count_; ++i) made_.data[i] = static_cast<std::byte>(packed_at(in_, i, 1));
    return true;
  }

  // Decodes byte strings that are stored as their lengths (as deltas), followed by their bytes.
  bool slice_by_lengths(std::vector<PageValues::Slice>& slices) {
    const auto lengths = take_deltas(in_, count_);
    if (!lengths || lengths->size() != count_) return false;
    slices.reserve(count_);
    for (const std::uint64_t bytes : *lengths) {
      if (bytes > in_.size()) return false;
      slices.push_back({in_.data(), bytes});
      in_ = in_.subspan(bytes);
    }
    return true;
  }

  // Converts integers that are stored with 32 or 64 bits to the column's narrower type.
  void narrow() {
    const std::uint64_t width = column_.made_bytes;
    if (column_.type.dtype == DType::kBool || width == 0 || made_.width <= width) return;
    for (std::uint64_t i = 0; i < made_.count; ++i)
      std::memmove(made_.data.data() + i * width, made_.data.data() + i * made_.width, width);
    made_.width = width;
    made_.data.resize(made_.count * width);
    made_.data.shrink_to_fit();
  }

  const ParquetColumn& column_;
  Bytes in_;
  const std::uint64_t count_;
  PageValues made_;
};

}  // namespace

Result<PageValues> decode_values(const ParquetColumn& column, std::int64_t encoding, Bytes in, std::uint64_t count,
                                 const std::shared_ptr<const PageValues>& dictionary,
                                 const std::shared_ptr<const void>& page) {
  Decoder decoder(column, in, count);
  bool fits = false, is_in_dictionary = false;
  std::shared_ptr<const void> owner = page;  // owns the memory of `in` until the end of this function
  switch (static_cast<ParquetEncoding>(encoding)) {
    case ParquetEncoding::kPlain:
      fits = decoder.plain();
      break;
    case ParquetEncoding::kPlainDictionary:
    case ParquetEncoding::kDictionary:
      if (!dictionary) return data_error("the page's values refer to a dictionary that is missing", "format");
      owner = dictionary;
      fits = decoder.dictionary(*dictionary);
      is_in_dictionary = dictionary->width == 0;
      break;
    case ParquetEncoding::kRuns:
      fits = decoder.runs();
      break;
    case ParquetEncoding::kDelta:
      fits = decoder.deltas();
      break;
    case ParquetEncoding::kDeltaLength:
      fits = decoder.delta_lengths();
      break;
    case ParquetEncoding::kDeltaBytes:
      fits = decoder.delta_bytes();
      break;
    case ParquetEncoding::kStreams:
      fits = decoder.streams();
      break;
    default:
      return config_error("a page has the encoding " + std::to_string(encoding) + ", which this version does not read");
  }
  if (!fits) return do_not_fit();
  FEEDLINE_TRY(PageValues made, decoder.take());
  if (made.width == 0 && made.data.empty()) made.owner = std::move(owner);  // else the values are in `data`
  made.is_in_dictionary = is_in_dictionary;
  return made;
}

bool move_to(BlockStore& store, PageValues& values) {
  if (values.width > 0) {
    const Bytes numbers = values.data;
    const auto stored = store.add({&numbers, 1});
    if (!stored) return false;
    values.stored = *stored;
  } else {
    if (!values.is_in_dictionary) {
      std::vector<Bytes> strings;
      for (const auto& slice : values.slices) strings.push_back({slice.begin, slice.bytes});
      const auto stored = store.add(strings);
      if (!stored) return false;
      const std::byte* at = stored->data();
      for (auto& slice : values.slices) {
        slice.begin = at;
        at += slice.bytes;
      }
    }
    const Bytes slices = std::as_bytes(std::span(values.slices));
    const auto stored = store.add({&slices, 1});
    if (!stored && values.is_in_dictionary) return false;
    if (stored) {
      values.stored_slices = {reinterpret_cast<const PageValues::Slice*>(stored->data()), values.slices.size()};
      values.slices = std::vector<PageValues::Slice>();  // `= {}` would keep the memory
    }
  }
  values.data = std::vector<std::byte>();
  if (!values.is_in_dictionary) values.owner = store.shared_from_this();
  return true;
}

}  // namespace feedline::format
