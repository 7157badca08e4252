// SPDX-License-Identifier: Apache-2.0
#include "decode/tiff/tiff_directory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "decode/codec.h"
#include "memory/deep_pixels.h"

namespace feedline::decode {
namespace {

template <typename T>
T number_at(const std::byte* from, bool is_big) {
  T value{};
  std::memcpy(&value, from, sizeof value);
  return is_big == (std::endian::native == std::endian::big) ? value : std::byteswap(value);
}

std::uint64_t number_of(const std::byte* from, std::size_t bytes, bool is_big) {
  switch (bytes) {
    case 1:
      return static_cast<std::uint64_t>(*from);
    case 2:
      return number_at<std::uint16_t>(from, is_big);
    case 4:
      return number_at<std::uint32_t>(from, is_big);
    default:
      return number_at<std::uint64_t>(from, is_big);
  }
}

// Tags, with the names in the TIFF specification.
enum Tag : std::uint16_t {
  kImageWidth = 256,
  kImageLength = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kPhotometric = 262,
  kFillOrder = 266,
  kStripOffsets = 273,
  kOrientation = 274,
  kSamplesPerPixel = 277,
  kRowsPerStrip = 278,
  kStripByteCounts = 279,
  kPlanarConfiguration = 284,
  kPredictor = 317,
  kTileWidth = 322,
  kTileLength = 323,
  kTileOffsets = 324,
  kTileByteCounts = 325,
  kSampleFormat = 339,
  kJpegTables = 347,
  kSubsampling = 530,
};

std::string name_of(Tag tag) {
  switch (tag) {
    case kImageWidth:
      return "ImageWidth";
    case kImageLength:
      return "ImageLength";
    case kBitsPerSample:
      return "BitsPerSample";
    case kCompression:
      return "Compression";
    case kPhotometric:
      return "PhotometricInterpretation";
    case kFillOrder:
      return "FillOrder";
    case kStripOffsets:
      return "StripOffsets";
    case kOrientation:
      return "Orientation";
    case kSamplesPerPixel:
      return "SamplesPerPixel";
    case kRowsPerStrip:
      return "RowsPerStrip";
    case kStripByteCounts:
      return "StripByteCounts";
    case kPlanarConfiguration:
      return "PlanarConfiguration";
    case kPredictor:
      return "Predictor";
    case kTileWidth:
      return "TileWidth";
    case kTileLength:
      return "TileLength";
    case kTileOffsets:
      return "TileOffsets";
    case kTileByteCounts:
      return "TileByteCounts";
    case kSampleFormat:
      return "SampleFormat";
    case kJpegTables:
      return "JPEGTables";
    case kSubsampling:
      return "YCbCrSubSampling";
  }
  return "tag " + std::to_string(static_cast<int>(tag));
}

std::unexpected<Error> damaged(const std::string& what) { return decode_error("damaged TIFF: " + what); }
std::unexpected<Error> not_supported(Tag tag, const std::string& value) {
  return decode_error("TIFF: " + name_of(tag) + " " + value + " is not supported: convert the file");
}

// The bytes of a field type's values; 0: not whole numbers.
std::size_t bytes_of_type(int type) {
  switch (type) {
    case 1:  // BYTE
    case 7:  // UNDEFINED
      return 1;
    case 3:  // SHORT
      return 2;
    case 4:   // LONG
    case 13:  // IFD
      return 4;
    case 16:  // LONG8
    case 18:  // IFD8
      return 8;
    default:
      return 0;
  }
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : file_(file) {}

  Result<TiffDirectory> read(int page) {
    FEEDLINE_CHECK_OK(read_header());
    FEEDLINE_CHECK_OK(find_page(page));
    TiffDirectory found;
    found.is_big_endian = is_big_;
    FEEDLINE_CHECK_OK(read_size(found));
    FEEDLINE_CHECK_OK(read_samples(found));
    FEEDLINE_CHECK_OK(read_coding(found));
    FEEDLINE_CHECK_OK(read_chunks(found));
    return found;
  }

 private:
  Result<void> read_header() {
    if (file_.size() < 8) return decode_error("truncated TIFF: " + std::to_string(file_.size()) + " bytes");
    is_big_ = file_[0] == std::byte{'M'};
    is_large_ = number_at<std::uint16_t>(&file_[2], is_big_) == 43;  // BigTIFF, with 64-bit offsets
    if (!is_large_) {
      next_ = number_at<std::uint32_t>(&file_[4], is_big_);
      return {};
    }
    if (file_.size() < 16) return decode_error("truncated TIFF: " + std::to_string(file_.size()) + " bytes");
    next_ = number_at<std::uint64_t>(&file_[8], is_big_);
    return {};
  }

  std::size_t entry_bytes() const { return is_large_ ? 20 : 12; }

  // A chain of directories that loops has as many pages as are requested; each is read the same way.
  Result<void> find_page(int page) {
    for (int i = 0; i <= page; ++i) {
      if (next_ == 0 && i > 0)
        return decode_error("page " + std::to_string(page) + " of a TIFF that has " + std::to_string(i) +
                            (i == 1 ? " page" : " pages") + ", numbered from 0");
      const std::size_t count_bytes = is_large_ ? 8 : 2, next_bytes = is_large_ ? 8 : 4;
      if (next_ < 8 || next_ > file_.size() || file_.size() - next_ < count_bytes)
        return damaged("the directory of page " + std::to_string(i) + ", at byte " + std::to_string(next_) +
                       ", is not in the file of " + std::to_string(file_.size()) + " bytes");
      const std::byte* const at = file_.data() + next_;
      entries_ = number_of(at, count_bytes, is_big_);
      const std::uint64_t rest = file_.size() - next_ - count_bytes;
      if (entries_ > rest / entry_bytes())
        return damaged("the directory of page " + std::to_string(i) + " claims " + std::to_string(entries_) +
                       " tags, which is more than the file holds");
      first_ = at + count_bytes;
      const std::uint64_t used = entries_ * entry_bytes();
      next_ = rest - used < next_bytes ? 0 : number_of(first_ + used, next_bytes, is_big_);
    }
    return {};
  }

  // Returns the values of a tag; none if the directory does not have the tag.
  Result<TiffNumbers> numbers(Tag tag) const {
    for (std::uint64_t i = 0; i < entries_; ++i) {
      const std::byte* const entry = first_ + i * entry_bytes();
      if (number_at<std::uint16_t>(entry, is_big_) != tag) continue;
      const std::size_t bytes = bytes_of_type(number_at<std::uint16_t>(entry + 2, is_big_));
      const std::size_t offset_bytes = is_large_ ? 8 : 4;
      const std::uint64_t count = number_of(entry + 4, offset_bytes, is_big_);
      if (bytes == 0) return damaged(name_of(tag) + " is not a whole number");
      if (count == 0) return damaged(name_of(tag) + " has no value");
      const std::byte* const inside = entry + 4 + offset_bytes;
      if (count <= offset_bytes / bytes) return TiffNumbers(inside, count, bytes, is_big_);
      const std::uint64_t at = number_of(inside, offset_bytes, is_big_);
      if (at > file_.size() || count > (file_.size() - at) / bytes)
        return damaged(name_of(tag) + " has " + std::to_string(count) + " values at byte " + std::to_string(at) +
                       ", which are not in the file of " + std::to_string(file_.size()) + " bytes");
      return TiffNumbers(file_.data() + at, count, bytes, is_big_);
    }
    return TiffNumbers();
  }
  // Returns the first value.
  Result<std::uint64_t> number(Tag tag, std::uint64_t standard) const {
    FEEDLINE_TRY(const TiffNumbers values, numbers(tag));
    return values.size() == 0 ? standard : values[0];
  }
  // Returns the only value of a tag with a value per channel.
  Result<std::uint64_t> same_number(Tag tag, std::uint64_t standard) const {
    FEEDLINE_TRY(const TiffNumbers values, numbers(tag));
    for (std::uint64_t i = 1; i < std::min<std::uint64_t>(values.size(), memory::DeepView::kMostChannels); ++i)
      if (values[i] != values[0])
        return not_supported(
            tag, std::to_string(values[0]) + " and " + std::to_string(values[i]) + " in different channels");
    return values.size() == 0 ? standard : values[0];
  }

  Result<int> side(Tag tag) const {
    FEEDLINE_TRY(const std::uint64_t pixels, number(tag, 0));
    if (pixels == 0 || pixels > static_cast<std::uint64_t>(std::numeric_limits<int>::max()))
      return damaged(name_of(tag) + " is " + std::to_string(pixels));
    return static_cast<int>(pixels);
  }

  // Images may be larger than what can be decoded at once, because crops decode only their chunks.
  Result<void> read_size(TiffDirectory& found) const {
    FEEDLINE_TRY(found.width, side(kImageWidth));
    FEEDLINE_TRY(found.height, side(kImageLength));
    return {};
  }

  Result<void> read_samples(TiffDirectory& found) const {
    FEEDLINE_TRY(const std::uint64_t channels, number(kSamplesPerPixel, 1));
    if (channels < 1 || channels > memory::DeepView::kMostChannels)
      return not_supported(kSamplesPerPixel, std::to_string(channels));
    found.channels = static_cast<int>(channels);
    FEEDLINE_TRY(const std::uint64_t bits, same_number(kBitsPerSample, 1));
    FEEDLINE_TRY(std::uint64_t format, same_number(kSampleFormat, 1));
    if (format == 4) format = 1;  // "undefined": whole numbers
    constexpr struct {
      std::uint64_t bits, format;
      DType dtype;
    } kDTypes[] = {{8, 1, DType::kUint8},    {16, 1, DType::kUint16},  {32, 1, DType::kUint32}, {64, 1, DType::kUint64},
                   {8, 2, DType::kInt8},     {16, 2, DType::kInt16},   {32, 2, DType::kInt32},  {64, 2, DType::kInt64},
                   {16, 3, DType::kFloat16}, {32, 3, DType::kFloat32}, {64, 3, DType::kFloat64}};
    for (const auto& one : kDTypes)
      if (one.bits == bits && one.format == format) {
        found.dtype = one.dtype;
        return {};
      }
    if (format > 3) return not_supported(kSampleFormat, std::to_string(format));
    return not_supported(kBitsPerSample, std::to_string(bits) + (format == 3   ? " of floats"
                                                                 : format == 2 ? " of signed numbers"
                                                                               : ""));
  }

  Result<void> read_coding(TiffDirectory& found) const {
    FEEDLINE_TRY(const std::uint64_t compression, number(kCompression, 1));
    using enum TiffCompression;
    for (const TiffCompression known : {kNone, kLzw, kJpeg, kDeflate, kPackBits, kOldDeflate, kZstd})
      if (static_cast<std::uint64_t>(known) == compression) found.compression = known;
    if (static_cast<std::uint64_t>(found.compression) != compression)
      return not_supported(kCompression, std::to_string(compression));
    FEEDLINE_TRY(const std::uint64_t predictor, number(kPredictor, 1));
    const bool is_float =
        found.dtype == DType::kFloat16 || found.dtype == DType::kFloat32 || found.dtype == DType::kFloat64;
    if (predictor < 1 || predictor > 3 || (predictor == 3 && !is_float))
      return not_supported(kPredictor, std::to_string(predictor));
    const bool predicts = found.compression == kLzw || found.compression == kDeflate ||
                          found.compression == kOldDeflate || found.compression == kZstd;
    if (predicts) found.predictor = static_cast<TiffPredictor>(predictor);
    FEEDLINE_TRY(const std::uint64_t planes, number(kPlanarConfiguration, 1));
    if (planes != 1 && planes != 2) return not_supported(kPlanarConfiguration, std::to_string(planes));
    found.is_planar = planes == 2 && found.channels > 1;
    FEEDLINE_TRY(const std::uint64_t fill_order, number(kFillOrder, 1));
    if (fill_order != 1) return not_supported(kFillOrder, std::to_string(fill_order));
    FEEDLINE_TRY(const std::uint64_t photometric, number(kPhotometric, 1));
    found.photometric = static_cast<int>(std::min<std::uint64_t>(photometric, std::numeric_limits<int>::max()));
    constexpr int kYcbcr = 6;
    if (found.photometric == kYcbcr && found.compression != kJpeg) {
      FEEDLINE_TRY(const TiffNumbers halves, numbers(kSubsampling));
      if (halves.size() < 2 || halves[0] != 1 || halves[1] != 1)
        return not_supported(kPhotometric, "6 (YCbCr) with fewer colour samples");
    }
    FEEDLINE_TRY(const std::uint64_t orientation, number(kOrientation, 1));
    found.orientation = orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
    if (found.compression != kJpeg) return {};
    return read_jpeg(found);
  }

  Result<void> read_jpeg(TiffDirectory& found) const {
    if (found.dtype != DType::kUint8) return not_supported(kCompression, "7 (JPEG) of values with more than 8 bits");
    if (found.chunk_channels() != 1 && found.chunk_channels() != 3)
      return not_supported(kCompression, "7 (JPEG) of " + std::to_string(found.channels) + " channels");
    for (std::uint64_t i = 0; i < entries_; ++i) {  // its values are bytes
      const std::byte* const entry = first_ + i * entry_bytes();
      if (number_at<std::uint16_t>(entry, is_big_) != kJpegTables) continue;
      const std::size_t offset_bytes = is_large_ ? 8 : 4;
      const std::uint64_t count = number_of(entry + 4, offset_bytes, is_big_);
      const std::uint64_t at = number_of(entry + 4 + offset_bytes, offset_bytes, is_big_);
      if (count <= offset_bytes || at > file_.size() || count > file_.size() - at)
        return damaged(name_of(kJpegTables) + " is not in the file");
      found.jpeg_tables = file_.subspan(at, count);
    }
    return {};
  }

  Result<void> read_chunks(TiffDirectory& found) const {
    FEEDLINE_TRY(const TiffNumbers tile_offsets, numbers(kTileOffsets));
    found.has_tiles = tile_offsets.size() > 0;
    if (found.has_tiles) {
      FEEDLINE_TRY(found.chunk_width, side(kTileWidth));
      FEEDLINE_TRY(found.chunk_height, side(kTileLength));
      found.offsets = tile_offsets;
    } else {
      FEEDLINE_TRY(const std::uint64_t rows, number(kRowsPerStrip, std::numeric_limits<std::uint32_t>::max()));
      if (rows == 0) return damaged(name_of(kRowsPerStrip) + " is 0");
      found.chunk_width = found.width;
      found.chunk_height = static_cast<int>(std::min<std::uint64_t>(rows, static_cast<std::uint64_t>(found.height)));
      FEEDLINE_TRY(found.offsets, numbers(kStripOffsets));
      if (found.offsets.size() == 0) return damaged("StripOffsets or TileOffsets is missing");
    }
    const Tag counts = found.has_tiles ? kTileByteCounts : kStripByteCounts;
    FEEDLINE_TRY(found.byte_counts, numbers(counts));
    const auto chunks_of = [](int pixels, int chunk) {
      return (static_cast<std::uint64_t>(pixels) + static_cast<std::uint64_t>(chunk) - 1) /
             static_cast<std::uint64_t>(chunk);
    };
    found.chunks_across = chunks_of(found.width, found.chunk_width);
    found.chunks_down = chunks_of(found.height, found.chunk_height);
    // each product is compared with a number of values that the file holds before the next one, so none overflows
    std::uint64_t chunks = found.chunks_across * found.chunks_down;
    if (chunks <= found.offsets.size() && found.is_planar) chunks *= static_cast<std::uint64_t>(found.channels);
    const Tag offsets = found.has_tiles ? kTileOffsets : kStripOffsets;
    const auto too_few = [&](Tag tag, const TiffNumbers& values) {
      return damaged(name_of(tag) + " has " + std::to_string(values.size()) + " values for " + std::to_string(chunks) +
                     " " + std::string(found.chunk_name()) + "s");
    };
    if (found.offsets.size() < chunks) return too_few(offsets, found.offsets);
    const bool may_lack_counts = chunks == 1 && found.compression == TiffCompression::kNone;
    if (found.byte_counts.size() < chunks && !(found.byte_counts.size() == 0 && may_lack_counts))
      return too_few(counts, found.byte_counts);
    return {};
  }

  const std::span<const std::byte> file_;
  bool is_big_ = false, is_large_ = false;
  std::uint64_t next_ = 0;
  const std::byte* first_ = nullptr;  // entry of the directory
  std::uint64_t entries_ = 0;
};

}  // namespace

std::uint64_t TiffNumbers::operator[](std::uint64_t i) const {
  return number_of(values_ + i * bytes_, bytes_, is_big_);
}

Result<TiffDirectory> read_tiff_directory(std::span<const std::byte> file, int page) { return Reader(file).read(page); }

}  // namespace feedline::decode
