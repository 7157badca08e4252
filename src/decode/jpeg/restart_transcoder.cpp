// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/restart_transcoder.h"

// libjpeg decodes the coefficients and encodes them again with the restart interval and the image's own Huffman tables.
// Only the entropy-coded data of its output is used; the segments before it and the bytes after it are copied from the
// original file:
//
//   SOI  segments, less DRI   DRI   SOS   data with markers   EOI  trailing bytes
//   ~~~~~~~~~~~~~~~~~~~~~~~  new         ~~~ libjpeg's ~~~~        ~~~~~~~~~~~~~~
//
// Profiles, orientation, thumbnails and colour metadata are therefore unchanged. Before the result is returned, it is
// read back, and its coefficients are compared with the original's. This also detects missing codes: after a marker,
// the full DC value is coded instead of a difference, and optimized tables may have no code for a value that large.
// libjpeg-turbo then writes invalid data. In this case, libjpeg builds new tables, which replace the old ones before
// SOS.

#include <array>
#include <string>

#include "base/check.h"
#include "decode/codec.h"
#include "decode/jpeg/baseline/baseline_frame.h"
#include "decode/jpeg/jpeg_coefficients.h"

namespace feedline::decode {
namespace {

using Bytes = std::span<const std::byte>;

enum Marker : unsigned { kDht = 0xC4, kSoi = 0xD8, kEoi = 0xD9, kSos = 0xDA, kDri = 0xDD };

// The segments of a header that libjpeg has read or written, in order.
class Segments {
 public:
  explicit Segments(Bytes file) : rest_(file.subspan(2)) {}

  // Includes its marker. Returns nullopt if the bytes are not a valid segment; libjpeg is less strict.
  std::optional<Bytes> next() {
    if (rest_.size() < 4 || rest_[0] != std::byte{0xFF}) return {};
    marker_ = std::to_integer<unsigned>(rest_[1]);
    const std::size_t length = std::to_integer<std::size_t>(rest_[2]) << 8 | std::to_integer<std::size_t>(rest_[3]);
    if (marker_ < 0xC0 || (marker_ >= 0xD0 && marker_ <= kEoi) || length < 2 || length > rest_.size() - 2) return {};
    const Bytes segment = rest_.first(length + 2);
    rest_ = rest_.subspan(length + 2);
    return segment;
  }
  unsigned marker() const { return marker_; }  // of the last segment
  Bytes rest() const { return rest_; }         // after the header

 private:
  Bytes rest_;
  unsigned marker_ = 0;
};

void append(std::vector<std::byte>& to, Bytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

// Combines the original file with the data and the restart interval from `written`, and with new tables if they were
// rebuilt.
std::optional<std::vector<std::byte>> spliced(Bytes file, Bytes tail, Bytes written, int interval, bool new_tables) {
  std::vector<std::byte> out;
  out.reserve(file.size() + written.size() / 8);
  append(out, file.first(2));
  Segments own(file), made(written);
  std::optional<Bytes> own_scan, made_scan;
  for (own_scan = own.next(); own_scan && own.marker() != kSos; own_scan = own.next())
    if (own.marker() != kDri && !(new_tables && own.marker() == kDht)) append(out, *own_scan);
  if (!own_scan) return {};
  for (made_scan = made.next(); made_scan && made.marker() != kSos; made_scan = made.next())
    if (new_tables && made.marker() == kDht) append(out, *made_scan);
  FEEDLINE_CHECK(made_scan.has_value());
  const std::array<unsigned, 6> restart{
      0xFF, kDri, 0, 4, static_cast<unsigned>(interval) >> 8, static_cast<unsigned>(interval) & 255};
  for (const unsigned value : restart) out.push_back(static_cast<std::byte>(value));
  append(out, new_tables ? *made_scan : *own_scan);  // which selects the tables
  append(out, made.rest());
  append(out, tail);
  return out;
}

bool reads_back(Bytes written, JpegCoefficients& as) {
  JpegCoefficients back;
  return back.open(written) && back.read() && back.equal(as);
}

}  // namespace

std::optional<int> restart_interval_for(int width, int height) {
  constexpr int kWorthIt = 100'000;  // pixels; smaller images gain less than a tenth of the time
  constexpr int kInterval = 4;
  if (std::int64_t{width} * height < kWorthIt) return {};
  return kInterval;
}

Result<std::optional<std::vector<std::byte>>> with_restarts(Bytes encoded, int interval) {
  using Unchanged = std::optional<std::vector<std::byte>>;
  FEEDLINE_CHECK(interval >= 0 && interval <= kMostRestartMcus);
  if (encoded.size() < 4 || encoded[0] != std::byte{0xFF} || encoded[1] != std::byte{kSoi}) return Unchanged();
  JpegCoefficients from;
  FEEDLINE_CHECK_OK(from.open(encoded));
  const auto frame = baseline::baseline_frame(from.header());
  if (!frame) return Unchanged();
  FEEDLINE_CHECK_OK(check_size(frame->width, frame->height));
  // the shortest code is one bit per block; a header alone must not cause a large allocation
  if (std::int64_t{frame->mcus_across()} * frame->mcus_down() / 8 > static_cast<std::int64_t>(encoded.size()))
    return decode_error("truncated JPEG: " + std::to_string(encoded.size()) + " bytes cannot hold " +
                        std::to_string(frame->width) + " x " + std::to_string(frame->height) + " pixels");
  if (interval == kRestartIntervalBySize) {
    const auto suited = restart_interval_for(frame->width, frame->height);
    if (!suited) return Unchanged();
    interval = *suited;
  }
  FEEDLINE_CHECK_OK(from.read());
  const Bytes tail = encoded.last(from.bytes_behind());

  for (const bool make_tables : {false, true}) {
    WrittenJpeg written;
    if (!written.write(from, interval, make_tables ? HuffmanTables::kMade : HuffmanTables::kKept)) continue;
    auto out = spliced(encoded, tail, written.bytes(), interval, make_tables);
    if (!out) return Unchanged();
    if (reads_back(*out, from)) return out;
  }
  return Unchanged();  // coefficients that no baseline JPEG can encode: decoders are more lenient than encoders
}

}  // namespace feedline::decode
