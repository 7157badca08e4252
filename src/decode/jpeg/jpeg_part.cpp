// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/jpeg_part.h"

#include <algorithm>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "decode/image_formats.h"
#include "decode/jpeg/baseline/baseline_decoder.h"
#include "decode/jpeg/baseline/baseline_frame.h"
#include "decode/jpeg/checkpoint_store.h"
#include "decode/orientation.h"

namespace feedline::decode {
namespace {

using Bytes = std::span<const std::byte>;

// At 1 Gbit/s, this number of bytes takes a millisecond, less than most requests.
constexpr std::size_t kLeastFile = 128 << 10;
// An outline takes at most about this part of its file.
constexpr std::size_t kMostShare = 100, kLeastHead = 1024;
// Enough for the directory of EXIF data with the orientation; thumbnails follow it.
constexpr std::size_t kMostExif = 512;
// A range of more than 3/4 of the file saves too little.
constexpr std::uint64_t kMostOfRange = 3, kMostOfFile = 4;
// Bits at a position may be in a 0xFF byte, which a zero follows.
constexpr std::uint64_t kAfterPosition = 2;

constexpr std::array kEndMarker{std::byte{0xFF}, std::byte{0xD9}};
constexpr unsigned kBaseline = 0xC0, kExtended = 0xC1, kHuffman = 0xC4, kScan = 0xDA, kQuantisation = 0xDB,
                   kRestarts = 0xDD;
constexpr unsigned kFirstApp = 0xE0, kExif = 0xE1, kAdobe = 0xEE, kLastApp = 0xEF, kComment = 0xFE;

unsigned byte_at(Bytes bytes, std::size_t at) { return std::to_integer<unsigned>(bytes[at]); }

struct Head {
  std::vector<std::byte> bytes;  // the bytes that decoding needs
  std::size_t scan = 0;          // where the scan's data begins in the file
};

void append(std::vector<std::byte>& to, Bytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

// Returns nullopt for files with unusual segments, whose ranges are not read.
std::optional<Head> head_of(Bytes file) {
  if (file.size() < 4) return std::nullopt;
  Head head;
  append(head.bytes, file.first(2));
  for (std::size_t at = 2; at + 4 <= file.size();) {
    const unsigned marker = byte_at(file, at + 1);
    const std::size_t length = byte_at(file, at + 2) << 8 | byte_at(file, at + 3), end = at + 2 + length;
    if (byte_at(file, at) != 0xFF || length < 2 || end > file.size()) return std::nullopt;
    const Bytes segment = file.subspan(at, 2 + length);
    const bool is_app = marker >= kFirstApp && marker <= kLastApp;
    constexpr std::array kPlain{kBaseline, kExtended, kHuffman, kScan, kQuantisation, kRestarts, kComment};
    if (!is_app && std::ranges::find(kPlain, marker) == kPlain.end()) return std::nullopt;
    if (marker == kExif && length > kMostExif) {
      append(head.bytes, segment.first(2));
      head.bytes.push_back(static_cast<std::byte>(kMostExif >> 8));
      head.bytes.push_back(static_cast<std::byte>(kMostExif & 0xFF));
      append(head.bytes, segment.subspan(4, kMostExif - 2));
    } else if ((!is_app && marker != kComment) || marker == kFirstApp || marker == kExif || marker == kAdobe) {
      append(head.bytes, segment);
    }
    at = end;
    if (marker != kScan) continue;
    head.scan = at;
    return head;
  }
  return std::nullopt;
}

std::uint64_t sum_of(Bytes stored) { return XXH3_64bits(stored.data(), stored.size()); }

constexpr std::size_t kNumbers = 8;  // before the head

}  // namespace

std::optional<JpegOutline> outline_of(Bytes file) {
  if (file.size() < kLeastFile) return std::nullopt;
  auto head = head_of(file);
  if (!head || head->bytes.size() > std::max(file.size() / kMostShare, kLeastHead)) return std::nullopt;
  append(head->bytes, kEndMarker);
  const ImageFormat& jpeg = image_format("jpeg");
  if (exif_orientation(jpeg, head->bytes) != exif_orientation(jpeg, file)) return std::nullopt;
  JpegOutline outline{.bytes = file.size(), .scan = head->scan, .key = checkpoint_key(file, head->scan)};
  outline.head = std::move(head->bytes);
  const std::size_t size = digested_bytes(file.size());
  for (std::size_t at = 0; at < file.size(); at += size)
    outline.digests.push_back(digest_of_segment(file.subspan(at, std::min(size, file.size() - at))));
  return outline;
}

//      0  8      XXH3-64 of the rest
//      8  8 x 7  version, bytes, scan, key, bytes of the head, number of digests
//     64  ...    head
//         8 x n  digests
std::vector<std::byte> to_bytes(const JpegOutline& outline) {
  std::array<std::uint64_t, kNumbers> numbers{
      0,           outline.version[0],  outline.version[1],     outline.bytes, outline.scan,
      outline.key, outline.head.size(), outline.digests.size(),
  };
  std::vector<std::byte> stored;
  append(stored, std::as_bytes(std::span(numbers)));
  append(stored, outline.head);
  append(stored, std::as_bytes(std::span(outline.digests)));
  numbers[0] = sum_of(Bytes(stored).subspan(sizeof numbers[0]));
  std::memcpy(stored.data(), numbers.data(), sizeof numbers[0]);
  return stored;
}

std::optional<JpegOutline> read_outline(Bytes stored) {
  std::array<std::uint64_t, kNumbers> numbers{};
  if (stored.size() < sizeof numbers) return std::nullopt;
  std::memcpy(numbers.data(), stored.data(), sizeof numbers);
  if (numbers[0] != sum_of(stored.subspan(sizeof numbers[0]))) return std::nullopt;
  const Bytes rest = stored.subspan(sizeof numbers);
  const std::uint64_t head = numbers[6], digests = numbers[7];
  if (head > rest.size() || digests != (rest.size() - head) / 8 || (rest.size() - head) % 8 != 0) return std::nullopt;
  JpegOutline outline{{numbers[1], numbers[2]}, numbers[3], numbers[4], numbers[5], {}, {}};
  if (outline.bytes == 0 || outline.scan >= outline.bytes ||
      digests != (outline.bytes - 1) / digested_bytes(outline.bytes) + 1)
    return std::nullopt;
  append(outline.head, rest.first(head));
  outline.digests.resize(digests);
  std::memcpy(outline.digests.data(), rest.data() + head, rest.size() - head);
  return outline;
}

bool JpegPart::fill(Bytes range) {
  if (range.size() != end - begin) return false;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const std::size_t at = i * segment;
    if (digest_of_segment(range.subspan(at, std::min(segment, range.size() - at))) != digests[i]) return false;
  }
  const Bytes data = range.subspan(static_cast<std::size_t>(std::max(begin, scan) - begin));
  file.reserve(file.size() + data.size() + kEndMarker.size());
  append(file, data);
  append(file, kEndMarker);
  return true;
}

std::uint64_t JpegPart::held_bytes() const {
  return checkpoints.known.capacity() * sizeof(Checkpoint) + std::max<std::uint64_t>(file.capacity(), end - begin);
}

std::shared_ptr<JpegPart> find_jpeg_part(const baseline::Frame& frame, const Box& region, const JpegOutline& outline,
                                         bool is_same_file, const CheckpointStore& store) {
  const auto reach = baseline::BaselineDecoder::reach_of(frame, region);
  if (reach.skipped < kLeastSkippedMcus) return nullptr;
  const auto grid = checkpoint_grid(frame.mcus_across(), frame.mcus_down(), outline.bytes);
  std::vector<std::byte> entry;
  if (!grid || !store.find(outline.key, entry)) return nullptr;
  auto part = std::make_shared<JpegPart>();
  Checkpoints& checkpoints = part->checkpoints;
  if (!read_checkpoints(entry, *grid, outline.bytes, outline.scan, checkpoints)) return nullptr;
  const bool is_to_end = reach.end_mcu == grid->across * grid->down;
  // rows of MCUs begin with a checkpoint
  const std::size_t last = is_to_end ? checkpoints.grid.size() - 1 : checkpoints.grid.last_before(reach.end_mcu);
  if (last >= checkpoints.known.size()) return nullptr;
  const auto position_of = [&](std::size_t i) { return outline.scan + checkpoints.known[i].bit / 8; };
  const std::uint64_t end = is_to_end ? outline.bytes : std::min(position_of(last) + kAfterPosition, outline.bytes);
  const std::uint64_t begin = is_same_file ? position_of(checkpoints.grid.last_before(reach.first_mcu)) : 0;
  part->segment = digested_bytes(outline.bytes);
  const std::uint64_t first_segment = begin / part->segment, end_segment = (end - 1) / part->segment + 1;
  if (end_segment > std::min(checkpoints.digests.size(), outline.digests.size())) return nullptr;
  const auto digests = std::span(outline.digests).first(end_segment);
  if (!std::ranges::equal(digests, std::span(checkpoints.digests).first(end_segment))) return nullptr;
  part->begin = first_segment * part->segment;
  part->end = std::min<std::uint64_t>(end_segment * part->segment, outline.bytes);
  if ((part->end - part->begin) * kMostOfFile > outline.bytes * kMostOfRange) return nullptr;
  part->digests.assign(digests.begin() + static_cast<std::ptrdiff_t>(first_segment), digests.end());
  part->scan = outline.scan;
  part->region = region;
  checkpoints.known.resize(last + 1);
  const std::uint64_t left_out = 8 * (std::max(part->begin, part->scan) - part->scan);
  for (Checkpoint& checkpoint : checkpoints.known) checkpoint.bit -= std::min(checkpoint.bit, left_out);
  part->file.assign(outline.head.begin(), outline.head.end() - kEndMarker.size());
  return part;
}

}  // namespace feedline::decode
