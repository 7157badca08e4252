// SPDX-License-Identifier: Apache-2.0
#include "decode/labels.h"

#include <string>

#include "decode/codec.h"
#include "decode/image_formats.h"
#include "decode/jpeg/jpeg_decoder.h"
#include "decode/png/png_decoder.h"

namespace feedline::decode {

namespace {

constexpr const char* kAsImage = ", or read it as an image with ':image' in fields=";

}  // namespace

struct LabelDecoder::Impl {
  PngDecoder png;
  LabelHeader header;
};

LabelDecoder::LabelDecoder() : impl_(std::make_unique<Impl>()) {}
LabelDecoder::~LabelDecoder() = default;
LabelDecoder::LabelDecoder(LabelDecoder&&) noexcept = default;
LabelDecoder& LabelDecoder::operator=(LabelDecoder&&) noexcept = default;

Result<LabelHeader> LabelDecoder::open(std::span<const std::byte> bytes) {
  FEEDLINE_TRY(const ImageFormat* const format, sniff(bytes));
  if (format->codec != &kPngCodec) {
    const bool is_lossy = format->codec == &kJpegCodec;
    return decode_error("a mask must be a PNG; this image is " + std::string(format->title) +
                        (is_lossy ? ", whose compression changes labels: write it again as" : ": convert it to") +
                        " a grey or palette PNG" + kAsImage);
  }
  FEEDLINE_TRY(const ImageHeader size, impl_->png.open(bytes));
  const PngHeader& png = impl_->png.header();
  if (png.channels() != 1)
    return decode_error("a mask must be a grey or palette PNG; this one has " + std::to_string(png.channels()) +
                        " channels: write one number per pixel, the label" + kAsImage);
  impl_->header = {size.width, size.height, png.depth == 16 ? DType::kUint16 : DType::kUint8};
  return impl_->header;
}

Result<void> LabelDecoder::decode(memory::PixelBuffer& out) {
  const LabelHeader& header = impl_->header;
  FEEDLINE_CHECK_OK(out.resize(header.width, header.height, static_cast<int>(size_of(header.dtype))));
  return impl_->png.decode_labels(out);
}

}  // namespace feedline::decode
