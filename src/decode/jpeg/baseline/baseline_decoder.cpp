// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_decoder.h"

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
//   the index over 63, as the 63rd coefficient does. The loop asks for nothing else, and guesses wrong once per block.
// - Bits without asking (baseline_entropy.h, fill()). Eight bytes are loaded at every symbol, and or'ed below the bits
//   that are there; what was there already is or'ed with itself. It depends on the look-up before, not on this one.
// - No look at the input. Zeros stuffed behind 0xFF are removed before, piece by piece (baseline_input.h), and behind
//   every piece lie as many bytes as an MCU may take. Whether a file ended too early shows afterwards.
// - Blocks outside the region still have to be read for their length and their DC difference, but not for their values:
//   a second table tells of 12 bits how many whole symbols they hold and how far these advance. It takes ten times
//   as long to build as the first one, so it is kept from image to image, and left out where little is skipped
//   (baseline_tables.h). Where it reads past the end of a block, it is asked again, symbol by symbol.
// - Restart intervals that the region does not touch are not decoded at all: the predictions begin anew at every
//   marker, and markers can be found without decoding (restart_scan-inl.h).
//
// Tried on a prototype and left out: larger tables (fall out of the first-level cache), two values per look-up (the
// same), no branches at all (the chain becomes twice as long).
//
// Two images in turn (decode_in_turn(), baseline_turns.h). The chain leaves a core idle for most of its seven cycles,
// and nothing in the same image can fill them: so a thread decodes two images, two symbols of the one, two of the
// other. A run of MCUs (EntropyRun) may stop within a block while the other image is looked after, and go on later.
// Three images at a time gained no more on small photos: their state does not fit the registers.
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

#include "base/check.h"
#include "decode/jpeg/baseline/baseline_planes.h"
#include "decode/jpeg/baseline/baseline_tables.h"
#include "decode/jpeg/restart_scan.h"

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
  const Frame* frame = nullptr;
  Box region;
  ColorMode mode = ColorMode::kRgb;
  memory::PixelBuffer* out = nullptr;  // null: to `whole`
  int next_row = 0;                    // of pixels, in the image
  memory::Planes* whole = nullptr;
  bool low = false;  // are there coefficients that nobody needs?
  Window window;
  McuPlan plan;
  EntropyState state;
  EntropyRun run;        // MCUs that are decoded or skipped without a look at anything else
  int first_of_run = 0;  // the MCU that is 0 in it
  int mcus_to_restart = 0;
  int next_restart = 0;
  int next_mcu = 0;
  bool passes_intervals = false;  // those that the region does not depend on are not decoded
  int intervals_passed = 0;
  bool decoded = false;
  alignas(64) std::array<std::int16_t, kMaxChunkBlocks * kBlockSize> coefficients{};

  explicit Impl(const Kernels& chosen) : kernels(chosen) {}

  bool start(const Frame& image, const Box& wanted, ColorMode color_mode, BaselineTables& shared);
  void start_pixels(memory::PixelBuffer& to);
  bool start_planes(const memory::Coarseness& most, memory::Planes& to);
  bool plan_tables(BaselineTables& shared);

  // plan_run(), decode and advance(), until that is false: then `decoded` says whether all is there.
  bool plan_run();
  void decode_alone();
  bool advance();
  bool decode_all();

  bool is_in_rows(int mcu_row) const { return mcu_row >= window.first_row && mcu_row < window.end_row; }
  int end_of_skip() const;
  bool pass_intervals(int count);
  bool step_over_restart();
  bool end_run();
  bool give_up();
  void transform_chunk(int mcus, int mcu_row, int chunk);
  void write_rows(int mcu_row);
};

bool BaselineDecoder::Impl::plan_tables(BaselineTables& shared) {
  plan.blocks = 0;
  plan.can_skip = true;
  const std::int64_t columns = window.end_column - window.first_column, rows = window.end_row - window.first_row;
  const std::int64_t skipped = passes_intervals
                                   ? frame->restart_interval * rows
                                   : std::int64_t{frame->mcus_across()} * window.end_coded_row - columns * rows;
  int first_of_row = 0;
  for (int c = 0; c < frame->components; ++c) {
    const Component& component = frame->component[c];
    const HuffmanTable* const dc = shared.find(component.dc, HuffmanUse::kDc);
    const HuffmanTable* const ac = shared.find(component.ac, HuffmanUse::kAc);
    if (!dc || !ac) return false;
    const SkipTable* const skip_table = shared.find_skip(ac, skipped * component.across * component.down);
    plan.can_skip = plan.can_skip && skip_table != nullptr;
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

bool BaselineDecoder::Impl::start(const Frame& image, const Box& wanted, ColorMode color_mode, BaselineTables& shared) {
  frame = &image, region = wanted, mode = color_mode;
  window = window_of(image, region);
  decoded = false;
  // in longer ones the sums of DC differences could overflow before anybody looks, and a row of the region needs
  // something of every interval anyway
  passes_intervals = image.restart_interval > 0 && image.restart_interval <= image.mcus_across();
  next_restart = next_mcu = intervals_passed = 0;
  if (!plan_tables(shared)) return false;
  state.dc = {};
  mcus_to_restart = image.restart_interval;
  input.start(image.scan, state.input);
  return true;
}

void BaselineDecoder::Impl::start_pixels(memory::PixelBuffer& to) {
  out = &to, whole = nullptr, low = false;
  next_row = region.top;
  planes.start(*frame, window, kernels);
}

bool BaselineDecoder::Impl::start_planes(const memory::Coarseness& most, memory::Planes& to) {
  out = nullptr, whole = &to, low = false;
  to.count = mode == ColorMode::kL ? 1 : frame->components;
  if (!lay_out_planes(*frame, window, most, to)) return false;
  for (int i = 0; i < plan.blocks; ++i) {
    BlockPlan& block = plan.block[i];
    const int c = block.component;
    block.end = !block.skip ? kBlockSize : c < to.count ? kEndOfLow[to.plane[c].x.shift] : kEndOfDc;
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

// The MCU up to which none is wanted from next_mcu on, or that ends its row: DC values are looked at there.
int BaselineDecoder::Impl::end_of_skip() const {
  const int across = frame->mcus_across(), row = next_mcu / across;
  if (is_in_rows(row) && next_mcu % across < window.first_column) return row * across + window.first_column;
  if (!passes_intervals) return (row + 1) * across;
  const int next = std::max(row + 1, window.first_row);
  return is_in_rows(next) ? next * across + window.first_column : window.end_coded_row * across;
}

// Of the last row of MCUs libjpeg reads all, but not the marker behind it. An interval that is left is read to its end,
// where its marker must stand: so whatever gave pixels is known to be of the length it should have.
bool BaselineDecoder::Impl::plan_run() {
  const int across = frame->mcus_across(), interval_mcus = frame->restart_interval;
  int end = 0;
  for (;;) {
    const int row = next_mcu / across, column = next_mcu % across - window.first_column;
    const bool is_wanted = is_in_rows(row) && column >= 0 && next_mcu % across < window.end_column;
    run = {.plan = &plan, .state = &state, .coefficients = is_wanted ? coefficients.data() : nullptr};
    first_of_run = is_wanted ? next_mcu - column % kChunkMcus : next_mcu;
    if (is_wanted) {
      end = std::min(first_of_run + kChunkMcus, row * across + window.end_column);
      break;
    }
    end = end_of_skip();
    if (!passes_intervals) break;
    const bool to_last = end == window.end_coded_row * across;
    const int current = next_mcu == 0 ? 0 : (next_mcu - 1) / interval_mcus;
    const int between = (to_last ? end - 1 : end) / interval_mcus - current - 1;
    if (between <= 0) break;
    if (mcus_to_restart > 0) {
      end = next_mcu + mcus_to_restart;
      break;
    }
    if (!pass_intervals(between)) return false;
  }
  if (interval_mcus > 0) {
    if (mcus_to_restart == 0 && !step_over_restart()) return false;
    end = std::min(end, next_mcu + mcus_to_restart);
  }
  run.next = next_mcu - first_of_run;
  run.end = end - first_of_run;
  return true;
}

void BaselineDecoder::Impl::decode_alone() {
  if (!low || !run.coefficients) return kernels.alone[static_cast<std::size_t>(blocks_of(run))](run);
  const int reached = kernels.decode_low_mcus(plan, run.next, run.end, state, run.coefficients);
  run.failed = reached < 0;
  if (!run.failed) run.next = reached;
}

bool BaselineDecoder::Impl::give_up() {
  coefficients = {};  // the next image expects zeros
  decoded = false;
  return false;
}

// After a run has stopped: the next one, or the same with more input.
bool BaselineDecoder::Impl::advance() {
  if (run.failed) return give_up();
  const int reached = first_of_run + run.next;
  mcus_to_restart -= reached - next_mcu;
  next_mcu = reached;
  if (run.next < run.end) return input.refill(state.input) || give_up();
  if (!end_run()) return give_up();
  if (next_mcu < window.end_coded_row * frame->mcus_across()) return plan_run() || give_up();
  decoded = input.is_within(state.input) && input.end_marker_ahead();
  return false;
}

bool BaselineDecoder::Impl::decode_all() {
  for (bool goes_on = plan_run() || give_up(); goes_on; goes_on = advance()) decode_alone();
  return decoded;
}

// What can be made of the samples that are there now.
bool BaselineDecoder::Impl::end_run() {
  if (!std::ranges::all_of(state.dc, [](std::int32_t dc) { return std::abs(dc) < kMaxDc; })) return false;
  if (!run.coefficients) return true;
  const int row = first_of_run / frame->mcus_across(), first = row * frame->mcus_across() + window.first_column;
  const int end = first + window.end_column - window.first_column;
  if (next_mcu != std::min(first_of_run + kChunkMcus, end)) return true;  // a restart marker within the chunk
  transform_chunk(run.end, row, (first_of_run - first) / kChunkMcus);
  if (next_mcu == end && out) {
    planes.end_mcu_row(row);
    write_rows(row);
  }
  return true;
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

void BaselineDecoder::Impl::write_rows(int mcu_row) {
  // the last row of pixels above a row of MCUs depends on the samples below
  const int rows_ahead = frame->component[0].down == 2 ? 1 : 0;
  const int there =
      mcu_row + 1 == frame->mcus_down() ? frame->height : (mcu_row + 1) * frame->mcu_height() - rows_ahead;
  for (; next_row < std::min(region.top + region.height, there); ++next_row)
    planes.write_row(region, next_row, mode, out->row(next_row - region.top));
}

BaselineDecoder::BaselineDecoder(const Kernels& kernels) : impl_(std::make_unique<Impl>(kernels)) {}
BaselineDecoder::~BaselineDecoder() = default;

int BaselineDecoder::intervals_passed() const { return impl_->intervals_passed; }

bool BaselineDecoder::decode(const Frame& frame, const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  Impl& d = *impl_;
  d.tables.begin_image();
  if (!d.start(frame, region, mode, d.tables)) return false;
  d.start_pixels(out);
  return d.decode_all();
}

bool BaselineDecoder::decode_planes(const Frame& frame, const Box& region, ColorMode mode,
                                    const memory::Coarseness& most, memory::Planes& out) {
  Impl& d = *impl_;
  d.tables.begin_image();
  return d.start(frame, region, mode, d.tables) && d.start_planes(most, out) && d.decode_all();
}

std::array<bool, 2> BaselineDecoder::decode_in_turn(BaselineDecoder& first, const Task& first_task,
                                                    BaselineDecoder& second, const Task& second_task) {
  const std::array<Impl*, 2> d{first.impl_.get(), second.impl_.get()};
  FEEDLINE_CHECK(d[0] != d[1] && &d[0]->kernels == &d[1]->kernels);
  const std::array<const Task*, 2> tasks{&first_task, &second_task};
  BaselineTables& tables = d[0]->tables;  // what both look up in stays in the cache once
  tables.begin_image();
  std::array<bool, 2> goes_on{};
  for (std::size_t i = 0; i < 2; ++i) {
    if (!d[i]->start(*tasks[i]->frame, tasks[i]->region, tasks[i]->mode, tables)) continue;
    d[i]->start_pixels(*tasks[i]->out);
    goes_on[i] = d[i]->plan_run() || d[i]->give_up();
  }
  while (goes_on[0] && goes_on[1]) {
    const std::array<Blocks, 2> blocks{blocks_of(d[0]->run), blocks_of(d[1]->run)};
    std::size_t stopped = blocks[0] == Blocks::kIgnored ? 0 : 1;
    if (blocks[stopped] == Blocks::kIgnored)
      d[stopped]->decode_alone();
    else
      stopped = static_cast<std::size_t>(
          d[0]->kernels.in_turn[static_cast<std::size_t>(blocks[0])][static_cast<std::size_t>(blocks[1])](d[0]->run,
                                                                                                          d[1]->run));
    goes_on[stopped] = d[stopped]->advance();
  }
  for (std::size_t i = 0; i < 2; ++i)
    while (goes_on[i]) {
      d[i]->decode_alone();
      goes_on[i] = d[i]->advance();
    }
  return {d[0]->decoded, d[1]->decoded};
}

}  // namespace feedline::decode::baseline
