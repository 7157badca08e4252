// SPDX-License-Identifier: Apache-2.0
#include "decode/restart_transcoder.h"

// libjpeg decodes the coefficients and codes them again, with the restart interval and the image's own Huffman tables.
// Of what it writes only the entropy-coded data is taken; the segments before and the bytes after are the file's own:
//
//   SOI  segments, less DRI   DRI   SOS   data with markers   EOI  what followed it
//   ~~~~~~~~~~~~~~~~~~~~~~~  new         ~~~ libjpeg's ~~~~        ~~~~~~~~~~~~~~~~
//
// So profiles, orientation, thumbnails and whatever decides about colours stay as they are. The result is read back and
// its coefficients are compared before anybody gets it. That is also how a missing code is noticed: behind a marker the
// whole DC value is coded, not a difference, and tables made for the image may have no code for one so large, which
// libjpeg-turbo writes as nonsense. Then libjpeg makes new tables, which stand before SOS instead of the old ones.

#include <cstdio>

#include <jpeglib.h>

#include <array>
#include <cstring>
#include <string>

#include "base/check.h"
#include "decode/baseline_frame.h"
#include "decode/codec.h"
#include "decode/jpeg_source.h"
#include "decode/jpeg_trap.h"

namespace feedline::decode {
namespace {

using Bytes = std::span<const std::byte>;

enum Marker : unsigned { kDht = 0xC4, kSoi = 0xD8, kEoi = 0xD9, kSos = 0xDA, kDri = 0xDD };

// Coefficients stay in memory, two bytes each: as much as a decoder may take, see there.
constexpr long kMaxLibjpegBytes = memory::PixelBuffer::kMaxPixels * 4 * 2 + (64L << 20);

// A file's coefficients.
class Coefficients {
 public:
  Coefficients() {
    jpeg.err = arm(trap);
    jpeg_create_decompress(&jpeg);
    jpeg.mem->max_memory_to_use = kMaxLibjpegBytes;
  }
  ~Coefficients() { jpeg_destroy_decompress(&jpeg); }
  Coefficients(const Coefficients&) = delete;
  Coefficients& operator=(const Coefficients&) = delete;

  Result<void> open(Bytes bytes) {
    if (setjmp(trap.jump) != 0) return decode_error(std::string("cannot decode this JPEG: ") + trap.message);
    attach(source, jpeg, bytes);
    jpeg_read_header(&jpeg, TRUE);
    return {};
  }
  // Requires: open() succeeded.
  Result<void> read() {
    if (setjmp(trap.jump) != 0) return decode_error(std::string("damaged JPEG: ") + trap.message);
    arrays = jpeg_read_coefficients(&jpeg);
    return {};
  }
  JBLOCKARRAY row(int component, JDIMENSION y) {
    auto* const pool = reinterpret_cast<j_common_ptr>(&jpeg);
    return (*jpeg.mem->access_virt_barray)(pool, arrays[component], y, 1, FALSE);
  }

  jpeg_decompress_struct jpeg{};
  ErrorTrap trap{};
  JpegSource source{};
  jvirt_barray_ptr* arrays = nullptr;
};

// Where libjpeg writes to: its own memory destination loses its buffer when it leaves in the middle.
struct Destination {
  jpeg_destination_mgr callbacks{};  // first: libjpeg hands back a pointer to it
  std::vector<std::byte> bytes{};

  static Destination& of(j_compress_ptr jpeg) { return *reinterpret_cast<Destination*>(jpeg->dest); }
  static void grow(j_compress_ptr jpeg) {
    Destination& self = of(jpeg);
    const std::size_t filled = self.bytes.size();
    self.bytes.resize(2 * filled);
    self.offer(filled);
  }
  void offer(std::size_t from) {
    callbacks.next_output_byte = reinterpret_cast<JOCTET*>(bytes.data() + from);
    callbacks.free_in_buffer = bytes.size() - from;
  }
  void attach_to(jpeg_compress_struct& jpeg, std::size_t expected_bytes) {
    bytes.resize(expected_bytes);
    offer(0);
    callbacks.init_destination = [](j_compress_ptr) {};
    callbacks.empty_output_buffer = [](j_compress_ptr c) -> boolean {
      grow(c);
      return TRUE;
    };
    callbacks.term_destination = [](j_compress_ptr c) {
      of(c).bytes.resize(of(c).bytes.size() - of(c).callbacks.free_in_buffer);
    };
    jpeg.dest = &callbacks;
  }
};

// What libjpeg writes of coefficients.
class Written {
 public:
  Written() {
    jpeg.err = arm(trap);
    jpeg_create_compress(&jpeg);
  }
  ~Written() { jpeg_destroy_compress(&jpeg); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;

  // False where a coefficient is larger than any code.
  bool write(Coefficients& from, int interval, bool make_tables) {
    if (setjmp(trap.jump) != 0) return false;
    destination.attach_to(jpeg, kFirstGuess);
    jpeg_copy_critical_parameters(&from.jpeg, &jpeg);
    jpeg.restart_interval = static_cast<unsigned>(interval);
    jpeg.optimize_coding = make_tables;
    if (!make_tables) use_tables_of(from.jpeg);
    jpeg_write_coefficients(&jpeg, from.arrays);
    jpeg_finish_compress(&jpeg);
    return true;
  }
  Bytes bytes() const { return destination.bytes; }

 private:
  void use_tables_of(const jpeg_decompress_struct& from) {
    for (int t = 0; t < NUM_HUFF_TBLS; ++t) {
      copy(from.dc_huff_tbl_ptrs[t], jpeg.dc_huff_tbl_ptrs[t]);
      copy(from.ac_huff_tbl_ptrs[t], jpeg.ac_huff_tbl_ptrs[t]);
    }
    for (int c = 0; c < jpeg.num_components; ++c) {
      jpeg.comp_info[c].dc_tbl_no = from.comp_info[c].dc_tbl_no;
      jpeg.comp_info[c].ac_tbl_no = from.comp_info[c].ac_tbl_no;
    }
  }
  static constexpr std::size_t kFirstGuess = 128 << 10;

  void copy(const JHUFF_TBL* from, JHUFF_TBL*& to) {
    if (!from) return;
    if (!to) to = jpeg_alloc_huff_table(reinterpret_cast<j_common_ptr>(&jpeg));
    std::memcpy(to->bits, from->bits, sizeof to->bits);
    std::memcpy(to->huffval, from->huffval, sizeof to->huffval);
  }

  jpeg_compress_struct jpeg{};
  ErrorTrap trap{};
  Destination destination{};
};

// The segments of a header that libjpeg has read or written, one after the other.
class Segments {
 public:
  explicit Segments(Bytes file) : rest_(file.subspan(2)) {}

  // With its marker. Nothing where the bytes are not of that form; libjpeg is laxer.
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
  Bytes rest() const { return rest_; }         // behind it

 private:
  Bytes rest_;
  unsigned marker_ = 0;
};

void append(std::vector<std::byte>& to, Bytes bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

// The file with the data of `written` and its interval, and with its tables where these were made.
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
  append(out, new_tables ? *made_scan : *own_scan);  // which names the tables
  append(out, made.rest());
  append(out, tail);
  return out;
}

bool same_coefficients(Coefficients& a, Coefficients& b) {
  if (a.jpeg.num_components != b.jpeg.num_components) return false;
  for (int c = 0; c < a.jpeg.num_components; ++c) {
    const jpeg_component_info &mine = a.jpeg.comp_info[c], &other = b.jpeg.comp_info[c];
    if (mine.width_in_blocks != other.width_in_blocks || mine.height_in_blocks != other.height_in_blocks) return false;
    if (std::memcmp(mine.quant_table->quantval, other.quant_table->quantval, sizeof mine.quant_table->quantval) != 0)
      return false;
    for (JDIMENSION y = 0; y < mine.height_in_blocks; ++y)
      if (std::memcmp(a.row(c, y)[0], b.row(c, y)[0], mine.width_in_blocks * sizeof(JBLOCK)) != 0) return false;
  }
  return true;
}

bool reads_back(Bytes written, Coefficients& as) {
  Coefficients back;
  return back.open(written) && back.read() && same_coefficients(as, back);
}

}  // namespace

std::optional<int> restart_interval_for(int width, int height) {
  constexpr int kWorthIt = 100'000;  // pixels: of smaller ones, less than a tenth of the time is gained
  constexpr int kInterval = 4;
  if (std::int64_t{width} * height < kWorthIt) return {};
  return kInterval;
}

Result<std::optional<std::vector<std::byte>>> with_restarts(Bytes encoded, int interval) {
  using Unchanged = std::optional<std::vector<std::byte>>;
  FEEDLINE_CHECK(interval >= 0 && interval <= kMostRestartMcus);
  if (encoded.size() < 4 || encoded[0] != std::byte{0xFF} || encoded[1] != std::byte{kSoi}) return Unchanged();
  Coefficients from;
  FEEDLINE_CHECK_OK(from.open(encoded));
  const auto frame = baseline::baseline_frame(from.jpeg);
  if (!frame) return Unchanged();
  FEEDLINE_CHECK_OK(check_size(frame->width, frame->height));
  // the smallest code is one bit per block: a header alone must not make anybody allocate
  if (std::int64_t{frame->mcus_across()} * frame->mcus_down() / 8 > static_cast<std::int64_t>(encoded.size()))
    return decode_error("truncated JPEG: " + std::to_string(encoded.size()) + " bytes cannot hold " +
                        std::to_string(frame->width) + " x " + std::to_string(frame->height) + " pixels");
  if (interval == kRestartIntervalBySize) {
    const auto suited = restart_interval_for(frame->width, frame->height);
    if (!suited) return Unchanged();
    interval = *suited;
  }
  FEEDLINE_CHECK_OK(from.read());
  const Bytes tail = encoded.last(from.source.ran_out ? 0 : from.source.callbacks.bytes_in_buffer);

  for (const bool make_tables : {false, true}) {
    Written written;
    if (!written.write(from, interval, make_tables)) continue;
    auto out = spliced(encoded, tail, written.bytes(), interval, make_tables);
    if (!out) return Unchanged();
    if (reads_back(*out, from)) return out;
  }
  return Unchanged();  // coefficients that no baseline JPEG can hold: decoders are laxer than encoders
}

}  // namespace feedline::decode
