// SPDX-License-Identifier: Apache-2.0
#pragma once

// Byte offsets of members in FFmpeg's structures, which differ between its major versions. Measured with offsetof and
// the headers of FFmpeg 5.1, 6.1 and 7.1; libavformat 62 (FFmpeg 8) by decoding with it. FFmpeg promises not to change
// them within a major version.

#include <array>
#include <cstddef>

namespace feedline::decode {

struct FfmpegLayout {
  unsigned format_major = 0;  // of libavformat; libavcodec has the same
  unsigned util_major = 0, scale_major = 0;

  struct PacketLayout {
    std::size_t pts = 8, data = 24, size = 32, stream = 36, flags = 40, duration = 64, position = 72;
  } packet = {};
  struct FrameLayout {
    std::size_t data = 0, strides = 64, planes = 96, width = 104, height = 108, samples = 112, format = 116, pts = 136;
    std::size_t flags, color_range, colorspace, error_flags, rate, channels;  // rate: of sound
  } frame;
  struct ParametersLayout {
    std::size_t type = 0, codec = 4, tag = 8, extradata = 16, extradata_bytes = 24;
    std::size_t side_data = 32, side_data_count = 40;  // from libavformat 61 on; before, of the stream
    std::size_t width, height, color_range, colorspace;
  } parameters;
  struct StreamLayout {
    std::size_t parameters, time_base, disposition, discard;
  } stream;
  struct ContextLayout {
    std::size_t io = 32, stream_count = 44, streams = 48;
  } context = {};
  std::size_t io_buffer = 8;  // AVIOContext
};

// Newest first.
inline constexpr std::array kFfmpegLayouts{
    FfmpegLayout{
        .format_major = 62,
        .util_major = 60,
        .scale_major = 9,
        .frame =
            {.flags = 276, .color_range = 280, .colorspace = 292, .error_flags = 320, .rate = 180, .channels = 388},
        .parameters = {.width = 72, .height = 76, .color_range = 100, .colorspace = 112},
        .stream = {.parameters = 16, .time_base = 32, .disposition = 64, .discard = 68}},
    FfmpegLayout{
        .format_major = 61,
        .util_major = 59,
        .scale_major = 8,
        .frame =
            {.flags = 292, .color_range = 296, .colorspace = 308, .error_flags = 344, .rate = 192, .channels = 412},
        .parameters = {.width = 72, .height = 76, .color_range = 100, .colorspace = 112},
        .stream = {.parameters = 16, .time_base = 32, .disposition = 64, .discard = 68}},
    FfmpegLayout{
        .format_major = 60,
        .util_major = 58,
        .scale_major = 7,
        .frame =
            {.flags = 316, .color_range = 320, .colorspace = 332, .error_flags = 376, .rate = 208, .channels = 380},
        .parameters = {.width = 56, .height = 60, .color_range = 76, .colorspace = 88},
        .stream = {.parameters = 16, .time_base = 32, .disposition = 64, .discard = 68}},
    FfmpegLayout{
        .format_major = 59,
        .util_major = 57,
        .scale_major = 6,
        .frame =
            {.flags = 316, .color_range = 320, .colorspace = 332, .error_flags = 376, .rate = 208, .channels = 380},
        .parameters = {.width = 56, .height = 60, .color_range = 76, .colorspace = 88},
        .stream = {.parameters = 208, .time_base = 16, .disposition = 48, .discard = 52}}};

}  // namespace feedline::decode
