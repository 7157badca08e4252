// SPDX-License-Identifier: Apache-2.0
#include "decode/webp/webp_decoder.h"

// WebP is a RIFF format: | "RIFF" | size 4, little-endian | "WEBP" |, then chunks.
//
// If a lossy image is cropped while it is decoded, libwebp upsamples chroma as if the image ended at the crop's border.
// The crop is therefore larger than the region by kMargin on each side, and the surplus is dropped.

#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "decode/color.h"

namespace feedline::decode {
namespace {

using Bytes = std::span<const std::byte>;

constexpr int kMargin = 2;  // one chroma sample
constexpr std::size_t kChunkHead = 8;

const std::uint8_t* data_of(Bytes bytes) { return reinterpret_cast<const std::uint8_t*>(bytes.data()); }

// Returns the file size that the header declares, counted from the first byte. Requires: `bytes` contains a chunk
// header.
std::uint64_t riff_bytes(Bytes bytes) {
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size |= std::to_integer<std::uint64_t>(bytes[4 + i]) << (8 * i);
  return kChunkHead + size;
}

struct DeleteDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};

std::string reason(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "no memory for a WebP decoder";
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "truncated WebP";
    case VP8_STATUS_SUSPENDED:
      return "truncated WebP";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "WebP with an unsupported feature";
    default:
      return "damaged WebP";
  }
}

Box intersection(const Box& a, const Box& b) {
  const int left = std::max(a.left, b.left), top = std::max(a.top, b.top);
  const int right = std::min(a.left + a.width, b.left + b.width);
  const int bottom = std::min(a.top + a.height, b.top + b.height);
  return {left, top, std::max(0, right - left), std::max(0, bottom - top)};
}

// Returns the region with its margin, clipped to the frame and relative to it. The result starts at an even pixel, like
// libwebp's crops.
Box with_margin(const Box& part, const Box& frame) {
  const int left = std::max(0, (part.left - frame.left - kMargin) & ~1);
  const int top = std::max(0, (part.top - frame.top - kMargin) & ~1);
  const int right = std::min(frame.width, part.left - frame.left + part.width + kMargin);
  const int bottom = std::min(frame.height, part.top - frame.top + part.height + kMargin);
  return {left, top, right - left, bottom - top};
}

}  // namespace

Result<ImageHeader> WebpDecoder::open(Bytes bytes) {
  WebPBitstreamFeatures features{};
  const VP8StatusCode status = WebPGetFeatures(data_of(bytes), bytes.size(), &features);
  if (status == VP8_STATUS_NOT_ENOUGH_DATA) return decode_error("truncated WebP: ends inside its header");
  if (status != VP8_STATUS_OK) return decode_error(reason(status));
  FEEDLINE_CHECK_OK(check_size(features.width, features.height));
  bytes_ = bytes;
  animated_ = features.has_animation != 0;
  header_ = {features.width, features.height};
  return header_;
}

Result<WebpDecoder::Frame> WebpDecoder::first_frame() const {
  if (!animated_) return Frame{bytes_, {0, 0, header_.width, header_.height}};
  const WebPData file{data_of(bytes_), bytes_.size()};
  const std::unique_ptr<WebPDemuxer, DeleteDemuxer> demuxer(WebPDemux(&file));
  WebPIterator first{};
  if (!demuxer || !WebPDemuxGetFrame(demuxer.get(), 1, &first))
    return decode_error("damaged WebP: an animation has incomplete frames, or frames outside its canvas");
  const auto offset = static_cast<std::size_t>(first.fragment.bytes - file.bytes);
  const Frame frame{bytes_.subspan(offset, first.fragment.size),
                    {first.x_offset, first.y_offset, first.width, first.height}};
  WebPDemuxReleaseIterator(&first);
  return frame;
}

Result<void> WebpDecoder::decode_part(const Frame& frame, const Box& part, memory::PixelBuffer& target) {
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) return internal_error("libwebp and its header have different versions");
  if (part.width < frame.location.width || part.height < frame.location.height) {
    config.options.use_cropping = 1;
    config.options.crop_left = part.left;
    config.options.crop_top = part.top;
    config.options.crop_width = part.width;
    config.options.crop_height = part.height;
  }
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = target.row(0);
  config.output.u.RGBA.stride = static_cast<int>(target.stride());
  config.output.u.RGBA.size = target.stride() * static_cast<std::size_t>(part.height);
  const VP8StatusCode status = WebPDecode(data_of(frame.bytes), frame.bytes.size(), &config);
  if (status != VP8_STATUS_OK) return decode_error(reason(status));
  return {};
}

Result<void> WebpDecoder::decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  const std::uint64_t whole = riff_bytes(bytes_);
  if (whole > bytes_.size())
    return decode_error("truncated WebP: " + std::to_string(bytes_.size()) + " of " + std::to_string(whole) + " bytes");
  FEEDLINE_TRY(const Frame frame, first_frame());
  const Box visible = intersection(region, frame.location);
  if (visible != region)  // an animation's canvas is black where the first frame does not cover it
    for (int y = 0; y < out.height(); ++y)
      std::memset(out.row(y), 0, static_cast<std::size_t>(out.width() * out.channels()));
  if (visible.width == 0 || visible.height == 0) return {};
  const Box part = with_margin(visible, frame.location);
  if (mode == ColorMode::kRgb && visible == region && part.width == region.width && part.height == region.height)
    return decode_part(frame, part, out);

  FEEDLINE_CHECK_OK(part_.resize(part.width, part.height, 3));
  FEEDLINE_CHECK_OK(decode_part(frame, part, part_));
  const int lead_x = visible.left - frame.location.left - part.left,
            lead_y = visible.top - frame.location.top - part.top;
  for (int y = 0; y < visible.height; ++y) {
    const std::uint8_t* from = part_.row(lead_y + y) + 3 * lead_x;
    std::uint8_t* to = out.row(visible.top - region.top + y) + channels_of(mode) * (visible.left - region.left);
    if (mode == ColorMode::kRgb)
      std::memcpy(to, from, static_cast<std::size_t>(3 * visible.width));
    else
      rgb_to_l(from, visible.width, to);
  }
  return {};
}

}  // namespace feedline::decode
