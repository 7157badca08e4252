// SPDX-License-Identifier: Apache-2.0
#include "decode/video/demuxer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "decode/file_bytes.h"
#include "decode/video/mp4_index.h"
#include "decode/video/nal_units.h"

namespace feedline::decode {
namespace {

// Containers of single files. Others, such as playlists, would open further files or network connections.
constexpr const char* kContainers =
    "matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mpegts,mpeg,avi,flv,live_flv,ogg,asf,ivf,mxf,nut,h264,hevc,obu,av1,m4v,"
    "mpegvideo,gif,rm,dv,y4m,yuv4mpegpipe,aac";

// Codecs whose decoders need no other facts about the stream than an index has.
constexpr std::array<std::string_view, 27> kCodecs{
    "h264",      "hevc", "vp8",  "vp9",    "av1",    "mpeg4",   "mpeg2video", "mpeg1video", "mjpeg",
    "h263",      "flv1", "vp6f", "theora", "prores", "dnxhd",   "ffv1",       "vvc",        "msmpeg4v3",
    "msmpeg4v2", "wmv1", "wmv2", "wmv3",   "vc1",    "cinepak", "png",        "huffyuv",    "ffvhuff"};

constexpr std::array<std::string_view, 10> kSounds{"aac",  "aac_latm", "mp2",  "mp3", "opus",
                                                   "flac", "vorbis",   "alac", "ac3", "eac3"};

constexpr int kIoBytes = 1 << 16;

}  // namespace

Result<std::optional<std::uint64_t>> locate(const VideoFile& source, const Demuxer::Read& packet,
                                            std::vector<std::byte>& buffer) {
  constexpr std::size_t kMostHeader = 64;
  if (packet.position < 0) return std::optional<std::uint64_t>();
  const auto position = static_cast<std::uint64_t>(packet.position);
  buffer.resize(packet.bytes.size() + kMostHeader);
  FEEDLINE_TRY(const std::size_t got, source.read_at(position, buffer));
  for (std::size_t head = 0; head <= kMostHeader && head + packet.bytes.size() <= got; ++head)
    if (std::memcmp(buffer.data() + head, packet.bytes.data(), packet.bytes.size()) == 0)
      return std::optional(position + head);
  return std::optional<std::uint64_t>();
}

int Demuxer::read_bytes(void* opaque, std::uint8_t* buffer, int bytes) {
  Demuxer& self = *static_cast<Demuxer*>(opaque);
  const auto got = self.source_.read_at(
      self.position_, {reinterpret_cast<std::byte*>(buffer), static_cast<std::size_t>(std::max(bytes, 0))});
  if (!got) {
    self.failure_ = got.error();
    return ffmpeg::kInvalidData;
  }
  self.position_ += *got;
  return *got == 0 ? ffmpeg::kEndOfFile : static_cast<int>(*got);
}

std::int64_t Demuxer::seek(void* opaque, std::int64_t offset, int whence) {
  Demuxer& self = *static_cast<Demuxer*>(opaque);
  const auto size = static_cast<std::int64_t>(self.source_.size());
  if (whence == ffmpeg::kSizeOfFile) return size;
  const int from = whence & 3;
  const std::int64_t base = from == SEEK_CUR ? static_cast<std::int64_t>(self.position_) : from == SEEK_END ? size : 0;
  if (offset < -base || offset > INT64_MAX - base) return ffmpeg::kInvalidData;
  self.position_ = static_cast<std::uint64_t>(base + offset);
  return base + offset;
}

std::unexpected<Error> Demuxer::failed(const std::string& what, int error) {
  if (failure_) return std::unexpected(*failure_);
  return data_error(what + ": " + library_.describe(error) + " (FFmpeg)", "format");
}

Demuxer::~Demuxer() {
  if (packet_ != nullptr) library_.packet_free(&packet_);
  if (format_ != nullptr) library_.close_input(&format_);
  if (io_ != nullptr) {
    library_.free(member<void*>(io_, library_.layout.io_buffer));  // FFmpeg may have replaced ours
    library_.io_free(&io_);
  }
}

Result<void> Demuxer::open_input() {
  packet_ = library_.packet_alloc();
  auto* const buffer = static_cast<unsigned char*>(library_.malloc(kIoBytes));
  if (buffer != nullptr) io_ = library_.io_alloc(buffer, kIoBytes, 0, this, &read_bytes, nullptr, &seek);
  if (io_ == nullptr) library_.free(buffer);
  format_ = io_ != nullptr ? library_.format_alloc() : nullptr;
  if (packet_ == nullptr || format_ == nullptr) return data_error("no memory to open a video", "format");
  set_member(format_, library_.layout.context.io, io_);
  ffmpeg::Dictionary* options = nullptr;
  library_.dict_set(&options, "format_whitelist", kContainers, 0);
  library_.dict_set(&options, "protocol_whitelist", "none", 0);
  const int opened = library_.open_input(&format_, "", nullptr, &options);  // frees the context if it fails
  library_.dict_free(&options);
  if (opened < 0) return failed("not a media file that can be read", opened);
  const int found = library_.find_stream_info(format_, nullptr);
  if (found < 0) return failed("the file's streams are unreadable", found);
  return {};
}

// The turn that FFmpeg reports, as EXIF's number.
int Demuxer::orientation(const void* stream) const {
  const FfmpegLayout& layout = library_.layout;
  const std::uint8_t* data = nullptr;
  std::size_t bytes = 0;
  constexpr unsigned kOfParameters = 61;
  if (layout.format_major < kOfParameters) {
    if (library_.stream_side_data != nullptr) data = library_.stream_side_data(stream, ffmpeg::kDisplayMatrix, &bytes);
  } else {
    // AVPacketSideData: data, size, type
    constexpr std::size_t kEach = 24, kSizeAt = 8, kTypeAt = 16;
    const void* const parameters = member<const void*>(stream, layout.stream.parameters);
    const auto* const all = member<const std::uint8_t*>(parameters, layout.parameters.side_data);
    const int count = all != nullptr ? member<int>(parameters, layout.parameters.side_data_count) : 0;
    for (int i = 0; i < count; ++i) {
      const std::uint8_t* const one = all + static_cast<std::size_t>(i) * kEach;
      if (member<int>(one, kTypeAt) != ffmpeg::kDisplayMatrix) continue;
      data = member<const std::uint8_t*>(one, 0);
      bytes = member<std::size_t>(one, kSizeAt);
    }
  }
  std::array<std::int32_t, 9> matrix{};
  if (data == nullptr || bytes < sizeof matrix) return 1;
  std::memcpy(matrix.data(), data, sizeof matrix);
  // rotations are computed with rounding, so that a cosine of 0 may be 1 / 65536
  constexpr std::int32_t kZero = 64;
  for (std::int32_t& value : matrix)
    if (std::abs(value) < kZero) value = 0;
  return orientation_of_matrix(matrix);
}

Result<void> Demuxer::choose(std::optional<int> stream, int media, int related) {
  const FfmpegLayout& layout = library_.layout;
  const auto count = static_cast<int>(member<unsigned>(format_, layout.context.stream_count));
  const auto stream_at = [&](int i) { return member<void**>(format_, layout.context.streams)[i]; };
  const auto parameters_of = [&](int i) {
    return member<const ffmpeg::CodecParameters*>(stream_at(i), layout.stream.parameters);
  };
  const auto is_suitable = [&](int i) {
    return member<int>(parameters_of(i), layout.parameters.type) == media &&
           (member<int>(stream_at(i), layout.stream.disposition) & ffmpeg::kAttachedPicture) == 0;
  };
  const std::string kind = media == ffmpeg::kVideo ? "video" : "sound";
  int chosen = stream.value_or(-1);
  if (!stream) {
    chosen = library_.find_best_stream(format_, media, -1, related, nullptr, 0);
    for (int i = 0; i < count && (chosen < 0 || !is_suitable(chosen)); ++i)
      if (is_suitable(i)) chosen = i;
  }
  if (chosen < 0 || chosen >= count || !is_suitable(chosen)) {
    std::string streams;
    for (int i = 0; i < count; ++i)
      if (is_suitable(i)) streams += (streams.empty() ? "" : ", ") + std::to_string(i);
    if (streams.empty()) return data_error("the file has no " + kind + " stream", "format");
    return data_error("stream " + std::to_string(chosen) + " is not a " + kind + " stream of the file; its " + kind +
                          " streams: " + streams,
                      "format");
  }
  if (media == ffmpeg::kSound)
    for (int i = 0; i < count; ++i)
      if (i != chosen) set_member<int>(stream_at(i), layout.stream.discard, ffmpeg::kDiscardAll);
  const ffmpeg::CodecParameters* const parameters = parameters_ = parameters_of(chosen);
  const auto& at = layout.parameters;
  stream_.file_bytes = source_.size();
  stream_.stream = chosen;
  stream_.codec = library_.codec_name(member<int>(parameters, at.codec));
  stream_.tag = member<std::uint32_t>(parameters, at.tag);
  stream_.width = member<int>(parameters, at.width);
  stream_.height = member<int>(parameters, at.height);
  stream_.orientation = orientation(stream_at(chosen));
  stream_.color_range = member<int>(parameters, at.color_range);
  stream_.colorspace = member<int>(parameters, at.colorspace);
  stream_.time_num = member<int>(stream_at(chosen), layout.stream.time_base);
  stream_.time_den = member<int>(stream_at(chosen), layout.stream.time_base + sizeof(int));
  const auto* const extradata = member<const std::byte*>(parameters, at.extradata);
  if (extradata != nullptr)
    stream_.extradata.assign(extradata, extradata + std::max(member<int>(parameters, at.extradata_bytes), 0));
  if (stream_.time_num <= 0 || stream_.time_den <= 0) return data_error("the stream has no time base", "format");
  const bool is_known = media == ffmpeg::kVideo ? std::ranges::find(kCodecs, stream_.codec) != kCodecs.end()
                                                : stream_.codec.starts_with("pcm_") ||
                                                      std::ranges::find(kSounds, stream_.codec) != kSounds.end();
  if (!is_known)
    return data_error("stream " + std::to_string(chosen) + " has the codec '" + stream_.codec +
                          "', which is not supported; convert it, for example to " +
                          (media == ffmpeg::kVideo ? "H.264" : "AAC"),
                      "format");
  return {};
}

Result<std::unique_ptr<Demuxer>> Demuxer::open(const FfmpegLibrary& library, const VideoFile& source,
                                               std::optional<int> stream) {
  std::unique_ptr<Demuxer> demuxer(new Demuxer(library, source));
  FEEDLINE_CHECK_OK(demuxer->open_input());
  FEEDLINE_CHECK_OK(demuxer->choose(stream, ffmpeg::kVideo, -1));
  return demuxer;
}

Result<std::unique_ptr<Demuxer>> Demuxer::open_sound(const FfmpegLibrary& library, const VideoFile& source, int video,
                                                     std::optional<int> stream) {
  std::unique_ptr<Demuxer> demuxer(new Demuxer(library, source));
  FEEDLINE_CHECK_OK(demuxer->open_input());
  FEEDLINE_CHECK_OK(demuxer->choose(stream, ffmpeg::kSound, video));
  return demuxer;
}

Result<std::optional<Demuxer::Read>> Demuxer::next() {
  const auto& at = library_.layout.packet;
  for (;;) {
    library_.packet_unref(packet_);
    const int error = library_.read_frame(format_, packet_);
    if (failure_) return std::unexpected(*failure_);
    if (error == ffmpeg::kEndOfFile) return std::optional<Read>();
    if (error < 0) return failed("the file is damaged", error);
    if (member<int>(packet_, at.stream) != stream_.stream) continue;
    const auto* const data = member<const std::byte*>(packet_, at.data);
    const int size = member<int>(packet_, at.size), flags = member<int>(packet_, at.flags);
    if (data == nullptr || size <= 0) continue;
    Read read{{data, static_cast<std::size_t>(size)},     member<std::int64_t>(packet_, at.pts),
              member<std::int64_t>(packet_, at.duration), member<std::int64_t>(packet_, at.position),
              (flags & ffmpeg::kKeyPacket) != 0,          (flags & ffmpeg::kDiscardPacket) != 0};
    std::size_t bytes = 0;
    const std::uint8_t* const skipped = library_.packet_side_data(packet_, ffmpeg::kSkippedSamples, &bytes);
    if (skipped != nullptr && bytes >= 8) {  // two numbers, low bits first
      const Bytes numbers = std::as_bytes(std::span(skipped, 8));
      read.skipped = static_cast<std::uint32_t>(number(numbers.first(4), false));
      read.skipped_at_end = static_cast<std::uint32_t>(number(numbers.last(4), false));
    }
    return read;
  }
}

Result<VideoIndex> scan_video(const FfmpegLibrary& library, const VideoFile& source, std::optional<int> stream) {
  FEEDLINE_TRY(const std::unique_ptr<Demuxer> demuxer, Demuxer::open(library, source, stream));
  VideoIndex index = demuxer->stream();
  const PacketProbe probe(index);
  std::vector<std::byte> buffer;
  std::int64_t last = 0, last_pts = INT64_MIN;
  for (;;) {
    FEEDLINE_TRY(const auto packet, demuxer->next());
    if (!packet) break;
    std::uint64_t offset = 0;
    if (!index.is_sequential) {
      FEEDLINE_TRY(const auto found, locate(source, *packet, buffer));
      index.is_sequential = !found;
      offset = found.value_or(0);
    }
    index.has_times = index.has_times && packet->pts != ffmpeg::kNoTime;
    if (packet->pts > last_pts) {
      last_pts = packet->pts;
      last = packet->duration;
    }
    index.packets.push_back({packet->pts, offset, static_cast<std::uint32_t>(packet->bytes.size()), packet->is_key,
                             packet->is_hidden || probe.is_hidden(packet->bytes)});
  }
  for (VideoPacket& packet : index.packets) {
    if (index.is_sequential) packet.offset = 0;
    if (!index.has_times) packet.pts = 0;
  }
  if (!index.is_sequential) FEEDLINE_CHECK_OK(find_keys(source, index));
  finish_index(index, last);
  return index;
}

}  // namespace feedline::decode
