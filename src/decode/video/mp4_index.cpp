// SPDX-License-Identifier: Apache-2.0
// A box is a length (4 bytes, or 1 and a length of 8 bytes after the type, or 0: to the end of the file), a type of
// four characters, and its content. These are read:
//
//   moov ─ mvhd  time scale of the movie              trak ─ tkhd      enabled?, rotation
//        ─ trak  a stream                                  ─ edts elst parts of the stream that are shown
//        ─ mvex trex  defaults of fragments                ─ mdia ─ mdhd  time scale
//   moof ─ traf ─ tfhd  defaults                                  ─ hdlr  video?
//               ─ tfdt  time of its first packet                  ─ minf stbl ─ stsd  codec, its header, colours
//               ─ trun  packets                                               ─ stts ctts  decoding time, delay
//                                                                             ─ stss       key frames
//                                                                             ─ stsz stsc stco  sizes, places
#include "decode/video/mp4_index.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "decode/file_bytes.h"
#include "decode/video/nal_units.h"

namespace feedline::decode {

Result<void> read_exactly(const VideoFile& source, std::uint64_t offset, std::span<std::byte> out) {
  FEEDLINE_TRY(const std::size_t got, source.read_at(offset, out));
  if (got == out.size()) return {};
  return data_error("the file ends at byte " + std::to_string(std::min(offset + got, source.size())) +
                        ", but its index names bytes up to " + std::to_string(offset + out.size()),
                    "storage");
}

namespace {

using Type = std::uint32_t;

constexpr Type type_of(const char (&text)[5]) {
  Type type = 0;
  for (std::size_t i = 0; i < 4; ++i) type = type << 8U | static_cast<unsigned char>(text[i]);
  return type;
}

std::unexpected<Error> damaged(const std::string& what) { return data_error("MP4: " + what, "format"); }

// Reads big-endian numbers. After the end, numbers are 0 and the cursor is bad.
class Cursor {
 public:
  explicit Cursor(Bytes left) : left_(left) {}
  Bytes left() const { return left_; }
  bool is_bad() const { return is_bad_; }
  Bytes take(std::uint64_t size) {
    if (size > left_.size()) {
      is_bad_ = true;
      left_ = {};
      return {};
    }
    const Bytes taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (const std::byte byte : take(bytes)) value = value << 8U | std::to_integer<std::uint64_t>(byte);
    return value;
  }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  // The version of a full box; the flags follow in `flags`.
  unsigned version(std::uint32_t* flags = nullptr) {
    const std::uint32_t both = u32();
    if (flags != nullptr) *flags = both & 0xffffffU;
    return both >> 24U;
  }
  // The number of entries of a table, each of which has at least `bytes` bytes.
  std::uint64_t count(std::size_t bytes) {
    const std::uint64_t entries = u32();
    if (entries <= left_.size() / bytes) return entries;
    is_bad_ = true;
    return 0;
  }

 private:
  Bytes left_;
  bool is_bad_ = false;
};

// Calls visit(type, content) for each box. A box that is longer than its parent ends with it, as in FFmpeg.
template <typename Visit>
Result<void> each_box(Bytes parent, Visit visit) {
  while (parent.size() >= 8) {
    Cursor cursor(parent);
    std::uint64_t size = cursor.u32();
    const Type type = cursor.u32();
    if (size == 1) size = cursor.number(8);
    const std::size_t head = parent.size() - cursor.left().size();
    if (size == 0) size = parent.size();
    if (size < head) return damaged("a box of " + std::to_string(size) + " bytes, less than its header");
    size = std::min<std::uint64_t>(size, parent.size());
    FEEDLINE_CHECK_OK(visit(type, parent.subspan(head, size - head)));
    parent = parent.subspan(size);
  }
  return {};
}

struct Edit {
  std::uint64_t duration = 0;   // in the movie's time scale
  std::int64_t media_time = 0;  // in the track's; -1: nothing is shown
};

struct Track {
  int number = 0;
  std::uint32_t id = 0;
  bool is_video = false, is_enabled = false, is_encrypted = false;
  bool is_readable = true;  // without FFmpeg
  std::uint32_t scale = 0, width = 0, height = 0;
  std::vector<Edit> edits;
  Bytes times, delays, keys, sizes, small_sizes, chunks, chunk_offsets, large_chunk_offsets;
  bool has_keys = false;
  std::uint32_t codec = 0;
  VideoIndex index;
  // fragments
  std::uint32_t default_duration = 0, default_size = 0, default_flags = 0;
  std::int64_t next_time = 0;
  std::int64_t last_duration = 0;
  std::vector<std::int64_t> durations;
};

struct Movie {
  std::uint32_t scale = 0;
  std::vector<Track> tracks;
  bool is_fragmented = false;
};

// ---- the description of a track ----

void read_track_header(Bytes content, Track& track) {
  Cursor cursor(content);
  std::uint32_t flags = 0;
  const bool is_long = cursor.version(&flags) == 1;
  track.is_enabled = (flags & 1U) != 0;
  cursor.take(is_long ? 16 : 8);
  track.id = cursor.u32();
  cursor.take(is_long ? 12 : 8);
  cursor.take(16);  // reserved, layer, group, volume
  std::array<std::int32_t, 9> matrix{};
  for (std::int32_t& value : matrix) value = cursor.i32();
  track.index.orientation = orientation_of_matrix(matrix);
}

Result<void> read_edits(Bytes content, Track& track) {
  Cursor cursor(content);
  const bool is_long = cursor.version() == 1;
  const std::uint64_t count = cursor.count(is_long ? 20 : 12);
  for (std::uint64_t i = 0; i < count; ++i) {
    Edit edit;
    edit.duration = cursor.number(is_long ? 8 : 4);
    edit.media_time = is_long ? static_cast<std::int64_t>(cursor.number(8)) : cursor.i32();
    cursor.take(4);  // rate
    track.edits.push_back(edit);
  }
  return cursor.is_bad() ? damaged("the edit list is truncated") : Result<void>();
}

std::uint64_t descriptor_length(Cursor& cursor) {
  std::uint64_t length = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t byte = cursor.number(1);
    length = length << 7U | (byte & 0x7fU);
    if (byte < 0x80) break;
  }
  return length;
}

// The elementary stream descriptor (ISO/IEC 14496-1, 7.2.6.5).
void read_elementary(Bytes content, VideoIndex& index) {
  constexpr unsigned kElementary = 3, kConfiguration = 4, kSpecific = 5, kMpeg4 = 0x20;
  Cursor cursor(content);
  cursor.version();
  if (cursor.number(1) != kElementary) return;
  descriptor_length(cursor);
  cursor.take(2);
  const std::uint64_t flags = cursor.number(1);
  if ((flags & 0x80U) != 0) cursor.take(2);
  if ((flags & 0x40U) != 0) cursor.take(cursor.number(1));
  if ((flags & 0x20U) != 0) cursor.take(2);
  if (cursor.number(1) != kConfiguration) return;
  descriptor_length(cursor);
  if (cursor.number(1) != kMpeg4) return;
  cursor.take(12);
  if (cursor.number(1) != kSpecific) return;
  const Bytes header = cursor.take(descriptor_length(cursor));
  if (cursor.is_bad()) return;
  index.codec = "mpeg4";
  index.extradata.assign(header.begin(), header.end());
}

void read_colours(Bytes content, VideoIndex& index) {
  Cursor cursor(content);
  const Type kind = cursor.u32();
  if (kind != type_of("nclx") && kind != type_of("nclc")) return;
  cursor.take(4);  // primaries, transfer
  const std::uint64_t matrix = cursor.number(2);
  const std::uint64_t range = kind == type_of("nclx") ? cursor.number(1) : 0;
  if (cursor.is_bad()) return;
  if (kind == type_of("nclx")) index.color_range = (range & 0x80U) != 0 ? 2 : 1;
  index.colorspace = matrix <= 14 ? static_cast<int>(matrix) : 2;  // the last one that FFmpeg knows
}

void read_vp9_colours(Bytes content, VideoIndex& index) {
  Cursor cursor(content);
  if (cursor.version() != 1) return;
  cursor.take(2);
  const std::uint64_t depth = cursor.number(1);
  cursor.take(2);
  const std::uint64_t matrix = cursor.number(1);
  if (cursor.is_bad()) return;
  index.color_range = (depth & 1U) != 0 ? 2 : 1;
  index.colorspace = matrix <= 14 ? static_cast<int>(matrix) : 2;
}

struct KnownCodec {
  Type type;
  const char* name;
  Type header;  // the box with its extradata; 0: it needs none
};
constexpr std::array kCodecs{
    KnownCodec{type_of("avc1"), "h264", type_of("avcC")}, KnownCodec{type_of("avc3"), "h264", type_of("avcC")},
    KnownCodec{type_of("hvc1"), "hevc", type_of("hvcC")}, KnownCodec{type_of("hev1"), "hevc", type_of("hvcC")},
    KnownCodec{type_of("av01"), "av1", type_of("av1C")},  KnownCodec{type_of("vp09"), "vp9", 0},
    KnownCodec{type_of("mp4v"), "mpeg4", type_of("esds")}};

Result<void> read_description(Bytes entry, Track& track) {
  constexpr std::size_t kVisual = 78;  // the sample entry before its boxes
  VideoIndex& index = track.index;
  Cursor cursor(entry);
  cursor.take(24);
  index.width = static_cast<int>(cursor.number(2));
  index.height = static_cast<int>(cursor.number(2));
  cursor.take(kVisual - 28);
  if (cursor.is_bad()) return damaged("the description of a video stream is truncated");
  const auto known = std::ranges::find(kCodecs, track.codec, &KnownCodec::type);
  track.is_readable = known != kCodecs.end();
  index.tag = static_cast<std::uint32_t>(number(std::as_bytes(std::span(&track.codec, 1)), true));
  bool has_header = track.is_readable && known->header == 0;
  if (has_header) index.codec = known->name;
  return each_box(cursor.left(), [&](Type type, Bytes content) -> Result<void> {
    if (type == type_of("colr")) read_colours(content, index);
    if (type == type_of("vpcC")) read_vp9_colours(content, index);
    if (!track.is_readable || type != known->header || has_header) return {};
    has_header = true;
    if (type == type_of("esds")) {
      read_elementary(content, index);
      track.is_readable = !index.codec.empty();
      return {};
    }
    index.codec = known->name;
    index.extradata.assign(content.begin(), content.end());
    return {};
  });
}

Result<void> read_descriptions(Bytes content, Track& track) {
  Cursor cursor(content);
  cursor.version();
  const std::uint32_t count = cursor.u32();
  if (count != 1) track.is_readable = false;
  bool is_first = true;
  return each_box(cursor.left(), [&](Type type, Bytes entry) -> Result<void> {
    if (!std::exchange(is_first, false) || !track.is_video) return {};
    track.codec = type;
    track.is_encrypted = type == type_of("encv") || type == type_of("drmi");
    if (track.is_encrypted) return {};
    const bool is_readable = track.is_readable;
    FEEDLINE_CHECK_OK(read_description(entry, track));
    track.is_readable = track.is_readable && is_readable && !track.index.codec.empty();
    return {};
  });
}

Result<void> read_tables(Bytes content, Track& track) {
  // stsd is first by the specification; hdlr precedes it
  return each_box(content, [&](Type type, Bytes box) -> Result<void> {
    const std::array<std::pair<Type, Bytes*>, 8> tables{{{type_of("stts"), &track.times},
                                                         {type_of("ctts"), &track.delays},
                                                         {type_of("stss"), &track.keys},
                                                         {type_of("stsz"), &track.sizes},
                                                         {type_of("stz2"), &track.small_sizes},
                                                         {type_of("stsc"), &track.chunks},
                                                         {type_of("stco"), &track.chunk_offsets},
                                                         {type_of("co64"), &track.large_chunk_offsets}}};
    if (type == type_of("stsd")) return read_descriptions(box, track);
    for (const auto& [name, table] : tables)
      if (name == type && table->data() == nullptr) *table = box;
    track.has_keys = track.has_keys || type == type_of("stss");
    return {};
  });
}

Result<void> read_media(Bytes content, Track& track) {
  Bytes information;
  FEEDLINE_CHECK_OK(each_box(content, [&](Type type, Bytes box) -> Result<void> {
    Cursor cursor(box);
    if (type == type_of("mdhd")) {
      const bool is_long = cursor.version() == 1;
      cursor.take(is_long ? 16 : 8);
      track.scale = cursor.u32();
    } else if (type == type_of("hdlr")) {
      cursor.version();
      cursor.take(4);
      track.is_video = cursor.u32() == type_of("vide");
    } else if (type == type_of("minf")) {
      information = box;
    }
    return {};
  }));
  return each_box(information, [&](Type type, Bytes box) -> Result<void> {
    return type == type_of("stbl") ? read_tables(box, track) : Result<void>();
  });
}

Result<void> read_track(Bytes content, Movie& movie) {
  Track track;
  track.number = static_cast<int>(movie.tracks.size());
  FEEDLINE_CHECK_OK(each_box(content, [&](Type type, Bytes box) -> Result<void> {
    if (type == type_of("tkhd")) read_track_header(box, track);
    if (type == type_of("mdia")) return read_media(box, track);
    if (type == type_of("edts"))
      return each_box(box, [&](Type inner, Bytes list) -> Result<void> {
        return inner == type_of("elst") ? read_edits(list, track) : Result<void>();
      });
    return {};
  }));
  track.index.stream = track.number;
  movie.tracks.push_back(std::move(track));
  return {};
}

Track* find_track(Movie& movie, std::uint32_t id) {
  const auto found = std::ranges::find(movie.tracks, id, &Track::id);
  return found == movie.tracks.end() ? nullptr : &*found;
}

Result<void> read_movie(Bytes content, Movie& movie) {
  std::vector<Bytes> extensions;
  FEEDLINE_CHECK_OK(each_box(content, [&](Type type, Bytes box) -> Result<void> {
    Cursor cursor(box);
    if (type == type_of("mvhd")) {
      cursor.take(cursor.version() == 1 ? 16 : 8);
      movie.scale = cursor.u32();
    } else if (type == type_of("trak")) {
      return read_track(box, movie);
    } else if (type == type_of("mvex")) {
      movie.is_fragmented = true;
      return each_box(box, [&](Type inner, Bytes defaults) -> Result<void> {
        if (inner == type_of("trex")) extensions.push_back(defaults);
        return {};
      });
    }
    return {};
  }));
  for (const Bytes defaults : extensions) {
    Cursor cursor(defaults);
    cursor.version();
    Track* const track = find_track(movie, cursor.u32());
    if (track == nullptr) continue;
    cursor.take(4);
    track->default_duration = cursor.u32();
    track->default_size = cursor.u32();
    track->default_flags = cursor.u32();
  }
  return {};
}

// ---- the packets of a track ----

Result<void> read_sizes(const Track& track, std::uint64_t file_bytes, std::vector<VideoPacket>& packets) {
  const bool is_small = track.sizes.data() == nullptr;
  Cursor cursor(is_small ? track.small_sizes : track.sizes);
  cursor.version();
  const std::uint32_t word = cursor.u32();
  const std::uint32_t each = is_small ? 0 : word;
  const unsigned bits = is_small ? word & 0xffU : 32;
  if (bits != 4 && bits != 8 && bits != 16 && bits != 32) return damaged("the table of packet sizes is damaged");
  const std::uint64_t count = cursor.u32();
  const bool is_sound = each > 0 ? count <= file_bytes / each : count <= cursor.left().size() * 8 / bits;
  if (cursor.is_bad() || !is_sound)
    return damaged("the table of packet sizes names " + std::to_string(count) + " packets, more than the file holds");
  packets.resize(count);
  std::uint64_t pair = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (each > 0) {
      packets[i].bytes = each;
    } else if (bits == 4) {
      if (i % 2 == 0) pair = cursor.number(1);
      packets[i].bytes = static_cast<std::uint32_t>(i % 2 == 0 ? pair >> 4U : pair & 15U);
    } else {
      packets[i].bytes = static_cast<std::uint32_t>(cursor.number(bits / 8));
    }
  }
  return {};
}

Result<void> read_offsets(const Track& track, std::vector<VideoPacket>& packets) {
  const bool is_large = track.large_chunk_offsets.data() != nullptr;
  Cursor offsets(is_large ? track.large_chunk_offsets : track.chunk_offsets);
  Cursor runs(track.chunks);
  offsets.version();
  runs.version();
  const std::uint64_t chunks = offsets.count(is_large ? 8 : 4);
  std::uint64_t runs_left = runs.count(12);
  std::uint64_t first = runs_left > 0 ? runs.u32() : 0;
  std::uint64_t packet = 0, in_chunk = 0;
  for (std::uint64_t chunk = 1; chunk <= chunks && packet < packets.size(); ++chunk) {
    while (runs_left > 0 && first <= chunk) {
      in_chunk = runs.u32();
      runs.take(4);  // the description
      first = --runs_left > 0 ? runs.u32() : std::numeric_limits<std::uint64_t>::max();
    }
    std::uint64_t offset = offsets.number(is_large ? 8 : 4);
    for (std::uint64_t i = 0; i < in_chunk && packet < packets.size(); ++i, ++packet) {
      packets[packet].offset = offset;
      offset += packets[packet].bytes;
    }
  }
  if (packet < packets.size() || offsets.is_bad() || runs.is_bad())
    return damaged("packet " + std::to_string(packet) + " of " + std::to_string(packets.size()) +
                   " has no position in the file");
  return {};
}

// Sets the packets' times: the sum of durations, plus the delay.
Result<void> read_times(Track& track, std::vector<VideoPacket>& packets) {
  Cursor times(track.times), delays(track.delays);
  times.version();
  const std::uint64_t runs = times.count(8);
  std::uint64_t delay_runs = 0;
  if (track.delays.data() != nullptr) {
    delays.version();
    delay_runs = delays.count(8);
  }
  std::int64_t time = 0;
  std::uint64_t packet = 0, delayed = 0;
  std::int64_t delay = 0;
  track.durations.resize(packets.size());
  const auto add = [&](std::int64_t duration) {
    while (delayed == 0 && delay_runs > 0) {
      delayed = delays.u32();
      delay = delays.i32();
      if (--delay_runs == 0 && delayed == 0) delay = 0;
    }
    if (delayed > 0)
      --delayed;
    else
      delay = 0;
    packets[packet].pts = time + delay;
    track.durations[packet++] = duration;
    time += duration;
  };
  std::int64_t duration = 0;
  for (std::uint64_t run = 0; run < runs; ++run) {
    const std::uint64_t count = times.u32();
    duration = times.i32();
    if (duration < 0) return damaged("a negative duration of packet " + std::to_string(packet));
    for (std::uint64_t i = 0; i < count && packet < packets.size(); ++i) add(duration);
  }
  while (packet < packets.size()) add(duration);  // as FFmpeg does
  if (times.is_bad() || delays.is_bad()) return damaged("the table of times is truncated");
  return {};
}

Result<void> read_keys(const Track& track, std::vector<VideoPacket>& packets) {
  if (!track.has_keys) {
    for (VideoPacket& packet : packets) packet.is_key = true;
    return {};
  }
  Cursor cursor(track.keys);
  cursor.version();
  const std::uint64_t count = cursor.count(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = cursor.u32();
    if (number >= 1 && number <= packets.size()) packets[number - 1].is_key = true;
  }
  if (count == 0)
    for (VideoPacket& packet : packets) packet.is_key = true;  // to be corrected by find_keys()
  return cursor.is_bad() ? damaged("the table of key frames is truncated") : Result<void>();
}

Result<void> read_packets(Track& track, std::uint64_t file_bytes) {
  std::vector<VideoPacket>& packets = track.index.packets;
  FEEDLINE_CHECK_OK(read_sizes(track, file_bytes, packets));
  FEEDLINE_CHECK_OK(read_offsets(track, packets));
  FEEDLINE_CHECK_OK(read_times(track, packets));
  FEEDLINE_CHECK_OK(read_keys(track, packets));
  for (std::size_t i = 0; i < packets.size(); ++i) {
    track.next_time += track.durations[i];
    packets[i].is_hidden = packets[i].bytes == 0;
  }
  return {};
}

// ---- fragments ----

struct Fragment {
  std::uint64_t offset = 0;    // of moof
  std::uint64_t implicit = 0;  // where the data of the next track begins
};

struct Defaults {
  std::uint64_t base = 0;
  std::uint32_t duration = 0, size = 0, flags = 0;
};

Result<void> read_run(Bytes content, const Defaults& defaults, Track& track, std::uint64_t& at) {
  constexpr std::uint32_t kOffset = 1, kFirstFlags = 4, kDuration = 0x100, kSize = 0x200, kFlags = 0x400,
                          kDelay = 0x800;
  constexpr std::uint32_t kNotKey = 0x10000, kDependsOnOthers = 0x1000000;
  Cursor cursor(content);
  std::uint32_t flags = 0;
  cursor.version(&flags);
  const std::uint64_t count = cursor.u32();
  if ((flags & kOffset) != 0) at = defaults.base + static_cast<std::uint64_t>(std::int64_t{cursor.i32()});
  const bool has_first = (flags & kFirstFlags) != 0;
  const std::uint32_t first_flags = has_first ? cursor.u32() : 0;
  std::size_t bytes = 0;
  for (const std::uint32_t flag : {kDuration, kSize, kFlags, kDelay}) bytes += (flags & flag) != 0 ? 4 : 0;
  // packets without an entry are bounded by their number in a file of this size
  const std::uint64_t most = bytes > 0 ? cursor.left().size() / bytes : track.index.file_bytes;
  if (count > most || (bytes == 0 && defaults.size == 0 && count > 0))
    return damaged("a fragment names " + std::to_string(count) + " packets, more than it holds");
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t duration = (flags & kDuration) != 0 ? cursor.u32() : defaults.duration;
    VideoPacket packet;
    packet.bytes = (flags & kSize) != 0 ? cursor.u32() : defaults.size;
    const std::uint32_t own_flags = (flags & kFlags) != 0 ? cursor.u32() : defaults.flags;
    const std::int64_t delay = (flags & kDelay) != 0 ? cursor.i32() : 0;
    packet.is_key = ((i == 0 && has_first ? first_flags : own_flags) & (kNotKey | kDependsOnOthers)) == 0;
    packet.pts = track.next_time + delay;
    packet.offset = at;
    packet.is_hidden = packet.bytes == 0;
    if (at > track.index.file_bytes) break;  // the file is truncated
    at += packet.bytes;
    track.next_time += duration;
    track.durations.push_back(duration);
    track.index.packets.push_back(packet);
  }
  return {};
}

Result<void> read_track_fragment(Bytes content, Fragment& fragment, Movie& movie) {
  constexpr std::uint32_t kBase = 1, kDescription = 2, kDuration = 8, kSize = 0x10, kFlags = 0x20, kFromMoof = 0x20000;
  Track* track = nullptr;
  Defaults defaults;
  std::uint64_t at = 0;
  FEEDLINE_CHECK_OK(each_box(content, [&](Type type, Bytes box) -> Result<void> {
    Cursor cursor(box);
    std::uint32_t flags = 0;
    if (type == type_of("tfhd")) {
      cursor.version(&flags);
      track = find_track(movie, cursor.u32());
      if (track == nullptr) return {};
      defaults = {(flags & kFromMoof) != 0 ? fragment.offset : fragment.implicit, track->default_duration,
                  track->default_size, track->default_flags};
      if ((flags & kBase) != 0) defaults.base = cursor.number(8);
      if ((flags & kDescription) != 0) cursor.take(4);
      if ((flags & kDuration) != 0) defaults.duration = cursor.u32();
      if ((flags & kSize) != 0) defaults.size = cursor.u32();
      if ((flags & kFlags) != 0) defaults.flags = cursor.u32();
      if (cursor.is_bad()) return damaged("the header of a fragment is truncated");
      at = defaults.base;
    } else if (type == type_of("tfdt") && track != nullptr) {
      const bool is_long = cursor.version() == 1;
      const std::uint64_t time = cursor.number(is_long ? 8 : 4);
      if (time > std::numeric_limits<std::int64_t>::max() / 8) return damaged("the time of a fragment is out of range");
      track->next_time = static_cast<std::int64_t>(time);
    } else if (type == type_of("trun") && track != nullptr) {
      return read_run(box, defaults, *track, at);
    }
    return {};
  }));
  fragment.implicit = at;
  return {};
}

Result<void> read_fragment(Bytes content, std::uint64_t offset, Movie& movie) {
  Fragment fragment{offset, offset};
  return each_box(content, [&](Type type, Bytes box) -> Result<void> {
    return type == type_of("traf") ? read_track_fragment(box, fragment, movie) : Result<void>();
  });
}

// ---- edits ----

std::int64_t rescale(std::uint64_t value, std::uint32_t to, std::uint32_t from) {
  const auto scaled = (static_cast<unsigned __int128>(value) * to + from / 2) / std::max(from, 1U);
  return static_cast<std::int64_t>(std::min<unsigned __int128>(scaled, std::numeric_limits<std::int64_t>::max() / 2));
}

// The packets between the last key frame before the part and its end.
void add_part(const std::vector<VideoPacket>& packets, const Edit& edit, std::int64_t duration, std::int64_t begin,
              std::vector<VideoPacket>& shown) {
  const auto is_inside = [&](const VideoPacket& packet) {
    return !packet.is_hidden && packet.pts >= edit.media_time && packet.pts - edit.media_time < duration;
  };
  std::size_t first = packets.size(), last = 0;
  for (std::size_t i = 0; i < packets.size(); ++i)
    if (is_inside(packets[i])) {
      first = std::min(first, i);
      last = i;
    }
  if (first == packets.size()) return;
  std::int64_t least = packets[first].pts;
  for (std::size_t i = first; i <= last; ++i)
    if (is_inside(packets[i])) least = std::min(least, packets[i].pts);
  while (first > 0 && !(packets[first].is_key && packets[first].pts <= least)) --first;
  for (std::size_t i = first; i <= last; ++i) {
    VideoPacket packet = packets[i];
    packet.is_hidden = !is_inside(packet);
    packet.pts += begin - edit.media_time;
    shown.push_back(packet);
  }
}

// Hides the packets that the edit list excludes. A fragmented file's list only shifts times, as in FFmpeg.
Result<void> apply_edits(const Track& track, const Movie& movie, VideoIndex& index) {
  if (track.edits.empty()) return {};
  if (movie.is_fragmented) {
    const bool has_delay = track.edits.front().media_time < 0;
    std::int64_t shift = has_delay ? rescale(track.edits.front().duration, track.scale, movie.scale) : 0;
    if (track.edits.size() > (has_delay ? 1 : 0)) shift -= std::max<std::int64_t>(track.edits[has_delay].media_time, 0);
    if (std::abs(shift) > std::numeric_limits<std::int64_t>::max() / 8)
      return damaged("the edit list's times are out of range");
    for (VideoPacket& packet : index.packets) packet.pts += shift;
    return {};
  }
  constexpr std::size_t kMostEdits = 1000;
  if (track.edits.size() > kMostEdits)
    return damaged("an edit list of " + std::to_string(track.edits.size()) + " parts; up to 1000 are supported");
  std::vector<VideoPacket> shown;
  std::int64_t begin = 0, empty = 0;
  for (const Edit& edit : track.edits) {
    // 0: to the end
    const std::int64_t duration = edit.duration == 0 ? std::numeric_limits<std::int64_t>::max()
                                                     : rescale(edit.duration, track.scale, movie.scale);
    if (edit.media_time >= 0) add_part(index.packets, edit, duration, begin, shown);
    if (edit.media_time < 0) empty += duration;
    if (edit.duration != 0) begin += duration;
    if (begin > std::numeric_limits<std::int64_t>::max() / 4) return damaged("the edit list's times are out of range");
    constexpr std::size_t kMostTimes = 16;
    if (shown.size() > index.packets.size() * kMostTimes)
      return damaged("the edit list repeats the same packets more than " + std::to_string(kMostTimes) + " times");
  }
  // a part that begins within a frame begins with the next frame, without a gap, as in FFmpeg
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const VideoPacket& packet : shown)
    if (!packet.is_hidden) first = std::min(first, packet.pts);
  if (first > empty && first != std::numeric_limits<std::int64_t>::max())
    for (VideoPacket& packet : shown) packet.pts -= first - empty;
  index.packets = std::move(shown);
  return {};
}

// ---- the file ----

// FFmpeg's order: enabled, more than a few frames, bytes per second, frames.
const Track* best_of(const Movie& movie) {
  const Track* best = nullptr;
  const auto rank = [](const Track& track) {
    std::uint64_t bytes = 0;
    for (const VideoPacket& packet : track.index.packets) bytes += packet.bytes;
    const double seconds = static_cast<double>(track.next_time) / std::max(track.scale, 1U);
    const std::size_t frames = track.index.packets.size();
    return std::tuple(track.is_enabled, std::min<std::size_t>(frames, 5),
                      seconds > 0 ? static_cast<double>(bytes) / seconds : 0.0, frames);
  };
  for (const Track& track : movie.tracks)
    if (track.is_video && (best == nullptr || rank(track) > rank(*best))) best = &track;
  return best;
}

Result<const Track*> choose(const Movie& movie, std::optional<int> stream) {
  if (!stream) {
    const Track* const best = best_of(movie);
    if (best == nullptr) return data_error("the file has no video stream", "format");
    return best;
  }
  const auto found = std::ranges::find(movie.tracks, *stream, &Track::number);
  if (found != movie.tracks.end() && found->is_video) return &*found;
  std::string videos;
  for (const Track& track : movie.tracks)
    if (track.is_video) videos += (videos.empty() ? "" : ", ") + std::to_string(track.number);
  return data_error("stream " + std::to_string(*stream) +
                        " is not a video stream of the file; its video streams: " + (videos.empty() ? "none" : videos),
                    "format");
}

constexpr std::array kFirstBoxes{type_of("ftyp"), type_of("moov"), type_of("mdat"), type_of("free"), type_of("skip"),
                                 type_of("wide"), type_of("pnot"), type_of("styp"), type_of("moof"), type_of("uuid")};

// Reads the boxes of the file, except the media data.
Result<Movie> read_file(const VideoFile& source) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // a movie of 8 hours has about 20 MB of tables
  Movie movie;
  bool has_movie = false;
  std::vector<std::byte> buffer, first_buffer;
  const std::uint64_t size = source.size();
  for (std::uint64_t at = 0; at + 8 <= size;) {
    std::array<std::byte, 16> bytes{};
    const std::size_t available = std::min<std::uint64_t>(bytes.size(), size - at);
    FEEDLINE_CHECK_OK(read_exactly(source, at, std::span(bytes).first(available)));
    Cursor cursor(std::span<const std::byte>(bytes).first(available));
    std::uint64_t box = cursor.u32();
    const Type type = cursor.u32();
    std::uint64_t head = 8;
    if (box == 1) {
      box = cursor.number(8);
      head = 16;
    }
    if (box == 0) box = size - at;
    if (box < head) return damaged("a box of " + std::to_string(box) + " bytes at byte " + std::to_string(at));
    const bool is_movie = type == type_of("moov") && !has_movie;
    if (is_movie || (type == type_of("moof") && has_movie)) {
      if (box > size - at) {
        if (!is_movie) break;  // a truncated fragment: its packets are missing
        return damaged("the file ends within its index (moov): it is truncated");
      }
      if (box > kMostBytes) return damaged("an index of " + std::to_string(box) + " bytes, over 1 GiB");
      std::vector<std::byte>& content = is_movie ? first_buffer : buffer;  // the tracks' tables point into it
      content.resize(box - head);
      FEEDLINE_CHECK_OK(read_exactly(source, at + head, content));
      if (is_movie) {
        has_movie = true;
        FEEDLINE_CHECK_OK(read_movie(content, movie));
        for (Track& track : movie.tracks) {
          track.index.file_bytes = size;
          if (track.is_video && !track.is_encrypted && !(track.sizes.empty() && track.small_sizes.empty()))
            FEEDLINE_CHECK_OK(read_packets(track, size));
        }
      } else {
        FEEDLINE_CHECK_OK(read_fragment(content, at, movie));
      }
    }
    if (box > size - at) break;
    at += box;
  }
  if (!has_movie) return damaged("the file has no index (moov): it is truncated, or was not finished when written");
  return movie;
}

}  // namespace

int orientation_of_matrix(std::span<const std::int32_t, 9> matrix) {
  const auto sign = [](std::int32_t value) { return value > 0 ? 1 : value < 0 ? -1 : 0; };
  const int a = sign(matrix[0]), b = sign(matrix[1]), c = sign(matrix[3]), d = sign(matrix[4]);
  if (b == 0 && c == 0) return a < 0 ? (d < 0 ? 3 : 2) : (d < 0 ? 4 : 1);
  if (a == 0 && d == 0) return b > 0 ? (c < 0 ? 6 : 5) : (c < 0 ? 7 : 8);
  return 1;
}

bool is_mp4(Bytes head) {
  return head.size() >= 8 && std::ranges::find(kFirstBoxes, number(head.subspan(4, 4), true)) != kFirstBoxes.end();
}

Result<std::optional<VideoIndex>> read_mp4_index(const VideoFile& source, std::optional<int> stream) {
  FEEDLINE_TRY(const Movie movie, read_file(source));
  FEEDLINE_TRY(const Track* const track, choose(movie, stream));
  if (track->is_encrypted)
    return data_error("stream " + std::to_string(track->number) + " is encrypted; decrypt the file first", "format");
  if (track->scale == 0 || track->scale > std::numeric_limits<std::int32_t>::max())
    return damaged("stream " + std::to_string(track->number) + " has no time scale");
  if (!track->is_readable) return std::optional<VideoIndex>();
  VideoIndex index = track->index;
  index.time_num = 1;
  index.time_den = track->scale;
  FEEDLINE_CHECK_OK(find_keys(source, index));
  FEEDLINE_CHECK_OK(apply_edits(*track, movie, index));
  finish_index(index, track->durations.empty() ? 0 : track->durations.back());
  return index;
}

Result<void> find_keys(const VideoFile& source, VideoIndex& index) {
  const PacketProbe probe(index);
  const bool are_all = std::ranges::all_of(index.packets, &VideoPacket::is_key);
  if (!are_all || index.packets.size() < 2 || !probe.knows_keys()) return {};
  std::vector<std::byte> bytes;
  for (VideoPacket& packet : index.packets) {
    if (packet.offset > index.file_bytes || packet.bytes > index.file_bytes - packet.offset) continue;
    bytes.resize(packet.bytes);
    FEEDLINE_CHECK_OK(read_exactly(source, packet.offset, bytes));
    packet.is_key = probe.is_key(bytes);
  }
  return {};
}

}  // namespace feedline::decode
