// SPDX-License-Identifier: Apache-2.0
#pragma once

// FFmpeg's libraries, opened at run time: without them, only videos fail. No FFmpeg header is used: structures are
// opaque, and ffmpeg_layout.h has the offsets of the few members that have no accessor.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "decode/video/ffmpeg_layout.h"
#include "feedline/error.h"

namespace feedline::decode {

namespace ffmpeg {

struct Codec;
struct CodecContext;
struct CodecDescriptor;
struct CodecParameters;
struct Dictionary;
struct FormatContext;
struct Frame;
struct InputFormat;
struct IoContext;
struct Packet;
struct ScaleContext;

using ReadCall = int (*)(void* opaque, std::uint8_t* buffer, int bytes);
using SeekCall = std::int64_t (*)(void* opaque, std::int64_t offset, int whence);

// Values of FFmpeg's macros and enums, which are the same in all supported versions.
constexpr int kEndOfFile = -0x20464F45;  // AVERROR_EOF
constexpr int kAgain = -11;              // AVERROR(EAGAIN)
constexpr int kInvalidData = -0x41444E49;
constexpr int kNoMemory = -12;
constexpr std::int64_t kNoTime = INT64_MIN;  // AV_NOPTS_VALUE
constexpr int kVideo = 0, kSound = 1;        // AVMEDIA_TYPE_VIDEO, AUDIO
constexpr int kDiscardAll = 48;              // AVDISCARD_ALL
constexpr int kSkippedSamples = 11;          // AV_PKT_DATA_SKIP_SAMPLES
constexpr int kDisplayMatrix = 5;            // AV_PKT_DATA_DISPLAYMATRIX
constexpr int kKeyPacket = 1, kDiscardPacket = 4;
constexpr int kAttachedPicture = 0x400;  // AV_DISPOSITION_ATTACHED_PIC
constexpr int kPaddingBytes = 64;        // AV_INPUT_BUFFER_PADDING_SIZE
constexpr int kRgb24 = 2;                // AV_PIX_FMT_RGB24
constexpr int kFullRange = 2;            // AVCOL_RANGE_JPEG
constexpr int kSizeOfFile = 0x10000;     // AVSEEK_SIZE

}  // namespace ffmpeg

// The functions that Feedline uses: the library, the member of FfmpegLibrary, FFmpeg's name, and the signature.
#define FEEDLINE_FFMPEG_CALLS(X)                                                                                       \
  X(util, frame_alloc, "av_frame_alloc", ffmpeg::Frame*())                                                             \
  X(util, frame_free, "av_frame_free", void(ffmpeg::Frame**))                                                          \
  X(util, frame_unref, "av_frame_unref", void(ffmpeg::Frame*))                                                         \
  X(util, malloc, "av_malloc", void*(std::size_t))                                                                     \
  X(util, free, "av_free", void(void*))                                                                                \
  X(util, log_set_level, "av_log_set_level", void(int))                                                                \
  X(util, opt_set, "av_opt_set", int(void*, const char*, const char*, int))                                            \
  X(util, opt_set_int, "av_opt_set_int", int(void*, const char*, std::int64_t, int))                                   \
  X(util, dict_set, "av_dict_set", int(ffmpeg::Dictionary**, const char*, const char*, int))                           \
  X(util, dict_free, "av_dict_free", void(ffmpeg::Dictionary**))                                                       \
  X(util, strerror, "av_strerror", int(int, char*, std::size_t))                                                       \
  X(codec, codec_version, "avcodec_version", unsigned())                                                               \
  X(codec, find_decoder, "avcodec_find_decoder", const ffmpeg::Codec*(int))                                            \
  X(codec, descriptor_by_name, "avcodec_descriptor_get_by_name", const ffmpeg::CodecDescriptor*(const char*))          \
  X(codec, codec_name, "avcodec_get_name", const char*(int))                                                           \
  X(codec, context_alloc, "avcodec_alloc_context3", ffmpeg::CodecContext*(const ffmpeg::Codec*))                       \
  X(codec, context_free, "avcodec_free_context", void(ffmpeg::CodecContext**))                                         \
  X(codec, parameters_alloc, "avcodec_parameters_alloc", ffmpeg::CodecParameters*())                                   \
  X(codec, parameters_free, "avcodec_parameters_free", void(ffmpeg::CodecParameters**))                                \
  X(codec, parameters_to_context, "avcodec_parameters_to_context",                                                     \
    int(ffmpeg::CodecContext*, const ffmpeg::CodecParameters*))                                                        \
  X(codec, codec_open, "avcodec_open2", int(ffmpeg::CodecContext*, const ffmpeg::Codec*, ffmpeg::Dictionary**))        \
  X(codec, send_packet, "avcodec_send_packet", int(ffmpeg::CodecContext*, const ffmpeg::Packet*))                      \
  X(codec, receive_frame, "avcodec_receive_frame", int(ffmpeg::CodecContext*, ffmpeg::Frame*))                         \
  X(codec, flush, "avcodec_flush_buffers", void(ffmpeg::CodecContext*))                                                \
  X(codec, packet_alloc, "av_packet_alloc", ffmpeg::Packet*())                                                         \
  X(codec, packet_free, "av_packet_free", void(ffmpeg::Packet**))                                                      \
  X(codec, packet_unref, "av_packet_unref", void(ffmpeg::Packet*))                                                     \
  X(codec, packet_side_data, "av_packet_get_side_data", const std::uint8_t*(const ffmpeg::Packet*, int, std::size_t*)) \
  X(format, format_version, "avformat_version", unsigned())                                                            \
  X(format, format_alloc, "avformat_alloc_context", ffmpeg::FormatContext*())                                          \
  X(format, format_free, "avformat_free_context", void(ffmpeg::FormatContext*))                                        \
  X(format, open_input, "avformat_open_input",                                                                         \
    int(ffmpeg::FormatContext**, const char*, const ffmpeg::InputFormat*, ffmpeg::Dictionary**))                       \
  X(format, close_input, "avformat_close_input", void(ffmpeg::FormatContext**))                                        \
  X(format, find_stream_info, "avformat_find_stream_info", int(ffmpeg::FormatContext*, ffmpeg::Dictionary**))          \
  X(format, find_best_stream, "av_find_best_stream",                                                                   \
    int(ffmpeg::FormatContext*, int, int, int, const ffmpeg::Codec**, int))                                            \
  X(format, read_frame, "av_read_frame", int(ffmpeg::FormatContext*, ffmpeg::Packet*))                                 \
  X(format, io_alloc, "avio_alloc_context",                                                                            \
    ffmpeg::IoContext*(unsigned char*, int, int, void*, ffmpeg::ReadCall, ffmpeg::ReadCall, ffmpeg::SeekCall))         \
  X(format, io_free, "avio_context_free", void(ffmpeg::IoContext**))                                                   \
  X(scale, scale_version, "swscale_version", unsigned())                                                               \
  X(scale, scale_cached, "sws_getCachedContext",                                                                       \
    ffmpeg::ScaleContext*(ffmpeg::ScaleContext*, int, int, int, int, int, int, int, void*, void*, const double*))      \
  X(scale, scale_free, "sws_freeContext", void(ffmpeg::ScaleContext*))                                                 \
  X(scale, scale_coefficients, "sws_getCoefficients", const int*(int))                                                 \
  X(scale, scale_colors, "sws_getColorspaceDetails",                                                                   \
    int(ffmpeg::ScaleContext*, int**, int*, int**, int*, int*, int*, int*))                                            \
  X(scale, scale_set_colors, "sws_setColorspaceDetails",                                                               \
    int(ffmpeg::ScaleContext*, const int*, int, const int*, int, int, int, int))                                       \
  X(scale, scale_rows, "sws_scale",                                                                                    \
    int(ffmpeg::ScaleContext*, const std::uint8_t* const*, const int*, int, int, std::uint8_t* const*, const int*))

// The functions and offsets of one loaded version. Never changes after open_ffmpeg(); threads share it.
struct FfmpegLibrary {
#define FEEDLINE_FFMPEG_MEMBER(library, member, name, signature) std::add_pointer_t<signature> member = nullptr;
  FEEDLINE_FFMPEG_CALLS(FEEDLINE_FFMPEG_MEMBER)
#undef FEEDLINE_FFMPEG_MEMBER
  // av_stream_get_side_data, which libavformat has up to version 61.
  const std::uint8_t* (*stream_side_data)(const void* stream, int type, std::size_t* bytes) = nullptr;
  FfmpegLayout layout;
  std::string version;  // "libavformat 59.27.100, libavcodec 59.37.100, libswscale 6.7.100"
  std::string files;    // "libavformat.so.59", or the folder that was given

  std::string describe(int error) const;  // FFmpeg's text for one of its error numbers
};

// Reads and writes a member of one of FFmpeg's structures at an offset of FfmpegLayout.
template <typename T>
T member(const void* structure, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const char*>(structure) + offset, sizeof(T));
  return value;
}
template <typename T>
void set_member(void* structure, std::size_t offset, T value) {
  std::memcpy(static_cast<char*>(structure) + offset, &value, sizeof(T));
}

// folder: has the libraries, under any names that begin with "libavformat", ...; empty: the system's. A version is
// used only after a small built-in clip was decoded correctly with it. kConfig: no suitable version was found; the
// message names the versions that were found and those that are supported, or the package to install. The libraries
// stay loaded until the process ends.
Result<FfmpegLibrary> open_ffmpeg(const std::string& folder);
// Returns the libraries of the process, from the folder FEEDLINE_FFMPEG or the system; the first call loads them.
// Thread-safe.
const Result<FfmpegLibrary>& ffmpeg_library();

}  // namespace feedline::decode
