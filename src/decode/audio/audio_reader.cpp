// SPDX-License-Identifier: Apache-2.0
#include "decode/audio/audio_reader.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "decode/audio/flac_reader.h"
#include "decode/audio/mp3_frames.h"
#include "decode/audio/pcm_layout.h"
#include "decode/audio/pcm_reader.h"
#include "decode/audio/sndfile_library.h"
#include "decode/audio/sndfile_reader.h"
#include "decode/file_bytes.h"
#include "decode/video/sound_file.h"

namespace feedline::decode {
namespace {

enum class AudioDecoder : std::uint8_t { kNative, kSndfile, kFfmpeg };

struct AudioFormat {
  std::string_view name;
  std::string_view extensions[6] = {};                             // the usual one first, empty ones last
  Result<PcmLayout> (*read_header)(ByteSource& source) = nullptr;  // of PCM
  AudioDecoder decoder = AudioDecoder::kNative;
};

constexpr AudioFormat kFormats[] = {
    {"WAV", {"wav", "wave", "rf64", "bw64"}, read_wav_header},
    {"AIFF", {"aiff", "aif", "aifc"}, read_aiff_header},
    {"AU", {"au", "snd"}, read_au_header},
    {"FLAC", {"flac"}},
    {.name = "Vorbis", .extensions = {"ogg", "oga"}, .decoder = AudioDecoder::kSndfile},
    {.name = "Opus", .extensions = {"opus"}, .decoder = AudioDecoder::kSndfile},
    {.name = "MP3", .extensions = {"mp3", "mp2"}, .decoder = AudioDecoder::kSndfile},
    {.name = "W64", .extensions = {"w64"}, .decoder = AudioDecoder::kSndfile},
    {.name = "CAF", .extensions = {"caf"}, .decoder = AudioDecoder::kSndfile},
    {.name = "NIST", .extensions = {"sph", "nist"}, .decoder = AudioDecoder::kSndfile},
    {.name = "MP4", .extensions = {"m4a", "m4b"}, .decoder = AudioDecoder::kFfmpeg},
    {.name = "AAC", .extensions = {"aac"}, .decoder = AudioDecoder::kFfmpeg},
};

const AudioFormat& named(std::string_view name) { return *std::ranges::find(kFormats, name, &AudioFormat::name); }

const AudioFormat* of_extension(std::string_view extension) {
  if (extension.empty()) return nullptr;
  const auto* const found = std::ranges::find_if(kFormats, [&](const AudioFormat& format) {
    return std::ranges::find(format.extensions, extension) != std::end(format.extensions);
  });
  return found == std::end(kFormats) ? nullptr : found;
}

// AAC without a container.
bool is_adts(Bytes head) {
  return head.size() >= 2 && (number(head.first(2), true) & 0xFFF6U) == 0xFFF0;  // layer 0
}

// Returns the format whose signature matches, or nullptr. MP3 without a tag has no signature.
const AudioFormat* of_signature(Bytes head) {
  const auto is = [&](std::string_view first, std::string_view kind = {}) {
    return begins_with(head, first) && begins_with(part(head, 8), kind);
  };
  if (is("RIFF", "WAVE") || is("RF64", "WAVE") || is("BW64", "WAVE")) return &named("WAV");
  if (is("FORM", "AIFF") || is("FORM", "AIFC")) return &named("AIFF");
  if (is(".snd")) return &named("AU");
  if (is("fLaC")) return &named("FLAC");
  if (is("OggS")) return &named("Vorbis");
  if (is("riff\x2E\x91\xCF\x11")) return &named("W64");
  if (is("caff")) return &named("CAF");
  if (is("NIST_1A\n")) return &named("NIST");
  if (begins_with(part(head, 4), "ftyp")) return &named("MP4");
  if (is("ID3")) return &named("MP3");
  if (is_adts(head)) return &named("AAC");
  const auto mp3 = parse_mp3_header(head);
  return mp3 && mp3->frame_bytes > 0 ? &named("MP3") : nullptr;
}

std::string what_is(Bytes head) {
  if (begins_with(head, "\x30\x26\xB2\x75"))
    return "WMA is not supported; convert the file, for example with: ffmpeg -i in.wma out.flac";
  return "not an audio file: expected WAV, FLAC, Ogg, MP3, M4A, AIFF or AU";
}

}  // namespace

Result<std::unique_ptr<AudioReader>> open_audio(ByteSource& source) {
  constexpr std::size_t kHead = 64;
  FEEDLINE_TRY(const Bytes first, source.bytes(0, kHead));
  if (first.empty()) return data_error("an empty file", "decode");
  const AudioFormat* format = of_signature(first);
  if (format == nullptr) return data_error(what_is(first), "decode");
  if (format->name == "Vorbis") {
    const Bytes packet = part(first, 28);  // after the header of a page with one segment
    if (begins_with(packet, "OpusHead"))
      format = &named("Opus");
    else if (begins_with(packet,
                         "\x7F"
                         "FLAC"))
      format = &named("FLAC");
  }
  bool is_flac = begins_with(first, "fLaC");
  if (const std::uint64_t tag = id3_bytes(first); tag > 0) {
    FEEDLINE_TRY(const Bytes after, source.bytes(tag, 4));
    is_flac = begins_with(after, "fLaC");
    if (is_flac) format = &named("FLAC");
    if (is_adts(after)) format = &named("AAC");
  }
  std::unique_ptr<AudioReader> reader;
  if (format->read_header != nullptr) {
    FEEDLINE_TRY(const PcmLayout layout, format->read_header(source));
    if (layout.unsupported.empty()) {
      reader = std::make_unique<PcmReader>(source, layout);
    } else {
      auto opened = SndfileReader::open(source, format->name);
      if (!opened) {
        opened.error().what = std::string(format->name) + " with " + layout.unsupported + ": " + opened.error().what;
        return opened;
      }
      reader = std::move(*opened);
    }
  } else if (format->decoder == AudioDecoder::kFfmpeg) {
    auto opened = open_sound_file(source);
    if (!opened) {
      opened.error().what = std::string(format->name) + ": " + opened.error().what;
      return opened;
    }
    reader = std::move(*opened);
  } else {
    FEEDLINE_TRY(reader, is_flac ? FlacReader::open(source) : SndfileReader::open(source, format->name));
  }
  if (reader->info().frames == 0) return data_error(std::string(format->name) + ": the file has no samples", "decode");
  return reader;
}

std::string_view audio_extension(std::span<const std::byte> head) {
  const AudioFormat* const format = of_signature(head);
  return format == nullptr ? std::string_view() : format->extensions[0];
}

std::string_view audio_extension_to_store(std::span<const std::byte> file) {
  const std::string_view extension = audio_extension(file);
  return extension.empty() ? "bin" : extension;
}

bool is_audio_extension(std::string_view extension) { return of_extension(extension) != nullptr; }

std::vector<std::string_view> audio_extensions() {
  std::vector<std::string_view> all;
  for (const AudioFormat& format : kFormats)
    for (const std::string_view extension : format.extensions)
      if (!extension.empty()) all.push_back(extension);
  return all;
}

Result<void> check_audio_decoder(std::string_view extension) {
  const AudioFormat* const format = of_extension(extension);
  if (format != nullptr && format->decoder == AudioDecoder::kSndfile)
    if (const auto library = sndfile_library(); !library) return std::unexpected(library.error());
  if (format != nullptr && format->decoder == AudioDecoder::kFfmpeg) return check_sound_library();
  return {};
}

std::int16_t to_int16(float sample) {
  if (std::isnan(sample)) return 0;
  const float scaled = std::nearbyint(sample * 32768.0F);
  return static_cast<std::int16_t>(std::clamp(scaled, -32768.0F, 32767.0F));
}

}  // namespace feedline::decode
