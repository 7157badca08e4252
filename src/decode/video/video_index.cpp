// SPDX-License-Identifier: Apache-2.0
// A stored index, all numbers as variable-length integers (7 bits a byte, low bits first):
//
//   version, file_bytes, stream, codec (length, text), tag, extradata (length, bytes), width, height, time_num,
//   time_den, color_range, colorspace, orientation, reordered, flags (1 sequential, 2 has times), end*, packets (count)
//   for each packet: bytes * 4 + hidden * 2 + key, pts* - the previous pts, offset* - the end of the previous packet
//
// * signed numbers, with the sign as lowest bit. Typically 5 bytes a packet.
#include "decode/video/video_index.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace feedline::decode {
namespace {

constexpr std::uint64_t kVersion = 2;
constexpr std::uint64_t kSequential = 1, kHasTimes = 2;
constexpr std::int64_t kMostTime = std::int64_t{1} << 61;  // so that differences do not overflow

class Writer {
 public:
  explicit Writer(std::vector<std::byte>& out) : out_(out) {}
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) out_.push_back(static_cast<std::byte>(value | 0x80U));
    out_.push_back(static_cast<std::byte>(value));
  }
  void signed_number(std::int64_t value) {
    number(static_cast<std::uint64_t>(value) << 1U ^ static_cast<std::uint64_t>(value >> 63U));
  }
  void bytes(std::span<const std::byte> bytes) {
    number(bytes.size());
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }

 private:
  std::vector<std::byte>& out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> left) : left_(left) {}
  bool is_bad() const { return is_bad_; }
  std::size_t left() const { return left_.size(); }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) break;
      const auto byte = std::to_integer<std::uint64_t>(left_.front());
      left_ = left_.subspan(1);
      value |= (byte & 0x7fU) << shift;
      if (byte < 0x80) return value;
    }
    is_bad_ = true;
    return 0;
  }
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1U ^ (~(value & 1U) + 1));
  }
  template <typename T>
  T within(std::uint64_t least, std::uint64_t most) {
    const std::uint64_t value = number();
    if (value < least || value > most) is_bad_ = true;
    return static_cast<T>(value);
  }
  std::span<const std::byte> bytes() {
    const std::uint64_t size = number();
    if (size > left_.size()) is_bad_ = true;
    const auto taken = left_.first(is_bad_ ? 0 : size);
    left_ = left_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::byte> left_;
  bool is_bad_ = false;
};

// a + b without overflow, as differences are stored
std::int64_t sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t difference(std::uint64_t a, std::uint64_t b) { return static_cast<std::int64_t>(a - b); }

}  // namespace

std::vector<std::byte> write_video_index(const VideoIndex& index) {
  std::vector<std::byte> out;
  out.reserve(128 + index.extradata.size() + index.packets.size() * 6);
  Writer writer(out);
  writer.number(kVersion);
  writer.number(index.file_bytes);
  writer.number(static_cast<std::uint64_t>(index.stream));
  writer.bytes(std::as_bytes(std::span(index.codec)));
  writer.number(index.tag);
  writer.bytes(index.extradata);
  for (const std::int64_t number : {std::int64_t{index.width}, std::int64_t{index.height}, index.time_num,
                                    index.time_den, std::int64_t{index.color_range}, std::int64_t{index.colorspace},
                                    std::int64_t{index.orientation}, std::int64_t{index.reordered}})
    writer.number(static_cast<std::uint64_t>(number));
  writer.number((index.is_sequential ? kSequential : 0) | (index.has_times ? kHasTimes : 0));
  writer.signed_number(index.end);
  writer.number(index.packets.size());
  std::int64_t pts = 0;
  std::uint64_t end = 0;
  for (const VideoPacket& packet : index.packets) {
    writer.number(std::uint64_t{packet.bytes} << 2U | (packet.is_hidden ? 2U : 0U) | (packet.is_key ? 1U : 0U));
    writer.signed_number(difference(static_cast<std::uint64_t>(packet.pts), static_cast<std::uint64_t>(pts)));
    writer.signed_number(difference(packet.offset, end));
    pts = packet.pts;
    end = packet.offset + packet.bytes;
  }
  return out;
}

Result<VideoIndex> read_video_index(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  Reader reader(bytes);
  VideoIndex index;
  if (reader.number() != kVersion) return data_error("the stored index is of another version", "format");
  index.file_bytes = reader.number();
  index.stream = reader.within<int>(0, kMost);
  const auto codec = reader.bytes();
  index.codec.assign(reinterpret_cast<const char*>(codec.data()), codec.size());
  index.tag = reader.within<std::uint32_t>(0, 0xffffffff);
  const auto extradata = reader.bytes();
  index.extradata.assign(extradata.begin(), extradata.end());
  index.width = reader.within<int>(0, kMost);
  index.height = reader.within<int>(0, kMost);
  index.time_num = reader.within<std::int64_t>(1, kMost);
  index.time_den = reader.within<std::int64_t>(1, kMost);
  index.color_range = reader.within<int>(0, 255);
  index.colorspace = reader.within<int>(0, 255);
  index.orientation = reader.within<int>(1, 8);
  index.reordered = reader.within<std::uint32_t>(0, kMost);
  const auto flags = reader.within<std::uint64_t>(0, kSequential | kHasTimes);
  index.is_sequential = (flags & kSequential) != 0;
  index.has_times = (flags & kHasTimes) != 0;
  index.end = reader.signed_number();
  if (index.end > kMostTime || index.end < -kMostTime) return data_error("the stored index is damaged", "format");
  const std::uint64_t count = reader.number();
  if (!reader.is_bad() && count <= reader.left() / 3) {  // a packet has at least 3 bytes
    index.packets.reserve(count);
    std::int64_t pts = 0;
    std::uint64_t end = 0;
    for (std::uint64_t i = 0; i < count && !reader.is_bad(); ++i) {
      const auto head = reader.within<std::uint64_t>(0, std::uint64_t{0xffffffff} << 2U | 3U);
      VideoPacket packet;
      packet.bytes = static_cast<std::uint32_t>(head >> 2U);
      packet.is_hidden = (head & 2U) != 0;
      packet.is_key = (head & 1U) != 0;
      pts = packet.pts = sum(pts, reader.signed_number());
      if (pts > kMostTime || pts < -kMostTime) return data_error("the stored index is damaged", "format");
      packet.offset = end + static_cast<std::uint64_t>(reader.signed_number());
      end = packet.offset + packet.bytes;
      index.packets.push_back(packet);
    }
    if (!reader.is_bad() && reader.left() == 0) return index;
  }
  return data_error("the stored index is damaged", "format");
}

ShownFrames::ShownFrames(const VideoIndex& index) : index_(index) {
  if (!index.has_times) return;
  packets_.reserve(index.packets.size());
  for (std::uint32_t i = 0; i < index.packets.size(); ++i)
    if (!index.packets[i].is_hidden) packets_.push_back(i);
  std::ranges::stable_sort(packets_, {}, [&](std::uint32_t packet) { return index.packets[packet].pts; });
}

double ShownFrames::seconds(std::int64_t units) const {
  return static_cast<double>(units) * static_cast<double>(index_.time_num) / static_cast<double>(index_.time_den);
}

double ShownFrames::time(std::uint64_t frame) const {
  return seconds(index_.packets[packet(frame)].pts - index_.packets[packet(0)].pts);
}

double ShownFrames::end(std::uint64_t frame) const { return frame + 1 < count() ? time(frame + 1) : duration(); }

double ShownFrames::start() const { return seconds(index_.packets[packet(0)].pts); }

double ShownFrames::duration() const {
  if (count() == 0) return 0;
  return seconds(index_.end - index_.packets[packet(0)].pts);
}

std::optional<std::uint64_t> ShownFrames::at(double seconds) const {
  constexpr double kSame = 1e-4;
  if (packets_.empty()) return {};
  const std::int64_t first = index_.packets[packet(0)].pts;
  const double passed =
      std::floor(seconds * static_cast<double>(index_.time_den) / static_cast<double>(index_.time_num) + kSame);
  if (!(passed >= 0 && passed < static_cast<double>(index_.end - first))) return {};
  const std::int64_t pts = first + static_cast<std::int64_t>(passed);
  const auto next =
      std::ranges::upper_bound(packets_, pts, {}, [&](std::uint32_t packet) { return index_.packets[packet].pts; });
  return static_cast<std::uint64_t>(next - packets_.begin()) - 1;
}

void finish_index(VideoIndex& index, std::int64_t last) {
  if (!index.has_times) return;
  const ShownFrames frames(index);
  if (frames.count() == 0) return;
  // a packet's place among the packets, less its place among the frames, counts the frames that wait for it
  std::vector<std::uint32_t> order(index.packets.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t packet) { return index.packets[packet].pts; });
  constexpr std::uint32_t kMostReordered = 16;  // of H.264 and HEVC
  index.reordered = 0;
  for (std::uint32_t i = 0; i < order.size(); ++i)
    if (order[i] > i) index.reordered = std::max(index.reordered, std::min(order[i] - i, kMostReordered));
  const std::int64_t final_pts = index.packets[frames.packet(frames.count() - 1)].pts;
  if (last <= 0 && frames.count() > 1) last = final_pts - index.packets[frames.packet(frames.count() - 2)].pts;
  index.end = final_pts + std::max<std::int64_t>(last, 1);
}

}  // namespace feedline::decode
