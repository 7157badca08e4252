// SPDX-License-Identifier: Apache-2.0
// Compares the table of offsets with FFmpeg's headers, if a supported version is installed.
#include "decode/video/ffmpeg_layout.h"

#include <gtest/gtest.h>

#include <algorithm>

#if __has_include( \
    <libavformat/avformat.h>) && __has_include(<libavcodec/avcodec.h>) && __has_include(<libswscale/swscale.h>)
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include "decode/video/ffmpeg_library.h"

namespace feedline::decode {
namespace {

constexpr FfmpegLayout layout_of_headers() {
  for (const FfmpegLayout& layout : kFfmpegLayouts)
    if (layout.format_major == LIBAVFORMAT_VERSION_MAJOR) return layout;
  return {};
}
constexpr FfmpegLayout kLayout = layout_of_headers();
static_assert(kLayout.format_major == 0 ||
              (kLayout.util_major == LIBAVUTIL_VERSION_MAJOR && kLayout.scale_major == LIBSWSCALE_VERSION_MAJOR &&
               kLayout.format_major == LIBAVCODEC_VERSION_MAJOR));

#define SAME(offset, type, name) static_assert(kLayout.format_major == 0 || kLayout.offset == offsetof(type, name))
SAME(packet.pts, AVPacket, pts);
SAME(packet.data, AVPacket, data);
SAME(packet.size, AVPacket, size);
SAME(packet.stream, AVPacket, stream_index);
SAME(packet.flags, AVPacket, flags);
SAME(packet.duration, AVPacket, duration);
SAME(packet.position, AVPacket, pos);
SAME(frame.data, AVFrame, data);
SAME(frame.strides, AVFrame, linesize);
SAME(frame.planes, AVFrame, extended_data);
SAME(frame.width, AVFrame, width);
SAME(frame.height, AVFrame, height);
SAME(frame.samples, AVFrame, nb_samples);
SAME(frame.format, AVFrame, format);
SAME(frame.pts, AVFrame, pts);
SAME(frame.flags, AVFrame, flags);
SAME(frame.color_range, AVFrame, color_range);
SAME(frame.colorspace, AVFrame, colorspace);
SAME(frame.error_flags, AVFrame, decode_error_flags);
SAME(frame.rate, AVFrame, sample_rate);
#if LIBAVUTIL_VERSION_MAJOR < 59
SAME(frame.channels, AVFrame, channels);
#else
SAME(frame.channels, AVFrame, ch_layout.nb_channels);
#endif
SAME(parameters.type, AVCodecParameters, codec_type);
SAME(parameters.codec, AVCodecParameters, codec_id);
SAME(parameters.tag, AVCodecParameters, codec_tag);
SAME(parameters.extradata, AVCodecParameters, extradata);
SAME(parameters.extradata_bytes, AVCodecParameters, extradata_size);
SAME(parameters.width, AVCodecParameters, width);
SAME(parameters.height, AVCodecParameters, height);
SAME(parameters.color_range, AVCodecParameters, color_range);
SAME(parameters.colorspace, AVCodecParameters, color_space);
#if LIBAVFORMAT_VERSION_MAJOR >= 61
SAME(parameters.side_data, AVCodecParameters, coded_side_data);
SAME(parameters.side_data_count, AVCodecParameters, nb_coded_side_data);
static_assert(sizeof(AVPacketSideData) == 24 && offsetof(AVPacketSideData, size) == 8 &&
              offsetof(AVPacketSideData, type) == 16);
#endif
SAME(stream.parameters, AVStream, codecpar);
SAME(stream.time_base, AVStream, time_base);
SAME(stream.disposition, AVStream, disposition);
SAME(stream.discard, AVStream, discard);
SAME(context.io, AVFormatContext, pb);
SAME(context.stream_count, AVFormatContext, nb_streams);
SAME(context.streams, AVFormatContext, streams);
SAME(io_buffer, AVIOContext, buffer);
static_assert(offsetof(AVCodecDescriptor, id) == 0);

static_assert(ffmpeg::kEndOfFile == AVERROR_EOF && ffmpeg::kAgain == AVERROR(EAGAIN) &&
              ffmpeg::kInvalidData == AVERROR_INVALIDDATA && ffmpeg::kNoMemory == AVERROR(ENOMEM));
static_assert(ffmpeg::kVideo == AVMEDIA_TYPE_VIDEO && ffmpeg::kSound == AVMEDIA_TYPE_AUDIO &&
              ffmpeg::kDiscardAll == AVDISCARD_ALL && ffmpeg::kSkippedSamples == AV_PKT_DATA_SKIP_SAMPLES &&
              ffmpeg::kDisplayMatrix == AV_PKT_DATA_DISPLAYMATRIX && ffmpeg::kKeyPacket == AV_PKT_FLAG_KEY &&
              ffmpeg::kDiscardPacket == AV_PKT_FLAG_DISCARD && ffmpeg::kRgb24 == AV_PIX_FMT_RGB24 &&
              ffmpeg::kAttachedPicture == AV_DISPOSITION_ATTACHED_PIC && ffmpeg::kFullRange == AVCOL_RANGE_JPEG &&
              ffmpeg::kPaddingBytes == AV_INPUT_BUFFER_PADDING_SIZE && ffmpeg::kSizeOfFile == AVSEEK_SIZE);

}  // namespace
}  // namespace feedline::decode
#endif

namespace feedline::decode {
namespace {

TEST(FfmpegLayout, ListsEachVersionOnceNewestFirst) {
  EXPECT_TRUE(std::ranges::is_sorted(kFfmpegLayouts, std::ranges::greater(), &FfmpegLayout::format_major));
  for (const FfmpegLayout& layout : kFfmpegLayouts) EXPECT_EQ(layout.util_major + 2, layout.format_major);
}

}  // namespace
}  // namespace feedline::decode
