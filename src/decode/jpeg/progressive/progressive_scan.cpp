// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/progressive/progressive_scan.h"

#include <algorithm>
#include <iterator>

#include "decode/jpeg/scan_limit.h"

namespace feedline::decode::progressive {
namespace {

constexpr std::uint8_t kPrefix = 0xFF, kTables = 0xC4, kScanHeader = 0xDA, kEndOfImage = 0xD9, kRestartInterval = 0xDD,
                       kFirstApplication = 0xE0, kLastApplication = 0xEF, kComment = 0xFE;
constexpr int kMostBits = 13;  // low bits that libjpeg allows a first scan to leave to later ones

constexpr unsigned word(std::span<const std::uint8_t> at) { return static_cast<unsigned>(at[0]) << 8 | at[1]; }

std::optional<HuffmanSpec> spec_of(const JHUFF_TBL* from) {
  if (!from) return std::nullopt;
  HuffmanSpec spec;
  std::copy(std::begin(from->bits) + 1, std::end(from->bits), spec.counts.begin() + 1);
  std::ranges::copy(from->huffval, spec.symbols.begin());
  return spec;
}

bool is_legal(const Scan& scan) {
  if (scan.low > kMostBits || (scan.high > 0 && scan.low != scan.high - 1)) return false;
  // libjpeg accepts some other orders and rejects others; the standard allows only this one
  for (int i = 1; i < scan.components; ++i)
    if (scan.component[i] <= scan.component[i - 1]) return false;
  if (scan.is_dc()) return scan.last == 0;
  return scan.first <= scan.last && scan.last < baseline::kBlockSize && scan.components == 1;
}

}  // namespace

std::optional<ScanReader> ScanReader::of(const jpeg_decompress_struct& jpeg) {
  if (!jpeg.progressive_mode) return std::nullopt;
  const auto frame = baseline::progressive_frame(jpeg);
  if (!frame) return std::nullopt;
  std::optional<ScanReader> reader(std::in_place);
  reader->frame_ = *frame;
  if (!reader->read_first(jpeg)) return std::nullopt;
  return reader;
}

bool ScanReader::read_first(const jpeg_decompress_struct& jpeg) {
  for (int i = 0; i < frame_.components; ++i) {
    ids_[i] = jpeg.comp_info[i].component_id;
    if (std::find(ids_.begin(), ids_.begin() + i, ids_[i]) != ids_.begin() + i) return false;
    bits_left_[i].fill(-1);
  }
  for (std::size_t i = 0; i < NUM_HUFF_TBLS; ++i) {
    tables_[0][i] = spec_of(jpeg.dc_huff_tbl_ptrs[i]);
    tables_[1][i] = spec_of(jpeg.ac_huff_tbl_ptrs[i]);
  }
  restart_interval_ = static_cast<int>(jpeg.restart_interval);
  scan_ = {.components = jpeg.comps_in_scan,
           .first = static_cast<unsigned>(jpeg.Ss),
           .last = static_cast<unsigned>(jpeg.Se),
           .high = jpeg.Ah,
           .low = jpeg.Al,
           .restart_interval = restart_interval_,
           .data = frame_.scan};
  for (int i = 0; i < scan_.components; ++i) {
    const jpeg_component_info& component = *jpeg.cur_comp_info[i];
    scan_.component[i] = component.component_index;
    scan_.table[i] = scan_.is_dc() ? component.dc_tbl_no : component.ac_tbl_no;
  }
  return is_legal(scan_);
}

const HuffmanSpec* ScanReader::table(int number) const {
  if (number < 0 || number >= NUM_HUFF_TBLS) return nullptr;
  const auto& spec = tables_[scan_.is_dc() ? 0 : 1][static_cast<std::size_t>(number)];
  return spec ? &*spec : nullptr;
}

bool ScanReader::accept() {
  for (int i = 0; i < scan_.components; ++i) {
    auto& bits_left = bits_left_[scan_.component[i]];
    if (!scan_.is_dc() && bits_left[0] < 0) return false;
    for (unsigned k = scan_.first; k <= scan_.last; ++k) {
      if (bits_left[k] != (scan_.refines() ? scan_.high : -1)) return false;
      bits_left[k] = static_cast<std::int8_t>(scan_.low);
    }
  }
  return true;
}

bool ScanReader::is_complete() const {
  return std::all_of(bits_left_.begin(), bits_left_.begin() + frame_.components, [](const auto& of_component) {
    return std::ranges::all_of(of_component, [](int bits) { return bits == 0; });
  });
}

ScanReader::Next ScanReader::read_next(Segment ahead) {
  for (;;) {
    while (ahead.size() >= 2 && ahead[0] == kPrefix && ahead[1] == kPrefix) ahead = ahead.subspan(1);  // fill bytes
    if (ahead.size() < 2 || ahead[0] != kPrefix) return Next::kDoubtful;
    const std::uint8_t marker = ahead[1];
    if (marker == kEndOfImage) return Next::kEnd;
    if (ahead.size() < 4) return Next::kDoubtful;
    const std::size_t length = word(ahead.subspan(2));
    if (length < 2 || length > ahead.size() - 2) return Next::kDoubtful;
    const Segment segment = ahead.subspan(4, length - 2);
    ahead = ahead.subspan(2 + length);
    if (marker == kScanHeader) return read_scan(segment, ahead) ? Next::kScan : Next::kDoubtful;
    if (marker == kTables) {
      if (!read_tables(segment)) return Next::kDoubtful;
    } else if (marker == kRestartInterval) {
      if (segment.size() != 2) return Next::kDoubtful;
      restart_interval_ = static_cast<int>(word(segment));
    } else if (marker != kComment && (marker < kFirstApplication || marker > kLastApplication)) {
      return Next::kDoubtful;
    }
  }
}

bool ScanReader::read_tables(Segment segment) {
  constexpr std::size_t kCounts = 16;
  while (!segment.empty()) {
    if (segment.size() < 1 + kCounts) return false;
    const std::size_t use = segment[0] >> 4, number = segment[0] & 15;
    if (use > 1 || number >= NUM_HUFF_TBLS) return false;
    HuffmanSpec spec;
    std::size_t symbols = 0;
    for (std::size_t length = 1; length <= kCounts; ++length) symbols += spec.counts[length] = segment[length];
    segment = segment.subspan(1 + kCounts);
    if (symbols > spec.symbols.size() || symbols > segment.size()) return false;
    std::ranges::copy(segment.first(symbols), spec.symbols.begin());
    tables_[use][number] = spec;
    segment = segment.subspan(symbols);
  }
  return true;
}

bool ScanReader::read_scan(Segment segment, Segment following) {
  if (++scans_ > most_scans(frame_.width, frame_.height) || segment.empty()) return false;
  const std::size_t components = segment[0];
  if (components < 1 || components > static_cast<std::size_t>(frame_.components)) return false;
  if (segment.size() != 4 + 2 * components) return false;
  const Segment end = segment.subspan(1 + 2 * components);
  scan_ = {.components = static_cast<int>(components),
           .first = end[0],
           .last = end[1],
           .high = end[2] >> 4,
           .low = end[2] & 15,
           .restart_interval = restart_interval_,
           .data = std::as_bytes(following)};
  for (std::size_t i = 0; i < components; ++i) {
    const auto id = std::find(ids_.begin(), ids_.begin() + frame_.components, segment[1 + 2 * i]);
    if (id == ids_.begin() + frame_.components) return false;
    scan_.component[i] = static_cast<int>(id - ids_.begin());
    const int tables = segment[2 + 2 * i];
    scan_.table[i] = scan_.is_dc() ? tables >> 4 : tables & 15;
  }
  return is_legal(scan_);
}

}  // namespace feedline::decode::progressive
