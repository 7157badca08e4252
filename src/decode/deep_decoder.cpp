// SPDX-License-Identifier: Apache-2.0
#include "decode/deep_decoder.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "decode/codec.h"
#include "decode/decoder.h"
#include "decode/image_formats.h"
#include "decode/orientation.h"
#include "decode/png/png_decoder.h"
#include "decode/tiff/tiff_decoder.h"

namespace feedline::decode {

struct DeepDecoder::Impl {
  PngDecoder png;
  TiffDecoder tiff;
  ImageDecoder others;
  enum class Kind : std::uint8_t { kPng, kTiff, kOther } kind = Kind::kOther;
  DeepHeader header;           // of the rotated image
  Orientation orientation;     // of PNGs and TIFFs; `others` rotates by itself
  memory::PixelBuffer stored;  // a region before rotation

  Result<void> open(const ImageFormat& format, std::span<const std::byte> bytes, int page, bool applies_exif) {
    if (kind == Kind::kTiff) {
      FEEDLINE_TRY(header, tiff.open(bytes, page));
      return {};
    }
    if (page != 0)
      return decode_error("page " + std::to_string(page) + " of a " + std::string(format.title) +
                          " image: only TIFFs have more than one page");
    if (kind == Kind::kPng) {
      FEEDLINE_TRY(const ImageHeader size, png.open(bytes));
      const PngHeader& stored_header = png.header();
      header = {size.width, size.height, stored_header.color == PngColor::kPalette ? 3 : stored_header.channels(),
                stored_header.depth == 16 ? DType::kUint16 : DType::kUint8};
      return {};
    }
    FEEDLINE_TRY(const ImageHeader size, others.open(bytes, applies_exif));
    if (size.depth != Depth::k8Bits)
      return decode_error("the " + std::string(format.title) + " image has " + std::string(name_of(size.depth)) +
                          ", which dtype= reads only from PNGs and TIFFs: convert it, or omit dtype=");
    const bool is_grey = format.codec != nullptr && format.codec->pillow_mode(bytes) == "L";
    header = {size.width, size.height, is_grey ? 1 : 3, DType::kUint8};
    return {};
  }

  Result<void> decode(const Box& region, memory::PixelBuffer& out) {
    if (kind == Kind::kPng) return png.decode_samples(region, out);
    if (kind == Kind::kTiff) return tiff.decode(region, out);
    return others.decode(region, header.channels == 1 ? ColorMode::kL : ColorMode::kRgb, out);
  }
};

DeepDecoder::DeepDecoder() : impl_(std::make_unique<Impl>()) {}
DeepDecoder::~DeepDecoder() = default;
DeepDecoder::DeepDecoder(DeepDecoder&&) noexcept = default;
DeepDecoder& DeepDecoder::operator=(DeepDecoder&&) noexcept = default;

Result<DeepHeader> DeepDecoder::open(std::span<const std::byte> bytes, int page, bool applies_exif) {
  const ImageFormat* const format = format_of(bytes);
  impl_->kind = Impl::Kind::kOther;
  if (format != nullptr && format->codec == &kPngCodec) impl_->kind = Impl::Kind::kPng;
  if (format != nullptr && format->name == "tiff") impl_->kind = Impl::Kind::kTiff;
  if (format == nullptr || impl_->kind == Impl::Kind::kOther) FEEDLINE_CHECK_OK(sniff(bytes));
  FEEDLINE_CHECK_OK(impl_->open(*format, bytes, page, applies_exif));
  impl_->orientation = {};
  if (applies_exif && impl_->kind == Impl::Kind::kTiff) impl_->orientation = orientation_of(impl_->tiff.orientation());
  if (applies_exif && impl_->kind == Impl::Kind::kPng) impl_->orientation = stored_orientation(*format, bytes);
  DeepHeader& header = impl_->header;
  if (impl_->orientation.transposes) std::swap(header.width, header.height);
  return header;
}

Result<memory::DeepView> DeepDecoder::decode(const Box& region, memory::PixelBuffer& out) {
  const DeepHeader& header = impl_->header;
  const int pixel_bytes = header.channels * static_cast<int>(size_of(header.dtype));
  FEEDLINE_CHECK_OK(out.resize(region.width, region.height, pixel_bytes));
  const Orientation& orientation = impl_->orientation;
  if (orientation.is_stored()) {
    FEEDLINE_CHECK_OK(impl_->decode(region, out));
  } else {
    const Size size = orientation.transposes ? Size{header.width, header.height} : Size{header.height, header.width};
    const Box box = stored_region(orientation, region, size);
    FEEDLINE_CHECK_OK(impl_->stored.resize(box.width, box.height, pixel_bytes));
    FEEDLINE_CHECK_OK(impl_->decode(box, impl_->stored));
    turn(orientation, impl_->stored.view(), out);
  }
  return memory::DeepView{out.view(), header.dtype, header.channels};
}

}  // namespace feedline::decode
