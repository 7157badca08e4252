// SPDX-License-Identifier: Apache-2.0
#include "decode/decoder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "decode/codec.h"
#include "decode/jpeg/jpeg_decoder.h"
#include "decode/png/png_decoder.h"
#include "decode/webp/webp_decoder.h"

namespace feedline::decode {
namespace {

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  std::string_view what;
};

using namespace std::string_view_literals;

// What people have in image folders besides the formats we decode. The first match wins.
constexpr Signature kOthers[] = {
    {0, "GIF8"sv, "GIF images are not supported"},
    {0, "BM"sv, "BMP images are not supported"},
    {0, "II*\0"sv, "TIFF images are not supported"},
    {0, "MM\0*"sv, "TIFF images are not supported"},
    {4, "ftypavif"sv, "AVIF images are not supported"},
    {4, "ftyphei"sv, "HEIC images are not supported"},
    {4, "ftypmif1"sv, "HEIF images are not supported"},
    {4, "ftyp"sv, "not an image: looks like a video"},
    {0, "\0\0\0\x0CjP"sv, "JPEG 2000 images are not supported"},
    {0, "\xFF\x4F\xFF\x51"sv, "JPEG 2000 images are not supported"},
    {0, "\0\0\0\x0CJXL "sv, "JPEG XL images are not supported"},
    {0, "\xFF\x0A"sv, "JPEG XL images are not supported"},
    {0, "8BPS"sv, "Photoshop images are not supported"},
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

std::string describe(std::string_view text) {
  if (text.empty()) return "an empty file";
  for (const Signature& other : kOthers)
    if (has(text, other.offset, other.bytes)) return std::string(other.what);
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
  }
  return "unknown";
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
  if (has(text, 0, "\xFF\xD8\xFF"sv)) return ImageFormat::kJpeg;
  if (has(text, 0, "\x89PNG\r\n\x1A\n"sv)) return ImageFormat::kPng;
  if (has(text, 0, "RIFF"sv) && has(text, 8, "WEBP"sv)) return ImageFormat::kWebp;
  return decode_error(describe(text));
}

struct ImageDecoder::Impl {
  JpegDecoder jpeg;
  PngDecoder png;
  WebpDecoder webp;
  Codec* current = nullptr;  // the codec of the opened image; null when decode() has used it up
  ImageHeader header;

  // Is an image open, and does the region lie inside it?
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
      case ImageFormat::kJpeg:
        break;
    }
    return jpeg;
  }
};

ImageDecoder::ImageDecoder() : impl_(std::make_unique<Impl>()) {}
ImageDecoder::~ImageDecoder() = default;
ImageDecoder::ImageDecoder(ImageDecoder&&) noexcept = default;
ImageDecoder& ImageDecoder::operator=(ImageDecoder&&) noexcept = default;

Result<ImageHeader> ImageDecoder::open(std::span<const std::byte> bytes) {
  impl_->current = nullptr;
  FEEDLINE_TRY(const ImageFormat format, sniff(bytes));
  Codec& codec = impl_->codec_of(format);
  FEEDLINE_TRY(impl_->header, codec.open(bytes));
  impl_->current = &codec;
  return impl_->header;
}

const ImageHeader& ImageDecoder::header() const { return impl_->header; }

Result<void> ImageDecoder::decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  FEEDLINE_CHECK(impl_->has(region));
  Codec& codec = *std::exchange(impl_->current, nullptr);
  FEEDLINE_CHECK_OK(out.resize(region.width, region.height, channels_of(mode)));
  return codec.decode(region, mode, out);
}

std::array<Result<void>, 2> ImageDecoder::decode_in_turn(ImageDecoder& first, const Task& first_task,
                                                         ImageDecoder& second, const Task& second_task) {
  Impl &a = *first.impl_, &b = *second.impl_;
  if (a.current != &a.jpeg || b.current != &b.jpeg)
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
  const bool decoded = impl_->current->decode_planes(region, mode, most, out);
  if (decoded) impl_->current = nullptr;
  return decoded;
}

}  // namespace feedline::decode
