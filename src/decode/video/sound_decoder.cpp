// SPDX-License-Identifier: Apache-2.0
#include "decode/video/sound_decoder.h"

#include <cstring>
#include <limits>
#include <type_traits>

namespace feedline::decode {
namespace {

// AVSampleFormat's values. Names that end in s have one plane per channel.
enum SampleFormat : int { kU8, kS16, kS32, kFloat, kDouble, kU8s, kS16s, kS32s, kFloats, kDoubles, kS64, kS64s };

template <typename T>
float to_float(T value) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<float>(value);
  if constexpr (std::is_same_v<T, std::uint8_t>) return static_cast<float>(value - 128) / 128.0F;
  constexpr double kScale = 1.0 / (static_cast<double>(std::numeric_limits<T>::max()) + 1.0);
  return static_cast<float>(static_cast<double>(value) * kScale);
}

// Reads sample i of channel c.
template <typename T>
void interleave(const std::uint8_t* const* planes, bool is_planar, std::uint32_t channels, std::uint64_t begin,
                std::uint64_t frames, float* out) {
  for (std::uint32_t c = 0; c < channels; ++c) {
    const std::uint8_t* const plane = is_planar ? planes[c] : planes[0] + c * sizeof(T);
    const std::size_t step = is_planar ? sizeof(T) : channels * sizeof(T);
    for (std::uint64_t i = 0; i < frames; ++i) out[i * channels + c] = to_float(member<T>(plane, (begin + i) * step));
  }
}

}  // namespace

SoundDecoder::~SoundDecoder() {
  if (context_ != nullptr) library_.context_free(&context_);
  if (packet_ != nullptr) {
    set_member<void*>(packet_, library_.layout.packet.data, nullptr);
    library_.packet_free(&packet_);
  }
  if (frame_ != nullptr) library_.frame_free(&frame_);
}

Result<void> SoundDecoder::begin(int codec) {
  codec_ = library_.find_decoder(codec);
  if (codec_ == nullptr)
    return data_error("this FFmpeg (" + library_.version + ") has no decoder for " + library_.codec_name(codec) +
                          ": install a full build, or convert the sound, for example to AAC",
                      "decode");
  packet_ = library_.packet_alloc();
  frame_ = library_.frame_alloc();
  context_ = library_.context_alloc(codec_);
  if (packet_ == nullptr || frame_ == nullptr || context_ == nullptr)
    return data_error("no memory for a sound decoder", "decode");
  return {};
}

Result<void> SoundDecoder::finish_open() {
  library_.opt_set_int(context_, "threads", 1, 0);
  if (output_ == Output::kAll) library_.opt_set(context_, "flags2", "+skip_manual", 0);
  const int error = library_.codec_open(context_, codec_, nullptr);
  if (error < 0) return data_error("the sound decoder refuses the stream: " + library_.describe(error), "decode");
  return {};
}

Result<void> SoundDecoder::open(const ffmpeg::CodecParameters* parameters) {
  FEEDLINE_CHECK_OK(begin(member<int>(parameters, library_.layout.parameters.codec)));
  library_.parameters_to_context(context_, parameters);
  return finish_open();
}

Result<void> SoundDecoder::open(const SoundTrack& track) {
  const ffmpeg::CodecDescriptor* const descriptor = library_.descriptor_by_name(track.stream.codec.c_str());
  FEEDLINE_CHECK_OK(begin(descriptor != nullptr ? member<int>(descriptor, 0) : 0));
  ffmpeg::CodecParameters* parameters = library_.parameters_alloc();
  if (parameters == nullptr) return data_error("no memory for a sound decoder", "decode");
  const auto& at = library_.layout.parameters;
  const auto& header = track.stream.extradata;
  set_member<int>(parameters, at.type, ffmpeg::kSound);
  set_member<int>(parameters, at.codec, member<int>(descriptor, 0));
  set_member<std::uint32_t>(parameters, at.tag, track.stream.tag);
  if (!header.empty()) {
    void* const extradata = library_.malloc(header.size() + ffmpeg::kPaddingBytes);
    if (extradata != nullptr) {
      std::memset(static_cast<std::byte*>(extradata) + header.size(), 0, ffmpeg::kPaddingBytes);
      std::memcpy(extradata, header.data(), header.size());
      set_member<void*>(parameters, at.extradata, extradata);  // freed with them
      set_member<int>(parameters, at.extradata_bytes, static_cast<int>(header.size()));
    }
  }
  library_.parameters_to_context(context_, parameters);
  library_.parameters_free(&parameters);
  // needed by decoders of samples without a header (PCM); versions before 5.1 have only "ac"
  const std::string channels = std::to_string(track.channels);
  library_.opt_set_int(context_, "ar", track.rate, 0);
  if (library_.opt_set(context_, "ch_layout", (channels + " channels").c_str(), 0) < 0)
    library_.opt_set_int(context_, "ac", track.channels, 0);
  return finish_open();
}

Result<void> SoundDecoder::decode(std::int64_t packet, std::span<const std::byte> bytes, const Sink& sink,
                                  const Damage& damage) {
  const auto& at = library_.layout.packet;
  set_member<const std::byte*>(packet_, at.data, bytes.data());
  set_member<int>(packet_, at.size, static_cast<int>(bytes.size()));
  set_member<std::int64_t>(packet_, at.pts, packet);
  const int sent = library_.send_packet(context_, bytes.empty() ? nullptr : packet_);
  if (sent == ffmpeg::kNoMemory) return data_error("no memory for a packet", "decode");
  if (sent < 0 && sent != ffmpeg::kEndOfFile) damage(packet, library_.describe(sent));
  for (;;) {
    const int error = library_.receive_frame(context_, frame_);
    if (error == ffmpeg::kAgain || error == ffmpeg::kEndOfFile) return {};
    if (error == ffmpeg::kNoMemory) return data_error("no memory for decoded sound", "decode");
    if (error < 0) {
      damage(packet, library_.describe(error));
      return {};
    }
    const auto& of = library_.layout.frame;
    const auto number = member<std::int64_t>(frame_, of.pts);
    const Samples samples{number == ffmpeg::kNoTime ? packet : number,
                          static_cast<std::uint64_t>(member<int>(frame_, of.samples)),
                          static_cast<std::uint32_t>(member<int>(frame_, of.rate)),
                          static_cast<std::uint32_t>(member<int>(frame_, of.channels))};
    auto taken = sink(samples);
    library_.frame_unref(frame_);
    if (!taken) return taken;
  }
}

Result<void> SoundDecoder::copy(std::uint64_t begin, std::uint64_t frames, float* out) const {
  const auto& of = library_.layout.frame;
  const auto* const planes = member<const std::uint8_t* const*>(frame_, of.planes);
  const auto channels = static_cast<std::uint32_t>(member<int>(frame_, of.channels));
  const int format = member<int>(frame_, of.format);
  const bool is_planar = (format >= kU8s && format <= kDoubles) || format == kS64s;
  const auto write = [&]<typename T>(T) { interleave<T>(planes, is_planar, channels, begin, frames, out); };
  switch (format) {
    case kU8:
    case kU8s:
      write(std::uint8_t{});
      return {};
    case kS16:
    case kS16s:
      write(std::int16_t{});
      return {};
    case kS32:
    case kS32s:
      write(std::int32_t{});
      return {};
    case kFloat:
    case kFloats:
      write(float{});
      return {};
    case kDouble:
    case kDoubles:
      write(double{});
      return {};
    case kS64:
    case kS64s:
      write(std::int64_t{});
      return {};
    default:
      return data_error("the sound decoder's sample format " + std::to_string(format) + " is unknown", "decode");
  }
}

}  // namespace feedline::decode
