// SPDX-License-Identifier: Apache-2.0
// Any bytes as the metadata of a Zarr array: an array with chunks of a limited size, or an error. If the first byte is
// odd, the rest is a stored chunk of an array with the codec that the second byte chooses.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/check.h"
#include "format/volumes/chunk_codec.h"
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
  if (size > 0 && data[0] % 2 == 1 && data[0] != '{') {
    check_chunk(file.subspan(1));
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()), size);
  check_array(feedline::format::parse_zarr3(text));
  check_array(feedline::format::parse_zarr2(text));
  (void)feedline::format::is_zarr3_group(text);
  (void)feedline::format::consolidated_arrays(text);
  return 0;
}
