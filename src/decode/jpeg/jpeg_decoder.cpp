// SPDX-License-Identifier: Apache-2.0
#include "decode/jpeg/jpeg_decoder.h"

// libjpeg exits failing calls by longjmp. Every call that can fail therefore runs inside Session::guarded(). The
// guarded steps must not have objects that need a destructor, so memory is allocated before they run.
//
// For a region, libjpeg decodes columns starting one iMCU before it (crop), discards the rows above it after entropy
// decoding (skip), and stops after the last row. Fancy upsampling mixes each chroma sample with its neighbours, so the
// cropped columns extend kMargin beyond the region; libjpeg itself handles the rows above and below.

#include <cstdio>

#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <optional>
#include <string>

#include "base/check.h"
#include "decode/color.h"
#include "decode/jpeg/baseline/baseline_decoder.h"
#include "decode/jpeg/baseline/baseline_frame.h"
#include "decode/jpeg/block_smoothing.h"
#include "decode/jpeg/checkpoint_visit.h"
#include "decode/jpeg/jpeg_memory.h"
#include "decode/jpeg/jpeg_part.h"
#include "decode/jpeg/jpeg_source.h"
#include "decode/jpeg/jpeg_trap.h"
#include "decode/jpeg/progressive/progressive_decoder.h"
#include "decode/jpeg/scan_limit.h"
#include "memory/record.h"

namespace feedline::decode {
namespace {

constexpr int kMargin = 2;    // one chroma sample at 2:1; upsampling 4:1 does not use neighbours
constexpr int kMaxIMcu = 32;  // widest iMCU: 4 blocks of 8
// The samples of a progressive image stay in memory as 2-byte coefficients until its last scan. The limit is the memory
// needed by the largest image that open() accepts, with four components and edge blocks.
constexpr long kMaxLibjpegBytes = memory::PixelBuffer::kMaxPixels * 4 * 2 + (64L << 20);
constexpr int kRowsPerCall = 16;
constexpr int kMaxComponents = 4;

void limit_scans(j_common_ptr jpeg) {
  auto* decompress = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decompress->input_scan_number <= most_scans(decompress->image_width, decompress->image_height)) return;
  ErrorTrap& trap = *reinterpret_cast<ErrorTrap*>(jpeg->err);
  std::strcpy(trap.message, "more scans than any real image has");
  std::longjmp(trap.jump, 1);
}

}  // namespace

struct JpegDecoder::Session {
  JpegMemory memory;
  jpeg_decompress_struct jpeg{};
  ErrorTrap trap{};
  JpegSource source{};
  jpeg_progress_mgr progress{};
  std::span<const std::byte> bytes;
  memory::ByteBuffer scratch;
  JSAMPROW scratch_row = nullptr;
  BlockSmoothing smoothing;
  bool created = false;
  bool ready = false;  // between a successful open() and the decode() that consumes it
  const baseline::Kernels* kernels = nullptr;
  std::optional<baseline::BaselineDecoder> baseline;           // created lazily: many datasets never need it
  std::optional<progressive::ProgressiveDecoder> progressive;  // the same
  bool used_baseline = false, used_progressive = false;
  CheckpointVisit checkpoints;
  JpegPart* part = nullptr;  // the opened file has only this part's data

  ~Session() {
    if (created) jpeg_destroy_decompress(&jpeg);
  }

  // Runs `step`. Returns false if libjpeg aborted the step; trap.message contains the reason.
  template <typename Step>
  [[nodiscard]] bool guarded(Step step) {
    if (setjmp(trap.jump) != 0) return false;
    step();
    return true;
  }

  void create();
  void read_header();
  bool multi_scan() { return jpeg_has_multiple_scans(&jpeg); }
  // Returns nullopt if libjpeg must decode the image, or if the region is not that of the part.
  std::optional<baseline::Frame> frame_for_baseline(const Box& region);
  Checkpoints* begin_checkpoints(const baseline::Frame& frame, const Box& region);
  void end_checkpoints(bool is_decoded);
  std::optional<progressive::ScanReader> scans_for_progressive();
  // Requires: the baseline decoder does not support the image.
  Result<void> decode_by_others(const Box& region, ColorMode mode, memory::PixelBuffer& out);
  Result<void> decode_by_libjpeg(const Box& region, ColorMode mode, memory::PixelBuffer& out);
  // Returns whether the file is large enough for the shortest code, one bit per block. Otherwise, a header alone could
  // make libjpeg allocate coefficients for a huge size.
  bool is_plausible() const;
  bool every_scan_seen() const;
  void start(ColorMode mode);
  JDIMENSION crop(const Box& region);  // crops to the region's columns and their dependencies; returns the first
  void read_rows(const Box& region, ColorMode mode, memory::PixelBuffer& out);
  bool end_is_there();
  // Called after the last row of the region: returns whether the rows below the region are also present. Arithmetic
  // coding pads missing data with zeros and does not detect it, so in this case only the end marker is checked.
  bool rest_is_there();
  std::unexpected<Error> damage(const std::string& reason) const;
};

void JpegDecoder::Session::create() {
  jpeg.err = arm(trap);
  jpeg_create_decompress(&jpeg);
  jpeg.mem->max_memory_to_use = kMaxLibjpegBytes;
  memory.serve(jpeg);
  progress.progress_monitor = limit_scans;
  created = true;
}

void JpegDecoder::Session::read_header() {
  if (!created) create();
  jpeg_abort_decompress(&jpeg);
  attach(source, jpeg, bytes);
  jpeg_read_header(&jpeg, TRUE);
}

Checkpoints* JpegDecoder::Session::begin_checkpoints(const baseline::Frame& frame, const Box& region) {
  return part ? &part->checkpoints : checkpoints.begin(bytes, frame, region);
}

void JpegDecoder::Session::end_checkpoints(bool is_decoded) {
  if (!part) checkpoints.end(is_decoded);
}

std::optional<baseline::Frame> JpegDecoder::Session::frame_for_baseline(const Box& region) {
  used_baseline = used_progressive = false;
  if (!kernels || (part ? region != part->region : !is_plausible())) return std::nullopt;
  const auto frame = baseline::baseline_frame(jpeg);
  if (frame && !baseline) baseline.emplace(*kernels);
  return frame;
}

std::optional<progressive::ScanReader> JpegDecoder::Session::scans_for_progressive() {
  if (!kernels || !is_plausible()) return std::nullopt;
  auto scans = progressive::ScanReader::of(jpeg);
  if (scans && !progressive) progressive.emplace(*kernels);
  return scans;
}

bool JpegDecoder::Session::is_plausible() const {
  std::uint64_t blocks = 0;
  for (int i = 0; i < jpeg.num_components; ++i)
    blocks += std::uint64_t{jpeg.comp_info[i].width_in_blocks} * jpeg.comp_info[i].height_in_blocks;
  return jpeg.arith_code || blocks / 8 <= source.callbacks.bytes_in_buffer;
}

// Call this function only for multi-scan files, which libjpeg has already read to the end.
bool JpegDecoder::Session::every_scan_seen() const {
  for (int i = 0; i < jpeg.num_components; ++i) {
    const jpeg_component_info& component = jpeg.comp_info[i];
    if (!component.quant_table) return false;  // set by the component's first scan
    if (!jpeg.progressive_mode) continue;
    const int(&bits_left)[DCTSIZE2] =
        jpeg.coef_bits[i];  // -1: not seen yet; otherwise the number of low bits still missing
    if (bits_left[0] < 0) return false;
    if (source.ran_out && std::ranges::any_of(bits_left, [](int bits) { return bits != 0; })) return false;
  }
  return true;
}

void JpegDecoder::Session::start(ColorMode mode) {
  if (jpeg.num_components == 1)
    jpeg.out_color_space = mode == ColorMode::kRgb ? JCS_RGB : JCS_GRAYSCALE;
  else
    jpeg.out_color_space = jpeg.num_components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg.do_block_smoothing = FALSE;  // done by BlockSmoothing
  jpeg.do_fancy_upsampling = TRUE;  // also prevents libjpeg from merging upsampling with colour conversion
  jpeg.progress = multi_scan() ? &progress : nullptr;
  jpeg.input_iMCU_row = 0;  // for damage(): starting can fail before libjpeg clears the last image's
  jpeg_start_decompress(&jpeg);
}

JDIMENSION JpegDecoder::Session::crop(const Box& region) {
  const int left = std::max(0, region.left - kMargin);
  const int right = std::min(static_cast<int>(jpeg.output_width), region.left + region.width + kMargin);
  auto x = static_cast<JDIMENSION>(left);
  auto width = static_cast<JDIMENSION>(right - left);
  jpeg_crop_scanline(&jpeg, &x, &width);  // moves x down to the border of an iMCU
  return x;
}

void JpegDecoder::Session::read_rows(const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  const int lead = region.left - static_cast<int>(crop(region));
  const int channels = channels_of(mode);
  if (region.top > 0) jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(region.top));

  const bool same_pixels = jpeg.output_components == channels;
  const std::size_t row_bytes = std::size_t{jpeg.output_width} * static_cast<std::size_t>(jpeg.output_components);
  if (same_pixels && lead == 0 && row_bytes <= out.stride()) {
    JSAMPROW rows[kRowsPerCall];
    for (int y = 0; y < region.height;) {
      const int wanted = std::min(kRowsPerCall, region.height - y);
      for (int i = 0; i < wanted; ++i) rows[i] = out.row(y + i);
      y += static_cast<int>(jpeg_read_scanlines(&jpeg, rows, static_cast<JDIMENSION>(wanted)));
    }
    return;
  }
  JSAMPROW row = scratch_row;
  const JSAMPLE* const first = row + static_cast<std::size_t>(lead) * static_cast<std::size_t>(jpeg.output_components);
  for (int y = 0; y < region.height; ++y) {
    jpeg_read_scanlines(&jpeg, &row, 1);
    if (same_pixels)
      std::memcpy(out.row(y), first, static_cast<std::size_t>(region.width) * static_cast<std::size_t>(channels));
    else if (jpeg.output_components == 3)
      rgb_to_l(first, region.width, out.row(y));
    else if (mode == ColorMode::kRgb)
      inverted_cmyk_to_rgb(first, region.width, out.row(y));
    else
      inverted_cmyk_to_l(first, region.width, out.row(y));
  }
}

bool JpegDecoder::Session::end_is_there() {
  if (source.ran_out) return false;
  return jpeg.unread_marker == JPEG_EOI || jpeg_input_complete(&jpeg) || end_marker_ahead(source);
}

bool JpegDecoder::Session::rest_is_there() {
  if (end_is_there()) return true;
  if (jpeg.arith_code) return false;
  if (multi_scan()) return true;  // every_scan_seen() has checked them
  JSAMPROW row = scratch_row;     // discarded; libjpeg warns about missing data
  while (jpeg.output_scanline < jpeg.output_height) jpeg_read_scanlines(&jpeg, &row, 1);
  return true;
}

std::unexpected<Error> JpegDecoder::Session::damage(const std::string& reason) const {
  const std::uint32_t rows_decoded = std::min<std::uint32_t>(
      jpeg.input_iMCU_row * static_cast<std::uint32_t>(jpeg.max_v_samp_factor) * DCTSIZE, jpeg.image_height);
  const bool one_scan = jpeg.comps_in_scan == jpeg.num_components && !jpeg.progressive_mode;
  if (source.ran_out && !one_scan)
    return decode_error("truncated JPEG: ends in scan " + std::to_string(jpeg.input_scan_number));
  const std::string rows = std::to_string(rows_decoded) + " of " + std::to_string(jpeg.image_height) + " rows";
  if (source.ran_out) return decode_error("truncated JPEG: " + rows);
  return decode_error("damaged JPEG after " + rows + ": " + reason);
}

JpegDecoder::JpegDecoder(const baseline::Kernels* kernels) : session_(std::make_unique<Session>()) {
  session_->kernels = kernels;
}
JpegDecoder::~JpegDecoder() = default;

void JpegDecoder::use_checkpoints(CheckpointStore* store) { session_->checkpoints.use(store); }

std::shared_ptr<JpegPart> JpegDecoder::find_part(const Box& region, const JpegOutline& outline, bool is_same_file,
                                                 const CheckpointStore& store) {
  FEEDLINE_CHECK(session_->ready);
  const auto frame = session_->kernels ? baseline::baseline_frame(session_->jpeg) : std::nullopt;
  return frame ? find_jpeg_part(*frame, region, outline, is_same_file, store) : nullptr;
}

void JpegDecoder::use_part(JpegPart* part) { session_->part = part; }

bool JpegDecoder::used_baseline() const { return session_->used_baseline; }
bool JpegDecoder::used_progressive() const { return session_->used_progressive; }
int JpegDecoder::intervals_passed() const {
  return session_->used_baseline ? session_->baseline->intervals_passed() : 0;
}

Result<ImageHeader> JpegDecoder::open(std::span<const std::byte> bytes) {
  Session& session = *session_;
  session.ready = false;
  session.bytes = bytes;
  session.part = nullptr;
  const bool parsed = session.guarded([&session] { session.read_header(); });
  if (session.source.ran_out) return decode_error("truncated JPEG: ends inside its header");
  if (!parsed) return decode_error("cannot decode this JPEG: " + reason_of(session.trap));
  const jpeg_decompress_struct& jpeg = session.jpeg;
  FEEDLINE_CHECK_OK(check_size(jpeg.image_width, jpeg.image_height));
  if (jpeg.num_components != 1 && jpeg.num_components != 3 && jpeg.num_components != 4)
    return decode_error("JPEG with " + std::to_string(jpeg.num_components) + " components");
  session.ready = true;
  return ImageHeader{static_cast<int>(jpeg.image_width), static_cast<int>(jpeg.image_height)};
}

Result<void> JpegDecoder::Session::decode_by_libjpeg(const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  if (part) return decode_error("the range of the JPEG's file does not suffice for this region");
  if (!is_plausible())
    return decode_error("truncated JPEG: " + std::to_string(bytes.size()) + " bytes cannot hold " +
                        std::to_string(jpeg.image_width) + " x " + std::to_string(jpeg.image_height) + " pixels");
  const int row_pixels = region.width + 2 * kMargin + kMaxIMcu;
  scratch_row =
      reinterpret_cast<JSAMPROW>(scratch.resize(static_cast<std::size_t>(row_pixels) * kMaxComponents).data());

  bool complete = true;
  bool finished = guarded([&] { start(mode); });
  if (finished) complete = !multi_scan() || every_scan_seen();
  if (finished && complete && BlockSmoothing::applies_to(jpeg)) {
    smoothing.prepare(jpeg);
    finished = guarded([&] { smoothing.apply(jpeg); });
  }
  if (finished && complete)
    finished = guarded([&] {
      read_rows(region, mode, out);
      complete = rest_is_there();
    });
  Result<void> result;
  if (!finished) result = damage(reason_of(trap));
  if (finished && !complete)
    result = jpeg.arith_code ? decode_error("truncated JPEG: the end marker is missing")
                             : damage("a component lacks a scan or its table");
  jpeg_abort_decompress(&jpeg);  // frees the image's memory now
  return result;
}

Result<void> JpegDecoder::Session::decode_by_others(const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  auto scans = part ? std::nullopt : scans_for_progressive();
  used_progressive = scans && progressive->decode(*scans, region, mode, out);
  if (!used_progressive) return decode_by_libjpeg(region, mode, out);
  jpeg_abort_decompress(&jpeg);
  return {};
}

Result<void> JpegDecoder::decode(const Box& region, ColorMode mode, memory::PixelBuffer& out) {
  Session& session = *session_;
  FEEDLINE_CHECK(session.ready);
  session.ready = false;
  const auto frame = session.frame_for_baseline(region);
  if (!frame) return session.decode_by_others(region, mode, out);
  session.used_baseline =
      session.baseline->decode(*frame, region, mode, out, session.begin_checkpoints(*frame, region));
  session.end_checkpoints(session.used_baseline);
  if (!session.used_baseline) return session.decode_by_libjpeg(region, mode, out);
  jpeg_abort_decompress(&session.jpeg);
  return {};
}

std::array<Result<void>, 2> JpegDecoder::decode_in_turn(JpegDecoder& first, const PixelTask& first_task,
                                                        JpegDecoder& second, const PixelTask& second_task) {
  const std::array<Session*, 2> sessions{first.session_.get(), second.session_.get()};
  FEEDLINE_CHECK(sessions[0] != sessions[1] && sessions[0]->ready && sessions[1]->ready);
  const auto first_frame = sessions[0]->frame_for_baseline(first_task.region);
  const auto second_frame = sessions[1]->frame_for_baseline(second_task.region);
  if (!first_frame || !second_frame || sessions[0]->kernels != sessions[1]->kernels)
    return {first.decode(first_task.region, first_task.mode, *first_task.out),
            second.decode(second_task.region, second_task.mode, *second_task.out)};
  const auto decoded =
      baseline::BaselineDecoder::decode_in_turn(*sessions[0]->baseline,
                                                {&*first_frame, first_task.region, first_task.mode, first_task.out,
                                                 sessions[0]->begin_checkpoints(*first_frame, first_task.region)},
                                                *sessions[1]->baseline,
                                                {&*second_frame, second_task.region, second_task.mode, second_task.out,
                                                 sessions[1]->begin_checkpoints(*second_frame, second_task.region)});
  std::array<Result<void>, 2> results;
  for (std::size_t i = 0; i < 2; ++i) {
    Session& session = *sessions[i];
    const PixelTask& task = i == 0 ? first_task : second_task;
    session.ready = false;
    session.used_baseline = decoded[i];
    session.end_checkpoints(decoded[i]);
    if (decoded[i])
      jpeg_abort_decompress(&session.jpeg);
    else
      results[i] = session.decode_by_libjpeg(task.region, task.mode, *task.out);
  }
  return results;
}

std::array<Result<void>, 2> JpegDecoder::decode_pair(const PixelTask& task, Codec& other, const PixelTask& other_task) {
  return decode_in_turn(*this, task, static_cast<JpegDecoder&>(other), other_task);
}

bool JpegDecoder::decode_planes(const Box& region, ColorMode mode, const memory::Coarseness& most,
                                memory::Planes& out) {
  Session& session = *session_;
  FEEDLINE_CHECK(session.ready);
  const auto frame = session.frame_for_baseline(region);
  session.used_baseline = frame && session.baseline->decode_planes(*frame, region, mode, most, out,
                                                                   session.begin_checkpoints(*frame, region));
  if (frame) session.end_checkpoints(session.used_baseline);
  if (!frame && !session.part) {
    auto scans = session.scans_for_progressive();
    session.used_progressive = scans && session.progressive->decode_planes(*scans, region, mode, most, out);
  }
  if (!session.used_baseline && !session.used_progressive) return false;
  session.ready = false;
  jpeg_abort_decompress(&session.jpeg);
  return true;
}

}  // namespace feedline::decode
