// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/baseline/baseline_decoder.h"

// Performance
//
// At the quality of training images, four fifths of a region's decode time is Huffman decoding of the scan down to the
// region's last row, because the bits before the region cannot be skipped. libjpeg-turbo takes about 20 cycles per
// symbol: it looks up the code, branches on its size, reads the value bits, and branches on their sign. This decoder
// takes about 7 cycles per symbol: a dependent chain of a shift, a look-up and a shift. All other work runs in parallel
// to that chain:
//
// - Values are in the table. Eleven bits are the index of a table (baseline_huffman.h). If these bits contain a whole
//   code and the first bit of the value that follows, which is the value's sign, the entry contains the total number of
//   bits of code and value, the advance of the coefficient's index, and a constant. The value is the number formed by
//   these bits plus the constant, which subtracts the code and, for negative values, 2^size - 1. No branch depends on
//   the size or the sign.
// - There is one branch per symbol. The advance for an end of block, and for a code that is too long for the table (1
//   in 200), raises the index above 63, like the 63rd coefficient. The loop has no other test, and this branch is
//   mispredicted once per block.
// - The refill has no branches (baseline_entropy.h, fill()). Every symbol loads eight bytes and ORs them below the
//   valid bits; bits that were loaded before are ORed with themselves. The refill depends on the previous look-up, not
//   on the current one.
// - The loop does no bounds checks on the input. Zeros stuffed after 0xFF are removed beforehand, piece by piece
//   (baseline_input.h), and every piece is followed by as many bytes as an MCU can consume. A file that ends too early
//   is detected afterwards.
// - Blocks outside the region must be read for their length and their DC difference, but not for their values. A second
//   table maps 12 bits to the number of whole symbols in these bits and the symbols' total advance. Building this table
//   takes ten times as long as building the first one, so it is cached between images, and it is not built if little is
//   skipped (baseline_tables.h). If an entry extends beyond the end of a block, the block is decoded again, symbol by
//   symbol.
// - Restart intervals outside the region are not decoded, because predictions are reset at every marker, and markers
//   can be found without decoding (restart_scan-inl.h).
//
// Prototypes of these changes were not faster: larger tables (they exceed the L1 cache), two values per look-up (for
// the same reason), no branches (the length of the dependent chain doubles).
//
// Two images are interleaved (decode_in_turn(), baseline_turns.h). The chain leaves a CPU core idle for most of its
// seven cycles, and an image has no other independent work. A thread therefore decodes two images: two symbols of one,
// and then two of the other. A run of MCUs (EntropyRun) can pause within a block while the other image needs input or a
// new run, and resume later. Three images were not faster on small photos, because their state does not fit in the
// registers.
//
// Coefficients are stored in the layout of the inverse DCT (Places in baseline_entropy.h): one block per 128 bits of a
// vector, interleaved row by row, in chunks of eight MCUs that stay in the L1 cache. The inverse DCT zeroes the
// coefficients after use. At most two rows of MCUs are stored as samples (baseline_planes.h), from which rows of pixels
// are computed.
//
// Images can be decoded at reduced sizes (decode_planes(), for fidelity "fast"). Entropy decoding is the same, but the
// inverse DCT of a block computes four, two or one samples per side from its lowest coefficients
// (baseline_reduced_dct.h), chroma is not upsampled, and samples are not converted to RGB. For two samples or one
// sample per side, the table for skipping blocks also skips the rest of each block.
//
// Correctness
//
// The pixels equal those of a full decode by libjpeg-turbo, cropped to the region. The inverse DCT, fancy upsampling
// and colour conversion have exact definitions; baseline_idct.cpp also reproduces the behaviour of libjpeg-turbo's x86
// code for coefficients out of range.
//
// libjpeg decides whether a file is valid. libjpeg parses the header, so there is only one header parser. This decoder
// reads exactly the rows of MCUs that libjpeg would read for the region (Window::end_coded_row). This decoder fails for
// anything that libjpeg might report: an invalid code, a 65th coefficient, an early, late or unexpected marker,
// truncated data, or a missing end marker. libjpeg then decodes the image from the beginning, and its pixels and errors
// are the result. fuzz/images/baseline_jpeg_fuzz.cpp compares both decoders. In skipped intervals, only the markers are
// checked, in all rows that libjpeg would read: damage inside these intervals is not detected, nor is damage below the
// region.

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/check.h"
#include "decode/jpeg/baseline/baseline_entropy.h"
#include "decode/jpeg/baseline/baseline_planes.h"
#include "decode/jpeg/baseline/baseline_tables.h"
#include "decode/jpeg/restart_scan.h"

namespace feedline::decode::baseline {
namespace {

// libjpeg fails if the sum of the DC differences in a row exceeds 32 bits; this decoder fails far earlier. A row of
// MCUs adds less than 2^30 to the sum.
constexpr std::int32_t kMaxDc = 1 << 24;

// The index is the reduction, and the value the zigzag index, plus one, after the last coefficient that is needed. A 2
// x 2 inverse DCT needs the coefficients up to zigzag index 4. A 4 x 4 inverse DCT needs those up to index 24; so few
// remain that skipping them saves no time.
constexpr unsigned kEndOfDc = 2;
constexpr std::array<unsigned, kMaxReduction + 1> kEndOfLow{kBlockSize, kBlockSize, 6, kEndOfDc};

// Intervals longer than a row are not skipped: the sums of their DC differences could overflow before they are checked,
// and each row of the region needs a part of every such interval anyway.
bool can_pass_intervals(const Frame& frame) {
  return frame.restart_interval > 0 && frame.restart_interval <= frame.mcus_across();
}

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
  Checkpoints* checkpoints = nullptr;
  int last_known = 0;       // the MCU of the last known checkpoint
  int next_checkpoint = 0;  // that of the next one to record; INT_MAX: none
  int end_of_row = 0;       // the end of its row
  int intervals_passed = 0;
  bool decoded = false;
  alignas(64) std::array<std::int16_t, kMaxChunkBlocks * kBlockSize> coefficients{};

  explicit Impl(const Kernels& chosen) : kernels(chosen) {}

  bool start(const Frame& image, const Box& wanted, ColorMode color_mode, BaselineTables& shared,
             Checkpoints* positions);
  void start_pixels(memory::PixelBuffer& to);
  bool start_planes(const memory::Coarseness& most, memory::Planes& to);
  bool plan_tables(BaselineTables& shared);

  // Call go_on(), then decode and call advance(), until either function returns false; `decoded` then shows whether
  // decoding succeeded.
  bool go_on();
  bool plan_run();
  void decode_alone();
  bool advance();
  bool decode_all();

  bool is_in_rows(int mcu_row) const { return mcu_row >= window.first_row && mcu_row < window.end_row; }
  int end() const { return window.end_coded_row * frame->mcus_across(); }
  int end_of_skip() const;
  int next_wanted() const;
  std::int64_t skipped_mcus() const;
  void begin_checkpoints();
  void find_next_checkpoint();
  void record_checkpoint();
  void jump();
  bool pass_intervals(int count);
  bool step_over_restart();
  bool end_run();
  bool give_up();
  void transform_chunk(int mcus, int mcu_row, int chunk);
  void write_rows(int mcu_row);
};

// Returns the number of MCUs that are read only for their length.
std::int64_t BaselineDecoder::Impl::skipped_mcus() const {
  const std::int64_t columns = window.end_column - window.first_column, rows = window.end_row - window.first_row;
  if (passes_intervals) return frame->restart_interval * rows;
  if (!checkpoints || checkpoints->known.empty()) return end() - columns * rows;
  const int known = checkpoints->grid.mcu(checkpoints->known.size() - 1);
  return std::max(end() - known, 0) + checkpoints->grid.step / 2 * rows;
}

bool BaselineDecoder::Impl::plan_tables(BaselineTables& shared) {
  plan.blocks = 0;
  plan.can_skip = true;
  const std::int64_t skipped = skipped_mcus();
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

bool BaselineDecoder::Impl::start(const Frame& image, const Box& wanted, ColorMode color_mode, BaselineTables& shared,
                                  Checkpoints* positions) {
  frame = &image, region = wanted, mode = color_mode;
  window = window_of(image, region);
  decoded = false;
  passes_intervals = can_pass_intervals(image);
  checkpoints = passes_intervals ? nullptr : positions;
  next_restart = next_mcu = intervals_passed = 0;
  if (!plan_tables(shared)) return false;
  state.dc = {};
  mcus_to_restart = image.restart_interval;
  begin_checkpoints();
  input.track_positions(checkpoints ? image.scan : std::span<const std::byte>());
  input.start(image.scan, state.input);
  return true;
}

void BaselineDecoder::Impl::begin_checkpoints() {
  last_known = 0, next_checkpoint = std::numeric_limits<int>::max();
  if (!checkpoints) return;
  const CheckpointGrid& grid = checkpoints->grid;
  if (checkpoints->known.empty()) checkpoints->known.emplace_back();
  last_known = grid.mcu(checkpoints->known.size() - 1);
  end_of_row = (last_known / grid.across + 1) * grid.across;
  find_next_checkpoint();
}

// Uses no divisions, which would take longer than all other work for a checkpoint.
void BaselineDecoder::Impl::find_next_checkpoint() {
  const CheckpointGrid& grid = checkpoints->grid;
  next_checkpoint = last_known + grid.step;
  if (next_checkpoint < end_of_row) return;
  next_checkpoint = end_of_row < grid.across * grid.down ? end_of_row : std::numeric_limits<int>::max();
  end_of_row += grid.across;
}

void BaselineDecoder::Impl::record_checkpoint() {
  checkpoints->known.push_back({input.position(state.input), state.dc});
  last_known = next_checkpoint;
  find_next_checkpoint();
}

// Moves to the last known checkpoint before the next MCU that is wanted, unless decoding has passed it.
void BaselineDecoder::Impl::jump() {
  if (next_mcu >= last_known) return;
  const int wanted = next_wanted();
  if (wanted == next_mcu) return;
  const CheckpointGrid& grid = checkpoints->grid;
  const std::size_t last = std::min(grid.last_before(wanted), checkpoints->known.size() - 1);
  const int mcu = grid.mcu(last);
  if (mcu <= next_mcu) return;
  const Checkpoint& checkpoint = checkpoints->known[last];
  input.start(frame->scan.subspan(static_cast<std::size_t>(checkpoint.bit / 8)), state.input);
  fill(state.input);
  take(state.input, static_cast<unsigned>(checkpoint.bit % 8));
  state.dc = checkpoint.dc;
  next_mcu = mcu;
  if (const int interval = frame->restart_interval; interval > 0) {  // a marker is next if an interval has just ended
    mcus_to_restart = (interval - mcu % interval) % interval;
    next_restart = (mcu - 1) / interval % kRestartNumbers;
  }
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

// Requires: the previous interval was read to its end.
bool BaselineDecoder::Impl::pass_intervals(int count) {
  if (!input.at_restart(next_restart, state.input)) return false;
  const std::span<const std::uint8_t> data = input.behind_restart();
  const std::uint8_t* const end = data.data() + data.size();
  next_restart = (next_restart + 1) % kRestartNumbers;
  const std::uint8_t* const after = kernels.pass_restarts(data.data(), end, next_restart, count);
  if (!after) return false;
  next_restart = (next_restart + count) % kRestartNumbers;
  input.start(std::as_bytes(std::span(after, end)), state.input);
  state.dc = {};
  mcus_to_restart = frame->restart_interval;
  next_mcu += count * frame->restart_interval;
  intervals_passed += count;
  return true;
}

// Returns the next MCU with pixels in the region, or end().
int BaselineDecoder::Impl::next_wanted() const {
  const int across = frame->mcus_across(), row = next_mcu / across, column = next_mcu % across;
  if (is_in_rows(row) && column < window.first_column) return row * across + window.first_column;
  if (is_in_rows(row) && column < window.end_column) return next_mcu;
  const int next = std::max(row + 1, window.first_row);
  return is_in_rows(next) ? next * across + window.first_column : end();
}

// Returns the end of the skippable MCUs from next_mcu on, at most the end of the row, where DC values are checked.
int BaselineDecoder::Impl::end_of_skip() const {
  const int across = frame->mcus_across(), next = next_wanted();
  return passes_intervals ? next : std::min(next, (next_mcu / across + 1) * across);
}

// libjpeg reads the last row of MCUs completely, but not the marker after it. Before decoding continues with another
// interval, the rest of the current one is read to its end, where its marker must be: data that produced pixels has the
// right length.
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
    const bool to_last = end == this->end();
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
  if (next_checkpoint > next_mcu) end = std::min(end, next_checkpoint);
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

// Called when a run has stopped: starts the next run, or continues this one with more input.
bool BaselineDecoder::Impl::advance() {
  if (run.failed) return give_up();
  const int reached = first_of_run + run.next;
  mcus_to_restart -= reached - next_mcu;
  next_mcu = reached;
  if (run.next < run.end) return input.refill(state.input) || give_up();
  if (!end_run()) return give_up();
  if (next_mcu == next_checkpoint) record_checkpoint();
  return go_on();
}

bool BaselineDecoder::Impl::go_on() {
  if (checkpoints) jump();
  if (next_mcu < end()) return plan_run() || give_up();
  decoded = input.is_within(state.input) && input.end_marker_ahead();
  return false;
}

bool BaselineDecoder::Impl::decode_all() {
  for (bool goes_on = go_on(); goes_on; goes_on = advance()) decode_alone();
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

BaselineDecoder::Reach BaselineDecoder::reach_of(const Frame& frame, const Box& region) {
  const Window window = window_of(frame, region);
  const int end = window.end_coded_row * frame.mcus_across();
  const int wanted = (window.end_column - window.first_column) * (window.end_row - window.first_row);
  const int first = window.first_row * frame.mcus_across() + window.first_column;
  return {first, end, can_pass_intervals(frame) ? 0 : end - wanted};
}

bool BaselineDecoder::decode(const Frame& frame, const Box& region, ColorMode mode, memory::PixelBuffer& out,
                             Checkpoints* checkpoints) {
  Impl& d = *impl_;
  d.tables.begin_image();
  if (!d.start(frame, region, mode, d.tables, checkpoints)) return false;
  d.start_pixels(out);
  return d.decode_all();
}

bool BaselineDecoder::decode_planes(const Frame& frame, const Box& region, ColorMode mode,
                                    const memory::Coarseness& most, memory::Planes& out, Checkpoints* checkpoints) {
  Impl& d = *impl_;
  d.tables.begin_image();
  return d.start(frame, region, mode, d.tables, checkpoints) && d.start_planes(most, out) && d.decode_all();
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
    if (!d[i]->start(*tasks[i]->frame, tasks[i]->region, tasks[i]->mode, tables, tasks[i]->checkpoints)) continue;
    d[i]->start_pixels(*tasks[i]->out);
    goes_on[i] = d[i]->go_on();
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
