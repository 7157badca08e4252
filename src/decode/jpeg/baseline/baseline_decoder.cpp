// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_decoder.h"

// Performance
//
// At training quality four fifths of a region's decode time is Huffman decoding of the whole scan down to the region's
// last row: the bits before the region cannot be skipped. libjpeg-turbo spends about 20 cycles per symbol: look up the
// code, branch on its size, read the value bits, branch on their sign. Here a symbol costs a dependent chain of a
// shift, a look-up and a shift, about 7 cycles, and all other work runs in parallel to that chain:
//
// - Values in the table. Eleven bits index a table (baseline_huffman.h). If they contain a whole code and the first bit
//   of the value after it, which is its sign, the entry holds the total number of bits of code and value, the advance
//   of the coefficient's index, and a constant. The value is those bits, as one number, plus the constant, which
//   subtracts the code and, for negative values, 2^size - 1. No branch depends on size or sign.
// - One branch per symbol. An end of block, and a code too long for the table (1 in 200), have an advance that raises
//   the index above 63, as the 63rd coefficient does. The loop has no other test, and mispredicts once per block.
// - Branchless refill (baseline_entropy.h, fill()). Every symbol loads eight bytes and ORs them below the valid bits;
//   bits loaded before are ORed with themselves. The refill depends on the previous look-up, not on the current one.
// - No input checks. Zeros stuffed after 0xFF are removed beforehand, piece by piece (baseline_input.h), and every
// piece
//   is followed by as many bytes as an MCU can consume. A file that ends too early is detected afterwards.
// - Blocks outside the region must be read for their length and their DC difference, but not for their values: a second
//   table maps 12 bits to the number of whole symbols in them and their total advance. Building it takes ten times as
//   long as the first table, so it is cached between images, and not built if little is skipped (baseline_tables.h).
//   If an entry extends past the end of a block, the block is decoded again, symbol by symbol.
// - Restart intervals outside the region are not decoded at all: predictions are reset at every marker, and markers can
//   be found without decoding (restart_scan-inl.h).
//
// Tried in a prototype and rejected: larger tables (they exceed the L1 cache), two values per look-up (the same), no
// branches at all (the dependent chain doubles).
//
// Interleaving two images (decode_in_turn(), baseline_turns.h). The chain leaves a core idle for most of its seven
// cycles, and the same image has no independent work: so a thread decodes two images, two symbols of one, then two of
// the other. A run of MCUs (EntropyRun) can pause within a block while the other image needs attention, and resume
// later. Three images were no faster on small photos: their state does not fit the registers.
//
// Coefficients are stored in the layout of the inverse DCT (Places in baseline_entropy.h): one block per 128 bits of a
// vector, interleaved row by row, in chunks of eight MCUs that never leave the L1 cache; the inverse DCT zeroes them
// after use. At most two rows of MCUs of samples are stored (baseline_planes.h), from which rows of pixels are
// computed.
//
// Reduced sizes (decode_planes(), for fidelity "fast"). Entropy decoding is the same, but the inverse DCT of a block
// computes four, two or one samples per side from its lowest coefficients (baseline_reduced_dct.h), chroma is not
// upsampled, and nothing is converted to RGB. For two or one samples per side, the table for skipping blocks also skips
// the rest of each block.
//
// Correctness
//
// Pixels are those of libjpeg-turbo's full decode, cropped. The inverse DCT, fancy upsampling and colour conversion
// have exact definitions; baseline_idct.cpp even reproduces libjpeg-turbo's x86 behaviour for out-of-range
// coefficients.
//
// libjpeg decides whether a file is valid. It parses the header, so there is only one header parser. This decoder reads
// exactly the rows of MCUs that libjpeg would read for the region (Window::end_coded_row), and gives up at anything
// that libjpeg might report: an invalid code, a 65th coefficient, an early, late or unexpected marker, truncated data,
// a missing end marker. libjpeg then decodes the image from its start, and its pixels and errors are the result.
// fuzz/baseline_jpeg_fuzz.cpp compares the two. In skipped intervals only the markers are checked, in all rows that
// libjpeg would read: damage inside them is not detected, nor is damage below the region.

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "decode/jpeg/baseline/baseline_planes.h"
#include "decode/jpeg/baseline/baseline_tables.h"
#include "decode/jpeg/restart_scan.h"

namespace feedline::decode::baseline {
namespace {

// libjpeg fails if the sum of a row's DC differences exceeds 32 bits; this decoder gives up far earlier. A row of MCUs
// adds less than 2^30.
constexpr std::int32_t kMaxDc = 1 << 24;

// By reduction: the zigzag index, plus one, after the last coefficient needed. 2 x 2 needs the first 4; 4 x 4 the first
// 24, after which so few remain that skipping them gains nothing.
constexpr unsigned kEndOfDc = 2;
constexpr std::array<unsigned, kMaxReduction + 1> kEndOfLow{kBlockSize, kBlockSize, 6, kEndOfDc};

}  // namespace

struct BaselineDecoder::Impl {
  const Kernels& kernels;
  BaselineTables tables;
  BaselineInput input;
  BaselinePlanes planes;

  // for the image being decoded
  const Frame* frame = nullptr;
  Box region;
  ColorMode mode = ColorMode::kRgb;
  memory::PixelBuffer* out = nullptr;  // null: writes to `whole`
  int next_row = 0;                    // row of pixels in the image
  memory::Planes* whole = nullptr;
  bool low = false;  // whether some coefficients are not needed
  Window window;
  McuPlan plan;
  EntropyState state;
  EntropyRun run;        // MCUs that are decoded or skipped without any other check
  int first_of_run = 0;  // the run's first MCU
  int mcus_to_restart = 0;
  int next_restart = 0;
  int next_mcu = 0;
  bool passes_intervals = false;  // skips intervals that the region does not depend on
  int intervals_passed = 0;
  bool decoded = false;
  alignas(64) std::array<std::int16_t, kMaxChunkBlocks * kBlockSize> coefficients{};

  explicit Impl(const Kernels& chosen) : kernels(chosen) {}

  bool start(const Frame& image, const Box& wanted, ColorMode color_mode, BaselineTables& shared);
  void start_pixels(memory::PixelBuffer& to);
  bool start_planes(const memory::Coarseness& most, memory::Planes& to);
  bool plan_tables(BaselineTables& shared);

  // Call plan_run(), decode and advance() until it returns false; `decoded` then shows whether decoding succeeded.
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
  // in longer ones the sums of DC differences could overflow before they are checked, and a row of the region needs a
  // part of every interval anyway
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

// Requires: the previous interval has been read to its end.
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

// The end of the skippable MCUs from next_mcu on, at most the end of the row, where DC values are checked.
int BaselineDecoder::Impl::end_of_skip() const {
  const int across = frame->mcus_across(), row = next_mcu / across;
  if (is_in_rows(row) && next_mcu % across < window.first_column) return row * across + window.first_column;
  if (!passes_intervals) return (row + 1) * across;
  const int next = std::max(row + 1, window.first_row);
  return is_in_rows(next) ? next * across + window.first_column : window.end_coded_row * across;
}

// libjpeg reads the last row of MCUs completely, but not the marker after it. Before decoding leaves an
// interval, it reads to the interval's end, where its marker must be: data that produced pixels has the right length.
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

// After a run has stopped: starts the next one, or continues it with more input.
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

// Writes the rows of pixels whose samples are available.
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
  BaselineTables& tables = d[0]->tables;  // shared look-up tables occupy the cache only once
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
