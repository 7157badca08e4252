// SPDX-License-Identifier: Apache-2.0
// Any bytes as a NIfTI header, as the metadata of a Zarr array, and as a stored chunk: an array of a limited size, or
// an error. The first byte chooses: 0 a header, 1 a chunk with the codec of the second byte, all others metadata.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/check.h"
#include "format/volumes/chunk_codec.h"
#include "format/volumes/nifti.h"
#include "format/volumes/zarr_metadata.h"

namespace {

using feedline::DType;
using feedline::format::ChunkCodec;
using feedline::format::ChunkLayout;

void check_array(const feedline::Result<feedline::format::ZarrArray>& array) {
  if (!array) return;
  FEEDLINE_CHECK(array->spec.shape.dims() == array->stored.dims() && array->spec.shape.elements() > 0);
  FEEDLINE_CHECK(array->layout.bytes() > 0 && array->layout.bytes() <= std::size_t{1} << 31U);
  std::array<std::int64_t, feedline::Shape::kMaxDims> zeros{};
  FEEDLINE_CHECK(!array->key(std::span(zeros).first(array->stored.dims())).empty());
}

void check_header(std::span<const std::byte> file) {
  const auto header = feedline::format::read_nifti_header(file);
  if (!header) return;
  FEEDLINE_CHECK(header->layout.stored.bytes() > 0);
  FEEDLINE_CHECK(std::ranges::all_of(header->affine, [](double number) { return std::isfinite(number); }));
}

void check_chunk(std::span<const std::byte> file) {
  if (file.empty()) return;
  const auto choice = std::to_integer<unsigned>(file.front());
  ChunkLayout layout{.dtype = choice % 2 == 0 ? DType::kInt16 : DType::kUint8, .shape = {4, 5, 6}, .codecs = {}};
  layout.order = {2, 0, 1};
  layout.is_swapped = choice % 3 == 0;
  layout.codecs.push_back(static_cast<ChunkCodec>(choice / 8 % 8));
  if (choice % 5 == 0) layout.codecs.push_back(ChunkCodec::kCrc32c);
  feedline::memory::VolumeBuffers buffers;
  const auto chunk = feedline::format::decode_chunk(layout, file.subspan(1), 0, buffers);
  if (chunk) FEEDLINE_CHECK(chunk->size() == layout.bytes());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto copy = std::make_unique_for_overwrite<std::byte[]>(size);
  std::ranges::copy(std::as_bytes(std::span(data, size)), copy.get());
  const std::span<const std::byte> file(copy.get(), size);
  if (size > 0 && data[0] <= 1) {
    data[0] == 0 ? check_header(file.subspan(1)) : check_chunk(file.subspan(1));
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()), size);
  check_array(feedline::format::parse_zarr3(text));
  check_array(feedline::format::parse_zarr2(text));
  (void)feedline::format::is_zarr3_group(text);
  (void)feedline::format::consolidated_arrays(text);
  return 0;
}
