// SPDX-License-Identifier: Apache-2.0
#include "decode/png/png_rows.h"

#include <libdeflate.h>

#include <algorithm>
#include <utility>

#include "decode/png/png_filters.h"

namespace feedline::decode {
namespace {

std::uint64_t rows_size(const PngHeader& header, const PngPass& pass) {
  const int columns = pass.columns(header);
  if (columns == 0) return 0;
  return (1 + header.bytes_of(static_cast<std::uint64_t>(columns))) * static_cast<std::uint64_t>(pass.rows(header));
}

std::uint64_t rows_size(const PngHeader& header) {
  if (!header.interlaced) return rows_size(header, PngPass{});
  std::uint64_t bytes = 0;
  for (const PngPass& pass : kAdam7) bytes += rows_size(header, pass);
  return bytes;
}

}  // namespace

void PngRows::Release::operator()(libdeflate_decompressor* inflater) const { libdeflate_free_decompressor(inflater); }

PngRows::PngRows() = default;
PngRows::~PngRows() = default;

bool PngRows::start(const PngStream& stream, const PngHeader& header) {
  const std::uint64_t bytes = rows_size(header);
  if (bytes > kMostBytes) return false;
  if (!inflater_) inflater_.reset(libdeflate_alloc_decompressor());
  const auto data = stream.data(data_);
  const auto rows = rows_.make_room(bytes, kMostBytes);
  const auto no_row = no_row_.make_room(header.bytes_of(header.width), kMostBytes);
  if (!inflater_ || !data || !rows || !no_row) return false;
  // without a pointer to the actual size, any other size is an error
  if (libdeflate_zlib_decompress(inflater_.get(), data->data(), data->size(), rows->data(), rows->size(), nullptr) !=
      LIBDEFLATE_SUCCESS)
    return false;
  std::ranges::fill(*no_row, std::byte{0});
  header_ = header;
  pixel_bytes_ = std::max(1, header.channels() * header.depth / 8);
  next_ = reinterpret_cast<std::uint8_t*>(rows->data());
  end_ = next_ + rows->size();
  return true;
}

void PngRows::start_pass(const PngPass& pass) {
  row_bytes_ = static_cast<std::size_t>(header_.bytes_of(static_cast<std::uint64_t>(pass.columns(header_))));
  above_ = reinterpret_cast<const std::uint8_t*>(no_row_.data());
}

const std::uint8_t* PngRows::next() {
  std::uint8_t* const row = next_ + 1;
  if (!unfilter(*next_, pixel_bytes_, row, std::exchange(above_, row), row_bytes_)) return nullptr;
  next_ = row + row_bytes_;
  return row;
}

bool PngRows::is_next_whole() const { return next_ == end_ || is_filter(*next_); }

void PngRows::end() {
  for (memory::ByteBuffer* const buffer : {&data_, &rows_})
    if (buffer->capacity() > kMaxRetained) *buffer = {};
}

}  // namespace feedline::decode
