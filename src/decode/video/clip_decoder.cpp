// SPDX-License-Identifier: Apache-2.0
// A frame is found by the number of its packet, which FFmpeg receives as the packet's time stamp and returns with the
// frame. Wanted frames are decoded in runs. A run begins at the last key frame that is shown no later than its first
// wanted frame, feeds the packets in file order up to the last wanted one, and then drains the decoder:
//
//   packets   K . . . . . K . . . . . . K . . . .      K: key frame
//   wanted        x   x                     x
//   fed       ---------            (skip)  ------      packets on which no other depends are left out if not wanted
//
// A frame that the decoder reports as damaged spoils all frames after it in file order, up to the next key frame.
#include "decode/video/clip_decoder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "decode/orientation.h"
#include "decode/video/demuxer.h"
#include "decode/video/mp4_index.h"
#include "decode/video/nal_units.h"
#include "decode/video/packet_reader.h"

namespace feedline::decode {
namespace {

// Selects the skipped packets and the start of runs: in rare streams, FFmpeg needs more packets.
struct Effort {
  bool drops = true;
  bool starts_earlier = false;
};

const std::string kReported = "the decoder reports damaged data";

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", seconds);
  return text.data();
}

}  // namespace

struct ClipDecoder::Impl {
  struct Wanted {
    std::uint32_t packet = 0;
    std::uint32_t key = 0;            // packet at which decoding begins
    std::uint64_t frame = 0;          // its number
    std::size_t first = 0, last = 0;  // positions_[first, last)
    bool is_found = false;
  };

  struct Damage {
    std::uint32_t packet = 0;
    std::string what;
  };

  explicit Impl(const FfmpegLibrary& opened) : library(opened) {}
  ~Impl() {
    close();
    if (packet != nullptr) {
      set_member<void*>(packet, library.layout.packet.data, nullptr);
      library.packet_free(&packet);
    }
    if (frame != nullptr) library.frame_free(&frame);
    library.scale_free(scale);
  }

  Result<void> open(const VideoIndex& index);
  void close() {
    if (context != nullptr) library.context_free(&context);
  }
  Result<void> plan(const VideoIndex& index, const ShownFrames& shown, std::span<const std::uint64_t> frames);
  // Returns the end of the run that begins with wanted frame `first`: a later key frame is nearer than the packets that
  // are already decoded.
  std::size_t end_of_run(std::size_t first) const {
    std::uint32_t last = wanted[first].packet;
    std::size_t end = first + 1;
    for (; end < wanted.size() && wanted[end].key <= last; ++end) last = std::max(last, wanted[end].packet);
    return end;
  }
  // The first and last packet of a run.
  static std::pair<std::uint32_t, std::uint32_t> packets_of(std::span<const Wanted> run) {
    std::uint32_t begin = run.front().key, last = 0;
    for (const Wanted& one : run) {
      begin = std::min(begin, one.key);
      last = std::max(last, one.packet);
    }
    return {begin, last};
  }
  Result<void> run(const VideoIndex& index, PacketReader& reader, std::span<Wanted> wanted, Effort effort,
                   const Sink& sink);
  Result<void> run_in_order(const VideoIndex& index, PacketReader& reader, const Sink& sink);
  Result<void> feed(std::uint32_t number, std::span<const std::byte> bytes, bool is_key);
  // Calls take(packet number) for each frame in `frame`.
  template <typename Take>
  Result<void> receive(std::uint32_t fed, Take take);
  Result<void> give(const VideoIndex& index, const Wanted& found, const Sink& sink);
  Result<memory::PixelView> convert(const VideoIndex& index);

  const FfmpegLibrary& library;
  ffmpeg::CodecContext* context = nullptr;
  ffmpeg::Packet* packet = nullptr;
  ffmpeg::Frame* frame = nullptr;
  ffmpeg::ScaleContext* scale = nullptr;
  std::array<int, 5> scaled{-1, -1, -1, -1, -1};  // width, height, format, colours, range of `scale`
  memory::PixelBuffer pixels, turned;
  std::vector<std::byte> room;
  std::vector<Wanted> wanted;
  std::vector<std::size_t> positions;
  std::vector<Damage> damages;
  Counts counts;
};

// ---- FFmpeg's decoder ----

Result<void> ClipDecoder::Impl::open(const VideoIndex& index) {
  const std::uint64_t started = base::now_ns();
  if (packet == nullptr) packet = library.packet_alloc();
  if (frame == nullptr) frame = library.frame_alloc();
  if (packet == nullptr || frame == nullptr) return data_error("no memory for a video decoder", "decode");
  const ffmpeg::CodecDescriptor* const descriptor = library.descriptor_by_name(index.codec.c_str());
  const int id = descriptor != nullptr ? member<int>(descriptor, 0) : 0;
  const ffmpeg::Codec* const codec = descriptor != nullptr ? library.find_decoder(id) : nullptr;
  if (codec == nullptr)
    return data_error("this FFmpeg (" + library.version + ") has no decoder for " + index.codec +
                          ": install a full build, or convert the video, for example to VP9",
                      "decode");
  ffmpeg::CodecParameters* parameters = library.parameters_alloc();
  context = library.context_alloc(codec);
  const auto& at = library.layout.parameters;
  void* extradata = nullptr;
  if (!index.extradata.empty()) extradata = library.malloc(index.extradata.size() + ffmpeg::kPaddingBytes);
  if (parameters == nullptr || context == nullptr || (extradata == nullptr && !index.extradata.empty())) {
    library.free(extradata);
    library.parameters_free(&parameters);
    return data_error("no memory for a video decoder", "decode");
  }
  set_member<int>(parameters, at.type, ffmpeg::kVideo);
  set_member<int>(parameters, at.codec, id);
  set_member<std::uint32_t>(parameters, at.tag, index.tag);
  set_member<int>(parameters, at.width, index.width);
  set_member<int>(parameters, at.height, index.height);
  set_member<int>(parameters, at.color_range, index.color_range);
  set_member<int>(parameters, at.colorspace, index.colorspace);
  if (extradata != nullptr) {
    std::memset(static_cast<std::byte*>(extradata) + index.extradata.size(), 0, ffmpeg::kPaddingBytes);
    std::memcpy(extradata, index.extradata.data(), index.extradata.size());
    set_member<void*>(parameters, at.extradata, extradata);  // freed with them
    set_member<int>(parameters, at.extradata_bytes, static_cast<int>(index.extradata.size()));
  }
  int error = library.parameters_to_context(context, parameters);
  library.parameters_free(&parameters);
  library.opt_set_int(context, "threads", 1, 0);
  library.opt_set_int(context, "has_b_frames", index.reordered, 0);
  if (error >= 0) error = library.codec_open(context, codec, nullptr);
  ++counts.opens;
  counts.open_ns += base::now_ns() - started;
  if (error < 0)
    return data_error("the decoder for " + index.codec + " refuses the stream: " + library.describe(error), "decode");
  return {};
}

template <typename Take>
Result<void> ClipDecoder::Impl::receive(std::uint32_t fed, Take take) {
  for (;;) {
    const int error = library.receive_frame(context, frame);
    if (error == ffmpeg::kAgain || error == ffmpeg::kEndOfFile) return {};
    if (error == ffmpeg::kNoMemory) return data_error("no memory for a decoded frame", "decode");
    if (error < 0) {
      damages.push_back({.packet = fed, .what = library.describe(error)});
      return {};
    }
    ++counts.frames;
    const std::int64_t number = member<std::int64_t>(frame, library.layout.frame.pts);
    constexpr int kCorrupt = 1;  // AV_FRAME_FLAG_CORRUPT
    const bool is_damaged = (member<int>(frame, library.layout.frame.flags) & kCorrupt) != 0 ||
                            member<int>(frame, library.layout.frame.error_flags) != 0;
    if (is_damaged && number >= 0) damages.push_back({.packet = static_cast<std::uint32_t>(number), .what = kReported});
    auto taken = take(number);
    library.frame_unref(frame);
    if (!taken) return taken;
  }
}

Result<void> ClipDecoder::Impl::feed(std::uint32_t number, std::span<const std::byte> bytes, bool is_key) {
  const auto& at = library.layout.packet;
  set_member<const std::byte*>(packet, at.data, bytes.data());
  set_member<int>(packet, at.size, static_cast<int>(bytes.size()));
  set_member<std::int64_t>(packet, at.pts, number);
  set_member<int>(packet, at.flags, is_key ? ffmpeg::kKeyPacket : 0);
  const int error = library.send_packet(context, packet);
  if (error == ffmpeg::kNoMemory) return data_error("no memory for a packet", "decode");
  if (error < 0) damages.push_back({.packet = number, .what = library.describe(error)});
  return {};
}

Result<memory::PixelView> ClipDecoder::Impl::convert(const VideoIndex& index) {
  const auto& at = library.layout.frame;
  const int width = member<int>(frame, at.width), height = member<int>(frame, at.height);
  const int format = member<int>(frame, at.format);
  if (width <= 0 || height <= 0) return data_error("a frame without pixels", "decode");
  const std::array<int, 5> wanted_scale{width, height, format, member<int>(frame, at.colorspace),
                                        member<int>(frame, at.color_range)};
  if (scaled != wanted_scale) {
    scaled = {-1, -1, -1, -1, -1};
    scale =
        library.scale_cached(scale, width, height, format, width, height, ffmpeg::kRgb24, 0, nullptr, nullptr, nullptr);
    int *from = nullptr, *to = nullptr;
    int from_range = 0, to_range = 0, brightness = 0, contrast = 0, saturation = 0;
    if (scale == nullptr) return data_error("swscale cannot convert the pixel format to RGB", "decode");
    // formats without a matrix, such as RGB, have no details
    if (library.scale_colors(scale, &from, &from_range, &to, &to_range, &brightness, &contrast, &saturation) >= 0) {
      if (wanted_scale[4] == ffmpeg::kFullRange) from_range = 1;
      library.scale_set_colors(scale, library.scale_coefficients(wanted_scale[3]), from_range, to, to_range, brightness,
                               contrast, saturation);
    }
    scaled = wanted_scale;
  }
  FEEDLINE_CHECK_OK(pixels.resize(width, height, 3));
  std::array<const std::uint8_t*, 8> planes{};
  std::array<int, 8> strides{};
  std::memcpy(planes.data(), reinterpret_cast<const char*>(frame) + at.data, sizeof(planes));
  std::memcpy(strides.data(), reinterpret_cast<const char*>(frame) + at.strides, sizeof(strides));
  const std::array<std::uint8_t*, 4> rows{pixels.row(0)};
  const std::array<int, 4> row_bytes{static_cast<int>(pixels.stride())};
  const int made = library.scale_rows(scale, planes.data(), strides.data(), 0, height, rows.data(), row_bytes.data());
  if (made != height) return data_error("swscale could not convert a frame to RGB", "decode");
  const Orientation orientation = orientation_of(index.orientation);
  if (orientation.is_stored()) return pixels.view();
  FEEDLINE_CHECK_OK(orientation.transposes ? turned.resize(height, width, 3) : turned.resize(width, height, 3));
  turn(orientation, pixels.view(), turned);
  return turned.view();
}

Result<void> ClipDecoder::Impl::give(const VideoIndex& index, const Wanted& found, const Sink& sink) {
  FEEDLINE_TRY(const memory::PixelView view, convert(index));
  for (std::size_t i = found.first; i < found.last; ++i) FEEDLINE_CHECK_OK(sink(positions[i], view));
  return {};
}

// ---- runs ----

Result<void> ClipDecoder::Impl::plan(const VideoIndex& index, const ShownFrames& shown,
                                     std::span<const std::uint64_t> frames) {
  positions.resize(frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) positions[i] = i;
  std::ranges::stable_sort(positions, {}, [&](std::size_t position) { return frames[position]; });
  wanted.clear();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::uint64_t number = frames[positions[i]];
    if (!wanted.empty() && wanted.back().frame == number) {
      ++wanted.back().last;
      continue;
    }
    Wanted one{.frame = number, .first = i, .last = i + 1};
    if (index.has_times) {
      one.packet = shown.packet(number);
      std::int64_t key = one.packet;
      while (key >= 0 && !(index.packets[static_cast<std::size_t>(key)].is_key &&
                           index.packets[static_cast<std::size_t>(key)].pts <= index.packets[one.packet].pts))
        --key;
      if (key < 0)
        return data_error("frame " + std::to_string(number) + " at " + seconds_text(shown.time(number)) +
                              " s of stream " + std::to_string(index.stream) + ": no key frame precedes it",
                          "decode");
      one.key = static_cast<std::uint32_t>(key);
    }
    wanted.push_back(one);
  }
  return {};
}

Result<void> ClipDecoder::Impl::run(const VideoIndex& index, PacketReader& reader, std::span<Wanted> run_wanted,
                                    Effort effort, const Sink& sink) {
  const PacketProbe probe(index);
  auto [begin, last] = packets_of(run_wanted);
  if (effort.starts_earlier) {
    while (begin > 0 && !index.packets[--begin].is_key) {
    }
  }
  damages.clear();
  const auto find = [&](std::int64_t number) {
    return std::ranges::find(run_wanted, number, [](const Wanted& one) { return std::int64_t{one.packet}; });
  };
  const auto take = [&](std::int64_t number) -> Result<void> {
    const auto found = find(number);
    if (found == run_wanted.end() || std::exchange(found->is_found, true)) return {};
    return give(index, *found, sink);
  };
  for (std::uint32_t number = begin; number <= last; ++number) {
    if (index.packets[number].bytes == 0) continue;  // an empty packet would end the stream
    const auto bytes = reader.read(number, last);
    if (!bytes) {
      if (bytes.error().code != ErrorCode::kData) return std::unexpected(bytes.error());
      damages.push_back({.packet = number, .what = bytes.error().what});
      break;
    }
    if (effort.drops && find(number) == run_wanted.end() && probe.is_unreferenced(*bytes)) continue;
    FEEDLINE_CHECK_OK(feed(number, *bytes, index.packets[number].is_key));
    FEEDLINE_CHECK_OK(receive(number, take));
  }
  library.send_packet(context, nullptr);
  FEEDLINE_CHECK_OK(receive(last, take));
  library.flush(context);
  return {};
}

// Without time stamps, frames are counted from the start of the file.
Result<void> ClipDecoder::Impl::run_in_order(const VideoIndex& index, PacketReader& reader, const Sink& sink) {
  std::uint64_t count = 0;
  auto next = wanted.begin();
  const auto take = [&](std::int64_t /*number*/) -> Result<void> {
    const std::uint64_t number = count++;
    if (next == wanted.end() || next->frame != number) return {};
    if (!damages.empty()) return {};
    next->is_found = true;
    return give(index, *next++, sink);
  };
  damages.clear();
  const auto packets = static_cast<std::uint32_t>(index.packets.size());
  for (std::uint32_t number = 0; number < packets && next != wanted.end(); ++number) {
    FEEDLINE_TRY(const auto bytes, reader.read(number, packets - 1));
    if (bytes.empty()) continue;
    FEEDLINE_CHECK_OK(feed(number, bytes, index.packets[number].is_key));
    FEEDLINE_CHECK_OK(receive(number, take));
  }
  if (next != wanted.end()) {
    library.send_packet(context, nullptr);
    FEEDLINE_CHECK_OK(receive(packets, take));
  }
  if (wanted.empty() || next == wanted.end()) return {};
  return data_error(
      "frame " + std::to_string(next->frame) + " of stream " + std::to_string(index.stream) + ": " +
          (damages.empty() ? "the decoder returned only " + std::to_string(count) + " frames" : damages.front().what),
      "decode");
}

ClipDecoder::ClipDecoder(const FfmpegLibrary& library) : impl_(std::make_unique<Impl>(library)) {}
ClipDecoder::~ClipDecoder() = default;
ClipDecoder::ClipDecoder(ClipDecoder&&) noexcept = default;
ClipDecoder& ClipDecoder::operator=(ClipDecoder&&) noexcept = default;

const ClipDecoder::Counts& ClipDecoder::counts() const { return impl_->counts; }

Result<void> ClipDecoder::decode(const VideoIndex& index, const ShownFrames& shown, const VideoFile& source,
                                 std::span<const std::uint64_t> frames, const Sink& sink) {
  Impl& impl = *impl_;
  FEEDLINE_CHECK_OK(impl.plan(index, shown, frames));
  FEEDLINE_CHECK_OK(impl.open(index));
  PacketReader reader(impl.library, index, source, impl.room);
  const auto all = [&]() -> Result<void> {
    if (!index.has_times) return impl.run_in_order(index, reader, sink);
    for (std::size_t first = 0; first < impl.wanted.size();) {
      const std::size_t end = impl.end_of_run(first);
      const auto run = std::span(impl.wanted).subspan(first, end - first);
      constexpr std::array kEfforts{Effort{}, Effort{.drops = false}, Effort{.drops = false, .starts_earlier = true}};
      for (const Effort effort : kEfforts) {
        FEEDLINE_CHECK_OK(impl.run(index, reader, run, effort, sink));
        if (!impl.damages.empty() || std::ranges::all_of(run, &Impl::Wanted::is_found)) break;
      }
      for (const Impl::Wanted& one : run) {
        const auto spoils = [&](const Impl::Damage& damage) {
          return one.key <= damage.packet && damage.packet <= one.packet;
        };
        const auto damage = std::ranges::find_if(impl.damages, spoils);
        if (damage == impl.damages.end() && one.is_found) continue;
        return data_error("frame " + std::to_string(one.frame) + " at " + seconds_text(shown.time(one.frame)) +
                              " s of stream " + std::to_string(index.stream) + ": " +
                              (damage != impl.damages.end() ? damage->what : "the decoder did not return it"),
                          "decode");
      }
      first = end;
    }
    return {};
  };
  auto done = all();
  impl.close();
  impl.counts.bytes_fetched += reader.fetched();
  impl.counts.bytes_used += reader.used();
  return done;
}

Result<std::vector<ByteRange>> ClipDecoder::find_ranges(const VideoIndex& index, const ShownFrames& shown,
                                                        std::span<const std::uint64_t> frames) {
  Impl& impl = *impl_;
  std::vector<ByteRange> ranges;
  if (index.is_sequential || !index.has_times) return ranges;
  FEEDLINE_CHECK_OK(impl.plan(index, shown, frames));
  for (std::size_t first = 0; first < impl.wanted.size();) {
    const std::size_t end = impl.end_of_run(first);
    const auto [begin, last] = Impl::packets_of(std::span(impl.wanted).subspan(first, end - first));
    add_ranges(index, begin, last, ranges);
    first = end;
  }
  return ranges;
}

Result<std::uint64_t> ClipDecoder::count_frames(const VideoIndex& index, const VideoFile& source) {
  Impl& impl = *impl_;
  FEEDLINE_CHECK_OK(impl.open(index));
  PacketReader reader(impl.library, index, source, impl.room);
  std::uint64_t count = 0;
  const auto take = [&](std::int64_t /*number*/) -> Result<void> {
    ++count;
    return {};
  };
  const auto packets = static_cast<std::uint32_t>(index.packets.size());
  Result<void> done;
  for (std::uint32_t number = 0; number < packets && done; ++number) {
    const auto bytes = reader.read(number, packets - 1);
    done = bytes ? impl.feed(number, *bytes, index.packets[number].is_key) : std::unexpected(bytes.error());
    if (done) done = impl.receive(number, take);
  }
  if (done) {
    impl.library.send_packet(impl.context, nullptr);
    done = impl.receive(packets, take);
  }
  impl.close();
  if (!done) return std::unexpected(done.error());
  return count;
}

Result<VideoIndex> make_video_index(const VideoFile& source, std::optional<int> stream) {
  std::array<std::byte, 16> head{};
  FEEDLINE_TRY(const std::size_t got, source.read_at(0, head));
  if (got == 0) return data_error("the file is empty", "format");
  if (is_mp4(std::span(head).first(got))) {
    FEEDLINE_TRY(auto index, read_mp4_index(source, stream));
    if (index) return *std::move(index);
  }
  const Result<FfmpegLibrary>& library = ffmpeg_library();
  if (!library) return std::unexpected(library.error());
  FEEDLINE_TRY(VideoIndex index, scan_video(*library, source, stream));
  if (!index.has_times) {
    FEEDLINE_TRY(const std::uint64_t count, ClipDecoder(*library).count_frames(index, source));
    index.end = static_cast<std::int64_t>(count);
  }
  return index;
}

}  // namespace feedline::decode
