// SPDX-License-Identifier: Apache-2.0

// Any bytes as a PNG, decoded with all rows inflated at once and with only libspng: the same pixels or the same error,
// for whole images and regions, as colours and as labels, and no byte written outside the pixels. Mutates chunks, and
// corrects their checksums, and mutates uncompressed rows, and compresses them again.

#include <libdeflate.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "decode/image_formats.h"
#include "decode/orientation.h"
#include "decode/png/png_decoder.h"
#include "decoded_regions.h"

namespace {

using feedline::Box;
using feedline::ColorMode;
using feedline::decode::Decoded;
using feedline::decode::DrawnBoxes;
using feedline::decode::PngDecoder;

// Files without it are not PNGs, and are passed to other decoders.
constexpr std::array<std::uint8_t, 8> kSignature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr std::size_t kHead = 8, kTail = 4;
constexpr std::size_t kMostRows = 1 << 16;  // bytes; more only take more time

std::uint32_t big_endian(const std::uint8_t* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | at[3];
}

void set_big_endian(std::uint8_t* at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
}

// Calls visit(chunk, number of data bytes) for each complete chunk.
template <typename Visit>
void each_chunk(std::span<std::uint8_t> file, Visit visit) {
  for (std::size_t at = kSignature.size(); at + kHead + kTail <= file.size();) {
    const std::size_t bytes = big_endian(&file[at]);
    if (bytes > file.size() - at - kHead - kTail) return;
    visit(&file[at], bytes);
    at += kHead + bytes + kTail;
  }
}

void seal(std::uint8_t* chunk, std::size_t bytes) {
  set_big_endian(chunk + kHead + bytes, libdeflate_crc32(0, chunk + 4, 4 + bytes));
}

bool is_data(const std::uint8_t* chunk) { return std::memcmp(chunk + 4, "IDAT", 4) == 0; }

// Returns the filtered rows of the IDATs, if they can be inflated.
std::optional<std::vector<std::uint8_t>> rows_of(std::span<std::uint8_t> file) {
  std::vector<std::uint8_t> packed, rows(kMostRows);
  each_chunk(file, [&packed](const std::uint8_t* chunk, std::size_t bytes) {
    if (is_data(chunk)) packed.insert(packed.end(), chunk + kHead, chunk + kHead + bytes);
  });
  static libdeflate_decompressor* const inflater = libdeflate_alloc_decompressor();
  std::size_t got = 0;
  if (libdeflate_zlib_decompress(inflater, packed.data(), packed.size(), rows.data(), rows.size(), &got) !=
      LIBDEFLATE_SUCCESS)
    return std::nullopt;
  rows.resize(got);
  return rows;
}

// Returns the file with these rows instead of its own, in one IDAT, or in two if `split`.
std::vector<std::uint8_t> with_rows(std::span<std::uint8_t> file, std::span<const std::uint8_t> rows, bool split) {
  static libdeflate_compressor* const deflater = libdeflate_alloc_compressor(1);
  std::vector<std::uint8_t> packed(libdeflate_zlib_compress_bound(deflater, rows.size()));
  packed.resize(libdeflate_zlib_compress(deflater, rows.data(), rows.size(), packed.data(), packed.size()));
  std::vector<std::uint8_t> made(kSignature.begin(), kSignature.end());
  const auto add = [&made](std::span<const std::uint8_t> data) {
    const std::size_t at = made.size();
    made.resize(at + kHead + data.size() + kTail);
    set_big_endian(&made[at], static_cast<std::uint32_t>(data.size()));
    std::memcpy(&made[at + 4], "IDAT", 4);
    std::ranges::copy(data, made.begin() + static_cast<std::ptrdiff_t>(at + kHead));
    seal(&made[at], data.size());
  };
  bool is_written = false;
  each_chunk(file, [&](const std::uint8_t* chunk, std::size_t bytes) {
    if (!is_data(chunk)) return void(made.insert(made.end(), chunk, chunk + kHead + bytes + kTail));
    if (std::exchange(is_written, true)) return;
    const std::size_t first = split ? packed.size() / 2 : packed.size();
    add(std::span(packed).first(first));
    if (split) add(std::span(packed).subspan(first));
  });
  return made;
}

void check_labels(PngDecoder& best, PngDecoder& libspng, std::span<const std::byte> bytes, const Box& whole) {
  static Decoded ours, theirs;
  const int channels = best.header().depth == 16 ? 2 : 1;
  const auto decode = [&](PngDecoder& decoder, Decoded& out) {
    if (!decoder.open(bytes)) std::abort();
    out.make_room(whole, channels);
    const auto result = decoder.decode_labels(out.pixels);
    out.error = result ? "" : result.error().what;
  };
  decode(best, ours);
  decode(libspng, theirs);
  compare(ours, theirs, true, whole);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t bytes, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t bytes, std::size_t most, unsigned seed) {
  constexpr unsigned kLeaveBroken = 8, kOfRows = 3;  // one in this many mutations is not corrected, or mutates rows
  if (seed % kOfRows == 0)
    if (auto rows = rows_of({data, bytes}); rows && !rows->empty()) {
      const std::size_t size = rows->size();
      rows->resize(size + 64);
      rows->resize(LLVMFuzzerMutate(rows->data(), size, rows->size()));
      const auto made = with_rows({data, bytes}, *rows, seed % 5 == 0);
      if (made.size() > most) return bytes;
      std::ranges::copy(made, data);
      return made.size();
    }
  bytes = LLVMFuzzerMutate(data, bytes, most);
  std::ranges::copy(std::span(kSignature).first(std::min(bytes, kSignature.size())), data);
  if (seed % kLeaveBroken != 0) each_chunk({data, bytes}, seal);
  return bytes;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // reused for all inputs, as in a thread of the engine
  static PngDecoder best, libspng(PngDecoder::Way::kLibspng);
  static Decoded ours, theirs;
  if (size < kSignature.size() || !std::ranges::equal(kSignature, std::span(data, kSignature.size()))) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  const int orientation = feedline::decode::exif_orientation(feedline::decode::image_format("png"), bytes);
  FEEDLINE_CHECK(orientation >= 0 && orientation <= 8);
  FEEDLINE_CHECK(feedline::decode::kPngCodec.read_traits(bytes).size() <= 3);
  const auto header = best.open(bytes);
  if (!header || std::int64_t{header->width} * header->height > feedline::decode::kMostFuzzedPixels) return 0;
  DrawnBoxes boxes(bytes);
  const Box whole{0, 0, header->width, header->height};
  const Box tried[] = {whole, boxes.next(header->width, header->height), boxes.next(header->width, header->height)};
  for (const Box& box : tried)
    for (const ColorMode mode : {ColorMode::kRgb, ColorMode::kL}) {
      FEEDLINE_CHECK(decode_region(best, bytes, box, mode, ours) && decode_region(libspng, bytes, box, mode, theirs));
      compare(ours, theirs, true, box);
    }
  if (best.header().channels() == 1) check_labels(best, libspng, bytes, whole);
  return 0;
}
