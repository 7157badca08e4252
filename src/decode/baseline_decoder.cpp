// SPDX-License-Identifier: Apache-2.0
#include "decode/baseline_decoder.h"

#include <algorithm>
#include <cstdlib>

#include "decode/baseline_planes.h"
#include "decode/baseline_tables.h"

namespace feedline::decode::baseline {
namespace {

// libjpeg gives up where the sum of a row's DC differences leaves 32 bits: far before, so does this decoder. A row of
// MCUs adds less than 2^30.
constexpr std::int32_t kMaxDc = 1 << 24;

constexpr int kRestartMarkers = 8;

}  // namespace

struct BaselineDecoder::Impl {
  const Kernels& kernels;
  BaselineTables tables;
  BaselineInput input;
  BaselinePlanes planes;

  // of the image that is being decoded
  const Frame* frame = nullptr;
  Window window;
  McuPlan plan;
  EntropyState state;
  int mcus_to_restart = 0;
  int next_restart = 0;
  alignas(64) std::array<std::int16_t, kMaxChunkBlocks * kBlockSize> coefficients{};

  explicit Impl(const Kernels& chosen) : kernels(chosen) {}

  bool start(const Frame& image, const Box& region);
  bool plan_tables();
  bool step_over_restart();
  // decode(first, end) and skip(first, end) do MCUs, of a chunk or of a row, and tell how far they came.
  template <typename Step>
  bool run(int mcus, Step step);
  bool skip(int mcus);
  bool decode_chunk(int mcus, int mcu_row, int chunk);
  bool decode_row(int mcu_row);
  bool all_decoded() const;
};

bool BaselineDecoder::Impl::plan_tables() {
  tables.begin_image();
  plan.blocks = 0;
  const std::int64_t columns = window.end_column - window.first_column, rows = window.end_row - window.first_row;
  const std::int64_t skipped = std::int64_t{frame->mcus_across()} * window.end_coded_row - columns * rows;
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
  if (!plan_tables()) return false;
  planes.start(image, window, kernels);
  state.dc = {};
  mcus_to_restart = image.restart_interval;
  next_restart = 0;
  input.start(image.scan, state.input);
  return true;
}

bool BaselineDecoder::Impl::step_over_restart() {
  if (!input.restart(next_restart, state.input)) return false;
  next_restart = (next_restart + 1) % kRestartMarkers;
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
    done = reached;
  }
  return true;
}

bool BaselineDecoder::Impl::skip(int mcus) {
  return run(mcus, [this](int first, int end) { return kernels.skip_mcus(plan, first, end, state); });
}

bool BaselineDecoder::Impl::decode_chunk(int mcus, int mcu_row, int chunk) {
  const bool decoded = run(
      mcus, [this](int first, int end) { return kernels.decode_mcus(plan, first, end, state, coefficients.data()); });
  if (!decoded) return false;
  std::int16_t* from = coefficients.data();
  for (int c = 0; c < frame->components; ++c) {
    const Component& component = frame->component[c];
    const int groups = (mcus * component.across + kernels.group - 1) / kernels.group;
    for (int v = 0; v < component.down; ++v, from += kChunkMcus * component.across * kBlockSize) {
      std::uint8_t* const to = planes.row(c, (mcu_row * component.down + v) * kBlockSide) +
                               chunk * kChunkMcus * component.across * kBlockSide;
      kernels.inverse_dct(from, component.quantisation.data(), groups, to, planes.stride(c));
    }
  }
  return true;
}

bool BaselineDecoder::Impl::decode_row(int mcu_row) {
  const int columns = frame->mcus_across();
  if (mcu_row < window.first_row || mcu_row >= window.end_row) {
    if (!skip(columns)) return false;
  } else {
    if (!skip(window.first_column)) return false;
    const int wanted = window.end_column - window.first_column;
    for (int chunk = 0; chunk * kChunkMcus < wanted; ++chunk)
      if (!decode_chunk(std::min(kChunkMcus, wanted - chunk * kChunkMcus), mcu_row, chunk)) return false;
    if (!skip(columns - window.end_column)) return false;
    planes.end_mcu_row(mcu_row);
  }
  return std::ranges::all_of(state.dc, [](std::int32_t dc) { return std::abs(dc) < kMaxDc; });
}

bool BaselineDecoder::Impl::all_decoded() const { return input.is_within(state.input) && input.end_marker_ahead(); }

BaselineDecoder::BaselineDecoder(const Kernels& kernels) : impl_(std::make_unique<Impl>(kernels)) {}
BaselineDecoder::~BaselineDecoder() = default;

bool BaselineDecoder::decode(const Frame& frame, const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  Impl& d = *impl_;
  if (!d.start(frame, region)) return false;
  const int bottom = region.top + region.height;
  // the last row of pixels above a row of MCUs depends on the samples below
  const int rows_ahead = frame.component[0].down == 2 ? 1 : 0;
  int y = region.top;
  for (int mcu_row = 0; mcu_row < d.window.end_coded_row; ++mcu_row) {
    if (!d.decode_row(mcu_row)) {
      d.coefficients = {};  // the next image expects zeros
      return false;
    }
    if (mcu_row < d.window.first_row || mcu_row >= d.window.end_row) continue;
    const int there = mcu_row + 1 == frame.mcus_down() ? frame.height : (mcu_row + 1) * frame.mcu_height() - rows_ahead;
    for (; y < std::min(bottom, there); ++y) d.planes.write_row(region, y, mode, out.row(y - region.top));
  }
  return d.all_decoded();
}

}  // namespace feedline::decode::baseline
