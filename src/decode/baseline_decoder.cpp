// SPDX-License-Identifier: Apache-2.0
#include "decode/baseline_decoder.h"

// How it is fast
//
// At training quality four fifths of a region's decode is Huffman decoding, of the whole scan down to the region's last
// row: there is no way to the middle but through the bits before it. libjpeg-turbo spends some 20 cycles on a symbol:
// look up the code, branch on its size, get so many bits more, branch on their sign. Here a symbol takes a shift, a
// look-up and a shift, each waiting for the one before, some 7 cycles, and everything else happens beside that chain:
//
// - The value in the table. Eleven bits index a table (baseline_huffman.h). Where they hold a whole code and the first
//   bit of the value behind it, which is its sign, the entry says how many bits code and value take together, by how
//   much the coefficient's index advances, and a constant. The value is those bits, as one number, plus the constant:
//   that takes the code away again and, of negative values, 2^size - 1. So no branch looks at size or sign.
// - One branch per symbol. An end of block, and a code too long for the table (1 in 200), have an advance that lifts
// the
//   index over 63, as the 63rd coefficient does. The loop asks for nothing else, and guesses wrong once per block.
// - Bits without asking (baseline_entropy.h, fill()). Eight bytes are loaded at every symbol, and or'ed below the bits
//   that are there; what was there already is or'ed with itself. It depends on the look-up before, not on this one.
// - No look at the input. Zeros stuffed behind 0xFF are removed before, piece by piece (baseline_input.h), and behind
//   every piece lie as many bytes as an MCU may take. Whether a file ended too early shows afterwards.
// - Blocks outside the region still have to be read for their length and their DC difference, but not for their values:
//   a second table tells of 12 bits how many whole symbols they hold and how far these advance. It takes ten times
//   as long to build as the first one, so it is kept from image to image, and left out where little is skipped
//   (baseline_tables.h). Where it reads past the end of a block, it is asked again, symbol by symbol.
// - Restart intervals that the region does not touch are not decoded at all: the predictions begin anew at every
// marker,
//   and markers can be found without decoding (restart_scan-inl.h).
//
// Tried on a prototype and left out: larger tables (fall out of the first-level cache), two values per look-up (the
// same), no branches at all (the chain becomes twice as long). Not tried here: two images in turn in one thread, whose
// chains would overlap. That gave the prototype another 15 to 20 percent.
//
// Coefficients go where the inverse DCT wants them (Places in baseline_entropy.h): as many blocks as a vector has 128
// bits are interleaved row by row, in chunks of eight MCUs that never leave the first-level cache, and the inverse DCT
// leaves zeros behind. Samples stay in two rows of MCUs at most (baseline_planes.h), from which rows of pixels are
// made.
//
// Smaller pictures (decode_planes(), for fidelity "fast"). The bits are the same, but a block's inverse DCT makes four,
// two or one samples a side of its lowest coefficients (baseline_reduced_dct.h), colour is not upsampled, and nothing
// becomes RGB. Where two a side or one are wanted, the rest of a block is skipped by the table that skips whole ones.
//
// How it is right
//
// Pixels are those of libjpeg-turbo's full decode, cropped. The inverse DCT, fancy upsampling and colour conversion
// have exact definitions; baseline_idct.cpp follows even what libjpeg-turbo's x86 code does with absurd coefficients.
//
// What a file is worth, libjpeg decides. It has read the header, so there is one parser and one opinion on headers.
// This decoder reads as many rows of MCUs as libjpeg would for the region (Window::end_coded_row), no more, no less,
// and gives up at whatever libjpeg could have something to say about: a code that is none, a 65th coefficient, a marker
// that is early, late or another one than due, data that ends, an end marker that is not there. Then libjpeg decodes
// the image from its start, and its pixels and errors are the answer. fuzz/baseline_jpeg_fuzz.cpp compares the two.
// Of the intervals that are passed over, only the markers are looked at, in all rows that libjpeg would read: damage
// between them is not seen, as damage below the region is not.

#include <algorithm>
#include <cstdlib>

#include "decode/baseline_planes.h"
#include "decode/baseline_tables.h"
#include "decode/restart_scan.h"

namespace feedline::decode::baseline {
namespace {

// libjpeg gives up where the sum of a row's DC differences leaves 32 bits: far before, so does this decoder. A row of
// MCUs adds less than 2^30.
constexpr std::int32_t kMaxDc = 1 << 24;

// By reduction: the index in zigzag order, plus one, behind the last coefficient that it needs. Two by two end with the
// 4th; four by four with the 24th, behind which so few are left that skipping them gains nothing.
constexpr unsigned kEndOfDc = 2;
constexpr std::array<unsigned, kMaxReduction + 1> kEndOfLow{kBlockSize, kBlockSize, 6, kEndOfDc};

}  // namespace

struct BaselineDecoder::Impl {
  const Kernels& kernels;
  BaselineTables tables;
  BaselineInput input;
  BaselinePlanes planes;

  // of the image that is being decoded
  memory::Planes* whole = nullptr;  // where its samples go, if not to `planes`
  bool low = false;                 // are there coefficients that nobody needs?
  const Frame* frame = nullptr;
  Window window;
  McuPlan plan;
  EntropyState state;
  int mcus_to_restart = 0;
  int next_restart = 0;
  int next_mcu = 0;
  bool passes_intervals = false;  // those that the region does not depend on are not decoded
  int intervals_passed = 0;
  alignas(64) std::array<std::int16_t, kMaxChunkBlocks * kBlockSize> coefficients{};

  explicit Impl(const Kernels& chosen) : kernels(chosen) {}

  bool start(const Frame& image, const Box& region);
  bool start_planes(ColorMode mode, const memory::Coarseness& most, memory::Planes& out);
  bool plan_tables();
  bool step_over_restart();
  // decode(first, end) and skip(first, end) do MCUs, of a chunk or of a row, and tell how far they came.
  template <typename Step>
  bool run(int mcus, Step step);
  bool skip(int mcus);
  bool pass_intervals(int count);
  bool go_to(int mcu, int interval);
  bool decode_chunk(int mcus, int mcu_row, int chunk);
  void transform_chunk(int mcus, int mcu_row, int chunk);
  bool decode_row(int mcu_row);
  // decode_row() of every row that libjpeg would read, and is_there(mcu_row) after those of the window.
  template <typename Step>
  bool decode_rows(Step is_there);
  bool all_decoded() const;
};

bool BaselineDecoder::Impl::plan_tables() {
  tables.begin_image();
  plan.blocks = 0;
  const std::int64_t columns = window.end_column - window.first_column, rows = window.end_row - window.first_row;
  const std::int64_t skipped = passes_intervals
                                   ? frame->restart_interval * rows
                                   : std::int64_t{frame->mcus_across()} * window.end_coded_row - columns * rows;
  int first_of_row = 0;
  for (int c = 0; c < frame->components; ++c) {
    const Component& component = frame->component[c];
    const HuffmanTable* const dc = tables.find(component.dc, HuffmanUse::kDc);
    const HuffmanTable* const ac = tables.find(component.ac, HuffmanUse::kAc);
    if (!dc || !ac) return false;
    const SkipTable* const skip_table = tables.find_skip(ac, skipped * component.across * component.down);
    for (int v = 0; v < component.down; ++v, first_of_row += kChunkMcus * component.across)
      for (int h = 0; h < component.across; ++h)
        plan.block[plan.blocks++] = {.dc = dc,
                                     .ac = ac,
                                     .skip = skip_table,
                                     .component = c,
                                     .row = first_of_row,
                                     .column = h,
                                     .across = component.across};
  }
  return true;
}

bool BaselineDecoder::Impl::start(const Frame& image, const Box& region) {
  frame = &image;
  window = window_of(image, region);
  // in longer ones the sums of DC differences could overflow before anybody looks, and a row of the region needs
  // something of every interval anyway
  passes_intervals = image.restart_interval > 0 && image.restart_interval <= image.mcus_across();
  if (!plan_tables()) return false;
  whole = nullptr;
  low = false;
  state.dc = {};
  mcus_to_restart = image.restart_interval;
  next_restart = next_mcu = intervals_passed = 0;
  input.start(image.scan, state.input);
  return true;
}

bool BaselineDecoder::Impl::start_planes(ColorMode mode, const memory::Coarseness& most, memory::Planes& out) {
  whole = &out;
  out.count = mode == ColorMode::kL ? 1 : frame->components;
  if (!lay_out_planes(*frame, window, most, out)) return false;
  for (int i = 0; i < plan.blocks; ++i) {
    BlockPlan& block = plan.block[i];
    const int c = block.component;
    block.end = !block.skip ? kBlockSize : c < out.count ? kEndOfLow[out.plane[c].x.shift] : kEndOfDc;
    low |= block.end < kBlockSize;
  }
  return true;
}

bool BaselineDecoder::Impl::step_over_restart() {
  if (!input.restart(next_restart, state.input)) return false;
  next_restart = (next_restart + 1) % kRestartNumbers;
  state.dc = {};
  mcus_to_restart = frame->restart_interval;
  return true;
}

template <typename Step>
bool BaselineDecoder::Impl::run(int mcus, Step step) {
  for (int done = 0; done < mcus;) {
    if (frame->restart_interval > 0 && mcus_to_restart == 0 && !step_over_restart()) return false;
    const int end = frame->restart_interval > 0 ? std::min(mcus, done + mcus_to_restart) : mcus;
    const int reached = step(done, end);
    if (reached < 0 || (reached < end && !input.refill(state.input))) return false;
    mcus_to_restart -= reached - done;
    next_mcu += reached - done;
    done = reached;
  }
  return true;
}

bool BaselineDecoder::Impl::skip(int mcus) {
  return run(mcus, [this](int first, int end) { return kernels.skip_mcus(plan, first, end, state); });
}

// Requires: the interval before them is read to its end.
bool BaselineDecoder::Impl::pass_intervals(int count) {
  if (!input.at_restart(next_restart, state.input)) return false;
  const std::span<const std::uint8_t> data = input.behind_restart();
  const std::uint8_t* const end = data.data() + data.size();
  next_restart = (next_restart + 1) % kRestartNumbers;
  const std::uint8_t* const behind = kernels.pass_restarts(data.data(), end, next_restart, count);
  if (!behind) return false;
  next_restart = (next_restart + count) % kRestartNumbers;
  input.start(std::as_bytes(std::span(behind, end)), state.input);
  state.dc = {};
  mcus_to_restart = frame->restart_interval;
  next_mcu += count * frame->restart_interval;
  intervals_passed += count;
  return true;
}

// Up to `mcu`, which lies in `interval` or ends it. The interval that is left is read to its end, where its marker must
// stand: so whatever gave pixels is known to be of the length it should have.
bool BaselineDecoder::Impl::go_to(int mcu, int interval) {
  if (passes_intervals) {
    const int current = next_mcu == 0 ? 0 : (next_mcu - 1) / frame->restart_interval;
    const int between = interval - current - 1;
    if (between > 0 && !(skip(mcus_to_restart) && pass_intervals(between))) return false;
  }
  return skip(mcu - next_mcu);
}

bool BaselineDecoder::Impl::decode_chunk(int mcus, int mcu_row, int chunk) {
  const auto decode = low ? kernels.decode_low_mcus : kernels.decode_mcus;
  const bool decoded =
      run(mcus, [&](int first, int end) { return decode(plan, first, end, state, coefficients.data()); });
  if (decoded) transform_chunk(mcus, mcu_row, chunk);
  return decoded;
}

void BaselineDecoder::Impl::transform_chunk(int mcus, int mcu_row, int chunk) {
  std::int16_t* from = coefficients.data();
  for (int c = 0; c < frame->components; ++c) {
    const Component& component = frame->component[c];
    const std::size_t row_size = static_cast<std::size_t>(kChunkMcus) * component.across * kBlockSize;
    if (whole && c >= whole->count) {
      from = std::fill_n(from, row_size * static_cast<std::size_t>(component.down), std::int16_t{0});
      continue;
    }
    const int groups = (mcus * component.across + kernels.group - 1) / kernels.group;
    memory::Plane* const plane = whole ? &whole->plane[c] : nullptr;
    const int reduction = plane ? plane->x.shift : 0, side = kBlockSide >> reduction;
    const std::size_t stride = plane ? plane->samples.stride() : planes.stride(c);
    for (int v = 0; v < component.down; ++v, from += row_size) {
      const int y = (mcu_row * component.down + v) * side;
      std::uint8_t* const row = plane ? plane->samples.row(y - plane->y.first) : planes.row(c, y);
      kernels.inverse_dct[reduction](from, component.quantisation.data(), groups,
                                     row + chunk * kChunkMcus * component.across * side, stride);
    }
  }
}

bool BaselineDecoder::Impl::decode_row(int mcu_row) {
  const int begin = mcu_row * frame->mcus_across(), end = begin + frame->mcus_across();
  const int interval_mcus = std::max(frame->restart_interval, 1);
  if (mcu_row >= window.first_row && mcu_row < window.end_row) {
    const int first = begin + window.first_column;
    if (!go_to(first, first / interval_mcus)) return false;
    const int wanted = window.end_column - window.first_column;
    for (int chunk = 0; chunk * kChunkMcus < wanted; ++chunk)
      if (!decode_chunk(std::min(kChunkMcus, wanted - chunk * kChunkMcus), mcu_row, chunk)) return false;
    if (!whole) planes.end_mcu_row(mcu_row);
  }
  // of the last row libjpeg reads all, but not the marker behind it
  const bool is_last = mcu_row + 1 == window.end_coded_row;
  if ((is_last || !passes_intervals) && !go_to(end, (end - 1) / interval_mcus)) return false;
  return std::ranges::all_of(state.dc, [](std::int32_t dc) { return std::abs(dc) < kMaxDc; });
}

template <typename Step>
bool BaselineDecoder::Impl::decode_rows(Step is_there) {
  for (int mcu_row = 0; mcu_row < window.end_coded_row; ++mcu_row) {
    if (!decode_row(mcu_row)) {
      coefficients = {};  // the next image expects zeros
      return false;
    }
    if (mcu_row >= window.first_row && mcu_row < window.end_row) is_there(mcu_row);
  }
  return all_decoded();
}

bool BaselineDecoder::Impl::all_decoded() const { return input.is_within(state.input) && input.end_marker_ahead(); }

BaselineDecoder::BaselineDecoder(const Kernels& kernels) : impl_(std::make_unique<Impl>(kernels)) {}
BaselineDecoder::~BaselineDecoder() = default;

int BaselineDecoder::intervals_passed() const { return impl_->intervals_passed; }

bool BaselineDecoder::decode(const Frame& frame, const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  Impl& d = *impl_;
  if (!d.start(frame, region)) return false;
  d.planes.start(frame, d.window, d.kernels);
  const int bottom = region.top + region.height;
  // the last row of pixels above a row of MCUs depends on the samples below
  const int rows_ahead = frame.component[0].down == 2 ? 1 : 0;
  int y = region.top;
  return d.decode_rows([&](int mcu_row) {
    const int there = mcu_row + 1 == frame.mcus_down() ? frame.height : (mcu_row + 1) * frame.mcu_height() - rows_ahead;
    for (; y < std::min(bottom, there); ++y) d.planes.write_row(region, y, mode, out.row(y - region.top));
  });
}

bool BaselineDecoder::decode_planes(const Frame& frame, const Box& region, ColorMode mode,
                                    const memory::Coarseness& most, memory::Planes& out) {
  return impl_->start(frame, region) && impl_->start_planes(mode, most, out) && impl_->decode_rows([](int) {});
}

}  // namespace feedline::decode::baseline
