// SPDX-License-Identifier: Apache-2.0
#include "decode/decoder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "decode/codec.h"
#include "decode/foreign/foreign_decoder.h"
#include "decode/jpeg/jpeg_decoder.h"
#include "decode/orientation.h"
#include "decode/png/png_decoder.h"
#include "decode/webp/webp_decoder.h"

namespace feedline::decode {
namespace {

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  std::string_view what;
  bool is_image = false;            // formats that a foreign decoder may support
  std::string_view extension = {};  // if the bytes identify an image in a column of any bytes
};

using namespace std::string_view_literals;

// Unsupported formats common in image folders. The first match wins.
constexpr Signature kOthers[] = {
    {0, "GIF87a"sv, "GIF images", true, "gif"},
    {0, "GIF89a"sv, "GIF images", true, "gif"},
    {0, "BM"sv, "BMP images", true, "bmp"},
    {0, "II*\0"sv, "TIFF images", true, "tif"},
    {0, "MM\0*"sv, "TIFF images", true, "tif"},
    {0, "II+\0"sv, "TIFF images", true, "tif"},  // BigTIFF, with 64-bit offsets
    {0, "MM\0+"sv, "TIFF images", true, "tif"},
    {4, "ftypavi"sv, "AVIF images", true, "avif"},
    {4, "ftyphei"sv, "HEIC images", true, "heic"},
    {4, "ftypmif1"sv, "HEIF images", true, "heif"},
    {4, "ftyp"sv, "not an image: looks like a video"},
    {0, "\0\0\0\x0CjP"sv, "JPEG 2000 images", true, "jp2"},
    {0, "\xFF\x4F\xFF\x51"sv, "JPEG 2000 images", true, "j2k"},
    {0, "\0\0\0\x0CJXL "sv, "JPEG XL images", true, "jxl"},
    {0, "\xFF\x0A"sv, "JPEG XL images", true},
    {0, "8BPS"sv, "Photoshop images", true},
    {0, "%PDF"sv, "not an image: looks like a PDF"},
    {0, "PK\3\4"sv, "not an image: looks like a zip archive"},
    {0, "\x1F\x8B"sv, "not an image: looks like gzip data"},
    {0, "RIFF"sv, "not an image: a RIFF file, but not WebP"},
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool has(std::string_view text, std::size_t offset, std::string_view pattern) {
  return text.size() >= offset && text.substr(offset).starts_with(pattern);
}

bool is_text(std::string_view text) {
  constexpr std::size_t kLook = 64;
  return std::ranges::all_of(text.substr(0, kLook), [](unsigned char c) {
    return (c >= 0x20 && c != 0x7F && c < 0xF8) || c == '\n' || c == '\r' || c == '\t';  // 0x80 ... 0xF7: UTF-8
  });
}

// PBM, PGM and PPM: "P1" to "P6" and white space.
constexpr Signature kPortable{0, "P"sv, "PNM images", true};
bool is_portable(std::string_view text) {
  return text.size() > 2 && text[0] == 'P' && text[1] >= '1' && text[1] <= '6' &&
         (text[2] == '\n' || text[2] == ' ' || text[2] == '\t' || text[2] == '\r');
}

std::optional<ImageFormat> native_format(std::string_view text) {
  if (has(text, 0, "\xFF\xD8\xFF"sv)) return ImageFormat::kJpeg;
  if (has(text, 0, "\x89PNG\r\n\x1A\n"sv)) return ImageFormat::kPng;
  if (has(text, 0, "RIFF"sv) && has(text, 8, "WEBP"sv)) return ImageFormat::kWebp;
  return {};
}

const Signature* signature_of(std::string_view text) {
  for (const Signature& other : kOthers)
    if (has(text, other.offset, other.bytes)) return &other;
  return is_portable(text) ? &kPortable : nullptr;
}

// The format name of an image for a foreign decoder, such as "GIF image".
std::string kind_of(std::span<const std::byte> bytes) {
  const std::string what(signature_of(text_of(bytes))->what);
  return what.substr(0, what.size() - 1);  // "GIF images"
}

std::string describe(std::string_view text, const Signature* signature) {
  if (text.empty()) return "an empty file";
  if (signature != nullptr) return std::string(signature->what) + (signature->is_image ? " are not supported" : "");
  if (is_text(text)) return "not an image: looks like text";
  if (std::ranges::all_of(text, [](char c) { return c == 0; })) return "not an image: nothing but zeros";
  return "not an image that is known here";
}

}  // namespace

std::string_view name_of(ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg:
      return "jpeg";
    case ImageFormat::kPng:
      return "png";
    case ImageFormat::kWebp:
      return "webp";
    case ImageFormat::kForeign:
      return "foreign";
  }
  return "unknown";
}

std::string_view name_of(Depth depth) {
  switch (depth) {
    case Depth::k8Bits:
      break;
    case Depth::k16Bits:
      return "16 bits";
    case Depth::k32Bits:
      return "32 bits";
    case Depth::kFloat:
      return "floats";
  }
  return "8 bits";
}

std::unexpected<Error> decode_error(std::string what) { return data_error(std::move(what), "decode"); }

Result<void> check_size(std::int64_t width, std::int64_t height) {
  if (width <= 0 || height <= 0)
    return decode_error("image without pixels: " + std::to_string(width) + " x " + std::to_string(height));
  if (width > memory::PixelBuffer::kMaxPixels / height)
    return decode_error("image of " + std::to_string(width) + " x " + std::to_string(height) +
                        " pixels is over the limit of " + std::to_string(memory::PixelBuffer::kMaxPixels) + " pixels");
  return {};
}

Result<ImageFormat> sniff(std::span<const std::byte> bytes) {
  const std::string_view text = text_of(bytes);
  if (const auto native = native_format(text)) return *native;
  const Signature* const signature = signature_of(text);
  if (signature != nullptr && signature->is_image && reads_foreign_images()) return ImageFormat::kForeign;
  return decode_error(describe(text, signature));
}

std::string_view image_extension(std::span<const std::byte> bytes) {
  const std::string_view text = text_of(bytes);
  if (const auto native = native_format(text)) return *native == ImageFormat::kJpeg ? "jpg" : name_of(*native);
  // "BM" begins much other data, so the four reserved bytes of a BMP must be zero
  if (has(text, 0, "BM"sv) && !has(text, 6, "\0\0\0\0"sv)) return {};
  const Signature* const signature = signature_of(text);
  return signature == nullptr ? std::string_view() : signature->extension;
}

struct ImageDecoder::Impl {
  JpegDecoder jpeg;
  PngDecoder png;
  WebpDecoder webp;
  ForeignDecoder foreign;
  Codec* current = nullptr;          // the codec of the opened image; null after decode() has consumed it
  std::span<const std::byte> bytes;  // of the opened image
  ImageHeader header;
  Orientation orientation;     // the opened image, described after rotation
  memory::PixelBuffer stored;  // a region before rotation

  // Returns whether an image is open and contains the region.
  bool has(const Box& region) const {
    return current != nullptr && region.left >= 0 && region.top >= 0 && region.width > 0 && region.height > 0 &&
           region.width <= header.width - region.left && region.height <= header.height - region.top;
  }

  Codec& codec_of(ImageFormat format) {
    switch (format) {
      case ImageFormat::kPng:
        return png;
      case ImageFormat::kWebp:
        return webp;
      case ImageFormat::kForeign:
        return foreign;
      case ImageFormat::kJpeg:
        break;
    }
    return jpeg;
  }

  // `out` has the region's size. Requires: the codec has an image open.
  Result<void> decode(Codec& codec, const Box& region, ColorMode mode, memory::PixelBuffer& out) {
    if (orientation.is_stored()) return codec.decode(region, mode, out);
    const Size size = orientation.transposes ? Size{header.width, header.height} : Size{header.height, header.width};
    const Box box = stored_region(orientation, region, size);
    FEEDLINE_CHECK_OK(stored.resize(box.width, box.height, channels_of(mode)));
    FEEDLINE_CHECK_OK(codec.decode(box, mode, stored));
    turn(orientation, stored.view(), out);
    return {};
  }
};

ImageDecoder::ImageDecoder() : impl_(std::make_unique<Impl>()) {}
ImageDecoder::~ImageDecoder() = default;
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;

Result<ImageHeader> ImageDecoder::open(std::span<const std::byte> bytes, bool applies_exif) {
  impl_->current = nullptr;
  FEEDLINE_TRY(const ImageFormat format, sniff(bytes));
  Codec& codec = impl_->codec_of(format);
  impl_->foreign.apply_exif(applies_exif);
  auto header = codec.open(bytes);
  if (!header && format == ImageFormat::kForeign) header.error().what = kind_of(bytes) + ": " + header.error().what;
  FEEDLINE_TRY(impl_->header, std::move(header));
  impl_->orientation = applies_exif ? stored_orientation(format, bytes) : Orientation{};
  if (impl_->orientation.transposes) std::swap(impl_->header.width, impl_->header.height);
  impl_->bytes = bytes;
  impl_->current = &codec;
  return impl_->header;
}

const ImageHeader& ImageDecoder::header() const { return impl_->header; }

int ImageDecoder::orientation() const {
  FEEDLINE_CHECK(impl_->current != nullptr);
  const ImageFormat format = impl_->header.format;
  return format == ImageFormat::kForeign ? impl_->foreign.orientation() : exif_orientation(format, impl_->bytes);
}

std::string ImageDecoder::kind() const {
  const ImageFormat format = impl_->header.format;
  return format == ImageFormat::kForeign ? impl_->foreign.kind() : std::string(name_of(format));
}

Result<void> ImageDecoder::decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  FEEDLINE_CHECK(impl_->has(region));
  Codec& codec = *std::exchange(impl_->current, nullptr);
  FEEDLINE_CHECK_OK(out.resize(region.width, region.height, channels_of(mode)));
  return impl_->decode(codec, region, mode, out);
}

std::array<Result<void>, 2> ImageDecoder::decode_in_turn(ImageDecoder& first, const Task& first_task,
                                                         ImageDecoder& second, const Task& second_task) {
  Impl &a = *first.impl_, &b = *second.impl_;
  const auto is_plain = [](const Impl& impl) { return impl.current == &impl.jpeg && impl.orientation.is_stored(); };
  if (!is_plain(a) || !is_plain(b))
    return {first.decode(first_task.region, first_task.mode, *first_task.out),
            second.decode(second_task.region, second_task.mode, *second_task.out)};
  const auto room_for = [](Impl& impl, const Task& task) {
    FEEDLINE_CHECK(impl.has(task.region));
    return task.out->resize(task.region.width, task.region.height, channels_of(task.mode));
  };
  const std::array<Result<void>, 2> room{room_for(a, first_task), room_for(b, second_task)};
  if (!room[0] || !room[1])
    return {room[0] ? first.decode(first_task.region, first_task.mode, *first_task.out) : room[0],
            room[1] ? second.decode(second_task.region, second_task.mode, *second_task.out) : room[1]};
  a.current = b.current = nullptr;
  return JpegDecoder::decode_in_turn(a.jpeg, first_task, b.jpeg, second_task);
}

bool ImageDecoder::decode_planes(const Box& region, ColorMode mode, const memory::Coarseness& most,
                                 memory::Planes& out) {
  FEEDLINE_CHECK(impl_->has(region));
  if (!impl_->orientation.is_stored()) return false;
  const bool decoded = impl_->current->decode_planes(region, mode, most, out);
  if (decoded) impl_->current = nullptr;
  return decoded;
}

}  // namespace feedline::decode
