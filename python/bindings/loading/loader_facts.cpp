// SPDX-License-Identifier: Apache-2.0
#include "loading/loader_facts.h"

#include <string>
#include <tuple>
#include <utility>

#include "interop/described.h"

namespace nb = nanobind;

namespace feedline::python {
namespace {

nb::object code_of(const Error& error) { return nb::cast(name_of(error.code)); }
nb::object record_of(const Error& error) { return error.where.record ? nb::cast(*error.where.record) : nb::none(); }

using Pair = std::pair<std::uint64_t, std::uint64_t>;

}  // namespace

template <>
struct Plain<Positions> {
  using Type = Pair;
  static Type of(const Positions& span) { return {span.begin, span.end}; }
  static Positions read(const Type& pair, const std::string& /*subject*/) { return {pair.first, pair.second}; }
};

template <>
struct Plain<Bucket> {
  using Type = Pair;
  static Type of(const Bucket& bucket) { return {bucket.bound, bucket.rows}; }
  static Bucket read(const Type& pair, const std::string& /*subject*/) { return {pair.first, pair.second}; }
};

template <>
inline constexpr auto kMembers<StageStats> = std::tuple(Member{"items", &StageStats::items},
                                                        Member{"bytes", &StageStats::bytes},
                                                        Member{"busy_s", &StageStats::busy_s},
                                                        Member{"blocked_s", &StageStats::blocked_s},
                                                        Member{"starved_s", &StageStats::starved_s},
                                                        Member{"latency_us", &StageStats::latency_us});

namespace {

// Converts stages to a dict by name.
nb::object by_name(const std::vector<StageStats>& stages) {
  nb::dict result;
  for (const StageStats& stage : stages) result[nb::cast(stage.name)] = in_python(stage);
  return result;
}

}  // namespace

template <>
inline constexpr auto kMembers<CacheStats> = std::tuple(Member{"where", &CacheStats::where},
                                                        Member{"samples", &CacheStats::samples},
                                                        Member{"present", &CacheStats::present},
                                                        Member{"bytes", &CacheStats::bytes},
                                                        Member{"budget_bytes", &CacheStats::budget_bytes},
                                                        Member{"full", &CacheStats::full});

template <>
inline constexpr auto kMembers<ControllerStats::Change> =
    std::tuple(Member{"at_s", &ControllerStats::Change::at_s}, Member{"from", &ControllerStats::Change::from},
               Member{"to", &ControllerStats::Change::to}, Member{"ahead_from", &ControllerStats::Change::ahead_from},
               Member{"ahead_to", &ControllerStats::Change::ahead_to}, Member{"why", &ControllerStats::Change::why});

template <>
inline constexpr auto kMembers<ControllerStats> = std::tuple(Member{"threads", &ControllerStats::threads},
                                                             Member{"limit", &ControllerStats::limit},
                                                             Member{"batches_ahead", &ControllerStats::batches_ahead},
                                                             Member{"changed", &ControllerStats::changed},
                                                             Member{"changes", &ControllerStats::changes});

template <>
inline constexpr auto kMembers<MapStats> = std::tuple(Member{"calls", &MapStats::calls},
                                                      Member{"run_s", &MapStats::run_s},
                                                      Member{"waited_s", &MapStats::waited_s});

template <>
inline constexpr auto kMembers<MixStats> = std::tuple(Member{"batches", &MixStats::batches},
                                                      Member{"rows", &MixStats::rows},
                                                      Member{"run_s", &MixStats::run_s});

template <>
inline constexpr auto kMembers<HedgeStats> = std::tuple(Member{"requests", &HedgeStats::requests},
                                                        Member{"won", &HedgeStats::won},
                                                        Member{"dropped_bytes", &HedgeStats::dropped_bytes});

template <>
inline constexpr auto kMembers<CheckpointStats> =
    std::tuple(Member{"images", &CheckpointStats::images}, Member{"bytes", &CheckpointStats::bytes},
               Member{"path", &CheckpointStats::path}, Member{"used", &CheckpointStats::used},
               Member{"made", &CheckpointStats::made}, Member{"changed", &CheckpointStats::changed},
               Member{"damaged", &CheckpointStats::damaged}, Member{"dropped", &CheckpointStats::dropped},
               Member{"failure", &CheckpointStats::failure}, Member{"ranges", &CheckpointStats::ranges},
               Member{"range_bytes", &CheckpointStats::range_bytes},
               Member{"range_image_bytes", &CheckpointStats::range_image_bytes},
               Member{"refused_ranges", &CheckpointStats::refused_ranges});

template <>
inline constexpr auto kMembers<BlockStats> = std::tuple(Member{"blocks", &BlockStats::blocks},
                                                        Member{"bytes", &BlockStats::bytes},
                                                        Member{"delivered_bytes", &BlockStats::delivered_bytes});

template <>
inline constexpr auto kMembers<VideoStats> = std::tuple(Member{"opens", &VideoStats::opens},
                                                        Member{"open_s", &VideoStats::open_s},
                                                        Member{"frames", &VideoStats::frames},
                                                        Member{"bytes_fetched", &VideoStats::bytes_fetched},
                                                        Member{"bytes_used", &VideoStats::bytes_used},
                                                        Member{"decoder_budget", &VideoStats::decoder_budget},
                                                        Member{"decoder_bytes_peak", &VideoStats::decoder_bytes_peak});

template <>
inline constexpr auto kMembers<LoaderStats> =
    std::tuple(Member{"threads", &LoaderStats::threads}, Member{"batches", &LoaderStats::batches},
               Member{"samples", &LoaderStats::samples}, Member{"bad_samples", &LoaderStats::bad_samples},
               Member{"wall_s", &LoaderStats::wall_s}, Member{"ready_batches", &LoaderStats::ready_batches},
               Member{"held_bytes", &LoaderStats::held_bytes}, Member{"held_bytes_peak", &LoaderStats::held_bytes_peak},
               Member{"budget_bytes", &LoaderStats::budget_bytes}, Member{"cache", &LoaderStats::cache},
               Member{"controller", &LoaderStats::controller}, Member{"map", &LoaderStats::map},
               Member{"mix", &LoaderStats::mix}, Member{"hedge", &LoaderStats::hedge},
               Member{"checkpoints", &LoaderStats::checkpoints}, Member{"blocks", &LoaderStats::blocks},
               Member{"video", &LoaderStats::video}, Member{"stages", &LoaderStats::stages, &by_name});

template <>
inline constexpr auto kMembers<BadSample> = std::tuple(Member{"exception", &BadSample::error, &to_exception},
                                                       Member{"code", &BadSample::error, &code_of},
                                                       Member{"epoch", &BadSample::epoch},
                                                       Member{"batch", &BadSample::batch},
                                                       Member{"record", &BadSample::error, &record_of},
                                                       Member{"action", &BadSample::action});

template <>
inline constexpr auto kMembers<DatasetIdentity> = std::tuple(Member{"fingerprint", &DatasetIdentity::fingerprint},
                                                             Member{"format", &DatasetIdentity::format},
                                                             Member{"samples", &DatasetIdentity::samples},
                                                             Member{"shards", &DatasetIdentity::shards},
                                                             Member{"fields", &DatasetIdentity::fields},
                                                             Member{"blocks", &DatasetIdentity::blocks});

template <>
inline constexpr auto kMembers<MixState> = std::tuple(Member{"weights", &MixState::weights},
                                                      Member{"since", &MixState::since},
                                                      Member{"used", &MixState::used});

template <>
inline constexpr auto kMembers<PackState> = std::tuple(Member{"window", &PackState::window},
                                                       Member{"pack", &PackState::pack});

template <>
inline constexpr auto kMembers<PackCounts> = std::tuple(
    Member{"documents", &PackCounts::documents}, Member{"empty", &PackCounts::empty},
    Member{"dropped", &PackCounts::dropped}, Member{"truncated", &PackCounts::truncated},
    Member{"split", &PackCounts::split}, Member{"pieces", &PackCounts::pieces}, Member{"tokens", &PackCounts::tokens},
    Member{"lost_tokens", &PackCounts::lost_tokens}, Member{"packs", &PackCounts::packs});

template <>
inline constexpr auto kMembers<LoaderState> =
    std::tuple(Member{"dataset", &LoaderState::dataset}, Member{"seed", &LoaderState::seed},
               Member{"shuffle", &LoaderState::shuffle}, Member{"shard_window", &LoaderState::shard_window},
               Member{"epoch", &LoaderState::epoch}, Member{"position", &LoaderState::position},
               Member{"delivered", &LoaderState::delivered}, Member{"left_out", &LoaderState::left_out},
               Member{"buckets", &LoaderState::buckets}, Member{"repeat", &LoaderState::repeat},
               Member{"sampling", &LoaderState::sampling}, Member{"mix", &LoaderState::mix},
               Member{"fidelity", &LoaderState::fidelity}, Member{"packing", &LoaderState::packing});

nb::dict stats_dict(const LoaderStats& stats) { return to_dict(stats); }

nb::list bad_samples(const std::vector<BadSample>& errors) { return nb::borrow<nb::list>(in_python(errors)); }

nb::dict pack_counts_dict(const PackCounts& counts) { return to_dict(counts); }

nb::dict state_dict(const LoaderState& state) { return to_dict(state); }

LoaderState state_of(const nb::dict& state) { return from_dict<LoaderState>(state, "load_state_dict"); }

}  // namespace feedline::python
