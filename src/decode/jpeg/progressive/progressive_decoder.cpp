// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/progressive/progressive_decoder.h"

// Performance
//
// A progressive file has about ten scans: the first scans contain the highest bits of some coefficients for all blocks,
// and each later scan adds one bit to some coefficients. Refinement scans take most of the time: they have one bit for
// each nonzero coefficient, and a symbol for each coefficient that becomes nonzero, with the number of zeros before it.
// libjpeg-turbo visits the coefficients one by one in zigzag order and tests each for zero.
//
// - A block has a mask of 64 bits, in which a bit is set for each nonzero coefficient. The position of the n-th zero,
//   and the number and positions of correction bits before it, are computed from the mask; only nonzero coefficients
//   are accessed.
// - A symbol takes one table lookup, as in the baseline decoder (see baseline_decoder.cpp). The table also has
//   the lengths of end-of-band runs, so such a run is one step in a first scan.
// - The whole file must be read, but outside the region's blocks only masks are stored: correction bits of coefficients
//   that are not needed are counted but not applied, and no memory is allocated for the values of these coefficients.
// - Values are stored in groups of blocks (baseline_kernels.h), which is the layout of the inverse DCT.
//
// Correctness
//
// As with the baseline decoder, libjpeg reads the header, and this decoder fails if it finds anything that libjpeg
// might report later. This decoder also fails if bits are missing at the end (libjpeg conceals this by smoothing), if a
// scan repeats bits or contains them out of order, and if there is anything other than tables, restart intervals and
// comments between scans. Like libjpeg, this decoder reads progressive files to their end marker for any region.

#include <algorithm>
#include <array>
#include <cstdlib>

#include "decode/jpeg/progressive/progressive_coefficients.h"
#include "decode/jpeg/restart_scan.h"

namespace feedline::decode::progressive {
namespace {

using baseline::BaselineInput;
using baseline::BaselinePlanes;
using baseline::BitBuffer;
using baseline::Component;
using baseline::HuffmanTable;
using baseline::HuffmanUse;
using baseline::kBlockSide;
using baseline::kRestartNumbers;

constexpr std::int32_t kMaxDc = 1 << 24;  // as in baseline_decoder.cpp

}  // namespace

struct ProgressiveDecoder::Impl {
  const baseline::Kernels& kernels;
  BaselineInput input;
  BaselinePlanes planes;
  Coefficients coefficients;
  std::array<HuffmanTable, kMaxScanComponents> tables;

  const Frame* frame = nullptr;
  Window window;
  DcRun dc;
  BandRun band;

  explicit Impl(const baseline::Kernels& chosen) : kernels(chosen) {}

  bool read_all(ScanReader& scans);
  bool read_scan(const ScanReader& scans);
  bool build_tables(const ScanReader& scans);

  // The units in a scan's rows: MCUs, or blocks if the scan has one component.
  struct Rows {
    int across = 0, down = 0;
    int first_column = 0, end_column = 0, first_row = 0, end_row = 0;  // whose values are stored
  };
  Rows plan_dc(const Scan& scan);
  Rows plan_band(const Scan& scan);
  void point_dc(const Scan& scan, int row, bool is_wanted);
  void point_band(const Scan& scan, int row, bool is_wanted);
  BitBuffer& bits(const Scan& scan) { return scan.is_dc() ? dc.input : band.input; }
  bool read_rows(const Scan& scan, const Rows& rows);
  template <typename Run>
  bool read_run(Run& run, void (*kernel)(Run&), int from, int to);
  bool read_segment(const Scan& scan, bool is_wanted, int from, int to);
  bool restarts(const Scan& scan, int& next_restart);

  void transform_row(int mcu_row, int component, int reduction, std::uint8_t* out, std::size_t stride);
  void write_pixels(const Box& region, ColorMode mode, memory::PixelBuffer& out);
  void write_planes(memory::Planes& out);
};

bool ProgressiveDecoder::Impl::read_all(ScanReader& scans) {
  for (;;) {
    if (!scans.accept() || !read_scan(scans)) return false;
    switch (scans.read_next(input.ahead())) {
      case ScanReader::Next::kScan:
        continue;
      case ScanReader::Next::kEnd:
        return scans.is_complete();
      case ScanReader::Next::kDoubtful:
        return false;
    }
  }
}

bool ProgressiveDecoder::Impl::build_tables(const ScanReader& scans) {
  const Scan& scan = scans.scan();
  if (scan.is_dc() && scan.refines()) return true;
  for (int i = 0; i < scan.components; ++i) {
    const HuffmanSpec* const spec = scans.table(scan.table[i]);
    if (!spec || !build_table(*spec, scan.is_dc() ? HuffmanUse::kDc : HuffmanUse::kBand, tables[i])) return false;
  }
  return true;
}

bool ProgressiveDecoder::Impl::read_scan(const ScanReader& scans) {
  const Scan& scan = scans.scan();
  if (!build_tables(scans)) return false;
  const Rows rows = scan.is_dc() ? plan_dc(scan) : plan_band(scan);
  input.start(scan.data, bits(scan));
  return read_rows(scan, rows) && band.blocks_ended == 0 && input.at_marker(bits(scan));
}

ProgressiveDecoder::Impl::Rows ProgressiveDecoder::Impl::plan_dc(const Scan& scan) {
  dc = {.shift = scan.low};
  band = {};
  for (int i = 0; i < scan.components; ++i) {
    const Component& component = frame->component[scan.component[i]];
    const bool alone = scan.components == 1;
    for (int v = 0; v < (alone ? 1 : component.down); ++v)
      for (int h = 0; h < (alone ? 1 : component.across); ++h)
        dc.block[dc.blocks++] = {
            .table = &tables[i], .component = i, .column = h, .across = alone ? 1 : component.across};
  }
  if (scan.components == 1) return plan_band(scan);
  return {frame->mcus_across(), frame->mcus_down(), window.first_column,
          window.end_column,    window.first_row,   window.end_row};
}

ProgressiveDecoder::Impl::Rows ProgressiveDecoder::Impl::plan_band(const Scan& scan) {
  const int c = scan.component[0], down = frame->component[c].down;
  band = {.table = tables.data(), .first = scan.first, .last = scan.last, .shift = scan.low};
  const int across = coefficients.blocks_across(c);
  return {across,
          coefficients.blocks_down(c),
          coefficients.first_column(c),
          std::min(coefficients.end_column(c), across),
          window.first_row * down,
          window.end_row * down};
}

void ProgressiveDecoder::Impl::point_dc(const Scan& scan, int row, bool is_wanted) {
  dc.is_wanted = is_wanted;
  if (!is_wanted) return;
  if (scan.components == 1) {
    dc.first_column = coefficients.first_column(scan.component[0]);
    dc.block[0].coefficients = coefficients.values(scan.component[0], row);
    return;
  }
  dc.first_column = window.first_column;
  int next = 0;
  for (int i = 0; i < scan.components; ++i) {
    const Component& component = frame->component[scan.component[i]];
    for (int v = 0; v < component.down; ++v)
      for (int h = 0; h < component.across; ++h)
        dc.block[next++].coefficients = coefficients.values(scan.component[i], row * component.down + v);
  }
}

void ProgressiveDecoder::Impl::point_band(const Scan& scan, int row, bool is_wanted) {
  const int c = scan.component[0];
  band.masks = coefficients.masks(c, row);
  band.coefficients = is_wanted ? coefficients.values(c, row) : nullptr;
  band.first_column = coefficients.first_column(c);
}

bool ProgressiveDecoder::Impl::restarts(const Scan& scan, int& next_restart) {
  if (band.blocks_ended != 0 || !input.restart(next_restart, bits(scan))) return false;
  next_restart = (next_restart + 1) % kRestartNumbers;
  dc.dc = {};
  return true;
}

bool ProgressiveDecoder::Impl::read_rows(const Scan& scan, const Rows& rows) {
  int to_restart = scan.restart_interval, next_restart = 0;
  for (int row = 0; row < rows.down; ++row) {
    const bool row_is_wanted = row >= rows.first_row && row < rows.end_row;
    for (int column = 0; column < rows.across;) {
      if (scan.restart_interval > 0 && to_restart == 0) {
        if (!restarts(scan, next_restart)) return false;
        to_restart = scan.restart_interval;
      }
      const bool is_wanted = row_is_wanted && column >= rows.first_column && column < rows.end_column;
      int end = rows.across;
      if (is_wanted)
        end = rows.end_column;
      else if (row_is_wanted && column < rows.first_column)
        end = rows.first_column;
      if (scan.restart_interval > 0) end = std::min(end, column + to_restart);
      if (scan.is_dc())
        point_dc(scan, row, is_wanted);
      else
        point_band(scan, row, is_wanted);
      if (!read_segment(scan, is_wanted, column, end)) return false;
      to_restart -= end - column;
      column = end;
    }
  }
  return true;
}

template <typename Run>
bool ProgressiveDecoder::Impl::read_run(Run& run, void (*kernel)(Run&), int from, int to) {
  run.next = from, run.end = to;
  for (;;) {
    kernel(run);
    if (run.failed) return false;
    if (run.next == run.end) return true;
    if (!input.refill(run.input)) return false;
  }
}

bool ProgressiveDecoder::Impl::read_segment(const Scan& scan, bool is_wanted, int from, int to) {
  const Kernels& loops = kernels.progressive;
  if (!scan.is_dc()) return read_run(band, (scan.refines() ? loops.refine : loops.first)[is_wanted], from, to);
  if (!read_run(dc, scan.refines() ? loops.refine_dc : loops.first_dc, from, to)) return false;
  return std::ranges::all_of(dc.dc, [](std::int32_t value) { return std::abs(value) < kMaxDc; });
}

void ProgressiveDecoder::Impl::transform_row(int block_row, int c, int reduction, std::uint8_t* out,
                                             std::size_t stride) {
  kernels.inverse_dct[reduction](coefficients.values(c, block_row), frame->component[c].quantisation.data(),
                                 coefficients.groups(c), out, stride);
}

void ProgressiveDecoder::Impl::write_pixels(const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  planes.start(*frame, window, kernels);
  const int rows_ahead = frame->component[0].down == 2 ? 1 : 0;  // as in baseline_decoder.cpp
  int next_row = region.top;
  for (int mcu_row = window.first_row; mcu_row < window.end_row; ++mcu_row) {
    for (int c = 0; c < frame->components; ++c)
      for (int v = 0, down = frame->component[c].down; v < down; ++v) {
        const int row = mcu_row * down + v;
        transform_row(row, c, 0, planes.row(c, row * kBlockSide), planes.stride(c));
      }
    planes.end_mcu_row(mcu_row);
    const int there =
        mcu_row + 1 == frame->mcus_down() ? frame->height : (mcu_row + 1) * frame->mcu_height() - rows_ahead;
    for (; next_row < std::min(region.top + region.height, there); ++next_row)
      planes.write_row(region, next_row, mode, out.row(next_row - region.top));
  }
}

void ProgressiveDecoder::Impl::write_planes(memory::Planes& out) {
  for (int c = 0; c < out.count; ++c) {
    memory::Plane& plane = out.plane[c];
    const int reduction = plane.x.shift, side = kBlockSide >> reduction, down = frame->component[c].down;
    for (int row = window.first_row * down; row < window.end_row * down; ++row)
      transform_row(row, c, reduction, plane.samples.row(row * side - plane.y.first), plane.samples.stride());
  }
}

ProgressiveDecoder::ProgressiveDecoder(const baseline::Kernels& kernels) : impl_(std::make_unique<Impl>(kernels)) {}
ProgressiveDecoder::~ProgressiveDecoder() = default;

bool ProgressiveDecoder::decode(ScanReader& scans, const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  Impl& d = *impl_;
  d.frame = &scans.frame();
  d.window = window_of(*d.frame, region);
  const bool is_there = d.coefficients.start(*d.frame, d.window, d.kernels.group) && d.read_all(scans);
  if (is_there) d.write_pixels(region, mode, out);
  d.coefficients.end();
  return is_there;
}

bool ProgressiveDecoder::decode_planes(ScanReader& scans, const Box& region, ColorMode mode,
                                       const memory::Coarseness& most, memory::Planes& out) {
  Impl& d = *impl_;
  d.frame = &scans.frame();
  d.window = window_of(*d.frame, region);
  out.count = mode == ColorMode::kL ? 1 : d.frame->components;
  if (!lay_out_planes(*d.frame, d.window, most, out)) return false;
  const bool is_there = d.coefficients.start(*d.frame, d.window, d.kernels.group) && d.read_all(scans);
  if (is_there) d.write_planes(out);
  d.coefficients.end();
  return is_there;
}

}  // namespace feedline::decode::progressive
