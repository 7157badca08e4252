// SPDX-License-Identifier: Apache-2.0
#include "feedline/order.h"

#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "interop/arrays.h"
#include "interop/errors.h"
#include "interop/gil.h"
#include "register.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace feedline::python {
namespace {

nb::object to_numpy(std::vector<std::uint64_t> samples) {
  auto order = std::make_shared<std::vector<std::uint64_t>>(std::move(samples));
  // indices are below 2^63, as elsewhere in NumPy
  const ArrayView view{reinterpret_cast<std::byte*>(order->data()),
                       {DType::kInt64, Shape{static_cast<std::int64_t>(order->size())}}};
  return to_array(view, order, Framework::kNumpy);
}

nb::object order_array(std::uint64_t samples, std::vector<std::uint64_t> shard_ends, bool shuffle,
                       std::uint64_t shard_window, std::uint64_t seed, std::uint64_t epoch, std::uint64_t begin,
                       std::uint64_t count) {
  const OrderQuery query{samples, std::move(shard_ends), shuffle, shard_window, seed, epoch, begin, count};
  return to_numpy(unwrap(without_gil([&] { return sample_order(query); })));
}

nb::object rank_order_array(std::uint64_t samples, std::vector<std::uint64_t> shard_ends, bool shuffle,
                            std::uint64_t shard_window, std::uint64_t seed, std::uint64_t epoch,
                            std::uint64_t batch_size, std::uint64_t rank, std::uint64_t world_size) {
  const OrderQuery query{samples, std::move(shard_ends), shuffle, shard_window, seed, epoch, 0, 0};
  const RankQuery of{batch_size, rank, world_size};
  return to_numpy(unwrap(without_gil([&] { return rank_order(query, of); })));
}

}  // namespace

void bind_order(nb::module_& module) {
  module.def("sample_order", &order_array, nb::kw_only(), "samples"_a, "shard_ends"_a, "shuffle"_a, "shard_window"_a,
             "seed"_a, "epoch"_a, "begin"_a, "count"_a,
             nb::sig("def sample_order(*, samples: int, shard_ends: collections.abc.Sequence[int], shuffle: bool, "
                     "shard_window: int, seed: int, epoch: int, begin: int, count: int) -> "
                     "numpy.typing.NDArray[numpy.int64]"));
  module.def("rank_order", &rank_order_array, nb::kw_only(), "samples"_a, "shard_ends"_a, "shuffle"_a, "shard_window"_a,
             "seed"_a, "epoch"_a, "batch_size"_a, "rank"_a, "world_size"_a,
             nb::sig("def rank_order(*, samples: int, shard_ends: collections.abc.Sequence[int], shuffle: bool, "
                     "shard_window: int, seed: int, epoch: int, batch_size: int, rank: int, world_size: int) -> "
                     "numpy.typing.NDArray[numpy.int64]"));
}

}  // namespace feedline::python
